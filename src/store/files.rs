//! The files of a store: where they are, what stands beside the database, and how a damaged one is
//! set aside.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::limits::DAMAGED_FILES_KEPT;
use crate::os::atomic_file;

use super::error::StoreError;
use super::identity::RandomId;
use super::mirror::{self, Found};

/// What SQLite keeps beside a database; it belongs to that one and to no other.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Where the files of a store are.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
    /// The database.
    pub database: PathBuf,
    /// The random id of the store.
    pub id: PathBuf,
    /// The declarations.
    pub mirror: PathBuf,
    /// Space that is given up when the disk is full.
    pub reserve: PathBuf,
}

impl Files {
    /// The files in `directory`, which is made for its owner alone if it is missing. What cut-off
    /// replacements left behind is removed.
    pub fn new(directory: &Path) -> Result<Self, StoreError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| StoreError::file("make directory", directory, source))?;
        let files = Self {
            directory: directory.to_owned(),
            database: directory.join("bargee.db"),
            id: directory.join("store-id"),
            mirror: directory.join("workloads.json"),
            reserve: directory.join("reserve"),
        };
        for file in [&files.id, &files.mirror, &files.reserve] {
            atomic_file::clean(file)
                .map_err(|source| StoreError::file("remove the leftover of", file, source))?;
        }
        Ok(files)
    }

    /// Makes an empty database that only its owner can read: environment variables are in it.
    /// SQLite gives its companions the same permissions.
    pub fn make_database(&self) -> Result<(), StoreError> {
        let file = &self.database;
        let made =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(file);
        made.map(drop).map_err(|source| StoreError::file("make", file, source))
    }

    /// Whether a write-ahead log with something in it stands beside the database.
    pub fn has_log(&self) -> Result<bool, StoreError> {
        let log = with_suffix(&self.database, "-wal");
        Ok(length(&log)?.is_some_and(|length| length > 0))
    }

    /// Writes the random id beside the database.
    pub fn write_id(&self, id: &RandomId) -> io::Result<()> {
        atomic_file::replace(&self.id, 0o600, &mut |out| writeln!(out, "{}", id.as_str()))
    }

    /// Sets the database and its companions aside; the name it has now, unless it was missing. The
    /// companions go last: without its log a database might pass for an older one.
    pub fn set_database_aside(&self, wall_ms: u64) -> Result<Option<String>, StoreError> {
        let name = self.set_aside(&self.database, &COMPANIONS, wall_ms);
        name.map_err(|source| StoreError::file("set aside", &self.database, source))
    }

    /// Sets the file of declarations aside; the name it has now, unless it was missing.
    pub fn set_mirror_aside(&self, wall_ms: u64) -> Result<Option<String>, StoreError> {
        let name = self.set_aside(&self.mirror, &[], wall_ms);
        name.map_err(|source| StoreError::file("set aside", &self.mirror, source))
    }

    fn set_aside(
        &self,
        file: &Path,
        companions: &[&str],
        wall_ms: u64,
    ) -> io::Result<Option<String>> {
        let base = file.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!("{base}.damaged-");
        let stamp = stamp(wall_ms);
        let name = (1_u32..).map(|n| format!("{prefix}{stamp}-{n}")).find(|name| {
            let free = |suffix: &&str| !self.directory.join(format!("{name}{suffix}")).exists();
            free(&"") && companions.iter().all(free)
        });
        let name = name.ok_or_else(|| io::Error::other("there is no free name"))?;
        let aside = self.directory.join(&name);
        let is_there = rename(file, &aside)?;
        for suffix in companions {
            rename(&with_suffix(file, suffix), &with_suffix(&aside, suffix))?;
        }
        self.forget_oldest(&prefix, companions)?;
        atomic_file::sync_directory(&self.directory)?;
        Ok(is_there.then_some(name))
    }

    /// Keeps a device whose disk damages the store at every start from filling up.
    fn forget_oldest(&self, prefix: &str, companions: &[&str]) -> io::Result<()> {
        let mut kept: Vec<String> = fs::read_dir(&self.directory)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(prefix))
            .filter(|name| !companions.iter().any(|suffix| name.ends_with(suffix)))
            .collect();
        // The stamp is of fixed width, so this is by time, except within one second.
        kept.sort();
        let surplus = kept.len().saturating_sub(DAMAGED_FILES_KEPT);
        for name in &kept[..surplus] {
            let file = self.directory.join(name);
            remove(&file)?;
            for suffix in companions {
                remove(&with_suffix(&file, suffix))?;
            }
        }
        Ok(())
    }
}

/// What stands beside the database.
#[derive(Debug)]
pub struct Beside {
    /// The random id in `store-id`.
    pub id: FoundId,
    /// `workloads.json`.
    pub mirror: Found,
}

/// `store-id` as it was found.
#[derive(Debug)]
pub enum FoundId {
    /// It is not there.
    Missing,
    /// There is no id in it.
    Damaged,
    /// It is good.
    Good(RandomId),
}

impl Beside {
    /// Reads both files.
    pub fn read(files: &Files) -> Result<Self, StoreError> {
        let failed = |file: &Path| {
            let file = file.to_owned();
            move |source| StoreError::file("read", &file, source)
        };
        Ok(Self {
            id: read_id(&files.id).map_err(failed(&files.id))?,
            mirror: mirror::read(&files.mirror).map_err(failed(&files.mirror))?,
        })
    }

    /// Whether there was a store here before.
    pub fn is_any(&self) -> bool {
        !matches!((&self.id, &self.mirror), (FoundId::Missing, Found::Missing))
    }

    /// The id that a database which lost its own goes on with.
    pub fn random_id(&self) -> Option<&RandomId> {
        match (&self.id, &self.mirror) {
            (FoundId::Good(id), _) => Some(id),
            (_, Found::Good(mirror)) => Some(&mirror.id),
            _ => None,
        }
    }
}

fn read_id(file: &Path) -> io::Result<FoundId> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundId::Missing),
        other => other?,
    };
    let mut bytes = Vec::new();
    opened.take(256).read_to_end(&mut bytes)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    Ok(RandomId::parse(text.trim_end()).map_or(FoundId::Damaged, FoundId::Good))
}

/// Length of a file in bytes; `None`: it is not there.
pub fn length(file: &Path) -> Result<Option<u64>, StoreError> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::file("look at", file, error)),
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}

fn rename(from: &Path, to: &Path) -> io::Result<bool> {
    was_there(fs::rename(from, to))
}

fn remove(file: &Path) -> io::Result<bool> {
    was_there(fs::remove_file(file))
}

fn was_there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// UTC as `20240229T235959Z`, from unix milliseconds.
fn stamp(wall_ms: u64) -> String {
    let seconds = wall_ms / 1_000;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let (year, month, day) = date(seconds / 86_400);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day from days since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |y: u64| y.is_multiple_of(4) && !y.is_multiple_of(100) || y.is_multiple_of(400);
    // 400 years have 146 097 days, so that no clock however wrong takes long.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_utc() {
        assert_eq!(stamp(0), "19700101T000000Z");
        assert_eq!(stamp(951_868_799_999), "20000229T235959Z");
        assert_eq!(stamp(1_709_251_199_000), "20240229T235959Z");
        assert_eq!(stamp(1_709_251_200_000), "20240301T000000Z");
        assert_eq!(stamp(4_102_444_799_000), "20991231T235959Z");
        assert!(stamp(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn set_aside_takes_the_companions_along_and_keeps_only_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path()).unwrap();
        for second in 0..=DAMAGED_FILES_KEPT as u64 {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                File::create(with_suffix(&files.database, suffix)).unwrap();
            }
            let name = files.set_database_aside(second * 1_000).unwrap().unwrap();
            assert_eq!(name, format!("bargee.db.damaged-19700101T00000{second}Z-1"));
        }
        assert!(!files.database.exists());
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, DAMAGED_FILES_KEPT * 4);
        assert!(!dir.path().join("bargee.db.damaged-19700101T000000Z-1").exists());
    }

    #[test]
    fn a_name_is_never_used_twice() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path()).unwrap();
        File::create(&files.mirror).unwrap();
        let first = files.set_mirror_aside(0).unwrap().unwrap();
        File::create(&files.mirror).unwrap();
        let second = files.set_mirror_aside(0).unwrap().unwrap();
        assert_eq!(first, "workloads.json.damaged-19700101T000000Z-1");
        assert_eq!(second, "workloads.json.damaged-19700101T000000Z-2");
        // A log that outlived its database is set aside too.
        File::create(with_suffix(&files.database, "-wal")).unwrap();
        assert_eq!(files.set_database_aside(0).unwrap(), None);
        assert!(dir.path().join("bargee.db.damaged-19700101T000000Z-1-wal").exists());
    }
}
