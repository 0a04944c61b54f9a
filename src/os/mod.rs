//! The operating system: clock, threads, signals, files.
