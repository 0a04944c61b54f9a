//! A file whose space is given up when the disk is full, so that what is in flight can still be
//! noted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::limits::{STORE_RESERVE_BYTES, STORE_RESERVE_LOOK_MS};
use crate::os::{atomic_file, space};

/// The reserve of a store.
#[derive(Debug)]
pub struct Reserve {
    file: PathBuf,
    is_kept: bool,
    was_given_up: bool,
    /// Boot clock in milliseconds of the next try to make it.
    next_try_ms: u64,
}

impl Reserve {
    /// The reserve in `file` as it is now. One that was cut short counts as missing.
    pub fn look(file: &Path) -> Self {
        let is_kept = fs::metadata(file).is_ok_and(|found| found.len() == STORE_RESERVE_BYTES);
        Self { file: file.to_owned(), is_kept, was_given_up: false, next_try_ms: 0 }
    }

    /// Whether it is missing though nobody gave it up.
    pub fn is_missing(&self) -> bool {
        !self.is_kept && !self.was_given_up
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Makes it.
    ///
    /// # Errors
    /// It is not there: the disk is full or failing, or the reserve would take the last space.
    pub fn make(&mut self) -> io::Result<()> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        // Others on this disk must not run out of space while it is tried.
        if space::free_bytes(directory)? < 2 * STORE_RESERVE_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        atomic_file::replace(&self.file, 0o600, &mut fill)?;
        self.is_kept = true;
        Ok(())
    }

    /// Frees its space; false if there is none to free.
    pub fn give_up(&mut self) -> bool {
        let is_freed = std::mem::take(&mut self.is_kept) && fs::remove_file(&self.file).is_ok();
        self.was_given_up |= is_freed;
        is_freed
    }

    /// What to tell when it was given up.
    pub fn farewell(&self) -> String {
        let file = self.file.display();
        format!(
            "the disk is full: {file} was given up, so that what is in flight can still be noted; \
             free some space"
        )
    }

    /// Makes it anew if it is missing and the last try is long enough ago; whether it was made.
    /// `now_ms` is the boot clock.
    pub fn keep(&mut self, now_ms: u64) -> bool {
        if self.is_kept || now_ms < self.next_try_ms {
            return false;
        }
        self.next_try_ms = now_ms.saturating_add(STORE_RESERVE_LOOK_MS);
        self.make().is_ok()
    }
}

/// Bytes that no file system can store in less space: flash is often compressed.
fn fill(out: &mut dyn io::Write) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..STORE_RESERVE_BYTES / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.write_all(&state.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn it_is_made_of_real_bytes_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::look(&dir.path().join("reserve"));
        assert!(reserve.is_missing() && !reserve.give_up());
        reserve.make().unwrap();
        let found = fs::metadata(reserve.file()).unwrap();
        assert_eq!(found.len(), STORE_RESERVE_BYTES);
        assert!(found.blocks() * 512 >= STORE_RESERVE_BYTES);
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        assert!(!Reserve::look(reserve.file()).is_missing());
    }

    #[test]
    fn it_is_given_up_once_and_made_again_at_most_once_a_minute() {
        let dir = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::look(&dir.path().join("reserve"));
        assert!(reserve.keep(5));
        assert!(reserve.give_up() && !reserve.give_up());
        assert!(!reserve.file().exists());
        assert!(!reserve.keep(4 + STORE_RESERVE_LOOK_MS));
        assert!(reserve.keep(5 + STORE_RESERVE_LOOK_MS));
    }

    #[test]
    fn one_that_was_cut_short_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::look(&dir.path().join("reserve"));
        reserve.make().unwrap();
        let file = fs::OpenOptions::new().write(true).open(reserve.file()).unwrap();
        file.set_len(STORE_RESERVE_BYTES - 1).unwrap();
        assert!(Reserve::look(reserve.file()).is_missing());
    }
}
