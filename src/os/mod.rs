//! The operating system: clocks, threads, signals, files, sockets. Used by every room but `domain`.

pub mod boot;

pub mod clock;

pub mod memory;

pub mod random;

pub mod signal;

pub mod thread;
