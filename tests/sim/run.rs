//! A whole world, from its script to its end: the acts, then the end of all faults, and then
//! everything that has to hold.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bargee::domain::declared::RestartPolicy;
use bargee::domain::event::{Request, Verb};
use bargee::domain::fault::FaultKind;
use bargee::domain::names::{ContainerId, Uid};
use bargee::domain::record::Desired;

use super::acts::{Act, File, Script, Way, Wish};
use super::agent::Agent;
use super::checkers::Violation;
use super::draw::ASKED_KEYS;
use super::mutation::Mutation;
use super::wishes;
use super::world::{Cause, World};

/// Within this time after the last fault everything is as it was declared. The longest wait is that
/// of an update that failed, an hour; that of the backoff is 300 s, and being stuck lasts 10
/// minutes.
const CONVERGES_MS: u64 = 100 * 60_000;
/// How long an unchanged world is watched.
const IDLE_MS: u64 = 10 * 60_000;
/// Longer than any backoff.
const PAUSE_MS: u64 = 400_000;

/// How a world went.
pub struct Outcome {
    /// Steps of the machine.
    pub steps: u64,
    pub violation: Option<Violation>,
    /// Its last lines, if it was traced.
    pub trace: Vec<String>,
}

/// Runs a script to its end, or to the first thing that is wrong.
pub fn run(script: &Script, mutation: Option<Mutation>, traced: bool) -> Outcome {
    let mut world = World::new(script, mutation, traced);
    let ran = catch_unwind(AssertUnwindSafe(|| live(&mut world, script)));
    if let Err(panic) = ran {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        world.blame("panic", text.unwrap_or_default());
    }
    Outcome { steps: world.steps, trace: world.trace(), violation: world.violation }
}

fn live(world: &mut World, script: &Script) {
    let refuses = |act: &Act| matches!(act, Act::Mishap(_, _, Way::NotDone(FaultKind::Refused)));
    world.was_refused = script.acts.iter().any(|(_, act)| refuses(act));
    for (wait, act) in &script.acts {
        world.play(*wait, act);
        if world.violation.is_some() {
            return;
        }
    }
    world.end_faults();
    world.pass(70_000);
    // In the end the files say this, whatever they said before.
    world.set_directory(wishes::directory(&last_files(script)));
    world.pass(5_000);
    world.ask(Request::Confirm);
    world.pass(CONVERGES_MS);
    world.nudge_stream();
    world.pass(60_000);
    let ends: [fn(&mut World); 8] = [
        come_to_rest,
        stay_idle,
        World::drain_once,
        come_to_rest,
        World::reboot_once,
        come_to_rest,
        count_restarts,
        remove_all,
    ];
    for end in ends {
        if world.violation.is_none() {
            end(world);
        }
    }
}

/// What the last files held under keys that only files have.
fn last_files(script: &Script) -> Vec<(u8, File)> {
    let mut wishes: Vec<Wish> = Vec::new();
    for (_, act) in script.acts.iter().rev() {
        let Act::Files(files) = act else { continue };
        for (_, file) in files {
            let File::Holds(held) = file else { continue };
            for wish in held.iter().filter(|wish| wish.key >= ASKED_KEYS) {
                if wishes.iter().all(|other| other.key != wish.key) {
                    wishes.push(*wish);
                }
            }
        }
        break;
    }
    if wishes.is_empty() { Vec::new() } else { vec![(9, File::Holds(wishes))] }
}

fn come_to_rest(world: &mut World) {
    // A listing may be under way.
    for _ in 0..20 {
        if world.agent.as_ref().is_some_and(Agent::is_idle) {
            break;
        }
        world.pass(200);
    }
    if let Some(Violation { checker, text }) = world.unrest().into_iter().next() {
        world.blame(checker, text);
    }
}

/// An unchanged world plans nothing: one listing a minute, no step, no commit.
fn stay_idle(world: &mut World) {
    let before = world.store.kept.clone();
    let checkers = &mut world.checkers;
    (checkers.commits, checkers.steps, checkers.lists) = (0, 0, 0);
    world.note(|| "=== nothing happens".to_owned());
    world.pass(IDLE_MS);
    let (commits, steps, lists) =
        (world.checkers.commits, world.checkers.steps, world.checkers.lists);
    // The answers take their time, too.
    let as_due = lists == IDLE_MS / 60_000 || lists + 1 == IDLE_MS / 60_000;
    if (commits, steps, as_due) != (0, 0, true) {
        world.blame("idle", format!("{commits} commits, {steps} steps, {lists} listings"));
    }
    if world.store.kept != before {
        world.blame("idle", "the store changed");
    }
}

/// Each process that runs ends twice: what the policy says follows, and is counted, over the death
/// of the agent too.
fn count_restarts(world: &mut World) {
    world.note(|| "=== everything ends once".to_owned());
    let outlives = world.engine.model.ways.capabilities().containers_outlive;
    for round in 0..if outlives { 3 } else { 2 } {
        if round == 2 {
            // Containers that outlive their engine end by themselves while it is away.
            world.kill_engine();
        }
        let running: Vec<(Uid, ContainerId, u64, RestartPolicy)> = running(world);
        let code = i32::try_from(world.random.below(2)).expect("0 or 1");
        for (_, id, ..) in &running {
            world.end_by(id, code, Cause::Itself);
            world.pass(1_000);
        }
        world.start_engine();
        world.pass(PAUSE_MS);
        if round == 0 {
            world.kill_agent(false);
            world.start_agent();
            world.pass(PAUSE_MS);
        }
        for (uid, _, before, policy) in running {
            let again = match policy {
                RestartPolicy::Always => true,
                RestartPolicy::OnFailure => code != 0,
                RestartPolicy::Never => false,
            };
            let view = world.agent.as_ref().and_then(|agent| agent.views.get(&uid));
            let count = view.map_or(u64::MAX, |view| view.restart_count);
            if count != before + u64::from(again) {
                let text = format!("{uid} ended with {code} under {policy:?}: {before}, {count}");
                return world.blame("counts", text);
            }
        }
        if world.violation.is_none() {
            come_to_rest(world);
        }
    }
}

/// Workloads that run, with their container, restarts so far, and policy.
fn running(world: &World) -> Vec<(Uid, ContainerId, u64, RestartPolicy)> {
    let Some(agent) = &world.agent else { return Vec::new() };
    let live = |id: &ContainerId| world.engine.model.find(id.as_str()).is_some_and(|m| m.is_live());
    // What stands in for a failed update cannot be made again if anything happens to it.
    let sound = agent.views.values().filter(|view| view.failed_update.is_none());
    let running = sound.filter_map(|view| {
        let id = view.container.clone().filter(live)?;
        let policy = view.declared.spec.restart.policy;
        Some((view.uid.clone(), id, view.restart_count, policy))
    });
    running.collect()
}

/// Once everything is removed, nothing is left.
fn remove_all(world: &mut World) {
    world.note(|| "=== everything is removed".to_owned());
    world.set_directory(wishes::directory(&[]));
    world.pass(5_000);
    let Some(agent) = &world.agent else { return };
    let asked = agent.views.values().filter(|view| view.desired != Desired::Deleted);
    let asked: Vec<Uid> = asked.map(|view| view.uid.clone()).collect();
    for uid in asked {
        world.ask(Request::Verb(Verb::Remove, uid));
        world.pass(10);
    }
    world.pass(PAUSE_MS);
    if let Some(agent) = world.agent.as_ref().filter(|agent| !agent.views.is_empty()) {
        let text = format!("{:?} are left", agent.views.keys());
        return world.blame("converge", text);
    }
    if !world.store.kept.rows.is_empty() {
        let text = format!("{:?} are left", world.store.kept.rows.keys());
        return world.blame("converge", text);
    }
    let model = &world.engine.model;
    let used = |name: &String| model.all().any(|made| made.network.as_ref() == Some(name));
    let left: Vec<String> = model.networks.iter().filter(|name| !used(name)).cloned().collect();
    if !left.is_empty() && !world.checkers.network_left {
        return world.blame("leftovers", format!("networks {left:?} are left"));
    }
    come_to_rest(world);
}
