//! The HTTP API on the local socket.

pub mod backend;
