//! One workload as the machine holds it: the durable record, what was seen, and what was asked for.
//! Wanted (`record.desired`), seen (`seen`) and asked-for (`step`, `record.own_stop`) are three
//! values; merged, a stop and a crash would look alike.

use std::sync::Arc;

use super::declared::Pull;
use super::effect::{CommitId, StepId};
use super::health::RunHealth;
use super::leaving::Leaving;
use super::names::{BootId, ContainerId, InstanceName, SpecHash};
use super::observed::{Listed, Phase, Reading, Seen};
use super::recent::Before;
use super::record::{BootTick, Desired, Instance, OwedStart, OwnStop, Record, Run};
use super::slow::Slow;
use super::spec_hash::{is_comparable, spec_hash};
use super::time::{Now, Span, Tick};
use super::view::{TaskId, View};
use crate::limits;

/// What every transition may know of the world: both clocks and the boot.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The clocks at the beginning of this turn.
    pub now: Now,
    /// The present boot.
    pub boot: &'a BootId,
}

/// Which container of a workload is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// The one that stands for the workload.
    Current,
    /// The one being made.
    Next,
    /// The first of those that are to go.
    Discard,
    /// The one to return to while the current one has not proved itself.
    Previous,
}

impl Slot {
    /// The container in it may run: the others only do against bargee's will.
    pub fn may_run(self) -> bool {
        matches!(self, Self::Current | Self::Next)
    }
}

/// The step in flight.
#[derive(Clone, PartialEq, Debug)]
pub struct Flight {
    /// Its number.
    pub step: StepId,
    /// What it does to which container.
    pub kind: FlightKind,
    /// Whether it waits for its commit.
    pub gate: Gate,
}

/// Whether a step waits for its commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// It was sent.
    Open,
    /// It is sent when the commit is durable.
    Shut,
    /// The same, but it goes without the commit after that: a start, for which a store that stalls
    /// is no reason to be down.
    Until(Tick),
}

/// What a step in flight does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "one for each operation of the engine")]
pub enum FlightKind {
    Inspect(Slot),
    CheckPaths,
    Create,
    Start(Slot),
    Signal(Slot),
    /// A signal that an operator asked for.
    Kill(TaskId),
    Remove,
    RemoveNetwork,
    /// Not on the engine: the row is being deleted.
    Forget(CommitId),
}

/// How far a pull has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PullPhase {
    /// It has no place yet.
    #[default]
    Queued,
    /// The engine pulls.
    Moving,
    /// All is there, and the disk is waited for.
    Syncing,
}

/// What a workload waits for beside time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hold {
    /// A mount source of the host.
    HostPath(String),
    /// The removal of the workload that held the key before.
    Predecessor,
    /// A container of another store that holds the key.
    StoreMissing(String),
}

/// One workload.
#[derive(Debug)]
pub struct Workload {
    /// What is durable of it.
    pub record: Record,
    /// The hash of what is declared.
    pub wanted_hash: SpecHash,
    /// The record differs from its row.
    pub dirty: bool,
    /// The record says that the workload has finished: written at once, since after a power cut it
    /// would run again.
    pub finished: bool,
    /// A declaration for it is on its way to the store: no step and no write before that ended.
    pub held: bool,
    /// `record.current` as last seen.
    pub seen: Seen,
    /// `record.next` as last seen.
    pub next_seen: Seen,
    /// The first of `record.discards` as last seen.
    pub discard_seen: Seen,
    /// `record.previous` as last seen.
    pub previous_seen: Seen,
    /// Slots about which something new was heard: what was seen of them stays on show, but is no
    /// ground for a decision before they were looked at again.
    pub stale: [bool; 4],
    /// The step in flight.
    pub step: Option<Flight>,
    /// Containers of this workload in the last listing that its record does not know.
    pub strays: Vec<Listed>,
    /// Containers about which something was heard while the step was in flight: what the step read
    /// of them may be older.
    pub heard: Vec<ContainerId>,
    /// Number of the last event, step begin or step end; a listing sent before is older.
    pub touched: u64,
    /// No container of it is recorded, and the last listing may be older than what was heard of it:
    /// what there is of it shows in the next one.
    pub unlisted: bool,
    /// An exit that is found now happened while the event stream was lost.
    pub gap: bool,
    /// The agent was told to end: every exit that is found from now on is a part of that.
    pub ending: bool,
    /// What exits of the last few seconds changed.
    pub recent_exits: Vec<Before>,
    /// When a stop that was sent is followed by SIGKILL.
    pub stop_deadline: Option<Tick>,
    /// The last stop was recorded before it was decided on, and may have been sent by then.
    pub stop_is_repeated: bool,
    /// The run to which SIGKILL was sent because its stop did not end it.
    pub killed: Option<OwnStop>,
    /// A stop of the present run is recorded that nobody wants any more: until then it may end so.
    pub stop_in_doubt: Option<Tick>,
    /// As `stop_deadline`, for the first of the discards.
    pub discard_deadline: Option<Tick>,
    /// The same for the previous one, which somebody else started.
    pub previous_deadline: Option<Tick>,
    /// No removal before this: the store cannot write the intent of it.
    pub removal_rests_until: Option<Tick>,
    /// Why the last of the discards that was tried could not be removed.
    pub discard_error: String,
    /// Discards that could not be removed, and lived when they were last looked at.
    pub live_discards: Vec<InstanceName>,
    /// Discards in a row that could not be removed; all of them were tried when it is their number.
    pub discards_failed: usize,
    /// No call before this, after one whose outcome is unknown or a look that should be repeated.
    pub retry_at: Option<Tick>,
    /// Whether the current container is on its way out.
    pub leaving: Leaving,
    /// Calls in a row whose outcome is unknown.
    pub unknowns: u32,
    /// Its calls time out: it shares one worker with others of its kind.
    pub slow: Slow,
    /// The generation for which the registry was asked already.
    pub pulled: u64,
    /// The rebuild for which the registry was asked already.
    pub pulled_for: u64,
    /// The last rebuild that came to nothing since the agent started.
    pub rebuild_failed: u64,
    /// It did not run when its rebuild was asked for: nor does it while the image is pulled.
    pub rests_until_rebuilt: bool,
    /// The log was told that it is stuck.
    pub told_stuck: bool,
    /// It waits for the pull of its image.
    pub pulling: bool,
    /// How far that has come.
    pub pull_phase: PullPhase,
    /// It is to be started, and as many starts as may be are in flight.
    pub start_waits: bool,
    /// Something is to be done for it, and reconciling is held.
    pub awaits_resume: bool,
    /// What else it waits for.
    pub hold: Option<Hold>,
    /// The start of this container must show on the event stream before that tick.
    pub start_expected: Option<(ContainerId, Tick)>,
    /// The start of the step in flight showed on the event stream already.
    pub start_shown: bool,
    /// The reserved name was said to be taken.
    pub name_clash: bool,
    /// Names under which the engine may still make a container: of a create whose outcome is not
    /// known, or of an agent that died.
    pub cut: Vec<InstanceName>,
    /// Names that are done with: what the journal says of them is settled with the next write of
    /// the record.
    pub settled: Vec<InstanceName>,
    /// Names under which nothing is, but a late create may still make something: the journal has
    /// them looked up once more.
    pub late: Vec<InstanceName>,
    /// The container that this process started or saw running last: why it ends is known.
    pub witnessed: Option<ContainerId>,
    /// A signal that an operator asked for, not yet sent.
    pub kill: Option<(TaskId, String)>,
    /// The network of its application is gone already.
    pub network_removed: bool,
    /// Failures noted since the agent started; tasks compare it.
    pub failures: u64,
    /// When the machine wakes for it.
    pub wake: Option<Tick>,
    /// As last published.
    pub view: Option<Arc<View>>,
}

impl Workload {
    /// A workload as it comes from the store or an apply: nothing seen yet.
    pub fn new(record: Record) -> Self {
        Self {
            wanted_hash: spec_hash(&record.declared),
            told_stuck: record.stuck,
            record,
            dirty: false,
            finished: false,
            held: false,
            strays: Vec::new(),
            heard: Vec::new(),
            seen: Seen::Unknown,
            next_seen: Seen::Unknown,
            discard_seen: Seen::Unknown,
            previous_seen: Seen::Unknown,
            stale: [false; 4],
            step: None,
            touched: 0,
            unlisted: false,
            gap: false,
            ending: false,
            recent_exits: Vec::new(),
            stop_deadline: None,
            stop_is_repeated: false,
            killed: None,
            stop_in_doubt: None,
            discard_deadline: None,
            previous_deadline: None,
            removal_rests_until: None,
            discard_error: String::new(),
            live_discards: Vec::new(),
            discards_failed: 0,
            retry_at: None,
            leaving: Leaving::No,
            unknowns: 0,
            slow: Slow::No,
            pulled: 0,
            pulled_for: 0,
            rebuild_failed: 0,
            rests_until_rebuilt: false,
            pulling: false,
            pull_phase: PullPhase::default(),
            start_waits: false,
            awaits_resume: false,
            hold: None,
            start_expected: None,
            start_shown: false,
            name_clash: false,
            cut: Vec::new(),
            settled: Vec::new(),
            late: Vec::new(),
            witnessed: None,
            kill: None,
            network_removed: false,
            failures: 0,
            wake: None,
            view: None,
        }
    }

    /// The instance in `slot`.
    pub fn instance(&self, slot: Slot) -> Option<&Instance> {
        match slot {
            Slot::Current => self.record.current.as_ref(),
            Slot::Next => self.record.next.as_ref(),
            Slot::Discard => self.record.discards.first(),
            Slot::Previous => self.record.previous.as_ref().map(|p| &p.instance),
        }
    }

    /// What was last seen of `slot`.
    pub fn seen(&self, slot: Slot) -> &Seen {
        match slot {
            Slot::Current => &self.seen,
            Slot::Next => &self.next_seen,
            Slot::Discard => &self.discard_seen,
            Slot::Previous => &self.previous_seen,
        }
    }

    /// `slot` has to be looked at before anything is decided about it.
    pub fn must_look(&self, slot: Slot) -> bool {
        let seen = self.stale[slot as usize] || *self.seen(slot) == Seen::Unknown;
        seen && self.instance(slot).is_some()
    }

    /// Something was heard about `slot`.
    pub fn mark_stale(&mut self, slot: Slot) {
        self.stale[slot as usize] = true;
    }

    /// Replaces what was last seen of `slot`.
    pub fn set_seen(&mut self, slot: Slot, seen: Seen) {
        self.stale[slot as usize] = false;
        match slot {
            Slot::Current => self.seen = seen,
            Slot::Next => self.next_seen = seen,
            Slot::Discard => self.discard_seen = seen,
            Slot::Previous => self.previous_seen = seen,
        }
    }

    /// A process of the container in `slot` may exist.
    pub fn may_live(&self, slot: Slot) -> bool {
        match self.seen(slot) {
            Seen::Unknown => self.instance(slot).is_some(),
            Seen::Absent => false,
            Seen::Present(reading) => reading.phase.is_live(),
        }
    }

    /// The slot that holds the container `id`.
    pub fn slot_of(&self, id: &ContainerId) -> Option<Slot> {
        [Slot::Current, Slot::Next, Slot::Previous, Slot::Discard]
            .into_iter()
            .find(|&slot| self.instance(slot).and_then(|i| i.container.as_ref()) == Some(id))
    }

    /// The first of the discards was removed; while a step is in flight, its answer says so.
    pub fn drop_discard_if_idle(&mut self) {
        if self.step.is_none() {
            self.drop_discard();
        }
    }

    /// The current container differs from what is declared, and may be replaced for it; or it is to
    /// be made anew.
    pub fn needs_update(&self) -> bool {
        let Some(current) = &self.record.current else { return false };
        if self.rebuild_is_due() {
            return true;
        }
        if self.update_rests() {
            return false;
        }
        if !is_comparable(&current.spec_hash) {
            // Made by another version of the rules: an upgrade recreates nothing.
            return current.generation < self.record.generation;
        }
        current.spec_hash != self.wanted_hash && current.generation <= self.record.generation
    }

    /// Something else is wanted by now than to make or start the container in `slot`.
    pub fn is_superseded(&self, slot: Slot) -> bool {
        let other = match slot {
            // While the new image is pulled, what there is is still wanted.
            Slot::Current => self.needs_update() && !self.pulling,
            Slot::Next if self.next_precedes_rebuild() => true,
            Slot::Next | Slot::Discard | Slot::Previous => {
                self.instance(slot).is_some_and(|i| i.spec_hash != self.wanted_hash)
            }
        };
        other || self.record.desired != Desired::Running
    }

    /// What is declared cannot be made without the image that is being pulled.
    pub fn wants_pull(&self) -> bool {
        let record = &self.record;
        self.pulling
            && record.desired == Desired::Running
            && record.declared.spec.pull != Pull::Never
            && (record.current.is_none() || self.needs_update())
    }

    /// Past five refusals it is left alone.
    pub fn given_up(&self) -> bool {
        self.record.refusals >= limits::REFUSALS
    }

    /// The end of the present backoff, if it still lies ahead in this boot.
    pub fn waits_until(&self, context: Context) -> Option<Tick> {
        let wait = self.record.wait.as_ref()?;
        (wait.boot == *context.boot && wait.tick > context.now.tick).then_some(wait.tick)
    }

    // --- readings ------------------------------------------------------------------------------

    /// Takes in an inspect of the container in `slot`.
    pub fn read(&mut self, slot: Slot, reading: Reading, context: Context) {
        self.unknowns = 0;
        self.retry_at = None;
        if let Some(instance) = self.instance_mut(slot)
            && instance.container.as_ref() != Some(&reading.id)
        {
            instance.container = Some(reading.id.clone());
            let name = instance.name.clone();
            self.dirty = true;
            self.note_made(slot, name);
        } else if slot == Slot::Next {
            // Its name was asked for once more.
            self.settled.extend(self.record.next.as_ref().map(|next| next.name.clone()));
        }
        if slot == Slot::Discard && !reading.phase.is_live() {
            self.note_discard_dead();
        }
        let phase = reading.phase.clone();
        let code = reading.exit_code;
        let ran = reading.started_at_ns != 0;
        let health = self.known_health(slot, &reading);
        if slot.may_run() && ran {
            self.note_run(slot, &reading, context);
        }
        if slot == Slot::Previous && !phase.is_live() {
            self.previous_deadline = None;
        }
        if phase == Phase::Running && slot.may_run() {
            self.note_alive(context);
            self.witnessed = Some(reading.id.clone());
        }
        if matches!(phase, Phase::Removing | Phase::Stopping) {
            self.retry_at = Some(context.now.tick + Span(limits::PASSING_STATE_LOOK_MS));
        }
        let witnessed = self.has_witnessed(&reading);
        self.set_seen(slot, Seen::Present(Box::new(reading)));
        if slot == Slot::Current {
            self.note_health(health, context);
        }
        self.note_removing(slot, &phase, context);
        match (slot, phase) {
            (Slot::Next, Phase::Running) => self.promote(),
            (Slot::Next, Phase::Exited) if ran && code == 0 && self.is_job() => {
                self.promote();
                self.judge_exit(context);
            }
            // Cut short by somebody else, or nobody knows by whom: it is started once more.
            (Slot::Next, Phase::Exited) if ran && (self.cut_short(context) || !witnessed) => {
                self.gap = false;
            }
            (Slot::Next, Phase::Exited) if ran && !self.is_superseded(slot) => {
                self.judge_successor(context);
            }
            (Slot::Current, Phase::Running) if self.on_probation() => self.judge_run(context),
            (Slot::Current, Phase::Exited | Phase::Dead | Phase::Gone) if ran => {
                self.judge_exit(context);
            }
            _ => {}
        }
        self.match_generation();
    }

    fn instance_mut(&mut self, slot: Slot) -> Option<&mut Instance> {
        match slot {
            Slot::Current => self.record.current.as_mut(),
            Slot::Next => self.record.next.as_mut(),
            Slot::Discard => self.record.discards.first_mut(),
            Slot::Previous => self.record.previous.as_mut().map(|p| &mut p.instance),
        }
    }

    /// A run is (container id, start time): counted at its first reading, whatever that shows.
    fn note_run(&mut self, slot: Slot, reading: &Reading, context: Context) {
        let since = BootTick { boot: context.boot.clone(), tick: context.now.tick };
        let Some(instance) = self.instance_mut(slot) else { return };
        let known = instance.run.as_ref().filter(|r| r.started_at_ns == reading.started_at_ns);
        let health = known.and_then(|run| run.health.as_ref());
        let run = Run {
            started_at_ns: reading.started_at_ns,
            since: known.map_or(since, |r| r.since.clone()),
            since_ms: known.map_or(context.now.wall_ms, |r| r.since_ms),
            pid: reading.pid,
            ip: reading.ip.clone(),
            ports: reading.ports.clone(),
            image_id: reading.image_id.clone(),
            stop_signal: reading.stop_signal.clone(),
            health: RunHealth::follow(health, reading, context.now.tick),
        };
        let is_new = known.is_none();
        if instance.run.as_ref() != Some(&run) {
            instance.run = Some(run);
            self.dirty = true;
        }
        if is_new {
            if slot == Slot::Current && self.record.owed_start == OwedStart::Restart {
                self.count_restart(context);
            }
            self.record.owed_start = OwedStart::Uncounted;
            self.record.failure_count = 0;
            self.record.refusals = 0;
            self.record.wait = None;
            self.hold = None;
        }
    }

    /// A successor that is made already is the first container of a workload that has no other.
    pub fn promote_made(&mut self) {
        if matches!(self.next_seen, Seen::Present(_)) {
            self.promote_first();
        }
    }

    /// The first container of a workload stands for it as soon as it is made.
    pub fn promote_first(&mut self) {
        if self.record.current.is_none() {
            self.promote();
        }
    }

    /// The generation that the live container matches follows, remade or kept.
    pub fn match_generation(&mut self) {
        let record = &mut self.record;
        let running = self.seen.reading().is_some_and(|r| r.started_at_ns != 0);
        let matches = record.current.as_ref().is_some_and(|c| c.spec_hash == self.wanted_hash);
        if running && matches && record.observed_generation != record.generation {
            record.observed_generation = record.generation;
            self.dirty = true;
        }
    }
}
