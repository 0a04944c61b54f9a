//! Opens for reading what somebody else may replace at any moment.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a directory.
///
/// # Errors
/// It is not there, is no directory, or may not be read.
pub fn directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)
}

/// Opens a file. A pipe that took its place is opened at once too, whoever writes to it.
///
/// # Errors
/// It is not there, or may not be read.
pub fn file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_are_opened_as_such() {
        let folder = tempfile::tempdir().unwrap();
        assert!(directory(folder.path()).is_ok());
        let plain = folder.path().join("a");
        File::create(&plain).unwrap();
        assert_eq!(directory(&plain).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(file(&plain).is_ok());
    }

    #[test]
    fn a_pipe_without_a_writer_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(file(&pipe).is_ok());
    }
}
