//! The journal: an entry is durable before the risky step it is about, and is deleted together with
//! the record change that settles it. What an earlier process left is replayed (`replay`): each
//! entry names one instance, which goes unless the row says that it is the workload's own.
//! Instances that belong to no workload are removed by `loose`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Machine;
use super::commits::Purpose;
use crate::domain::effect::{CommitId, Effect, Level, Write};
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::{ContainerId, InstanceName, Uid};
use crate::domain::record::Desired;
use crate::domain::time::Tick;
use crate::limits;

mod asks;

mod loose;

mod replay;

/// What the machine knows of the journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// What the entries of this process carry.
    token: String,
    /// The highest number that was ever used.
    last: u64,
    /// All entries that are durable, or on their way to be.
    entries: BTreeMap<Seq, Arc<Entry>>,
    /// Those of them that failed or cannot be read.
    failing: BTreeSet<Seq>,
    /// The entry about an instance, until it is being settled.
    by_instance: HashMap<InstanceName, Seq>,
    /// What the commits in flight mean for it.
    riders: BTreeMap<CommitId, Rider>,
    /// To be settled with the next commit about the workload: a settlement before that failed.
    owed: BTreeMap<Uid, Vec<Seq>>,
    /// Entries of which the store may have the token of an earlier process, or less than is known.
    unclaimed: BTreeSet<Seq>,
    /// On their way out because an operator says so: nothing is written about them any more.
    dropping: BTreeSet<Seq>,
    /// When what is owed, and is in no row, is tried again.
    retry_at: Option<Tick>,
    replay: replay::Replay,
    loose: loose::Loose,
    /// Containers of this store that no record knows, and since when.
    strays: BTreeMap<ContainerId, Tick>,
}

/// What a commit means for the journal.
#[derive(Debug, Default)]
pub(super) struct Rider {
    intended: Option<Seq>,
    settled: Vec<Seq>,
    claimed: Vec<Seq>,
}

impl Rider {
    /// A commit that settles these.
    pub(super) fn settling(settled: Vec<Seq>) -> Self {
        Self { settled, ..Self::default() }
    }
}

/// What has to be durable before a step leaves.
#[derive(Debug)]
pub(super) enum Ahead {
    /// Nothing: what it changes is seen again.
    Nothing,
    /// The row.
    Row,
    /// The row and an entry that says what is about to be done.
    Intent(Intent),
}

impl Journal {
    pub(super) fn new(token: String, next: Seq) -> Self {
        Self { token, last: next.0.saturating_sub(1), ..Self::default() }
    }

    /// Entries, and how many of them failed or cannot be read.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.failing.len())
    }

    /// Whether there is an entry about this instance that is not being settled.
    pub(super) fn is_about(&self, instance: &InstanceName) -> bool {
        self.by_instance.contains_key(instance)
    }

    /// When the journal wants to be looked at if nothing else happens. `engine`: it answers.
    pub(super) fn next_deadline(&self, engine: bool) -> Option<Tick> {
        let loose = self.loose.next_deadline().filter(|_| engine);
        [self.replay.next_deadline(), loose, self.retry_at].into_iter().flatten().min()
    }

    /// Settles an entry, which has to carry the token of this process for that.
    fn push_settlement(&self, seq: Seq, writes: &mut Vec<Write>) {
        let entry = self.entries.get(&seq).filter(|_| self.unclaimed.contains(&seq));
        writes.extend(entry.map(|entry| Write::Claim((**entry).clone())));
        writes.push(Write::Settle(seq));
    }

    /// The entry is not being settled.
    fn is_open(&self, seq: Seq) -> bool {
        let instance = self.entries.get(&seq).and_then(|entry| entry.intent.instance());
        instance.is_some_and(|instance| self.by_instance.get(instance) == Some(&seq))
    }

    /// Forgets what is known of an entry.
    fn forget(&mut self, seq: Seq) -> Option<Arc<Entry>> {
        let entry = self.entries.remove(&seq)?;
        if let Some(instance) = entry.intent.instance()
            && self.by_instance.get(instance) == Some(&seq)
        {
            self.by_instance.remove(instance);
        }
        self.failing.remove(&seq);
        self.unclaimed.remove(&seq);
        self.replay.end(seq);
        Some(entry)
    }
}

impl Machine {
    // --- writing -------------------------------------------------------------------------------

    /// A new entry; it is shown once it is durable.
    fn intend(&mut self, intent: Intent, writes: &mut Vec<Write>) -> Seq {
        self.journal.last += 1;
        let seq = Seq(self.journal.last);
        if let Some(instance) = intent.instance() {
            self.journal.by_instance.insert(instance.clone(), seq);
        }
        let token = self.journal.token.clone();
        let at_ms = self.now.wall_ms;
        let entry = Entry { seq, intent, token, at_ms, tries: 0, error: String::new() };
        writes.push(Write::Intend(entry.clone()));
        self.journal.entries.insert(seq, Arc::new(entry));
        seq
    }

    /// What is done with for this workload, to be settled with the commit that says so.
    pub(super) fn settlements(&mut self, uid: &Uid, writes: &mut Vec<Write>) -> Vec<Seq> {
        let mut seqs = self.journal.owed.remove(uid).unwrap_or_default();
        if let Some(w) = self.workloads.get_mut(uid) {
            for instance in std::mem::take(&mut w.settled) {
                seqs.extend(self.journal.by_instance.remove(&instance));
            }
        }
        seqs.iter().for_each(|&seq| self.journal.push_settlement(seq, writes));
        seqs
    }

    /// The row of a workload, what is settled by it, and what is about to be done.
    pub(super) fn persist_row(
        &mut self,
        uid: &Uid,
        purpose: Purpose,
        intent: Option<Intent>,
    ) -> Option<CommitId> {
        let w = self.workloads.get_mut(uid)?;
        w.dirty = false;
        let mut writes = vec![Write::Update(Arc::new(w.record.clone()))];
        self.store_state.dirty.remove(uid);
        let settled = self.settlements(uid, &mut writes);
        let intended = intent.map(|intent| self.intend(intent, &mut writes));
        let commit = self.persist(purpose, false, writes);
        self.ride(commit, Rider { intended, settled, ..Rider::default() });
        Some(commit)
    }

    /// Notes what a commit means for the journal.
    pub(super) fn ride(&mut self, commit: CommitId, rider: Rider) {
        self.journal.riders.insert(commit, rider);
    }

    /// Settles what is done with, if no other commit of the workload takes it along: without delay,
    /// because what is in the journal after a crash goes.
    pub(super) fn settle(&mut self, uid: &Uid) {
        self.take_late(uid);
        let writes = self.store_writes();
        let Some(w) = self.workloads.get_mut(uid) else { return };
        w.settled.retain(|name| self.journal.is_about(name));
        // The end of the row is about to take it along.
        let is_ending = w.record.desired == Desired::Deleted && w.step.is_some();
        if w.held || is_ending || w.settled.is_empty() {
            return;
        }
        if !writes {
            // The next write of observations takes it along, if the store writes again.
            w.dirty = true;
            return;
        }
        self.persist_row(uid, Purpose::Settled, None);
    }

    /// A commit ended: what it meant for the journal holds, or does not.
    pub(super) fn on_rider(&mut self, commit: CommitId, durable: bool) {
        let Some(rider) = self.journal.riders.remove(&commit) else { return };
        if durable {
            if let Some(seq) = rider.intended
                && let Some(entry) = self.journal.entries.get(&seq)
            {
                self.out.push(Effect::PublishEntry(seq, Some(entry.clone())));
            }
            for seq in rider.settled {
                self.forget_entry(seq);
            }
            for seq in rider.claimed {
                self.journal.unclaimed.remove(&seq);
            }
            return;
        }
        if let Some(seq) = rider.intended {
            self.journal.forget(seq);
        }
        self.journal.unclaimed.extend(&rider.claimed);
        for &seq in &rider.settled {
            self.owe(seq);
        }
        if !(rider.settled.is_empty() && rider.claimed.is_empty()) {
            self.journal.retry_at = Some(self.later(limits::ENGINE_LOOK_MS));
        }
    }

    /// The entry is settled with the next write of the row; without one, when it is tried again.
    fn owe(&mut self, seq: Seq) {
        let uid = self.journal.entries.get(&seq).and_then(|entry| entry.intent.uid()).cloned();
        let Some(uid) = uid else { return };
        if let Some(w) = self.workloads.get_mut(&uid) {
            w.dirty = true;
            self.store_state.dirty.insert(uid.clone());
        }
        self.journal.owed.entry(uid).or_default().push(seq);
    }

    /// What could not be claimed or settled is tried again; what goes with a row waits for that.
    fn retry_journal(&mut self) {
        if self.journal.retry_at.take_if(|at| *at <= self.now.tick).is_none() {
            return;
        }
        let unclaimed = self.journal.unclaimed.iter().copied();
        let open: Vec<Seq> = unclaimed.filter(|seq| self.journal.is_open(*seq)).collect();
        for seq in open {
            self.claim(&[seq]);
        }
        let owed = self.journal.owed.keys().filter(|uid| !self.workloads.contains_key(*uid));
        for uid in owed.cloned().collect::<Vec<Uid>>() {
            let mut writes = Vec::new();
            let settled = self.settlements(&uid, &mut writes);
            let commit = self.persist(Purpose::Settled, false, writes);
            self.ride(commit, Rider::settling(settled));
        }
    }

    fn forget_entry(&mut self, seq: Seq) {
        if self.journal.forget(seq).is_some() {
            self.out.push(Effect::PublishEntry(seq, None));
        }
    }

    fn show_entry(&mut self, entry: Entry) {
        let entry = Arc::new(entry);
        if !entry.error.is_empty() || matches!(entry.intent, Intent::Unreadable { .. }) {
            self.journal.failing.insert(entry.seq);
        }
        self.journal.entries.insert(entry.seq, entry.clone());
        self.out.push(Effect::PublishEntry(entry.seq, Some(entry)));
    }

    /// What an entry is about could not be done: said once for each cause. It is tried again.
    pub(super) fn fail_entry(&mut self, instance: &InstanceName, cause: &str) {
        let Some(seq) = self.journal.by_instance.get(instance).copied() else { return };
        self.journal.replay.waive(seq);
        let Some(entry) = self.journal.entries.get(&seq).filter(|e| e.error != cause) else {
            return;
        };
        let mut entry = (**entry).clone();
        entry.tries = entry.tries.saturating_add(1);
        cause.clone_into(&mut entry.error);
        let kind = entry.intent.kind();
        let text = format!(
            "journal entry {} ({kind} {instance}) cannot be settled and is tried again: {cause}",
            seq.0
        );
        self.log(Level::Warn, text);
        self.show_entry(entry);
        if self.store_writes() {
            self.claim(&[seq]);
        }
    }

    /// Writes entries as they are now, with the token of this process.
    fn claim(&mut self, seqs: &[Seq]) {
        let Journal { entries, dropping, .. } = &self.journal;
        let seqs = seqs.iter().copied().filter(|seq| !dropping.contains(seq));
        let known = seqs.filter_map(|seq| entries.get(&seq));
        let (claimed, writes): (Vec<Seq>, Vec<Write>) =
            known.map(|entry| (entry.seq, Write::Claim((**entry).clone()))).unzip();
        if !writes.is_empty() {
            let commit = self.persist(Purpose::Settled, false, writes);
            self.ride(commit, Rider { claimed, ..Rider::default() });
        }
    }

    /// Everything of the journal that is due.
    pub(super) fn tend_journal(&mut self) {
        self.retry_journal();
        self.attend_loose();
        self.check_replay();
    }
}
