//! What can go wrong with the store, one kind for each thing that can be done about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHORT_READ};

use crate::domain::intent::Seq;
use crate::domain::names::Uid;

/// A failed open or commit. Damage is not among them: it is repaired.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite could not do something with the file: the disk is full, read-only or failing.
    #[error("cannot {call} {}: {source}", file.display())]
    Sqlite {
        /// What was attempted, as a verb.
        call: &'static str,
        /// The database.
        file: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
    /// The system could not do something with a file beside the database.
    #[error("cannot {call} {}: {source}", file.display())]
    File {
        /// What was attempted, as a verb.
        call: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A newer bargee wrote the database. It is left as it is.
    #[error(
        "{} has schema version {found}, and this bargee knows versions up to {known}: install the \
         bargee that wrote it, or a newer one",
        file.display()
    )]
    TooNew {
        /// The database.
        file: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The row to insert is there already.
    #[error("workload {0} is already in the store")]
    Exists(Uid),
    /// A record cannot be written down as a row.
    #[error("workload {uid} cannot be stored: {message}")]
    Row {
        /// The workload.
        uid: Uid,
        /// Why.
        message: String,
    },
    /// An entry of the journal is not as the commit needs it; nothing of the commit was written.
    #[error("journal entry {} {problem}", seq.0)]
    Entry {
        /// Its number.
        seq: Seq,
        /// What is wrong.
        problem: EntryProblem,
    },
    /// The disk failed while the commit became durable, and whether it did cannot be read. Its
    /// entries of the journal must be taken as still there, those it writes and those it settles.
    #[error("it is not known whether a change is in {}: {cause}", file.display())]
    Unknown {
        /// The database.
        file: PathBuf,
        /// What failed, and why it could not be read back.
        cause: String,
    },
}

/// What is wrong with an entry of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EntryProblem {
    /// Its number was used before.
    #[error("is already there")]
    Exists,
    /// It does not carry the token of this process.
    #[error("belongs to another process")]
    Foreign,
    /// It cannot be read, and so is never rewritten.
    #[error("cannot be read and is kept as it is")]
    Unreadable,
}

impl StoreError {
    /// Whether the disk has no space left.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Sqlite { source, .. } => source.sqlite_error().is_some_and(|cause| {
                // The second is about the index of the log, which must be made to open the file.
                cause.code == ErrorCode::DiskFull || cause.extended_code == SQLITE_IOERR_SHMSIZE
            }),
            Self::File { source, .. } => {
                use io::ErrorKind::{QuotaExceeded, StorageFull};
                matches!(source.kind(), StorageFull | QuotaExceeded)
            }
            _ => false,
        }
    }

    /// SQLite's `source` from `call` on `file`.
    pub(super) fn sqlite(call: &'static str, file: &Path, source: rusqlite::Error) -> Self {
        Self::Sqlite { call, file: file.to_owned(), source }
    }

    /// The system's `source` from `call` on `file`.
    pub(super) fn file(call: &'static str, file: &Path, source: io::Error) -> Self {
        Self::File { call, file: file.to_owned(), source }
    }
}

/// Whether `error`, met while a database is looked at, is about what is in the file. A disk that is
/// full, read-only or failing and a file that may not be opened are not: the data may be whole.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let Some(cause) = error.sqlite_error() else {
        // Not SQLite's word but a value of another type or a row that is missing.
        return !matches!(error, rusqlite::Error::InvalidPath(_));
    };
    match cause.code {
        // `Unknown` is a table or column that is missing: the schema is not ours any more.
        ErrorCode::DatabaseCorrupt
        | ErrorCode::NotADatabase
        | ErrorCode::TooBig
        | ErrorCode::Unknown => true,
        ErrorCode::SystemIoFailure => {
            matches!(cause.extended_code, SQLITE_IOERR_SHORT_READ | SQLITE_IOERR_CORRUPTFS)
        }
        _ => false,
    }
}
