//! The store in memory: what it keeps outlives the agent, and what it demands of a commit is what
//! `docs/recovery.md` says of the real one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bargee::domain::effect::{Commit, Write};
use bargee::domain::intent::{Entry, Intent, Seq};
use bargee::domain::names::{EngineId, InstanceName, Uid};
use bargee::domain::quiesce::Quiesce;
use bargee::domain::record::Record;

use super::acts::{Failing, Writing};

/// What is durable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    pub rows: BTreeMap<Uid, Arc<Record>>,
    pub entries: BTreeMap<Seq, Entry>,
    /// The highest number that an entry ever had.
    pub last_seq: u64,
    pub whole: bool,
    pub quiesce: Option<Quiesce>,
    pub engine: Option<EngineId>,
}

/// The store, and what is wrong with it.
#[derive(Debug)]
pub struct Store {
    pub kept: Kept,
    /// The process that writes.
    token: String,
    /// What a commit of unknown outcome made, and nobody knows of.
    doubts: Doubts,
    pub fails: Failing,
    /// It writes nothing before this.
    pub stalled_until: u64,
    /// How one of the next commits goes, after so many.
    pub fate: Option<(u8, Writing)>,
    /// What a commit asked for that the store does not do.
    pub breach: Option<String>,
}

#[derive(Debug, Default)]
struct Doubts {
    inserted: BTreeSet<Uid>,
    intended: BTreeSet<Seq>,
    updated: BTreeSet<Uid>,
}

impl Store {
    /// Whole and empty.
    pub fn new() -> Self {
        Self {
            kept: Kept { whole: true, ..Kept::default() },
            token: String::new(),
            doubts: Doubts::default(),
            fails: Failing::Nothing,
            stalled_until: 0,
            fate: None,
            breach: None,
        }
    }

    /// Another process opens it: what is there holds.
    pub fn open(&mut self, token: &str) {
        token.clone_into(&mut self.token);
        self.doubts = Doubts::default();
    }

    /// All that waits is one transaction; if that fails, each is one.
    pub fn commit(&mut self, group: &[Commit]) -> Vec<Result<(), String>> {
        match self.next_fate() {
            Some(Writing::Unknown) => {
                if self.transact(group).is_ok() {
                    self.doubts.note(group);
                }
                group.iter().map(|_| Err("the outcome is not known".to_owned())).collect()
            }
            Some(Writing::Fails) => group.iter().map(|_| Err("a mishap".to_owned())).collect(),
            None => match self.transact(group) {
                Ok(()) => group.iter().map(|_| Ok(())).collect(),
                Err(_) => {
                    group.iter().map(|one| self.transact(std::slice::from_ref(one))).collect()
                }
            },
        }
    }

    fn next_fate(&mut self) -> Option<Writing> {
        let (after, fate) = self.fate?;
        self.fate = after.checked_sub(1).map(|after| (after, fate));
        (after == 0).then_some(fate)
    }

    fn transact(&mut self, group: &[Commit]) -> Result<(), String> {
        let cannot = |commit: &Commit| match self.fails {
            Failing::Nothing => false,
            Failing::Everything => true,
            Failing::Rows => !commit.declares,
        };
        if group.iter().any(cannot) {
            return Err("disk full".to_owned());
        }
        let before = self.kept.clone();
        self.undo_doubts();
        for write in group.iter().flat_map(|commit| &commit.writes) {
            if let Err(problem) = self.apply(write) {
                self.kept = before;
                self.breach.get_or_insert(format!("{problem}: {write:?}"));
                return Err(problem.to_owned());
            }
        }
        self.doubts.settle(group);
        Ok(())
    }

    /// Takes back what nobody knows of.
    fn undo_doubts(&mut self) {
        for uid in &self.doubts.inserted {
            self.kept.rows.remove(uid);
        }
        for seq in &self.doubts.intended {
            self.kept.entries.remove(seq);
        }
    }

    fn apply(&mut self, write: &Write) -> Result<(), &'static str> {
        let kept = &mut self.kept;
        match write {
            Write::Insert(record) => {
                if kept.rows.contains_key(&record.uid) {
                    return Err("the row is there already");
                }
                kept.rows.insert(record.uid.clone(), record.clone());
            }
            Write::Update(record) => {
                let doubtful = self.doubts.updated.contains(&record.uid);
                let row = kept.rows.get_mut(&record.uid);
                if let Some(row) = row.filter(|r| doubtful || r.generation <= record.generation) {
                    *row = record.clone();
                }
            }
            Write::Delete(uid) => drop(kept.rows.remove(uid)),
            Write::MarkWhole => kept.whole = true,
            Write::Quiesce(quiesce) => kept.quiesce.clone_from(quiesce),
            Write::KnowEngine(id) => kept.engine = Some(id.clone()),
            Write::Intend(entry) => {
                if entry.seq.0 <= kept.last_seq {
                    return Err("the number was used before");
                }
                if entry.token != self.token {
                    return Err("an entry of somebody else's is written");
                }
                kept.last_seq = entry.seq.0;
                kept.entries.insert(entry.seq, entry.clone());
            }
            Write::Claim(entry) => return self.claim(entry),
            Write::Settle(seq) => return self.settle(*seq),
            Write::DropEntry(seq) => drop(kept.entries.remove(seq)),
        }
        Ok(())
    }

    fn claim(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let Some(there) = self.kept.entries.get_mut(&entry.seq) else {
            // Settled by a commit of unknown outcome, or dropped by an operator: as good.
            return Ok(());
        };
        if entry.token != self.token {
            return Err("an entry is claimed for somebody else");
        }
        let intent = there.intent.clone();
        *there = Entry { intent, at_ms: there.at_ms, ..entry.clone() };
        Ok(())
    }

    fn settle(&mut self, seq: Seq) -> Result<(), &'static str> {
        let Some(there) = self.kept.entries.get(&seq) else { return Ok(()) };
        if there.token != self.token {
            return Err("the entry is somebody else's");
        }
        self.kept.entries.remove(&seq);
        Ok(())
    }

    /// A row tells of this instance.
    pub fn is_known(&self, name: &str) -> bool {
        self.kept.rows.values().any(|row| {
            let previous = row.previous.as_ref().map(|previous| &previous.instance);
            let mut known = row.current.iter().chain(&row.next).chain(previous);
            known.any(|instance| instance.name.as_str() == name)
        })
    }

    /// There is an entry that lets the engine be asked to create this instance.
    pub fn intends_create(&self, name: &str) -> bool {
        self.kept.entries.values().any(|entry| match &entry.intent {
            Intent::Create { instance, .. } => instance.as_str() == name,
            _ => false,
        })
    }

    /// There is an entry that lets this instance be removed: that of its create does, too, since
    /// its replay is the removal.
    pub fn intends_removal(&self, name: &str) -> bool {
        let is = |instance: &InstanceName| instance.as_str() == name;
        self.kept.entries.values().any(|entry| match &entry.intent {
            Intent::Replace { old, new, .. } => is(old) || is(new),
            other => other.instance().is_some_and(is),
        })
    }
}

impl Doubts {
    fn note(&mut self, group: &[Commit]) {
        for write in group.iter().flat_map(|commit| &commit.writes) {
            match write {
                Write::Insert(record) => drop(self.inserted.insert(record.uid.clone())),
                Write::Update(record) => drop(self.updated.insert(record.uid.clone())),
                Write::Intend(entry) => drop(self.intended.insert(entry.seq)),
                _ => {}
            }
        }
    }

    fn settle(&mut self, group: &[Commit]) {
        self.inserted.clear();
        self.intended.clear();
        for write in group.iter().flat_map(|commit| &commit.writes) {
            if let Write::Update(record) = write {
                self.updated.remove(&record.uid);
            }
        }
    }
}
