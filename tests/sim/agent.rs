//! The shell around the real machine: what `agent/monitor.rs` and its threads do, on the agenda of
//! the world. It keeps the same places and the same order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use bargee::domain::directory::Place;
use bargee::domain::effect::{Commit, CommitId, Effect, ListId, Op, PullId, Step, StepId};
use bargee::domain::event::{AskId, Event, Request};
use bargee::domain::intent::{Entry, Seq};
use bargee::domain::machine::{Machine, Start};
use bargee::domain::names::{InstanceName, StoreId, Uid};
use bargee::domain::view::{Status, Task, TaskId, View};
use bargee::limits;

use super::acts::Side;
use super::world::{Happening, World};

/// What the store calls itself.
pub const STORE: &str = "0123456789abcdef";
/// What the device is called.
pub const NODE: &str = "node";

/// One agent, from its start to its death.
pub struct Agent {
    pub life: u64,
    pub machine: Machine,
    /// Commits that wait until the writer is free.
    batch: Vec<Commit>,
    /// Those that it is about to write.
    writing: Vec<Commit>,
    /// Those of which the monitor has not heard yet.
    unheard: BTreeSet<CommitId>,
    /// Steps whose commit is not durable yet.
    gated: BTreeMap<CommitId, Vec<Step>>,
    jobs: VecDeque<Job>,
    jobs_out: usize,
    starts: VecDeque<Step>,
    starts_out: BTreeSet<StepId>,
    pulls: VecDeque<(PullId, Arc<str>)>,
    pulls_out: BTreeSet<PullId>,
    /// Instances that no row knew for certain when it started: what an earlier agent had in flight,
    /// and what it made while the store could not write.
    pub replays: BTreeSet<InstanceName>,
    last_ask: u64,
    /// The engine is asked what it calls itself ahead of the next listing.
    pub identifies: bool,
    /// It was told to end, and to stop its workloads before that.
    pub drains: bool,
    /// It said that it has stopped them, or as many as it could.
    drained: bool,
    /// It was told to stop.
    pub stopping: bool,
    /// Steps that were sent while the store was known to fail.
    pub unrecorded: BTreeSet<StepId>,

    pub views: BTreeMap<Uid, Arc<View>>,
    pub tasks: BTreeMap<TaskId, Arc<Task>>,
    pub entries: BTreeMap<Seq, Arc<Entry>>,
    pub status: Arc<Status>,
}

enum Job {
    Step(Step),
    List(ListId),
}

impl World {
    // --- birth and death -----------------------------------------------------------------------

    /// An agent starts on what is durable.
    pub fn start_agent(&mut self) {
        if self.agent.is_some() {
            return;
        }
        self.lives += 1;
        let token = format!("token-{}", self.lives);
        self.store.open(&token);
        let kept = &self.store.kept;
        let start = Start {
            node: NODE.to_owned(),
            engine: "docker",
            store: StoreId::new(STORE),
            whole: kept.whole,
            known_engine: kept.engine.clone(),
            quiesce: kept.quiesce.clone(),
            boot: self.boot(),
            token,
            entries: kept.entries.values().cloned().collect(),
            next_seq: Seq(kept.last_seq + 1),
            seed: self.lives * 1_000,
            records: kept.rows.values().map(|row| (**row).clone()).collect(),
            notices: Vec::new(),
            manifests: Place { path: "/m".into(), is_default: true },
        };
        let (machine, effects) = Machine::new(start, self.clocks());
        let life = self.lives;
        self.note(|| format!("agent {life} starts"));
        let mut agent = Agent::new(life, machine);
        let entries = self.store.kept.entries.values();
        agent.replays.extend(entries.filter_map(|entry| entry.intent.instance().cloned()));
        let unknown = self.engine.model.all().filter(|made| !self.store.is_known(&made.name));
        agent.replays.extend(unknown.map(|made| InstanceName::new(made.name.as_str())));
        self.agent = Some(agent);
        self.apply(effects);
        self.dispatch();
        self.check_start();
        let soon = self.moment();
        self.after(soon, Happening::Connects(life));
        let soon = self.moment();
        self.after(soon, Happening::Looks(life));
    }

    /// The agent is gone with everything that it had under way; what has left it goes on. A write
    /// that was under way is durable, or not.
    pub fn kill_agent(&mut self, durable: bool) {
        let Some(agent) = self.agent.take() else { return };
        let life = agent.life;
        self.note(|| format!("agent {life} dies"));
        if durable && !agent.writing.is_empty() {
            self.store.commit(&agent.writing);
        }
        self.faults.fuse = None;
        self.take_back(|one| match one {
            Happening::Hears(..)
            | Happening::Connects(_)
            | Happening::Shows(..)
            | Happening::Looks(_)
            | Happening::List(..)
            | Happening::Pulled(..)
            | Happening::Write(_) => true,
            Happening::Call(call) => matches!(call.op, Op::Inspect(_) | Op::CheckPaths(_)),
            _ => false,
        });
        for one in self.under_way() {
            if let Happening::Call(call) = one {
                call.waits = None;
            }
        }
        self.engine.stream = None;
        self.engine.left_out.clear();
        self.checkers.agent_died();
    }

    /// The agent is told to stop: what is in flight may end, it writes what it had to write, and it
    /// is gone.
    pub fn stop_agent(&mut self) {
        if self.agent.is_none() {
            return;
        }
        self.feed(Event::Stopping);
        let Some(agent) = &mut self.agent else { return };
        agent.stopping = true;
        let (life, by) = (agent.life, self.now + limits::FINISH_MS);
        self.dispatch();
        while self.is_busy(life) && self.now < by && self.violation.is_none() {
            self.pass(20);
        }
        let Some(agent) = self.agent.as_mut().filter(|agent| agent.life == life) else { return };
        let last = agent.machine.flush_all();
        self.apply(last);
        let Some(agent) = &mut self.agent else { return };
        let last = agent.batch.drain(..);
        let last: Vec<Commit> = agent.writing.drain(..).chain(last).collect();
        if !last.is_empty() {
            self.store.commit(&last);
        }
        self.kill_agent(false);
    }

    /// The agent is told to stop where the configuration wants a drain.
    pub fn drain_agent(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        agent.drains = true;
        let life = agent.life;
        // The machine ends it in time, and is not waited for any longer.
        let most = limits::DRAIN_MS + limits::DRAIN_KILL_MS + limits::DRAIN_BLOCKED_MS;
        let by = self.now + most;
        self.feed(Event::Drain(None));
        if let Some(agent) = self.agent.as_mut().filter(|agent| agent.drained) {
            // There was nothing to stop, or reconciling is held and nothing is stopped.
            agent.drains = false;
        }
        while self.is_draining(life) && self.now < by && self.violation.is_none() {
            self.pass(20);
        }
        if self.is_draining(life) {
            return self.blame("drain", "it does not end");
        }
        if self.is_life(life) {
            self.stop_agent();
        }
    }

    fn is_draining(&self, life: u64) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.life == life && !agent.drained)
    }

    fn is_busy(&self, life: u64) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.life == life && !agent.is_idle())
    }

    // --- one turn ------------------------------------------------------------------------------

    /// The agent takes in an event.
    pub fn feed(&mut self, event: Event) {
        let told = self.is_traced().then(|| super::report::event(&event));
        let dull = matches!(event, Event::Deadline | Event::Listing(..));
        let now = self.clocks();
        let Some(agent) = &mut self.agent else { return };
        agent.note_end(&event);
        let effects = agent.machine.step(now, event);
        // Whole nights of nothing but listings would push everything else out of the trace.
        if !dull || effects.iter().any(|effect| !matches!(effect, Effect::List(_))) {
            self.note(|| format!("-> {}", told.unwrap_or_default()));
        }
        self.steps += 1;
        self.apply(effects);
        self.dispatch();
    }

    /// Asks; the answer comes in a turn of the agent.
    pub fn ask(&mut self, request: Request) {
        let Some(agent) = &mut self.agent else { return };
        agent.last_ask += 1;
        let ask = AskId(agent.last_ask);
        let views = mem::take(&mut agent.views);
        let now = self.now;
        self.checkers.asked(ask, &request, &views, now);
        if let Some(agent) = &mut self.agent {
            agent.views = views;
        }
        self.feed(Event::Ask(ask, request));
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        let effects = match self.mutation.as_mut() {
            Some(mutation) => mutation.bend(effects, &self.engine.model),
            None => effects,
        };
        let is_failing = |status: &Status| status.conditions.contains_key("storeFailing");
        let fails = effects.iter().any(|effect| match effect {
            Effect::PublishStatus(status) => is_failing(status),
            _ => false,
        });
        for effect in effects {
            if !matches!(effect, Effect::List(_)) {
                self.note(|| format!("   {}", super::report::effect(&effect)));
            }
            self.check_effect(&effect);
            let Some(agent) = &mut self.agent else { return };
            match effect {
                Effect::Persist(commit) => agent.batch.push(commit),
                Effect::Run(step) => {
                    if fails || is_failing(&agent.status) {
                        agent.unrecorded.insert(step.id);
                    }
                    agent.take(step);
                }
                Effect::Release(id) => agent.release(id),
                Effect::Pull(pull, image) => agent.pulls.push_back((pull, image)),
                Effect::CancelPull(pull) => self.cancel_pull(pull),
                Effect::List(id) => agent.jobs.push_front(Job::List(id)),
                Effect::Identify => agent.identifies = true,
                Effect::ReopenStream => self.reopen_stream(),
                shown => agent.show(shown),
            }
        }
    }

    // --- what leaves the agent -----------------------------------------------------------------

    /// Hands out what there is room for.
    fn dispatch(&mut self) {
        if let Some(agent) = self.agent.as_mut().filter(|agent| agent.stopping) {
            agent.drop_queues();
        }
        self.dispatch_batch();
        while let Some(job) = self.agent.as_mut().and_then(Agent::next_job) {
            if !self.leaves(|world| world.send_job(job)) {
                return;
            }
        }
        while let Some(step) = self.agent.as_mut().and_then(Agent::next_start) {
            if !self.leaves(|world| world.send_job(Job::Step(step))) {
                return;
            }
        }
        while let Some((pull, image)) = self.agent.as_mut().and_then(Agent::next_pull) {
            if !self.leaves(|world| world.send_pull(pull, image)) {
                return;
            }
        }
    }

    fn dispatch_batch(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if !agent.unheard.is_empty() || agent.batch.is_empty() {
            return;
        }
        agent.unheard.extend(agent.batch.iter().map(|commit| commit.id));
        agent.writing = mem::take(&mut agent.batch);
        let life = agent.life;
        self.leaves(|world| {
            let soon = world.now + world.moment();
            let at = soon.max(world.store.stalled_until);
            world.at(at, Happening::Write(life));
        });
    }

    /// Something leaves the agent, which may die over it. Whether it lives.
    fn leaves(&mut self, send: impl FnOnce(&mut Self)) -> bool {
        let Some((left, side, later)) = &mut self.faults.fuse else {
            send(self);
            return true;
        };
        if *left > 1 {
            *left -= 1;
            send(self);
            return true;
        }
        let (side, later) = (*side, *later);
        if side == Side::After {
            send(self);
        }
        self.kill_agent(side == Side::After);
        self.after(later, Happening::AgentStarts);
        false
    }

    fn send_job(&mut self, job: Job) {
        let Some(agent) = &self.agent else { return };
        let life = agent.life;
        match job {
            Job::Step(step) => self.send_step(life, step),
            Job::List(id) => self.send_list(life, id),
        }
    }

    /// The store has written, or could not.
    pub fn write(&mut self, life: u64) {
        let Some(agent) = self.agent.as_mut().filter(|agent| agent.life == life) else { return };
        let group = mem::take(&mut agent.writing);
        let lost = self.mutation.as_ref().is_some_and(|mutation| mutation.loses(&group));
        let results = match lost {
            true => group.iter().map(|_| Ok(())).collect(),
            false => self.store.commit(&group),
        };
        if let Some(breach) = self.store.breach.take() {
            self.blame("store", breach);
        }
        for (commit, result) in group.iter().zip(results) {
            self.note(|| format!("store: commit {} {result:?}", commit.id.0));
            self.hears(life, 0, Event::Committed(commit.id, result));
        }
    }
}

impl Agent {
    fn new(life: u64, machine: Machine) -> Self {
        Self {
            life,
            machine,
            batch: Vec::new(),
            writing: Vec::new(),
            unheard: BTreeSet::new(),
            identifies: false,
            drains: false,
            drained: false,
            stopping: false,
            gated: BTreeMap::new(),
            jobs: VecDeque::new(),
            jobs_out: 0,
            starts: VecDeque::new(),
            starts_out: BTreeSet::new(),
            pulls: VecDeque::new(),
            pulls_out: BTreeSet::new(),
            replays: BTreeSet::new(),
            last_ask: 0,
            unrecorded: BTreeSet::new(),
            views: BTreeMap::new(),
            tasks: BTreeMap::new(),
            entries: BTreeMap::new(),
            status: Arc::default(),
        }
    }

    /// Keeps account of what is in flight.
    fn note_end(&mut self, event: &Event) {
        match event {
            Event::StepDone(step, _) if self.starts_out.remove(step) => {}
            Event::StepDone(..) | Event::Listing(..) => self.jobs_out -= 1,
            Event::PullDone(pull, _) => drop(self.pulls_out.remove(pull)),
            Event::Committed(commit, result) => {
                self.unheard.remove(commit);
                let steps = self.gated.remove(commit).unwrap_or_default();
                if result.is_ok() {
                    steps.into_iter().for_each(|step| self.queue(step));
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, step: Step) {
        match step.after {
            Some(commit) => self.gated.entry(commit).or_default().push(step),
            None => self.queue(step),
        }
    }

    fn queue(&mut self, step: Step) {
        match step.op {
            Op::Start(..) => self.starts.push_back(step),
            _ => self.jobs.push_back(Job::Step(step)),
        }
    }

    fn release(&mut self, id: StepId) {
        let gated = self.gated.values_mut();
        let released = gated.flat_map(|steps| steps.extract_if(.., |step| step.id == id));
        let released: Vec<Step> = released.collect();
        released.into_iter().for_each(|step| self.queue(step));
    }

    fn drop_queues(&mut self) {
        self.jobs.clear();
        self.starts.clear();
        self.pulls.clear();
        self.gated.clear();
    }

    fn next_job(&mut self) -> Option<Job> {
        let job = if self.jobs_out < limits::WORKERS { self.jobs.pop_front() } else { None };
        self.jobs_out += usize::from(job.is_some());
        job
    }

    fn next_start(&mut self) -> Option<Step> {
        let has_room = self.starts_out.len() < limits::STARTS;
        let step = if has_room { self.starts.pop_front() } else { None };
        self.starts_out.extend(step.as_ref().map(|step| step.id));
        step
    }

    fn next_pull(&mut self) -> Option<(PullId, Arc<str>)> {
        let has_room = self.pulls_out.len() < limits::PULLERS;
        let pull = if has_room { self.pulls.pop_front() } else { None };
        self.pulls_out.extend(pull.as_ref().map(|(id, _)| *id));
        pull
    }

    /// Forgets a pull that waits for a place; whether it was one.
    pub fn forget_pull(&mut self, pull: PullId) -> bool {
        let before = self.pulls.len();
        self.pulls.retain(|(waiting, _)| *waiting != pull);
        self.pulls.len() < before
    }

    fn show(&mut self, effect: Effect) {
        match effect {
            Effect::Publish(uid, Some(view)) => drop(self.views.insert(uid, view)),
            Effect::Publish(uid, None) => drop(self.views.remove(&uid)),
            Effect::PublishStatus(status) => self.status = status,
            Effect::Drained => self.drained = true,
            Effect::PublishTask(task) => drop(self.tasks.insert(task.id, task)),
            Effect::DropTask(id) => drop(self.tasks.remove(&id)),
            Effect::PublishEntry(seq, Some(entry)) => drop(self.entries.insert(seq, entry)),
            Effect::PublishEntry(seq, None) => drop(self.entries.remove(&seq)),
            _ => {}
        }
    }

    /// What is in flight, in numbers.
    pub fn in_flight(&self) -> String {
        let (jobs, starts, pulls) = (self.jobs_out, self.starts_out.len(), self.pulls_out.len());
        let (unheard, batch) = (self.unheard.len(), self.batch.len());
        let gated = self.gated.values().map(Vec::len).sum::<usize>();
        format!(
            "{jobs} calls, {starts} starts, {pulls} pulls, {unheard} commits, {batch} that wait, \
             {gated} gated steps"
        )
    }

    /// Nothing is in flight.
    pub fn is_idle(&self) -> bool {
        let out = self.jobs_out + self.starts_out.len() + self.pulls_out.len();
        out == 0 && self.unheard.is_empty() && self.batch.is_empty() && self.gated.is_empty()
    }
}
