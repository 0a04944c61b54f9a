//! One run of a scenario with everything that goes wrong in it, and what is wrong at its end.

use super::super::*;
use super::check::faults_at_rest;
use super::scenario::{Deed, Model, Scenario, declared, orphan};
use crate::domain::effect::Answer;
use crate::domain::event::AskId;
use crate::domain::names::Uid;
use world::{Fuse, Meanwhile, Mishap, Pace, Side};

/// Long enough for every backoff, every sweep and every late create.
const REST_MS: u64 = 400_000;
/// Long enough for a try of an update, until it has failed or proved itself.
const SETTLED_MS: u64 = 60_000;

/// One run.
#[derive(Clone, Debug)]
pub struct Trial {
    pub scenario: &'static Scenario,
    pub pace: Pace,
    /// The first agent dies at the first one, the second at the second, and so on.
    pub fuses: Vec<Fuse>,
    pub mishap: Option<Mishap>,
    /// The second deed is asked for when so many things have left the agent.
    pub meanwhile: Option<usize>,
    pub holds_names: bool,
    /// What is done between the death of an agent and the birth of the next.
    pub between: fn(&mut World),
    /// How long it may take until everything is at rest.
    pub rest_ms: u64,
}

/// How it went.
#[derive(Debug)]
pub struct Verdict {
    /// What the agents died at; shorter than the fuses if one did not burn down.
    pub deaths: Vec<String>,
    /// The mishap, or the second deed, came about.
    pub happened: bool,
    /// What is wrong at rest.
    pub faults: Vec<String>,
    /// Calls of the engine, from the first deed on.
    pub calls: Vec<String>,
}

/// After the life of the first agent.
struct Begun<F> {
    world: World,
    /// How the workload may stand.
    may_be: Vec<Model>,
    happened: bool,
    /// How much left the first agent.
    left: usize,
    /// Those of the next agents.
    fuses: F,
}

/// A deed that was asked for.
struct Asked {
    deed: &'static Deed,
    uid: Uid,
    ask: Option<AskId>,
    at: u64,
}

impl Trial {
    pub fn of(scenario: &'static Scenario) -> Self {
        Self {
            scenario,
            pace: Pace::InOrder,
            fuses: Vec::new(),
            mishap: None,
            meanwhile: None,
            holds_names: false,
            between: |_| {},
            rest_ms: REST_MS,
        }
    }

    /// Runs it, and panics if anything is wrong at its end.
    pub fn check(&self) -> Verdict {
        let verdict = self.run();
        assert!(
            verdict.faults.is_empty(),
            "{self:#?}\ndied at {:#?}\nfaults {:#?}\ncalls {:?}",
            verdict.deaths,
            verdict.faults,
            verdict.calls
        );
        verdict
    }

    /// What its agents die at.
    pub fn deaths(&self) -> Vec<String> {
        let Begun { mut world, mut fuses, .. } = self.begin();
        let mut deaths = Vec::new();
        while let Some(death) = world.died.take() {
            deaths.push(death);
            let Some(fuse) = fuses.next() else { break };
            (self.between)(&mut world);
            world.fuse = Some(fuse);
            world.mishap = None;
            world.crash();
            world.pass(self.rest_ms);
        }
        deaths
    }

    /// How much leaves the first agent.
    pub fn left(&self) -> usize {
        self.begin().left
    }

    /// Whether its mishap, or its second deed, comes about.
    pub fn happens(&self) -> bool {
        self.begin().happened
    }

    pub fn run(&self) -> Verdict {
        let Begun { mut world, may_be, happened, fuses, .. } = self.begin();
        let deaths = self.live_and_die(&mut world, fuses);
        if deaths.is_empty() {
            world.pass(self.rest_ms);
        }
        pass_tries(&mut world);
        let faults = self.faults_of(&mut world, &may_be);
        Verdict { deaths, happened, faults, calls: world.engine.calls.clone() }
    }

    /// The life of the first agent.
    fn begin(&self) -> Begun<impl Iterator<Item = Fuse>> {
        let mut world = World::new();
        world.engine.refused_images.push("refused:2".to_owned());
        world.engine.crashing_images.push("crashing:2".to_owned());
        for (image, ms) in [("brief:2", 3_000), ("proving:2", 29_000)] {
            world.engine.mortal_images.insert(image.to_owned(), (ms, 1));
        }
        let mut model = Model { wanted: None };
        for deed in self.scenario.before {
            let asked = do_one(&mut world, deed);
            model = model.after(deed, &asked.uid, asked.at);
            world.pass(60_000);
        }
        world.engine.calls.clear();
        world.pace = self.pace;
        world.holds_names = self.holds_names;
        world.mishap = self.mishap;
        world.left = 0;
        let mut fuses = self.fuses.iter().copied();
        world.fuse = fuses.next();
        let asked = self.do_all(&mut world);
        let happened = match (self.mishap, self.meanwhile) {
            (Some(_), _) => world.mishap.is_none(),
            (None, Some(_)) => asked.len() == self.scenario.deeds.len(),
            (None, None) => true,
        };
        let left = world.left;
        let may_be = may_be(&world, model, &asked);
        Begun { world, may_be, happened, left, fuses }
    }

    /// Does the deeds one after the other, or the second while the first is under way.
    fn do_all(&self, world: &mut World) -> Vec<Asked> {
        let mut all = Vec::new();
        if let (Some(at), [first, second]) = (self.meanwhile, self.scenario.deeds) {
            let first = prepare(world, first);
            let uid = first.1.uid.clone();
            let (event, second) = prepare_for(world, second, Some(uid));
            world.meanwhile = Some(Meanwhile { at, event });
            world.feed(first.0);
            all.push(first.1);
            world.pass(60_000);
            if world.meanwhile.take().is_none() {
                all.push(second);
            }
        } else {
            for deed in self.scenario.deeds {
                // What was refused or waits for the store is not there to be stopped.
                let possible =
                    matches!(deed, Deed::Apply(_) | Deed::Orphan(_)) || !world.views.is_empty();
                if world.died.is_none() && possible {
                    all.push(do_one(world, deed));
                }
            }
        }
        world.pass(self.scenario.lasts_ms());
        all
    }

    /// One agent after the other, until one outlives its fuse; then all comes to rest.
    fn live_and_die(&self, world: &mut World, fuses: impl Iterator<Item = Fuse>) -> Vec<String> {
        let mut deaths = Vec::new();
        let mut fuses = fuses.map(Some).chain([None]);
        while let Some(death) = world.died.take() {
            deaths.push(death);
            (self.between)(world);
            world.fuse = fuses.next().flatten();
            world.mishap = None;
            world.crash();
            world.pass(self.rest_ms);
        }
        deaths
    }

    /// Nothing ends that was not told to, and nothing is told late.
    fn is_calm(&self) -> bool {
        let late = self.fuses.iter().any(|fuse| matches!(fuse.side, Side::Late(_)));
        self.scenario.is_calm() && !late && self.mishap.is_none()
    }

    fn faults_of(&self, world: &mut World, may_be: &[Model]) -> Vec<String> {
        let mut faults = faults_at_rest(world, may_be);
        if self.is_calm() {
            let counted = world.views.values().filter(|view| view.restart_count > 0);
            faults.extend(counted.map(|view| format!("{} restarts", view.restart_count)));
        }
        if self.scenario.is_tidy() {
            // What comes late is looked for; the sweep is for what nobody knows of.
            let swept = world.logs.iter().filter(|line| line.contains("no record knows it"));
            faults.extend(swept.cloned());
        }
        // Another death and birth changes nothing.
        let (kept, containers) = (world.store.kept.clone(), world.engine.containers.clone());
        let calls = world.engine.calls.len();
        world.crash();
        world.pass(until_next_try(world).min(self.rest_ms));
        let mutating =
            |call: &&String| !matches!(call.as_str(), "list" | "inspect" | "late inspect");
        let did: Vec<&String> = world.engine.calls[calls..].iter().filter(mutating).collect();
        if !did.is_empty() {
            faults.push(format!("another start did {did:?}"));
        }
        if world.store.kept.rows != kept.rows {
            faults.push(format!(
                "another start changed {:?} to {:?}",
                kept.rows, world.store.kept.rows
            ));
        }
        if world.engine.containers != containers {
            let now = &world.engine.containers;
            faults.push(format!("another start made {now:?} of {containers:?}"));
        }
        faults
    }
}

/// Milliseconds until an update that failed is tried again.
fn until_next_try(world: &World) -> u64 {
    let tries = world.views.values().filter_map(|view| view.next_attempt);
    tries.map(|tick| tick.0.saturating_sub(world.now + 1)).min().unwrap_or(u64::MAX)
}

/// If an update that failed is tried again at the moment, or soon, that is waited for.
fn pass_tries(world: &mut World) {
    while world.views.values().any(|view| view.info.contains("has to run for"))
        || until_next_try(world) < SETTLED_MS
    {
        world.pass(SETTLED_MS);
    }
}

fn do_one(world: &mut World, deed: &'static Deed) -> Asked {
    let (event, asked) = prepare(world, deed);
    world.feed(event);
    asked
}

fn prepare(world: &mut World, deed: &'static Deed) -> (Event, Asked) {
    let uid = world.views.values().next().map(|view| view.uid.clone());
    prepare_for(world, deed, uid)
}

/// What the agent hears when this is done; to the workload `uid`, if it is there already.
fn prepare_for(world: &mut World, deed: &'static Deed, uid: Option<Uid>) -> (Event, Asked) {
    let at = world.now;
    let (request, uid) = match deed {
        Deed::Apply(image) => {
            let request = world.request(&[&declared(image)]);
            let Request::Apply(apply) = &request else { panic!("{request:?}") };
            let drawn = apply.uids[0].clone();
            (request, drawn)
        }
        Deed::Verb(verb) => {
            let uid = uid.expect("a workload");
            (Request::Verb(verb.clone(), uid.clone()), uid)
        }
        Deed::Orphan(phase) => {
            let (name, made) = orphan(phase.clone());
            let (id, uid) = (made.id.clone(), made.tags.uid.clone());
            world.engine.containers.insert(name, made);
            let asked = Asked { deed, uid: uid.clone(), ask: None, at };
            let action = ContainerAction::Changed;
            return (Event::Container(ContainerEvent { id, uid, action }), asked);
        }
        Deed::Exit | Deed::Vanish => {
            let (id, uid) = (world.container("web"), uid.expect("a workload"));
            let action = happen(world, deed, &id);
            let asked = Asked { deed, uid: uid.clone(), ask: None, at };
            return (Event::Container(ContainerEvent { id, uid, action }), asked);
        }
    };
    let ask = world.next_ask();
    (Event::Ask(ask, request), Asked { deed, uid, ask: Some(ask), at })
}

fn happen(world: &mut World, deed: &Deed, id: &ContainerId) -> ContainerAction {
    if *deed == Deed::Vanish {
        world.engine.containers.retain(|_, made| made.id != *id);
        return ContainerAction::Removed;
    }
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 1);
    ContainerAction::Died
}

/// How the workload may stand: after all deeds that were acknowledged, and after any number of
/// those that were not.
fn may_be(world: &World, before: Model, asked: &[Asked]) -> Vec<Model> {
    let mut models = vec![before];
    for Asked { deed, uid, ask, at } in asked {
        let answer = ask.map(|ask| world.answers.get(&ask));
        if matches!(answer, Some(Some(Answer::Refused(_)))) {
            continue;
        }
        let next = models.last().expect("one").after(deed, uid, *at);
        if !matches!(answer, Some(None)) {
            models.clear();
        }
        models.push(next);
    }
    models
}
