//! The operating system: clock, threads, signals, files.

#[cfg(test)]
pub(crate) mod scripted;

pub mod unix_http;
