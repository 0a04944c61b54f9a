//! The file of the agent's own log. With the older file beside it, it takes at most twice the size
//! that it may have. Nothing is synced: a line is not worth the wear of a flash.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// For its owner and group: a log names workloads, not their secrets.
const MODE: u32 = 0o640;

/// A log file. It is opened at the first line, and again whenever it is not there any more.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    older: PathBuf,
    max_bytes: u64,
    file: Option<File>,
}

impl LogFile {
    /// A file at `path` of at most `max_bytes`; what does not fit any more becomes `path` with
    /// `.1` at its end.
    pub fn new(path: PathBuf, max_bytes: u64) -> Self {
        let mut older = OsString::from(&path);
        older.push(".1");
        Self { path, older: older.into(), max_bytes, file: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line, which ends in a newline.
    ///
    /// # Errors
    /// Nothing of the line was written: the disk is full or read-only, the directory is not there,
    /// or the path names something else than a file.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let mut file = self.current()?;
        let mut size = file.metadata()?.len();
        if size > 0 && size.saturating_add(length) > self.max_bytes {
            (file, size) = (self.begin_anew(file)?, 0);
        }
        if let Err(error) = file.write_all(line.as_bytes()) {
            // The half of a line that found room would spoil the next one.
            let _ = file.set_len(size);
            return Err(error);
        }
        self.file = Some(file);
        Ok(())
    }

    /// The file at the path. Who removed, moved or replaced the one that is open meant the next
    /// line to go into a new one.
    fn current(&mut self) -> io::Result<File> {
        let Some(file) = self.file.take() else { return open(&self.path) };
        let is_there = fs::symlink_metadata(&self.path).is_ok_and(|there| {
            file.metadata().is_ok_and(|ours| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
        });
        if is_there { Ok(file) } else { open(&self.path) }
    }

    /// An empty file, with the present one beside it, or without it where that cannot be: the bound
    /// holds in any case.
    fn begin_anew(&self, file: File) -> io::Result<File> {
        match fs::rename(&self.path, &self.older) {
            Ok(()) => open(&self.path),
            Err(_) => file.set_len(0).map(|()| file),
        }
    }
}

/// Opens a file to append to, made if it is not there. Links are not followed and nothing but a
/// file is taken: when it is full it is renamed, and what it is not may not be.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    options.append(true).custom_flags(flags.bits()).mode(MODE);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => {
            let file = made?;
            // The mode of an open is narrowed by the umask; this one is not.
            file.set_permissions(Permissions::from_mode(MODE))?;
            return Ok(file);
        }
    }
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file; name a path where a file is or can be made"));
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("a.log")
        }

        fn log(&self, max_bytes: u64) -> LogFile {
            LogFile::new(self.path(), max_bytes)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
        }
    }

    #[test]
    fn lines_are_appended_to_what_is_there_and_others_cannot_read_them() {
        let place = Place::new();
        place.log(1_000).append("one\n").unwrap();
        place.log(1_000).append("two\n").unwrap();
        assert_eq!(place.read("a.log"), "one\ntwo\n");
        let mode = fs::metadata(place.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn one_older_file_is_kept_and_twice_the_size_is_never_passed() {
        let place = Place::new();
        let mut log = place.log(100);
        for number in 0..1_000 {
            log.append(&format!("line {number:4}\n")).unwrap();
            let sizes = ["a.log", "a.log.1"].map(|name| place.read(name).len());
            assert!(sizes.iter().all(|size| *size <= 100), "{sizes:?}");
        }
        assert_eq!(place.read("a.log").lines().last(), Some("line  999"));
        let all = place.read("a.log.1") + &place.read("a.log");
        let first: usize = all.lines().next().unwrap()[5..].trim().parse().unwrap();
        let expected: String = (first..1_000).map(|n| format!("line {n:4}\n")).collect();
        assert_eq!(all, expected, "in order, and none is missing");
        assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_was_removed_moved_or_cut_is_gone_on_with() {
        let place = Place::new();
        let mut log = place.log(1_000);
        log.append("one\n").unwrap();
        fs::remove_file(place.path()).unwrap();
        log.append("two\n").unwrap();
        assert_eq!(place.read("a.log"), "two\n");
        fs::rename(place.path(), place.0.path().join("b")).unwrap();
        log.append("three\n").unwrap();
        assert_eq!((place.read("b").as_str(), place.read("a.log").as_str()), ("two\n", "three\n"));
        OpenOptions::new().write(true).open(place.path()).unwrap().set_len(0).unwrap();
        log.append("four\n").unwrap();
        assert_eq!(place.read("a.log"), "four\n");
    }

    #[test]
    fn where_nothing_can_be_renamed_the_file_begins_anew() {
        let place = Place::new();
        // A folder with something in it cannot be replaced by a file.
        fs::create_dir_all(place.0.path().join("a.log.1/x")).unwrap();
        let mut log = place.log(10);
        log.append("123456\n").unwrap();
        log.append("654321\n").unwrap();
        assert_eq!(place.read("a.log"), "654321\n");
    }

    #[test]
    fn a_directory_that_is_missing_is_an_error_until_it_is_there() {
        let place = Place::new();
        let folder = place.0.path().join("later");
        let mut log = LogFile::new(folder.join("a.log"), 1_000);
        assert_eq!(log.append("lost\n").unwrap_err().kind(), ErrorKind::NotFound);
        fs::create_dir(&folder).unwrap();
        log.append("kept\n").unwrap();
        assert_eq!(place.read("later/a.log"), "kept\n");
    }

    #[test]
    fn what_is_no_file_is_neither_written_nor_renamed() {
        let place = Place::new();
        assert!(LogFile::new("/dev/null".into(), 1).append("x\n").is_err());
        assert!(Path::new("/dev/null").exists() && !Path::new("/dev/null.1").exists());
        std::os::unix::fs::symlink("elsewhere", place.path()).unwrap();
        assert!(place.log(1_000).append("x\n").is_err());
        assert!(!place.0.path().join("elsewhere").exists());
        fs::remove_file(place.path()).unwrap();
        // A pipe that nobody reads would hold up whoever opens it.
        nix::unistd::mkfifo(&place.path(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(place.log(1_000).append("x\n").is_err());
    }
}
