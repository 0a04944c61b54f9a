//! The engine says that a container runs, and its process is gone.

use super::*;
use crate::domain::declared::{Port, Protocol};

const TEXT: &str = "its process is gone, though the engine says that it runs";

fn policy(name: &str, policy: RestartPolicy) -> Arc<Declared> {
    workload(name, |spec| spec.restart.policy = policy)
}

fn with_port(spec: &mut Spec) {
    let protocol = Protocol::Tcp;
    let port = Port { host_ip: None, host_port: Some(80), container_port: 80, protocol };
    spec.ports.push(port);
}

/// A world in which `web` runs, for a while.
fn world(of: RestartPolicy) -> World {
    let mut world = World::new();
    world.apply(&[&policy("web", of), &workload("other", |_| {})]);
    world.pass(31_000);
    world.engine.calls.clear();
    world
}

/// It was looked for.
fn report(world: &mut World, pid: u32) {
    let id = world.container("web");
    world.feed(Event::ProcessGone(id, pid));
}

#[test]
fn b131_a_workload_whose_process_is_gone_is_made_anew() {
    for of in [RestartPolicy::Always, RestartPolicy::OnFailure] {
        let mut world = world(of);
        let before = world.container("web");
        report(&mut world, 1);
        // What is left of it may take long to remove.
        assert_eq!(world.engine.calls, ["inspect", "create image:1", "start", "remove"]);
        let view = world.view("web");
        assert_eq!((view.state, view.restart_count), (State::RunningOk, 1));
        assert_eq!(view.last_error, TEXT);
        assert_ne!(world.container("web"), before);
        assert_eq!((world.running(), world.engine.containers.len()), (2, 2));
        world.pass(120_000);
        assert_eq!(world.view("web").restart_count, 1, "counted once");
    }
}

#[test]
fn what_is_left_of_one_with_ports_is_removed_before_they_are_needed() {
    let mut world = World::new();
    world.apply(&[&workload("web", with_port)]);
    world.pass(31_000);
    world.engine.calls.clear();
    report(&mut world, 1);
    assert_eq!(world.engine.calls, ["inspect", "remove", "create image:1", "start"]);
}

#[test]
fn what_is_not_to_run_again_is_shown_as_lost() {
    let mut world = world(RestartPolicy::Never);
    report(&mut world, 1);
    world.pass(120_000);
    let view = world.view("web");
    assert_eq!((view.state, view.info.as_str()), (State::FailedLost, TEXT));
    assert_eq!(view.exit_code, None);
    assert_eq!(world.count("create"), 0);
}

#[test]
fn one_that_ended_as_any_other_is_judged_as_any_other() {
    let mut world = world(RestartPolicy::Always);
    let before = world.container("web");
    let made = world.engine.find_mut(before.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 3);
    report(&mut world, 1);
    assert_eq!(world.engine.calls, ["inspect", "start"]);
    assert_eq!(
        (world.view("web").last_error.as_str(), world.container("web")),
        ("exitCode=3 oomKilled=false", before)
    );
}

#[test]
fn what_was_looked_for_too_early_is_not_believed() {
    let mut world = world(RestartPolicy::Always);
    // Another process by now.
    report(&mut world, 2);
    assert!(world.engine.calls.is_empty(), "{:?}", world.engine.calls);
    // It was started again between the two looks and the inspect.
    let id = world.container("web");
    world.unanswered.push("inspect");
    report(&mut world, 1);
    let made = world.engine.find_mut(id.as_str());
    made.started_at_ns += 1;
    let reading = Outcome::Found(Box::new(reading(made)));
    let Event::StepDone(step, _) = world.withheld.remove(0) else { panic!("no inspect") };
    world.unanswered.clear();
    world.feed(Event::StepDone(step, Ok(reading)));
    assert_eq!((world.container("web"), world.count("remove")), (id, 0));
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn one_that_cannot_be_removed_holds_up_nothing() {
    let mut world = World::new();
    world.apply(&[&workload("web", with_port), &workload("other", |_| {})]);
    world.pass(31_000);
    let before = world.container("web");
    world.engine.unremovable.push(before.clone());
    report(&mut world, 1);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_ne!(world.container("web"), before);
    world.engine.unremovable.clear();
    world.pass(600_000);
    assert_eq!(world.engine.containers.len(), 2, "removed when that could be");
    assert_eq!(world.view("web").restart_count, 1);
}

#[test]
fn a_short_run_waits_on_the_backoff_as_after_any_crash() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    report(&mut world, 1);
    let view = world.view("web");
    assert_eq!(
        (view.state, view.info.as_str()),
        (State::PendingStarting, &*format!("{TEXT}; restart 1"))
    );
    assert!(view.next_attempt.is_some());
    world.pass(10_000);
    assert_eq!(world.state("web"), State::RunningOk);
}
