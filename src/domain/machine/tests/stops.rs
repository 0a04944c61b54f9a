//! Stops that last, and containers that do not end.

use super::*;

const FAULTS: [FaultKind; 200] = [FaultKind::Trouble; 200];

fn many(count: usize, change: impl Fn(&mut Spec)) -> Vec<Arc<Declared>> {
    (0..count).map(|n| workload(&format!("w{n:03}"), &change)).collect()
}

fn apply(world: &mut World, declared: &[Arc<Declared>]) {
    world.apply(&declared.iter().collect::<Vec<_>>());
}

/// Calls but listings since the last time.
fn calls(world: &mut World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in std::mem::take(&mut world.engine.calls) {
        if call != "list" {
            *counts.entry(call).or_default() += 1;
        }
    }
    counts
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(call, count)| ((*call).to_owned(), *count)).collect()
}

#[test]
fn two_hundred_that_do_not_listen_are_told_once_and_killed_when_their_grace_is_over() {
    let mut world = World::new();
    let grace = |spec: &mut Spec| spec.stop.grace = Span::seconds(120);
    apply(&mut world, &many(200, grace));
    world.pass(60_000);
    calls(&mut world);
    world.fail_next("deaf", &FAULTS);
    apply(
        &mut world,
        &many(200, |spec| {
            grace(spec);
            spec.image = "image:2".to_owned();
        }),
    );
    assert_eq!(calls(&mut world), counts(&[("create image:2", 200), ("SIGTERM", 200)]));
    world.pass(119_999);
    assert_eq!(calls(&mut world), counts(&[]));
    // Somebody else comes meanwhile.
    world.apply(&[&workload("other", |_| {})]);
    assert_eq!(world.state("other"), State::RunningOk);
    assert_eq!(calls(&mut world), counts(&[("create image:1", 1), ("start", 1)]));
    world.pass(1);
    let end = [("SIGKILL", 200), ("inspect", 200), ("start", 200)];
    assert_eq!(calls(&mut world), counts(&end));
    assert_eq!(world.running(), 201);
    // Each is looked at once more before what it follows is given up for it.
    world.pass(30_000);
    assert_eq!(calls(&mut world), counts(&[("inspect", 200), ("remove", 200)]));
    assert_eq!(world.running(), 201);
}

#[test]
fn what_does_not_end_is_killed_again_every_ten_seconds_and_says_so() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.fail_next("deaf", &FAULTS);
    world.verb("web", Verb::Stop);
    assert_eq!(world.view("web").info, "its stop was sent, SIGKILL follows");
    world.pass(9_999);
    assert_eq!(world.count("SIGKILL"), 0);
    for kills in 1..=6 {
        world.pass(if kills == 1 { 1 } else { 10_000 });
        assert_eq!(world.count("SIGKILL"), kills);
        let view = world.view("web");
        assert_eq!(view.state, State::StoppingRequestedAtRuntime);
        assert_eq!(view.info, "SIGKILL was sent and it still runs, it is sent again");
        assert_eq!(view.next_attempt, Some(Tick(world.now + 10_000)));
    }
    world.exit("web", 137);
    assert_eq!((world.state("web"), world.view("web").info.as_str()), (State::StoppedOk, ""));
    // Its next run is another one.
    world.engine.faults.clear();
    world.verb("web", Verb::Start);
    world.fail_next("deaf", &FAULTS);
    world.verb("web", Verb::Restart);
    let info = "for a restart or an update: its stop was sent, SIGKILL follows";
    assert_eq!(world.view("web").info, info);
}

/// Signals in flight for workloads all of which had one of them timed out.
fn in_flight_after_timeouts(world: &mut World) -> usize {
    apply(world, &many(5, |_| {}));
    world.fail_next("signal", &[FaultKind::Timeout; 5]);
    for n in 0..5 {
        world.verb(&format!("w{n:03}"), Verb::Stop);
    }
    assert_eq!(world.count("SIGTERM"), 5);
    world.unanswered.push("SIG");
    // They are looked at, which is answered, and killed when their grace is over.
    world.pass(30_000);
    world.withheld.len()
}

#[test]
fn what_hangs_shares_one_call_though_looks_are_answered() {
    let mut world = World::new();
    assert_eq!(in_flight_after_timeouts(&mut world), 1);
    assert!(world.count("inspect") >= 1);
    // Answered at last: one after the other ends.
    world.answer_late();
    world.pass(1);
    assert_eq!(world.running(), 0);
}

#[test]
fn an_engine_that_comes_back_starts_with_a_clean_record() {
    let mut world = World::new();
    in_flight_after_timeouts(&mut world);
    world.withheld.clear();
    super::engine::kill_engine(&mut world);
    let away = Fault::new(FaultKind::Away, "call", "", "connection reset");
    let steps: Vec<_> = world.machine.steps.keys().copied().collect();
    steps.into_iter().for_each(|step| world.queue(Event::StepDone(step, Err(away.clone()))));
    world.unanswered = vec!["inspect"];
    super::engine::revive_engine(&mut world);
    assert_eq!(world.withheld.len(), 5, "all are looked at at the same time");
    world.answer_late();
    for n in 0..5 {
        assert_eq!(world.state(&format!("w{n:03}")), State::StoppedOk);
    }
}
