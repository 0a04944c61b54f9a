//! Judging: what an exit, a vanished container, a failed try or a failed update means for the
//! workload. Each exit is one (container id, start time) and is judged once.

use super::backoff;
use super::fault::{Fault, FaultKind};
use super::lifecycle::{Context, Slot, Workload};
use super::names::ContainerId;
use super::observed::{Phase, Reading, Seen};
use super::record::{BootTick, Exit, OwedStart};
use super::restart;
use super::time::Span;
use crate::limits;

impl Workload {
    /// Judges the exit that `seen` shows, once for each (container id, start time).
    pub(super) fn judge_exit(&mut self, context: Context) {
        let Some(reading) = self.seen.reading() else { return };
        let same = |c: &ContainerId, at: u64| *c == reading.id && at == reading.started_at_ns;
        let judged = self.record.last_exit.as_ref();
        if judged.is_some_and(|e| same(&e.container, e.started_at_ns)) {
            return;
        }
        let own = self.record.own_stop.as_ref();
        let own = own.filter(|s| same(&s.container, s.started_at_ns));
        let unhealthy = own.is_some_and(|stop| self.is_health_restart(stop, context));
        let own = own.is_some();
        let cut = self.cut_short(context) || self.is_unexplained(reading);
        let exit = Exit { unhealthy, ..exit_of(reading, !unhealthy && (own || cut)) };
        self.gap = false;
        if own {
            self.record.own_stop = None;
            self.stop_deadline = None;
            self.record.restarts_done = self.record.restarts_asked;
        }
        self.take_exit(exit, context);
    }

    /// It runs, so its next exit is a later one: not one of the time when the stream was lost, and
    /// not one of another boot, whoever started it in this one.
    pub(super) fn note_alive(&mut self, context: Context) {
        self.gap = false;
        if self.record.boot.as_ref() != Some(context.boot) {
            self.record.boot = Some(context.boot.clone());
            self.dirty = true;
        }
    }

    /// An exit found now is an interruption: of another boot, of a lost event stream, or of a
    /// shutdown, whatever was seen since that began.
    pub(super) fn cut_short(&self, context: Context) -> bool {
        self.ending
            || self.gap
            || self.record.boot.as_ref().is_some_and(|boot| boot != context.boot)
    }

    /// A container that is gone although nobody of ours removed it.
    pub(super) fn judge_vanished(&mut self, context: Context) {
        let Some(current) = self.record.current.clone() else { return };
        let Some(container) = current.container else { return };
        let started_at_ns = current.run.as_ref().map_or(0, |run| run.started_at_ns);
        if started_at_ns == 0 && !self.cut_short(context) && !self.is_superseded(Slot::Current) {
            return self.judge_never_ran(context);
        }
        let same = |c: &ContainerId, at: u64| *c == container && at == started_at_ns;
        let own = self.record.own_stop.as_ref();
        let own = own.is_some_and(|s| same(&s.container, s.started_at_ns));
        let judged = self.record.last_exit.as_ref();
        let judged = judged.is_some_and(|e| same(&e.container, e.started_at_ns));
        if own || !judged {
            let exit = Exit {
                container,
                started_at_ns,
                code: None,
                oom_killed: false,
                error: String::new(),
                // What never ran was not lost, and what was being stopped is where it should be.
                // One that ended with another boot was interrupted, kept by the engine or not.
                interrupted: own || self.cut_short(context) || started_at_ns == 0,
                unhealthy: false,
            };
            self.record.own_stop = None;
            self.stop_deadline = None;
            self.take_exit(exit, context);
        }
        self.gap = false;
    }

    /// What never ran was not lost. Made again at once, it might vanish as fast as it is made.
    fn judge_never_ran(&mut self, context: Context) {
        if self.seen == Seen::Absent || self.given_up() {
            return;
        }
        let cause = "the container vanished before it ran".to_owned();
        if self.may_go_back() {
            self.set_seen(Slot::Current, Seen::Absent);
            return self.fail_probation(cause, false, context);
        }
        self.record.failure_count = self.record.failure_count.saturating_add(1);
        self.note_error(cause, context);
        self.back_off(context);
    }

    fn take_exit(&mut self, exit: Exit, context: Context) {
        if !exit.interrupted && self.judge_on_probation(&exit, context) {
            return;
        }
        let policy = self.record.declared.spec.restart.policy;
        self.record.owed_start = OwedStart::Uncounted;
        if exit.interrupted {
            self.record.wait = None;
        } else {
            // What its check complained of is noted already, and how it ended then says nothing.
            if !exit.unhealthy {
                self.remember_before_exit(context);
                if let Some(text) = restart::crash_text(&exit) {
                    self.note_error(text, context);
                }
            }
            if restart::runs_again(policy, &exit) {
                self.record.owed_start = OwedStart::Restart;
                self.back_off_after_run(context);
            } else {
                self.finished = true;
                // No try follows those that failed before this exit was judged.
                self.record.failure_count = 0;
                self.record.refusals = 0;
                if exit.code == Some(0) && !exit.unhealthy {
                    self.prove();
                }
            }
        }
        self.record.last_exit = Some(exit);
        self.dirty = true;
    }

    /// A run that was well for 30 s or more starts again at once, unless it is stuck; a shorter one
    /// waits.
    fn back_off_after_run(&mut self, context: Context) {
        let run = self.record.current.as_ref().and_then(|c| c.run.as_ref());
        let ran = run.filter(|run| run.since.boot == *context.boot);
        let stable = ran.is_some_and(|run| self.was_stable(run, context.now.tick));
        if stable {
            self.record.streak = 0;
            self.record.wait = None;
        }
        if !stable || self.record.stuck {
            self.back_off(context);
        }
    }

    /// No try before the next delay of the backoff is over.
    pub fn back_off(&mut self, context: Context) {
        let restart = self.record.declared.spec.restart;
        let delay = match self.record.stuck {
            true => restart.max_delay,
            false => backoff::delay(restart, self.record.streak),
        };
        self.record.streak = self.record.streak.saturating_add(1);
        let tick = context.now.tick + delay;
        self.record.wait = Some(BootTick { boot: context.boot.clone(), tick });
        self.dirty = true;
    }

    /// Notes a failure where people look for it.
    pub fn note_error(&mut self, text: String, context: Context) {
        self.failures += 1;
        self.record.error_message.clone_from(&text);
        self.record.last_error = text;
        self.record.last_error_at_ms = context.now.wall_ms;
        self.dirty = true;
    }

    // --- failed tries --------------------------------------------------------------------------

    /// A pull, create or start for the container in `slot` failed with something that says what is
    /// wrong.
    pub fn fail_try(&mut self, slot: Slot, fault: &Fault, context: Context) {
        let refused = fault.kind == FaultKind::Refused;
        if slot == Slot::Next && self.needs_update() {
            return self.fail_update(fault.to_string(), refused, context);
        }
        if self.may_go_back() && (slot == Slot::Current || self.record.current.is_none()) {
            return self.fail_probation(fault.to_string(), refused, context);
        }
        if slot == Slot::Next {
            self.fail_rebuild();
        }
        self.record.failure_count = self.record.failure_count.saturating_add(1);
        if refused {
            self.record.refusals = self.record.refusals.saturating_add(1);
        } else {
            self.record.refusals = 0;
        }
        self.note_error(fault.to_string(), context);
        self.back_off(context);
    }

    /// A call whose outcome is unknown: look again after a while, longer each time.
    pub fn note_unknown(&mut self, context: Context) {
        self.unknowns = self.unknowns.saturating_add(1);
        let factor = u64::from(self.unknowns.min(6));
        self.retry_at = Some(context.now.tick + Span(limits::ENGINE_LOOK_MS * factor));
    }
}

/// The exit that a reading shows.
pub(super) fn exit_of(reading: &Reading, interrupted: bool) -> Exit {
    let is_gone = reading.phase == Phase::Gone;
    let gone = || "its process is gone, though the engine says that it runs".to_owned();
    Exit {
        container: reading.id.clone(),
        started_at_ns: reading.started_at_ns,
        code: (!is_gone).then_some(reading.exit_code),
        oom_killed: reading.oom_killed,
        error: if is_gone { gone() } else { reading.error.clone() },
        interrupted,
        unhealthy: false,
    }
}
