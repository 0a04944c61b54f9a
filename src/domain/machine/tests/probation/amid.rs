//! What is asked for, and what happens, while a new version is on probation.

use super::super::engine::{kill_engine, revive_engine};
use super::*;

#[test]
fn a_newer_generation_removes_the_unproved_one_and_keeps_the_proved_one() {
    let mut world = proved(600_000, 1);
    world.engine.mortal_images.insert("image:3".to_owned(), (3_000, 1));
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.pass(10_000);
    world.apply(&[&image(3)]);
    assert_eq!(images(&world), ["image:1", "image:3"]);
    world.pass(3_000);
    assert_eq!((world.container("web"), images(&world)), (old, vec!["image:1"]));
    let view = world.view("web");
    assert_eq!((view.generation, view.observed_generation), (3, 1));
    assert_eq!(view.failed_update.as_ref().unwrap().0, 3);
}

/// The third cannot be made while the second still runs on probation: what runs goes on.
#[test]
fn a_newer_generation_that_cannot_be_made_leaves_the_one_on_probation() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.fail_next("create", &[FaultKind::Refused]);
    world.apply(&[&image(3)]);
    assert_eq!((runs(&world), world.view("web").observed_generation), ("image:2", 2));
    world.pass(30_000);
    assert_eq!(images(&world), ["image:2"], "proved, though it is not wanted any more");
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 3);

    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.fail_next("create", &[FaultKind::Refused]);
    world.apply(&[&image(3)]);
    world.pass(3_000);
    assert_eq!(images(&world), ["image:1"]);
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 3);
}

#[test]
fn a_newer_generation_that_cannot_start_brings_the_proved_one_back() {
    let mut world = proved(600_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.pass(10_000);
    world.fail_next("start", &[FaultKind::Trouble]);
    world.apply(&[&image(3)]);
    assert_eq!((world.container("web"), images(&world)), (old, vec!["image:1"]));
}

#[test]
fn going_back_to_the_version_before_takes_its_container() {
    let mut world = proved(600_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.engine.calls.clear();
    world.apply(&[&image(1)]);
    assert_eq!((world.container("web"), images(&world)), (old, vec!["image:1"]));
    assert_eq!(world.engine.calls, ["SIGTERM", "inspect", "start", "remove"]);
    let view = world.view("web");
    assert_eq!((view.observed_generation, view.generation), (3, 3));
    assert_eq!((view.failed_update.as_ref(), view.last_error.as_str()), (None, ""));
}

/// While the third is pulled, the second dies on probation.
#[test]
fn a_death_while_a_newer_generation_is_pulled_brings_the_proved_one_back() {
    let mut world = proved(3_000, 1);
    world.engine.missing_images.push("image:3".to_owned());
    world.unanswered.push("pull");
    world.apply(&[&image(2)]);
    world.apply(&[&image(3)]);
    world.pass(3_000);
    assert_eq!((runs(&world), world.view("web").failed_update.as_ref()), ("image:1", None));
    world.answer_late();
    world.pass(30_000);
    assert_eq!((images(&world), world.view("web").observed_generation), (vec!["image:3"], 3));
}

// --- verbs -------------------------------------------------------------------------------------

#[test]
fn a_stop_keeps_both_and_the_next_start_goes_on_with_the_probation() {
    let mut world = proved(20_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.pass(10_000);
    world.verb("web", Verb::Stop);
    assert_eq!((world.state("web"), world.running()), (State::StoppedOk, 0));
    world.pass(60 * MINUTE);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    assert_eq!(world.view("web").failed_update, None);
    world.verb("web", Verb::Start);
    assert_eq!(runs(&world), "image:2");
    world.pass(20_000);
    assert_eq!((world.container("web"), runs(&world)), (old, "image:1"));
}

#[test]
fn a_restart_begins_the_thirty_seconds_again() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.pass(20_000);
    world.verb("web", Verb::Restart);
    world.pass(29_999);
    assert_eq!((images(&world), runs(&world)), (vec!["image:1", "image:2"], "image:2"));
    world.pass(1);
    assert_eq!(images(&world), ["image:2"]);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn a_removal_takes_both() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.verb("web", Verb::Remove);
    assert_eq!((world.views.len(), world.engine.containers.len()), (0, 0));
    assert!(world.store.kept.entries.is_empty());
}

// --- interruptions -----------------------------------------------------------------------------

#[test]
fn an_engine_that_restarts_is_no_failure_of_the_new_version() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.pass(20_000);
    kill_engine(&mut world);
    revive_engine(&mut world);
    assert_eq!((runs(&world), world.view("web").failed_update.as_ref()), ("image:2", None));
    world.pass(29_999);
    assert_eq!(images(&world), ["image:1", "image:2"], "from the beginning");
    world.pass(1);
    assert_eq!(images(&world), ["image:2"]);
}

#[test]
fn a_reboot_is_no_failure_of_the_new_version() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.pass(20_000);
    for made in world.engine.containers.values_mut() {
        (made.phase, made.exit_code) = (Phase::Exited, 255);
    }
    world.now = 1_000;
    let mut world = world.restart_agent("boot-2");
    assert_eq!((runs(&world), world.view("web").failed_update.as_ref()), ("image:2", None));
    world.pass(30_000);
    assert_eq!(images(&world), ["image:2"]);
}

#[test]
fn an_agent_that_comes_back_goes_on_with_the_probation() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.pass(20_000);
    let mut world = world.restart_agent(BOOT);
    world.pass(9_999);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    world.pass(1);
    assert_eq!(images(&world), ["image:2"]);
}

/// The engine may have died together with the agent, which says nothing about the new version: it
/// is started once more, and what it does then counts.
#[test]
fn a_death_that_nobody_saw_is_no_failure_of_the_new_version() {
    let unseen = |call: Option<&'static str>| {
        let mut world = proved(600_000, 1);
        world.unanswered.extend(call);
        world.apply(&[&image(2)]);
        if call.is_none() {
            // What is known of it is written.
            world.pass(6_000);
        }
        let running = world.engine.containers.values_mut().find(|m| m.phase == Phase::Running);
        running.expect("it was started").phase = Phase::Exited;
        world.now += 60 * MINUTE;
        world.restart_agent(BOOT)
    };
    for call in [None, Some("start")] {
        let mut world = unseen(call);
        assert_eq!((runs(&world), world.view("web").failed_update.as_ref()), ("image:2", None));
        world.pass(30_000);
        assert_eq!(images(&world), ["image:2"], "{call:?}");
        let mut world = unseen(call);
        world.exit("web", 1);
        assert_eq!(images(&world), ["image:1"], "{call:?}");
    }
}

/// The agent died before the store had the return, which a stalling flash delays.
#[test]
fn a_return_that_was_not_recorded_holds() {
    let mut world = proved(20_000, 1);
    world.apply(&[&image(2)]);
    world.pass(10_000);
    let (old, row) = (world.row("web").previous.clone().unwrap(), world.row("web").clone());
    world.pass(10_000);
    assert_eq!(runs(&world), "image:1");
    let (uid, id) = (row.uid.clone(), old.instance.container.unwrap());
    let started = world.engine.find(id.as_str()).unwrap().started_at_ns;
    world.store.kept.rows.insert(uid, row);
    world.engine.unremovable.clear();
    let world = world.restart_agent(BOOT);
    assert_eq!((runs(&world), world.container("web")), ("image:1", id.clone()));
    assert_eq!(world.engine.find(id.as_str()).unwrap().started_at_ns, started, "not touched");
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
}

#[test]
fn a_start_that_is_refused_on_probation_brings_the_old_one_back() {
    for kind in [FaultKind::Trouble, FaultKind::Refused, FaultKind::HostPath, FaultKind::NoNetwork]
    {
        let mut world = proved(600_000, 1);
        world.apply(&[&image(2)]);
        world.pass(20_000);
        world.fail_next("start", &[kind]);
        kill_engine(&mut world);
        revive_engine(&mut world);
        assert_eq!((runs(&world), images(&world)), ("image:1", vec!["image:1"]), "{kind:?}");
        assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    }
}

/// A verdict on what runs, as of its health: it is stopped with its grace before the old one
/// starts.
#[test]
fn what_fails_while_it_runs_is_stopped_before_the_old_one_starts() {
    let mut world = proved(600_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.pass(20_000);
    world.engine.calls.clear();
    let uid = world.view("web").uid.clone();
    world.machine.with(&uid, |w, context| w.fail_probation("it is ill".into(), false, context));
    world.machine.mark(&uid);
    world.feed(Event::Deadline);
    assert_eq!((world.container("web"), images(&world)), (old, vec!["image:1"]));
    assert_eq!(world.engine.calls, ["SIGTERM", "inspect", "start", "remove"]);
    let view = world.view("web");
    assert_eq!(view.failed_update, Some((2, "it is ill".to_owned())));
    assert_eq!((view.restart_count, world.twins.len()), (0, 0));
}

/// It is stopped and kept: somebody's hand is no reason to lose the way back.
#[test]
fn the_old_one_is_not_run_beside_the_new_one() {
    let mut world = proved(20_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    let uid = world.view("web").uid.clone();
    let made = world.engine.find_mut(old.as_str());
    (made.phase, made.started_at_ns) = (Phase::Running, 7);
    let action = ContainerAction::Started;
    world.feed(Event::Container(ContainerEvent { id: old.clone(), uid, action }));
    assert_eq!((runs(&world), images(&world)), ("image:2", vec!["image:1", "image:2"]));
    world.pass(20_000);
    assert_eq!((world.container("web"), runs(&world)), (old, "image:1"));
}

#[test]
fn what_is_proved_is_written_once_and_costs_no_look() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.engine.calls.clear();
    world.pass(limits::STABLE_MS + limits::ROW_WRITE_MS);
    assert!(world.row("web").current.as_ref().unwrap().proved);
    assert_eq!(world.engine.calls, [""; 0]);
}

/// It could not be removed, and somebody starts it: nothing else starts before it has ended.
#[test]
fn what_is_started_while_it_is_to_go_does_not_run_beside_its_successor() {
    let mut world = proved(600_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.engine.unremovable.push(old.clone());
    world.pass(30_000);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    let uid = world.view("web").uid.clone();
    let id = world.container("web");
    world.engine.find_mut(id.as_str()).phase = Phase::Exited;
    let made = world.engine.find_mut(old.as_str());
    (made.phase, made.started_at_ns) = (Phase::Running, 7);
    for (id, action) in [(&old, ContainerAction::Started), (&id, ContainerAction::Died)] {
        world.queue(Event::Container(ContainerEvent { id: id.clone(), uid: uid.clone(), action }));
    }
    world.feed(Event::Deadline);
    assert_eq!((runs(&world), &world.twins), ("image:2", &Vec::new()));
    assert_eq!(world.engine.find(old.as_str()).unwrap().phase, Phase::Exited);
}
