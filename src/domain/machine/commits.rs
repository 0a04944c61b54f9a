//! What commits are for, and what follows when they end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Machine;
use super::journal::Rider;
use crate::domain::effect::{CommitId, Effect, Level, StepId, Write};
use crate::domain::event::AskId;
use crate::domain::intent::Seq;
use crate::domain::lifecycle::{Flight, FlightKind, Gate};
use crate::domain::names::{ContainerId, InstanceName, Uid};
use crate::domain::quiesce::Quiesce;
use crate::limits;

/// What a commit is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The declaration that is on its way.
    Declare,
    /// The row of a workload, before a step.
    Step(Uid, StepId),
    /// Observations of several workloads.
    Rows(BTreeSet<Uid>),
    /// The end of a row.
    Forget(Uid),
    /// Entries of the journal are settled or claimed.
    Settled,
    /// The entry that comes before the removal of an orphan.
    Sweep(InstanceName, ContainerId),
    /// An operator drops an entry.
    Drop(AskId, Seq),
    /// The store is whole.
    Whole,
    /// An operator has reconciling held, or go on.
    Quiesce(AskId, Option<Quiesce>),
    /// The store knows the engine.
    Engine,
}

impl Machine {
    pub(super) fn on_committed(&mut self, commit: CommitId, result: Result<(), String>) {
        let Some(purpose) = self.store_state.commits.remove(&commit) else { return };
        self.note_store(&result);
        self.on_rider(commit, result.is_ok());
        match purpose {
            Purpose::Declare => self.on_declared(commit, result),
            Purpose::Step(uid, step) => {
                if result.is_err() {
                    self.drop_step(&uid, step);
                } else if let Some(flight) = self.flight(&uid, step) {
                    flight.gate = Gate::Open;
                }
                self.mark(&uid);
            }
            Purpose::Rows(uids) => {
                if self.store_state.urgent {
                    self.store_state.next_flush = None;
                }
                if result.is_err() {
                    for uid in &uids {
                        if let Some(w) = self.workloads.get_mut(uid) {
                            w.dirty = true;
                            self.store_state.dirty.insert(uid.clone());
                        }
                    }
                }
            }
            Purpose::Forget(uid) => self.on_forgotten(&uid, result.is_ok()),
            Purpose::Settled => {}
            Purpose::Sweep(name, id) if result.is_ok() => self.on_swept(name, id),
            // It is still there at the next full compare.
            Purpose::Sweep(..) => {}
            Purpose::Drop(ask, seq) => self.on_dropped(ask, seq, result),
            Purpose::Engine => self.on_engine_known(result.is_ok()),
            Purpose::Whole => self.store_state.whole = result.is_ok(),
            Purpose::Quiesce(ask, quiesce) => self.on_quiesce_written(ask, quiesce, result),
        }
    }

    /// The store has not answered yet to a row that was sent before a step.
    pub(super) fn row_hangs(&self, uid: &Uid) -> bool {
        let mut purposes = self.store_state.commits.values();
        purposes.any(|purpose| matches!(purpose, Purpose::Step(of, _) if of == uid))
    }

    fn flight(&mut self, uid: &Uid, step: StepId) -> Option<&mut Flight> {
        let flight = self.workloads.get_mut(uid)?.step.as_mut()?;
        (flight.step == step).then_some(flight)
    }

    /// A start that waits for its commit for too long goes without it.
    pub(super) fn release_gate(&mut self, uid: &Uid) {
        let now = self.now.tick;
        let Some(flight) = self.workloads.get_mut(uid).and_then(|w| w.step.as_mut()) else {
            return;
        };
        if matches!(flight.gate, Gate::Until(at) if at <= now) {
            flight.gate = Gate::Open;
            self.out.push(Effect::Release(flight.step));
        }
    }

    /// A step whose commit failed was not sent; it is decided again later.
    fn drop_step(&mut self, uid: &Uid, step: StepId) {
        if self.flight(uid, step).is_none_or(|flight| flight.gate == Gate::Open) {
            // It did not wait, and may have ended by now.
            if let Some(w) = self.workloads.get_mut(uid) {
                w.dirty = true;
            }
            return;
        }
        self.steps.remove(&step);
        self.starts.end(step);
        self.free_slow_place(step);
        let retry_at = self.later(limits::ENGINE_LOOK_MS);
        if let Some(w) = self.workloads.get_mut(uid) {
            let flight = w.step.take();
            let is_stop = flight.is_some_and(|f| matches!(f.kind, FlightKind::Signal(_)));
            if is_stop && !w.stop_is_repeated {
                // It is not on its way, so that what ends now ends by itself, and what is well by
                // then is not stopped any more.
                w.record.own_stop = None;
            }
            w.stop_deadline = None;
            w.dirty = true;
            w.retry_at = Some(retry_at);
        }
        self.mark(uid);
    }

    fn on_forgotten(&mut self, uid: &Uid, gone: bool) {
        if gone {
            self.end_tasks_of_removed(uid);
            return self.uninstall(uid);
        }
        let retry_at = self.later(limits::ENGINE_LOOK_MS);
        if let Some(w) = self.workloads.get_mut(uid) {
            if matches!(w.step.as_ref().map(|f| f.kind), Some(FlightKind::Forget(_))) {
                w.step = None;
            }
            w.retry_at = Some(retry_at);
        }
        self.mark(uid);
    }

    /// One line when the store begins to fail, one when it writes again.
    fn note_store(&mut self, result: &Result<(), String>) {
        match result {
            Ok(()) => {
                if self.conditions.remove("storeFailing").is_some() {
                    self.out.push(Effect::Log(Level::Info, "the store writes again".to_owned()));
                }
            }
            Err(text) => {
                if self.conditions.insert("storeFailing", text.clone()).is_none() {
                    let line = format!("the store cannot write: {text}");
                    self.out.push(Effect::Log(Level::Warn, line));
                }
            }
        }
    }

    /// Notes that the row of the workload is behind, if it is.
    pub(super) fn note_dirty(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        if w.dirty {
            self.store_state.dirty.insert(uid.clone());
        }
        if std::mem::take(&mut w.finished) {
            self.store_state.next_flush = None;
            self.store_state.urgent = true;
        }
    }

    /// Writes observations, merged per workload and at most every 5 s.
    pub(super) fn flush(&mut self) {
        if self.store_state.dirty.is_empty() {
            return;
        }
        if self.store_state.next_flush.is_some_and(|at| at > self.now.tick) {
            return;
        }
        self.store_state.next_flush = Some(self.later(limits::ROW_WRITE_MS));
        // While the disk hangs, what is observed waits here, merged, and not in the writer's queue.
        if self.store_state.commits.values().any(|purpose| matches!(purpose, Purpose::Rows(_))) {
            return;
        }
        self.store_state.urgent = false;
        let mut writes = Vec::new();
        let mut settled = Vec::new();
        let mut uids = BTreeSet::new();
        for uid in std::mem::take(&mut self.store_state.dirty) {
            let Some(w) = self.workloads.get_mut(&uid) else { continue };
            if w.held {
                self.store_state.dirty.insert(uid);
                continue;
            }
            w.dirty = false;
            writes.push(Write::Update(Arc::new(w.record.clone())));
            settled.append(&mut self.settlements(&uid, &mut writes));
            uids.insert(uid);
        }
        if !writes.is_empty() {
            let commit = self.persist(Purpose::Rows(uids), false, writes);
            self.ride(commit, Rider::settling(settled));
        }
    }

    /// Everything that is not durable yet, for an orderly stop.
    pub fn flush_all(&mut self) -> Vec<Effect> {
        self.store_state.next_flush = None;
        self.flush();
        std::mem::take(&mut self.out)
    }
}
