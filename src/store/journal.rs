//! The journal: entries under `/wal/{address}/{seq}`, written before a risky step and deleted once
//! it is settled.
//!
//! What cannot be read is handed on as it is written and never rewritten: a newer bargee may know
//! it, and a person may.

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::domain::effect::{Commit, Write};
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::{ContainerId, InstanceName, Uid};
use crate::limits::ENTRY_TEXT_BYTES;

use super::checksum::Checksum;
use super::database::{WriteError, lossy};
use super::error::EntryProblem;

/// Digits of a number in a key: as many as the largest one has.
const SEQ_DIGITS: usize = 20;
/// The order in which [`raw`] reads.
const COLUMNS: &str = "key, type, token, at_ms, tries, error, body, sum";

/// What the entries of this process are known by.
#[derive(Debug)]
pub struct Journal {
    /// What all keys of this address begin with.
    prefix: String,
    /// Which process writes and settles.
    token: String,
}

impl Journal {
    /// The journal of `address`, written by the process of `token`.
    pub fn new(address: &str, token: String) -> Self {
        Self { prefix: format!("/wal/{address}/"), token }
    }

    /// What the entries of this process carry.
    pub fn token(&self) -> &str {
        &self.token
    }

    fn key(&self, seq: Seq) -> String {
        format!("{}{:0width$}", self.prefix, seq.0, width = SEQ_DIGITS)
    }

    /// Inserts an entry.
    pub fn intend(&self, connection: &Connection, entry: &Entry) -> Result<(), WriteError> {
        let unreadable = WriteError::Entry(entry.seq, EntryProblem::Unreadable);
        let body = body(&entry.intent).ok_or(unreadable)?;
        let row = RawEntry {
            key: Some(self.key(entry.seq)),
            kind: entry.intent.kind().to_owned(),
            token: entry.token.clone(),
            at_ms: Some(i64::try_from(entry.at_ms).unwrap_or(i64::MAX)),
            tries: Some(entry.tries),
            error: entry.error.clone(),
            body,
            sum: String::new(),
        };
        let sql = "INSERT INTO journal (key, type, token, at_ms, tries, error, body, sum)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (key) DO NOTHING";
        let sum = row.expected_sum();
        let RawEntry { key, kind, token, at_ms, tries, error, body, .. } = row;
        let values = params![key, kind, token, at_ms, tries, error, body, sum];
        match connection.execute(sql, values)? {
            0 => Err(WriteError::Entry(entry.seq, EntryProblem::Exists)),
            _ => Ok(()),
        }
    }

    /// Replaces token, tries and error of an entry. Its text stays as it is, fields that this
    /// version does not know included. One that is gone is nobody's.
    pub fn claim(&self, connection: &Connection, entry: &Entry) -> Result<(), WriteError> {
        let Some(mut row) = self.find(connection, entry.seq)? else { return Ok(()) };
        // A new checksum would make damaged text look good.
        if row.intent().is_err() {
            return Err(WriteError::Entry(entry.seq, EntryProblem::Unreadable));
        }
        row.token.clone_from(&entry.token);
        row.tries = Some(entry.tries);
        row.error.clone_from(&entry.error);
        let sum = row.expected_sum();
        let sql = "UPDATE journal SET token = ?2, tries = ?3, error = ?4, sum = ?5 WHERE key = ?1";
        connection.execute(sql, params![row.key, row.token, row.tries, row.error, sum])?;
        Ok(())
    }

    /// Deletes an entry of this process. One that is gone is as good: a commit of unknown outcome
    /// may have taken it along, and an operator may have dropped it.
    pub fn settle(&self, connection: &Connection, seq: Seq) -> Result<(), WriteError> {
        let sql = "DELETE FROM journal WHERE key = ?1 AND token = ?2";
        if connection.execute(sql, params![self.key(seq), self.token])? > 0 {
            return Ok(());
        }
        match self.find(connection, seq)? {
            Some(_) => Err(WriteError::Entry(seq, EntryProblem::Foreign)),
            None => Ok(()),
        }
    }

    /// Deletes an entry whoever wrote it; one that is gone is as good.
    pub fn drop_entry(&self, connection: &Connection, seq: Seq) -> Result<(), WriteError> {
        connection.execute("DELETE FROM journal WHERE key = ?1", [self.key(seq)])?;
        Ok(())
    }

    /// Whether there is an entry of this number.
    pub fn has(&self, connection: &Connection, seq: Seq) -> rusqlite::Result<bool> {
        Ok(self.find(connection, seq)?.is_some())
    }

    /// Whether the entry in the store is the one that [`Journal::intend`] or [`Journal::claim`]
    /// leaves behind.
    pub fn is_written(&self, connection: &Connection, entry: &Entry) -> rusqlite::Result<bool> {
        let found = self.find(connection, entry.seq)?;
        Ok(found.is_some_and(|row| {
            row.intent().as_ref() == Ok(&entry.intent)
                && (row.token == entry.token && row.tries == Some(entry.tries))
                && row.error == entry.error
        }))
    }

    fn find(&self, connection: &Connection, seq: Seq) -> rusqlite::Result<Option<RawEntry>> {
        let sql = format!("SELECT {COLUMNS} FROM journal WHERE key = ?1");
        connection.query_row(&sql, [self.key(seq)], raw).optional()
    }

    /// Reads all entries.
    pub fn read(&self, connection: &Connection) -> rusqlite::Result<Found> {
        let mut all = Found::default();
        let sql = format!("SELECT {COLUMNS} FROM journal ORDER BY key");
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let row = raw(row)?;
            match row.key.as_deref().and_then(split) {
                Some((prefix, seq)) if prefix == self.prefix => all.entries.push(row.entry(seq)),
                Some(_) => all.of_others += 1,
                None => all.nameless += 1,
            }
        }
        Ok(all)
    }
}

/// Prefix and number of a key.
fn split(key: &str) -> Option<(&str, Seq)> {
    let (prefix, digits) = key.split_at_checked(key.len().checked_sub(SEQ_DIGITS)?)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let named = prefix.strip_prefix("/wal/")?.strip_suffix('/')?;
    let seq = Seq(digits.parse().ok()?);
    (is_number && !named.is_empty()).then_some((prefix, seq))
}

/// The journal as it was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The entries of this address, by number.
    pub entries: Vec<Entry>,
    /// How many belong to other addresses.
    pub of_others: usize,
    /// How many have a key that tells neither address nor number.
    pub nameless: usize,
}

impl Found {
    /// The highest number that must not be used again. A damaged key may claim one that is never
    /// reached by counting; using up all numbers because of it would be worse.
    pub fn last_seq(&self) -> u64 {
        let reachable = |seq: &u64| *seq < u64::MAX / 2;
        self.entries.iter().map(|entry| entry.seq.0).filter(reachable).max().unwrap_or(0)
    }

    /// What somebody should know, a sentence each.
    pub fn notices(&self) -> Vec<String> {
        let of_others = (self.of_others > 0).then(|| {
            format!(
                "the journal holds {} entries of another address than this node's name; they are \
                 left alone: was the node renamed?",
                self.of_others
            )
        });
        let nameless = (self.nameless > 0).then(|| {
            format!(
                "the journal holds {} entries whose key is damaged; they are kept in the table \
                 journal, and nothing is done for them",
                self.nameless
            )
        });
        of_others.into_iter().chain(nameless).collect()
    }
}

/// The highest number among the entries that `group` writes.
pub fn highest(group: &[Commit]) -> Option<u64> {
    let intended = |write: &Write| match write {
        Write::Intend(entry) => Some(entry.seq.0),
        _ => None,
    };
    group.iter().flat_map(|commit| &commit.writes).filter_map(intended).max()
}

/// Whether `commit` is about the journal, so that the reserve is given up for it.
pub fn is_in(commit: &Commit) -> bool {
    commit.writes.iter().any(|write| {
        matches!(write, Write::Intend(_) | Write::Claim(_) | Write::Settle(_) | Write::DropEntry(_))
    })
}

/// A row as it stands in the file, believed only once its checksum was compared.
#[derive(Debug)]
struct RawEntry {
    /// `None`: it is no text.
    key: Option<String>,
    kind: String,
    token: String,
    /// `None`: not a number that can be one; likewise `tries`.
    at_ms: Option<i64>,
    tries: Option<u32>,
    error: String,
    body: String,
    sum: String,
}

/// Takes any type for any column: a flipped byte may change it, and then the checksum tells.
fn raw(row: &Row<'_>) -> rusqlite::Result<RawEntry> {
    let text = |column: usize| row.get_ref(column).map(lossy);
    let number = |column: usize| match row.get_ref(column)? {
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Ok::<_, rusqlite::Error>(None),
    };
    let key = match row.get_ref(0)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    };
    Ok(RawEntry {
        key,
        kind: text(1)?,
        token: text(2)?,
        at_ms: number(3)?,
        tries: number(4)?.and_then(|number| u32::try_from(number).ok()),
        error: text(5)?,
        body: text(6)?,
        sum: text(7)?,
    })
}

impl RawEntry {
    fn expected_sum(&self) -> String {
        Checksum::of(&[
            self.key.as_deref().unwrap_or_default().as_bytes(),
            self.kind.as_bytes(),
            self.token.as_bytes(),
            &self.at_ms.unwrap_or(-1).to_be_bytes(),
            &self.tries.unwrap_or(u32::MAX).to_be_bytes(),
            self.error.as_bytes(),
            self.body.as_bytes(),
        ])
    }

    /// What was about to be done, or why that is not known.
    fn intent(&self) -> Result<Intent, String> {
        if self.at_ms.is_none() || self.tries.is_none() || self.sum != self.expected_sum() {
            return Err("its checksum fails".to_owned());
        }
        match self.kind.as_str() {
            "create-workload" => read::<CreateBody<'_>>(&self.body)?.intent(),
            "replace-workload" => read::<ReplaceBody<'_>>(&self.body)?.intent(),
            _ => Err("its type is not known".to_owned()),
        }
    }

    fn entry(self, seq: Seq) -> Entry {
        let at_ms = self.at_ms.and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
        let tries = self.tries.unwrap_or(0);
        match self.intent() {
            Ok(intent) => Entry { seq, intent, token: self.token, at_ms, tries, error: self.error },
            Err(error) => {
                let intent = Intent::Unreadable { kind: cut(self.kind), text: cut(self.body) };
                Entry { seq, intent, token: cut(self.token), at_ms, tries, error }
            }
        }
    }
}

/// The beginning of `text`, as much as is worth showing.
fn cut(mut text: String) -> String {
    let mut end = ENTRY_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

type Text<'a> = Cow<'a, str>;

fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, String> {
    serde_json::from_str(body).map_err(|error| format!("its text cannot be read: {error}"))
}

/// The text of an intent; `None`: it was never read.
fn body(intent: &Intent) -> Option<String> {
    let text = match intent {
        Intent::Create { uid, instance } => {
            serde_json::to_string(&CreateBody::of(uid, "create", instance, None))
        }
        Intent::Remove { uid, instance, container } => {
            serde_json::to_string(&CreateBody::of(uid, "remove", instance, container.as_ref()))
        }
        Intent::Replace { uid, old, container, new } => serde_json::to_string(&ReplaceBody {
            uid: uid.as_str().into(),
            old: old.as_str().into(),
            container: container.as_ref().map(|id| id.as_str().into()),
            new: new.as_str().into(),
        }),
        Intent::Unreadable { .. } => return None,
    };
    Some(text.expect("a struct of strings always becomes JSON"))
}

#[derive(Serialize, Deserialize)]
struct CreateBody<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    direction: Text<'a>,
    #[serde(borrow)]
    instance: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    container: Option<Text<'a>>,
}

impl<'a> CreateBody<'a> {
    fn of(
        uid: &'a Uid,
        direction: &'a str,
        instance: &'a InstanceName,
        container: Option<&'a ContainerId>,
    ) -> Self {
        Self {
            uid: uid.as_str().into(),
            direction: direction.into(),
            instance: instance.as_str().into(),
            container: container.map(|id| id.as_str().into()),
        }
    }

    fn intent(self) -> Result<Intent, String> {
        let uid = Uid::new(named("uid", self.uid)?);
        let instance = InstanceName::new(named("instance", self.instance)?);
        match &*self.direction {
            "create" => Ok(Intent::Create { uid, instance }),
            "remove" => Ok(Intent::Remove { uid, instance, container: id(self.container)? }),
            other => Err(format!("its direction {other:?} is not known")),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ReplaceBody<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    old: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    container: Option<Text<'a>>,
    #[serde(borrow)]
    new: Text<'a>,
}

impl ReplaceBody<'_> {
    fn intent(self) -> Result<Intent, String> {
        Ok(Intent::Replace {
            uid: Uid::new(named("uid", self.uid)?),
            old: InstanceName::new(named("old", self.old)?),
            container: id(self.container)?,
            new: InstanceName::new(named("new", self.new)?),
        })
    }
}

/// An engine that is asked for nothing by name may answer for everything.
fn named(field: &str, text: Text<'_>) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("its {field} is empty"));
    }
    Ok(text.into_owned())
}

fn id(text: Option<Text<'_>>) -> Result<Option<ContainerId>, String> {
    text.map(|text| named("container", text).map(ContainerId::new)).transpose()
}
