//! Updates on probation. The container that an update took the place of is kept, stopped, until the
//! new one has proved itself: by 30 s of RUNNING, healthy where a check is declared, or as a job by
//! an exit with 0. A crash, a refused start or an unhealthy verdict before that brings the old one
//! back, and the update is tried again later.

use super::backoff;
use super::declared::{Port, Pull, RestartPolicy};
use super::judge::exit_of;
use super::lifecycle::{Context, Slot, Workload};
use super::observed::{Reading, Seen};
use super::record::{BootTick, Desired, Exit, FailedUpdate, Previous, Retry};
use super::restart;
use super::time::{Span, Tick};
use crate::limits;

impl Workload {
    // --- what is known of it -------------------------------------------------------------------

    /// The current container has not proved itself, and there is one to return to.
    pub fn on_probation(&self) -> bool {
        self.record.previous.is_some()
    }

    /// A failure of the current container now brings the one before it back.
    pub fn may_go_back(&self) -> bool {
        self.on_probation() && self.record.desired == Desired::Running
    }

    /// What is on probation is no other version, but the same one made anew by a rebuild.
    pub fn is_remade(&self) -> bool {
        let (current, previous) = (&self.record.current, &self.record.previous);
        let pair = current.as_ref().zip(previous.as_ref());
        pair.is_some_and(|(current, previous)| current.spec_hash == previous.instance.spec_hash)
    }

    /// It comes to an end with exit 0.
    pub(super) fn is_job(&self) -> bool {
        self.record.declared.spec.restart.policy != RestartPolicy::Always
    }

    /// The failed update to the present generation.
    pub fn failed_update(&self) -> Option<&FailedUpdate> {
        let failed = self.record.failed_update.as_ref();
        failed.filter(|failed| failed.generation == self.record.generation)
    }

    /// The update to the present generation failed and is not tried at the moment.
    pub fn update_rests(&self) -> bool {
        self.failed_update().is_some_and(|failed| failed.retry != Retry::Now)
    }

    /// When a failed update is tried again.
    pub fn update_retry_at(&self) -> Option<Tick> {
        match &self.failed_update()?.retry {
            Retry::At(at) => Some(at.tick),
            Retry::Never | Retry::Now => None,
        }
    }

    /// What an update should return to: the current container, or the one before it. One that ended
    /// by itself before it ever proved itself is no better than anything new.
    pub fn has_return(&self) -> bool {
        let Some(current) = &self.record.current else { return false };
        let Some(reading) = self.seen.reading() else { return self.on_probation() };
        let cut = self.record.last_exit.as_ref().is_some_and(|exit| {
            exit.interrupted
                && exit.container == reading.id
                && exit.started_at_ns == reading.started_at_ns
        });
        self.on_probation() || reading.phase.is_live() || current.proved || cut
    }

    /// What is declared now is what the previous container was made from, its image may stay, and
    /// it only ended because it was replaced.
    pub fn wants_previous(&self) -> bool {
        let Some(previous) = &self.record.previous else { return false };
        let image_stays = self.record.declared.spec.pull != Pull::Always && !self.rebuild_is_due();
        image_stays
            && previous.instance.spec_hash == self.wanted_hash
            && previous.last_exit.as_ref().is_some_and(|exit| exit.interrupted)
    }

    /// Host ports that an update needs and that the container in place does not hold.
    pub(super) fn ports_to_check(&self) -> Vec<Port> {
        if !self.needs_update() {
            return Vec::new();
        }
        let reading = self.seen.reading().filter(|reading| reading.phase.is_live());
        let held: Vec<_> =
            reading.iter().flat_map(|r| &r.ports).filter_map(|p| host_port(p)).collect();
        let wanted = self.record.declared.spec.ports.iter();
        let is_new = |port: &&Port| {
            port.host_port.is_some_and(|number| !held.contains(&(number, port.protocol.as_str())))
        };
        wanted.filter(is_new).cloned().collect()
    }

    // --- there ---------------------------------------------------------------------------------

    /// The successor stands for the workload from now on. What it takes the place of is kept,
    /// unless that has not proved itself either: then the one before it is.
    pub(super) fn promote(&mut self) {
        let Some(next) = self.record.next.take() else { return };
        let seen = std::mem::take(&mut self.next_seen);
        let old_seen = std::mem::replace(&mut self.seen, seen);
        self.stale[Slot::Current as usize] = false;
        self.stale[Slot::Next as usize] = false;
        let last_exit = self.record.last_exit.take();
        self.note_rebuilt(next.rebuild);
        if let Some(old) = self.record.current.replace(next) {
            if self.on_probation() {
                self.discard(old, old_seen);
            } else {
                let observed_generation = self.record.observed_generation;
                self.record.previous =
                    Some(Previous { instance: old, last_exit, observed_generation });
                self.set_seen(Slot::Previous, old_seen);
            }
        }
        self.record.own_stop = None;
        self.record.restarts_done = self.record.restarts_asked;
        self.stop_deadline = None;
        self.dirty = true;
    }

    /// The current container has proved itself: nothing leads back any more.
    pub(super) fn prove(&mut self) {
        let Some(current) = &mut self.record.current else { return };
        // Written, though it costs a row for each start that lasts: an agent that died would else
        // take what ended meanwhile for something that never worked, and give it up for an update.
        current.proved = true;
        let is_wanted = current.spec_hash == self.wanted_hash;
        if is_wanted && self.record.failed_update.take().is_some() {
            self.record.error_message.clear();
        }
        if let Some(previous) = self.record.previous.take() {
            let seen = self.take_previous_seen();
            self.discard(previous.instance, seen);
        }
        self.dirty = true;
    }

    /// The previous container is gone: nothing leads back any more.
    pub(super) fn lose_previous(&mut self) {
        self.record.previous = None;
        self.take_previous_seen();
        self.dirty = true;
    }

    fn take_previous_seen(&mut self) -> Seen {
        let stale = self.stale[Slot::Previous as usize];
        let seen = if stale { Seen::Unknown } else { std::mem::take(&mut self.previous_seen) };
        self.set_seen(Slot::Previous, Seen::Unknown);
        self.previous_deadline = None;
        seen
    }

    // --- and back ------------------------------------------------------------------------------

    /// The previous container stands for the workload again, as it was left; the current one goes.
    pub fn go_back(&mut self) {
        let Some(previous) = self.record.previous.take() else { return };
        // A run of it that somebody else began is looked at as that of the current one.
        let lives = self.may_live(Slot::Previous);
        let seen = self.take_previous_seen();
        let seen = if lives { Seen::Unknown } else { seen };
        self.discard_slot(Slot::Current);
        self.record.last_exit = previous.last_exit;
        if let (Some(exit), Some(reading)) = (&mut self.record.last_exit, seen.reading())
            && exit.interrupted
        {
            // Whatever somebody did with it in between was not its own end.
            exit.started_at_ns = reading.started_at_ns;
        }
        self.record.observed_generation = previous.observed_generation;
        self.record.current = Some(previous.instance);
        self.set_seen(Slot::Current, seen);
        self.record.own_stop = None;
        self.stop_deadline = None;
        self.record.owed_start = Default::default();
        self.record.wait = None;
        self.record.streak = 0;
        self.record.refusals = 0;
        self.record.failure_count = 0;
        self.hold = None;
        self.dirty = true;
    }

    /// The update or rebuild failed: its container goes, the old one is started again where it was
    /// stopped.
    pub fn fail_update(&mut self, cause: String, refused: bool, context: Context) {
        self.fail_rebuild();
        self.discard_slot(Slot::Next);
        if !self.may_live(Slot::Current) {
            // The one that was to be replaced has not proved itself either.
            self.go_back();
        }
        self.note_failed_update(cause, refused, context);
    }

    /// The current container failed on probation: the one before it comes back. Of a generation
    /// that is not declared any more, nothing else is said.
    pub fn fail_probation(&mut self, cause: String, refused: bool, context: Context) {
        let current = self.record.current.as_ref();
        let is_declared = current.is_none_or(|current| current.spec_hash == self.wanted_hash);
        self.go_back();
        if is_declared {
            self.discard_slot(Slot::Next);
            self.note_failed_update(cause, refused, context);
        } else {
            self.note_error(cause, context);
        }
    }

    /// The previous container runs, and the current one does not.
    pub fn take_return(&mut self, context: Context) {
        if self.wants_previous() {
            return self.go_back();
        }
        let exit = self.seen.reading().map(|reading| cause_of(&exit_of(reading, false)));
        let cause = exit.unwrap_or_else(|| "the container vanished".to_owned());
        self.fail_probation(cause, false, context);
    }

    fn note_failed_update(&mut self, cause: String, refused: bool, context: Context) {
        self.note_error(cause.clone(), context);
        self.record.wait = None;
        self.hold = None;
        self.pulling = false;
        // The registry may have another image by then.
        self.pulled = 0;
        let tries = self.failed_update().map_or(0, |failed| failed.tries).saturating_add(1);
        self.record.failed_update = None;
        if !self.needs_update() || self.rebuild_is_due() {
            // What there is may be all that is declared, only not anew.
            return;
        }
        let tick = context.now.tick + backoff::update_delay(tries);
        let retry = match refused {
            true => Retry::Never,
            false => Retry::At(BootTick { boot: context.boot.clone(), tick }),
        };
        self.record.failed_update = Some(FailedUpdate {
            generation: self.record.generation,
            cause,
            at_ms: context.now.wall_ms,
            tries,
            retry,
        });
    }

    /// The wait of a failed update is over: it is tried again.
    pub fn take_up_update(&mut self, context: Context) {
        let waits = self.update_retry_at().is_none_or(|at| at > context.now.tick);
        if waits || self.is_to_come_back() {
            return;
        }
        if let Some(failed) = &mut self.record.failed_update {
            failed.retry = Retry::Now;
            self.dirty = true;
        }
    }

    /// The version that a failed update left in place is to be looked at or started first, so that
    /// it is not down for as long as another try is prepared. One that does not come back at once
    /// holds nothing up.
    fn is_to_come_back(&self) -> bool {
        let record = &self.record;
        if record.desired != Desired::Running || self.must_look(Slot::Current) {
            return true;
        }
        let interrupted = record.last_exit.as_ref().is_some_and(|exit| exit.interrupted);
        let held_up = record.failure_count > 0 || self.hold.is_some();
        interrupted && !held_up && !self.may_live(Slot::Current)
    }

    /// The wait of a failed update was counted by the clock of another boot: it waits as after its
    /// first failure, so that a device which is never on for an hour tries it too.
    pub fn rearm_update(&mut self, context: Context) {
        if let Some(FailedUpdate { retry: Retry::At(at), .. }) = &mut self.record.failed_update
            && at.boot != *context.boot
        {
            let tick = context.now.tick + Span(limits::UPDATE_WAITS_MS[0]);
            *at = BootTick { boot: context.boot.clone(), tick };
            self.dirty = true;
        }
    }

    // --- judging -------------------------------------------------------------------------------

    /// This process knows of the run that ended. The agent before it may have died together with
    /// the engine, which then ended the container.
    pub(super) fn has_witnessed(&self, reading: &Reading) -> bool {
        self.witnessed.as_ref() == Some(&reading.id)
    }

    /// An exit of the current container that says nothing about it: it is on probation, and nobody
    /// saw it end.
    pub(super) fn is_unexplained(&self, reading: &Reading) -> bool {
        let succeeded = reading.exit_code == 0 && self.is_job();
        self.on_probation() && !succeeded && !self.has_witnessed(reading)
    }

    /// The successor ended before it was seen running.
    pub(super) fn judge_successor(&mut self, context: Context) {
        let Some(reading) = self.next_seen.reading() else { return };
        let cause = cause_of(&exit_of(reading, false));
        self.remember_before_exit(context);
        self.fail_update(cause, false, context);
    }

    /// Judges a reading in which the current container runs on probation: the one place that says
    /// what a run has to show, beside an end of it ([`Workload::judge_on_probation`]).
    pub(super) fn judge_run(&mut self, context: Context) {
        if self.is_stable(context) {
            self.prove();
        }
    }

    /// Whether `exit`, which is no interruption, ends the probation of the current container.
    pub(super) fn judge_on_probation(&mut self, exit: &Exit, context: Context) -> bool {
        let succeeded = exit.code == Some(0) && self.is_job() && !exit.unhealthy;
        if succeeded || !self.may_go_back() {
            return false;
        }
        if exit.code.is_none() {
            self.set_seen(Slot::Current, Seen::Absent);
        }
        if exit.unhealthy {
            // What its check complained of was noted before it was stopped for that.
            self.fail_probation(self.record.error_message.clone(), false, context);
        } else {
            self.remember_before_exit(context);
            self.fail_probation(cause_of(exit), false, context);
        }
        true
    }
}

/// Number and protocol of the host's side of a port, told as `0.0.0.0:8080->80/tcp`.
fn host_port(published: &str) -> Option<(u16, &str)> {
    let (host, inner) = published.split_once("->")?;
    let (_, number) = host.rsplit_once(':')?;
    let (_, protocol) = inner.rsplit_once('/')?;
    Some((number.parse().ok()?, protocol))
}

/// Why an exit is the failure of an update.
fn cause_of(exit: &Exit) -> String {
    let ended = || format!("exitCode=0 before it had run for {}", Span(limits::STABLE_MS));
    restart::crash_text(exit).unwrap_or_else(ended)
}
