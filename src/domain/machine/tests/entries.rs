//! Entries at odd moments: two about one instance, hurried, dropped, and many of them.

use super::*;
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::InstanceName;
use crate::limits;

fn entry(seq: u64, intent: Intent) -> Entry {
    Entry {
        seq: Seq(seq),
        intent,
        token: "old".to_owned(),
        at_ms: 1,
        tries: 0,
        error: String::new(),
    }
}

fn create(uid: &Uid, instance: &str) -> Intent {
    Intent::Create { uid: uid.clone(), instance: InstanceName::new(instance) }
}

fn remove(uid: &Uid, instance: &str) -> Intent {
    let instance = InstanceName::new(instance);
    Intent::Remove { uid: uid.clone(), instance, container: None }
}

/// Puts entries into the store as an agent leaves them that dies.
fn leave(world: &mut World, intents: Vec<Intent>) {
    for intent in intents {
        world.store.kept.last_seq += 1;
        let seq = world.store.kept.last_seq;
        world.store.kept.entries.insert(Seq(seq), entry(seq, intent));
    }
}

/// Puts a container of this store into the engine.
fn put(world: &mut World, uid: &Uid, instance: &str, phase: Phase) {
    let mut tags = tags_of("web");
    tags.uid = uid.clone();
    tags.instance = InstanceName::new(instance);
    world.engine.containers.insert(instance.to_owned(), made(instance, tags, phase));
}

fn tags_of(name: &str) -> Tags {
    Tags {
        uid: Uid::new("nobody"),
        key: workload(name, |_| {}).key.clone(),
        instance: InstanceName::new(name),
        generation: 1,
        spec_hash: crate::domain::names::SpecHash::new("1:x"),
        store: StoreId::new("0123456789abcdef"),
        node: "node".to_owned(),
    }
}

/// A commit of unknown outcome leaves one that nobody knows of, and another one follows it.
#[test]
fn two_entries_about_one_instance_are_both_settled() {
    for has_row in [true, false] {
        let mut world = World::new();
        world.apply(&[&workload("web", |_| {})]);
        let uid = if has_row { world.view("web").uid.clone() } else { Uid::new("gone") };
        put(&mut world, &uid, "web-twice", Phase::Exited);
        leave(
            &mut world,
            vec![create(&uid, "web-twice"), remove(&uid, "web-twice"), remove(&uid, "web-twice")],
        );
        world.crash();
        assert_eq!(world.status.recovering, None, "{has_row}: changes are held up");
        world.pass(30_000);
        assert_eq!(world.store.kept.entries, BTreeMap::new(), "{has_row}");
        assert_eq!((world.entries.len(), world.engine.containers.len()), (0, 1), "{has_row}");
    }
}

/// What is asked for again is what failed; what waits has its reasons.
#[test]
fn a_replay_does_not_cut_the_wait_for_a_late_create_short() {
    let mut world = World::new();
    leave(&mut world, vec![create(&Uid::new("gone"), "web-late")]);
    world.crash();
    assert_eq!(world.status.recovering, None);
    for seq in [None, Some(Seq(1))] {
        world.ask(Request::Replay(seq));
        assert_eq!(world.store.kept.entries.len(), 1, "{seq:?}: settled before its second look");
    }
    world.pass(limits::LATE_CREATE_MS);
    assert_eq!(world.store.kept.entries.len(), 0);
}

#[test]
fn a_replay_does_not_cut_a_grace_short() {
    let mut world = World::new();
    let uid = Uid::new("gone");
    put(&mut world, &uid, "web-deaf", Phase::Running);
    leave(&mut world, vec![remove(&uid, "web-deaf")]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.crash();
    assert_eq!((world.count("SIGTERM"), world.count("remove")), (1, 0));
    world.ask(Request::Replay(None));
    world.ask(Request::Replay(Some(Seq(1))));
    assert_eq!(world.count("remove"), 0, "it has its grace");
    world.pass(limits::STOP_GRACE_MS);
    assert_eq!(world.engine.containers.len(), 0);
}

#[test]
fn a_replay_tries_at_once_what_failed() {
    let mut world = World::new();
    let uid = Uid::new("gone");
    put(&mut world, &uid, "web-stuck", Phase::Exited);
    leave(&mut world, vec![remove(&uid, "web-stuck")]);
    world.fail_next("remove", &[FaultKind::Trouble]);
    world.crash();
    assert_eq!(world.count("remove"), 1);
    assert!(!world.entries[&Seq(1)].error.is_empty());
    world.ask(Request::Replay(None));
    assert_eq!((world.count("remove"), world.engine.containers.len()), (2, 0));
}

#[test]
fn an_entry_whose_container_cannot_be_looked_at_keeps_the_cause() {
    for has_row in [true, false] {
        let mut world = World::new();
        world.apply(&[&workload("web", |_| {})]);
        let uid = if has_row { world.view("web").uid.clone() } else { Uid::new("gone") };
        put(&mut world, &uid, "web-odd", Phase::Exited);
        leave(&mut world, vec![remove(&uid, "web-odd")]);
        world.fail_next("inspect", &[FaultKind::Trouble; 2]);
        world.crash();
        let seq = Seq(world.store.kept.last_seq);
        assert!(world.entries[&seq].error.contains("Trouble"), "{has_row}: {:?}", world.entries);
        assert!(world.store.kept.entries[&seq].error.contains("Trouble"), "{has_row}");
        assert_eq!(world.status.recovering, None, "{has_row}: a failed entry holds nothing up");
        world.pass(60_000);
        assert_eq!((world.entries.len(), world.engine.containers.len()), (0, 1), "{has_row}");
    }
}

#[test]
fn a_container_of_another_node_is_nobodys_orphan() {
    let mut world = World::new();
    put(&mut world, &Uid::new("theirs"), "web-theirs", Phase::Running);
    world.engine.containers.get_mut("web-theirs").unwrap().tags.node = "other".to_owned();
    world.pass(600_000);
    assert_eq!(world.running(), 1, "{:?}", world.engine.calls);
}

#[test]
fn what_a_released_start_could_not_record_is_recorded_later() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(40_000);
    world.store_hangs = true;
    // The start goes without its commit, and fails without another change of the row.
    world.fail_next("start", &[FaultKind::NoContainer]);
    world.exit("web", 7);
    world.fail_next("inspect", &[FaultKind::Timeout; 9]);
    let commit = world.hung.expect("a commit");
    world.pass(limits::START_GATE_MS);
    assert_eq!(world.count("start"), 2);
    world.store_hangs = false;
    world.feed(Event::Committed(commit, Err("disk full".to_owned())));
    world.pass(limits::ROW_WRITE_MS);
    let exit = world.row("web").last_exit.as_ref().expect("an exit");
    assert_eq!(exit.code, Some(7));
}

/// A store that hangs for hours is sent no more than it can take at once.
#[test]
fn starts_beside_a_store_that_hangs_do_not_pile_up_in_it() {
    let mut world = World::new();
    world.apply(&[&workload("web", |spec| {
        spec.restart.delay = Span(1_000);
        spec.restart.max_delay = Span(1_000);
    })]);
    world.pass(40_000);
    world.store_hangs = true;
    let starts = world.count("start");
    for _ in 0..20 {
        world.exit("web", 1);
        world.pass(5_000);
    }
    assert_eq!(world.count("start"), starts + 20);
    assert!(world.count("commit") <= 3, "{} commits wait", world.count("commit"));
}

#[test]
fn unknown_creates_under_one_name_are_noted_once() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::Timeout; 300]);
    world.apply(&[&workload("web", |_| {})]);
    world.pass(600_000);
    let cut = world.machine.workloads.values().map(|w| w.cut.len()).max();
    assert!(world.count("create") > 5 && cut <= Some(1), "{cut:?}");
}

/// An insert of unknown outcome that holds, and was declared again.
#[test]
fn of_two_rows_with_one_key_one_runs() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let mut twin = world.row("web").clone();
    twin.uid = Uid::new("a-twin");
    twin.current = None;
    world.store.kept.rows.insert(twin.uid.clone(), twin);
    let mut world = world.restart_agent(BOOT);
    world.pass(120_000);
    assert_eq!((world.running(), world.engine.containers.len()), (1, 1));
}

#[test]
fn a_drop_beside_a_claim_does_not_make_the_store_look_bad() {
    let mut world = World::new();
    let uid = Uid::new("gone");
    put(&mut world, &uid, "web-stuck", Phase::Exited);
    leave(&mut world, vec![remove(&uid, "web-stuck")]);
    world.fail_next("remove", &[FaultKind::Trouble]);
    world.unanswered.push("remove");
    world.crash();
    world.store.may_break = true;
    world.pace = world::Pace::SlowStore;
    let ask = world.next_ask();
    let answers = std::mem::take(&mut world.withheld);
    world.unanswered.clear();
    world.queue(Event::Ask(ask, Request::DropEntry(Seq(1))));
    answers.into_iter().for_each(|answer| world.queue(answer));
    world.pass(0);
    assert_eq!(world.store.kept.entries.len(), 0);
    assert!(world.status.conditions.is_empty(), "{:?}", world.status.conditions);
}

/// Settled under the token of another process, the row with it was refused.
#[test]
fn what_could_not_be_claimed_is_claimed_before_it_is_settled() {
    for has_row in [true, false] {
        let mut world = World::new();
        world.apply(&[&workload("web", |_| {})]);
        let uid = if has_row { world.view("web").uid.clone() } else { Uid::new("gone") };
        put(&mut world, &uid, "web-old", Phase::Exited);
        leave(&mut world, vec![remove(&uid, "web-old")]);
        world.unanswered.push("remove");
        world.store.fails = true;
        world.crash();
        world.store.fails = false;
        world.answer_late();
        world.pass(limits::ENGINE_LOOK_MS - 1);
        world.pass(limits::ROW_WRITE_MS);
        assert_eq!(world.store.kept.entries.len(), 0, "{has_row}");
        assert!(world.status.conditions.is_empty(), "{has_row}: {:?}", world.status.conditions);
    }
}

/// The one that failed was somebody else's, and nothing else is there to be written.
#[test]
fn a_removal_that_rests_finds_out_that_the_store_writes_again() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let uid = world.view("web").uid.clone();
    put(&mut world, &uid, "web-twin", Phase::Running);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    while world.count("SIGTERM") == 0 {
        world.pass(1_000);
    }
    world.pass(limits::ROW_WRITE_MS);
    world.store.fails = true;
    let request = world.request(&[&workload("other", |_| {})]);
    assert!(matches!(world.ask(request), Answer::Refused(_)));
    world.store.fails = false;
    world.pass(60_000);
    assert_eq!((world.running(), world.engine.containers.len()), (1, 1));
    assert!(world.status.conditions.is_empty(), "{:?}", world.status.conditions);
}
