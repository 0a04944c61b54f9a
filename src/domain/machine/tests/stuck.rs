//! Many restarts in a short time, with the exact times of all tries.

use super::*;
use crate::domain::declared::{Restart, WhenStuck};

const MINUTE: u64 = 60_000;

/// A workload with these delays in seconds.
fn pace(delay: u64, max_delay: u64, stuck: WhenStuck) -> Arc<Declared> {
    let (delay, max_delay) = (Span::seconds(delay), Span::seconds(max_delay));
    let policy = RestartPolicy::Always;
    workload("web", |spec| spec.restart = Restart { policy, delay, max_delay, stuck })
}

/// `exit 1` at once, every time, until so many seconds after `begin`: at which of them it was
/// started again.
fn exit_1_until(world: &mut World, begin: u64, seconds: u64) -> Vec<u64> {
    let mut tries = Vec::new();
    while world.now < begin + seconds * 1_000 {
        let starts = world.count("start");
        if world.running() == 1 {
            world.exit("web", 1);
        }
        if world.count("start") == starts {
            world.pass(1_000);
        }
        if world.count("start") > starts {
            assert_eq!(world.count("start"), starts + 1);
            tries.push((world.now - begin) / 1_000);
        }
    }
    tries
}

/// What the log says of being stuck.
fn told(world: &World) -> Vec<&str> {
    let lines = world.logs.iter().map(String::as_str);
    lines.filter(|line| line.contains("STUCK")).collect()
}

/// The first nine restarts with delays of 1 to 30 s; the tenth is 30 s later.
const NINE: [u64; 9] = [1, 3, 7, 15, 31, 61, 91, 121, 151];

/// It ended at once, ten times within the first five minutes, and runs.
fn restarted_ten_times(when: WhenStuck) -> World {
    let mut world = World::new();
    world.apply(&[&pace(1, 30, when)]);
    while world.view("web").restart_count < 10 {
        assert!(!world.row("web").stuck);
        world.exit("web", 1);
        let next = world.view("web").next_attempt.expect("a next try");
        world.pass(next.0 - world.now);
    }
    world
}

/// The same, and it has ended once more.
fn stuck(when: WhenStuck) -> World {
    let mut world = restarted_ten_times(when);
    world.exit("web", 1);
    world
}

fn is_stuck(world: &World) -> bool {
    let view = world.view("web");
    let shown = view.runtime_state == RuntimeState::StuckInRestart;
    assert_eq!(shown, view.state == State::FailedExecFailed);
    shown
}

/// The waits in seconds of four short runs.
fn next_waits(world: &mut World) -> Vec<u64> {
    let waits = (0..4).map(|_| {
        world.exit("web", 1);
        let next = world.view("web").next_attempt.expect("a next try");
        let wait = next.0 - world.now;
        world.pass(wait);
        wait / 1_000
    });
    waits.collect()
}

#[test]
fn an_hour_of_exit_1_with_the_defaults_is_never_stuck() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let begin = world.now;
    let tries = exit_1_until(&mut world, begin, 3_600);
    let mut expected = vec![10, 30, 70, 150, 310];
    expected.extend((610..=3_600).step_by(300));
    assert_eq!(tries, expected);
    assert!(!world.row("web").stuck);
    assert_eq!(told(&world), [""; 0]);
}

#[test]
fn an_hour_of_exit_1_with_short_delays_is_stuck_at_the_tenth_restart_and_paced() {
    let mut world = World::new();
    world.apply(&[&pace(1, 30, WhenStuck::Retry)]);
    let begin = world.now;
    assert_eq!(exit_1_until(&mut world, begin, 180), NINE);
    assert!(!world.row("web").stuck);
    assert_eq!(told(&world), [""; 0]);
    assert_eq!(exit_1_until(&mut world, begin, 181), [181]);
    assert!(world.row("web").stuck);
    let line =
        "default/web: STUCK_IN_RESTART, restarted 10 times in 10 minutes; further tries wait 30s";
    assert_eq!(told(&world), [line]);
    let rest: Vec<u64> = (211..=3_600).step_by(30).collect();
    assert_eq!(exit_1_until(&mut world, begin, 3_600), rest);
    assert!(is_stuck(&world));
    assert_eq!(world.view("web").restart_count, 10 + rest.len() as u64);
    assert_eq!(told(&world), [line], "it is told once");
}

#[test]
fn an_hour_of_exit_1_on_hold_is_left_alone_after_the_tenth_restart() {
    let mut world = World::new();
    world.apply(&[&pace(1, 30, WhenStuck::Hold)]);
    let begin = world.now;
    assert_eq!(exit_1_until(&mut world, begin, 180), NINE);
    assert!(!is_stuck(&world));
    assert_eq!(exit_1_until(&mut world, begin, 3_600), [181]);
    assert!(is_stuck(&world));
    assert_eq!(world.view("web").restart_count, 10);
    let line = "default/web: STUCK_IN_RESTART, restarted 10 times in 10 minutes; left alone when \
                it ends again";
    assert_eq!(told(&world), [line]);
}

/// The pace shows where the backoff alone would be faster.
#[test]
fn every_further_try_waits_for_the_longest_delay() {
    let mut world = World::new();
    world.apply(&[&pace(1, 300, WhenStuck::Retry)]);
    for restarts in 1..=10 {
        // Long enough to be started again at once.
        world.pass(40_000);
        world.exit("web", 1);
        assert_eq!(world.view("web").restart_count, restarts);
        assert_eq!(world.state("web"), State::RunningOk);
        assert_eq!(world.row("web").stuck, restarts == 10);
    }
    assert!(world.view("web").info.contains("10 times in 10 minutes"));
    assert_eq!(next_waits(&mut world), [300; 4]);
    world.pass(40_000);
    world.exit("web", 1);
    assert!(is_stuck(&world));
    let info = "exitCode=1, and restarted 10 times in 10 minutes; restart 15";
    assert_eq!(world.view("web").info, info);
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 300_000)));
    // A start that fails waits as long.
    world.fail_next("start", &[FaultKind::Trouble]);
    world.pass(300_000);
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 300_000)));
}

#[test]
fn on_hold_it_is_left_alone_whatever_time_passes() {
    let mut world = stuck(WhenStuck::Hold);
    let starts = world.count("start");
    for _ in 0..3 {
        world.pass(86_400_000);
        assert!(is_stuck(&world));
        assert_eq!(world.view("web").next_attempt, None);
        assert!(world.view("web").info.contains("left alone until"), "{}", world.view("web").info);
    }
    assert_eq!(world.count("start"), starts);
    let mut world = world.restart_agent(BOOT);
    world.pass(86_400_000);
    assert!(is_stuck(&world));
    assert_eq!(world.count("start"), 0);
    assert!(!world.logs.iter().any(|line| line.contains("STUCK")), "{:?}", world.logs);
}

#[test]
fn ten_minutes_of_running_end_it() {
    for when in [WhenStuck::Retry, WhenStuck::Hold] {
        let mut world = restarted_ten_times(when);
        world.pass(10 * MINUTE - 1);
        assert!(world.row("web").stuck);
        assert!(world.view("web").info.contains("10 times"), "{}", world.view("web").info);
        world.pass(1);
        assert_eq!(world.view("web").info, "");
        let told = world.logs.last().unwrap();
        assert_eq!(told, "default/web: not STUCK_IN_RESTART any more");
        world.exit("web", 1);
        assert_eq!(world.state("web"), State::RunningOk, "{when:?}: at once, as any");
        assert_eq!(next_waits(&mut world), [1, 2, 4, 8]);
        // Nine seconds less are not enough.
        let mut world = restarted_ten_times(WhenStuck::Retry);
        world.pass(591_000);
        world.exit("web", 1);
        assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 30_000)));
    }
}

#[test]
fn an_operator_or_a_new_generation_ends_it() {
    for when in [WhenStuck::Retry, WhenStuck::Hold] {
        let newer = workload("web", |spec| {
            spec.restart = pace(1, 30, when).spec.restart;
            spec.stop.grace = Span::seconds(3);
        });
        let verbs = [Verb::Start, Verb::Restart, Verb::Rebuild].map(Some);
        for verb in verbs.into_iter().chain([None]) {
            let mut world = stuck(when);
            assert!(is_stuck(&world));
            let id = world.container("web");
            let name = verb.as_ref().map_or("generation", Verb::as_str);
            match verb {
                Some(verb) => drop(world.ask(Request::Verb(verb, world.view("web").uid.clone()))),
                None => drop(world.apply(&[&newer])),
            }
            assert_eq!(world.state("web"), State::RunningOk, "{name} {when:?}");
            assert_eq!(world.container("web") == id, name != "rebuild");
            let count = if name == "rebuild" { 0 } else { 10 };
            let counted = u64::from(name == "generation");
            assert_eq!(world.view("web").restart_count, count + counted, "{name}");
            assert_eq!(world.view("web").last_error, "exitCode=1 oomKilled=false");
            assert_eq!(next_waits(&mut world), [1, 2, 4, 8], "{name} {when:?}");
        }
    }
}

/// Whatever ended it, delays and count begin anew: to the second, and up to the next tenth restart.
#[test]
fn after_its_end_the_row_of_tries_is_that_of_a_new_workload() {
    for when in [WhenStuck::Retry, WhenStuck::Hold] {
        for verb in [Some(Verb::Start), Some(Verb::Restart), Some(Verb::Rebuild), None] {
            let name = verb.as_ref().map_or("generation", Verb::as_str);
            let mut world = World::new();
            world.apply(&[&pace(1, 30, when)]);
            let begin = world.now;
            exit_1_until(&mut world, begin, 600);
            assert!(is_stuck(&world));
            match verb {
                Some(verb) => drop(world.ask(Request::Verb(verb, world.view("web").uid.clone()))),
                None => drop(world.apply(&[&workload("web", |spec| {
                    spec.restart = pace(1, 30, when).spec.restart;
                    spec.stop.grace = Span::seconds(3);
                })])),
            }
            let begin = world.now;
            assert_eq!(told(&world).len(), 2, "{name} {when:?}");
            // What a new generation starts after an exit is a restart, too, and so the first one.
            let tenth = if name == "generation" { 151 } else { 181 };
            let all: Vec<u64> = NINE.into_iter().chain([181]).filter(|&at| at <= tenth).collect();
            let (last, before) = all.split_last().unwrap();
            assert_eq!(exit_1_until(&mut world, begin, last - 1), before, "{name} {when:?}");
            assert!(!world.row("web").stuck, "{name} {when:?}");
            assert_eq!(exit_1_until(&mut world, begin, *last), [*last], "{name} {when:?}");
            assert!(world.row("web").stuck, "{name} {when:?}");
            assert_eq!(told(&world).len(), 3, "{name} {when:?}");
        }
        // Ten minutes of running do the same; the restart after so long a run is the first one.
        let mut world = restarted_ten_times(when);
        world.pass(10 * MINUTE);
        let begin = world.now;
        let at_once: Vec<u64> = [0].into_iter().chain(NINE).collect();
        assert_eq!(exit_1_until(&mut world, begin, 151), at_once, "{when:?}");
        assert!(world.row("web").stuck);
    }
}

#[test]
fn the_diary_survives_the_agent_and_not_the_boot() {
    let mut world = World::new();
    world.apply(&[&pace(1, 30, WhenStuck::Hold)]);
    for _ in 0..9 {
        world.exit("web", 1);
        world.pass(30_000);
    }
    assert_eq!(world.row("web").diary.written().unwrap().1.len(), 9);
    let mut world = world.restart_agent(BOOT);
    world.exit("web", 1);
    world.pass(30_000);
    assert!(world.row("web").stuck);
    world.exit("web", 1);
    assert!(is_stuck(&world));
    // A reboot gives one more try.
    world.pass(60_000);
    world.now = 1_000;
    let mut world = world.restart_agent("boot-2");
    assert_eq!(world.state("web"), State::RunningOk);
    world.exit("web", 1);
    assert!(is_stuck(&world));
    world.pass(86_400_000);
    assert!(is_stuck(&world));
}

#[test]
fn what_is_interrupted_is_not_held() {
    let mut world = stuck(WhenStuck::Retry);
    world.pass(30_000);
    super::engine::kill_engine(&mut world);
    super::engine::revive_engine(&mut world);
    assert_eq!(world.state("web"), State::RunningOk);
    assert!(world.row("web").stuck);
}

#[test]
fn clean_exits_count_and_set_no_error() {
    let mut world = World::new();
    world.apply(&[&pace(1, 30, WhenStuck::Retry)]);
    for _ in 0..10 {
        world.exit("web", 0);
        world.pass(30_000);
    }
    world.exit("web", 0);
    assert!(is_stuck(&world));
    assert_eq!(world.view("web").error_message, "");
    assert!(world.view("web").info.starts_with("exitCode=0, and restarted"));
}
