//! Reading back: whether a commit whose answer was lost is in the database.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};

use crate::domain::effect::{Commit, Write};
use crate::domain::intent::{Entry, Seq};
use crate::domain::names::Uid;
use crate::domain::record::Record;

use super::Marks;
use super::database::{Meta, meta, quiesce_text};
use super::journal::Journal;
use super::rows;

/// What the database holds if a group of commits is in it.
#[derive(Debug, Default)]
pub struct Expected<'a> {
    rows: BTreeMap<&'a Uid, ExpectedRow<'a>>,
    /// `None`: the entry is gone.
    entries: BTreeMap<Seq, Option<&'a Entry>>,
    metas: Vec<(Meta, String)>,
}

/// What a row has become, the changes within one group taken together.
#[derive(Clone, Copy, Debug)]
enum ExpectedRow<'a> {
    /// It is this one.
    Inserted(&'a Record),
    /// It is this one, unless it is gone or newer: then an update changed nothing.
    Updated(&'a Record),
    /// It is gone.
    Deleted,
}

impl<'a> Expected<'a> {
    /// What `group` and `marks` leave behind.
    pub fn of(group: &'a [Commit], marks: Marks) -> Self {
        let mut all = Self { metas: marks.list(), ..Self::default() };
        for write in group.iter().flat_map(|commit| &commit.writes) {
            all.add(write);
        }
        all
    }

    fn add(&mut self, write: &'a Write) {
        match write {
            Write::Insert(record) => {
                self.rows.insert(&record.uid, ExpectedRow::Inserted(record));
            }
            Write::Update(record) => {
                let before = self.rows.get(&record.uid).copied();
                self.rows.insert(&record.uid, after_update(before, record));
            }
            Write::Delete(uid) => {
                self.rows.insert(uid, ExpectedRow::Deleted);
            }
            Write::Intend(entry) | Write::Claim(entry) => {
                self.entries.insert(entry.seq, Some(entry));
            }
            Write::Settle(seq) | Write::DropEntry(seq) => {
                self.entries.insert(*seq, None);
            }
            Write::MarkWhole => self.metas.push((Meta::Whole, "1".to_owned())),
            Write::Quiesce(quiesce) => {
                // Of several in one group the last one stands.
                self.metas.retain(|(key, _)| *key != Meta::Quiesce);
                self.metas.push((Meta::Quiesce, quiesce_text(quiesce.as_ref())));
            }
            Write::KnowEngine(id) => self.metas.push((Meta::Engine, id.to_string())),
        }
    }

    /// Whether all of it is there.
    pub fn is_there(&self, connection: &Connection, journal: &Journal) -> rusqlite::Result<bool> {
        for (uid, row) in &self.rows {
            if !row.is_there(connection, uid)? {
                return Ok(false);
            }
        }
        for (seq, entry) in &self.entries {
            let is_there = match entry {
                Some(entry) => journal.is_written(connection, entry)?,
                None => !journal.has(connection, *seq)?,
            };
            if !is_there {
                return Ok(false);
            }
        }
        for (key, value) in &self.metas {
            if meta(connection, *key)?.as_ref() != Some(value) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn after_update<'a>(before: Option<ExpectedRow<'a>>, record: &'a Record) -> ExpectedRow<'a> {
    match before {
        None => ExpectedRow::Updated(record),
        Some(ExpectedRow::Inserted(old)) if old.generation <= record.generation => {
            ExpectedRow::Inserted(record)
        }
        Some(ExpectedRow::Updated(old)) if old.generation <= record.generation => {
            ExpectedRow::Updated(record)
        }
        Some(other) => other,
    }
}

impl ExpectedRow<'_> {
    fn is_there(self, connection: &Connection, uid: &Uid) -> rusqlite::Result<bool> {
        let sql = "SELECT generation, sum FROM workloads WHERE uid = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let found = connection.query_row(sql, [uid.as_str()], row).optional()?;
        Ok(match (self, found) {
            (Self::Deleted | Self::Updated(_), None) => true,
            (Self::Deleted, Some(_)) | (Self::Inserted(_), None) => false,
            (Self::Inserted(record), Some((_, sum))) => is_sum_of(&sum, record),
            (Self::Updated(record), Some((generation, sum))) => {
                let is_newer = u64::try_from(generation).is_ok_and(|n| n > record.generation);
                is_newer || is_sum_of(&sum, record)
            }
        })
    }
}

fn is_sum_of(sum: &str, record: &Record) -> bool {
    rows::encode(record).is_ok_and(|row| row.sum == sum)
}
