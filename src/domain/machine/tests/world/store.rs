//! The made-up store: what it keeps outlives the agent, and what it demands of a commit is what
//! `docs/recovery.md` says of the real one.

use std::collections::BTreeMap;

use crate::domain::effect::{Commit, Write};
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::{EngineId, InstanceName, Uid};
use crate::domain::quiesce::Quiesce;
use crate::domain::record::Record;

/// What is durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    pub rows: BTreeMap<Uid, Record>,
    pub entries: BTreeMap<Seq, Entry>,
    /// The highest number that an entry ever had.
    pub last_seq: u64,
    pub whole: bool,
    pub quiesce: Option<Quiesce>,
    pub engine: Option<EngineId>,
}

/// The store, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Store {
    /// What is durable.
    pub kept: Kept,
    /// The process that writes.
    pub token: String,
    /// Transactions that reached it.
    pub commits: usize,
    /// It fails.
    pub fails: bool,
    /// It fails, but for declarations.
    pub rows_fail: bool,
    /// A test means to ask for what the store does not do; else that is a failure of the machine.
    pub may_break: bool,
}

impl Store {
    /// A store that is whole and empty.
    pub fn new() -> Self {
        let kept = Kept { whole: true, ..Kept::default() };
        Self { kept, ..Self::default() }
    }

    /// What is durable, and nothing is wrong with it any more.
    pub fn recovered(self) -> Self {
        Self { kept: self.kept, ..Self::default() }
    }

    /// Another process opens it.
    pub fn reopen(&mut self, token: &str) {
        token.clone_into(&mut self.token);
    }

    /// One transaction: all of it or nothing.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), String> {
        self.commits += 1;
        if self.fails || (self.rows_fail && !commit.declares) {
            return Err("disk full".to_owned());
        }
        let mut undo = Undo { last_seq: self.kept.last_seq, ..Undo::default() };
        for write in &commit.writes {
            let gone = |seq: &Seq| !self.kept.entries.contains_key(seq);
            if self.may_break && matches!(write, Write::Settle(seq) if gone(seq)) {
                // An operator dropped it: that is as good.
                continue;
            }
            undo.note(&self.kept, write);
            if let Err(problem) = apply(&mut self.kept, write, &self.token) {
                undo.undo(&mut self.kept);
                let text = format!("{problem}: {write:?} in {commit:?}, token {}", self.token);
                assert!(self.may_break, "the store's contract is broken: {text}");
                return Err(problem.to_owned());
            }
        }
        Ok(())
    }

    /// There is an entry that lets the engine be asked to create this instance.
    pub fn intends_create(&self, name: &str) -> bool {
        self.kept.entries.values().any(|entry| match &entry.intent {
            Intent::Create { instance, .. } => instance.as_str() == name,
            _ => false,
        })
    }

    /// There is an entry that lets this instance be removed. That of its create does, too: its
    /// replay is the removal.
    pub fn intends_removal(&self, name: &str) -> bool {
        let mut intents = self.kept.entries.values().map(|entry| &entry.intent);
        intents.any(|intent| named(intent).into_iter().flatten().any(|i| i.as_str() == name))
    }
}

/// What a transaction changes, as it was before.
#[derive(Default)]
struct Undo {
    rows: Vec<(Uid, Option<Record>)>,
    entries: Vec<(Seq, Option<Entry>)>,
    last_seq: u64,
}

impl Undo {
    fn note(&mut self, kept: &Kept, write: &Write) {
        match write {
            Write::Insert(record) | Write::Update(record) => self.note_row(kept, &record.uid),
            Write::Delete(uid) => self.note_row(kept, uid),
            Write::Intend(entry) | Write::Claim(entry) => self.note_entry(kept, entry.seq),
            Write::Settle(seq) | Write::DropEntry(seq) => self.note_entry(kept, *seq),
            Write::MarkWhole | Write::Quiesce(_) | Write::KnowEngine(_) => {}
        }
    }

    fn note_row(&mut self, kept: &Kept, uid: &Uid) {
        self.rows.push((uid.clone(), kept.rows.get(uid).cloned()));
    }

    fn note_entry(&mut self, kept: &Kept, seq: Seq) {
        self.entries.push((seq, kept.entries.get(&seq).cloned()));
    }

    fn undo(self, kept: &mut Kept) {
        for (uid, row) in self.rows.into_iter().rev() {
            match row {
                Some(row) => drop(kept.rows.insert(uid, row)),
                None => drop(kept.rows.remove(&uid)),
            }
        }
        for (seq, entry) in self.entries.into_iter().rev() {
            match entry {
                Some(entry) => drop(kept.entries.insert(seq, entry)),
                None => drop(kept.entries.remove(&seq)),
            }
        }
        kept.last_seq = self.last_seq;
    }
}

/// Every instance that an intent may end. Of a replacement that is the old one, or the new one
/// where the row still has the old.
fn named(intent: &Intent) -> [Option<&InstanceName>; 2] {
    match intent {
        Intent::Replace { old, new, .. } => [Some(old), Some(new)],
        other => [other.instance(), None],
    }
}

fn apply(kept: &mut Kept, write: &Write, token: &str) -> Result<(), &'static str> {
    match write {
        Write::Insert(record) => {
            if kept.rows.contains_key(&record.uid) {
                return Err("the row is there already");
            }
            kept.rows.insert(record.uid.clone(), (**record).clone());
        }
        Write::Update(record) => {
            let row = kept.rows.get_mut(&record.uid);
            if let Some(row) = row.filter(|row| row.generation <= record.generation) {
                *row = (**record).clone();
            }
        }
        Write::Delete(uid) => {
            kept.rows.remove(uid);
        }
        Write::MarkWhole => kept.whole = true,
        Write::Quiesce(quiesce) => kept.quiesce.clone_from(quiesce),
        Write::KnowEngine(id) => kept.engine = Some(id.clone()),
        Write::Intend(entry) => {
            if entry.seq.0 <= kept.last_seq {
                return Err("the number was used before");
            }
            if entry.token != token {
                return Err("an entry of somebody else's is written");
            }
            kept.last_seq = entry.seq.0;
            kept.entries.insert(entry.seq, entry.clone());
        }
        Write::Claim(entry) => {
            let there = kept.entries.get_mut(&entry.seq).ok_or("the entry is gone")?;
            if matches!(there.intent, Intent::Unreadable { .. }) {
                return Err("the entry cannot be read");
            }
            if entry.token != token {
                return Err("an entry is claimed for somebody else");
            }
            let intent = there.intent.clone();
            *there = Entry { intent, at_ms: there.at_ms, ..entry.clone() };
        }
        Write::Settle(seq) => {
            let there = kept.entries.get(seq).ok_or("the entry is gone")?;
            if there.token != token {
                return Err("the entry is somebody else's");
            }
            kept.entries.remove(seq);
        }
        Write::DropEntry(seq) => {
            kept.entries.remove(seq);
        }
    }
    Ok(())
}
