//! The wall clock is set while the device runs: from 1970 to today, and back.

use super::*;
use crate::domain::declared::WhenStuck;

/// 56 years.
const YEARS: i64 = 56 * 365 * 86_400_000;
const WAYS: [i64; 2] = [YEARS, -YEARS];

/// A device whose clock can be set by `by` without going below 1970.
fn world(by: i64) -> World {
    let mut world = World::new();
    world.engine.clock_ahead = if by < 0 { YEARS } else { 0 };
    world.feed(Event::Deadline);
    world.logs.clear();
    world
}

fn set_clock(world: &mut World, by: i64) {
    world.engine.clock_ahead += by;
}

/// The times of all starts of `web` within an hour, by the boot clock.
fn starts(world: &mut World, mut at_second: impl FnMut(&mut World, u64)) -> Vec<u64> {
    let mut times = Vec::new();
    for second in 0..3_600 {
        at_second(world, second);
        let before = world.count("start");
        world.pass(1_000);
        if world.count("start") > before {
            times.push(second);
            world.exit("web", 1);
        }
    }
    times
}

#[test]
fn b77_a_clock_that_is_set_moves_no_deadline() {
    let looping = workload("web", |spec| {
        spec.restart.delay = Span(1_000);
        spec.restart.max_delay = Span(30_000);
        spec.restart.stuck = WhenStuck::Retry;
    });
    let crash_loop = |by: i64| {
        let mut world = world(by);
        world.apply(&[&looping]);
        world.exit("web", 1);
        let times = starts(&mut world, |world, second| {
            if second % 100 == 50 {
                set_clock(world, if second % 200 == 50 { by } else { -by });
            }
        });
        let view = world.view("web");
        (times, view.restart_count, view.runtime_state, view.next_attempt)
    };
    let still = crash_loop(0);
    assert!(still.0.len() > 10, "{still:?}");
    for by in WAYS {
        assert_eq!(crash_loop(by), still, "{by}");
    }
}

#[test]
fn a_stop_a_stable_run_and_an_idle_hour_do_not_mind() {
    for by in WAYS {
        let mut world = world(by);
        world.apply(&[&workload("web", |_| {}), &workload("deaf", |_| {})]);
        world.exit("web", 1);
        world.pass(10_000);
        assert_eq!(world.state("web"), State::RunningOk);
        // SIGKILL comes 10 s after the signal, whatever the clock says.
        world.fail_next("deaf", &[FaultKind::Trouble]);
        world.verb("deaf", Verb::Stop);
        set_clock(&mut world, by);
        world.pass(9_999);
        assert_eq!(world.count("SIGKILL"), 0);
        world.pass(1);
        assert_eq!(world.count("SIGKILL"), 1);
        world.pass(19_999);
        assert_ne!(world.view("web").error_message, "", "29.999 s of running");
        world.pass(1);
        assert_eq!(world.view("web").error_message, "");
        world.engine.calls.clear();
        let commits = world.store.commits;
        set_clock(&mut world, -by);
        world.pass(6_000);
        let rows = world.store.kept.rows.clone();
        set_clock(&mut world, by);
        world.pass(3_594_000);
        assert_eq!(world.engine.calls.len(), 60, "one listing a minute");
        assert_eq!((&world.store.kept.rows, world.view("web").restart_count), (&rows, 1));
        assert!(world.store.commits <= commits + 1);
    }
}

#[test]
fn a_run_is_the_same_one_before_and_after_and_the_next_one_is_another() {
    for by in WAYS {
        let mut world = world(by);
        world.apply(&[&workload("web", |_| {})]);
        world.pass(31_000);
        set_clock(&mut world, by);
        let mut world = world.restart_agent(BOOT);
        assert_eq!(world.engine.calls, ["list"], "believed without a look");
        assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 0));
        world.pass(120_000);
        // It starts earlier than the one before it, by the engine's clock.
        world.exit("web", 1);
        assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 1));
        world.exit("web", 1);
        world.pass(10_000);
        assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 2));
    }
}

#[test]
fn b79_that_it_was_set_is_one_line_and_slewing_is_none() {
    let mut world = world(-1);
    world.apply(&[&workload("web", |_| {})]);
    let told = |world: &World| world.logs.iter().filter(|l| l.contains("wall clock")).count();
    for _ in 0..100 {
        set_clock(&mut world, 500);
        world.pass(1_000);
    }
    assert_eq!(told(&world), 0);
    set_clock(&mut world, -YEARS / 2);
    world.pass(200_000);
    assert_eq!(told(&world), 1);
    assert!(world.logs.iter().any(|line| line.contains("back by 10220 days")), "{:?}", world.logs);
    set_clock(&mut world, 31_000);
    world.pass(200_000);
    assert_eq!(told(&world), 2);
    // Suspended for a day: both clocks go on.
    world.now += 86_400_000;
    world.pass(200_000);
    assert_eq!(told(&world), 2);
}

#[test]
fn b76_what_failed_in_1970_is_tried_again_when_the_time_is_known() {
    let mut world = world(1);
    world.engine.missing_images.push("image:1".to_owned());
    world.fail_next("pull", &[FaultKind::Trouble; 6]);
    world.apply(&[&workload("web", |_| {})]);
    world.pass(200_000);
    let tries = world.count("pull");
    let next = world.view("web").next_attempt.expect("a wait");
    assert!(next.since(Tick(world.now)) > Span(60_000), "{next:?}");
    world.engine.faults.clear();
    set_clock(&mut world, YEARS);
    world.pass(60_000);
    assert_eq!((world.count("pull"), world.state("web")), (tries + 1, State::RunningOk));
    assert_eq!(world.view("web").restart_count, 0);
}
