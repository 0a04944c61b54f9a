//! The program against an engine that does what a test says, and against hostile input.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a failing test says what it saw")]

mod agent_log;
mod away;
mod directory;
mod disk;
mod garbage;
mod limits;
mod manifests;
mod many;
mod odd;
mod recorded;
mod stops;
mod store;
mod stream;
#[path = "../support/mod.rs"]
mod support;
