//! The connection to the file: its settings and the statements on its tables.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Statement, ffi, params};

use crate::domain::effect::Write;
use crate::domain::intent::Seq;
use crate::domain::names::Uid;
use crate::domain::quiesce::Quiesce;
use crate::domain::record::Record;
use crate::limits::{
    DAMAGED_ROWS_KEPT, STORE_BUSY_MS, STORE_CACHE_KIB, STORE_CHECKPOINT_PAGES, STORE_LOG_BYTES,
};

use super::checksum::Checksum;
use super::doubt::Doubts;
use super::error::EntryProblem;
use super::journal::Journal;
use super::rows::{self, Encoded};

/// A value of the table `meta`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meta {
    /// The random id of the store.
    Id,
    /// `1` once the store is whole.
    Whole,
    /// Counts changes of the declarations, so that database and `workloads.json` can tell which
    /// of them is newer.
    Revision,
    /// The schema version, as in the header.
    Schema,
    /// The highest number that a journal entry ever had.
    LastSeq,
    /// Reconciling is held; empty: it is not any more.
    Quiesce,
    /// The engine that the containers are on.
    Engine,
}

impl Meta {
    fn key(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Whole => "whole",
            Self::Revision => "revision",
            Self::Schema => "schema",
            Self::LastSeq => "lastSeq",
            Self::Quiesce => "quiesce",
            Self::Engine => "engine",
        }
    }
}

/// Opens the file. One that is missing is an error: a blank database would hide that it is gone.
pub fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_millis(STORE_BUSY_MS))?;
    connection.pragma_update(None, "cache_size", -STORE_CACHE_KIB)?;
    // Finds a damaged page when it is read, before it is written back.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Writes nothing where the file is in this mode already.
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update_and_check(None, "journal_size_limit", STORE_LOG_BYTES, |_| Ok(()))?;
    let pages = STORE_CHECKPOINT_PAGES;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", pages, |_| Ok(()))?;
    Ok(connection)
}

/// Copies the log into the database, durably, and cuts it.
pub fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| match row.get(0)? {
        0 => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)),
    })
}

/// A number of the file's header.
pub fn header_number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// The first thing that SQLite finds wrong with the file; `None`: nothing.
pub fn integrity_problem(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    // It is told in one line: in the status and in the log.
    Ok((found != "ok").then(|| found.replace('\n', ": ")))
}

/// Whether the file has no table at all, as a file whose making was cut off.
pub fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// A value of `meta`; `None` if it is missing or its checksum fails.
pub fn meta(connection: &Connection, meta: Meta) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value, sum FROM meta WHERE key = ?1";
    let found = connection
        .query_row(sql, [meta.key()], |row| Ok((lossy(row.get_ref(0)?), lossy(row.get_ref(1)?))))
        .optional()?;
    let good = |(value, sum): &(String, String)| *sum == meta_sum(meta, value);
    Ok(found.filter(good).map(|(value, _)| value))
}

/// Sets a value of `meta`.
pub fn put_meta(connection: &Connection, meta: Meta, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (key, value, sum) VALUES (?1, ?2, ?3)
               ON CONFLICT (key) DO UPDATE SET value = ?2, sum = ?3";
    connection.execute(sql, params![meta.key(), value, meta_sum(meta, value)])?;
    Ok(())
}

/// As it stands in `meta`.
pub fn quiesce_text(quiesce: Option<&Quiesce>) -> String {
    quiesce.map(Quiesce::to_text).unwrap_or_default()
}

fn meta_sum(meta: Meta, value: &str) -> String {
    Checksum::of(&[meta.key().as_bytes(), value.as_bytes()])
}

/// A row as it stands in the file, believed only once its checksum was compared.
#[derive(Debug)]
pub struct RawRow {
    /// The rowid.
    pub id: i64,
    /// Identity of the workload.
    pub uid: String,
    /// Its generation; `None`: not a number that can be one.
    pub generation: Option<u64>,
    /// The rest of it.
    pub body: String,
    /// The checksum that was stored.
    pub sum: String,
}

/// Hands every row of `workloads` to `each`.
pub fn scan(connection: &Connection, each: &mut dyn FnMut(RawRow)) -> rusqlite::Result<()> {
    let sql = "SELECT id, uid, generation, body, sum FROM workloads ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        each(raw(row)?);
    }
    Ok(())
}

/// Takes any type for any column: a flipped byte may change it, and then the checksum tells.
fn raw(row: &Row<'_>) -> rusqlite::Result<RawRow> {
    let generation = match row.get_ref(2)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    Ok(RawRow {
        id: row.get(0)?,
        uid: lossy(row.get_ref(1)?),
        generation,
        body: lossy(row.get_ref(3)?),
        sum: lossy(row.get_ref(4)?),
    })
}

/// Any value as text.
pub fn lossy(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
    }
}

/// Text that could not be read as a workload, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The rowid it has in `workloads`; `None`: it comes from `workloads.json`.
    pub row: Option<i64>,
    /// The uid as far as it can be told.
    pub uid: String,
    /// The text.
    pub body: String,
    /// Why it was not believed.
    pub reason: String,
}

/// Moves damaged text out of `workloads` into `damaged_rows`, where only the newest are kept.
pub fn park(connection: &Connection, damaged: &Damaged, wall_ms: u64) -> rusqlite::Result<()> {
    let Damaged { row, uid, body, reason } = damaged;
    connection.execute("DELETE FROM workloads WHERE id = ?1", [row])?;
    let sql = "INSERT INTO damaged_rows (uid, body, reason, found_at_ms) VALUES (?1, ?2, ?3, ?4)";
    let wall_ms = i64::try_from(wall_ms).unwrap_or(i64::MAX);
    connection.execute(sql, params![uid, body, reason, wall_ms])?;
    let sql = "DELETE FROM damaged_rows
               WHERE id <= (SELECT max(id) FROM damaged_rows) - ?1";
    let kept = i64::try_from(DAMAGED_ROWS_KEPT).unwrap_or(i64::MAX);
    connection.execute(sql, [kept])?;
    Ok(())
}

/// Why a change failed.
#[derive(Debug)]
pub enum WriteError {
    /// SQLite's answer.
    Sqlite(rusqlite::Error),
    /// The row is there already.
    Exists(Uid),
    /// The record cannot be written as a row.
    Row(Uid, String),
    /// The entry of the journal is not as the change needs it.
    Entry(Seq, EntryProblem),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Carries out changes within one transaction. Each kind of statement is prepared once for all of
/// them, and only if it is needed.
#[derive(Debug)]
pub struct Writer<'c> {
    connection: &'c Connection,
    journal: &'c Journal,
    insert: Option<Statement<'c>>,
    update: Option<Statement<'c>>,
    doubts: Option<&'c Doubts>,
}

impl<'c> Writer<'c> {
    /// Writes through `connection`, whose transaction the caller holds.
    pub fn new(connection: &'c Connection, journal: &'c Journal) -> Self {
        Self { connection, journal, insert: None, update: None, doubts: None }
    }

    /// The same, and takes back first what is in doubt.
    pub fn settling(
        connection: &'c Connection,
        journal: &'c Journal,
        doubts: &'c Doubts,
    ) -> Result<Self, WriteError> {
        let mut writer = Self { doubts: Some(doubts), ..Self::new(connection, journal) };
        doubts.undo(&mut writer)?;
        Ok(writer)
    }

    /// Carries out one change.
    pub fn write(&mut self, write: &Write) -> Result<(), WriteError> {
        match write {
            Write::Insert(record) => self.insert(record),
            Write::Update(record) => self.update(record),
            Write::Delete(uid) => self.delete(uid),
            Write::MarkWhole => Ok(put_meta(self.connection, Meta::Whole, "1")?),
            Write::Quiesce(quiesce) => {
                Ok(put_meta(self.connection, Meta::Quiesce, &quiesce_text(quiesce.as_ref()))?)
            }
            Write::KnowEngine(id) => Ok(put_meta(self.connection, Meta::Engine, id.as_str())?),
            Write::Intend(entry) => self.journal.intend(self.connection, entry),
            Write::Claim(entry) => self.journal.claim(self.connection, entry),
            Write::Settle(seq) => self.journal.settle(self.connection, *seq),
            Write::DropEntry(seq) => self.journal.drop_entry(self.connection, *seq),
        }
    }

    /// Inserts the row of a new workload.
    pub fn insert(&mut self, record: &Record) -> Result<(), WriteError> {
        let row = encode(record)?;
        let sql = "INSERT INTO workloads (uid, generation, body, sum) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (uid) DO NOTHING";
        let statement = prepared(&mut self.insert, self.connection, sql)?;
        let uid = record.uid.as_str();
        match statement.execute(params![uid, row.generation, row.body, row.sum])? {
            0 => Err(WriteError::Exists(record.uid.clone())),
            _ => Ok(()),
        }
    }

    /// Replaces a row, unless it is gone or has a newer generation.
    fn update(&mut self, record: &Record) -> Result<(), WriteError> {
        let row = encode(record)?;
        let sql = "UPDATE workloads SET generation = ?2, body = ?3, sum = ?4
                   WHERE uid = ?1 AND (generation <= ?2 OR ?5)";
        let in_doubt = self.doubts.is_some_and(|doubts| doubts.is_about(&record.uid));
        let statement = prepared(&mut self.update, self.connection, sql)?;
        let uid = record.uid.as_str();
        statement.execute(params![uid, row.generation, row.body, row.sum, in_doubt])?;
        Ok(())
    }

    /// Deletes a row; one that is gone is as good.
    pub fn delete(&self, uid: &Uid) -> Result<(), WriteError> {
        self.connection.execute("DELETE FROM workloads WHERE uid = ?1", [uid.as_str()])?;
        Ok(())
    }

    /// Inserts or replaces a row, whatever was there: for repairs.
    pub fn put(&mut self, record: &Record) -> Result<(), WriteError> {
        self.delete(&record.uid)?;
        self.insert(record)
    }
}

fn encode(record: &Record) -> Result<Encoded, WriteError> {
    rows::encode(record).map_err(|message| WriteError::Row(record.uid.clone(), message))
}

fn prepared<'a, 'c>(
    slot: &'a mut Option<Statement<'c>>,
    connection: &'c Connection,
    sql: &str,
) -> rusqlite::Result<&'a mut Statement<'c>> {
    match slot {
        Some(statement) => Ok(statement),
        None => Ok(slot.insert(connection.prepare(sql)?)),
    }
}
