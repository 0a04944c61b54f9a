//! The journal in odd moments: a store that fails just then, names that come up twice, containers
//! that cannot be removed.

use super::*;
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::InstanceName;
use crate::limits;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

/// Puts an entry of an earlier process into the store.
pub(super) fn leave(world: &mut World, intent: Intent) -> Seq {
    let kept = &mut world.store.kept;
    kept.last_seq += 1;
    let (seq, token) = (Seq(kept.last_seq), "an earlier one".to_owned());
    kept.entries
        .insert(seq, Entry { seq, intent, token, at_ms: 1, tries: 0, error: String::new() });
    seq
}

pub(super) fn name(text: &str) -> InstanceName {
    InstanceName::new(text)
}

/// Another container of the workload `web`, under this name.
pub(super) fn beside(world: &mut World, id: &str, phase: Phase) -> InstanceName {
    let mut made = world.engine.find(world.container("web").as_str()).unwrap().clone();
    let instance = name(&format!("bargee-web-{id}"));
    (made.id, made.phase, made.tags.instance) = (ContainerId::new(id), phase, instance.clone());
    world.engine.containers.insert(instance.to_string(), made);
    instance
}

pub(super) fn assert_settled(world: &World) {
    assert!(world.store.kept.entries.is_empty(), "{:?}", world.store.kept.entries);
    assert!(world.entries.is_empty(), "{:?}", world.entries);
    assert_eq!((world.status.recovering, world.status.journal), (None, (0, 0)));
}

/// The entry still has the token of the process before when it is to be settled.
#[test]
fn what_could_not_be_claimed_is_claimed_when_it_is_settled() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let instance = beside(&mut world, "old", Phase::Exited);
    let uid = world.row("web").uid.clone();
    leave(&mut world, Intent::Remove { uid, instance, container: None });
    world.store.fails = true;
    world.begin_agent();
    world.store.fails = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
    world.pass(2 * limits::ROW_WRITE_MS);
    assert_eq!((world.count("remove"), world.engine.containers.len()), (1, 1));
    assert_settled(&world);
}

/// And the same for one that belongs to no workload any more.
#[test]
fn what_is_in_no_row_is_claimed_when_it_is_settled() {
    let mut world = World::new();
    let (uid, instance) = (Uid::new("gone"), name("bargee-web-gone"));
    leave(&mut world, Intent::Remove { uid, instance, container: None });
    world.store.fails = true;
    world.begin_agent();
    world.store.fails = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
    assert_settled(&world);
}

/// Beside it is another one that cannot be removed either, and does not live.
#[test]
fn a_twin_that_lives_and_cannot_be_removed_holds_the_next_start() {
    for wait_ms in (0..300_000).step_by(20_000) {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        world.verb("web", Verb::Stop);
        for (id, phase) in [("a", Phase::Exited), ("b", Phase::Running)] {
            beside(&mut world, id, phase);
            world.engine.unremovable.push(ContainerId::new(id));
        }
        world.fail_next("deaf", &[FaultKind::Trouble; 100]);
        world.pass(limits::FULL_COMPARE_MS + wait_ms);
        world.verb("web", Verb::Start);
        world.pass(limits::FULL_COMPARE_MS * 5);
        assert_eq!(world.engine.running(), 1, "{wait_ms}: {:?}", world.engine.calls);
        // It ends at last, and that is heard of.
        world.engine.unremovable.clear();
        let made = world.engine.find_mut("b");
        made.phase = Phase::Exited;
        let (id, uid) = (made.id.clone(), made.tags.uid.clone());
        world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Died }));
        assert_eq!(world.state("web"), State::RunningOk);
        world.pass(limits::RESTART_MAX_DELAY_MS);
        assert_eq!(world.engine.containers.len(), 1);
        assert_settled(&world);
    }
}

/// An agent died in an update of something that never ran.
#[test]
fn a_successor_that_is_made_takes_the_place_of_what_never_ran() {
    let mut world = World::new();
    world.fail_next("start", &[FaultKind::Trouble]);
    world.apply(&[&image(1)]);
    let next = beside(&mut world, "next", Phase::Created);
    let row = world.store.kept.rows.values_mut().next().unwrap();
    let mut made = row.current.clone().unwrap();
    (made.name, made.container) = (next, Some(ContainerId::new("next")));
    (row.generation, row.declared) = (2, image(2));
    made.spec_hash = crate::domain::spec_hash::spec_hash(&row.declared);
    row.next = Some(made);
    world.crash();
    world.pass(limits::RESTART_DELAY_MS);
    assert_eq!((world.count("create"), world.container("web").as_str()), (1, "next"));
    assert_eq!((world.state("web"), world.engine.containers.len()), (State::RunningOk, 1));
    assert_settled(&world);
}

/// Nothing else has to be written: a declaration was refused, and that was all.
#[test]
fn a_removal_that_waits_for_the_store_finds_out_that_it_writes_again() {
    let mut world = World::new();
    world.apply(&[&image(1), &workload("other", |_| {})]);
    world.verb("web", Verb::Stop);
    let uid = world.row("web").uid.clone();
    let row = world.store.kept.rows.get_mut(&uid).unwrap();
    row.desired = crate::domain::record::Desired::Deleted;
    row.discards.extend(row.current.take());
    world.begin_agent();
    world.store.fails = true;
    let other = world.row("other").uid.clone();
    world.ask(Request::Verb(Verb::Stop, other));
    world.store.fails = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
    assert_eq!(world.count("remove"), 0, "no intent, no removal");
    world.pass(2 * limits::ROW_WRITE_MS);
    assert_eq!((world.store.kept.rows.len(), world.engine.containers.len()), (1, 1));
    assert_settled(&world);
}

/// Somebody removes the successor of an update before it is started.
#[test]
fn no_name_is_used_for_a_second_container() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.apply(&[&image(2)]);
    let first = world.row("web").next.clone().unwrap();
    world.engine.containers.remove(first.name.as_str());
    let (id, uid) = (first.container.unwrap(), world.row("web").uid.clone());
    world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Removed }));
    assert_ne!(world.row("web").next.as_ref().unwrap().name, first.name);
    world.pass(limits::STOP_GRACE_MS + limits::STABLE_MS);
    assert_eq!((world.state("web"), world.engine.containers.len()), (State::RunningOk, 1));
    assert_settled(&world);
}

/// A look at what is to go says nothing about a name that is reserved.
#[test]
fn a_reserved_name_is_not_taken_for_a_container() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let id = world.container("web");
    world.engine.unremovable.push(id.clone());
    world.fail_next("create", &[FaultKind::Panicked, FaultKind::Trouble]);
    let made = world.engine.find_mut(id.as_str());
    made.phase = Phase::Dead;
    let uid = made.tags.uid.clone();
    world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Changed }));
    world.pass(limits::FULL_COMPARE_MS);
    world.engine.unremovable.clear();
    world.pass(limits::RESTART_MAX_DELAY_MS);
    assert_eq!(world.count("create"), 4, "{:?}", world.engine.calls);
    assert_eq!((world.state("web"), world.engine.containers.len()), (State::RunningOk, 1));
    assert_settled(&world);
}
