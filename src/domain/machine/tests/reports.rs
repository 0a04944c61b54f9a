//! What went wrong for people with agents of this kind, and is right here. `tests/field_reports.md`
//! lists the reports by their ids, which the names of the tests begin with.

use super::engine::{kill_engine, revive_engine};
use super::*;
use crate::domain::names::SpecHash;
use crate::limits;

/// A listing finds these containers as they are now.
fn compare(world: &mut World) {
    world.feed(Event::StreamUp(EngineInfo::default()));
}

/// The engine tells that something happened to the container of a workload.
fn tell(world: &mut World, id: &ContainerId, uid: &Uid, action: ContainerAction) {
    world.queue(Event::Container(ContainerEvent { id: id.clone(), uid: uid.clone(), action }));
}

/// Somebody removes it, and the engine is never done with that.
#[test]
fn b05_a_container_that_hangs_in_its_removal_holds_its_workload_for_a_minute() {
    for (name, ran_ms) in [("old", 40_000), ("young", 1_000)] {
        let mut world = World::new();
        world.apply(&[&workload(name, |_| {}), &workload("other", |_| {})]);
        world.pass(ran_ms);
        let hanging = world.container(name);
        world.engine.unremovable.push(hanging.clone());
        let made = world.engine.find_mut(hanging.as_str());
        (made.phase, made.exit_code) = (Phase::Removing, 137);
        compare(&mut world);
        assert_eq!(world.view(name).runtime_state, RuntimeState::Deleting);
        world.pass(limits::REMOVING_MS - 1);
        assert_eq!((world.container(name), world.running()), (hanging.clone(), 1));
        world.pass(limits::RESTART_DELAY_MS + limits::PASSING_STATE_LOOK_MS);
        assert_eq!((world.state(name), world.running()), (State::RunningOk, 2));
        assert_ne!(world.container(name), hanging);
        assert_eq!(world.view(name).restart_count, 1);
        assert_eq!(world.view(name).last_error, "exitCode=137 oomKilled=false");
        let told: Vec<_> = world.entries.values().map(|entry| entry.error.as_str()).collect();
        assert!(told.len() == 1 && told[0].contains("device busy"), "{told:?}");
        // It is removed as soon as the engine can.
        world.engine.unremovable.clear();
        world.pass(60_000);
        assert_eq!((world.running(), world.engine.containers.len()), (2, 2));
        assert_eq!(world.view(name).restart_count, 1, "{name}");
    }
}

/// A removal that takes its time is not one that hangs.
#[test]
fn b05_a_container_that_is_removed_in_time_is_one_that_vanished() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(40_000);
    let leaving = world.container("web");
    world.engine.find_mut(leaving.as_str()).phase = Phase::Removing;
    compare(&mut world);
    world.pass(limits::REMOVING_MS - 1_000);
    world.engine.containers.clear();
    world.pass(limits::PASSING_STATE_LOOK_MS);
    assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 1));
    assert_eq!(world.view("web").last_error, "the container vanished");
}

#[test]
fn b10_restarts_are_counted_over_restarts_of_engine_and_agent() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    for count in 1..=3 {
        world.exit("web", 1);
        world.pass(300_000);
        assert_eq!(world.view("web").restart_count, count);
    }
    kill_engine(&mut world);
    world.pass(60_000);
    revive_engine(&mut world);
    assert_eq!(world.view("web").restart_count, 3, "an engine that dies is no crash");
    let mut world = world.restart_agent(BOOT);
    world.exit("web", 1);
    world.pass(300_000);
    assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 4));
}

/// It ended while no agent was there to see it.
#[test]
fn b28_under_always_whatever_does_not_run_is_started() {
    let ways = [0, 1, 137, 143, 255].map(|code| (Some(Phase::Exited), code));
    for (phase, code) in ways.into_iter().chain([(Some(Phase::Dead), 1), (None, 0)]) {
        let mut world = World::new();
        world.apply(&[&workload("web", |_| {})]);
        world.pass(40_000);
        let name = world.engine.containers.keys().next().unwrap().clone();
        match &phase {
            Some(phase) => {
                let made = world.engine.find_mut(&name);
                (made.phase, made.exit_code) = (phase.clone(), code);
            }
            None => world.engine.containers.clear(),
        }
        let mut world = world.restart_agent(BOOT);
        world.pass(limits::RESTART_DELAY_MS);
        let runs = (world.state("web"), world.running(), world.engine.containers.len());
        assert_eq!(runs, (State::RunningOk, 1, 1), "{phase:?} {code}");
    }
    // Made, and never started.
    let mut world = World::new();
    world.unanswered.push("start");
    world.fail_next("start", &[FaultKind::Trouble]);
    world.apply(&[&workload("web", |_| {})]);
    assert_eq!(world.engine.containers.values().next().unwrap().phase, Phase::Created);
    let world = world.restart_agent(BOOT);
    assert_eq!((world.state("web"), world.running()), (State::RunningOk, 1));
}

#[test]
fn b34_restarts_are_counted_though_the_container_is_made_anew() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    for count in 1..=6 {
        let id = world.container("web");
        if count % 2 == 0 {
            world.engine.containers.clear();
            compare(&mut world);
        } else {
            world.exit("web", 1);
        }
        world.pass(300_000);
        assert_eq!(world.view("web").restart_count, count);
        assert_eq!(world.container("web") == id, count % 2 == 1);
    }
    assert_eq!(world.count("create"), 4);
}

/// `kill` and `die`, in any order and more than once, and a listing on top.
#[test]
fn b35_an_exit_that_is_told_many_times_is_one_restart() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(31_000);
    let (id, uid) = (world.container("web"), world.view("web").uid.clone());
    let died = ContainerAction::Died;
    for action in [ContainerAction::Changed, died, ContainerAction::OutOfMemory, died] {
        tell(&mut world, &id, &uid, action);
    }
    world.exit("web", 137);
    tell(&mut world, &id, &uid, died);
    compare(&mut world);
    world.pass(60_000);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!((world.count("start"), world.view("web").restart_count), (2, 1));
}

/// Neither a registry nor anything else beyond the device is there, and it was never reached.
#[test]
fn b59_without_a_network_a_cold_boot_starts_everything_from_what_is_on_the_device() {
    let mut world = World::new();
    let of = |pull| move |spec: &mut Spec| spec.pull = pull;
    let all = [
        workload("missing", of(Pull::Missing)),
        workload("always", of(Pull::Always)),
        workload("never", of(Pull::Never)),
    ];
    world.apply(&all.iter().collect::<Vec<_>>());
    world.pass(10_000);
    world.cut_power();
    world.engine.calls.clear();
    world.fail_next("pull", &[FaultKind::Trouble; 9]);
    world.crash();
    for name in ["missing", "always", "never"] {
        assert_eq!(world.state(name), State::RunningOk, "{name}");
    }
    assert_eq!((world.now, world.count("pull")), (1_000, 0), "at once");
}

/// The thread that reads the stream tries to connect every 5 s, and hears one thing or another.
#[test]
fn b94_an_engine_that_is_away_for_a_day_is_told_of_once() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(60_000);
    world.logs.clear();
    for n in 0..24 * 720 {
        let why = ["refused", "no such file"][n % 2];
        let away = Fault::new(FaultKind::Away, "connect", "", why);
        world.engine.gone = true;
        world.feed(Event::StreamDown(away));
        world.pass(5_000);
    }
    assert_eq!(world.logs.len(), 1, "{:?}", &world.logs[..2.min(world.logs.len())]);
    revive_engine(&mut world);
    assert_eq!(world.logs.len(), 2, "{:?}", world.logs);
}

/// Another version of bargee hashed other things.
#[test]
fn b115_containers_of_another_version_are_left_alone_until_they_are_changed() {
    let mut world = World::new();
    let (web, db) = (workload("web", |_| {}), workload("db", |_| {}));
    world.apply(&[&web, &db]);
    world.pass(6_000);
    for hash in ["0-0123456789abcdef", "77-0123456789abcdef"].map(SpecHash::new) {
        for made in world.engine.containers.values_mut() {
            made.tags.spec_hash = hash.clone();
        }
        for row in world.store.kept.rows.values_mut() {
            row.current.as_mut().unwrap().spec_hash = hash.clone();
        }
        let before = world.engine.containers.clone();
        world.crash();
        world.engine.calls.clear();
        world.pass(3_600_000);
        assert_eq!(world.count("list"), world.engine.calls.len(), "{:?}", world.engine.calls);
        assert_eq!(world.engine.containers, before);
        assert_eq!(world.apply(&[&web, &db]), [(1, Change::Unchanged), (1, Change::Unchanged)]);
        assert_eq!(world.engine.containers, before);
    }
    let db_before = world.container("db");
    let changed = workload("web", |spec| spec.user = Some("1".to_owned()));
    assert_eq!(world.apply(&[&changed, &db]), [(2, Change::Replaced), (1, Change::Unchanged)]);
    assert_eq!((world.state("web"), world.container("db")), (State::RunningOk, db_before));
}
