//! The kernel's id of the present boot.

use std::fs;
use std::io;
use std::path::Path;

/// Where the kernel shows it.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of this boot: another one after every reboot.
///
/// # Errors
/// `/proc` is not mounted.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(Path::new(BOOT_ID))?.trim().to_owned())
}
