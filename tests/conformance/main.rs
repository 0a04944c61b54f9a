//! The engine contract. The same cases run on a real Docker and on the engine in memory; engines
//! that are broken on purpose fail them, and recorded answers tie the two together.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod cases;
mod kit;
mod lists;
mod recorded;
#[path = "../support/mod.rs"]
mod support;
mod tested;
