//! The operating system: clock, threads, signals, files.

pub mod unix_http;
