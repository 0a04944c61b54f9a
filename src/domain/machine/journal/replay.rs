//! Replay: what an earlier process left in flight is brought to an end before changes are accepted.
//! All entries are replayed side by side; one that takes too long holds nothing but its own
//! workload.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Machine;
use crate::domain::effect::Level;
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::lifecycle::{Slot, Workload};
use crate::domain::names::{ContainerId, InstanceName, SpecHash, Uid};
use crate::domain::observed::Seen;
use crate::domain::record::Instance;
use crate::domain::time::{Span, Tick};
use crate::limits;

/// How far the replay is.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// Entries there were at the start that could be read.
    found: usize,
    /// Those of them that hold up changes still.
    left: BTreeSet<Seq>,
    /// Those that are there still.
    was_found: BTreeSet<Seq>,
    /// When a look at the instance of an entry was first sent, and 32 s after it.
    begun: BTreeMap<Seq, Tick>,
    deadlines: BTreeSet<(Tick, Seq)>,
    /// Changes are accepted.
    open: bool,
    /// From then on an engine that is away holds nothing up any more.
    engine_by: Option<Tick>,
    /// When changes are accepted at the latest.
    open_by: Tick,
}

impl Replay {
    /// The entry is settled, failed, or only waits for its second look.
    pub(super) fn waive(&mut self, seq: Seq) {
        self.left.remove(&seq);
        if let Some(at) = self.begun.remove(&seq) {
            self.deadlines.remove(&(at, seq));
        }
    }

    /// An entry is gone.
    pub(super) fn end(&mut self, seq: Seq) {
        self.waive(seq);
        self.was_found.remove(&seq);
    }

    /// The first step for it was sent.
    fn begin(&mut self, seq: Seq, by: Tick) {
        if self.left.contains(&seq) && !self.begun.contains_key(&seq) {
            self.begun.insert(seq, by);
            self.deadlines.insert((by, seq));
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Tick> {
        if self.open {
            return None;
        }
        let entry = self.deadlines.first().map(|(at, _)| *at);
        [entry, self.engine_by, Some(self.open_by)].into_iter().flatten().min()
    }
}

impl Machine {
    /// Changes are accepted: the replay has ended, or took too long.
    pub(in super::super) fn is_open(&self) -> bool {
        self.journal.replay.open
    }

    /// Entries replayed and entries found, while changes are not accepted yet.
    pub(in super::super) fn recovering(&self) -> Option<(usize, usize)> {
        let replay = &self.journal.replay;
        (!replay.open).then(|| (replay.found - replay.left.len(), replay.found))
    }

    /// Takes in what an earlier process left, in order. Called once, before anything else happens.
    pub(in super::super) fn take_entries(&mut self, entries: Vec<Entry>) {
        self.journal.replay.engine_by = Some(self.later(limits::REPLAY_ENTRY_MS));
        self.journal.replay.open_by = self.later(limits::REPLAY_MS);
        let mut seqs = Vec::new();
        for mut entry in entries {
            let seq = entry.seq;
            if let Intent::Unreadable { kind, .. } = &entry.intent {
                let text = format!(
                    "journal entry {} ({kind}) cannot be read and is kept: {}",
                    seq.0, entry.error
                );
                self.log(Level::Warn, text);
                self.show_entry(entry);
                continue;
            }
            entry.token.clone_from(&self.journal.token);
            entry.tries = entry.tries.saturating_add(1);
            entry.error.clear();
            seqs.push(seq);
            self.journal.replay.left.insert(seq);
            self.journal.replay.was_found.insert(seq);
            let intent = entry.intent.clone();
            self.show_entry(entry);
            let instance = intent.instance().cloned();
            let before = instance.and_then(|name| self.journal.by_instance.insert(name, seq));
            if let Some(before) = before {
                // A commit of unknown outcome left it: the newer one takes its place.
                self.journal.replay.waive(before);
                self.journal.retry_at = Some(self.now.tick);
                self.owe(before);
            }
            self.replay(&intent);
        }
        self.journal.replay.found = seqs.len();
        self.journal.unclaimed.extend(&seqs);
        self.claim(&seqs);
        self.check_replay();
    }

    /// Has the instance that the entry names removed, unless the row says that it is the workload's
    /// own: then there is nothing to do but to settle.
    fn replay(&mut self, intent: &Intent) {
        let (Some(uid), Some(instance)) = (intent.uid(), intent.instance()) else { return };
        let Some(w) = self.workloads.get_mut(uid) else {
            let late = matches!(intent, Intent::Create { .. });
            return self.set_loose(instance.clone(), container_of(intent).cloned(), late);
        };
        match intent {
            Intent::Create { .. } => {
                let next = w.record.next.as_ref().filter(|next| next.name == *instance);
                if next.is_some_and(|next| next.container.is_none()) {
                    w.cut.push(instance.clone());
                    w.discard_slot(Slot::Next);
                } else if w.owns(instance) {
                    w.settled.push(instance.clone());
                } else {
                    w.cut.push(instance.clone());
                    w.send_off(instance);
                }
            }
            Intent::Replace { old, new, .. }
                if w.record.current.as_ref().is_some_and(|c| c.name == *old) =>
            {
                // The old one is in place, whatever came of the new one: that one goes.
                w.settled.push(old.clone());
                w.send_off(new);
            }
            Intent::Remove { .. } | Intent::Replace { .. } if w.owns(instance) => {
                w.settled.push(instance.clone());
            }
            Intent::Remove { .. } | Intent::Replace { .. } => {
                w.send_off(instance);
            }
            Intent::Unreadable { .. } => {}
        }
        self.mark(uid);
    }

    /// A step for an instance was sent: if it is one that is replayed, its time runs from now on.
    pub(in super::super) fn begin_replay(&mut self, instance: &InstanceName) {
        if self.is_open() {
            return;
        }
        let by = self.later(limits::REPLAY_ENTRY_MS);
        if let Some(&seq) = self.journal.by_instance.get(instance) {
            self.journal.replay.begin(seq, by);
        }
    }

    /// Changes are accepted once every entry was settled, failed, or only waits for its second
    /// look; after 60 s in any case.
    pub(super) fn check_replay(&mut self) {
        if self.journal.replay.open {
            return;
        }
        if self.holds_still() {
            return self.put_off_replay();
        }
        let now = self.now.tick;
        while let Some(&(at, seq)) = self.journal.replay.deadlines.first() {
            if at > now {
                break;
            }
            self.fail_replay(seq, "not settled within 32 s");
        }
        let waited = self.journal.replay.engine_by.take_if(|at| *at <= now).is_some();
        if waited && !self.engine_is_ready() {
            let left = std::mem::take(&mut self.journal.replay.left);
            if !left.is_empty() {
                let text = format!("{} of the journal wait for the engine", entries(left.len()));
                self.log(Level::Warn, text);
            }
        }
        if self.journal.replay.left.is_empty() || self.journal.replay.open_by <= now {
            self.open();
        }
    }

    /// While reconciling is held nothing is looked for or removed, and nothing is made that what is
    /// left could be in the way of: its end need not be waited for.
    fn put_off_replay(&mut self) {
        self.journal.replay.open = true;
        let left = std::mem::take(&mut self.journal.replay.left).len();
        if left > 0 {
            let text = format!("{} of the journal wait until reconciling goes on", entries(left));
            self.log(Level::Info, text);
        }
    }

    fn open(&mut self) {
        let replay = &mut self.journal.replay;
        replay.open = true;
        let (found, ended) = (replay.found, replay.found - replay.was_found.len());
        if ended < found {
            let text = format!(
                "{} of the journal are settled, {} go on beside everything else",
                entries(ended),
                found - ended
            );
            self.log(Level::Info, text);
        } else if found > 0 {
            self.log(Level::Info, format!("the journal is replayed: {}", entries(found)));
        }
    }

    fn fail_replay(&mut self, seq: Seq, why: &str) {
        self.journal.replay.waive(seq);
        let Some(entry) = self.journal.entries.get(&seq) else { return };
        let Some(instance) = entry.intent.instance().cloned() else { return };
        self.fail_entry(&instance, why);
    }

    /// Names of which the first look found nothing are looked up once more, by themselves.
    pub(super) fn take_late(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        for name in std::mem::take(&mut w.late) {
            self.wait_for_late(name);
        }
    }

    /// An engine may still make the container of this name. That holds nothing up.
    pub(super) fn wait_for_late(&mut self, name: InstanceName) {
        let Some(&seq) = self.journal.by_instance.get(&name) else { return };
        self.journal.replay.waive(seq);
        let at = self.now.tick + Span(limits::LATE_CREATE_MS);
        self.set_loose_at(name, None, false, at);
    }
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn container_of(intent: &Intent) -> Option<&ContainerId> {
    match intent {
        Intent::Remove { container, .. } | Intent::Replace { container, .. } => container.as_ref(),
        Intent::Create { .. } | Intent::Unreadable { .. } => None,
    }
}

impl Workload {
    /// The instance stands for the workload, is being made to, or may do so again.
    pub(super) fn owns(&self, instance: &InstanceName) -> bool {
        let own = |i: &Instance| i.name == *instance;
        let previous = self.record.previous.as_ref().map(|previous| &previous.instance);
        self.record.current.iter().chain(&self.record.next).chain(previous).any(own)
    }

    /// Puts `instance` among those that go, unless it is there or is the workload's own. It is
    /// looked up by its name, not by an id that nothing else vouches for: so its labels have to say
    /// whose it is.
    fn send_off(&mut self, instance: &InstanceName) {
        if self.owns(instance) || self.record.discards.iter().any(|i| i.name == *instance) {
            return;
        }
        let instance = Instance {
            name: instance.clone(),
            container: None,
            generation: 0,
            rebuild: 0,
            spec_hash: SpecHash::new(""),
            run: None,
            proved: false,
        };
        self.discard(instance, Seen::Unknown);
    }
}
