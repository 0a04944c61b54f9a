//! The machine: `step(now, event)` gives effects. The only mutator of the agent's state.
//!
//! An event is taken in (`asks`, `commits`, `answers`, `listing`, `stream`), which marks the
//! workloads it may matter to. Then one pass plans each marked workload, carries out what was
//! decided (`carry`), and publishes what people would see differently (`publish`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::directory::Place;
use super::effect::{Commit, CommitId, Effect, Level, ListId, StepId, Write};
use super::event::{AskId, Event, Request};
use super::fault::FaultKind;
use super::id_map::IdMap;
use super::intent::{Entry, Seq};
use super::lifecycle::{Context, Workload};
use super::names::{BootId, ContainerId, EngineId, Key, Label, StoreId, Suffixes, Uid};
use super::plan::{self, Decision, Surroundings};
use super::quiesce::Quiesce;
use super::record::{Desired, Record};
use super::slow::Slow;
use super::time::{Now, Span, Tick};
use super::view::Status;
use crate::limits;
pub use passed::Passed;

mod answers;

mod asks;

mod carry;

mod clock;

mod commits;

mod deadlines;

mod directory;

mod drain;

mod gone;

mod journal;

mod leftovers;

mod listing;

mod passed;

mod publish;

mod pulls;

mod quiesce;

mod replaced;

mod starts;

mod stream;

mod tasks;

#[cfg(test)]
mod tests;

/// What a machine begins with.
#[derive(Debug)]
pub struct Start {
    /// Name of the device.
    pub node: String,
    /// Name of the engine, for the injected environment.
    pub engine: &'static str,
    /// Identity of the store.
    pub store: StoreId,
    /// The store knows all that was ever made from it.
    pub whole: bool,
    /// The engine that the containers are on, as far as the store knows.
    pub known_engine: Option<EngineId>,
    /// The present boot.
    pub boot: BootId,
    /// What the journal's entries of this process carry.
    pub token: String,
    /// What an earlier process left in the journal, by number.
    pub entries: Vec<Entry>,
    /// The first number that no entry ever had.
    pub next_seq: Seq,
    /// Random, so that instance names differ over restarts.
    pub seed: u64,
    /// What the store holds.
    pub records: Vec<Record>,
    /// What somebody should know about how the store was opened.
    pub notices: Vec<String>,
    /// Where the manifests directory is.
    pub manifests: Place,
    /// Reconciling was held when the last agent ended.
    pub quiesce: Option<Quiesce>,
}

/// The state of the agent.
#[derive(Debug)]
pub struct Machine {
    node: String,
    engine_name: &'static str,
    store: StoreId,
    boot: BootId,
    suffixes: Suffixes,
    now: Now,

    workloads: IdMap<Uid, Box<Workload>>,
    /// The workload that holds a key, removals under way not counted.
    by_key: BTreeMap<Key, Uid>,
    /// Workloads on their way out, by key.
    removals: BTreeMap<Key, BTreeSet<Uid>>,
    /// Workloads by the containers that were ever theirs; a hint, checked against the slots.
    by_container: IdMap<ContainerId, Uid>,
    /// Marked workloads, in the order in which a pass looks at them.
    due: BTreeSet<starts::Turn>,
    leftovers: leftovers::Leftovers,
    ghosts: gone::Ghosts,
    starts: starts::Starts,
    /// Deadlines, one for each workload.
    wakes: BTreeSet<(Tick, Uid)>,
    /// Counts events, step begins and step ends.
    order: u64,

    engine: EngineLink,
    acquaintance: replaced::Acquaintance,
    store_state: StoreState,
    journal: journal::Journal,
    pulls: pulls::Pulls,
    /// Networks whose removal is under way, by application.
    closing: BTreeSet<Label>,
    /// A step of a workload with a timed-out call is in flight.
    slow_step: Option<StepId>,
    steps: IdMap<StepId, Uid>,
    pending: Option<asks::Pending>,
    waiting_asks: VecDeque<(AskId, Request)>,
    tasks: tasks::Tasks,
    directory: directory::Directory,
    /// Reconciling is held.
    quiesced: Option<Quiesce>,
    drain: Option<drain::Drain>,
    status: Arc<Status>,
    conditions: BTreeMap<&'static str, String>,
    last_step: u64,
    out: Vec<Effect>,
    /// Answers leave after what they speak of was published.
    answers: Vec<Effect>,
    passed: Passed,
}

/// What is known of the engine and its event stream.
#[derive(Debug, Default)]
struct EngineLink {
    up: bool,
    info: super::observed::EngineInfo,
    error: String,
    away_since: Option<Tick>,
    stream_up: bool,
    /// When it was opened.
    stream_since: Tick,
    /// Our own start did not show on the stream: it is looked at like one that is down until it
    /// tells something again. That it could be opened anew says nothing.
    stream_doubted: bool,
    /// The stream was lost; exits first seen in the next listing are interruptions.
    gap: bool,
    listed: bool,
    /// The listing in flight and the order at which it was sent.
    listing: Option<(ListId, u64)>,
    next_list: Option<Tick>,
    last_list: u64,
    /// Other stores whose agents run on this device.
    neighbours: BTreeSet<StoreId>,
    /// Containers of this node that no record of this store knows, by key.
    unclaimed: BTreeMap<Key, super::observed::Listed>,
}

/// What is known of the store.
#[derive(Debug, Default)]
struct StoreState {
    whole: bool,
    last_commit: u64,
    /// What each commit in flight is for.
    commits: BTreeMap<CommitId, commits::Purpose>,
    /// Rows that wait for the next write of observations.
    dirty: BTreeSet<Uid>,
    /// No write of observations before this.
    next_flush: Option<Tick>,
    /// Something among them is to be written as soon as the writer is free.
    urgent: bool,
}

impl Machine {
    /// A machine that has seen nothing yet, and the effects that publish what the store holds.
    pub fn new(start: Start, now: Now) -> (Self, Vec<Effect>) {
        let mut machine = Self {
            node: start.node,
            engine_name: start.engine,
            store: start.store,
            boot: start.boot,
            suffixes: Suffixes::new(start.seed),
            now,
            workloads: IdMap::default(),
            by_key: BTreeMap::new(),
            removals: BTreeMap::new(),
            by_container: IdMap::default(),
            due: BTreeSet::new(),
            leftovers: leftovers::Leftovers::default(),
            ghosts: gone::Ghosts::default(),
            starts: starts::Starts::default(),
            wakes: BTreeSet::new(),
            order: 0,
            engine: EngineLink::default(),
            acquaintance: replaced::Acquaintance::with(start.known_engine),
            store_state: StoreState { whole: start.whole, ..StoreState::default() },
            journal: journal::Journal::new(start.token, start.next_seq),
            pulls: pulls::Pulls::default(),
            closing: BTreeSet::new(),
            slow_step: None,
            steps: IdMap::default(),
            pending: None,
            waiting_asks: VecDeque::new(),
            tasks: tasks::Tasks::default(),
            directory: directory::Directory::new(start.manifests),
            quiesced: None,
            drain: None,
            status: Arc::new(Status::default()),
            conditions: BTreeMap::new(),
            last_step: 0,
            out: Vec::new(),
            answers: Vec::new(),
            passed: Passed::default(),
        };
        machine.engine.away_since = Some(now.tick);
        machine.engine.error = "not yet reached".to_owned();
        if !start.notices.is_empty() {
            machine.conditions.insert("storeNotice", start.notices.join("; "));
        }
        let mut records = start.records;
        for key in give_way(&mut records) {
            let text = format!("{key} is declared by two rows of the store; one of them goes");
            machine.log(Level::Warn, text);
        }
        for record in records {
            let mut w = Workload::new(record);
            let context = Context { now, boot: &machine.boot };
            w.wake_up(context);
            w.rearm_update(context);
            machine.go_on_waiting(&mut w);
            machine.install(w);
        }
        machine.take_quiesce(start.quiesce);
        machine.take_entries(start.entries);
        machine.pass();
        machine.tend_engine();
        machine.publish_status();
        let effects = std::mem::take(&mut machine.out);
        (machine, effects)
    }

    /// Takes in one event and says what is to be done.
    pub fn step(&mut self, now: Now, event: Event) -> Vec<Effect> {
        self.note_clock(now);
        self.order += 1;
        match event {
            Event::Deadline => {}
            Event::Stopping => self.on_stopping(),
            Event::Drain(per_container) => self.on_drain(per_container),
            Event::Ask(ask, request) => self.on_ask(ask, request),
            Event::Committed(commit, result) => self.on_committed(commit, result),
            Event::StreamUp(info) => self.on_stream_up(info),
            Event::StreamDown(fault) => self.on_stream_down(&fault),
            Event::StreamLost => self.on_stream_lost(),
            Event::Identity(id) => self.acquaintance.introduce(id),
            Event::Container(event) => self.on_container(&event),
            Event::ProcessGone(id, pid) => self.on_process_gone(&id, pid),
            Event::Neighbours(stores) => self.engine.neighbours = stores,
            Event::Listing(list, result) => self.on_listing(list, result),
            Event::StepDone(step, result) => self.on_step_done(step, result),
            Event::PullProgress(pull, progress) => self.on_pull_progress(pull, progress),
            Event::PullSyncs(pull) => self.on_pull_syncs(pull),
            Event::PullDone(pull, result) => self.on_pull_done(pull, &result),
            Event::Directory(scan) => self.on_directory(*scan),
        }
        self.take_deadlines();
        self.end_waiting_in_time();
        self.pass();
        self.tend_drain();
        self.tend_engine();
        self.tend_journal();
        self.tend_directory();
        self.flush();
        self.publish_status();
        self.out.append(&mut self.answers);
        std::mem::take(&mut self.out)
    }

    fn context(&self) -> Context<'_> {
        Context { now: self.now, boot: &self.boot }
    }

    fn log(&mut self, level: Level, text: impl Into<String>) {
        self.out.push(Effect::Log(level, text.into()));
    }

    // --- workloads -----------------------------------------------------------------------------

    /// Takes a workload in under its keys and marks it.
    fn install(&mut self, w: Workload) {
        let uid = w.record.uid.clone();
        let key = w.record.declared.key.clone();
        for instance in w.record.instances() {
            if let Some(id) = &instance.container {
                self.by_container.insert(id.clone(), uid.clone());
            }
        }
        if w.record.desired == Desired::Deleted {
            self.removals.entry(key).or_default().insert(uid.clone());
        } else {
            self.by_key.insert(key, uid.clone());
        }
        self.due.insert(starts::Turn::of(&w));
        self.workloads.insert(uid, Box::new(w));
    }

    /// Something may have changed for it: the next pass looks at it.
    fn mark(&mut self, uid: &Uid) {
        if let Some(w) = self.workloads.get(uid) {
            self.due.insert(starts::Turn::of(w));
        }
    }

    fn mark_all(&mut self) {
        for w in self.workloads.values() {
            self.due.insert(starts::Turn::of(w));
        }
    }

    /// Forgets a workload whose row is gone, and marks what waited for its key.
    fn uninstall(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.remove(uid) else { return };
        if let Some(wake) = w.wake {
            self.wakes.remove(&(wake, uid.clone()));
        }
        let key = w.record.declared.key.clone();
        let turn = starts::Turn::of(&w);
        self.due.remove(&turn);
        self.starts.forget(&turn);
        self.leave_pull(uid);
        self.leave_drain(&w);
        self.acquaintance.leave(uid);
        self.store_state.dirty.remove(uid);
        self.by_container.retain(|_, owner| owner != uid);
        if self.by_key.get(&key) == Some(uid) {
            self.by_key.remove(&key);
        }
        if let Some(uids) = self.removals.get_mut(&key) {
            uids.remove(uid);
            if uids.is_empty() {
                self.removals.remove(&key);
            }
        }
        if let Some(successor) = self.by_key.get(&key).cloned() {
            self.mark(&successor);
        }
        self.publish_removed(&w);
    }

    // --- one pass ------------------------------------------------------------------------------

    fn pass(&mut self) {
        loop {
            while let Some(turn) = self.due.pop_first() {
                self.attend(&turn.uid);
            }
            // Starts that wait come after what is due, since that may come before them in order.
            let Some(turn) = self.starts.next() else { break };
            self.attend(&turn.uid);
        }
        self.clear_leftovers();
    }

    /// Plans one workload until there is nothing to do for it, arms its deadline, shows it.
    fn attend(&mut self, uid: &Uid) {
        let is_idle = !self.engine_is_ready() || self.holds_still();
        let context = Context { now: self.now, boot: &self.boot };
        let Some(w) = self.workloads.get_mut(uid) else { return };
        self.passed.due += 1;
        w.start_waits = false;
        w.awaits_resume = false;
        w.settle(context);
        if !is_idle {
            w.take_up_update(context);
        }
        self.tell_stuck(uid);
        self.check_start_shown(uid);
        self.release_gate(uid);
        self.adopt(uid, false);
        self.tend_pull(uid);
        // Each turn of this loop changes the record towards a step or sends one; the bound only
        // turns a bug into a logged one.
        for turn in 0.. {
            let Some(w) = self.workloads.get(uid) else { return };
            let decision = plan::plan(w, &self.surroundings(w));
            if decision == Decision::Nothing
                || self.queued_as_slow(w)
                || self.leftovers.take(w, &decision)
            {
                break;
            }
            if decision == Decision::Held {
                self.with(uid, |w, _| w.awaits_resume = true);
                break;
            }
            if turn == 8 {
                self.log(Level::Warn, format!("bug: no end of decisions: {decision:?}"));
                break;
            }
            let starts = self.drain.is_none() && starts::leads_to_start(w, &decision);
            if starts && !self.may_start(uid) {
                break;
            }
            self.passed.actions += 1;
            self.carry_out(uid, decision);
        }
        self.arm(uid);
        self.settle(uid);
        self.note_dirty(uid);
        self.publish(uid);
        self.settle_tasks(uid);
        self.note_drained(uid);
    }

    /// Once when a workload becomes stuck in restarts, and once when it is not any more.
    fn tell_stuck(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let level = if w.record.stuck { Level::Warn } else { Level::Info };
        if let Some(news) = w.take_stuck_news() {
            self.log(level, news);
        }
    }

    fn surroundings<'a>(&'a self, w: &Workload) -> Surroundings<'a> {
        let key = &w.record.declared.key;
        let predecessor = self.by_key.get(key) == Some(&w.record.uid)
            && self.is_being_removed(key, &w.record.uid);
        let claim = self.engine.unclaimed.get(key).filter(|_| !self.store_state.whole);
        Surroundings {
            context: self.context(),
            engine_ready: self.engine_is_ready(),
            predecessor,
            network_closing: self.closing.contains(&key.application),
            claimed_by: claim.map(|listed| listed.tags.instance.as_str()),
            last_of_application: w.record.desired == Desired::Deleted
                && self.is_last_of(&key.application, &w.record.uid),
            mode: self.mode(w),
        }
    }

    /// It answers, and one listing was read since it came back, or became another one.
    fn engine_is_ready(&self) -> bool {
        self.engine.up && self.engine.listed && self.acquaintance.is_met()
    }

    /// Another workload with this key is on its way out.
    fn is_being_removed(&self, key: &Key, uid: &Uid) -> bool {
        self.removals.get(key).is_some_and(|uids| uids.iter().any(|other| other != uid))
    }

    /// No other workload of `application` is wanted or still has a container.
    fn is_last_of(&self, application: &Label, uid: &Uid) -> bool {
        let first = Key { application: application.clone(), name: Label::lowest() };
        let wanted = self.by_key.range(first..).next();
        if wanted.is_some_and(|(key, _)| key.application == *application) {
            return false;
        }
        let leaving = self.removals.iter();
        let mut leaving = leaving.filter(|(key, _)| key.application == *application);
        !leaving.any(|(_, uids)| {
            uids.iter().filter(|other| *other != uid).any(|other| {
                self.workloads.get(other).is_some_and(|w| {
                    let r = &w.record;
                    r.instances().next().is_some()
                })
            })
        })
    }

    /// A workload whose calls time out shares one worker with others of its kind.
    fn queued_as_slow(&self, w: &Workload) -> bool {
        w.slow != Slow::No && self.slow_step.is_some()
    }

    // --- commits -------------------------------------------------------------------------------

    /// Sends a transaction to the store.
    fn persist(
        &mut self,
        purpose: commits::Purpose,
        declares: bool,
        writes: Vec<Write>,
    ) -> CommitId {
        self.store_state.last_commit += 1;
        let id = CommitId(self.store_state.last_commit);
        self.store_state.commits.insert(id, purpose);
        self.out.push(Effect::Persist(Commit { id, declares, writes }));
        id
    }

    fn next_step(&mut self) -> StepId {
        self.last_step += 1;
        StepId(self.last_step)
    }

    /// Whether a fault says that the engine as a whole is in trouble.
    fn engine_in_doubt(kind: FaultKind) -> bool {
        matches!(kind, FaultKind::Away)
    }
}

/// Of rows wanted under one key, all but one go: a declaration of unknown outcome was made again,
/// and holds all the same. The one that has a container stays, or else the one made last.
fn give_way(records: &mut [Record]) -> Vec<Key> {
    let mut rank: Vec<usize> = (0..records.len()).collect();
    rank.sort_by_key(|&n| {
        let record = &records[n];
        Reverse((record.current.is_some(), record.created_at_ms))
    });
    let mut held = BTreeSet::new();
    let mut shared = Vec::new();
    for n in rank {
        let record = &mut records[n];
        let key = record.declared.key.clone();
        if record.desired != Desired::Deleted && !held.insert(key.clone()) {
            record.desired = Desired::Deleted;
            shared.push(key);
        }
    }
    shared
}

/// How long the engine is left alone between two looks while its stream is down or in doubt.
const LOOK: Span = Span(limits::ENGINE_LOOK_MS);
