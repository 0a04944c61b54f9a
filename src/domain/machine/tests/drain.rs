//! The agent stops its workloads before it ends, and the next one starts them again.

use super::*;
use crate::domain::effect::Refusal;
use crate::domain::record::Desired;
use crate::limits;

const POLICIES: [RestartPolicy; 3] =
    [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];

impl World {
    fn drain(&mut self) {
        self.engine.calls.clear();
        self.feed(Event::Drain(None));
    }

    fn signals(&self) -> Vec<&str> {
        let signals = self.engine.calls.iter().filter(|call| call.starts_with("SIG"));
        signals.map(String::as_str).collect()
    }
}

/// It starts in this place, and has this long to end.
fn place(name: &str, schedule: u32, grace: u64) -> Arc<Declared> {
    workload(name, |spec| {
        spec.schedule = schedule;
        spec.stop.grace = Span::seconds(grace);
    })
}

fn deaf(world: &mut World, count: usize) {
    world.fail_next("deaf", &vec![FaultKind::Trouble; count]);
}

#[test]
fn all_are_stopped_and_the_next_agent_starts_them_again() {
    for policy in POLICIES {
        let mut world = World::new();
        world.apply(&[&super::policy("a", policy), &super::policy("b", policy)]);
        world.apply(&[&workload("off", |_| {})]);
        world.verb("off", Verb::Stop);
        world.pass(60_000);
        world.drain();
        assert_eq!((world.signals(), world.drained), (vec!["SIGTERM"; 2], 1), "{policy:?}");
        assert_eq!(world.running(), 0);
        world.pass(600_000);
        world.tell_to_stop();
        assert_eq!((world.running(), world.count("start"), world.drained), (0, 0, 1));
        for boot in [BOOT, "boot-2"] {
            world = world.restart_agent(boot);
            assert_eq!(world.state("a"), State::RunningOk, "{policy:?} {boot}");
            assert_eq!(world.state("off"), State::StoppedOk);
            let row = world.row("a");
            assert_eq!((row.restart_count, row.streak, &*row.last_error), (0, 0, ""));
            world.drain();
            world.tell_to_stop();
        }
    }
}

#[test]
fn a_stop_is_durable_before_it_is_sent() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.store_hangs = true;
    world.drain();
    assert_eq!(world.signals().len(), 0, "{:?}", world.engine.calls);
    assert_eq!(world.running(), 1);
}

#[test]
fn what_starts_last_is_stopped_first_and_those_of_one_place_side_by_side() {
    let mut world = World::new();
    let (a, b) = (place("a", 10, 5), place("b", 20, 5));
    world.apply(&[&a, &b, &place("c", 20, 5), &place("d", 30, 5)]);
    world.engine.stubborn.extend(["a", "b", "c", "d"]);
    world.drain();
    let running = |world: &World| {
        let mut names: Vec<String> = world
            .engine
            .containers
            .values()
            .filter(|made| made.phase == Phase::Running)
            .map(|made| made.tags.key.name.to_string())
            .collect();
        names.sort();
        names.concat()
    };
    assert_eq!((world.signals().len(), running(&world)), (1, "abcd".to_owned()));
    world.pass(5_000);
    assert_eq!((world.signals().len(), running(&world)), (4, "abc".to_owned()));
    world.pass(5_000);
    assert_eq!((world.signals().len(), running(&world)), (7, "a".to_owned()));
    world.pass(5_000);
    let kills = world.count("SIGKILL");
    assert_eq!((kills, running(&world), world.drained), (4, String::new(), 1));
}

#[test]
fn each_has_the_time_of_its_manifest_or_that_of_the_configuration() {
    for (most, ms) in [(None, 120_000), (Some(Span(20_000)), 20_000)] {
        let mut world = World::new();
        world.apply(&[&place("a", 1, 120), &place("b", 1, 120)]);
        deaf(&mut world, 2);
        // One stop is under way already.
        world.verb("a", Verb::Stop);
        world.feed(Event::Drain(most));
        world.pass(ms - 1);
        assert_eq!((world.running(), world.drained), (2, 0), "{most:?}");
        world.pass(1);
        assert_eq!((world.running(), world.drained), (0, 1), "{most:?}");
    }
}

#[test]
fn after_180_s_the_rest_is_killed() {
    let mut world = World::new();
    world.apply(&[&place("a", 1, 600), &place("b", 2, 600), &place("c", 3, 600)]);
    deaf(&mut world, 1);
    world.drain();
    world.pass(limits::DRAIN_MS - 1);
    assert_eq!((world.signals(), world.running()), (vec!["SIGTERM"], 3));
    world.pass(1);
    assert_eq!(world.signals(), ["SIGTERM", "SIGKILL", "SIGKILL", "SIGKILL"]);
    assert_eq!((world.running(), world.drained), (0, 1));
    let world = world.restart_agent(BOOT);
    assert_eq!((world.running(), world.row("a").restart_count), (3, 0));
}

#[test]
fn what_cannot_be_killed_holds_nobody_for_ever() {
    let mut world = World::new();
    world.apply(&[&place("a", 1, 600), &place("b", 1, 600)]);
    deaf(&mut world, 3);
    world.drain();
    world.pass(limits::DRAIN_MS + limits::DRAIN_KILL_MS - 1);
    assert_eq!((world.running(), world.drained), (1, 0));
    world.pass(1);
    assert_eq!(world.drained, 1);
    let last = world.logs.last().unwrap();
    assert!(last.contains("1 workload not stopped: default/"), "{last}");
}

#[test]
fn an_engine_that_is_away_is_not_waited_for() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    super::engine::kill_engine(&mut world);
    world.drain();
    world.pass(limits::DRAIN_BLOCKED_MS - 1);
    assert_eq!(world.drained, 0);
    world.pass(1);
    assert_eq!(world.drained, 1);
    let last = world.logs.last().unwrap();
    assert!(last.contains("the engine is away; 1 workload not stopped: default/a"), "{last}");

    // One that is back in time is not given up.
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    deaf(&mut world, 1);
    world.drain();
    world.feed(Event::StreamDown(Fault::new(FaultKind::Away, "events", "", "cut")));
    world.pass(5_000);
    super::engine::revive_engine(&mut world);
    world.pass(5_000);
    assert_eq!((world.running(), world.drained), (0, 1));
}

#[test]
fn a_store_that_cannot_write_leaves_them_running() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.store.fails = true;
    world.drain();
    world.pass(60_000);
    assert_eq!((world.running(), world.drained, world.signals().len()), (1, 1, 0));
    let last = world.logs.last().unwrap();
    assert!(last.contains("the store cannot write"), "{last}");
}

#[test]
fn nothing_is_started_pulled_or_changed_meanwhile() {
    let mut world = World::new();
    world.engine.missing_images.push("image:2".to_owned());
    let crashing = |spec: &mut Spec| spec.stop.grace = Span::seconds(100);
    world.apply(&[&workload("a", crashing), &workload("b", crashing)]);
    world.exit("b", 1);
    world.unanswered.push("pull");
    world.apply(&[&workload("c", |spec| spec.image = "image:2".to_owned())]);
    deaf(&mut world, 1);
    world.drain();
    assert_eq!(world.count("cancel"), 1);
    let request = world.request(&[&workload("d", |_| {})]);
    let uid = world.view("a").uid.clone();
    let asked =
        [request, Request::Verb(Verb::Start, uid), Request::Quiesce(Span(1)), Request::Resume];
    for request in asked {
        let answer = world.ask(request);
        assert!(matches!(answer, Answer::Refused(Refusal::Ending(_))), "{answer:?}");
    }
    world.files_of_drain();
    world.pass(99_000);
    let deeds = world
        .engine
        .calls
        .iter()
        .filter(|call| !matches!(call.as_str(), "list" | "inspect" | "SIGTERM" | "cancel 1"));
    assert_eq!(deeds.count(), 0, "{:?}", world.engine.calls);
    assert!(world.status.conditions.contains_key("draining"));
    assert_eq!((world.drained, world.store.kept.rows.len()), (0, 3));
    world.pass(1_000);
    assert_eq!(world.drained, 1);
    world.engine.missing_images.clear();
    let mut world = world.restart_agent(BOOT);
    world.pass(60_000);
    assert_eq!(world.running(), 3);
}

impl World {
    /// A file that nobody looks at any more.
    fn files_of_drain(&mut self) {
        self.files(&[("x.yaml", super::directory::good(&[&workload("x", |_| {})]))]);
    }
}

#[test]
fn a_start_in_flight_is_stopped_when_it_is_there() {
    let mut world = World::new();
    world.unanswered.push("start");
    world.apply(&[&workload("a", |_| {})]);
    world.drain();
    assert_eq!((world.running(), world.drained), (1, 0));
    world.answer_late();
    assert_eq!((world.running(), world.drained), (0, 1));
}

#[test]
fn a_drain_that_is_cut_loses_nothing() {
    for policy in POLICIES {
        let mut world = World::new();
        let declared = |name, schedule| {
            workload(name, |spec| {
                spec.restart.policy = policy;
                spec.schedule = schedule;
            })
        };
        world.apply(&[&declared("a", 1), &declared("b", 2), &declared("c", 3)]);
        world.pass(60_000);
        world.engine.stubborn.push("b");
        world.drain();
        assert_eq!((world.running(), world.signals().len(), world.drained), (2, 2, 0));
        let (runs, before) = (world.container("b"), world.row("b").restart_count);
        let mut world = world.restart_agent(BOOT);
        assert_eq!((world.running(), world.count("start")), (3, 1), "{policy:?}");
        assert_eq!(world.container("b"), runs);
        world.pass(60_000);
        let counts = ["a", "b", "c"].map(|name| world.row(name).restart_count);
        assert_eq!((world.running(), counts), (3, [before; 3]));
    }
}

/// The signal was recorded and maybe sent when the agent died.
#[test]
fn a_stop_of_a_dead_agent_is_not_blamed_for_an_end_much_later() {
    for (wait, state) in [(1_000, State::RunningOk), (120_000, State::SucceededOk)] {
        let mut world = World::new();
        world.apply(&[&policy("job", RestartPolicy::Never)]);
        world.pass(60_000);
        deaf(&mut world, 1);
        world.drain();
        assert!(world.row("job").own_stop.is_some());
        let mut world = world.restart_agent(BOOT);
        assert_eq!((world.state("job"), world.running()), (State::RunningOk, 1));
        world.pass(wait);
        assert_eq!(world.count("SIGKILL"), 0, "what runs is not touched");
        world.exit("job", 0);
        world.pass(1_000);
        assert_eq!(world.state("job"), state, "{wait}");
    }
}

#[test]
fn a_stopped_workload_stays_so_and_a_removed_one_goes_later() {
    let mut world = World::new();
    world.apply(&[&place("a", 1, 100), &place("b", 1, 100)]);
    deaf(&mut world, 2);
    world.verb("a", Verb::Stop);
    world.verb("b", Verb::Remove);
    world.drain();
    world.pass(100_000);
    assert_eq!((world.running(), world.drained, world.count("remove")), (0, 1, 0));
    assert_eq!(world.row("b").desired, Desired::Deleted);
    let mut world = world.restart_agent(BOOT);
    world.pass(60_000);
    assert_eq!((world.state("a"), world.views.len()), (State::StoppedOk, 1));
}

#[test]
fn while_reconciling_is_held_nothing_is_drained() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.quiesce(600_000);
    world.drain();
    world.tell_to_stop();
    assert_eq!((world.running(), world.drained, world.signals().len()), (1, 1, 0));
}

#[test]
fn without_workloads_it_is_over_at_once() {
    let mut world = World::new();
    world.drain();
    assert_eq!(world.drained, 1);
}

#[test]
fn an_update_on_probation_goes_on_after_it() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.pass(60_000);
    world.apply(&[&workload("a", |spec| spec.image = "image:2".to_owned())]);
    world.pass(10_000);
    world.drain();
    assert_eq!((world.running(), world.drained), (0, 1));
    world.tell_to_stop();
    let mut world = world.restart_agent(BOOT);
    assert_eq!((world.state("a"), world.view("a").failed_update.clone()), (State::RunningOk, None));
    world.pass(60_000);
    assert_eq!((world.view("a").observed_generation, world.engine.containers.len()), (2, 1));
}

/// A workload with a check.
fn checked(name: &str, schedule: u32) -> Arc<Declared> {
    use crate::domain::health_check::{Check, HealthCheck, Test};
    workload(name, |spec| {
        spec.schedule = schedule;
        spec.health_check = Some(HealthCheck::On(Check::new(Test::Shell("probe".to_owned()))));
    })
}

#[test]
fn what_turns_unhealthy_meanwhile_is_no_failure() {
    use crate::domain::health_check::Health;
    let mut world = World::new();
    world.apply(&[&checked("a", 1), &place("b", 2, 10)]);
    world.becomes("a", Health::Healthy);
    world.pass(60_000);
    world.engine.stubborn.push("b");
    world.drain();
    world.becomes("a", Health::Unhealthy);
    assert_eq!(world.signals(), ["SIGTERM"], "it is not its turn");
    world.pass(10_000);
    assert_eq!((world.running(), world.drained), (0, 1));
    world.tell_to_stop();
    let world = world.restart_agent(BOOT);
    let row = world.row("a");
    assert_eq!((world.running(), row.restart_count, row.streak), (2, 0, 0));
}

#[test]
fn stops_wait_for_no_place_among_starts() {
    let mut world = World::new();
    let update = |name: &str| workload(name, |spec| spec.image = "image:2".to_owned());
    world.apply(&[&workload("a", |_| {})]);
    world.pass(60_000);
    world.unanswered.push("start");
    let names = ["s1", "s2", "s3", "s4"];
    world.apply(&names.map(|name| workload(name, |_| {})).each_ref());
    world.apply(&[&update("a")]);
    assert_eq!(world.running(), 5, "its stop waits for a start");
    world.drain();
    assert_eq!(world.signals(), ["SIGTERM"]);
    world.answer_late();
    assert_eq!((world.running(), world.drained), (0, 1));
}
