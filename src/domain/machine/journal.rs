//! The journal: an entry is durable before the risky step it is about, and is deleted together with
//! the record change that settles it. What an earlier process left is replayed: each entry names one
//! instance, which goes unless the row says that it is the workload's own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Machine;
use super::commits::Purpose;
use crate::domain::effect::{Answer, Effect, Level, Op, Refusal, Step, StepId, Write};
use crate::domain::event::{AskId, Outcome};
use crate::domain::fault::Fault;
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::lifecycle::{Slot, Workload};
use crate::domain::names::{ContainerId, InstanceName, SpecHash, Uid};
use crate::domain::observed::{Listed, Seen};
use crate::domain::record::Instance;
use crate::domain::time::{Span, Tick};
use crate::limits;

/// What the machine knows of the journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    token: String,
    last: u64,
    /// All entries that are durable, or on their way to be.
    entries: BTreeMap<Seq, Arc<Entry>>,
    by_instance: HashMap<InstanceName, Seq>,
    /// Entries of an earlier process that are not settled yet.
    replay: BTreeMap<Seq, Replay>,
    /// How many there were at the start.
    found: usize,
    /// Changes are accepted.
    open: bool,
    /// When they are at the latest.
    open_at: Tick,
    /// Instances that go and belong to no workload.
    loose: BTreeMap<InstanceName, Loose>,
    loose_steps: HashMap<StepId, InstanceName>,
    /// Containers of this store that no record knows, and since when.
    strays: BTreeMap<ContainerId, Tick>,
}

/// One entry that is being replayed.
#[derive(Debug)]
struct Replay {
    /// After this it counts as failed, and holds nothing but its own workload.
    until: Tick,
    /// It failed, or only waits for its second look.
    waived: bool,
}

/// An instance that goes and belongs to no workload.
#[derive(Debug)]
struct Loose {
    container: Option<ContainerId>,
    /// Not before this.
    at: Tick,
    /// A create of it may still come late: it is looked for once more.
    late: bool,
    /// Tries that failed, for the backoff.
    tries: u32,
    busy: bool,
}

impl Journal {
    pub(super) fn new(token: String, next: Seq, now: Tick) -> Self {
        let open_at = now + Span(limits::REPLAY_MS);
        Self { token, last: next.0.saturating_sub(1), open_at, ..Self::default() }
    }

    /// Entries, and how many of them failed or cannot be read.
    pub(super) fn counts(&self) -> (usize, usize) {
        let failing = self.entries.values().filter(|entry| {
            !entry.error.is_empty() || matches!(entry.intent, Intent::Unreadable { .. })
        });
        (self.entries.len(), failing.count())
    }

    /// Entries replayed and entries found, while changes are not accepted yet.
    pub(super) fn recovering(&self) -> Option<(usize, usize)> {
        let left = self.replay.values().filter(|replay| !replay.waived).count();
        (!self.open).then_some((self.found - left.min(self.found), self.found))
    }

    /// The entry that is about `instance`, if there is one.
    pub(super) fn of(&self, instance: &InstanceName) -> Option<Seq> {
        self.by_instance.get(instance).copied()
    }

    /// When the journal wants to be looked at if nothing else happens.
    pub(super) fn next_deadline(&self) -> Option<Tick> {
        let open = (!self.open).then_some(self.open_at);
        let late = self.replay.values().filter(|r| !r.waived).map(|r| r.until);
        let loose = self.loose.values().filter(|loose| !loose.busy).map(|loose| loose.at);
        open.into_iter().chain(late).chain(loose).min()
    }
}

impl Machine {
    // --- writing -------------------------------------------------------------------------------

    /// A new entry; it is shown once it is durable.
    pub(super) fn intend(&mut self, intent: Intent) -> Arc<Entry> {
        self.journal.last += 1;
        let seq = Seq(self.journal.last);
        if let Some(instance) = intent.instance() {
            self.journal.by_instance.insert(instance.clone(), seq);
        }
        let entry = Arc::new(Entry {
            seq,
            intent,
            token: self.journal.token.clone(),
            at_ms: self.now.wall_ms,
            tries: 0,
            error: String::new(),
        });
        self.journal.entries.insert(seq, entry.clone());
        entry
    }

    /// The entry is durable, or it is not there at all.
    pub(super) fn on_intended(&mut self, seq: Seq, durable: bool) {
        if durable {
            if let Some(entry) = self.journal.entries.get(&seq) {
                self.out.push(Effect::PublishEntry(seq, Some(entry.clone())));
            }
            return;
        }
        self.forget_entry(seq);
    }

    fn forget_entry(&mut self, seq: Seq) {
        if let Some(entry) = self.journal.entries.remove(&seq)
            && let Some(instance) = entry.intent.instance()
            && self.journal.by_instance.get(instance) == Some(&seq)
        {
            self.journal.by_instance.remove(instance);
        }
        self.journal.replay.remove(&seq);
        self.out.push(Effect::PublishEntry(seq, None));
    }

    /// The writes that settle what is done with, to go with the record change that says so.
    pub(super) fn settlements(&mut self, uid: &Uid) -> Vec<(Seq, Write)> {
        let Some(w) = self.workloads.get_mut(uid) else { return Vec::new() };
        let done = std::mem::take(&mut w.settled);
        let mut writes = Vec::new();
        for instance in done {
            if let Some(seq) = self.journal.by_instance.remove(&instance) {
                writes.push((seq, Write::Settle(seq)));
            }
        }
        writes
    }

    /// Settles what is done with, if no other commit of the workload took it along.
    pub(super) fn settle(&mut self, uid: &Uid) {
        if self.workloads.get(uid).is_none_or(|w| w.held || w.settled.is_empty()) {
            return;
        }
        let settled = self.settlements(uid);
        if settled.is_empty() {
            return;
        }
        let Some(w) = self.workloads.get_mut(uid) else { return };
        w.dirty = false;
        self.store_state.dirty.remove(uid);
        let mut writes = vec![Write::Update(Arc::new(w.record.clone()))];
        let (seqs, settles): (Vec<Seq>, Vec<Write>) = settled.into_iter().unzip();
        writes.extend(settles);
        self.persist(Purpose::Settle(Some(uid.clone()), seqs), false, writes);
    }

    /// A settlement ended.
    pub(super) fn on_settled(&mut self, uid: Option<&Uid>, seqs: Vec<Seq>, durable: bool) {
        for seq in seqs {
            if durable {
                self.forget_entry(seq);
                continue;
            }
            // It stays, and is settled with the next change of its workload, or at the next start.
            let Some(entry) = self.journal.entries.get(&seq) else { continue };
            let Some(instance) = entry.intent.instance().cloned() else { continue };
            self.journal.by_instance.insert(instance.clone(), seq);
            if let Some(w) = uid.and_then(|uid| self.workloads.get_mut(uid)) {
                w.settled.push(instance);
                w.dirty = true;
                self.store_state.dirty.insert(w.record.uid.clone());
            }
        }
    }

    // --- replay --------------------------------------------------------------------------------

    /// Takes in what an earlier process left, in order. Called once, before anything else happens.
    pub(super) fn take_entries(&mut self, entries: Vec<Entry>) {
        for mut entry in entries {
            let seq = entry.seq;
            if let Intent::Unreadable { kind, .. } = &entry.intent {
                let text = format!("journal entry {} of type {kind:?} cannot be read: kept", seq.0);
                self.log(Level::Warn, text);
                self.show_entry(entry);
                continue;
            }
            entry.token.clone_from(&self.journal.token);
            entry.tries += 1;
            if let Some(instance) = entry.intent.instance() {
                self.journal.by_instance.insert(instance.clone(), seq);
            }
            let until = self.now.tick + Span(limits::REPLAY_ENTRY_MS);
            self.journal.replay.insert(seq, Replay { until, waived: false });
            self.journal.found += 1;
            let claim = Write::Claim(entry.clone());
            self.persist(Purpose::Claim, false, vec![claim]);
            self.replay(&entry.intent);
            self.show_entry(entry);
        }
        self.open_if_replayed();
    }

    fn show_entry(&mut self, entry: Entry) {
        let entry = Arc::new(entry);
        self.journal.entries.insert(entry.seq, entry.clone());
        self.out.push(Effect::PublishEntry(entry.seq, Some(entry)));
    }

    /// Has the instance that the entry names removed, unless the row says that it is the workload's
    /// own: then there is nothing to do but to settle.
    fn replay(&mut self, intent: &Intent) {
        let Some(uid) = intent.uid() else { return };
        let Some(w) = self.workloads.get_mut(uid) else { return self.replay_loose(intent) };
        match intent {
            Intent::Create { instance, .. } => {
                let next = w.record.next.as_ref();
                let reserved = next.filter(|next| next.name == *instance);
                match reserved {
                    Some(next) if next.container.is_some() => w.settled.push(instance.clone()),
                    Some(_) => w.discard_slot(Slot::Next),
                    None => send_off(w, instance, None),
                }
            }
            Intent::Remove { instance, container, .. } => {
                send_off(w, instance, container.as_ref());
            }
            Intent::Replace { old, container, new, .. } => {
                let is_current = w.record.current.as_ref().is_some_and(|c| c.name == *old);
                if is_current {
                    // The record change did not make it: the old one stays, the new one goes.
                    w.settled.push(old.clone());
                    send_off(w, new, None);
                } else {
                    send_off(w, old, container.as_ref());
                }
            }
            Intent::Unreadable { .. } => {}
        }
        self.mark(&uid.clone());
    }

    fn replay_loose(&mut self, intent: &Intent) {
        let Some(instance) = intent.instance() else { return };
        let container = match intent {
            Intent::Remove { container, .. } | Intent::Replace { container, .. } => {
                container.clone()
            }
            Intent::Create { .. } | Intent::Unreadable { .. } => None,
        };
        let late = matches!(intent, Intent::Create { .. });
        let loose = Loose { container, at: self.now.tick, late, tries: 0, busy: false };
        self.journal.loose.insert(instance.clone(), loose);
    }

    /// Changes are accepted once every entry was replayed, failed, or only waits for its second
    /// look; after 60 s in any case.
    pub(super) fn open_if_replayed(&mut self) {
        let now = self.now.tick;
        let late: Vec<Seq> = self
            .journal
            .replay
            .iter()
            .filter(|(_, replay)| !replay.waived && replay.until <= now)
            .map(|(seq, _)| *seq)
            .collect();
        for seq in late {
            self.fail_replay(seq, "not settled within 32 s");
        }
        let left = self.journal.replay.values().any(|replay| !replay.waived);
        if !self.journal.open && (!left || self.journal.open_at <= now) {
            self.journal.open = true;
            if self.journal.found > 0 {
                let (found, left) = (self.journal.found, self.journal.replay.len());
                let text = format!("replayed {} of {found} journal entries", found - left);
                self.log(Level::Info, text);
            }
        }
    }

    fn fail_replay(&mut self, seq: Seq, why: &str) {
        let Some(replay) = self.journal.replay.get_mut(&seq) else { return };
        replay.waived = true;
        let Some(entry) = self.journal.entries.get(&seq) else { return };
        let mut entry = (**entry).clone();
        let uid = entry.intent.uid().and_then(|uid| self.workloads.get(uid));
        let cause = uid.map(|w| w.discard_error.clone()).filter(|error| !error.is_empty());
        entry.error = cause.map_or_else(|| why.to_owned(), |cause| format!("{why}: {cause}"));
        let text = format!("journal entry {} could not be replayed: {}", seq.0, entry.error);
        self.log(Level::Warn, text);
        self.persist(Purpose::Claim, false, vec![Write::Claim(entry.clone())]);
        self.show_entry(entry);
    }

    /// An entry whose instance is not there now, and may still come late, holds nothing.
    pub(super) fn waive_late(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get(uid) else { return };
        let waits = w.discard_seen == Seen::Absent && w.discard_deadline.is_some();
        let seq = w.instance(Slot::Discard).and_then(|i| self.journal.of(&i.name));
        if waits
            && let Some(replay) = seq.and_then(|seq| self.journal.replay.get_mut(&seq))
        {
            replay.waived = true;
        }
    }

    // --- instances of no workload --------------------------------------------------------------

    /// Sends what is due for instances that belong to no workload.
    pub(super) fn attend_loose(&mut self) {
        if self.journal.loose.is_empty() || !(self.engine.up && self.engine.listed) {
            return;
        }
        let now = self.now.tick;
        let due: Vec<InstanceName> = self
            .journal
            .loose
            .iter()
            .filter(|(_, loose)| !loose.busy && loose.at <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let looked_at = self.journal.loose.get_mut(&name).map(|loose| {
                loose.busy = true;
                loose.container.clone()
            });
            let op = match looked_at.flatten() {
                Some(id) => Op::Inspect(id.to_string()),
                None => Op::Inspect(name.to_string()),
            };
            self.send_loose(name, op);
        }
    }

    fn send_loose(&mut self, name: InstanceName, op: Op) {
        let id = self.next_step();
        self.journal.loose_steps.insert(id, name);
        self.out.push(Effect::Run(Step { id, after: None, op }));
    }

    /// A step for an instance of no workload ended. Whether it was one.
    pub(super) fn on_loose_done(&mut self, step: StepId, result: &Result<Outcome, Fault>) -> bool {
        let Some(name) = self.journal.loose_steps.remove(&step) else { return false };
        let now = self.now.tick;
        let Some(loose) = self.journal.loose.get_mut(&name) else { return true };
        match result {
            Ok(Outcome::Found(reading)) => {
                let ours = reading.tags.as_ref().is_some_and(|tags| tags.store == self.store);
                if ours {
                    self.send_loose(name, Op::Remove(reading.id.to_string()));
                } else {
                    self.end_loose(&name);
                }
            }
            Ok(Outcome::NotFound) if loose.late => {
                loose.late = false;
                loose.busy = false;
                loose.at = now + Span(limits::LATE_CREATE_MS);
                if let Some(seq) = self.journal.of(&name)
                    && let Some(replay) = self.journal.replay.get_mut(&seq)
                {
                    replay.waived = true;
                }
            }
            Ok(_) => self.end_loose(&name),
            Err(fault) => {
                loose.busy = false;
                loose.tries = loose.tries.saturating_add(1);
                loose.at = now + retry_delay(loose.tries);
                if let Some(seq) = self.journal.of(&name) {
                    self.fail_replay(seq, &fault.to_string());
                }
            }
        }
        true
    }

    fn end_loose(&mut self, name: &InstanceName) {
        self.journal.loose.remove(name);
        if let Some(seq) = self.journal.by_instance.remove(name) {
            self.persist(Purpose::Settle(None, vec![seq]), false, vec![Write::Settle(seq)]);
        }
    }

    /// Containers of this store in no record and no entry go once they were seen for longer than
    /// two full compares; never while the store is new or not whole.
    pub(super) fn sweep(&mut self, strays: &[Listed]) {
        let now = self.now.tick;
        let before = std::mem::take(&mut self.journal.strays);
        if !self.store_state.whole {
            return;
        }
        for stray in strays.iter().filter(|stray| stray.tags.store == self.store) {
            let name = &stray.tags.instance;
            if self.journal.of(name).is_some() || self.journal.loose.contains_key(name) {
                continue;
            }
            let since = before.get(&stray.id).copied().unwrap_or(now);
            if now.since(since) < Span(2 * limits::FULL_COMPARE_MS) {
                self.journal.strays.insert(stray.id.clone(), since);
                continue;
            }
            let text = format!("removing {name}: made from this store, and no record knows it");
            self.log(Level::Warn, text);
            let entry = self.intend(Intent::Remove {
                uid: stray.tags.uid.clone(),
                instance: name.clone(),
                container: Some(stray.id.clone()),
            });
            let seq = entry.seq;
            let writes = vec![Write::Intend((*entry).clone())];
            self.persist(Purpose::Sweep(seq, name.clone(), stray.id.clone()), false, writes);
        }
    }

    /// The entry for a stray is durable: it goes.
    pub(super) fn on_swept(&mut self, seq: Seq, name: InstanceName, id: ContainerId, ok: bool) {
        self.on_intended(seq, ok);
        if ok {
            let (at, container) = (self.now.tick, Some(id));
            let loose = Loose { container, at, late: false, tries: 0, busy: false };
            self.journal.loose.insert(name, loose);
        }
    }

    // --- asks ----------------------------------------------------------------------------------

    /// Replays an entry, or all that failed, without waiting for the next retry.
    pub(super) fn ask_replay(&mut self, ask: AskId, seq: Option<Seq>) -> Result<(), Refusal> {
        let known = seq.is_none_or(|seq| self.journal.entries.contains_key(&seq));
        if !known {
            return Err(Refusal::NotFound("there is no such journal entry".to_owned()));
        }
        let seqs: BTreeSet<Seq> = match seq {
            Some(seq) => BTreeSet::from([seq]),
            None => self.journal.entries.keys().copied().collect(),
        };
        let now = self.now.tick;
        let mut count = 0;
        for seq in seqs {
            let Some(entry) = self.journal.entries.get(&seq).cloned() else { continue };
            let Some(uid) = entry.intent.uid() else { continue };
            count += 1;
            if let Some(w) = self.workloads.get_mut(uid) {
                w.discard_deadline = None;
                w.discard_error.clear();
                w.retry_at = None;
                w.mark_stale(Slot::Discard);
                self.mark(uid);
            } else if let Some(loose) =
                entry.intent.instance().and_then(|name| self.journal.loose.get_mut(name))
            {
                loose.at = now;
            }
        }
        self.answer(ask, Answer::Done(format!("{count} entries are being replayed")));
        Ok(())
    }

    /// Drops an entry: nothing is done for it any more.
    pub(super) fn ask_drop(&mut self, ask: AskId, seq: Seq) -> Result<(), Refusal> {
        if !self.journal.entries.contains_key(&seq) {
            return Err(Refusal::NotFound("there is no such journal entry".to_owned()));
        }
        self.persist(Purpose::Drop(ask, seq), false, vec![Write::DropEntry(seq)]);
        Ok(())
    }

    pub(super) fn on_dropped(&mut self, ask: AskId, seq: Seq, result: Result<(), String>) {
        let answer = match result {
            Err(text) => Answer::Refused(Refusal::Store(text)),
            Ok(()) => {
                let entry = self.journal.entries.get(&seq).cloned();
                self.forget_entry(seq);
                if let Some(instance) = entry.as_ref().and_then(|entry| entry.intent.instance()) {
                    self.journal.loose.remove(instance);
                }
                if let Some(uid) = entry.as_ref().and_then(|entry| entry.intent.uid()) {
                    self.drop_discards_of(&uid.clone(), &entry);
                }
                Answer::Done(format!("entry {} is dropped", seq.0))
            }
        };
        self.answer(ask, answer);
    }

    fn drop_discards_of(&mut self, uid: &Uid, entry: &Option<Arc<Entry>>) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some(instance) = entry.as_ref().and_then(|entry| entry.intent.instance()) else {
            return;
        };
        if w.step.is_none() && w.instance(Slot::Discard).is_some_and(|i| i.name == *instance) {
            w.drop_discard();
        }
        self.mark(uid);
    }

    /// Takes over containers of another store, whatever they were made from.
    pub(super) fn ask_adopt(&mut self, ask: AskId, uid: Option<Uid>) -> Result<(), Refusal> {
        let uids: Vec<Uid> = match uid {
            Some(uid) if !self.workloads.contains_key(&uid) => {
                return Err(Refusal::NotFound(format!("there is no workload {uid} any more")));
            }
            Some(uid) => vec![uid],
            None => self.workloads.keys().cloned().collect(),
        };
        let mut adopted = Vec::new();
        for uid in uids {
            if let Some(name) = self.adopt(&uid, true) {
                adopted.push(name);
                self.mark(&uid);
            }
        }
        let rest = self.engine.unclaimed.values().filter(|l| l.tags.store != self.store).count();
        let mut text = match adopted.len() {
            0 => "nothing to adopt".to_owned(),
            n => format!("adopted {n}: {}", adopted.join(", ")),
        };
        if rest > 0 {
            text.push_str(&format!(
                "; {rest} more of another store are here: declare their workloads, or remove them \
                 with the engine"
            ));
        }
        self.answer(ask, Answer::Done(text));
        Ok(())
    }
}

/// Puts `instance` among those that go, unless it is the workload's own.
fn send_off(w: &mut Workload, instance: &InstanceName, container: Option<&ContainerId>) {
    let record = &w.record;
    let own = |i: &Instance| i.name == *instance;
    if record.current.as_ref().is_some_and(own) || record.next.as_ref().is_some_and(own) {
        w.settled.push(instance.clone());
        return;
    }
    if record.discards.iter().any(own) {
        return;
    }
    let instance = Instance {
        name: instance.clone(),
        container: container.cloned(),
        generation: 0,
        spec_hash: SpecHash::new(""),
        run: None,
    };
    w.discard(instance, Seen::Unknown);
}

/// 10, 20, 40 … 300 s.
fn retry_delay(tries: u32) -> Span {
    let factor = 1_u64 << tries.saturating_sub(1).min(16);
    Span((limits::KILL_AGAIN_MS * factor).min(limits::RESTART_MAX_DELAY_MS))
}
