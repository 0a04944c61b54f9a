//! What the integration tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod engine;
pub mod registry;
pub mod scripted_engine;
