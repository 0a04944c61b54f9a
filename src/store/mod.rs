//! SQLite: what was declared and what became of it, durable.
//!
//! `bargee.db` is the truth. `store-id` and `workloads.json` stand beside it, so that a damaged
//! database can be built anew: see [`recover`] for what is believed when they do not agree.

use std::path::Path;
use std::slice;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use crate::domain::declared::Declared;
use crate::domain::effect::Commit;
use crate::domain::intent::{Entry, Seq};
use crate::domain::names::{EngineId, StoreId};
use crate::domain::quiesce::Quiesce;
use crate::domain::record::Record;

mod checksum;

mod database;

mod doubt;

pub mod error;

mod files;

mod identity;

mod journal;

mod migrate;

mod mirror;

mod open;

mod readback;

mod recover;

mod reserve;

mod rows;

use database::{Meta, WriteError, Writer, put_meta};
use doubt::Doubts;
use error::StoreError;
use files::Files;
use journal::Journal;
use mirror::Mirror;
use readback::Expected;
use reserve::Reserve;

/// Reads a manifest that was accepted before: what was declared, or why it is not accepted any
/// more.
pub type Parse<'a> = &'a dyn Fn(&str) -> Result<Declared, String>;

/// What a store is opened with.
pub struct Settings<'a> {
    /// Where its files are; made if it is missing. The caller holds its lock.
    pub directory: &'a Path,
    /// What the journal's keys begin with: the node's name.
    pub address: &'a str,
    /// What the entries of this process carry: random, another one at each start.
    pub token: String,
    /// Unix time in milliseconds, for names of files.
    pub wall_ms: u64,
    /// The manifest room.
    pub parse: Parse<'a>,
    /// Fills a buffer with random bytes.
    pub random: &'a mut dyn FnMut(&mut [u8]),
}

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
    /// The engine that the containers are on, as far as is known.
    pub engine: Option<EngineId>,
    /// What was in flight when the last process ended, by number.
    pub entries: Vec<Entry>,
    /// The first number that no entry ever had.
    pub next_seq: Seq,
    /// What the entries of this process carry, as in the settings.
    pub token: String,
    /// Reconciling was held when the last process ended.
    pub quiesce: Option<Quiesce>,
    /// What somebody should know, a sentence each.
    pub notices: Vec<String>,
}

/// Opens a store, or makes it; what is damaged is set aside and built anew.
///
/// # Errors
/// The disk is full, read-only or failing, or a newer bargee wrote the database.
pub fn open(settings: Settings<'_>) -> Result<Opened, StoreError> {
    open::open(settings)
}

/// The open store. Dropping it copies the log into the database.
#[derive(Debug)]
pub struct Store {
    /// `None`: the disk failed, and the next commit opens the file again.
    connection: Option<Connection>,
    files: Files,
    journal: Journal,
    /// The highest number that an entry ever had.
    last_seq: u64,
    reserve: Reserve,
    doubts: Doubts,
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
    /// again. `now_ms` is the boot clock: how often a reserve that was given up is tried again.
    ///
    /// Of a commit that failed nothing was written, unless the error is [`StoreError::Unknown`].
    pub fn commit(&mut self, group: &[Commit], now_ms: u64) -> Vec<Result<(), StoreError>> {
        self.reserve_numbers(group);
        let results = self.commit_group(group);
        if self.is_mirror_due && group.iter().any(|commit| commit.declares) {
            self.write_mirror(self.last_seq);
        }
        if !group.is_empty() && self.reserve.keep(now_ms) {
            let file = self.reserve.file().display();
            self.notices.push(format!("the disk has space again, and {file} was made anew"));
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

    /// Sees to it that a database that is built anew counts on after the numbers in `group`.
    fn reserve_numbers(&mut self, group: &[Commit]) {
        if let Some(seq) = journal::highest(group)
            && self.mirror.runs_out_of_numbers(seq)
        {
            self.write_mirror(seq.max(self.last_seq));
        }
    }

    fn commit_group(&mut self, group: &[Commit]) -> Vec<Result<(), StoreError>> {
        match (self.transact(group), group) {
            (Ok(()), _) => group.iter().map(|_| Ok(())).collect(),
            (Err(error), [commit]) => vec![self.with_reserve(commit, error)],
            // Each that is tried again might be there already.
            (Err(StoreError::Unknown { file, cause }), _) => {
                let same = || StoreError::Unknown { file: file.clone(), cause: cause.clone() };
                group.iter().map(|_| Err(same())).collect()
            }
            (Err(_), _) => group.iter().map(|commit| self.commit_one(commit)).collect(),
        }
    }

    fn commit_one(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let result = self.transact(slice::from_ref(commit));
        result.or_else(|error| self.with_reserve(commit, error))
    }

    /// Tries a commit that failed once more if it is about the journal and the reserve makes room.
    fn with_reserve(&mut self, commit: &Commit, error: StoreError) -> Result<(), StoreError> {
        if !(error.is_full() && journal::is_in(commit) && self.reserve.give_up()) {
            return Err(error);
        }
        self.notices.push(self.reserve.farewell());
        self.transact(slice::from_ref(commit))
    }

    fn transact(&mut self, group: &[Commit]) -> Result<(), StoreError> {
        if group.iter().all(|commit| commit.writes.is_empty()) {
            return Ok(());
        }
        let changes = group.iter().any(|commit| self.mirror.is_changed_by(commit));
        let revision = self.mirror.revision + u64::from(changes);
        let last_seq = journal::highest(group).filter(|seq| *seq > self.last_seq);
        self.write(group, Marks { revision: changes.then_some(revision), last_seq })?;
        for write in group.iter().flat_map(|commit| &commit.writes) {
            self.mirror.apply(write);
        }
        self.mirror.revision = revision;
        self.is_mirror_due |= changes;
        self.last_seq = last_seq.unwrap_or(self.last_seq);
        Ok(())
    }

    fn write(&mut self, group: &[Commit], marks: Marks) -> Result<(), StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => database::connect(&self.files.database)
                .map_err(|source| StoreError::sqlite("open", &self.files.database, source))?,
        };
        match write_group(&mut connection, (&self.journal, &self.doubts), group, marks) {
            Ok(()) => {
                self.doubts.settle(group);
                self.connection = Some(connection);
                Ok(())
            }
            Err(Failure::Before(error)) => {
                self.connection = Some(connection);
                Err(failed("write", &self.files.database, error))
            }
            Err(Failure::Commit(error)) => self.read_back(connection, group, marks, error),
        }
    }

    /// Whether a commit holds that ended in `error`: nobody knows yet.
    fn read_back(
        &mut self,
        connection: Connection,
        group: &[Commit],
        marks: Marks,
        error: rusqlite::Error,
    ) -> Result<(), StoreError> {
        let is_there = self.look_for(connection, &Expected::of(group, marks), &error);
        let file = &self.files.database;
        match is_there {
            Ok(true) => {
                self.doubts.settle(group);
                Ok(())
            }
            Ok(false) => Err(StoreError::sqlite("write", file, error)),
            Err(reading) => {
                self.doubts.note(group);
                let cause = format!("{error}; reading it back: {reading}");
                Err(StoreError::Unknown { file: file.clone(), cause })
            }
        }
    }

    /// Whether what is `expected` is in the database, durably.
    fn look_for(
        &mut self,
        connection: Connection,
        expected: &Expected<'_>,
        error: &rusqlite::Error,
    ) -> rusqlite::Result<bool> {
        let is_unwritten = connection.is_autocommit() && is_before_the_end(error);
        let connection = if is_unwritten {
            connection
        } else {
            // The commit may be in the log, but not in this connection's index of it. Closing
            // copies what is in the index and drops the log; where that fails too, the next
            // connection reads the log as after a power cut.
            drop(connection);
            database::connect(&self.files.database)?
        };
        let connection = self.connection.insert(connection);
        let is_there = expected.is_there(connection, &self.journal)?;
        if is_there && !is_unwritten {
            // What is read may be in memory only, after a sync that failed.
            database::checkpoint(connection)?;
        }
        Ok(is_there)
    }

    /// Replaces the file of declarations. The database has them already, so that a failure is
    /// told and not answered. Entries up to `last_seq` are in use.
    fn write_mirror(&mut self, last_seq: u64) {
        match self.mirror.write(&self.files.mirror, last_seq) {
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
        if let Some(connection) = &self.connection {
            // Nobody could do anything about a failure; the log is read at the next open then.
            let _ = database::checkpoint(connection);
        }
    }
}

/// Numbers that are written along with a group.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// Counts changes of the declarations.
    revision: Option<u64>,
    /// The highest number that an entry ever had.
    last_seq: Option<u64>,
}

impl Marks {
    fn list(self) -> Vec<(Meta, String)> {
        let both = [(Meta::Revision, self.revision), (Meta::LastSeq, self.last_seq)];
        both.into_iter().filter_map(|(key, value)| Some((key, value?.to_string()))).collect()
    }
}

/// Where a transaction failed.
enum Failure {
    /// Nothing was written.
    Before(WriteError),
    /// At its end, where it may have become durable all the same.
    Commit(rusqlite::Error),
}

impl<E: Into<WriteError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Before(error.into())
    }
}

/// Takes back what is in doubt; writes all commits of `group`, and the marks that changed.
fn write_group(
    connection: &mut Connection,
    (journal, doubts): (&Journal, &Doubts),
    group: &[Commit],
    marks: Marks,
) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut writer = Writer::settling(&transaction, journal, doubts)?;
    for write in group.iter().flat_map(|commit| &commit.writes) {
        writer.write(write)?;
    }
    drop(writer);
    for (key, value) in marks.list() {
        put_meta(&transaction, key, &value)?;
    }
    end(transaction).map_err(Failure::Commit)
}

#[cfg(not(test))]
fn end(transaction: rusqlite::Transaction<'_>) -> rusqlite::Result<()> {
    transaction.commit()
}

/// Whether a commit that ended in `error` did not get to the frame that ends it in the log.
fn is_before_the_end(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
    let code = error.sqlite_error_code();
    matches!(code, Some(DiskFull | DatabaseBusy | DatabaseLocked))
}

fn failed(call: &'static str, file: &Path, error: WriteError) -> StoreError {
    match error {
        WriteError::Sqlite(source) => StoreError::sqlite(call, file, source),
        WriteError::Exists(uid) => StoreError::Exists(uid),
        WriteError::Row(uid, message) => StoreError::Row { uid, message },
        WriteError::Entry(seq, problem) => StoreError::Entry { seq, problem },
    }
}

#[cfg(test)]
use tests::fault::end;

#[cfg(test)]
mod tests;
