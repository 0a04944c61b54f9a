//! Health: what follows from the verdict of a check. A verdict is of one run, (container id, start
//! time), and every run begins without one.

use super::declared::{RestartPolicy, Spec, WhenStuck};
use super::health_check::{Check, Health, HealthCheck, OnUnhealthy, Verdict};
use super::lifecycle::{Context, Slot, Workload};
use super::observed::{Phase, Reading};
use super::record::{Desired, OwnStop, Record, Run};
use super::time::{Span, Tick};
use crate::limits;

/// How a run fares by its check. Ticks are those of the boot in which the run was first seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunHealth {
    /// The last verdict.
    pub health: Health,
    /// Since when, as far as was seen.
    pub since: Tick,
    /// It was healthy for long enough before that.
    pub proved: bool,
}

impl RunHealth {
    /// What `reading` makes of what was known of the same run. One that has ended says nothing
    /// more: engines leave the last verdict, or call it unhealthy.
    pub fn follow(known: Option<&Self>, reading: &Reading, now: Tick) -> Option<Self> {
        let verdict = reading.verdict.as_ref().filter(|_| reading.phase == Phase::Running);
        let Some(verdict) = verdict else { return known.cloned() };
        if let Some(same) = known.filter(|known| known.health == verdict.health) {
            return Some(same.clone());
        }
        let proved = known.is_some_and(|known| known.is_proved(now));
        Some(Self { health: verdict.health, since: now, proved })
    }

    /// It was healthy for long enough, now or before.
    pub(super) fn is_proved(&self, now: Tick) -> bool {
        let lasted = now.since(self.since) >= Span(limits::STABLE_MS);
        self.proved || self.health == Health::Healthy && lasted
    }
}

impl Spec {
    /// The check that is declared and runs.
    pub fn check(&self) -> Option<&Check> {
        match &self.health_check {
            Some(HealthCheck::On(check)) => Some(check),
            Some(HealthCheck::Off) | None => None,
        }
    }

    /// Being unhealthy is followed by a restart, unless nothing is restarted at all.
    fn restarts_unhealthy(&self) -> bool {
        let check = self.check().is_some_and(|c| c.on_unhealthy == OnUnhealthy::Restart);
        check && self.restart.policy != RestartPolicy::Never
    }
}

impl Workload {
    /// What the check says of the current run, whoever declared it.
    pub fn verdict(&self) -> Option<&Verdict> {
        let running = self.seen.reading().filter(|reading| reading.phase == Phase::Running);
        running.and_then(|reading| reading.verdict.as_ref())
    }

    fn is_unhealthy(&self) -> bool {
        self.verdict().is_some_and(|verdict| verdict.health == Health::Unhealthy)
    }

    /// How `run` fares by a check that is declared. That of an image counts for nothing: nobody
    /// who declared the workload asked for it.
    pub(super) fn checked<'a>(&self, run: &'a Run) -> Option<&'a RunHealth> {
        run.health.as_ref().filter(|_| self.record.declared.spec.check().is_some())
    }

    /// Since when `run` is all that it should be: it runs, and is healthy where a check is
    /// declared. `None`: it is not.
    pub(super) fn well_since(&self, run: &Run) -> Option<Tick> {
        match self.checked(run) {
            None => Some(run.since.tick),
            Some(checked) => (checked.health == Health::Healthy).then_some(checked.since),
        }
    }

    /// The health of the run that `reading` shows, as it was known before.
    pub(super) fn known_health(&self, slot: Slot, reading: &Reading) -> Option<Health> {
        let run = self.instance(slot)?.run.as_ref()?;
        let known = run.health.as_ref().filter(|_| run.started_at_ns == reading.started_at_ns);
        known.map(|known| known.health)
    }

    /// Notes what a declared check complains of, once for each time that it begins to.
    pub(super) fn note_health(&mut self, before: Option<Health>, context: Context) {
        let begins = self.is_unhealthy() && before != Some(Health::Unhealthy);
        let asked_for = self.record.declared.spec.check().is_some();
        let wanted = self.record.desired == Desired::Running;
        // On its way out anything may fail.
        if begins && asked_for && wanted && !self.stop_is_recorded(Slot::Current) {
            let complaint = self.verdict().and_then(Verdict::complaint).unwrap_or_default();
            self.note_error(complaint, context);
        }
    }

    /// It is about to be stopped for its health. What began while something else was wanted of it
    /// was not noted then.
    pub fn note_why_stopped(&mut self, context: Context) {
        let complaint = self.verdict().and_then(Verdict::complaint);
        if let Some(complaint) = complaint.filter(|new| *new != self.record.error_message) {
            self.note_error(complaint, context);
        }
    }

    /// The current run is to end because of its health: its verdict says so, or a stop that was
    /// recorded for it, and that an agent before this one may not have sent.
    pub fn ends_for_health(&self) -> bool {
        if self.record.desired != Desired::Running {
            return false;
        }
        if self.stop_is_recorded(Slot::Current) {
            let own = self.record.own_stop.as_ref().is_some_and(|stop| stop.unhealthy);
            return own && self.may_live(Slot::Current);
        }
        let spec = &self.record.declared.spec;
        if !self.is_unhealthy() || spec.check().is_none() {
            return false;
        }
        // It would be left alone when it has ended.
        let held = self.record.stuck && spec.restart.stuck == WhenStuck::Hold;
        // On probation it gives way to the one before it, whatever would follow later.
        self.may_go_back() || spec.restarts_unhealthy() && !held
    }

    /// A stop of the current run is for its health, and not for an update.
    pub fn stop_is_for_health(&self) -> bool {
        let replaced = self.needs_update() && !self.pulling;
        self.ends_for_health() && !replaced
    }

    /// The end that `stop` led to is a restart for health: nobody asked for another by now.
    pub(super) fn is_health_restart(&self, stop: &OwnStop, context: Context) -> bool {
        let Record { desired, boot, restarts_asked, restarts_done, .. } = &self.record;
        let this_boot = boot.as_ref().is_none_or(|boot| boot == context.boot);
        let asked = restarts_asked != restarts_done;
        stop.unhealthy && *desired == Desired::Running && this_boot && !asked
    }
}
