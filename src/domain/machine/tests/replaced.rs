//! Another engine where the known one was, and the known one again.

use std::collections::BTreeMap;
use std::mem;

use super::engine::kill_engine;
use super::world::Engine;
use super::*;
use crate::domain::effect::Refusal;
use crate::domain::names::EngineId;
use crate::limits;

const WAIT: u64 = limits::ENGINE_REPLACED_MS;

/// What an engine holds, and what it calls itself.
type Disk = (BTreeMap<String, Made>, Option<EngineId>);

fn id(name: &str) -> Option<EngineId> {
    Some(EngineId::new(name))
}

fn with_volume(spec: &mut Spec) {
    let source = MountSource::Volume("data".to_owned());
    spec.mounts.push(Mount { source, target: "/data".to_owned(), read_only: false });
}

/// A service, one with a volume, a job that is done, and a service that is stopped, on engine `A`.
fn world() -> World {
    let mut engine = Engine::default();
    engine.identity = id("A");
    let mut world = World::before(Store::new(), engine);
    world.feed(Event::StreamUp(EngineInfo::default()));
    let job = workload("job", |spec| spec.restart.policy = RestartPolicy::Never);
    let (web, db) = (workload("web", |_| {}), workload("db", with_volume));
    world.apply(&[&web, &db, &job, &workload("off", |_| {})]);
    world.exit("job", 0);
    world.verb("off", Verb::Stop);
    world.pass(31_000);
    assert_eq!(world.store.kept.engine, id("A"));
    world
}

/// Another disk under the engine while it is away.
fn swap(world: &mut World, (containers, identity): Disk) -> Disk {
    kill_engine(world);
    replace(world, (containers, identity))
}

fn replace(world: &mut World, (containers, identity): Disk) -> Disk {
    world.engine.gone = false;
    let containers = mem::replace(&mut world.engine.containers, containers);
    (containers, mem::replace(&mut world.engine.identity, identity))
}

fn come_up(world: &mut World) {
    world.feed(Event::StreamUp(EngineInfo::default()));
}

fn empty(name: &str) -> Disk {
    (BTreeMap::new(), id(name))
}

fn condition(world: &World) -> Option<&String> {
    world.status.conditions.get("engineReplaced")
}

fn confirm(world: &mut World) -> String {
    match world.ask(Request::Confirm) {
        Answer::Done(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn b65_nothing_is_made_in_place_of_what_may_come_back() {
    let mut world = world();
    let before = world.store.kept.rows.clone();
    let disk = swap(&mut world, empty("B"));
    let ids = ["web", "db", "job", "off"].map(|name| world.container(name));
    world.engine.calls.clear();
    come_up(&mut world);
    let told = condition(&world).expect("a condition");
    assert!(told.contains("now B, before A") && told.contains("bargee confirm"), "{told}");
    let lines = world.logs.iter().filter(|line| line.contains("now B, before A"));
    assert_eq!(lines.count(), 1, "{:?}", world.logs);
    assert_eq!(world.view("job").state, State::SucceededOk, "nothing of it is awaited");
    for (name, state) in [("web", State::PendingWaitingToStart), ("off", State::StoppedOk)] {
        let view = world.view(name);
        assert!(view.info.starts_with("engineReplaced"), "{view:?}");
        assert_eq!((view.state, view.pid), (state, 0), "{name}");
    }
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + WAIT)));
    assert_eq!(world.view("db").next_attempt, None);
    assert!(world.view("db").info.contains("(data)"), "{}", world.view("db").info);
    world.pass(WAIT - 1);
    assert!(world.engine.calls.iter().all(|call| call == "list"), "{:?}", world.engine.calls);
    assert_eq!(ids, ["web", "db", "job", "off"].map(|name| world.container(name)));

    // The disk is mounted at last.
    swap(&mut world, disk);
    come_up(&mut world);
    assert_eq!(condition(&world), None);
    assert_eq!(["web", "db"].map(|name| world.state(name)), [State::RunningOk; 2]);
    assert_eq!(world.state("job"), State::SucceededOk);
    assert_eq!(world.state("off"), State::StoppedOk);
    assert_eq!(ids, ["web", "db", "job", "off"].map(|name| world.container(name)));
    assert_eq!((world.count("create"), world.count("remove"), world.count("start")), (0, 0, 2));
    world.pass(31_000);
    for (uid, row) in &world.store.kept.rows {
        assert_eq!(row.restart_count, before[uid].restart_count);
        assert_eq!((row.last_error.as_str(), &row.elsewhere), ("", &None));
    }
    assert_eq!(world.store.kept.engine, id("A"));
}

#[test]
fn what_has_no_volumes_is_made_anew_after_a_while_and_the_rest_when_somebody_says_so() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    world.pass(WAIT + 1);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.state("job"), State::SucceededOk, "what is done stays done");
    assert_eq!(world.state("db"), State::PendingWaitingToStart);
    assert_eq!((world.view("web").restart_count, world.view("web").last_error.as_str()), (0, ""));
    assert_eq!(world.store.kept.engine, id("A"), "something is still awaited");
    let told = condition(&world).expect("a condition").clone();
    assert!(told.contains("default/db") && !told.contains("default/web"), "{told}");
    world.pass(10 * WAIT);
    assert_eq!(world.state("db"), State::PendingWaitingToStart);

    let said = confirm(&mut world);
    assert!(said.contains("default/db") && !said.contains("default/web"), "{said}");
    assert_eq!(world.state("db"), State::RunningOk);
    assert_eq!(condition(&world), None);
    assert_eq!(world.store.kept.engine, id("B"));
    assert_eq!(world.running(), 2);
    assert!(confirm(&mut world).starts_with("there is nothing"));
    assert_eq!(world.logs.iter().filter(|l| l.contains("vanished")).count(), 0);
}

#[test]
fn a_confirmation_accepts_the_engine_for_all_at_once() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    // A confirmation that the store does not take changes nothing.
    world.store.fails = true;
    assert!(matches!(world.ask(Request::Confirm), Answer::Refused(Refusal::Store(_))));
    assert_eq!(world.state("db"), State::PendingWaitingToStart);
    world.store.fails = false;
    world.pass(10_000);
    confirm(&mut world);
    assert_eq!(["web", "db"].map(|name| world.state(name)), [State::RunningOk; 2]);
    assert_eq!(world.running(), 2);
    // The one before again: what it has is taken up, and the later ones are on the other.
    let other = swap(&mut world, (BTreeMap::new(), id("C")));
    swap(&mut world, other);
    come_up(&mut world);
    assert_eq!(condition(&world), None);
}

#[test]
fn new_workloads_start_at_once_and_declarations_are_taken() {
    let mut world = world();
    let disk = swap(&mut world, empty("B"));
    come_up(&mut world);
    world.apply(&[&workload("new", with_volume)]);
    assert_eq!(world.state("new"), State::RunningOk);
    // One that loses its volumes need not wait for somebody.
    world.apply(&[&workload("db", |_| {})]);
    assert!(world.view("db").next_attempt.is_some());
    let uid = world.view("web").uid.clone();
    world.verb("web", Verb::Remove);
    assert!(!world.store.kept.rows.contains_key(&uid), "what is to go need not come back");
    let task = world.verb("db", Verb::Kill("SIGHUP".to_owned()));
    assert_eq!(world.task(task), TaskState::Failed);

    // The next agent goes on waiting, though the new workload's container is here.
    let mut world = world.restart_agent(BOOT);
    assert!(condition(&world).is_some());
    assert_eq!(world.state("new"), State::RunningOk);
    assert_eq!(world.state("db"), State::PendingWaitingToStart);
    assert_eq!(world.count("create"), 0);

    // And finds the one before: what was made meanwhile is made there.
    swap(&mut world, disk);
    come_up(&mut world);
    world.pass(31_000);
    assert_eq!(condition(&world), None);
    assert_eq!(["new", "db"].map(|name| world.state(name)), [State::RunningOk; 2]);
    world.pass(600_000);
    assert_eq!(world.running(), 2, "what was removed meanwhile is removed there too");
    assert_eq!(world.view("new").restart_count, 0);
}

#[test]
fn the_wait_goes_on_over_an_agent_restart_and_begins_anew_with_a_boot() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    world.pass(WAIT / 2);
    let mut world = world.restart_agent(BOOT);
    world.pass(WAIT / 2 - 1);
    assert_eq!(world.state("web"), State::PendingWaitingToStart);
    world.pass(2);
    assert_eq!(world.state("web"), State::RunningOk);

    let mut world = self::world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    world.pass(WAIT / 2);
    let mut world = world.restart_agent("boot-2");
    world.pass(WAIT - 1);
    assert_eq!(world.state("web"), State::PendingWaitingToStart);
    world.pass(2);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn time_passes_while_the_engine_is_away_and_counts_when_it_is_back() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    let other = swap(&mut world, empty("B"));
    world.pass(2 * WAIT);
    assert_eq!(world.running(), 0);
    replace(&mut world, other);
    come_up(&mut world);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn an_engine_that_has_a_container_is_the_known_one_whatever_it_calls_itself() {
    let mut world = world();
    let (containers, _) = swap(&mut world, empty("B"));
    replace(&mut world, (containers, id("A after an upgrade")));
    come_up(&mut world);
    assert_eq!(condition(&world), None);
    assert_eq!(world.running(), 2);
    assert_eq!(world.store.kept.engine, id("A after an upgrade"));
}

#[test]
fn all_containers_of_the_same_engine_count_and_a_single_one_does_not() {
    // The store does not know the engine, or it does not say what it is, or it is the same.
    for identity in [None, id("A")] {
        let mut world = world();
        world.store.kept.engine.clone_from(&identity);
        world.engine.containers.clear();
        world.engine.identity = identity;
        let mut world = world.restart_agent(BOOT);
        assert!(condition(&world).is_some());
        world.pass(WAIT + 1);
        assert_eq!(world.running(), 1);
    }
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(31_000);
    world.engine.containers.clear();
    let world = world.restart_agent(BOOT);
    assert_eq!((condition(&world), world.running()), (None, 1));
}

#[test]
fn some_of_the_containers_are_an_ordinary_loss() {
    let mut world = world();
    let lost = world.container("db");
    world.engine.containers.retain(|_, made| made.id != lost);
    let world = world.restart_agent(BOOT);
    assert_eq!((condition(&world), world.running()), (None, 2));
}

#[test]
fn all_of_them_removed_under_an_engine_that_is_up_are_made_anew_at_once() {
    let mut world = world();
    world.engine.containers.clear();
    // The stream was down for a moment, too.
    world.feed(Event::StreamLost);
    world.feed(Event::StreamDown(Fault::new(FaultKind::Trouble, "events", "", "ended")));
    come_up(&mut world);
    assert_eq!((condition(&world), world.running()), (None, 2));
}

#[test]
fn an_engine_that_is_another_one_in_no_time_takes_nobody_by_surprise() {
    let mut world = world();
    // The old one ends its containers, which is heard of; the new one is asked about them.
    world.unanswered.push("inspect");
    let id = world.container("web");
    let uid = world.view("web").uid.clone();
    let action = ContainerAction::Died;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    world.feed(Event::StreamLost);
    replace(&mut world, empty("B"));
    let step = match world.withheld.remove(0) {
        Event::StepDone(step, _) => step,
        other => panic!("{other:?}"),
    };
    world.unanswered.clear();
    world.feed(Event::StepDone(step, Ok(Outcome::NotFound)));
    assert_eq!(world.count("create"), 4, "those of the beginning");
    world.feed(Event::StreamDown(Fault::new(FaultKind::Trouble, "events", "", "ended")));
    assert!(condition(&world).is_some());
    come_up(&mut world);
    world.pass(WAIT - 10_000);
    assert_eq!((world.count("create"), world.running()), (4, 0));
}

#[test]
fn it_is_known_again_though_something_took_its_place_meanwhile() {
    let mut world = world();
    let disk = swap(&mut world, empty("B"));
    come_up(&mut world);
    confirm(&mut world);
    assert_eq!(world.running(), 2);
    swap(&mut world, disk);
    come_up(&mut world);
    world.pass(31_000);
    assert_eq!((condition(&world), world.running()), (None, 2));
    assert_eq!(world.view("web").restart_count, 0);
    assert_eq!(world.store.kept.engine, id("A"));
    assert!(world.twins.is_empty(), "{:?}", world.twins);
}

#[test]
fn a_store_that_cannot_write_is_told_of_the_engine_once_and_again_when_it_is_met_again() {
    let mut engine = Engine::default();
    engine.identity = id("A");
    let mut store = Store::new();
    store.fails = true;
    let mut world = World::before(store, engine);
    come_up(&mut world);
    world.pass(120_000);
    assert_eq!((world.store.commits, &world.store.kept.engine), (1, &None));
    world.store.fails = false;
    come_up(&mut world);
    assert_eq!(world.store.kept.engine, id("A"));
}

/// As a nightly `docker system prune` leaves jobs that are done. Then the engine starts again, or
/// the agent does.
#[test]
fn jobs_that_are_done_and_whose_containers_were_pruned_are_missed_by_nobody() {
    let mut engine = Engine::default();
    engine.identity = id("A");
    let mut world = World::before(Store::new(), engine);
    come_up(&mut world);
    let job = |name| {
        workload(name, |spec| {
            spec.restart.policy = RestartPolicy::Never;
            with_volume(spec);
        })
    };
    world.apply(&[&job("import"), &job("export")]);
    ["import", "export"].into_iter().for_each(|name| world.exit(name, 0));
    world.pass(61_000);
    world.engine.containers.clear();
    world.pass(61_000);
    kill_engine(&mut world);
    world.engine.gone = false;
    come_up(&mut world);
    assert_eq!(condition(&world), None);
    let mut world = world.restart_agent(BOOT);
    assert_eq!(condition(&world), None);
    assert_eq!(["import", "export"].map(|name| world.state(name)), [State::SucceededOk; 2]);
    world.pass(61_000);
    // The next one runs at once.
    world.apply(&[&workload("import", |spec| {
        spec.restart.policy = RestartPolicy::Never;
        spec.image = "other:2".to_owned();
    })]);
    assert_eq!(world.state("import"), State::RunningOk);
}

/// It knows who it is, and does not come to say so.
#[test]
fn a_single_container_may_be_on_another_engine_if_this_one_does_not_say_who_it_is() {
    let mut engine = Engine::default();
    engine.identity = id("A");
    let mut world = World::before(Store::new(), engine);
    come_up(&mut world);
    world.apply(&[&workload("db", with_volume)]);
    world.pass(31_000);
    swap(&mut world, (BTreeMap::new(), None));
    come_up(&mut world);
    assert!(condition(&world).is_some());
    world.pass(31_000);
    assert_eq!(world.running(), 0);
}

/// One may be awaited for ever, and comes first in a drain.
#[test]
fn a_drain_does_not_wait_for_what_is_on_another_engine() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    let new = workload("new", |spec| spec.schedule = 1);
    world.apply(&[&new]);
    world.engine.calls.clear();
    world.feed(Event::Drain(None));
    assert_eq!((world.running(), world.drained), (0, 1), "{:?}", world.engine.calls);
    let world = world.restart_agent(BOOT);
    assert!(condition(&world).is_some());
    assert_eq!(world.view("new").restart_count, 0);
}

/// A power cut may come at once, and what was made meanwhile looks like the right engine.
#[test]
fn that_it_waits_is_durable_before_something_is_made_on_the_other_engine() {
    let mut world = world();
    swap(&mut world, empty("B"));
    come_up(&mut world);
    assert!(world.store.kept.rows.values().all(|row| row.elsewhere.is_some()));
}
