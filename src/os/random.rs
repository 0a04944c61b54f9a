//! Random bytes from the kernel.

use std::fs::File;
use std::io::{self, Read};

/// Fills `bytes`.
///
/// # Errors
/// There is no `/dev/urandom`.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

/// A random number.
///
/// # Errors
/// As for [`fill`].
pub fn number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
