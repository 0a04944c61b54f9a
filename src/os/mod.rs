//! The operating system: clocks, threads, signals, files, sockets. Used by every room but `domain`.

pub mod atomic_file;

pub mod boot;

pub mod cgroup;

pub mod clock;

pub mod descriptors;

pub mod directory_watch;

pub mod lock_file;

pub mod log_file;

pub mod log_thread;

pub mod memory;

pub mod mount;

pub mod open;

pub mod presence;

pub mod random;

pub mod repeats;

#[cfg(test)]
pub(crate) mod scripted;

pub mod signal;

pub mod space;

pub mod sync;

pub mod thread;

pub mod unix_http;
