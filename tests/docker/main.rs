//! The whole program on a real Docker engine: what it promises, one test a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopting;
mod arm;
mod commanding;
mod crashing;
mod damage;
mod directory;
mod engine_down;
mod idle;
mod making;
mod many;
mod orphans;
mod pulling;
mod rebuilding;
mod rest;
mod restarting;
mod returning;
mod slow;
mod stopping;
mod stores;
mod storm;
#[path = "../support/mod.rs"]
mod support;
mod updating;
