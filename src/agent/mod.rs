//! The shell around the machine.
