//! What steps came to.

use super::{LOOK, Machine};
use crate::domain::declared::Pull;
use crate::domain::effect::{Level, StepId};
use crate::domain::event::Outcome;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::lifecycle::{Context, FlightKind, Hold, Slot, Workload};
use crate::domain::names::{ContainerId, Uid};
use crate::domain::observed::{Phase, Reading, Seen};
use crate::domain::slow::Slow;
use crate::domain::view::TaskState;
use crate::limits;

impl Machine {
    pub(super) fn on_step_done(&mut self, step: StepId, result: Result<Outcome, Fault>) {
        if self.on_loose_done(step, &result) {
            return;
        }
        let Some(uid) = self.steps.remove(&step) else { return };
        self.starts.end(step);
        let order = self.order;
        let Some(w) = self.workloads.get_mut(&uid) else { return };
        if w.step.as_ref().is_none_or(|flight| flight.step != step) {
            return;
        }
        let Some(flight) = w.step.take() else { return };
        w.touched = order;
        let timed_out = matches!(&result, Err(fault) if fault.kind == FaultKind::Timeout);
        w.slow = w.slow.after(flight.kind, timed_out);
        self.free_slow_place(step);
        self.mark(&uid);
        match result {
            Ok(outcome) => self.on_outcome(&uid, flight.kind, outcome),
            Err(fault) => {
                if Self::engine_in_doubt(fault.kind) {
                    self.look_soon();
                }
                self.on_fault(&uid, flight.kind, &fault);
            }
        }
        self.with(&uid, |w, _| w.take_heard());
    }

    /// The place for workloads with timed-out calls is free again, if `step` held it.
    pub(super) fn free_slow_place(&mut self, step: StepId) {
        if self.slow_step != Some(step) {
            return;
        }
        self.slow_step = None;
        let slow: Vec<Uid> = self
            .workloads
            .iter()
            .filter(|(_, w)| w.slow != Slow::No)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in slow {
            self.mark(&uid);
        }
    }

    fn on_outcome(&mut self, uid: &Uid, kind: FlightKind, outcome: Outcome) {
        match (kind, outcome) {
            (FlightKind::Inspect(slot), Outcome::Found(reading)) => {
                self.on_found(uid, slot, *reading);
                self.sort_out_twins(uid, slot);
            }
            (FlightKind::Inspect(slot), Outcome::NotFound) if self.may_be_elsewhere(uid) => {
                self.unknown(uid, Some(slot));
            }
            (FlightKind::Inspect(slot), Outcome::NotFound) => {
                self.forget_container(uid, slot);
                self.with(uid, |w, context| w.read_absent(slot, context));
                self.sort_out_twins(uid, slot);
            }
            (FlightKind::CheckPaths, Outcome::PathsThere) => self.with(uid, |w, _| w.hold = None),
            (FlightKind::Create, Outcome::Created(id)) => self.on_created(uid, id),
            (FlightKind::Start(slot), Outcome::Started(reading)) => {
                self.on_started(uid, slot, *reading);
            }
            (FlightKind::Signal(_), Outcome::Signalled) => {}
            (FlightKind::Kill(task), Outcome::Signalled) => {
                self.end_task(task, TaskState::Done, String::new());
            }
            (FlightKind::Remove, Outcome::Removed) => {
                self.forget_container(uid, Slot::Discard);
                self.with(uid, |w, _| w.drop_discard());
            }
            (FlightKind::RemoveNetwork, Outcome::NetworkRemoved) => {
                self.reopen_network(uid);
                self.with(uid, |w, _| w.network_removed = true);
            }
            (kind, outcome) => {
                let text = format!("bug: {kind:?} was answered with {outcome:?}");
                self.log(Level::Warn, text);
                self.with(uid, |w, context| w.note_unknown(context));
            }
        }
    }

    /// The container is gone, and ids are never given twice.
    pub(super) fn forget_container(&mut self, uid: &Uid, slot: Slot) {
        let Some(w) = self.workloads.get(uid) else { return };
        if let Some(id) = w.instance(slot).and_then(|instance| instance.container.as_ref()) {
            self.by_container.remove(id);
        }
    }

    pub(super) fn with(&mut self, uid: &Uid, change: impl FnOnce(&mut Workload, Context)) {
        if let Some(w) = self.workloads.get_mut(uid) {
            change(w, Context { now: self.now, boot: &self.boot });
        }
    }

    /// A container found under a name of ours is only ours if its labels say so.
    fn on_found(&mut self, uid: &Uid, slot: Slot, reading: Reading) {
        let Some(w) = self.workloads.get(uid) else { return };
        let known = w.instance(slot).is_some_and(|i| i.container.is_some());
        let ours = reading.tags.as_ref().is_some_and(|tags| tags.uid == *uid);
        if !known && !ours && slot == Slot::Discard {
            return self.with(uid, |w, _| w.drop_discard());
        }
        if !known && !ours {
            let text = "a container that is not bargee's holds this name; it is left alone";
            let fault = Fault::new(FaultKind::Trouble, "create container", "", text);
            return self.with(uid, |w, context| {
                if let Some(next) = w.record.next.take() {
                    w.settled.push(next.name);
                }
                w.fail_try(Slot::Next, &fault, context);
            });
        }
        self.by_container.insert(reading.id.clone(), uid.clone());
        let reading = self.ghosts.see_through(reading);
        let gap = self.engine.gap && slot.may_run();
        self.with(uid, |w, context| {
            // What it read may have ended with the engine.
            w.gap |= gap;
            w.read(slot, reading, context);
            w.promote_made();
        });
    }

    fn on_created(&mut self, uid: &Uid, id: ContainerId) {
        self.by_container.insert(id.clone(), uid.clone());
        self.with(uid, |w, _| {
            let Some(next) = &mut w.record.next else { return };
            next.container = Some(id.clone());
            let name = next.name.clone();
            w.note_made(Slot::Next, name);
            w.name_clash = false;
            w.hold = None;
            w.dirty = true;
            w.set_seen(Slot::Next, Seen::Present(Box::new(just_created(id))));
            w.promote_first();
        });
    }

    /// Engines have been seen to answer before the deed, and to leave it at that.
    fn on_started(&mut self, uid: &Uid, slot: Slot, reading: Reading) {
        let Some(w) = self.workloads.get(uid) else { return };
        let before = w.instance(slot).and_then(|instance| instance.run.as_ref());
        let before = before.map_or(0, |run| run.started_at_ns);
        let id = reading.id.clone();
        if reading.phase.is_live() || reading.started_at_ns != before {
            self.expect_start(uid, &id);
            return self.with(uid, |w, context| {
                w.hold = None;
                w.read(slot, reading, context);
            });
        }
        let text = "the engine says that it was started, and it did not run";
        let fault = Fault::new(FaultKind::Trouble, "start container", id.as_str(), text);
        self.with(uid, |w, context| w.read(slot, reading, context));
        self.on_start_fault(uid, slot, &fault);
    }

    /// The removal of the network has ended, whatever came of it: who waited for that goes on.
    fn reopen_network(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get(uid) else { return };
        let application = w.record.declared.key.application.clone();
        self.closing.remove(&application);
        let waiting: Vec<Uid> = self
            .by_key
            .iter()
            .filter(|(key, _)| key.application == application)
            .map(|(_, uid)| uid.clone())
            .collect();
        for uid in waiting {
            self.mark(&uid);
        }
    }

    // --- faults --------------------------------------------------------------------------------

    fn on_fault(&mut self, uid: &Uid, kind: FlightKind, fault: &Fault) {
        match kind {
            FlightKind::Inspect(slot) => {
                if slot == Slot::Discard {
                    self.fail_discards_entry(uid, fault);
                }
                self.unknown(uid, Some(slot));
            }
            FlightKind::Create | FlightKind::CheckPaths => self.on_create_fault(uid, fault),
            FlightKind::Start(slot) => self.on_start_fault(uid, slot, fault),
            FlightKind::Signal(slot) => self.on_signal_fault(uid, slot, fault),
            FlightKind::Kill(task) => {
                self.end_task(task, TaskState::Failed, fault.to_string());
                self.with(uid, |w, _| w.mark_stale(Slot::Current));
            }
            FlightKind::Remove => {
                self.fail_discards_entry(uid, fault);
                self.with(uid, |w, c| w.fail_discard(fault.to_string(), c.now.tick));
            }
            FlightKind::RemoveNetwork => {
                self.reopen_network(uid);
                if fault.kind.is_unknown() {
                    return self.unknown(uid, None);
                }
                self.log(Level::Warn, format!("a network is left behind: {fault}"));
                self.with(uid, |w, _| w.network_removed = true);
            }
            FlightKind::Forget(_) => {}
        }
    }

    /// What is to go cannot be looked at, or cannot be removed.
    fn fail_discards_entry(&mut self, uid: &Uid, fault: &Fault) {
        let first = self.workloads.get(uid).and_then(|w| w.instance(Slot::Discard));
        if let Some(name) = first.map(|instance| instance.name.clone()) {
            self.fail_entry(&name, &fault.to_string());
        }
    }

    /// What came of the call is not known: look before anything else is decided.
    fn unknown(&mut self, uid: &Uid, slot: Option<Slot>) {
        self.with(uid, |w, context| {
            if let Some(slot) = slot {
                w.mark_stale(slot);
            }
            w.note_unknown(context);
        });
    }

    fn on_create_fault(&mut self, uid: &Uid, fault: &Fault) {
        if self.is_moot(uid, Slot::Next, fault) {
            return self.with(uid, |w, _| w.mark_stale(Slot::Next));
        }
        match fault.kind {
            FaultKind::NoImage => self.on_no_image(uid),
            FaultKind::HostPath => self.on_host_path(uid, fault),
            FaultKind::NameTaken => self.on_name_taken(uid, fault),
            kind if kind.is_unknown() => {
                // It may be carried out yet, or while we ask.
                self.with(uid, |w, _| w.cut_off_next());
                self.unknown(uid, Some(Slot::Next));
            }
            FaultKind::Refused => self.with(uid, |w, context| {
                w.unreserve();
                w.fail_try(Slot::Next, fault, context);
            }),
            // Some engines answer with an error and have made the container all the same.
            _ => self.with(uid, |w, context| {
                w.mark_stale(Slot::Next);
                w.fail_try(Slot::Next, fault, context);
            }),
        }
    }

    /// The call was for something else than what is wanted by now, so that its failure is not the
    /// failure of that.
    fn is_moot(&self, uid: &Uid, slot: Slot, fault: &Fault) -> bool {
        !fault.kind.is_unknown() && self.workloads.get(uid).is_some_and(|w| w.is_superseded(slot))
    }

    fn on_name_taken(&mut self, uid: &Uid, fault: &Fault) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        if !std::mem::replace(&mut w.name_clash, true) {
            return w.mark_stale(Slot::Next);
        }
        // Taken, and yet nothing of ours is there: a fresh name is drawn.
        w.name_clash = false;
        w.cut_off_next();
        w.set_seen(Slot::Next, Seen::Unknown);
        self.with(uid, |w, context| {
            w.discard_slot(Slot::Next);
            w.fail_try(Slot::Next, fault, context);
        });
        // Engines also say so while they make it for somebody who does not wait any more, as an
        // agent that was killed: a listing finds it, most likely before the next try.
        self.look_soon();
    }

    fn on_no_image(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let spec = &w.record.declared.spec;
        let pulled = w.pulled == w.record.generation;
        let text = match (spec.pull, pulled) {
            (Pull::Never, _) => "the image is not on this device, and pull is never: load it",
            (_, true) => "the image was pulled, and the engine does not find it",
            // The create finds that out again.
            (_, false) if self.holds_still() => return,
            (_, false) => return self.begin_pull(uid),
        };
        let fault = Fault::new(FaultKind::Trouble, "find image", spec.image.clone(), text);
        w.pulled = 0;
        self.with(uid, |w, context| {
            w.unreserve();
            w.fail_try(Slot::Next, &fault, context);
        });
    }

    /// A missing mount source is waited for; an update that needs one fails, since the service
    /// runs.
    fn on_host_path(&mut self, uid: &Uid, fault: &Fault) {
        let again = self.later(limits::HOST_PATH_LOOK_MS);
        self.with(uid, |w, context| {
            if w.needs_update() {
                return w.fail_update(fault.to_string(), false, context);
            }
            if w.may_go_back() {
                return w.fail_probation(fault.to_string(), false, context);
            }
            w.unreserve();
            w.hold = Some(Hold::HostPath(format!("{}: {}", fault.object, fault.message)));
            w.retry_at = Some(again);
        });
    }

    fn on_start_fault(&mut self, uid: &Uid, slot: Slot, fault: &Fault) {
        if self.is_moot(uid, slot, fault) {
            return self.with(uid, |w, _| w.mark_stale(slot));
        }
        if fault.kind != FaultKind::HostPath && !fault.kind.is_unknown() {
            // The paths come first, so they are there by now.
            self.with(uid, |w, _| w.hold = None);
        }
        match fault.kind {
            FaultKind::HostPath => self.on_host_path(uid, fault),
            FaultKind::NoContainer => self.with(uid, |w, _| w.mark_stale(slot)),
            FaultKind::NoNetwork => self.with(uid, |w, context| {
                // Its network was taken from it: only a new container can be given another.
                if slot == Slot::Current {
                    w.discard_slot(slot);
                }
                w.fail_try(slot, fault, context);
            }),
            kind if kind.is_unknown() => self.unknown(uid, Some(slot)),
            FaultKind::Conflict => self.with(uid, |w, context| {
                // Not in a state to be started: frozen, half removed. What it is then is looked at.
                w.mark_stale(slot);
                w.fail_try(slot, fault, context);
            }),
            _ => self.with(uid, |w, context| w.fail_try(slot, fault, context)),
        }
    }

    fn on_signal_fault(&mut self, uid: &Uid, slot: Slot, fault: &Fault) {
        match fault.kind {
            // It does not run (any more): the look says so.
            FaultKind::NoContainer | FaultKind::Conflict => {
                self.with(uid, |w, _| w.mark_stale(slot));
            }
            _ => self.unknown(uid, Some(slot)),
        }
    }

    /// Looks at the engine as a whole within 5 s.
    pub(super) fn look_soon(&mut self) {
        let soon = self.now.tick + LOOK;
        self.engine.next_list = Some(self.engine.next_list.map_or(soon, |at| at.min(soon)));
    }
}

/// What is known of a container between its create and its first start.
fn just_created(id: ContainerId) -> Reading {
    Reading {
        id,
        phase: Phase::Created,
        tags: None,
        started_at_ns: 0,
        exit_code: 0,
        oom_killed: false,
        error: String::new(),
        pid: 0,
        ip: None,
        ports: Vec::new(),
        image_id: String::new(),
        stop_signal: None,
        verdict: None,
    }
}
