//! A world with a made-up clock: an agent that may die at any moment, and a store and an engine
//! that outlive it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use super::super::{Machine, Start};
use crate::domain::directory::Place;
use crate::domain::effect::{
    Answer, Commit, CommitId, Effect, ListId, Op, PullId, Step, StepId, Write,
};
use crate::domain::event::{AskId, Event, Outcome};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::intent::{Entry, Seq};
use crate::domain::names::{BootId, StoreId, Uid};
use crate::domain::observed::{EngineInfo, Phase};
use crate::domain::time::{Now, Tick};
use crate::domain::view::{State, Status, Task, TaskId, Transition, View};

mod asks;

mod engine;

mod fuse;

mod held;

mod store;

pub use engine::{Engine, Made, made, reading};
use fuse::Late;
pub use fuse::{Due, Fuse, Meanwhile, Mishap, Pace, Side, Way};
pub use store::Store;

pub const BOOT: &str = "boot-1";

/// The world.
pub struct World {
    pub machine: Machine,

    // What outlives the agent.
    pub boot: String,
    /// The boot clock.
    pub now: u64,
    pub store: Store,
    pub engine: Engine,
    /// Agents so far; each has a token of its own.
    lives: u64,
    /// Power cuts so far.
    boots: u64,
    last: u64,

    // What dies with it: whatever is under way.
    events: VecDeque<Event>,
    /// Commits that a slow store has not taken yet.
    queued: VecDeque<Commit>,
    /// It writes nothing before this.
    stalled_until: Option<u64>,
    /// Steps whose commit is not durable yet.
    gated: BTreeMap<CommitId, Vec<Step>>,
    /// Steps that were sent while the store could not write.
    unrecorded: BTreeSet<StepId>,
    /// Steps that a slow engine has not taken yet.
    steps: Vec<Step>,
    /// What would have been the answers of calls that are not answered.
    pub withheld: Vec<Event>,
    /// The last commit that a store which hangs was sent.
    pub hung: Option<CommitId>,

    // What people were shown.
    pub answers: BTreeMap<AskId, Answer>,
    pub views: BTreeMap<Uid, Arc<View>>,
    pub tasks: BTreeMap<TaskId, Arc<Task>>,
    pub entries: BTreeMap<Seq, Arc<Entry>>,
    pub status: Arc<Status>,
    pub logs: Vec<String>,
    pub transitions: Vec<Transition>,
    /// Drains that are over.
    pub drained: usize,
    /// Pairs of containers of one workload that live at the same time by what an agent did.
    pub twins: Vec<String>,

    // How it goes.
    pub pace: Pace,
    pub fuse: Option<Fuse>,
    pub mishap: Option<Mishap>,
    pub meanwhile: Option<Meanwhile>,
    /// Names of late creates are taken until they are there.
    pub holds_names: bool,
    /// What left the agent since the fuse was lit.
    pub left: usize,
    /// What the agent died at.
    pub died: Option<String>,
    /// Commits are sent and never answered.
    pub store_hangs: bool,
    /// The engine is asked what it calls itself.
    identify: bool,
    /// Listings are taken and not answered.
    pub hold_list: bool,
    /// Calls beginning with one of these words are taken and not answered.
    pub unanswered: Vec<&'static str>,
}

/// What an agent begins with, for a machine that a test makes itself.
pub fn start(boot: &str, store: &Store) -> Start {
    Start {
        node: "node".to_owned(),
        token: store.token.clone(),
        entries: store.kept.entries.values().cloned().collect(),
        next_seq: Seq(store.kept.last_seq + 1),
        engine: "docker",
        store: StoreId::new("0123456789abcdef"),
        whole: store.kept.whole,
        known_engine: store.kept.engine.clone(),
        boot: BootId::new(boot),
        seed: 7,
        records: store.kept.rows.values().cloned().collect(),
        notices: Vec::new(),
        manifests: Place { path: "/m".into(), is_default: true },
        quiesce: store.kept.quiesce.clone(),
    }
}

impl World {
    /// A world whose engine is up and was listed once.
    pub fn new() -> Self {
        let mut world = Self::before(Store::new(), Engine::default());
        world.feed(Event::StreamUp(EngineInfo::default()));
        world
    }

    /// A world whose agent has just begun, and has not reached the engine.
    pub fn before(mut store: Store, engine: Engine) -> Self {
        let now = 1_000_000;
        store.reopen("token-0");
        let at = Now { tick: Tick(now), wall_ms: now };
        let (machine, effects) = Machine::new(start(BOOT, &store), at);
        let mut world = Self {
            machine,
            boot: BOOT.to_owned(),
            now,
            store,
            engine,
            lives: 0,
            boots: 0,
            last: 0,
            events: VecDeque::new(),
            queued: VecDeque::new(),
            stalled_until: None,
            gated: BTreeMap::new(),
            unrecorded: BTreeSet::new(),
            steps: Vec::new(),
            withheld: Vec::new(),
            hung: None,
            answers: BTreeMap::new(),
            views: BTreeMap::new(),
            tasks: BTreeMap::new(),
            entries: BTreeMap::new(),
            status: Arc::default(),
            logs: Vec::new(),
            transitions: Vec::new(),
            drained: 0,
            twins: Vec::new(),
            pace: Pace::default(),
            fuse: None,
            mishap: None,
            meanwhile: None,
            holds_names: false,
            left: 0,
            died: None,
            store_hangs: false,
            identify: false,
            hold_list: false,
            unanswered: Vec::new(),
        };
        world.take(effects);
        world.go_on();
        world
    }

    /// Both clocks. That of the wall is the engine's too.
    pub fn clocks(&self) -> Now {
        Now { tick: Tick(self.now), wall_ms: self.engine.wall_ms(self.now) }
    }

    // --- death and birth -----------------------------------------------------------------------

    /// The agent dies with everything that was under way, and another one starts on what was
    /// durable. The engine is as it was.
    pub fn crash(&mut self) {
        self.begin_agent();
        self.meet_engine();
    }

    /// The device starts again: nothing runs, and what was under way is not done any more.
    pub fn cut_power(&mut self) {
        self.boots += 1;
        self.boot = format!("boot-{}", self.boots + 1);
        self.engine.die();
        for made in self.engine.containers.values_mut().filter(|made| made.phase.is_live()) {
            made.phase = Phase::Exited;
            made.exit_code = 255;
        }
        self.now = 1_000;
    }

    /// The next agent starts on what is durable; it has not reached the engine.
    pub fn begin_agent(&mut self) {
        self.lives += 1;
        self.events.clear();
        self.queued.clear();
        self.stalled_until = None;
        self.gated.clear();
        self.unrecorded.clear();
        self.steps.clear();
        self.withheld.clear();
        self.engine.hang_up();
        self.hung = None;
        self.answers.clear();
        self.views.clear();
        self.tasks.clear();
        self.entries.clear();
        self.died = None;
        self.left = 0;
        self.store.reopen(&format!("token-{}", self.lives));
        let at = self.clocks();
        let seed = 1_000 + self.lives;
        let (machine, effects) = Machine::new(Start { seed, ..start(&self.boot, &self.store) }, at);
        self.machine = machine;
        self.take(effects);
        self.go_on();
    }

    fn meet_engine(&mut self) {
        if self.engine.gone {
            let away = Fault::new(FaultKind::Away, "connect", "", "refused");
            self.feed(Event::StreamDown(away));
        } else {
            self.feed(Event::StreamUp(EngineInfo::default()));
        }
    }

    /// The agent is told to stop, and writes what it still had to write.
    pub fn tell_to_stop(&mut self) {
        self.feed(Event::Stopping);
        let last = self.machine.flush_all();
        self.take(last);
        self.go_on();
    }

    /// A crash, and whatever a test had set up is over but for containers that cannot be removed.
    pub fn restart_agent(mut self, boot: &str) -> Self {
        self.engine = mem::take(&mut self.engine).recovered();
        self.store = mem::take(&mut self.store).recovered();
        self.logs.clear();
        self.hold_list = false;
        self.store_hangs = false;
        self.unanswered.clear();
        boot.clone_into(&mut self.boot);
        self.crash();
        self
    }

    // --- driving -------------------------------------------------------------------------------

    /// Comes with the next event that is fed, before it.
    pub fn queue(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub fn feed(&mut self, event: Event) {
        self.events.push_back(event);
        self.go_on();
    }

    /// Until nothing is under way, or the agent is dead.
    fn go_on(&mut self) {
        loop {
            self.hear();
            if self.died.is_some() {
                return self.events.clear();
            }
            if let Some(event) = self.events.pop_front() {
                self.step(event);
            } else if !self.queued.is_empty() && self.stalled_until.is_none_or(|at| at <= self.now)
            {
                self.write_queued();
            } else if let Some(step) = self.steps.pop() {
                self.run(step);
            } else {
                return;
            }
        }
    }

    fn step(&mut self, event: Event) {
        let mut released = Vec::new();
        if let Event::Committed(id, result) = &event {
            let gated = self.gated.remove(id).unwrap_or_default();
            if result.is_ok() {
                released = gated;
            }
        }
        let at = self.clocks();
        let was_held = self.machine.quiesced.is_some();
        let effects = self.machine.step(at, event);
        self.check_held(was_held, &effects);
        for step in released {
            self.release(step);
        }
        self.take(effects);
    }

    /// Lets time pass, with every deadline of the machine, the engine and the store on the way, but
    /// not beyond the death of the agent.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.died.is_none() {
            let machine = self.machine.next_deadline().map(|tick| tick.0);
            let others = self.engine.next_late().into_iter().chain(self.stalled_until);
            let next = machine.into_iter().chain(others).min().filter(|at| *at <= end);
            self.now = self.now.max(next.unwrap_or(end));
            self.engine.do_late(Due::In(0).from(self.now), self.now);
            self.engine.end_mortals(self.now);
            self.feed(Event::Deadline);
            if next.is_none() {
                break;
            }
        }
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if self.died.is_some() {
                return;
            }
            match effect {
                Effect::Persist(commit) => self.persist(commit),
                Effect::Run(step) => self.send(step),
                Effect::Release(step) => {
                    let gated = self.gated.values_mut();
                    let released = gated.flat_map(|steps| steps.extract_if(.., |s| s.id == step));
                    let released: Vec<Step> = released.collect();
                    released.into_iter().for_each(|step| self.release(step));
                }
                Effect::Pull(pull, image) => self.pull(pull, &image),
                Effect::CancelPull(pull) => self.engine.calls.push(format!("cancel {}", pull.0)),
                Effect::Identify => self.identify = true,
                Effect::List(id) => self.list(id),
                other => self.show(other),
            }
        }
    }

    fn show(&mut self, effect: Effect) {
        match effect {
            Effect::Answer(ask, answer) => {
                self.answers.insert(ask, answer);
            }
            Effect::Publish(uid, Some(view)) => {
                self.views.insert(uid, view);
            }
            Effect::Publish(uid, None) => {
                self.views.remove(&uid);
            }
            Effect::PublishTask(task) => {
                self.tasks.insert(task.id, task);
            }
            Effect::PublishEntry(seq, Some(entry)) => {
                self.entries.insert(seq, entry);
            }
            Effect::PublishEntry(seq, None) => {
                self.entries.remove(&seq);
            }
            Effect::PublishStatus(status) => self.status = status,
            Effect::Log(_, text) => self.logs.push(text),
            Effect::Drained => self.drained += 1,
            Effect::ReopenStream => self.engine.calls.push("reopen".to_owned()),
            Effect::Transition(change) => {
                // Who hears of it and asks is shown the state after it.
                let shown = self.views.get(&change.uid).map_or(State::Removed, |v| v.state);
                assert_eq!(shown, change.to, "{}", change.key);
                self.transitions.push(change);
            }
            _ => {}
        }
    }

    // --- what leaves the agent -----------------------------------------------------------------

    /// Counts what leaves; whether it gets there.
    fn leaves(&mut self, what: impl FnOnce() -> String) -> bool {
        self.left += 1;
        if let Some(Meanwhile { event, .. }) = self.meanwhile.take_if(|m| m.at == self.left) {
            self.events.push_back(event);
        }
        match self.fuse {
            Some(Fuse { at, side }) if at == self.left => {
                self.died = Some(format!("{side:?} {}", what()));
                side == Side::After
            }
            _ => true,
        }
    }

    /// The mishap that befalls what is just leaving, if it is one that can.
    fn befalls(&mut self, can: impl Fn(Way) -> bool) -> Option<Way> {
        let mishap = self.mishap.take_if(|mishap| mishap.at == self.left && can(mishap.way))?;
        Some(mishap.way)
    }

    fn persist(&mut self, commit: Commit) {
        if self.store_hangs {
            self.hung = Some(commit.id);
            return self.engine.calls.push(format!("commit {}", commit.writes.len()));
        }
        self.queued.push_back(commit);
        if self.pace != Pace::SlowStore {
            self.write_queued();
        }
    }

    /// All that waits is one transaction, unless one of it is bad: then each is one.
    fn write_queued(&mut self) {
        let stalled = self.stalled_until.is_some_and(|at| at > self.now);
        if stalled || self.died.is_some() {
            return;
        }
        let batch: Vec<Commit> = self.queued.drain(..).collect();
        let stalled = self.stalled_until.take().is_some();
        if !stalled && !self.leaves(|| format!("commit of {:?}", writes_of(&batch))) {
            return;
        }
        match self.befalls(|way| matches!(way, Way::Fails | Way::Stalls(_))) {
            Some(Way::Stalls(ms)) => {
                self.stalled_until = Some(self.now + ms);
                self.queued = batch.into();
            }
            Some(Way::Fails) => {
                let failed = |c: Commit| Event::Committed(c.id, Err("a mishap".to_owned()));
                self.events.extend(batch.into_iter().map(failed));
            }
            _ => {
                for commit in batch {
                    let result = self.store.commit(&commit);
                    self.events.push_back(Event::Committed(commit.id, result));
                }
            }
        }
    }

    fn list(&mut self, id: ListId) {
        if self.engine.gone || !self.leaves(|| "list".to_owned()) {
            return;
        }
        if std::mem::take(&mut self.identify) {
            self.events.push_back(Event::Identity(self.engine.identity.clone()));
        }
        let listing = Event::Listing(id, self.engine.list(self.now));
        if self.hold_list {
            self.withheld.push(listing);
        } else {
            self.events.push_back(listing);
        }
    }

    fn pull(&mut self, pull: PullId, image: &str) {
        if !self.leaves(|| format!("pull {image}")) {
            return;
        }
        let result = self.engine.pull(image);
        let done = Event::PullDone(pull, result);
        if self.unanswered.contains(&"pull") {
            self.withheld.push(done);
        } else {
            self.events.push_back(done);
        }
    }

    fn send(&mut self, step: Step) {
        if self.machine.conditions.contains_key("storeFailing") {
            self.unrecorded.insert(step.id);
        }
        match step.after {
            Some(commit) => self.gated.entry(commit).or_default().push(step),
            None => self.release(step),
        }
    }

    fn release(&mut self, step: Step) {
        if self.pace == Pace::SlowEngine {
            self.steps.push(step);
        } else if self.died.is_none() {
            self.run(step);
        }
    }

    fn run(&mut self, step: Step) {
        if self.engine.gone {
            let away = Fault::new(FaultKind::Away, "connect", "", "refused");
            return self.events.push_back(Event::StepDone(step.id, Err(away)));
        }
        if !self.leaves(|| format!("call of {:?}", step.op)) {
            if let Some(Fuse { side: Side::Late(due), .. }) = self.fuse {
                self.take_on(step.op, due, None);
            }
            return;
        }
        self.check_intent(&step);
        let fault = |kind| Err(Fault::new(kind, "call", "x", "a mishap"));
        let result = match self.befalls(|way| !matches!(way, Way::Fails | Way::Stalls(_))) {
            None | Some(Way::Fails | Way::Stalls(_)) => {
                let late = self.engine.fault("late");
                let result = self.call(&step.op);
                // Or it is done, and the answer comes too late.
                late.map_or(result, Err)
            }
            Some(Way::NotDone(kind)) => fault(kind),
            Some(Way::Done(kind)) => self.call(&step.op).and_then(|_| fault(kind)),
            Some(Way::DoneLater(kind, due)) => {
                self.take_on(step.op, due, None);
                fault(kind)
            }
            Some(Way::Slow(due)) => return self.take_on(step.op, due, Some(step.id)),
        };
        self.hear();
        let call = self.engine.calls.last().map_or("", String::as_str);
        let answered = !self.unanswered.iter().any(|word| call.starts_with(word));
        let answer = Event::StepDone(step.id, result);
        if answered { self.events.push_back(answer) } else { self.withheld.push(answer) }
    }

    /// No intent, no step; but a store that cannot write keeps nothing from being made.
    fn check_intent(&self, step: &Step) {
        match &step.op {
            Op::Create(new) => {
                let intended = self.store.intends_create(new.name.as_str());
                let may = self.unrecorded.contains(&step.id);
                assert!(intended || may, "a create that nothing tells of: {}", new.name);
            }
            Op::Remove(target) => {
                let names = self.engine.containers.iter();
                let mut names =
                    names.filter(|(name, m)| *name == target || m.id.as_str() == target);
                let intended = names.all(|(name, _)| self.store.intends_removal(name));
                assert!(intended, "a removal that nothing tells of: {target}");
            }
            _ => {}
        }
    }

    fn call(&mut self, op: &Op) -> Result<Outcome, Fault> {
        let before = self.engine.twins().is_some();
        let result = self.engine.carry_out(op, self.now);
        let made = !before && matches!(op, Op::Start(..));
        if let Some((a, b)) = self.engine.twins().filter(|_| made) {
            self.twins.push(format!("{a:?} and {b:?}"));
        }
        result
    }

    /// The engine does this later. A look has nothing to do.
    fn take_on(&mut self, op: Op, due: Due, step: Option<StepId>) {
        if step.is_some() || !matches!(op, Op::Inspect(_)) {
            let due = due.from(self.now);
            self.engine.late.push(Late { op, due, step, holds_name: self.holds_names });
        }
    }

    /// What the engine tells: events first, then answers to calls that took long.
    fn hear(&mut self) {
        let shown = mem::take(&mut self.engine.shown);
        self.events.extend(shown.into_iter().map(Event::Container));
        self.events.append(&mut mem::take(&mut self.engine.answers).into());
    }

    /// What was not answered is answered now.
    pub fn answer_late(&mut self) {
        self.unanswered.clear();
        for answer in mem::take(&mut self.withheld) {
            self.feed(answer);
        }
    }
}

fn writes_of(batch: &[Commit]) -> Vec<&Write> {
    batch.iter().flat_map(|commit| &commit.writes).collect()
}
