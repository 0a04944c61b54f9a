//! `workloads.json`: all that was declared, beside the database, so that a damaged one can be
//! built anew. Kept in memory too, sharing the manifests, so that writing it needs no table scan.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::effect::{Commit, Write};
use crate::domain::gather::Gather;
use crate::domain::names::{Source, Uid};
use crate::domain::record::{Desired, Origin, Record};
use crate::limits::{SEQ_BLOCK, STORE_MIRROR_BYTES};
use crate::os::atomic_file;

use super::Parse;
use super::checksum::{Checksum, DIGITS};
use super::identity::RandomId;
use super::rows::{self, OriginRow};

/// What stands between the text that the checksum is over and the checksum.
const BEFORE_SUM: &str = ",\"sum\":\"";
/// What ends the file.
const AFTER_SUM: &str = "\"}\n";

/// All that was declared.
#[derive(Clone, PartialEq, Debug)]
pub struct Mirror {
    /// The store it belongs to.
    pub id: RandomId,
    /// Counts changes of the declarations.
    pub revision: u64,
    /// Numbers of journal entries up to this one may be in use. It is ahead of those that are, so
    /// that the file need not follow each entry.
    pub last_seq: u64,
    /// The declarations.
    pub entries: BTreeMap<Uid, Entry>,
}

/// What was declared of one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The manifest in JSON.
    pub manifest: Arc<str>,
    /// Its generation.
    pub generation: u64,
    /// The state it is wanted in.
    pub desired: Desired,
    /// Who declared it.
    pub source: Source,
    /// The file that declares it.
    pub origin: Option<Origin>,
    /// Unix time in milliseconds at which it was accepted.
    pub created_at_ms: u64,
}

impl Entry {
    /// The declared part of `record`.
    pub fn of(record: &Record) -> Self {
        Self {
            manifest: Arc::clone(&record.declared.manifest),
            generation: record.generation,
            desired: record.desired,
            source: record.source,
            origin: record.origin.clone(),
            created_at_ms: record.created_at_ms,
        }
    }

    /// A record that knows no more than this: its containers are found again by their labels.
    ///
    /// # Errors
    /// The manifest is not accepted any more.
    pub fn record(&self, uid: &Uid, parse: Parse<'_>) -> Result<Record, String> {
        let declared = rows::declared(rows::embedded(&self.manifest)?, parse)?;
        let record = Record::new(uid.clone(), self.source, declared, self.created_at_ms);
        let (generation, desired, origin) = (self.generation, self.desired, self.origin.clone());
        Ok(Record { generation, desired, origin, ..record })
    }
}

impl Mirror {
    /// What `records` declare.
    pub fn of(id: RandomId, revision: u64, records: &[Record]) -> Self {
        let entries = records.iter().map(|r| (r.uid.clone(), Entry::of(r))).gather();
        Self { id, revision, last_seq: 0, entries }
    }

    /// Whether the file should be written again before `last_seq` is used. That is due early, so
    /// that a few failures do no harm.
    pub fn runs_out_of_numbers(&self, last_seq: u64) -> bool {
        self.last_seq < last_seq.saturating_add(SEQ_BLOCK / 2)
    }

    /// Makes room for numbers after `last_seq`.
    fn reserve_numbers(&mut self, last_seq: u64) {
        if self.runs_out_of_numbers(last_seq) {
            self.last_seq = last_seq.saturating_add(SEQ_BLOCK);
        }
    }

    /// Whether `commit` changes what was declared and so must reach the file.
    pub fn is_changed_by(&self, commit: &Commit) -> bool {
        commit.writes.iter().any(|write| match write {
            Write::Insert(_) => commit.declares,
            Write::Update(record) => {
                commit.declares
                    && self.replaceable(record).is_some_and(|old| *old != Entry::of(record))
            }
            // The end of a removal is no declaration, and the file may go on saying `deleted`;
            // but a row that goes without one must not come back from the file.
            Write::Delete(uid) => self
                .entries
                .get(uid)
                .is_some_and(|old| commit.declares || old.desired != Desired::Deleted),
            Write::MarkWhole
            | Write::Quiesce(_)
            | Write::KnowEngine(_)
            | Write::Intend(_)
            | Write::Claim(_)
            | Write::Settle(_)
            | Write::DropEntry(_) => false,
        })
    }

    /// Follows a change that is durable.
    pub fn apply(&mut self, write: &Write) {
        match write {
            Write::Insert(record) => {
                self.entries.insert(record.uid.clone(), Entry::of(record));
            }
            Write::Update(record) => {
                if self.replaceable(record).is_some_and(|old| *old != Entry::of(record)) {
                    self.entries.insert(record.uid.clone(), Entry::of(record));
                }
            }
            Write::Delete(uid) => drop(self.entries.remove(uid)),
            Write::MarkWhole
            | Write::Quiesce(_)
            | Write::KnowEngine(_)
            | Write::Intend(_)
            | Write::Claim(_)
            | Write::Settle(_)
            | Write::DropEntry(_) => {}
        }
    }

    /// The entry that an update to `record` replaces, by the rule of the table.
    fn replaceable(&self, record: &Record) -> Option<&Entry> {
        self.entries.get(&record.uid).filter(|old| old.generation <= record.generation)
    }

    /// Replaces the file; numbers up to `last_seq` and some more are marked as used.
    ///
    /// # Errors
    /// The old file is still there.
    pub fn write(&mut self, file: &Path, last_seq: u64) -> io::Result<()> {
        let before = self.last_seq;
        self.reserve_numbers(last_seq);
        atomic_file::replace(file, 0o600, &mut |out| self.write_to(out))
            .inspect_err(|_| self.last_seq = before)
    }

    /// One line for each workload, and a checksum at the end, so that half a file is noticed.
    fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut out = Summed { out, sum: Checksum::default() };
        let (store, revision, last_seq) = (self.id.as_str(), self.revision, self.last_seq);
        write!(out, "{{\"store\":\"{store}\",\"revision\":{revision},")?;
        write!(out, "\"lastSeq\":{last_seq},\"workloads\":[")?;
        for (number, (uid, entry)) in self.entries.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut out, &Line::of(uid, entry)?)?;
        }
        out.write_all(b"\n]")?;
        let Summed { out, sum } = out;
        write!(out, "{BEFORE_SUM}{}{AFTER_SUM}", sum.digits())
    }

    /// Reads what [`Mirror::write`] wrote.
    ///
    /// # Errors
    /// Why the text is not believed, as the rest of a sentence.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        if !is_intact(text) {
            return Err("has a checksum that fails".to_owned());
        }
        let file: Whole<'_> =
            serde_json::from_slice(text).map_err(|error| format!("cannot be read: {error}"))?;
        let id = RandomId::parse(file.store).ok_or("names no store")?;
        let entries = file.workloads.into_iter().map(Line::entry);
        let entries = entries.collect::<Result<Vec<_>, String>>();
        let entries = entries.map_err(|error| format!("has a workload that is wrong: {error}"))?;
        let entries = entries.into_iter().gather();
        Ok(Self { id, revision: file.revision, last_seq: file.last_seq, entries })
    }
}

/// The file as it was found.
#[derive(Debug)]
pub enum Found {
    /// It is not there.
    Missing,
    /// It is not believed; why, as the rest of a sentence.
    Damaged(String),
    /// It is good.
    Good(Mirror),
}

/// Reads the file.
///
/// # Errors
/// It is there, but the system cannot read it.
pub fn read(file: &Path) -> io::Result<Found> {
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        other => other?,
    };
    let mut text = Vec::new();
    opened.take(STORE_MIRROR_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > STORE_MIRROR_BYTES {
        return Ok(Found::Damaged("is too large".to_owned()));
    }
    Ok(Mirror::parse(&text).map_or_else(Found::Damaged, Found::Good))
}

/// Whether the checksum at the end of `text` is that of all before it.
fn is_intact(text: &[u8]) -> bool {
    let Some((text, digits)) = text
        .strip_suffix(AFTER_SUM.as_bytes())
        .and_then(|text| text.split_at_checked(text.len().checked_sub(DIGITS)?))
    else {
        return false;
    };
    let mut sum = Checksum::default();
    sum.add(text.strip_suffix(BEFORE_SUM.as_bytes()).unwrap_or_default());
    sum.digits().as_bytes() == digits
}

/// Sums up what passes through.
struct Summed<'a> {
    out: &'a mut dyn io::Write,
    sum: Checksum,
}

impl io::Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    store: &'a str,
    revision: u64,
    /// Missing in files of a bargee without a journal.
    #[serde(default)]
    last_seq: u64,
    #[serde(borrow)]
    workloads: Vec<Line<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    uid: &'a str,
    generation: u64,
    desired_state: &'a str,
    source: &'a str,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    origin: Option<OriginRow<'a>>,
    created_at: u64,
    #[serde(borrow)]
    manifest: &'a RawValue,
}

impl<'a> Line<'a> {
    fn of(uid: &'a Uid, entry: &'a Entry) -> io::Result<Self> {
        Ok(Self {
            uid: uid.as_str(),
            generation: entry.generation,
            desired_state: entry.desired.as_str(),
            source: entry.source.as_str(),
            origin: entry.origin.as_ref().map(OriginRow::of),
            created_at: entry.created_at_ms,
            manifest: rows::embedded(&entry.manifest).map_err(io::Error::other)?,
        })
    }

    fn entry(self) -> Result<(Uid, Entry), String> {
        let entry = Entry {
            manifest: self.manifest.get().into(),
            generation: self.generation,
            desired: rows::desired(self.desired_state)?,
            source: rows::source(self.source)?,
            origin: self.origin.map(OriginRow::origin),
            created_at_ms: self.created_at,
        };
        Ok((Uid::new(self.uid), entry))
    }
}
