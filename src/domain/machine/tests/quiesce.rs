//! Reconciling is held: what is asked for is kept, what happens is read, and nothing is done before
//! that is over, however that comes about.

use super::directory::good;
use super::*;
use crate::domain::effect::Refusal;
use crate::domain::record::Desired;
use crate::limits;

const MINUTE: u64 = 60_000;

impl World {
    /// Reconciling is held from now on, and the calls so far are forgotten.
    pub(super) fn quiesce(&mut self, ms: u64) {
        match self.ask(Request::Quiesce(Span(ms))) {
            Answer::Done(_) => self.engine.calls.clear(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn resume(&mut self) -> String {
        match self.ask(Request::Resume) {
            Answer::Done(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn is_held(&self) -> bool {
        self.status.quiesced.is_some()
    }

    /// Only looks have reached the engine.
    fn expect_no_deed(&self) {
        let looks = |call: &&String| !matches!(call.as_str(), "list" | "inspect");
        assert_eq!(self.engine.calls.iter().filter(looks).count(), 0, "{:?}", self.engine.calls);
    }
}

fn image(name: &str, image: &str) -> Arc<Declared> {
    workload(name, |spec| spec.image = image.to_owned())
}

/// Three workloads that run, and reconciling is held.
fn held() -> World {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {}), &workload("b", |_| {}), &workload("c", |_| {})]);
    world.pass(MINUTE);
    world.quiesce(limits::QUIESCE_MS);
    world
}

#[test]
fn a_crash_waits_and_is_counted_once_when_it_is_started_again() {
    let mut world = held();
    world.exit("a", 1);
    world.pass(5 * MINUTE);
    assert_eq!(world.engine.calls, ["inspect", "list", "list", "list", "list", "list"]);
    let view = world.view("a");
    assert!(view.awaits_resume, "{view:?}");
    assert_eq!((view.state, view.exit_code), (State::PendingStarting, Some(1)));
    assert_eq!(view.restart_count, 0);
    assert!(!world.view("b").awaits_resume);
    world.resume();
    assert_eq!((world.state("a"), world.view("a").restart_count), (State::RunningOk, 1));
    assert!(!world.view("a").awaits_resume);
    assert_eq!(world.count("list"), 6, "a full compare at the end");
}

#[test]
fn what_is_asked_for_is_durable_and_carried_out_later() {
    let mut world = held();
    world.apply(&[&image("a", "image:2"), &workload("d", |_| {})]);
    let tasks = [world.verb("b", Verb::Stop), world.verb("c", Verb::Remove)];
    world.pass(MINUTE);
    world.expect_no_deed();
    assert_eq!((world.row("a").generation, world.row("d").generation), (2, 1));
    assert_eq!(world.row("b").desired, Desired::Stopped);
    assert_eq!(world.row("c").desired, Desired::Deleted);
    assert_eq!(tasks.map(|task| world.task(task)), [TaskState::Pending; 2]);
    for name in ["a", "b", "c", "d"] {
        assert!(world.view(name).awaits_resume, "{name}");
    }
    assert_eq!(world.running(), 3);
    world.resume();
    world.pass(MINUTE);
    assert_eq!(tasks.map(|task| world.task(task)), [TaskState::Done; 2]);
    assert_eq!((world.state("a"), world.state("b")), (State::RunningOk, State::StoppedOk));
    assert_eq!((world.view("a").observed_generation, world.state("d")), (2, State::RunningOk));
    assert_eq!(world.views.len(), 3);
}

#[test]
fn what_is_so_already_is_done_all_the_same() {
    let mut world = held();
    let task = world.verb("a", Verb::Start);
    assert_eq!(world.task(task), TaskState::Done);
    world.expect_no_deed();
}

#[test]
fn a_signal_is_refused() {
    let mut world = held();
    let uid = world.view("a").uid.clone();
    match world.ask(Request::Verb(Verb::Kill("SIGHUP".to_owned()), uid)) {
        Answer::Refused(Refusal::Conflict(text)) => {
            assert!(text.starts_with("reconciling is held for another 900 s"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    world.expect_no_deed();
}

#[test]
fn it_ends_by_itself_after_its_time_with_one_compare() {
    let mut world = held();
    world.apply(&[&image("a", "image:2")]);
    world.pass(limits::QUIESCE_MS - 1);
    world.expect_no_deed();
    let lists = world.count("list");
    assert!(world.is_held());
    world.pass(1);
    assert!(!world.is_held());
    assert_eq!((world.count("list"), world.view("a").observed_generation), (lists + 1, 2));
    assert_eq!(world.store.kept.quiesce, None);
    let lines = world.logs.iter().filter(|line| line.starts_with("reconciling "));
    assert_eq!(lines.count(), 2, "{:?}", world.logs);
}

#[test]
fn asked_for_again_the_new_time_counts_from_then_on() {
    for (second, end) in [(MINUTE, 2 * MINUTE), (30 * MINUTE, 31 * MINUTE)] {
        let mut world = held();
        let began = world.status.quiesced.as_ref().unwrap().since;
        world.pass(MINUTE);
        world.quiesce(second);
        let quiesced = world.status.quiesced.clone().unwrap();
        assert_eq!((quiesced.since, quiesced.until), (began, began + Span(end)));
        world.pass(second - 1);
        assert!(world.is_held());
        world.pass(1);
        assert!(!world.is_held());
    }
}

#[test]
fn it_outlives_the_agent_but_not_the_boot() {
    let mut world = held();
    world.exit("a", 1);
    world.pass(MINUTE);
    let mut world = world.restart_agent(BOOT);
    world.engine.calls.clear();
    world.verb("b", Verb::Stop);
    world.pass(13 * MINUTE);
    world.expect_no_deed();
    let until = world.status.quiesced.as_ref().map(|quiesced| quiesced.until.0 - world.now);
    assert_eq!(until, Some(MINUTE));

    let mut world = world.restart_agent("boot-2");
    assert!(!world.is_held());
    assert_eq!(world.store.kept.quiesce, None);
    world.pass(MINUTE);
    let states = ["a", "b", "c"].map(|name| world.state(name));
    assert_eq!(states, [State::RunningOk, State::StoppedOk, State::RunningOk]);
}

#[test]
fn one_that_is_over_when_the_agent_starts_holds_nothing() {
    let mut world = held();
    world.exit("a", 1);
    world.now += 15 * MINUTE;
    let world = world.restart_agent(BOOT);
    assert_eq!((world.is_held(), world.state("a")), (false, State::RunningOk));
    assert_eq!(world.store.kept.quiesce, None);
}

#[test]
fn what_is_in_flight_when_it_begins_ends_normally() {
    for call in ["create", "start"] {
        let mut world = World::new();
        world.unanswered.push(call);
        world.apply(&[&workload("a", |_| {})]);
        world.quiesce(limits::QUIESCE_MS);
        world.answer_late();
        world.expect_no_deed();
        let (made, runs) = (world.row("a").current.is_some(), world.state("a"));
        match call {
            "create" => assert_eq!((made, runs), (true, State::PendingStarting)),
            _ => assert_eq!((made, runs), (true, State::RunningOk)),
        }
        world.resume();
        assert_eq!(world.state("a"), State::RunningOk, "{call}");
        assert_eq!(world.engine.containers.len(), 1);
    }
}

#[test]
fn no_pull_begins_before_its_end() {
    let mut world = World::new();
    world.engine.missing_images.extend(["image:1", "image:2", "image:3"].map(str::to_owned));
    world.unanswered.extend(["create", "pull"]);
    // One pull has the place of its registry, one waits for it, one is about to be asked for.
    world.apply(&[&image("a", "image:1")]);
    world.answer_late();
    world.unanswered.extend(["create", "pull"]);
    world.apply(&[&image("b", "image:2")]);
    world.answer_late();
    world.unanswered.extend(["create", "pull"]);
    world.apply(&[&image("c", "image:3")]);
    world.quiesce(limits::QUIESCE_MS);
    world.answer_late();
    world.pass(MINUTE);
    world.expect_no_deed();
    world.engine.missing_images.clear();
    world.resume();
    world.pass(MINUTE);
    assert_eq!(world.running(), 3, "{:?}", world.engine.calls);
}

#[test]
fn the_kill_of_a_stop_waits_too() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("a", Verb::Stop);
    world.quiesce(limits::QUIESCE_MS);
    world.pass(MINUTE);
    world.expect_no_deed();
    assert_eq!(world.state("a"), State::StoppingRequestedAtRuntime);
    world.resume();
    assert_eq!((world.count("SIGKILL"), world.state("a")), (1, State::StoppedOk));
}

#[test]
fn drift_is_seen_and_healed_later() {
    let mut world = held();
    let name = world.engine.containers.keys().next().unwrap().clone();
    world.engine.containers.remove(&name);
    // Without any event: a full compare finds it.
    world.pass(2 * MINUTE);
    world.expect_no_deed();
    assert_eq!(world.view("a").runtime_state, RuntimeState::Queued);
    world.resume();
    assert_eq!((world.state("a"), world.running()), (State::RunningOk, 3));
}

#[test]
fn the_manifests_directory_is_taken_in_and_carried_out_later() {
    let mut world = held();
    world.files(&[("d.yaml", good(&[&workload("d", |_| {})]))]);
    world.pass(MINUTE);
    world.expect_no_deed();
    assert!(world.view("d").awaits_resume);
    world.resume();
    assert_eq!(world.state("d"), State::RunningOk);
}

#[test]
fn idle_it_costs_no_more_than_ever() {
    let mut world = held();
    world.exit("a", 1);
    world.apply(&[&image("b", "image:2")]);
    world.pass(MINUTE);
    world.engine.calls.clear();
    let commits = world.store.commits;
    world.pass(10 * MINUTE);
    assert_eq!(world.engine.calls, ["list"; 10]);
    assert_eq!(world.store.commits, commits);
    let next = world.machine.next_deadline().unwrap();
    assert!(next.0 > world.now, "it does not spin");
}

#[test]
fn the_engine_may_come_and_go() {
    let mut world = held();
    super::engine::kill_engine(&mut world);
    world.pass(MINUTE);
    super::engine::revive_engine(&mut world);
    world.pass(MINUTE);
    world.expect_no_deed();
    assert_eq!(world.running(), 0);
    assert!(world.status.engine_up && world.status.listed);
    world.resume();
    assert_eq!(world.running(), 3);
    assert_eq!(world.view("a").restart_count, 0, "interrupted");
}

#[test]
fn what_a_crash_left_waits_and_holds_no_change_up() {
    let mut world = World::new();
    world.unanswered.push("create");
    world.apply(&[&workload("a", |_| {})]);
    world.quiesce(limits::QUIESCE_MS);
    let mut world = world.restart_agent(BOOT);
    world.engine.calls.clear();
    assert_eq!((world.status.recovering, world.status.journal), (None, (1, 0)));
    world.verb("a", Verb::Stop);
    world.pass(5 * MINUTE);
    world.expect_no_deed();
    assert_eq!((world.status.journal, world.engine.containers.len()), ((1, 0), 1));
    world.verb("a", Verb::Start);
    world.resume();
    world.pass(5 * MINUTE);
    assert_eq!((world.state("a"), world.status.journal), (State::RunningOk, (0, 0)));
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn a_leftover_of_nobody_waits_too() {
    let mut world = held();
    // As a late create of an agent that died would make it.
    let mut tags = world.engine.containers.values().next().unwrap().tags.clone();
    tags.uid = Uid::new("nobody");
    tags.instance = crate::domain::names::InstanceName::new("bargee-x-00000000");
    let stray = made("stray", tags, Phase::Running);
    world.engine.containers.insert("bargee-x-00000000".to_owned(), stray);
    world.pass(10 * MINUTE);
    world.expect_no_deed();
    assert_eq!(world.engine.containers.len(), 4);
    world.resume();
    world.pass(10 * MINUTE);
    assert_eq!(world.engine.containers.len(), 3);
}

#[test]
fn a_store_that_cannot_write_refuses_it_and_never_keeps_it() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {})]);
    world.store.fails = true;
    assert!(matches!(
        world.ask(Request::Quiesce(Span(MINUTE))),
        Answer::Refused(Refusal::Store(_))
    ));
    assert!(!world.is_held());
    world.store.fails = false;
    world.quiesce(MINUTE);
    world.exit("a", 1);
    world.store.fails = true;
    assert!(matches!(world.ask(Request::Resume), Answer::Refused(Refusal::Store(_))));
    world.pass(10_000);
    assert_eq!((world.is_held(), world.state("a")), (false, State::RunningOk));
}

#[test]
fn a_resume_of_nothing_says_so() {
    let mut world = World::new();
    assert_eq!(world.resume(), "reconciling is not held, so there is nothing to resume");
}

#[test]
fn it_is_told_in_the_time_that_was_asked_for_though_writing_it_took_a_moment() {
    let mut world = World::new();
    world.pace = world::Pace::SlowStore;
    world.store_hangs = true;
    let ask = world.next_ask();
    world.feed(Event::Ask(ask, Request::Quiesce(Span(900_000))));
    let hung = world.hung.take().expect("a commit");
    assert!(!world.is_held());
    world.now += 40;
    world.feed(Event::Committed(hung, Ok(())));
    match &world.answers[&ask] {
        Answer::Done(text) => assert!(text.starts_with("reconciling is held for 15m: "), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_update_that_fails_meanwhile_goes_back_later() {
    let mut world = World::new();
    world.apply(&[&image("a", "image:1")]);
    world.pass(MINUTE);
    world.apply(&[&image("a", "image:2")]);
    world.pass(10_000);
    world.quiesce(limits::QUIESCE_MS);
    world.exit("a", 1);
    // Before the next try of the update.
    world.pass(3 * MINUTE);
    world.expect_no_deed();
    assert_eq!(world.running(), 0);
    world.resume();
    assert_eq!((world.state("a"), world.view("a").observed_generation), (State::RunningOk, 1));
    assert!(world.view("a").failed_update.is_some());
}

#[test]
fn an_unhealthy_workload_is_restarted_later() {
    use crate::domain::health_check::{Check, Health, HealthCheck, Test};
    let check = Check::new(Test::Shell("probe".to_owned()));
    let mut world = World::new();
    world.apply(&[&workload("a", |spec| spec.health_check = Some(HealthCheck::On(check)))]);
    world.becomes("a", Health::Healthy);
    world.pass(MINUTE);
    world.quiesce(limits::QUIESCE_MS);
    world.becomes("a", Health::Unhealthy);
    world.pass(MINUTE);
    world.expect_no_deed();
    assert_eq!((world.running(), world.view("a").awaits_resume), (1, true));
    world.resume();
    assert_eq!((world.running(), world.view("a").restart_count), (1, 1));
}
