//! SQLite: what was declared and what became of it, durable.
//!
//! `bargee.db` is the truth. `store-id` and `workloads.json` stand beside it, so that a damaged
//! database can be built anew: see [`recover`] for what is believed when they do not agree.

use std::path::Path;
use std::slice;

use rusqlite::{Connection, TransactionBehavior};

use crate::domain::declared::Declared;
use crate::domain::effect::Commit;
use crate::domain::names::StoreId;
use crate::domain::record::Record;

mod checksum;

mod database;

pub mod error;

mod files;

mod identity;

mod migrate;

mod mirror;

mod open;

mod recover;

mod rows;

use database::{Meta, WriteError, Writer, put_meta};
use error::StoreError;
use files::Files;
use mirror::Mirror;

/// Reads a manifest that was accepted before: what was declared, or why it is not accepted any
/// more.
pub type Parse<'a> = &'a dyn Fn(&str) -> Result<Declared, String>;

/// A store that was opened, and what is in it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// Its records, in the order in which they were accepted.
    pub records: Vec<Record>,
    /// Its identity, for the labels.
    pub store_id: StoreId,
    /// False while the store is new, or lost something, and nobody said since that all containers
    /// were found.
    pub whole: bool,
    /// What somebody should know, a sentence each.
    pub notices: Vec<String>,
}

/// Opens the store in `directory`, or makes it; what is damaged is set aside and built anew.
/// `wall_ms` is the unix time in milliseconds, for names of files; `random` fills a buffer. The
/// caller holds the lock of the directory.
///
/// # Errors
/// The disk is full, read-only or failing, or a newer bargee wrote the database.
pub fn open(
    directory: &Path,
    wall_ms: u64,
    parse: Parse<'_>,
    random: &mut dyn FnMut(&mut [u8]),
) -> Result<Opened, StoreError> {
    open::open(directory, wall_ms, parse, random)
}

/// The open store. Dropping it copies the log into the database.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    files: Files,
    mirror: Mirror,
    /// The file of declarations is older than the mirror.
    is_mirror_due: bool,
    /// The last try to write it failed, which was told once.
    is_mirror_failing: bool,
    notices: Vec<String>,
}

impl Store {
    /// Makes a group of commits durable in one transaction, which is one sync; the result of each.
    /// If the group fails, its commits are tried one by one, so that a bad one takes no other
    /// along. When this returns, the declarations in it are in `workloads.json` too; if that file
    /// cannot be written, they hold all the same, there is a notice, and the next declaration tries
    /// again.
    pub fn commit(&mut self, group: &[Commit]) -> Vec<Result<(), StoreError>> {
        let results = match self.transact(group) {
            Ok(()) => group.iter().map(|_| Ok(())).collect(),
            Err(error) if group.len() == 1 => vec![Err(error)],
            Err(_) => group.iter().map(|commit| self.transact(slice::from_ref(commit))).collect(),
        };
        if self.is_mirror_due && group.iter().any(|commit| commit.declares) {
            self.write_mirror();
        }
        results
    }

    /// Counts declarations over the life of the store.
    pub fn revision(&self) -> u64 {
        self.mirror.revision
    }

    /// Takes what somebody should know since the last call, a sentence each.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn transact(&mut self, group: &[Commit]) -> Result<(), StoreError> {
        if group.iter().all(|commit| commit.writes.is_empty()) {
            return Ok(());
        }
        let changes = group.iter().any(|commit| self.mirror.is_changed_by(commit));
        let revision = self.mirror.revision + u64::from(changes);
        let written = write_group(&mut self.connection, group, changes.then_some(revision));
        written.map_err(|error| failed("write", &self.files.database, error))?;
        for write in group.iter().flat_map(|commit| &commit.writes) {
            self.mirror.apply(write);
        }
        self.mirror.revision = revision;
        self.is_mirror_due |= changes;
        Ok(())
    }

    /// Replaces the file of declarations. The database has them already, so that a failure is
    /// told and not answered.
    fn write_mirror(&mut self) {
        match self.mirror.write(&self.files.mirror) {
            Ok(()) => {
                self.is_mirror_due = false;
                if std::mem::take(&mut self.is_mirror_failing) {
                    let file = self.files.mirror.display();
                    self.notices.push(format!("{file} is written again"));
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_mirror_failing, true) {
                    self.notices.push(format!(
                        "cannot write {}: {error}; what was declared is in the database, and the \
                         next declaration tries again",
                        self.files.mirror.display()
                    ));
                }
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Nobody could do anything about a failure; the log is read at the next open then.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// Writes all commits of `group`, and the revision if it changed.
fn write_group(
    connection: &mut Connection,
    group: &[Commit],
    revision: Option<u64>,
) -> Result<(), WriteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut writer = Writer::new(&transaction);
    for write in group.iter().flat_map(|commit| &commit.writes) {
        writer.write(write)?;
    }
    drop(writer);
    if let Some(revision) = revision {
        put_meta(&transaction, Meta::Revision, &revision.to_string())?;
    }
    Ok(transaction.commit()?)
}

fn failed(call: &'static str, file: &Path, error: WriteError) -> StoreError {
    match error {
        WriteError::Sqlite(source) => StoreError::sqlite(call, file, source),
        WriteError::Exists(uid) => StoreError::Exists(uid),
        WriteError::Row(uid, message) => StoreError::Row { uid, message },
    }
}

#[cfg(test)]
mod tests;
