//! Limits of starts, and the order in which they take their turn.

use super::*;
use crate::limits::STARTS;

/// Workloads that are all to be started, and no start is answered.
fn hanging(count: usize, change: impl Fn(usize, &mut Spec)) -> World {
    let mut world = World::new();
    world.unanswered.push("start");
    let declared: Vec<_> =
        (0..count).map(|n| workload(&format!("w{n:02}"), |spec| change(n, spec))).collect();
    world.apply(&declared.iter().collect::<Vec<_>>());
    world
}

/// Answers the first of the starts that are not answered.
fn answer_one(world: &mut World) {
    let answer = world.withheld.remove(0);
    world.feed(answer);
}

/// Names in the order in which their containers were started.
fn started(world: &World) -> Vec<String> {
    let made = world.engine.containers.values().filter(|made| made.started_at_ns != 0);
    let mut made: Vec<_> =
        made.map(|made| (made.started_at_ns, made.tags.key.name.to_string())).collect();
    made.sort();
    made.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn b38_thirty_workloads_never_have_more_than_four_starts_in_flight() {
    let mut world = hanging(30, |_, _| {});
    assert_eq!(world.count("create"), 30, "only starts wait");
    for ended in 0..30 {
        assert_eq!(world.withheld.len(), STARTS.min(30 - ended));
        answer_one(&mut world);
    }
    assert_eq!((world.withheld.len(), world.running()), (0, 30));
    assert_eq!(world.count("start"), 30);
}

#[test]
fn lower_schedules_start_first_and_then_keys() {
    // The first ones take the places as they are made; after that w09 of schedule 1, and so on.
    let mut world = hanging(12, |n, spec| spec.schedule = 10 - u32::try_from(n / 3).unwrap());
    while !world.withheld.is_empty() {
        answer_one(&mut world);
    }
    let order =
        ["w09", "w10", "w11", "w06", "w07", "w08", "w03", "w04", "w05", "w00", "w01", "w02"];
    assert_eq!(started(&world), order);
}

#[test]
fn leftovers_are_removed_after_all_that_is_to_run() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {}), &workload("b", |_| {})]);
    // The first of the two has a container that is to go and cannot yet.
    world.fail_next("remove", &[FaultKind::Trouble]);
    world.apply(&[&workload("a", |spec| spec.image = "image:2".to_owned())]);
    world.pass(30_000);
    assert_eq!((world.count("remove"), world.engine.containers.len()), (1, 3));
    world.cut_power();
    world.engine.calls.clear();
    world.crash();
    world.pass(30_000);
    let calls: Vec<&str> = world.engine.calls.iter().map(String::as_str).collect();
    let at = |word| calls.iter().rposition(|call| *call == word).expect(word);
    assert!(at("start") < at("remove"), "{calls:?}");
    assert_eq!((world.running(), world.engine.containers.len()), (2, 2));
}

#[test]
fn what_waits_for_its_start_says_so() {
    let mut world = hanging(5, |_, _| {});
    let view = world.view("w04");
    assert_eq!((view.state, view.runtime_state), (State::PendingStarting, RuntimeState::Created));
    assert_eq!(view.info, "waits for other starts, 4 at a time");
    answer_one(&mut world);
    assert_eq!(world.view("w04").info, "being started");
}

#[test]
fn stops_removals_and_looks_do_not_wait_for_starts_that_hang() {
    let mut world = World::new();
    let runs: Vec<_> = ["a", "b", "c"].map(|name| workload(name, |_| {})).to_vec();
    world.apply(&runs.iter().collect::<Vec<_>>());
    world.unanswered.push("start");
    let more: Vec<_> = (0..8).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.apply(&more.iter().collect::<Vec<_>>());
    assert_eq!(world.withheld.len(), STARTS);
    world.verb("a", Verb::Stop);
    assert_eq!(world.state("a"), State::StoppedOk);
    world.verb("b", Verb::Remove);
    // One that waits for its start, too.
    world.verb("w7", Verb::Remove);
    assert_eq!(world.views.len(), 9);
    world.exit("c", 0);
    assert_eq!(world.view("c").exit_code, Some(0), "it was looked at");
    // What is not wanted any more does not take a place.
    world.verb("w6", Verb::Stop);
    while !world.withheld.is_empty() {
        answer_one(&mut world);
    }
    assert_eq!(world.state("w6"), State::StoppedOk);
    assert_eq!(world.count("start"), 3 + 6, "a, b, c and w0 to w5; c waits for its backoff");
}

#[test]
fn a_start_that_fails_gives_its_place_on() {
    let mut world = World::new();
    world.unanswered.push("start");
    world.fail_next("start", &[FaultKind::Timeout; STARTS]);
    let declared: Vec<_> = (0..5).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.apply(&declared.iter().collect::<Vec<_>>());
    for _ in 0..STARTS {
        answer_one(&mut world);
    }
    assert_eq!((world.withheld.len(), world.count("start")), (1, 5), "w4 is being started");
}

/// Rows are written before the places are free: a start that had to wait waits for no store.
#[test]
fn the_rows_of_what_waits_are_written_meanwhile() {
    let mut world = World::new();
    let declared: Vec<_> = (0..30).map(|n| workload(&format!("w{n:02}"), |_| {})).collect();
    world.apply(&declared.iter().collect::<Vec<_>>());
    world.pass(60_000);
    world.unanswered.push("start");
    // Each ran for long enough to be started again at once.
    for n in 0..30 {
        world.exit(&format!("w{n:02}"), 1);
    }
    assert_eq!(world.withheld.len(), STARTS);
    // From here on the store hangs.
    world.store_hangs = true;
    for _ in 0..30 {
        answer_one(&mut world);
    }
    assert_eq!(world.running(), 30);
}

/// The service is not down for the starts of others.
#[test]
fn an_update_leaves_the_old_container_running_until_there_is_a_place_for_the_new_one() {
    let mut world = World::new();
    world.apply(&[&workload("x", |_| {})]);
    world.pass(60_000);
    world.unanswered.push("start");
    let others: Vec<_> = (0..5).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.apply(&others.iter().collect::<Vec<_>>());
    world.apply(&[&workload("x", |spec| spec.image = "image:2".to_owned())]);
    let view = world.view("x");
    assert_eq!((view.state, view.runtime_state), (State::RunningOk, RuntimeState::Updating));
    assert_eq!(view.info, "update to generation 2: waits for other starts, 4 at a time");
    assert_eq!((world.count("create image:2"), world.count("SIGTERM")), (1, 0));
    // The fifth of the others comes before it.
    answer_one(&mut world);
    assert_eq!(world.count("SIGTERM"), 0);
    answer_one(&mut world);
    assert_eq!((world.count("SIGTERM"), world.count("start")), (1, 7));
    world.unanswered.clear();
    while !world.withheld.is_empty() {
        answer_one(&mut world);
    }
    assert_eq!((world.running(), world.view("x").observed_generation), (6, 2));
}
