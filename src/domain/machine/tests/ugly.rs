//! Journals that no agent leaves as they are here: entries that are unknown, foreign, doubled or
//! stale, entries that cannot be replayed, and ten thousand of them.

use super::journal::{assert_settled, beside, leave, name};
use super::*;
use crate::domain::effect::Refusal;
use crate::domain::intent::Intent;
use crate::limits;

fn web(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

/// A world with one workload that runs.
fn running() -> (World, Uid) {
    let mut world = World::new();
    world.apply(&[&web(1)]);
    world.pass(31_000);
    let uid = world.row("web").uid.clone();
    (world, uid)
}

/// A container of a workload that is gone.
fn ownerless(world: &mut World, id: &str, phase: Phase) -> Intent {
    let instance = beside(world, id, phase);
    let uid = Uid::new(format!("gone-{id}"));
    let made = world.engine.containers.get_mut(instance.as_str()).unwrap();
    made.tags.uid = uid.clone();
    made.tags.key = workload(id, |_| {}).key.clone();
    Intent::Create { uid, instance }
}

fn is_open(world: &mut World) -> bool {
    let request = world.request(&[&workload("other", |_| {})]);
    match world.ask(request) {
        Answer::Refused(Refusal::Busy(_)) => false,
        Answer::Applied(_) => true,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_kept_and_counted_and_stops_nothing() {
    let (mut world, uid) = running();
    let (kind, text) = ("create-lambda".to_owned(), "{".to_owned());
    let unreadable = leave(&mut world, Intent::Unreadable { kind, text });
    let instance = beside(&mut world, "left", Phase::Exited);
    leave(&mut world, Intent::Remove { uid, instance, container: None });
    let before = world.store.kept.entries[&unreadable].clone();
    world.crash();
    assert_eq!(world.engine.containers.len(), 1, "the one after it is replayed");
    assert_eq!((world.status.recovering, world.status.journal), (None, (1, 1)));
    assert_eq!(world.store.kept.entries.values().collect::<Vec<_>>(), [&before], "as it was");
    world.pass(3_600_000);
    assert_eq!(world.store.kept.entries.len(), 1);
    let answer = world.ask(Request::Replay(Some(unreadable)));
    assert!(matches!(answer, Answer::Refused(Refusal::Conflict(_))), "{answer:?}");
    let answer = world.ask(Request::DropEntry(unreadable));
    assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
    assert_settled(&world);
}

/// Whichever process wrote it, this one takes it over.
#[test]
fn an_entry_of_another_process_is_claimed() {
    let (mut world, uid) = running();
    let id = world.container("web");
    let instance = beside(&mut world, "left", Phase::Exited);
    let seq = leave(&mut world, Intent::Remove { uid, instance, container: None });
    world.fail_next("remove", &[FaultKind::Trouble]);
    world.crash();
    let entry = &world.store.kept.entries[&seq];
    assert_eq!((&*entry.token, entry.tries), ("token-1", 2), "{entry:?}");
    assert!(entry.error.contains("Trouble"), "{entry:?}");
    world.pass(limits::KILL_AGAIN_MS);
    assert_settled(&world);
    assert_eq!(world.container("web"), id);
}

#[test]
fn what_entries_say_of_workloads_that_are_gone_is_removed() {
    let (mut world, _) = running();
    for (id, phase) in
        [("made", Phase::Created), ("runs", Phase::Running), ("ended", Phase::Exited)]
    {
        let intent = ownerless(&mut world, id, phase);
        leave(&mut world, intent);
    }
    let (uid, old) = (Uid::new("gone"), name("bargee-gone-old"));
    let new = name("bargee-gone-new");
    leave(&mut world, Intent::Replace { uid: uid.clone(), old, container: None, new });
    let instance = name("bargee-gone-more");
    leave(&mut world, Intent::Remove { uid, instance, container: Some(ContainerId::new("more")) });
    world.crash();
    assert_eq!(world.status.recovering, Some((4, 5)), "the stop has its grace");
    world.pass(limits::STOP_GRACE_MS);
    assert_eq!(world.engine.containers.len(), 1);
    assert_settled(&world);
}

/// Neither by its name nor by its id, whatever an entry says.
#[test]
fn the_container_of_a_workload_is_never_removed() {
    let (mut world, uid) = running();
    let current = world.row("web").current.clone().unwrap();
    let (instance, container) = (current.name, current.container);
    let twin = beside(&mut world, "twin", Phase::Exited);
    for container in [None, container] {
        let (uid, instance, old) = (uid.clone(), instance.clone(), instance.clone());
        leave(
            &mut world,
            Intent::Remove { uid: uid.clone(), instance, container: container.clone() },
        );
        leave(&mut world, Intent::Create { uid: uid.clone(), instance: old.clone() });
        leave(&mut world, Intent::Replace { uid, old, container, new: twin.clone() });
    }
    world.crash();
    world.pass(3_600_000);
    assert_eq!(world.engine.containers.keys().collect::<Vec<_>>(), [instance.as_str()]);
    assert_eq!((world.count("SIG"), world.state("web")), (0, State::RunningOk));
    assert_settled(&world);
}

/// The name is the one it has, and the workload that the entry names is another one.
#[test]
fn an_entry_of_another_workload_does_not_remove_a_container() {
    let (mut world, _) = running();
    let current = world.row("web").current.clone().unwrap();
    for uid in ["gone", "never was"] {
        let (uid, instance) = (Uid::new(uid), current.name.clone());
        let container = current.container.clone();
        leave(&mut world, Intent::Remove { uid, instance, container });
    }
    world.crash();
    world.pass(3_600_000);
    assert_eq!((world.count("SIG"), world.count("remove")), (0, 0), "{:?}", world.engine.calls);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_settled(&world);
}

/// Made by somebody else, or from another store, under a name of ours.
#[test]
fn a_foreign_container_is_never_removed() {
    for of_workload in [false, true] {
        let (mut world, uid) = running();
        let uid = if of_workload { uid } else { Uid::new("gone") };
        let instance = beside(&mut world, "foreign", Phase::Running);
        let made = world.engine.containers.get_mut(instance.as_str()).unwrap();
        made.tags.store = StoreId::new("another");
        made.tags.uid = Uid::new("another's");
        made.tags.key = workload("another", |_| {}).key.clone();
        for container in [None, Some(ContainerId::new("foreign"))] {
            let (uid, instance) = (uid.clone(), instance.clone());
            leave(&mut world, Intent::Create { uid: uid.clone(), instance: instance.clone() });
            leave(&mut world, Intent::Remove { uid, instance, container });
        }
        world.crash();
        world.pass(3_600_000);
        assert_eq!((world.count("SIG"), world.count("remove")), (0, 0), "{:?}", world.engine.calls);
        assert_eq!(world.engine.running(), 2, "of a workload: {of_workload}");
        assert_settled(&world);
    }
}

/// One of them was to be settled when the agent died.
#[test]
fn two_entries_about_one_instance_are_both_settled() {
    let (mut world, uid) = running();
    let instance = beside(&mut world, "left", Phase::Exited);
    for _ in 0..2 {
        let (uid, instance) = (uid.clone(), instance.clone());
        leave(&mut world, Intent::Create { uid: uid.clone(), instance: instance.clone() });
        leave(&mut world, Intent::Remove { uid, instance, container: None });
    }
    let intent = ownerless(&mut world, "gone", Phase::Created);
    leave(&mut world, intent.clone());
    leave(&mut world, intent);
    world.crash();
    world.pass(limits::FULL_COMPARE_MS);
    assert_eq!(world.engine.containers.len(), 1);
    assert_settled(&world);
}

#[test]
fn what_cannot_be_replayed_is_retried_on_a_backoff_and_holds_nothing() {
    let (mut world, uid) = running();
    let instance = beside(&mut world, "stuck", Phase::Exited);
    let intent = ownerless(&mut world, "gone", Phase::Exited);
    world.engine.unremovable.extend([ContainerId::new("stuck"), ContainerId::new("gone")]);
    leave(&mut world, Intent::Remove { uid, instance, container: None });
    leave(&mut world, intent);
    world.crash();
    assert_eq!((world.status.recovering, world.status.journal), (None, (2, 2)));
    assert!(is_open(&mut world));
    world.engine.calls.clear();
    world.pass(3_600_000);
    let tries = world.count("remove");
    assert!((2 * 12..2 * 20).contains(&tries), "after 10, 20, 40, then 300 s: {tries}");
    assert_eq!(world.state("web"), State::RunningOk);
    world.engine.unremovable.clear();
    world.ask(Request::Replay(None));
    assert_eq!(world.engine.containers.len(), 2, "at once");
    assert_settled(&world);
}

/// The engine takes the calls and does not answer.
#[test]
fn replay_that_hangs_holds_changes_for_32_seconds() {
    let (mut world, uid) = running();
    for id in ["a", "b"] {
        let instance = beside(&mut world, id, Phase::Exited);
        leave(&mut world, Intent::Remove { uid: uid.clone(), instance, container: None });
    }
    let intent = ownerless(&mut world, "gone", Phase::Exited);
    leave(&mut world, intent);
    world.unanswered.push("inspect");
    world.crash();
    assert_eq!(world.status.recovering, Some((0, 3)));
    assert!(!is_open(&mut world));
    world.pass(limits::REPLAY_ENTRY_MS - 1);
    assert!(!is_open(&mut world));
    world.pass(limits::REPLAY_MS - limits::REPLAY_ENTRY_MS + 1);
    assert!(is_open(&mut world), "after 60 s at the latest");
    assert_eq!(world.state("other"), State::RunningOk, "what others need is done");
    world.answer_late();
    world.pass(limits::RESTART_MAX_DELAY_MS);
    assert_eq!(world.engine.containers.len(), 2);
    assert_settled(&world);
}

#[test]
fn an_engine_that_is_away_holds_changes_for_32_seconds() {
    let (mut world, uid) = running();
    let instance = beside(&mut world, "left", Phase::Exited);
    leave(&mut world, Intent::Remove { uid, instance, container: None });
    world.engine.gone = true;
    world.crash();
    assert_eq!(world.status.recovering, Some((0, 1)));
    world.pass(limits::REPLAY_ENTRY_MS - 1);
    assert!(!is_open(&mut world));
    world.pass(1);
    assert!(is_open(&mut world));
    assert_eq!(world.status.journal, (1, 0), "nothing was tried, and nothing failed");
    super::engine::revive_engine(&mut world);
    assert_eq!(world.engine.containers.len(), 2);
    assert_settled(&world);
}

/// Each of another workload that is gone, and a container for every tenth.
#[test]
fn ten_thousand_entries_are_counted_down_and_settled() {
    let (mut world, _) = running();
    for n in 0..10_000 {
        let intent = ownerless(&mut world, &format!("w{n}"), Phase::Created);
        if n % 10 > 0 {
            world.engine.containers.remove(intent.instance().unwrap().as_str());
        }
        leave(&mut world, intent);
    }
    world.unanswered.push("inspect");
    world.crash();
    assert_eq!(world.status.recovering, Some((0, 10_000)));
    assert_eq!(world.status.journal, (10_000, 0));
    world.answer_late();
    world.pass(limits::REPLAY_MS);
    assert_eq!((world.status.recovering, world.engine.containers.len()), (None, 1));
    world.pass(limits::LATE_CREATE_MS);
    assert_settled(&world);
    assert_eq!(world.store.kept.last_seq, 10_001, "no number is used again: one for the web's own");
    world.apply(&[&workload("other", |_| {})]);
    assert_eq!(world.store.kept.last_seq, 10_002);
}

/// The engine answers no look, whether a workload has the instance or not.
#[test]
fn ten_thousand_entries_that_hang_hold_changes_for_60_seconds_at_most() {
    let (mut world, uid) = running();
    for n in 0..10_000 {
        let instance = name(&format!("bargee-web-{n:08x}"));
        let uid = if n < 100 { uid.clone() } else { Uid::new(format!("gone-{n}")) };
        leave(&mut world, Intent::Remove { uid, instance, container: None });
    }
    world.unanswered.push("inspect");
    world.crash();
    assert_eq!(world.status.recovering, Some((0, 10_000)));
    world.pass(limits::REPLAY_MS - 1);
    assert!(!is_open(&mut world));
    world.pass(1);
    assert!(is_open(&mut world));
    let failed = world.status.journal.1;
    assert!((1..10).contains(&failed), "those that were tried: {failed}");
    world.answer_late();
    world.pass(limits::RESTART_MAX_DELAY_MS);
    assert_settled(&world);
    assert_eq!(world.state("web"), State::RunningOk);
}
