//! Worlds in which a workload is in a certain situation, by its policy.

use super::*;
use crate::domain::declared::Restart;
use crate::domain::health_check::{Check, Health, HealthCheck, OnUnhealthy, Test};
use crate::domain::names::EngineId;

pub(super) fn job(policy: RestartPolicy, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    workload("w", |spec| {
        spec.restart.policy = policy;
        change(spec);
    })
}

pub(super) fn newer(policy: RestartPolicy) -> Arc<Declared> {
    job(policy, |spec| spec.image = "image:2".to_owned())
}

/// Runs for five seconds.
pub(super) fn running(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.apply(&[&job(policy, |_| {})]);
    world.pass(5_000);
    world
}

pub(super) fn lose_engine(world: &mut World) {
    world.engine.gone = true;
    let fault = Fault::new(FaultKind::Away, "connect", "", "refused");
    world.feed(Event::StreamDown(fault));
}

pub(super) fn accepted_without_engine(policy: RestartPolicy) -> World {
    let mut world = World::new();
    lose_engine(&mut world);
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn not_looked_at(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.begin_agent();
    world
}

pub(super) fn mount_missing(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::HostPath]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn predecessor(policy: RestartPolicy) -> World {
    let mut world = deaf(policy, Verb::Remove);
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn store_missing(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    for made in world.engine.containers.values_mut() {
        made.tags.store = StoreId::new("ffffffffffffffff");
    }
    world.store = Store::default();
    world.crash();
    world.apply(&[&newer(policy)]);
    world
}

pub(super) fn elsewhere(policy: RestartPolicy, with_volumes: bool) -> World {
    let mut world = World::new();
    world.apply(&[&job(policy, |spec| {
        let source = MountSource::Volume("data".to_owned());
        let mount = Mount { source, target: "/data".to_owned(), read_only: false };
        spec.mounts.extend(with_volumes.then_some(mount));
    })]);
    replace_engine(&mut world);
    world
}

/// Another one answers, with nothing on it.
pub(super) fn replace_engine(world: &mut World) {
    world.store.kept.engine = Some(EngineId::new("before"));
    world.engine.identity = Some(EngineId::new("now"));
    world.engine.containers.clear();
    world.crash();
}

pub(super) fn stopped_elsewhere(policy: RestartPolicy) -> World {
    let mut world = stopped(policy);
    replace_engine(&mut world);
    world
}

pub(super) fn process_gone(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    let id = world.container("w");
    world.feed(Event::ProcessGone(id, 1));
    world
}

pub(super) fn pulling(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    unanswered_in(world, policy, "pull")
}

pub(super) fn syncing(policy: RestartPolicy) -> World {
    let mut world = pulling(policy);
    world.feed(Event::PullSyncs(PullId(1)));
    world
}

pub(super) fn queued_pull(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.unanswered.push("pull");
    for image in ["image:0", "image:1"] {
        world.engine.missing_images.push(image.to_owned());
    }
    world.apply(&[&workload("other", |spec| spec.image = "image:0".to_owned())]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn queued_start(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.unanswered.push("start");
    for name in ["a", "b", "c", "d"] {
        world.apply(&[&workload(name, |_| {})]);
    }
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn unanswered(policy: RestartPolicy, call: &'static str) -> World {
    unanswered_in(World::new(), policy, call)
}

pub(super) fn unanswered_in(mut world: World, policy: RestartPolicy, call: &'static str) -> World {
    world.unanswered.push(call);
    world.apply(&[&job(policy, |_| {})]);
    world
}

pub(super) fn pull_failed(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    world.fail_next("pull", &[FaultKind::Trouble]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

/// Fails `tries` times, and waits for the next try, if there is one.
pub(super) fn start_failed(policy: RestartPolicy, kind: FaultKind, tries: usize) -> World {
    let mut world = World::new();
    world.fail_next("start", &vec![kind; tries]);
    world.apply(&[&job(policy, |_| {})]);
    while world.count("start") < tries {
        world.pass(10_000);
    }
    world
}

/// An update comes to a halt at this call, or not at all.
pub(super) fn updating(policy: RestartPolicy, call: &'static str) -> World {
    let mut world = running(policy);
    match call {
        "" => {}
        "SIGTERM" => world.fail_next("deaf", &[FaultKind::Trouble]),
        call => world.unanswered.push(call),
    }
    world.apply(&[&newer(policy)]);
    world
}

pub(super) fn rebuilding(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.unanswered.push("create");
    world.verb("w", Verb::Rebuild);
    world
}

pub(super) fn rebuilt(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.verb("w", Verb::Rebuild);
    world
}

pub(super) fn update_failed(policy: RestartPolicy, kind: FaultKind) -> World {
    let mut world = running(policy);
    world.fail_next("create", &[kind]);
    world.apply(&[&newer(policy)]);
    world
}

/// What becomes of one that is unhealthy.
#[derive(PartialEq)]
pub(super) enum Then {
    Deaf,
    Ends,
    Stays,
    Returns,
}

pub(super) fn unhealthy(policy: RestartPolicy, then: Then) -> World {
    let mut world = World::new();
    let mut check = Check::new(Test::Shell("probe".to_owned()));
    if then == Then::Stays {
        check.on_unhealthy = OnUnhealthy::Report;
    }
    let check = Some(HealthCheck::On(check));
    if then == Then::Returns {
        world = running(policy);
    }
    world.apply(&[&job(policy, |spec| spec.health_check = check)]);
    world.pass(5_000);
    if matches!(then, Then::Deaf | Then::Returns) {
        world.fail_next("deaf", &[FaultKind::Trouble]);
    }
    world.becomes("w", Health::Unhealthy);
    world
}

pub(super) fn exited(policy: RestartPolicy, code: i32) -> World {
    let mut world = running(policy);
    world.exit("w", code);
    world
}

/// Restarted ten times within a minute.
pub(super) fn restarted_often(policy: RestartPolicy, stuck: WhenStuck) -> World {
    let mut world = World::new();
    let (delay, max_delay) = (Span::seconds(1), Span::seconds(2));
    let restart = Restart { policy, delay, max_delay, stuck };
    world.apply(&[&workload("w", |spec| spec.restart = restart)]);
    for _ in 0..10 {
        world.exit("w", 1);
        world.pass(2_000);
    }
    world
}

pub(super) fn stuck(policy: RestartPolicy, stuck: WhenStuck) -> World {
    let mut world = restarted_often(policy, stuck);
    world.exit("w", 1);
    world
}

pub(super) fn vanished(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    vanish(&mut world);
    world
}

pub(super) fn vanish(world: &mut World) {
    let id = world.container("w");
    world.engine.containers.retain(|_, made| made.id != id);
    tell(world, id, ContainerAction::Removed);
}

pub(super) fn tell(world: &mut World, id: ContainerId, action: ContainerAction) {
    let uid = world.view("w").uid.clone();
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
}

pub(super) fn interrupted(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    lose_engine(&mut world);
    world.unanswered.push("start");
    engine_comes_back(&mut world);
    world
}

/// As Docker does after a crash: nothing runs any more.
pub(super) fn engine_comes_back(world: &mut World) {
    for made in world.engine.containers.values_mut().filter(|made| made.phase == Phase::Running) {
        made.phase = Phase::Exited;
        made.exit_code = 137;
    }
    world.engine.gone = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
}

pub(super) fn phase(policy: RestartPolicy, phase: Phase) -> World {
    let mut world = running(policy);
    let id = world.container("w");
    world.engine.find_mut(id.as_str()).phase = phase;
    tell(&mut world, id, ContainerAction::Changed);
    world
}

pub(super) fn stopped(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.verb("w", Verb::Stop);
    world
}

pub(super) fn stopped_not_looked_at(policy: RestartPolicy) -> World {
    let mut world = stopped(policy);
    world.begin_agent();
    world
}

pub(super) fn stop_without_engine(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    lose_engine(&mut world);
    world.verb("w", Verb::Stop);
    world
}

/// A stop was sent, and the process does not listen.
pub(super) fn deaf(policy: RestartPolicy, verb: Verb) -> World {
    let mut world = running(policy);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("w", verb);
    world
}

/// The same, and SIGKILL does not end it either.
pub(super) fn undying(policy: RestartPolicy, verb: Verb) -> World {
    let mut world = running(policy);
    world.fail_next("deaf", &[FaultKind::Trouble; 2]);
    world.verb("w", verb);
    world.pass(10_000);
    world
}

pub(super) fn removal(policy: RestartPolicy, silent: bool) -> World {
    let mut world = running(policy);
    if silent {
        world.unanswered.push("remove");
    } else {
        world.fail_next("remove", &[FaultKind::Trouble]);
    }
    world.verb("w", Verb::Remove);
    world
}
