//! Free space on a disk.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Bytes that any user may still write on the file system of `path`.
///
/// # Errors
/// The path is not there, or the disk fails.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.blocks_available().saturating_mul(found.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_an_error_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_bytes(dir.path()).is_ok());
        assert!(free_bytes(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_file_system_without_blocks_has_no_space() {
        assert_eq!(free_bytes(Path::new("/proc")).unwrap(), 0);
    }
}
