//! The lock of a directory: one process holds it, and whoever comes second is told who that is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// Longest text about its holder that is read from a lock file.
const HOLDER_BYTES: u64 = 256;

/// A lock that is held until the value is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct LockFile {
    _held: Flock<File>,
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error(
        "{} is locked by {holder}: stop that process first, or use another directory",
        file.display()
    )]
    Held {
        /// The lock file.
        file: PathBuf,
        /// Pid and command of the holder as it wrote them: `process 712 (bargee)`.
        holder: String,
    },
    /// The file cannot be made, written or locked.
    #[error("cannot lock {}: {source}", file.display())]
    File {
        /// The lock file.
        file: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl LockFile {
    /// Takes the lock `file` without waiting, and writes the own pid and `command` into it.
    ///
    /// # Errors
    /// [`LockError::Held`] names who holds it; [`LockError::File`] is the system's answer.
    pub fn take(file: &Path, command: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::File { file: file.to_owned(), source };
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(file)
            .map_err(failed)?;
        match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
            Ok(mut held) => {
                note(&mut held, command).map_err(failed)?;
                // The file itself stays for good: removing it would let two processes lock two
                // files of the same name.
                Ok(Self { _held: held })
            }
            Err((theirs, Errno::EWOULDBLOCK)) => {
                Err(LockError::Held { file: file.to_owned(), holder: holder(theirs) })
            }
            Err((_, errno)) => Err(failed(errno.into())),
        }
    }
}

fn note(held: &mut File, command: &str) -> io::Result<()> {
    held.set_len(0)?;
    // One write, so that a second taker reads both or nothing.
    held.write_all(format!("{} {command}\n", std::process::id()).as_bytes())
}

fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES).read_to_string(&mut text);
    match (read, text.trim().split_once(' ')) {
        (Ok(_), Some((pid, command))) => format!("process {pid} ({command})"),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = LockFile::take(&path, "bargee agent").unwrap();
        let error = LockFile::take(&path, "another").unwrap_err().to_string();
        let holder = format!("process {} (bargee agent)", std::process::id());
        assert!(error.contains(&holder), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        drop(first);
        let _again = LockFile::take(&path, "b").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{} b\n", std::process::id()));
    }

    #[test]
    fn a_holder_that_wrote_nothing_yet_is_another_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::create(&path).unwrap();
        let _held = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        let error = LockFile::take(&path, "b").unwrap_err().to_string();
        assert!(error.contains("locked by another process"), "{error}");
    }

    #[test]
    fn a_missing_directory_is_an_error_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let error = LockFile::take(&dir.path().join("none/lock"), "b").unwrap_err();
        assert!(matches!(error, LockError::File { .. }), "{error}");
    }
}
