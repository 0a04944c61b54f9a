//! Containers that are to go, and names that were reserved for nothing.

use super::backoff;
use super::lifecycle::{Slot, Workload};
use super::names::InstanceName;
use super::observed::Seen;
use super::record::Instance;
use super::time::Tick;

impl Workload {
    /// `instance`, last seen as `seen`, is to be removed.
    pub fn discard(&mut self, instance: Instance, seen: Seen) {
        if self.record.discards.is_empty() {
            self.set_seen(Slot::Discard, seen);
        }
        if !self.discard_error.is_empty() {
            // A new round, in which it has its turn.
            self.discard_deadline = None;
        }
        self.discards_failed = 0;
        self.record.discards.push(instance);
        self.dirty = true;
    }

    /// The first of the discards could not be removed. The others have their turn before it is
    /// tried again, after a delay that doubles with each round: one of them may live.
    pub fn fail_discard(&mut self, error: String, now: Tick) {
        let lives = self.may_live(Slot::Discard);
        self.note_discard_dead();
        if let Some(first) = self.record.discards.first().filter(|_| lives) {
            self.live_discards.push(first.name.clone());
        }
        self.discard_error = error;
        self.discards_failed = self.discards_failed.saturating_add(1);
        let others = self.record.discards.len() > 1;
        if others {
            self.record.discards.rotate_left(1);
            self.set_seen(Slot::Discard, Seen::Unknown);
            self.dirty = true;
        } else {
            self.mark_stale(Slot::Discard);
        }
        let rounds = self.discards_failed / self.record.discards.len().max(1);
        self.discard_deadline = (rounds > 0).then(|| now + backoff::removal_delay(rounds));
    }

    /// The instance that runs in the place of `old` after an update or a rebuild.
    pub fn replaced_by(&self, old: &Instance) -> Option<&InstanceName> {
        let current = self.record.current.as_ref()?;
        let made_for = |instance: &Instance| (instance.generation, instance.rebuild);
        let is_newer = made_for(current) > made_for(old) && old.run.is_some();
        (is_newer && current.run.is_some()).then_some(&current.name)
    }

    /// A container that is to go may live: one that was seen to, or was not looked at yet.
    pub fn discards_may_live(&self) -> bool {
        let seen = self.discards_failed.max(1);
        let unseen = self.record.discards.len() > seen;
        self.may_live(Slot::Discard) || unseen || !self.live_discards.is_empty()
    }

    /// The first of the discards does not live (any more).
    pub fn note_discard_dead(&mut self) {
        if let Some(first) = self.record.discards.first() {
            self.live_discards.retain(|name| *name != first.name);
        }
    }

    /// Something was heard of a discard that could not be removed: it has its turn at once.
    pub fn retry_discards(&mut self) {
        self.discard_deadline = None;
        self.discards_failed = 0;
        self.mark_stale(Slot::Discard);
    }

    /// The container of this name is made, and the record knows its id.
    pub fn note_made(&mut self, slot: Slot, name: InstanceName) {
        self.cut.retain(|cut| *cut != name);
        if slot != Slot::Discard {
            self.settled.push(name);
        }
    }

    /// Something may be made yet under the reserved name.
    pub fn cut_off_next(&mut self) {
        if let Some(next) = &self.record.next
            && !self.cut.contains(&next.name)
        {
            self.cut.push(next.name.clone());
        }
    }

    /// Gives the reserved name up if nothing is there under it, and nothing can come: what was made
    /// under it is gone, so that no name ever stands for two containers, or nothing was made.
    pub fn unreserve(&mut self) {
        let Some(next) = &self.record.next else { return };
        let may_come = next.container.is_none() && self.cut.contains(&next.name);
        let absent = self.next_seen == Seen::Absent && !self.stale[Slot::Next as usize];
        if absent && !may_come {
            self.settled.push(next.name.clone());
            self.record.next = None;
            self.dirty = true;
        }
    }

    /// Moves what is in `slot` to those that are to go.
    pub fn discard_slot(&mut self, slot: Slot) {
        if slot == Slot::Next {
            self.unreserve();
        }
        let taken = match slot {
            Slot::Current => self.record.current.take(),
            Slot::Next => self.record.next.take(),
            Slot::Previous => self.record.previous.take().map(|previous| previous.instance),
            Slot::Discard => None,
        };
        if let Some(instance) = taken {
            let stale = self.stale[slot as usize];
            let seen = if stale { Seen::Unknown } else { self.seen(slot).clone() };
            self.set_seen(slot, Seen::Unknown);
            self.discard(instance, seen);
        }
    }

    /// The first of the discards is gone.
    pub fn drop_discard(&mut self) {
        self.note_discard_dead();
        if !self.record.discards.is_empty() {
            let gone = self.record.discards.remove(0);
            let may_come = gone.container.is_none() && self.cut.contains(&gone.name);
            self.cut.retain(|name| *name != gone.name);
            let done = if may_come { &mut self.late } else { &mut self.settled };
            done.push(gone.name);
            self.dirty = true;
        }
        self.set_seen(Slot::Discard, Seen::Unknown);
        self.discard_deadline = None;
        self.discard_error.clear();
        self.discards_failed = 0;
    }
}
