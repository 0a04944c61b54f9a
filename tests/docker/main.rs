//! The whole program on a real Docker engine: what it promises, one test a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopting;
mod arm;
mod booting;
mod commanding;
mod crashing;
mod damage;
mod directory;
mod draining;
mod engine_down;
mod gone;
mod health;
mod idle;
mod making;
mod many;
mod orphans;
mod pulling;
mod quiescing;
mod rebuilding;
mod replaced;
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
