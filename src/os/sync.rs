//! Making durable what others wrote.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::unistd;

/// Writes everything that the kernel still holds back of the file system on which `directory` is.
/// Waits for the disk, for as long as that takes.
///
/// # Errors
/// The directory cannot be opened, or the disk fails.
pub fn sync_file_system(directory: &Path) -> io::Result<()> {
    Ok(unistd::syncfs(File::open(directory)?)?)
}

/// The same for every file system of the device. The kernel tells of no failure.
pub fn sync_all() {
    unistd::sync();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_an_error_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(sync_file_system(dir.path()).is_ok());
        assert!(sync_file_system(&dir.path().join("none")).is_err());
    }
}
