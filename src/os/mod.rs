//! The operating system: clock, threads, signals, files.

pub mod clock;

pub mod thread;

pub mod unix_http;
