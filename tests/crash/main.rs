//! The agent dies at every point of everything that it does, and the next one finds all in order.
//! The engine is scripted and lives in the process of the tests, so that it outlives the agent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a failing test says what it saw")]

mod blind;
mod database;
mod durable;
mod handlers;
mod judging;
mod kit;
mod late;
mod matrix;
mod scenarios;
mod slow;
#[path = "../support/mod.rs"]
mod support;
mod sync;
mod ugly;
