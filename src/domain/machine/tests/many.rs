//! A thousand workloads: effects are counted exactly.

use super::*;
use crate::domain::effect::{Effect, ListId, Op, StepId};
use crate::domain::names::InstanceName;
use crate::domain::record::Record;
use crate::domain::time::Now;

const MANY: usize = 1_000;

/// A thousand that run, and an agent that has just begun on their rows.
fn recorded() -> World {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(60_000);
    world.tell_to_stop();
    let (_, row) = world.store.kept.rows.pop_first().unwrap();
    let (_, made) = world.engine.containers.pop_first().unwrap();
    for n in 0..MANY {
        let (row, made) = copy(n, &row, &made);
        world.engine.containers.insert(made.tags.instance.to_string(), made);
        world.store.kept.rows.insert(row.uid.clone(), row);
    }
    let mut world = world.restart_agent(BOOT);
    assert_eq!((world.running(), world.views.len()), (MANY, MANY));
    world.pass(1_000);
    world
}

/// The same under another name.
fn copy(n: usize, row: &Record, made: &Made) -> (Record, Made) {
    let (mut row, mut made) = (row.clone(), made.clone());
    row.declared = workload(&format!("w{n:03}"), |_| {});
    row.uid = Uid::new(format!("00000000-0000-4000-8000-{n:012x}"));
    made.id = ContainerId::new(format!("id-{n:03}"));
    let current = row.current.as_mut().unwrap();
    current.name = InstanceName::new(format!("bargee-w{n:03}-0123abcd"));
    current.container = Some(made.id.clone());
    made.tags.uid = row.uid.clone();
    made.tags.key = row.declared.key.clone();
    made.tags.instance = current.name.clone();
    (row, made)
}

fn step(world: &mut World, event: Event) -> Vec<Effect> {
    world.machine.step(Now { tick: Tick(world.now), wall_ms: world.now }, event)
}

fn listing(effects: &[Effect]) -> ListId {
    match effects {
        [Effect::List(id)] => *id,
        other => panic!("one listing and nothing else: {other:?}"),
    }
}

/// The only step, which looks at this container.
fn look(effects: &[Effect], container: &ContainerId) -> StepId {
    match effects {
        [Effect::Run(step)] => {
            assert_eq!(step.op, Op::Inspect(container.to_string()));
            step.id
        }
        other => panic!("one look and nothing else: {other:?}"),
    }
}

#[test]
fn an_agent_that_starts_lists_once_and_writes_nothing() {
    let world = recorded();
    assert_eq!((world.engine.calls.as_slice(), world.store.commits), (&["list".to_owned()][..], 0));
    assert!(world.views.values().all(|view| view.state == State::RunningOk));
}

#[test]
fn a_full_compare_is_one_listing() {
    let mut world = recorded();
    world.now = world.machine.next_deadline().unwrap().0;
    let effects = step(&mut world, Event::Deadline);
    let items = world.engine.list(world.now);
    let effects = step(&mut world, Event::Listing(listing(&effects), items));
    assert_eq!(effects, []);
}

#[test]
fn an_event_is_one_look_and_changes_one_view() {
    let mut world = recorded();
    let id = world.container("w500");
    let uid = world.view("w500").uid.clone();
    let died = |uid: &Uid| {
        let (id, uid) = (id.clone(), uid.clone());
        Event::Container(ContainerEvent { id, uid, action: ContainerAction::Died })
    };
    // It runs all the same: nothing is to be done or shown.
    let effects = step(&mut world, died(&uid));
    let found = reading(world.engine.find(id.as_str()).unwrap());
    let found = Outcome::Found(Box::new(found));
    let effects = step(&mut world, Event::StepDone(look(&effects, &id), Ok(found)));
    assert_eq!(effects, []);
    // It ended: its own view changes, and no other one is published.
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 1);
    let found = Outcome::Found(Box::new(reading(made)));
    world.now += 1;
    let effects = step(&mut world, died(&uid));
    let effects = step(&mut world, Event::StepDone(look(&effects, &id), Ok(found)));
    let published: Vec<&Uid> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Publish(uid, _) => Some(uid),
            _ => None,
        })
        .collect();
    assert!(!published.is_empty() && published.iter().all(|one| **one == uid), "{effects:?}");
    let runs = effects.iter().filter(|effect| matches!(effect, Effect::Run(_))).count();
    assert_eq!(runs, 1, "it is started again: {effects:?}");
}
