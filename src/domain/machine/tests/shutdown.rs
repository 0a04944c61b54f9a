//! At a shutdown containers get their signal with the agent, or a moment before it: what ended then
//! was interrupted.

use super::*;
use crate::domain::diary::Diary;

const POLICIES: [RestartPolicy; 3] =
    [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];

/// What is counted and told of a workload.
fn told(world: &World) -> (u64, u32, String, String, u64, Diary, bool) {
    let row = &world.row("web");
    let errors = (row.error_message.clone(), row.last_error.clone());
    let counts = (row.restart_count, row.streak);
    let diary = (row.diary.clone(), row.stuck);
    (counts.0, counts.1, errors.0, errors.1, row.last_error_at_ms, diary.0, diary.1)
}

/// Ran once before, crashed, and runs again.
fn world(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.apply(&[&super::policy("web", policy)]);
    if policy != RestartPolicy::Never {
        world.exit("web", 7);
        world.pass(10_000);
    }
    world.pass(60_000);
    world
}

#[test]
fn an_exit_within_5_s_before_the_stop_counts_nothing_and_runs_again() {
    for policy in POLICIES {
        for (code, ms) in [(0, 0), (143, 3_000), (0, 5_000), (1, 5_000)] {
            let mut world = world(policy);
            let before = told(&world);
            world.exit("web", code);
            world.pass(ms);
            world.tell_to_stop();
            assert_eq!(told(&world), before, "{policy:?} {code}");
            // The device may not go down after all, or the agent alone was meant.
            for boot in [BOOT, "boot-2"] {
                world = world.restart_agent(boot);
                assert_eq!(world.state("web"), State::RunningOk, "{policy:?} {code}");
                assert_eq!(told(&world), before, "{policy:?} {code}");
            }
        }
    }
}

#[test]
fn an_exit_long_before_the_stop_stands() {
    let mut world = world(RestartPolicy::Never);
    world.exit("web", 0);
    world.pass(5_001);
    world.tell_to_stop();
    assert_eq!(world.restart_agent("boot-2").state("web"), State::SucceededOk);

    let mut world = self::world(RestartPolicy::Always);
    world.exit("web", 1);
    world.pass(5_001);
    world.tell_to_stop();
    assert_eq!(world.row("web").restart_count, 2);
    assert_eq!(world.row("web").last_error, "exitCode=1 oomKilled=false");
}

#[test]
fn only_the_exits_of_the_last_5_s_are_taken_back() {
    let mut world = world(RestartPolicy::Always);
    // Ran for long, and is started again at once; then it crashes twice more.
    world.exit("web", 1);
    world.pass(4_000);
    world.exit("web", 2);
    world.pass(3_000);
    world.tell_to_stop();
    let row = world.row("web");
    assert_eq!((row.restart_count, row.streak), (2, 0), "the first one stands");
    assert_eq!(row.last_error, "exitCode=1 oomKilled=false");
    assert_eq!(
        (row.wait.clone(), world.restart_agent(BOOT).state("web")),
        (None, State::RunningOk)
    );
}

#[test]
fn what_an_operator_did_after_the_exit_is_not_taken_back() {
    let mut world = world(RestartPolicy::Always);
    world.exit("web", 1);
    world.verb("web", Verb::Stop);
    world.tell_to_stop();
    let world = world.restart_agent(BOOT);
    assert_eq!(world.state("web"), State::StoppedOk);
}

#[test]
fn an_update_that_is_cut_short_by_a_shutdown_did_not_fail() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(60_000);
    world.engine.crashing_images.push("image:2".to_owned());
    world.apply(&[&workload("web", |spec| spec.image = "image:2".to_owned())]);
    assert!(world.row("web").failed_update.is_some());
    world.tell_to_stop();
    // The end was that of the device, not its own.
    let world = world.restart_agent("boot-2");
    assert_eq!((world.state("web"), world.view("web").observed_generation), (State::RunningOk, 2));
    assert_eq!(world.view("web").failed_update, None);
}

/// Nor is its second try one that failed, though the old container was started again already.
#[test]
fn a_try_on_probation_that_is_cut_short_by_a_shutdown_is_not_counted() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(60_000);
    world.engine.mortal_images.insert("image:2".to_owned(), (20_000, 1));
    world.apply(&[&workload("web", |spec| spec.image = "image:2".to_owned())]);
    world.pass(20_000);
    let first = world.row("web").failed_update.clone().unwrap();
    world.pass(300_000 + 20_000);
    assert_eq!(world.row("web").failed_update.as_ref().unwrap().tries, 2);
    world.tell_to_stop();
    let row = world.row("web");
    assert_eq!(row.failed_update.as_ref().unwrap().tries, 1);
    assert_eq!(row.last_error_at_ms, first.at_ms);
    let mut world = world.restart_agent("boot-2");
    assert_eq!((world.state("web"), world.view("web").observed_generation), (State::RunningOk, 2));
    world.pass(30_000);
    assert_eq!((world.row("web").failed_update.as_ref(), world.engine.containers.len()), (None, 1));
}

#[test]
fn an_exit_that_is_found_while_the_agent_stops_is_no_crash() {
    let mut world = world(RestartPolicy::Never);
    world.tell_to_stop();
    world.exit("web", 0);
    world.tell_to_stop();
    assert_eq!(world.restart_agent(BOOT).state("web"), State::RunningOk);
}
