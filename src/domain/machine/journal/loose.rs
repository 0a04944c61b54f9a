//! Instances that belong to no workload: late creates, entries whose row is gone, orphans. They are
//! looked up, stopped and removed by themselves, and hold nothing up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::Machine;
use super::super::commits::Purpose;
use super::Rider;
use crate::domain::backoff;
use crate::domain::effect::{Effect, Level, Op, Step, StepId};
use crate::domain::event::Outcome;
use crate::domain::fault::Fault;
use crate::domain::intent::{Intent, Seq};
use crate::domain::names::{ContainerId, InstanceName, Uid};
use crate::domain::observed::{Listed, Reading};
use crate::domain::time::{Span, Tick};
use crate::limits;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Loose {
    items: BTreeMap<InstanceName, Item>,
    /// Those that wait for their next step, by when.
    queue: BTreeSet<(Tick, InstanceName)>,
    steps: HashMap<StepId, InstanceName>,
}

#[derive(Debug)]
struct Item {
    container: Option<ContainerId>,
    /// An engine may still make it: it is looked for once more.
    late: bool,
    /// The stop signal was sent.
    signalled: bool,
    /// Tries that failed, for the backoff.
    failed: usize,
    /// When its next step is due; `None`: it is in flight.
    due: Option<Tick>,
    /// It waits because the last try failed.
    is_retry: bool,
}

impl Loose {
    pub(super) fn next_deadline(&self) -> Option<Tick> {
        let free = self.steps.len() < limits::LOOSE_STEPS;
        self.queue.first().map(|(at, _)| *at).filter(|_| free)
    }

    fn pop_due(&mut self, now: Tick) -> Option<InstanceName> {
        let (at, name) = self.queue.pop_first()?;
        if at > now {
            self.queue.insert((at, name));
            return None;
        }
        if let Some(item) = self.items.get_mut(&name) {
            item.due = None;
            item.is_retry = false;
        }
        Some(name)
    }

    /// Its next step is due then.
    fn put_off(&mut self, name: InstanceName, at: Tick) {
        let Some(item) = self.items.get_mut(&name) else { return };
        if let Some(before) = item.due.replace(at) {
            self.queue.remove(&(before, name.clone()));
        }
        self.queue.insert((at, name));
    }

    pub(super) fn contains(&self, name: &InstanceName) -> bool {
        self.items.contains_key(name)
    }

    pub(super) fn remove(&mut self, name: &InstanceName) {
        if let Some(at) = self.items.remove(name).and_then(|item| item.due) {
            self.queue.remove(&(at, name.clone()));
        }
    }

    /// Its turn comes without delay, if it waits for nothing but another try.
    pub(super) fn hurry(&mut self, name: &InstanceName, now: Tick) {
        if self.items.get(name).is_some_and(|item| item.is_retry) {
            self.put_off(name.clone(), now);
        }
    }
}

impl Machine {
    /// The instance goes; it may be made yet if `late`.
    pub(super) fn set_loose(
        &mut self,
        name: InstanceName,
        container: Option<ContainerId>,
        late: bool,
    ) {
        self.set_loose_at(name, container, late, self.now.tick);
    }

    pub(super) fn set_loose_at(
        &mut self,
        name: InstanceName,
        container: Option<ContainerId>,
        late: bool,
        at: Tick,
    ) {
        let loose = &mut self.journal.loose;
        loose.remove(&name);
        let item =
            Item { container, late, signalled: false, failed: 0, due: None, is_retry: false };
        loose.items.insert(name.clone(), item);
        loose.put_off(name, at);
    }

    /// The container goes by itself: it is nobody's stray.
    pub(in super::super) fn is_loose(&self, name: &InstanceName) -> bool {
        self.journal.loose.contains(name)
    }

    /// Sends what is due.
    pub(super) fn attend_loose(&mut self) {
        let rests = self.holds_still() || !self.engine_is_ready();
        if self.journal.loose.queue.is_empty() || rests {
            return;
        }
        while self.journal.loose.steps.len() < limits::LOOSE_STEPS {
            let Some(name) = self.journal.loose.pop_due(self.now.tick) else { break };
            let Some(item) = self.journal.loose.items.get(&name) else { continue };
            let target = item.container.as_ref().map_or(name.as_str(), ContainerId::as_str);
            let op = Op::Inspect(target.to_owned());
            self.begin_replay(&name);
            self.send_loose(name, op);
        }
    }

    fn send_loose(&mut self, name: InstanceName, op: Op) {
        let id = self.next_step();
        self.out.push(Effect::Run(Step { id, after: None, op }));
        self.journal.loose.steps.insert(id, name);
    }

    /// A step for an instance of no workload ended. Whether it was one.
    pub(in super::super) fn on_loose_done(
        &mut self,
        step: StepId,
        result: &Result<Outcome, Fault>,
    ) -> bool {
        let Some(name) = self.journal.loose.steps.remove(&step) else { return false };
        let now = self.now.tick;
        let Some(item) = self.journal.loose.items.get_mut(&name) else { return true };
        match result {
            Ok(Outcome::Found(reading)) => self.on_loose_found(name, reading),
            Ok(Outcome::NotFound) if item.late => {
                self.journal.loose.items.remove(&name);
                self.wait_for_late(name);
            }
            Ok(Outcome::Signalled) => {
                self.journal.loose.put_off(name, now + Span(limits::STOP_GRACE_MS));
            }
            // Not there (any more).
            Ok(_) => self.end_loose(&name),
            Err(fault) => {
                item.failed = item.failed.saturating_add(1);
                item.is_retry = true;
                let at = now + backoff::removal_delay(item.failed);
                self.journal.loose.put_off(name.clone(), at);
                self.fail_entry(&name, &fault.to_string());
            }
        }
        true
    }

    /// Only what carries the labels of this store, and is no workload's own, is touched.
    fn on_loose_found(&mut self, name: InstanceName, reading: &Reading) {
        let tags = reading.tags.as_ref();
        let ours = tags.is_some_and(|tags| tags.store == self.store && tags.instance == name);
        let owner = tags.and_then(|tags| self.workloads.get(&tags.uid));
        let owned = owner.is_some_and(|w| w.owns(&name));
        if !ours || owned {
            return self.end_loose(&name);
        }
        let rests = self.holds_still();
        let Some(item) = self.journal.loose.items.get_mut(&name) else { return };
        let id = reading.id.clone();
        item.container = Some(id.clone());
        if rests {
            let now = self.now.tick;
            return self.journal.loose.put_off(name, now);
        }
        if reading.phase.is_live() && !item.signalled {
            item.signalled = true;
            let signal = reading.stop_signal.clone();
            let signal = signal.unwrap_or_else(|| super::super::carry::STOP_SIGNAL.to_owned());
            return self.send_loose(name, Op::Signal(id, signal));
        }
        self.send_loose(name, Op::Remove(id.to_string()));
    }

    fn end_loose(&mut self, name: &InstanceName) {
        self.journal.loose.items.remove(name);
        if let Some(seq) = self.journal.by_instance.remove(name) {
            self.settle_loose(seq);
        }
    }

    pub(super) fn settle_loose(&mut self, seq: Seq) {
        let mut writes = Vec::new();
        self.journal.push_settlement(seq, &mut writes);
        let commit = self.persist(Purpose::Settled, false, writes);
        self.ride(commit, Rider::settling(vec![seq]));
    }

    // --- orphans -------------------------------------------------------------------------------

    /// Containers of this store in no record and no entry go once they were seen for two full
    /// compares; never while the store is new or not whole.
    pub(in super::super) fn sweep(&mut self, orphans: &[Listed]) {
        if self.holds_still() {
            return;
        }
        let before = std::mem::take(&mut self.journal.strays);
        if !self.store_state.whole {
            return;
        }
        let now = self.now.tick;
        for stray in orphans {
            let name = &stray.tags.instance;
            if self.journal.is_about(name) || self.is_loose(name) {
                continue;
            }
            let since = before.get(&stray.id).copied().unwrap_or(now);
            if now.since(since) < Span(limits::ORPHAN_MS) {
                self.journal.strays.insert(stray.id.clone(), since);
                continue;
            }
            let text = format!("removing {name}: made from this store, and no record knows it");
            self.log(Level::Warn, text);
            self.intend_sweep(stray.tags.uid.clone(), name.clone(), stray.id.clone());
        }
    }

    fn intend_sweep(&mut self, uid: Uid, instance: InstanceName, id: ContainerId) {
        let container = Some(id.clone());
        let intent = Intent::Remove { uid, instance: instance.clone(), container };
        let mut writes = Vec::new();
        let intended = Some(self.intend(intent, &mut writes));
        let commit = self.persist(Purpose::Sweep(instance, id), false, writes);
        self.ride(commit, Rider { intended, ..Rider::default() });
    }

    /// The entry for an orphan is durable: it goes.
    pub(in super::super) fn on_swept(&mut self, name: InstanceName, id: ContainerId) {
        self.set_loose(name, Some(id), false);
    }
}
