//! Tests of the machine with a made-up clock: a world of one store and one engine that do at once
//! what they are told, unless a test says otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Machine, Start};
use crate::domain::declared::{Declared, Mount, MountSource, Pull, RestartPolicy, Spec};
use crate::domain::effect::{
    Answer, Change, Commit, CommitId, Effect, NewContainer, Op, Step, Write,
};
use crate::domain::event::{
    Apply, AskId, ContainerAction, ContainerEvent, Event, Outcome, Request, Verb,
};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{BootId, ContainerId, Key, Label, Source, StoreId, Uid};
use crate::domain::observed::{EngineInfo, Listed, Phase, Reading, Tags};
use crate::domain::record::Record;
use crate::domain::time::{Now, Span, Tick};
use crate::domain::view::{RuntimeState, State, Task, TaskId, TaskState, View};

mod asks;

mod engine;

mod late;

mod restart;

mod states;

mod update;

mod walk;

/// One container of the made-up engine.
#[derive(Clone, Debug)]
struct Made {
    id: ContainerId,
    tags: Tags,
    phase: Phase,
    started_at_ns: u64,
    exit_code: i32,
}

/// The world.
struct World {
    machine: Machine,
    boot: String,
    now: u64,
    rows: BTreeMap<Uid, Record>,
    containers: BTreeMap<String, Made>,
    events: VecDeque<Event>,
    /// Every operation that reached the engine, as a word.
    calls: Vec<String>,
    /// Transactions that reached the store.
    commits: usize,
    /// Faults for the next calls of this word.
    faults: BTreeMap<&'static str, VecDeque<FaultKind>>,
    /// Images on the device; `None`: all.
    missing_images: Vec<String>,
    /// Host paths that are not there.
    missing_paths: Vec<&'static str>,
    /// The store fails.
    store_fails: bool,
    /// The store fails, but for declarations.
    rows_fail: bool,
    /// Commits are sent and never answered.
    store_hangs: bool,
    /// The last of them.
    hung: Option<CommitId>,
    /// Starts do not show on the event stream.
    stream_silent: bool,
    /// Containers are gone as soon as they are made.
    made_is_lost: bool,
    /// Starts are answered, and nothing is started.
    starts_nothing: bool,
    /// Containers that the engine cannot remove.
    unremovable: Vec<ContainerId>,
    /// Listings leave every container out.
    short_list: bool,
    /// Listings are taken and not answered.
    hold_list: bool,
    /// The engine does not answer listings and steps: they are dropped.
    engine_gone: bool,
    /// Calls beginning with one of these words are taken and not answered.
    unanswered: Vec<&'static str>,
    /// What would have been their answers.
    withheld: Vec<Event>,
    answers: BTreeMap<AskId, Answer>,
    views: BTreeMap<Uid, Arc<View>>,
    tasks: BTreeMap<TaskId, Arc<Task>>,
    logs: Vec<String>,
    last: u64,
}

const BOOT: &str = "boot-1";

fn start(boot: &str, records: Vec<Record>, whole: bool) -> Start {
    Start {
        node: "node".to_owned(),
        token: "token".to_owned(),
        entries: Vec::new(),
        next_seq: crate::domain::intent::Seq(1),
        engine: "docker",
        store: StoreId::new("0123456789abcdef"),
        whole,
        boot: BootId::new(boot),
        seed: 7,
        records,
        notices: Vec::new(),
    }
}

impl World {
    /// A world whose engine is up and was listed once.
    fn new() -> Self {
        let mut world = Self::with(BTreeMap::new(), BTreeMap::new(), BOOT, (1_000_000, 0));
        world.feed(Event::StreamUp(EngineInfo::default()));
        world
    }

    fn with(
        rows: BTreeMap<Uid, Record>,
        containers: BTreeMap<String, Made>,
        boot: &str,
        (now, last): (u64, u64),
    ) -> Self {
        let records = rows.values().cloned().collect();
        let at = Now { tick: Tick(now), wall_ms: now };
        let (machine, effects) =
            Machine::new(Start { seed: last, ..start(boot, records, true) }, at);
        let mut world = Self {
            machine,
            boot: boot.to_owned(),
            now,
            rows,
            containers,
            events: VecDeque::new(),
            calls: Vec::new(),
            commits: 0,
            faults: BTreeMap::new(),
            missing_images: Vec::new(),
            missing_paths: Vec::new(),
            store_fails: false,
            rows_fail: false,
            store_hangs: false,
            hung: None,
            stream_silent: false,
            made_is_lost: false,
            starts_nothing: false,
            unremovable: Vec::new(),
            short_list: false,
            hold_list: false,
            engine_gone: false,
            unanswered: Vec::new(),
            withheld: Vec::new(),
            answers: BTreeMap::new(),
            views: BTreeMap::new(),
            tasks: BTreeMap::new(),
            logs: Vec::new(),
            last,
        };
        world.take(effects);
        world
    }

    /// The agent dies and another one starts on what was durable.
    fn restart_agent(self, boot: &str) -> Self {
        let mut next = Self::with(self.rows, self.containers, boot, (self.now, self.last));
        next.engine_gone = self.engine_gone;
        next.unremovable = self.unremovable;
        if next.engine_gone {
            let away = Fault::new(FaultKind::Away, "connect", "", "refused");
            next.feed(Event::StreamDown(away));
        } else {
            next.feed(Event::StreamUp(EngineInfo::default()));
        }
        next
    }

    // --- driving -------------------------------------------------------------------------------

    fn feed(&mut self, event: Event) {
        self.events.push_back(event);
        while let Some(event) = self.events.pop_front() {
            let at = Now { tick: Tick(self.now), wall_ms: self.now };
            let effects = self.machine.step(at, event);
            self.take(effects);
        }
    }

    /// Lets time pass, with every deadline of the machine on the way.
    fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(Tick(at)) = self.machine.next_deadline().filter(|at| at.0 <= end) {
            self.now = self.now.max(at);
            self.feed(Event::Deadline);
        }
        self.now = end;
        self.feed(Event::Deadline);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Persist(commit) => self.commit(&commit),
                Effect::Run(step)
                    if step.after.is_some() && (self.store_fails || self.rows_fail) => {}
                Effect::Run(step) => self.run(step),
                Effect::Pull(image) => {
                    self.calls.push(format!("pull {image}"));
                    let result = self.fault("pull").map_or(Ok(()), Err);
                    if result.is_ok() {
                        self.missing_images.retain(|missing| **missing != *image);
                    }
                    let done = Event::PullDone(image, result);
                    if self.unanswered.contains(&"pull") {
                        self.withheld.push(done);
                    } else {
                        self.events.push_back(done);
                    }
                }
                Effect::List(_) if self.engine_gone => {}
                Effect::List(id) => {
                    self.calls.push("list".to_owned());
                    let result = match self.fault("list") {
                        Some(fault) => Err(fault),
                        None if self.short_list => Ok(Vec::new()),
                        None => Ok(self.containers.values().map(listed).collect()),
                    };
                    let listing = Event::Listing(id, result);
                    let to = self.hold_list.then_some(&mut self.withheld);
                    match to {
                        Some(withheld) => withheld.push(listing),
                        None => self.events.push_back(listing),
                    }
                }
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
                Effect::Log(_, text) => self.logs.push(text),
                Effect::ReopenStream => self.calls.push("reopen".to_owned()),
                Effect::Transition(change) => {
                    // Who hears of it and asks is shown the state after it.
                    let shown = self.views.get(&change.uid).map_or(State::Removed, |v| v.state);
                    assert_eq!(shown, change.to, "{}", change.key);
                }
                Effect::PublishStatus(_)
                | Effect::DropTask(_)
                | Effect::PublishEntry(..)
                | Effect::Release(_) => {}
            }
        }
    }

    fn commit(&mut self, commit: &Commit) {
        if self.store_hangs {
            self.hung = Some(commit.id);
            return self.calls.push(format!("commit {}", commit.writes.len()));
        }
        self.commits += 1;
        let fails = self.store_fails || (self.rows_fail && !commit.declares);
        let result = if fails {
            Err("disk full".to_owned())
        } else {
            commit.writes.iter().for_each(|write| self.write(write));
            Ok(())
        };
        self.events.push_back(Event::Committed(commit.id, result));
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Insert(record) => {
                assert!(!self.rows.contains_key(&record.uid), "inserted twice");
                self.rows.insert(record.uid.clone(), (**record).clone());
            }
            Write::Update(record) => {
                if let Some(row) = self.rows.get_mut(&record.uid) {
                    *row = (**record).clone();
                }
            }
            Write::Delete(uid) => {
                self.rows.remove(uid);
            }
            Write::MarkWhole
            | Write::Intend(_)
            | Write::Claim(_)
            | Write::Settle(_)
            | Write::DropEntry(_) => {}
        }
    }

    // --- the engine ----------------------------------------------------------------------------

    fn fault(&mut self, word: &'static str) -> Option<Fault> {
        let kind = self.faults.get_mut(word)?.pop_front()?;
        Some(Fault::new(kind, word, "x", format!("{kind:?}")))
    }

    fn run(&mut self, step: Step) {
        if self.engine_gone {
            return;
        }
        let late = self.fault("late");
        let mut result = self.carry_out(&step.op);
        if let Some(fault) = late {
            // It was done, and the answer came too late.
            result = Err(fault);
        }
        let call = self.calls.last().map_or("", String::as_str);
        let answered = !self.unanswered.iter().any(|word| call.starts_with(word));
        let answer = Event::StepDone(step.id, result);
        if answered { self.events.push_back(answer) } else { self.withheld.push(answer) }
    }

    /// What was not answered is answered now.
    fn answer_late(&mut self) {
        self.unanswered.clear();
        for answer in std::mem::take(&mut self.withheld) {
            self.feed(answer);
        }
    }

    fn carry_out(&mut self, op: &Op) -> Result<Outcome, Fault> {
        match op {
            Op::Inspect(name) => {
                self.calls.push("inspect".to_owned());
                if let Some(fault) = self.fault("inspect") {
                    return Err(fault);
                }
                let found = self.find(name).map(|made| Outcome::Found(Box::new(reading(made))));
                Ok(found.unwrap_or(Outcome::NotFound))
            }
            Op::CheckPaths(declared) => {
                self.calls.push("check".to_owned());
                self.check_paths(declared).map(|()| Outcome::PathsThere)
            }
            Op::Create(new) => self.create(new),
            Op::Start(id, declared) => self.start_one(id, declared.as_deref()),
            Op::Signal(id, signal) => {
                self.calls.push(signal.clone());
                if let Some(fault) = self.fault("signal") {
                    return Err(fault);
                }
                let kind = match self.find(id.as_str()).map(|made| &made.phase) {
                    Some(Phase::Running | Phase::Paused) => {
                        self.signal(id);
                        return Ok(Outcome::Signalled);
                    }
                    Some(_) => FaultKind::Conflict,
                    None => FaultKind::NoContainer,
                };
                Err(Fault::new(kind, "signal", id.as_str(), "not running"))
            }
            Op::Remove(name) => {
                self.calls.push("remove".to_owned());
                if let Some(fault) = self.fault("remove") {
                    return Err(fault);
                }
                let id = self.find(name).map(|made| made.id.clone());
                if id.is_some_and(|id| self.unremovable.contains(&id)) {
                    return Err(Fault::new(FaultKind::Trouble, "remove", name, "device busy"));
                }
                self.containers.retain(|key, made| key != name && made.id.as_str() != name);
                Ok(Outcome::Removed)
            }
            Op::RemoveNetwork(_) => {
                self.calls.push("remove network".to_owned());
                match self.fault("network") {
                    Some(fault) => Err(fault),
                    None => Ok(Outcome::NetworkRemoved),
                }
            }
        }
    }

    fn check_paths(&self, declared: &Declared) -> Result<(), Fault> {
        let mut paths = declared.spec.host_paths().map(|(path, _)| path);
        match paths.find(|path| self.missing_paths.contains(path)) {
            Some(path) => Err(Fault::new(FaultKind::HostPath, "mount", path, "it is not there")),
            None => Ok(()),
        }
    }

    fn start_one(
        &mut self,
        id: &ContainerId,
        declared: Option<&Declared>,
    ) -> Result<Outcome, Fault> {
        self.calls.push("start".to_owned());
        declared.map_or(Ok(()), |declared| self.check_paths(declared))?;
        if let Some(fault) = self.fault("start") {
            return Err(fault);
        }
        if self.find(id.as_str()).is_none() {
            let kind = FaultKind::NoContainer;
            return Err(Fault::new(kind, "start", id.as_str(), "no such container"));
        }
        if self.starts_nothing {
            let made = self.find_mut(id.as_str());
            return Ok(Outcome::Started(Box::new(reading(made))));
        }
        self.last += 1;
        let (now, last) = (self.now, self.last);
        let made = self.find_mut(id.as_str());
        made.phase = Phase::Running;
        made.started_at_ns = now * 1_000_000 + last;
        let (reading, uid) = (reading(made), made.tags.uid.clone());
        if !self.stream_silent {
            self.show_event(id.clone(), uid.clone(), ContainerAction::Started);
        }
        if self.fault("dies").is_some() {
            // Right after it was looked at; the event overtakes the answer.
            self.find_mut(id.as_str()).phase = Phase::Exited;
            self.show_event(id.clone(), uid, ContainerAction::Died);
        }
        Ok(Outcome::Started(Box::new(reading)))
    }

    /// Every process obeys at once, unless the fault `deaf` is waiting.
    fn signal(&mut self, id: &ContainerId) {
        if self.fault("deaf").is_some() {
            return;
        }
        let made = self.find_mut(id.as_str());
        made.phase = Phase::Exited;
        made.exit_code = 143;
        let (id, uid) = (made.id.clone(), made.tags.uid.clone());
        self.show_event(id, uid, ContainerAction::Died);
    }

    fn show_event(&mut self, id: ContainerId, uid: Uid, action: ContainerAction) {
        self.events.push_back(Event::Container(ContainerEvent { id, uid, action }));
    }

    fn create(&mut self, new: &NewContainer) -> Result<Outcome, Fault> {
        let image = &new.declared.spec.image;
        self.calls.push(format!("create {image}"));
        self.check_paths(&new.declared)?;
        if let Some(fault) = self.fault("create") {
            return Err(fault);
        }
        if self.missing_images.contains(image) {
            return Err(Fault::new(FaultKind::NoImage, "create", image.clone(), "no such image"));
        }
        if self.containers.contains_key(new.name.as_str()) {
            return Err(Fault::new(FaultKind::NameTaken, "create", new.name.as_str(), "in use"));
        }
        self.last += 1;
        let id = ContainerId::new(format!("id-{}", self.last));
        let tags = Tags::read(|label| new.labels.get(label).map(String::as_str)).unwrap();
        let made =
            Made { id: id.clone(), tags, phase: Phase::Created, started_at_ns: 0, exit_code: 0 };
        if !self.made_is_lost {
            self.containers.insert(new.name.to_string(), made);
        }
        Ok(Outcome::Created(id))
    }

    fn find(&self, name: &str) -> Option<&Made> {
        self.containers.iter().find(|(k, m)| *k == name || m.id.as_str() == name).map(|(_, m)| m)
    }

    fn find_mut(&mut self, name: &str) -> &mut Made {
        let mut all = self.containers.iter_mut();
        all.find(|(k, m)| *k == name || m.id.as_str() == name).map(|(_, m)| m).unwrap()
    }

    // --- what tests do -------------------------------------------------------------------------

    fn ask(&mut self, request: Request) -> Answer {
        self.last += 1;
        let ask = AskId(self.last);
        self.feed(Event::Ask(ask, request));
        self.answers.remove(&ask).expect("an answer")
    }

    /// Asks without minding the answer.
    fn ask_any(&mut self, request: Request) {
        self.last += 1;
        self.feed(Event::Ask(AskId(self.last), request));
    }

    fn try_apply(&mut self, declared: &Arc<Declared>) {
        self.last += 1;
        let uids = vec![Uid::new(format!("uid-{}", self.last))];
        let declared = vec![declared.clone()];
        let apply = Apply { source: Source::Local, declared, uids, dry_run: false };
        self.ask_any(Request::Apply(apply));
    }

    fn apply(&mut self, declared: &[&Arc<Declared>]) -> Vec<(u64, Change)> {
        let uids = declared
            .iter()
            .map(|_| {
                self.last += 1;
                Uid::new(format!("uid-{}", self.last))
            })
            .collect();
        let declared = declared.iter().map(|d| (*d).clone()).collect();
        let apply = Apply { source: Source::Local, declared, uids, dry_run: false };
        match self.ask(Request::Apply(apply)) {
            Answer::Applied(applied) => applied.iter().map(|a| (a.generation, a.change)).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn verb(&mut self, name: &str, verb: Verb) -> TaskId {
        let uid = self.view(name).uid.clone();
        match self.ask(Request::Verb(verb, uid)) {
            Answer::Accepted(task) => task,
            other => panic!("{other:?}"),
        }
    }

    fn task(&self, id: TaskId) -> TaskState {
        self.tasks[&id].state
    }

    fn view(&self, name: &str) -> &View {
        let mut views = self.views.values();
        views.find(|v| v.declared.key.name.as_str() == name).expect("a view")
    }

    fn state(&self, name: &str) -> State {
        self.view(name).state
    }

    fn row(&self, name: &str) -> &Record {
        let mut rows = self.rows.values();
        rows.find(|r| r.declared.key.name.as_str() == name).expect("a row")
    }

    /// The live container of a workload.
    fn container(&self, name: &str) -> ContainerId {
        self.view(name).container.clone().expect("a container")
    }

    /// The process of a workload ends by itself.
    fn exit(&mut self, name: &str, code: i32) {
        let id = self.container(name);
        let made = self.find_mut(id.as_str());
        assert_eq!(made.phase, Phase::Running, "{name} does not run");
        made.phase = Phase::Exited;
        made.exit_code = code;
        let uid = made.tags.uid.clone();
        self.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Died }));
    }

    fn fail_next(&mut self, word: &'static str, kinds: &[FaultKind]) {
        self.faults.entry(word).or_default().extend(kinds);
    }

    fn count(&self, word: &str) -> usize {
        self.calls.iter().filter(|call| call.starts_with(word)).count()
    }

    fn running(&self) -> usize {
        self.containers.values().filter(|made| made.phase == Phase::Running).count()
    }
}

fn listed(made: &Made) -> Listed {
    Listed { id: made.id.clone(), phase: made.phase.clone(), tags: made.tags.clone() }
}

fn reading(made: &Made) -> Reading {
    Reading {
        id: made.id.clone(),
        phase: made.phase.clone(),
        tags: Some(made.tags.clone()),
        started_at_ns: made.started_at_ns,
        exit_code: made.exit_code,
        oom_killed: false,
        error: String::new(),
        pid: u32::from(made.phase == Phase::Running),
        ip: None,
        ports: Vec::new(),
        image_id: String::new(),
        stop_signal: None,
    }
}

/// A workload of the default application.
fn workload(name: &str, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    let mut spec = Spec::new("image:1");
    change(&mut spec);
    let label = |text| Label::parse(text).unwrap();
    Arc::new(Declared {
        key: Key { application: label("default"), name: label(name) },
        labels: BTreeMap::new(),
        spec,
        manifest: "{}".into(),
    })
}

/// A mount of a disk that must be there.
fn disk() -> Mount {
    Mount {
        source: MountSource::Host { path: "/mnt/disk".to_owned(), mounted: true },
        target: "/data".to_owned(),
        read_only: false,
    }
}

fn policy(name: &str, policy: RestartPolicy) -> Arc<Declared> {
    workload(name, |spec| spec.restart.policy = policy)
}
