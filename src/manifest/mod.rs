//! Bytes to declared workloads.
