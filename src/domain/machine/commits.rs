//! What commits are for, and what follows when they end.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Machine;
use crate::domain::effect::{CommitId, Effect, Level, StepId, Write};
use crate::domain::lifecycle::FlightKind;
use crate::domain::names::Uid;
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
    /// The store is whole.
    Whole,
}

impl Machine {
    pub(super) fn on_committed(&mut self, commit: CommitId, result: Result<(), String>) {
        let Some(purpose) = self.store_state.commits.remove(&commit) else { return };
        self.note_store(&result);
        match purpose {
            Purpose::Declare => self.on_declared(commit, result),
            Purpose::Step(uid, step) => {
                if result.is_err() {
                    self.drop_step(&uid, step);
                }
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
            Purpose::Whole => self.store_state.whole = result.is_ok(),
        }
    }

    /// A step whose commit failed was not sent; it is decided again later.
    fn drop_step(&mut self, uid: &Uid, step: StepId) {
        self.steps.remove(&step);
        self.free_slow_place(step);
        let retry_at = self.later(limits::ENGINE_LOOK_MS);
        if let Some(w) = self.workloads.get_mut(uid)
            && w.step.as_ref().is_some_and(|flight| flight.step == step)
        {
            w.step = None;
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
        let mut uids = BTreeSet::new();
        for uid in std::mem::take(&mut self.store_state.dirty) {
            let Some(w) = self.workloads.get_mut(&uid) else { continue };
            if w.held {
                self.store_state.dirty.insert(uid);
                continue;
            }
            w.dirty = false;
            writes.push(Write::Update(Arc::new(w.record.clone())));
            uids.insert(uid);
        }
        if !writes.is_empty() {
            self.persist(Purpose::Rows(uids), false, writes);
        }
    }

    /// Everything that is not durable yet, for an orderly stop.
    pub fn flush_all(&mut self) -> Vec<Effect> {
        self.store_state.next_flush = None;
        self.flush();
        std::mem::take(&mut self.out)
    }
}
