//! The whole program on a real Docker engine: what it promises, one test a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopting;
mod engine_down;
mod many;
mod pulling;
mod restarting;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod updating;
