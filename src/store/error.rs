//! What can go wrong with the store, one kind for each thing that can be done about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_CORRUPTFS, SQLITE_IOERR_SHORT_READ};

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
}

impl StoreError {
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
