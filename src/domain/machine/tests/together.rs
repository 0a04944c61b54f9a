//! Where probation, health, quiesce, drain, rebuilds and stops meet.

use super::*;
use crate::domain::health_check::{Check, Health, HealthCheck, Test};
use crate::domain::time::Span;
use crate::limits;

const MINUTE: u64 = 60_000;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

fn checked(name: &str, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    workload(name, |spec| {
        spec.health_check = Some(HealthCheck::On(Check::new(Test::Shell("probe".to_owned()))));
        change(spec);
    })
}

/// Calls that change something.
fn deeds(world: &World) -> Vec<&str> {
    let calls = world.engine.calls.iter().map(String::as_str);
    calls.filter(|call| !matches!(*call, "list" | "inspect")).collect()
}

// --- a failed update whose next try falls due while nothing is done ----------------------------

/// Version 1 has proved itself, version 2 has failed, and version 1 does not run.
fn fallen(world: &mut World) {
    world.engine.mortal_images.insert("image:2".to_owned(), (20_000, 1));
    world.apply(&[&image(1)]);
    world.pass(MINUTE);
    world.apply(&[&image(2)]);
    world.pass(10_000);
}

#[test]
fn the_old_version_is_back_before_a_try_that_fell_due_meanwhile() {
    let back = ["start", "create image:2", "SIGTERM", "start"];
    let mut world = World::new();
    fallen(&mut world);
    world.quiesce(limits::QUIESCE_MS);
    world.pass(limits::QUIESCE_MS - 1);
    assert_eq!((world.running(), world.view("web").awaits_resume), (0, true));
    world.engine.calls.clear();
    world.pass(1);
    assert_eq!(deeds(&world)[..4], back);

    // The engine is away.
    let mut world = World::new();
    fallen(&mut world);
    world.pass(10_000);
    super::engine::kill_engine(&mut world);
    world.pass(10 * MINUTE);
    world.engine.calls.clear();
    super::engine::revive_engine(&mut world);
    assert_eq!(deeds(&world), back);

    // It was stopped.
    let mut world = World::new();
    fallen(&mut world);
    world.pass(10_000);
    world.verb("web", Verb::Stop);
    world.pass(10 * MINUTE);
    world.engine.calls.clear();
    world.verb("web", Verb::Start);
    assert_eq!(deeds(&world), back);

    // The agent was away, after a drain.
    let mut world = World::new();
    fallen(&mut world);
    world.pass(20_000);
    world.feed(Event::Drain(None));
    world.tell_to_stop();
    world.now += 10 * MINUTE;
    world.engine.calls.clear();
    let world = world.restart_agent(BOOT);
    assert_eq!(deeds(&world), back);
}

/// What does not come back by itself does not hold up the next try.
#[test]
fn a_try_does_not_wait_for_an_old_version_that_does_not_come_back() {
    let mut world = World::new();
    fallen(&mut world);
    world.fail_next("start", &[FaultKind::Trouble; 100]);
    world.pass(10_000);
    assert_eq!((world.running(), world.view("web").failure_count), (0, 1));
    world.pass(4 * MINUTE);
    world.engine.faults.clear();
    world.engine.mortal_images.clear();
    let failed = world.view("web").failed_update.clone();
    assert_eq!(failed.map(|(generation, _)| generation), Some(2));
    world.pass(2 * MINUTE);
    assert_eq!((world.view("web").observed_generation, world.running()), (2, 1));
}

// --- signals of an operator --------------------------------------------------------------------

#[test]
fn a_signal_that_was_not_sent_when_reconciling_is_held_is_not_sent_later() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let id = world.container("web");
    let uid = world.view("web").uid.clone();
    world.unanswered.push("inspect");
    let action = ContainerAction::Changed;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    let task = world.verb("web", Verb::Kill("SIGHUP".to_owned()));
    assert_eq!(world.task(task), TaskState::Pending);
    world.quiesce(limits::QUIESCE_MS);
    assert_eq!(world.task(task), TaskState::Failed);
    world.answer_late();
    world.resume();
    world.pass(MINUTE);
    assert_eq!(deeds(&world), [""; 0]);
}

#[test]
fn a_signal_that_was_not_sent_when_the_agent_ends_is_settled() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let id = world.container("web");
    let uid = world.view("web").uid.clone();
    world.unanswered.push("inspect");
    let action = ContainerAction::Changed;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    let task = world.verb("web", Verb::Kill("SIGHUP".to_owned()));
    world.feed(Event::Drain(None));
    assert_eq!(world.task(task), TaskState::Failed);
}

// --- drain -------------------------------------------------------------------------------------

fn place(name: &str, schedule: u32) -> Arc<Declared> {
    workload(name, |spec| {
        spec.schedule = schedule;
        spec.restart.policy = RestartPolicy::Never;
        spec.stop.grace = Span::seconds(60);
    })
}

/// At a shutdown of the device each container gets its signal from somebody else, too.
#[test]
fn what_was_looked_at_during_a_drain_and_ends_before_its_turn_was_interrupted() {
    let mut world = World::new();
    let never = |spec: &mut Spec| {
        spec.schedule = 1;
        spec.restart.policy = RestartPolicy::Never;
    };
    world.apply(&[&checked("a", never), &place("b", 2)]);
    world.pass(MINUTE);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.feed(Event::Drain(None));
    world.becomes("a", Health::Healthy);
    world.exit("a", 143);
    world.pass(MINUTE);
    world.tell_to_stop();
    assert_eq!(world.drained, 1);
    let row = world.row("a");
    assert_eq!((row.last_error.as_str(), row.restart_count), ("", 0));
    let world = world.restart_agent(BOOT);
    assert_eq!((world.state("a"), world.running()), (State::RunningOk, 2));
}

#[test]
fn what_was_looked_at_during_a_drain_is_still_on_probation_after_it() {
    let mut world = World::new();
    let old = checked("a", |spec| spec.schedule = 1);
    let new = checked("a", |spec| (spec.schedule, spec.image) = (1, "image:2".to_owned()));
    world.apply(&[&old, &place("b", 2)]);
    world.becomes("a", Health::Healthy);
    world.pass(MINUTE);
    world.apply(&[&new]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.feed(Event::Drain(None));
    world.becomes("a", Health::Healthy);
    world.exit("a", 143);
    world.pass(MINUTE);
    world.tell_to_stop();
    let world = world.restart_agent(BOOT);
    assert_eq!(world.view("a").failed_update, None);
    assert_eq!(world.view("a").observed_generation, 2);
}

#[test]
fn a_place_that_changes_with_a_declaration_on_its_way_holds_no_drain_up() {
    let mut world = World::new();
    world.apply(&[&place("a", 1)]);
    world.pass(MINUTE);
    world.store_hangs = true;
    let ask = world.next_ask();
    let request = world.request(&[&place("a", 7)]);
    world.feed(Event::Ask(ask, request));
    let hung = world.hung.take().expect("a commit");
    world.store_hangs = false;
    world.feed(Event::Drain(None));
    assert_eq!(world.drained, 0);
    world.feed(Event::Committed(hung, Ok(())));
    assert_eq!((world.running(), world.drained), (0, 1));
}

/// It lives only because somebody started it.
#[test]
fn the_version_before_is_stopped_by_a_drain_like_any_other() {
    let late = limits::DRAIN_MS + limits::DRAIN_KILL_MS;
    for (most, by) in [(None, late), (Some(Span(5_000)), 10_000)] {
        let mut world = World::new();
        let version = |tag: u32| {
            workload("web", |spec| {
                spec.image = format!("image:{tag}");
                spec.stop.grace = Span::seconds(600);
            })
        };
        world.apply(&[&version(1)]);
        world.pass(MINUTE);
        let old = world.container("web");
        world.apply(&[&version(2)]);
        world.engine.stubborn.push("web");
        let made = world.engine.find_mut(old.as_str());
        (made.phase, made.started_at_ns) = (Phase::Running, 7);
        let uid = world.view("web").uid.clone();
        world.feed(Event::Drain(most));
        let action = ContainerAction::Started;
        world.feed(Event::Container(ContainerEvent { id: old, uid, action }));
        world.pass(by);
        assert_eq!((world.running(), world.drained), (0, 1), "{most:?}");
        assert!(world.logs.last().unwrap().starts_with("drained: "), "{:?}", world.logs.last());
    }
}

#[test]
fn a_stop_of_a_drain_is_shown_as_one() {
    let mut world = World::new();
    world.apply(&[&place("a", 1)]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.feed(Event::Drain(None));
    let info = "the agent ends: its stop was sent, SIGKILL follows";
    assert_eq!(world.view("a").info, info);
}

// --- rebuild -----------------------------------------------------------------------------------

#[test]
fn a_start_or_a_restart_does_not_wait_for_the_pull_of_a_rebuild() {
    for verb in [Verb::Start, Verb::Restart] {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        world.verb("web", Verb::Stop);
        world.unanswered.push("pull");
        world.verb("web", Verb::Rebuild);
        assert_eq!(world.running(), 0, "not before the image is here");
        let task = world.verb("web", verb.clone());
        assert_eq!((world.running(), world.task(task)), (1, TaskState::Done), "{verb:?}");
        let old = world.container("web");
        world.answer_late();
        assert_ne!(world.container("web"), old);
    }
}

// --- health ------------------------------------------------------------------------------------

#[test]
fn one_that_is_healthy_again_before_its_stop_could_be_recorded_is_not_stopped() {
    let mut world = World::new();
    world.apply(&[&checked("web", |_| {})]);
    world.becomes("web", Health::Healthy);
    world.pass(MINUTE);
    world.store.fails = true;
    world.becomes("web", Health::Unhealthy);
    world.pass(MINUTE);
    world.becomes("web", Health::Healthy);
    world.pass(1_000);
    world.store.fails = false;
    world.engine.calls.clear();
    world.pass(MINUTE);
    assert_eq!((deeds(&world), world.view("web").restart_count), (vec![], 0));
}

/// The agent before may have sent it.
#[test]
fn a_stop_that_cannot_be_recorded_again_may_have_been_sent_all_the_same() {
    let mut world = World::new();
    world.apply(&[&policy("job", RestartPolicy::Never)]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("job", Verb::Restart);
    world.store.fails = true;
    world.crash();
    world.pass(1_000);
    world.exit("job", 143);
    world.pass(10_000);
    assert_eq!((world.state("job"), &*world.view("job").last_error), (State::RunningOk, ""));
}

/// Nothing is noted of what is on its way out.
#[test]
fn what_turned_unhealthy_while_it_was_to_be_stopped_says_why_it_is_restarted() {
    let mut world = World::new();
    world.apply(&[&checked("web", |_| {})]);
    world.becomes("web", Health::Healthy);
    world.pass(MINUTE);
    world.apply(&[&checked("web", |spec| spec.image = "image:2".to_owned())]);
    world.quiesce(limits::QUIESCE_MS);
    world.verb("web", Verb::Stop);
    world.becomes("web", Health::Unhealthy);
    world.verb("web", Verb::Start);
    world.resume();
    let cause = "unhealthy: exitCode=1 output=bad";
    assert_eq!(world.view("web").failed_update, Some((2, cause.to_owned())));
    assert_eq!(world.view("web").last_error, cause);
}

/// What stands for the present failure is the update's cause, and not a crash of long ago.
#[test]
fn after_a_crash_of_the_old_version_the_present_failure_is_that_of_the_update() {
    let mut world = World::new();
    world.engine.refused_images.push("image:2".to_owned());
    world.apply(&[&image(1)]);
    world.pass(MINUTE);
    world.apply(&[&image(2)]);
    let cause = world.view("web").failed_update.clone().unwrap().1;
    assert_eq!(world.view("web").error_message, cause);
    world.exit("web", 9);
    world.pass(limits::STABLE_MS - 1);
    let crash = "exitCode=9 oomKilled=false";
    assert_eq!(world.view("web").error_message, crash);
    world.pass(1);
    let view = world.view("web");
    assert_eq!((&*view.error_message, &*view.last_error), (&*cause, crash));
    let commits = world.store.commits;
    world.pass(10 * MINUTE);
    assert!(world.store.commits <= commits + 1, "it is written once");
}
