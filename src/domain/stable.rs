//! Runs that last: what 30 s of a good run prove, and what they make forgotten.

use super::lifecycle::{Context, Slot, Workload};
use super::observed::Phase;
use super::record::Run;
use super::time::{Span, Tick};
use crate::limits;

impl Workload {
    /// The run of the current container, if it goes on.
    fn present_run(&self, context: Context) -> Option<&Run> {
        let running = self.seen.reading().is_some_and(|r| r.phase == Phase::Running);
        let run = self.record.current.as_ref()?.run.as_ref()?;
        (running && run.since.boot == *context.boot).then_some(run)
    }

    /// Since when the current container runs without a break, as far as is known.
    pub fn runs_since(&self, context: Context) -> Option<Tick> {
        self.present_run(context).map(|run| run.since.tick)
    }

    /// When the current run will have been well for long enough to prove the container, or to
    /// forget its past, if there is any.
    pub fn stable_at(&self, context: Context) -> Option<Tick> {
        let unproved = self.record.current.as_ref().is_some_and(|current| !current.proved);
        let run = self.present_run(context).filter(|_| unproved || self.has_past());
        run.and_then(|run| self.well_since(run)).map(|since| since + Span(limits::STABLE_MS))
    }

    /// The current run has been well for long enough.
    pub(super) fn is_stable(&self, context: Context) -> bool {
        self.stable_at(context).is_some_and(|at| at <= context.now.tick)
    }

    /// `run` was well for long enough, now or before.
    pub(super) fn was_stable(&self, run: &Run, now: Tick) -> bool {
        match self.checked(run) {
            None => now.since(run.since.tick) >= Span(limits::STABLE_MS),
            Some(health) => health.is_proved(now),
        }
    }

    /// There is a past to forget: short runs, or an error that is not the present one.
    fn has_past(&self) -> bool {
        self.record.streak > 0 || self.record.error_message != self.present_error()
    }

    /// What is wrong beside all that a stable run has outlived: that of a failed update holds until
    /// it has proved itself, a rebuild or a newer generation.
    fn present_error(&self) -> &str {
        self.failed_update().map_or("", |failed| failed.cause.as_str())
    }

    /// Forgets what a stable run has outlived. A container on probation is looked at first, since
    /// nothing leads back to the one before it afterwards.
    pub fn settle(&mut self, context: Context) {
        self.end_stuck(context);
        self.doubt_stop(context);
        if !self.is_stable(context) || self.stale[Slot::Current as usize] {
            return;
        }
        if self.on_probation() {
            return self.mark_stale(Slot::Current);
        }
        self.prove();
        self.record.streak = 0;
        self.record.error_message = self.present_error().to_owned();
        self.dirty = true;
    }
}
