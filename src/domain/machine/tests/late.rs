//! Answers that come when something else is wanted already.

use super::*;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

/// Whatever waited for the network to go is not forgotten when nobody knows whether it went.
#[test]
fn a_removal_of_the_network_that_fails_holds_nobody() {
    for kind in [FaultKind::Timeout, FaultKind::Trouble] {
        let mut world = World::new();
        world.apply(&[&workload("a", |_| {})]);
        world.unanswered.push("remove network");
        world.fail_next("network", &[kind]);
        world.verb("a", Verb::Remove);
        world.apply(&[&workload("b", |_| {})]);
        assert_eq!(world.state("b"), State::PendingWaitingToStart);
        world.answer_late();
        world.pass(10_000);
        assert_eq!(world.state("b"), State::RunningOk, "{kind:?}");
    }
}

/// Every call that can fail, first for a first container and then for an update.
#[test]
fn the_failure_of_a_superseded_call_is_not_that_of_the_new_generation() {
    for call in ["create", "start"] {
        for kind in [FaultKind::Refused, FaultKind::Trouble, FaultKind::HostPath] {
            for update in [false, true] {
                let mut world = World::new();
                if update {
                    world.apply(&[&image(1)]);
                }
                world.unanswered.push(call);
                world.fail_next(call, &[kind]);
                world.apply(&[&image(2)]);
                world.apply(&[&image(3)]);
                world.answer_late();
                let what = format!("{call} {kind:?} {update}");
                let view = world.view("web");
                assert_eq!(view.failed_update, None, "{what}");
                assert_eq!(view.state, State::RunningOk, "{what}: {}", view.info);
                assert_eq!(view.observed_generation, view.generation, "{what}");
                assert_eq!((view.failure_count, &*view.last_error), (0, ""), "{what}");
                world.pass(30_000);
                assert_eq!(world.engine.containers.len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn the_crash_of_a_superseded_successor_is_not_that_of_the_new_generation() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.unanswered.push("start");
    world.apply(&[&image(2)]);
    let made =
        world.engine.containers.values_mut().find(|made| made.phase == Phase::Running).unwrap();
    made.phase = Phase::Exited;
    made.exit_code = 1;
    let (id, uid) = (made.id.clone(), made.tags.uid.clone());
    world.apply(&[&image(3)]);
    let action = ContainerAction::Died;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    // The reading of the start: it ended right away.
    let Some(Event::StepDone(_, Ok(Outcome::Started(reading)))) = world.withheld.first_mut() else {
        panic!("a start");
    };
    (reading.phase, reading.exit_code) = (Phase::Exited, 1);
    world.answer_late();
    assert_eq!(world.view("web").failed_update, None);
    assert_eq!(world.view("web").observed_generation, 3);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn nothing_is_pulled_for_a_workload_that_is_not_wanted_running_any_more() {
    for (verb, state) in [(Verb::Stop, Some(State::StoppedOk)), (Verb::Remove, None)] {
        let mut world = World::new();
        world.engine.missing_images.push("image:1".to_owned());
        world.unanswered.push("create");
        world.apply(&[&image(1)]);
        world.verb("web", verb);
        world.answer_late();
        assert_eq!(world.count("pull"), 0);
        assert_eq!(world.views.values().next().map(|view| view.state), state);
    }
}

#[test]
fn a_missing_image_of_a_superseded_generation_is_not_asked_for() {
    let never = workload("web", |spec| {
        spec.image = "image:2".to_owned();
        spec.pull = Pull::Never;
    });
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    world.unanswered.push("create");
    world.apply(&[&image(1)]);
    world.apply(&[&never]);
    world.answer_late();
    assert_eq!(world.count("pull"), 0);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").last_error, "");
}

/// The pull of an update may take hours.
#[test]
fn what_runs_is_looked_after_while_an_update_is_pulled() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.pass(30_000);
    world.engine.missing_images.push("image:2".to_owned());
    world.unanswered.push("pull");
    world.apply(&[&image(2)]);
    let old = world.container("web");
    world.exit("web", 1);
    assert_eq!(world.view("web").last_error, "exitCode=1 oomKilled=false");
    assert_eq!((world.running(), world.view("web").restart_count), (1, 1));
    // Another crash, and a start that fails: on the backoff, and no failure of the update.
    world.fail_next("start", &[FaultKind::Trouble]);
    world.exit("web", 1);
    world.pass(10_000);
    assert_eq!(world.count("start"), 3, "the second try has to wait");
    world.pass(20_000);
    assert_eq!((world.running(), world.view("web").restart_count), (1, 2));
    assert_eq!(world.count("start"), 4);
    // Vanished: there is nothing to go back to, and the new one is on its way.
    world.engine.containers.clear();
    let uid = world.view("web").uid.clone();
    let action = ContainerAction::Removed;
    world.feed(Event::Container(ContainerEvent { id: old, uid, action }));
    assert_eq!(world.count("pull"), 1);
    world.answer_late();
    world.pass(30_000);
    assert_eq!(world.view("web").failed_update, None);
    assert_eq!((world.state("web"), world.view("web").observed_generation), (State::RunningOk, 2));
}

#[test]
fn a_signal_is_sent_while_an_update_is_pulled() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.engine.missing_images.push("image:2".to_owned());
    world.unanswered.push("pull");
    world.apply(&[&image(2)]);
    let task = world.verb("web", Verb::Kill("SIGHUP".to_owned()));
    assert_eq!(world.task(task), TaskState::Done);
}

/// A stop is seen through, but only for the run that it was sent to.
#[test]
fn a_run_that_somebody_else_began_is_not_stopped_for_an_old_stop() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("web", Verb::Stop);
    // It ends and is started by hand before anything is read, and is wanted again.
    let id = world.container("web");
    world.engine.find_mut(id.as_str()).started_at_ns += 1;
    world.verb("web", Verb::Start);
    let uid = world.view("web").uid.clone();
    let action = ContainerAction::Started;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    world.pass(60_000);
    assert_eq!(world.count("SIG"), 1, "{:?}", world.engine.calls);
    assert_eq!(world.state("web"), State::RunningOk);
}
