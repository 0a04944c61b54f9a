//! The operating system: clock, threads, signals, files.

pub mod atomic_file;

pub mod lock_file;

pub mod cgroup;
