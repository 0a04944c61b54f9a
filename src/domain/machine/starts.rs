//! Starts are limited: a few calls in flight at once, whatever the number of workers, and the rest
//! waits in the order of the manifests. Stops, removals and looks never wait here.

use std::collections::BTreeSet;

use super::Machine;
use crate::domain::effect::StepId;
use crate::domain::lifecycle::{Slot, Workload};
use crate::domain::names::{Key, Uid};
use crate::domain::plan::Decision;
use crate::domain::record::Desired;
use crate::limits;

/// The place of a workload in a pass: by its source, then lower `schedule` first, then by key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Turn {
    source: u8,
    schedule: u32,
    key: Key,
    /// The workload.
    pub(super) uid: Uid,
}

impl Turn {
    pub(super) fn of(w: &Workload) -> Self {
        let declared = &w.record.declared;
        Self {
            source: w.record.source.turn(),
            schedule: declared.spec.schedule,
            key: declared.key.clone(),
            uid: w.record.uid.clone(),
        }
    }
}

/// Starts in flight, and workloads that wait for a place among them.
#[derive(Debug, Default)]
pub(super) struct Starts {
    in_flight: BTreeSet<StepId>,
    /// Some may not want to start any more: they are planned afresh when their turn comes.
    waiting: BTreeSet<Turn>,
}

impl Starts {
    fn is_full(&self) -> bool {
        self.in_flight.len() >= limits::STARTS
    }

    /// Takes a place for `turn`, or puts it among those that wait: for a place, or behind one that
    /// comes first.
    fn admits(&mut self, turn: Turn) -> bool {
        let is_first = self.waiting.first().is_none_or(|first| turn <= *first);
        if is_first && !self.is_full() {
            self.waiting.remove(&turn);
            return true;
        }
        self.waiting.insert(turn);
        false
    }

    /// The start has a place from now on.
    pub(super) fn begin(&mut self, step: StepId) {
        self.in_flight.insert(step);
    }

    /// The step ended or was not sent after all; its place is free, if it had one.
    pub(super) fn end(&mut self, step: StepId) {
        self.in_flight.remove(&step);
    }

    /// The next one that waits, if there is a place for it.
    pub(super) fn next(&mut self) -> Option<Turn> {
        if self.is_full() { None } else { self.waiting.pop_first() }
    }

    /// The workload is gone.
    pub(super) fn forget(&mut self, turn: &Turn) {
        self.waiting.remove(turn);
    }
}

/// It is a start, or the stop of what a start takes the place of: an update does not take down what
/// runs before there is a place for what follows.
pub(super) fn leads_to_start(w: &Workload, decision: &Decision) -> bool {
    match decision {
        Decision::Start(_) => true,
        Decision::Stop(Slot::Current) => {
            w.record.desired == Desired::Running && w.needs_update() && !w.pulling
        }
        _ => false,
    }
}

impl Machine {
    /// Whether the workload may be started now. One that may not waits, and is planned again when
    /// a place is free; its row is written meanwhile, so that the start need not wait for that.
    pub(super) fn may_start(&mut self, uid: &Uid) -> bool {
        let Some(w) = self.workloads.get_mut(uid) else { return false };
        let admitted = self.starts.admits(Turn::of(w));
        w.start_waits = !admitted;
        if !admitted && w.dirty {
            self.store_state.next_flush = None;
            self.store_state.urgent = true;
        }
        admitted
    }
}
