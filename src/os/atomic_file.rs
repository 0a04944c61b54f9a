//! Files are replaced, never edited: whoever reads one finds the old content or the new, also after
//! a power cut.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Replaces `path` by what `fill` writes, with exactly the permissions `mode`. It is durable when
/// this returns. The writer is buffered. At most one process may replace a path at a time; the
/// data directory's lock sees to that.
///
/// # Errors
/// The first failure, that of `fill` included. The old file is then still there, unless only the
/// directory could not be synced; the temporary one is gone.
pub fn replace(
    path: &Path,
    mode: u32,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = temporary(path)?;
    remove(&temporary)?;
    let written = write(&temporary, mode, fill).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first failure is the one worth telling; a leftover goes with the next replacement.
        let _ = remove(&temporary);
        return Err(error);
    }
    sync_directory(directory(path))
}

/// Removes what a replacement of `path` left behind when it was cut off.
///
/// # Errors
/// The leftover is there and cannot be removed.
pub fn clean(path: &Path) -> io::Result<()> {
    remove(&temporary(path)?)
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some file systems cannot sync a directory and say so this way.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

fn write(
    temporary: &Path,
    mode: u32,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // `create_new` never follows a link that somebody put there.
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary)?;
    // The mode of an open is narrowed by the umask; this one is not.
    file.set_permissions(Permissions::from_mode(mode))?;
    let mut writer = BufWriter::new(file);
    fill(&mut writer)?;
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A name in the same directory, since a rename does not cross file systems; always the same, so
/// that leftovers cannot pile up.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".tmp");
    Ok(path.with_file_name(hidden))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, mode: u32, text: &str) -> io::Result<()> {
        replace(path, mode, &mut |out| out.write_all(text.as_bytes()))
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn content_and_mode_are_replaced_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        put(&path, 0o644, "one").unwrap();
        put(&path, 0o600, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        put(&path, 0o666, "three").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_failure_leaves_the_old_content_and_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        put(&path, 0o600, "old").unwrap();
        let failed = replace(&path, 0o600, &mut |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_leftover_is_cleaned_and_a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, left) = (dir.path().join("a"), dir.path().join(".a.tmp"));
        File::create(&left).unwrap();
        clean(&path).unwrap();
        clean(&path).unwrap();
        assert!(names(dir.path()).is_empty());
        let victim = dir.path().join("victim");
        put(&victim, 0o600, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, &left).unwrap();
        put(&path, 0o600, "new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(names(dir.path()), ["a", "victim"]);
    }

    #[test]
    fn a_directory_that_is_missing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(put(&dir.path().join("none/a"), 0o600, "x").is_err());
        assert!(put(Path::new("/"), 0o600, "x").is_err());
    }
}
