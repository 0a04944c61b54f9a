//! What one `step` of the machine costs, and a full compare, with many workloads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bargee::domain::declared::{Declared, Spec};
use bargee::domain::directory::Place;
use bargee::domain::effect::{CommitId, Effect, ListId, Op, StepId};
use bargee::domain::event::{ContainerAction, ContainerEvent, Event, Outcome};
use bargee::domain::intent::Seq;
use bargee::domain::machine::{Machine, Start};
use bargee::domain::names::{
    BootId, ContainerId, InstanceName, Key, Label, Source, SpecHash, StoreId, Uid,
};
use bargee::domain::observed::{EngineInfo, Listed, Phase, Reading, Tags};
use bargee::domain::record::{BootTick, Instance, Record, Run};
use bargee::domain::spec_hash::spec_hash;
use bargee::domain::time::{Now, Span, Tick};

use crate::Result;
use crate::report::{Report, median};
use crate::stopwatch::cpu;

const SIZES: [usize; 3] = [100, 1_000, 10_000];
const STORE: &str = "0123456789abcdef0123456789abcdef";
/// Workloads that something happens to in one round.
const PICKED: usize = 1_000;
const ROUNDS: usize = 15;

/// A machine whose workloads all run, and what its shell would know.
struct World {
    machine: Machine,
    listed: Vec<Listed>,
    now: Now,
    steps: Vec<(StepId, usize)>,
    list: Option<ListId>,
    commits: Vec<CommitId>,
}

/// Prints the figures.
pub fn measure(report: &mut Report) -> Result<()> {
    let mut costs = Vec::new();
    for size in SIZES {
        let cost = cost(size)?;
        let goal = |most: f64| (size == 10_000).then_some(most);
        let name = |what: &str| format!("{what}, {size} workloads");
        report.figure(&name("step: an event on one"), cost.event, "us", goal(10.0));
        report.figure(&name("step: the inspect that follows"), cost.answer, "us", goal(10.0));
        report.figure(&name("step: the inspect shows an exit"), cost.exit, "us", goal(10.0));
        report.figure(&name("full compare, of each"), cost.compare, "us", Some(1.0));
        let whole = cost.compare * size as f64 / 1e3;
        report.figure(&name("full compare, one turn of all"), whole, "ms", None);
        report.figure(&name("an event, to a look at all"), cost.event / 1e3 / whole, "x", None);
        report.figure(&name("full compare, to the least"), cost.compare / cost.least, "x", None);
        costs.push(cost);
    }
    let [small, .., large] = costs.as_slice() else { return Ok(()) };
    report.figure("step: an event, 10000 to 100", large.event / small.event, "x", None);
    report.figure("full compare of each, 10000 to 100", large.compare / small.compare, "x", None);
    Ok(())
}

/// Microseconds.
struct Cost {
    event: f64,
    answer: f64,
    exit: f64,
    compare: f64,
    /// Of each workload: to look up its container in a table of the listing, and no more.
    least: f64,
}

fn cost(size: usize) -> Result<Cost> {
    let mut world = World::new(size)?;
    let (mut events, mut answers, mut exits) = (vec![], vec![], vec![]);
    let (mut compares, mut leasts) = (vec![], vec![]);
    for round in 0..ROUNDS {
        let picked = picked(size, round);
        events.push(world.events(&picked));
        answers.push(world.answers(Phase::Running)?);
        compares.push(world.compare()?);
        leasts.push(world.least()?);
    }
    for round in 0..3 {
        let mut world = World::new(size)?;
        world.events(&picked(size, round));
        exits.push(world.answers(Phase::Exited)?);
    }
    let us = |values: &[f64]| median(values) * 1e6;
    Ok(Cost {
        event: us(&events),
        answer: us(&answers),
        exit: us(&exits),
        compare: us(&compares),
        least: us(&leasts),
    })
}

/// Different workloads in no order that a cache could follow, others in each round.
fn picked(size: usize, round: usize) -> Vec<usize> {
    // Coprime to every size, so that no workload comes twice.
    const STRIDE: usize = 7_919;
    (0..PICKED.min(size)).map(|n| (round * 37 + n * STRIDE) % size).collect()
}

impl World {
    fn new(size: usize) -> Result<Self> {
        let records = (0..size).map(record).collect::<Result<Vec<_>>>()?;
        let listed = records.iter().map(listed).collect();
        let start = Start {
            node: "bench".to_owned(),
            engine: "docker",
            store: StoreId::new(STORE),
            whole: true,
            known_engine: None,
            boot: BootId::new("boot"),
            token: "token".to_owned(),
            entries: Vec::new(),
            next_seq: Seq(1),
            seed: 7,
            records,
            notices: Vec::new(),
            manifests: Place { path: "/m".into(), is_default: true },
            quiesce: None,
        };
        let now = Now { tick: Tick(1_000_000), wall_ms: 1_000_000 };
        let (machine, first) = Machine::new(start, now);
        let mut world =
            Self { machine, listed, now, steps: Vec::new(), list: None, commits: Vec::new() };
        world.take(first);
        let effects = world.machine.step(now, Event::StreamUp(EngineInfo::default()));
        world.take(effects);
        world.list_all()?;
        if !world.steps.is_empty() {
            return Err("what runs as recorded was looked at".into());
        }
        Ok(world)
    }

    /// Answers the listing that the machine asked for; seconds that it took.
    fn list_all(&mut self) -> Result<f64> {
        let list = self.list.take().ok_or("no listing was asked for")?;
        let event = Event::Listing(list, Ok(self.listed.iter().map(as_read).collect()));
        let begin = cpu();
        let effects = self.machine.step(self.now, event);
        let took = (cpu() - begin).as_secs_f64();
        self.take(effects);
        self.settle();
        Ok(took)
    }

    /// Lets the minute pass; seconds of the full compare for each workload.
    fn compare(&mut self) -> Result<f64> {
        self.now.tick = self.now.tick + Span::seconds(60);
        let effects = self.machine.step(self.now, Event::Deadline);
        self.take(effects);
        Ok(self.list_all()? / self.listed.len() as f64)
    }

    /// What every full compare has to do: a table of what is listed, one look-up for each workload,
    /// and the listing's memory given back; seconds for each.
    fn least(&self) -> Result<f64> {
        let items: Vec<Listed> = self.listed.iter().map(as_read).collect();
        let begin = cpu();
        let table: HashMap<&str, &Listed> = items.iter().map(|l| (l.id.as_str(), l)).collect();
        let found = self.listed.iter().filter_map(|known| table.get(known.id.as_str()));
        let running = found.filter(|line| line.phase == Phase::Running).count();
        drop(table);
        drop(items);
        let took = (cpu() - begin).as_secs_f64();
        if running != self.listed.len() {
            return Err("not all of them run".into());
        }
        Ok(took / self.listed.len() as f64)
    }

    /// Something happens to each of `picked`; seconds for each.
    fn events(&mut self, picked: &[usize]) -> f64 {
        let event = |n: &usize| {
            let (id, uid) = (self.listed[*n].id.clone(), self.listed[*n].tags.uid.clone());
            Event::Container(ContainerEvent { id, uid, action: ContainerAction::Died })
        };
        let events = picked.iter().map(event).collect();
        let (took, effects) = self.step_all(events);
        effects.into_iter().for_each(|effects| self.take(effects));
        took
    }

    /// Answers the inspects that are asked for; seconds for each.
    fn answers(&mut self, phase: Phase) -> Result<f64> {
        if self.steps.is_empty() {
            return Err("nothing was looked at".into());
        }
        let answer = |(step, n): (StepId, usize)| {
            let reading = reading(&self.listed[n], phase.clone());
            Event::StepDone(step, Ok(Outcome::Found(Box::new(reading))))
        };
        let events = std::mem::take(&mut self.steps).into_iter().map(answer).collect();
        let (took, effects) = self.step_all(events);
        effects.into_iter().for_each(|effects| self.take(effects));
        self.settle();
        Ok(took)
    }

    fn step_all(&mut self, events: Vec<Event>) -> (f64, Vec<Vec<Effect>>) {
        let many = events.len() as f64;
        let mut all = Vec::with_capacity(events.len());
        let begin = cpu();
        for event in events {
            all.push(self.machine.step(self.now, event));
        }
        ((cpu() - begin).as_secs_f64() / many, all)
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Persist(commit) => self.commits.push(commit.id),
                Effect::List(id) => self.list = Some(id),
                Effect::Run(step) => {
                    if let Op::Inspect(id) = &step.op
                        && let Some(n) = number(id)
                    {
                        self.steps.push((step.id, n));
                    }
                }
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        while let Some(commit) = self.commits.pop() {
            let effects = self.machine.step(self.now, Event::Committed(commit, Ok(())));
            self.take(effects);
        }
    }
}

/// The number of the workload in the id of its container.
fn number(id: &str) -> Option<usize> {
    id.trim_start_matches('c').parse().ok()
}

fn record(n: usize) -> Result<Record> {
    let declared = Arc::new(declared(n)?);
    let since = BootTick { boot: BootId::new("boot"), tick: Tick(1_000) };
    let run = Run {
        started_at_ns: 1_796_040_714_852_890_716,
        since,
        since_ms: 0,
        pid: 4_000,
        ip: Some("10.0.0.2".to_owned()),
        ports: vec!["0.0.0.0:8080->80/tcp".to_owned()],
        image_id: format!("sha256:{n:064x}"),
        stop_signal: None,
        health: None,
    };
    let current = Instance {
        name: InstanceName::new(format!("bargee-w-{n}-0123abcd")),
        container: Some(ContainerId::new(format!("c{n:063}"))),
        generation: 1,
        spec_hash: spec_hash(&declared),
        run: Some(run),
        rebuild: 0,
        proved: true,
    };
    let uid = Uid::new(format!("00000000-0000-4000-8000-{n:012x}"));
    Ok(Record {
        observed_generation: 1,
        current: Some(current),
        boot: Some(BootId::new("boot")),
        ..Record::new(uid, Source::Local, declared, 1)
    })
}

/// Ten workloads to an application.
fn declared(n: usize) -> Result<Declared> {
    let spec = Spec {
        command: Some(vec!["serve".to_owned(), "--port=80".to_owned()]),
        env: BTreeMap::from([("TZ".to_owned(), "UTC".to_owned())]),
        ..Spec::new("registry.example/shop/web:1.27")
    };
    let key = Key {
        application: Label::parse(&format!("app-{}", n / 10))?,
        name: Label::parse(&format!("w-{n}"))?,
    };
    Ok(Declared { key, labels: BTreeMap::new(), spec, manifest: "{}".into() })
}

fn listed(record: &Record) -> Listed {
    let current = record.current.as_ref().expect("every record here has a container");
    let tags = Tags {
        uid: record.uid.clone(),
        key: record.declared.key.clone(),
        instance: current.name.clone(),
        generation: 1,
        spec_hash: current.spec_hash.clone(),
        store: StoreId::new(STORE),
        node: "bench".to_owned(),
    };
    let id = current.container.clone().expect("every container here has an id");
    Listed { id, phase: Phase::Running, tags, misnamed: false, health: None }
}

/// The same with texts of its own, as each listing that is read from an engine.
fn as_read(listed: &Listed) -> Listed {
    let (id, tags) = (&listed.id, &listed.tags);
    let tags = Tags {
        uid: Uid::new(tags.uid.as_str()),
        key: Key {
            application: Label::parse(tags.key.application.as_str()).expect("it was one"),
            name: Label::parse(tags.key.name.as_str()).expect("it was one"),
        },
        instance: InstanceName::new(tags.instance.as_str()),
        spec_hash: SpecHash::new(tags.spec_hash.as_str()),
        store: StoreId::new(tags.store.as_str()),
        node: tags.node.clone(),
        ..*tags
    };
    let (id, phase) = (ContainerId::new(id.as_str()), listed.phase.clone());
    Listed { id, phase, tags, misnamed: listed.misnamed, health: listed.health }
}

fn reading(listed: &Listed, phase: Phase) -> Reading {
    let exited = phase == Phase::Exited;
    Reading {
        id: listed.id.clone(),
        phase,
        tags: Some(listed.tags.clone()),
        started_at_ns: 1_796_040_714_852_890_716,
        exit_code: i32::from(exited),
        oom_killed: false,
        error: String::new(),
        pid: if exited { 0 } else { 4_000 },
        ip: Some("10.0.0.2".to_owned()),
        ports: vec!["0.0.0.0:8080->80/tcp".to_owned()],
        image_id: format!("sha256:{:064x}", number(listed.id.as_str()).unwrap_or(0)),
        stop_signal: None,
        verdict: None,
    }
}
