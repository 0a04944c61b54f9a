//! File, environment and flags settled once.
