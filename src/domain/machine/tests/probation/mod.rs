//! A new version has to prove itself: what becomes of one that does not, when it is tried again,
//! and how long the service is down for it.

use super::*;
use crate::limits;

mod amid;

mod anew;

mod tries;

mod unwell;

const MINUTE: u64 = 60_000;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

fn never(tag: u32) -> Arc<Declared> {
    workload("web", |spec| {
        spec.image = format!("image:{tag}");
        spec.restart.policy = RestartPolicy::Never;
    })
}

/// Version 1 has proved itself, and version 2 lives for so long and ends with this code.
fn proved(ms: u64, code: i32) -> World {
    let mut world = World::new();
    world.engine.mortal_images.insert("image:2".to_owned(), (ms, code));
    world.apply(&[&image(1)]);
    world.pass(MINUTE);
    world.engine.calls.clear();
    world
}

/// The images of which there are containers, what runs last.
fn images(world: &World) -> Vec<&str> {
    let mut made: Vec<&Made> = world.engine.containers.values().collect();
    made.sort_by_key(|made| (made.phase == Phase::Running, &made.image));
    made.iter().map(|made| made.image.as_str()).collect()
}

fn runs(world: &World) -> &str {
    let mut live = world.engine.containers.values().filter(|made| made.phase.is_live());
    let one = live.next().expect("the service is up");
    assert!(live.next().is_none(), "two live");
    &one.image
}

/// When version 2 is created from now on, in milliseconds, within this time.
fn tries(world: &mut World, within: u64) -> Vec<u64> {
    let begin = world.now;
    let mut tries = Vec::new();
    let mut seen = world.count("create image:2");
    while world.now < begin + within {
        let next = world.view("web").next_attempt.map(|tick| tick.0);
        let to = next.unwrap_or(0).max(world.now + 1_000).min(begin + within);
        world.pass(to - world.now);
        if world.count("create image:2") > seen {
            seen = world.count("create image:2");
            tries.push(world.now);
        }
    }
    tries
}

// --- it dies -----------------------------------------------------------------------------------

#[test]
fn b106_a_version_that_dies_before_thirty_seconds_brings_the_old_one_back_at_once() {
    for ms in [3_000, 29_000, 29_999] {
        let mut world = proved(ms, 1);
        let old = world.container("web");
        world.apply(&[&image(2)]);
        let info = "generation 2 has to run for 30s, until then the container before it is kept";
        assert_eq!((runs(&world), world.view("web").info.as_str()), ("image:2", info));
        world.pass(ms - 1);
        assert_eq!(images(&world), ["image:1", "image:2"]);
        let died = world.now + 1;
        world.pass(1);
        assert_eq!(world.container("web"), old, "in place, its own id");
        let made = world.engine.find(old.as_str()).unwrap();
        assert_eq!(made.started_at_ns / 1_000_000, died, "down for its start alone");
        assert_eq!(images(&world), ["image:1"], "the failed one is gone");
        let view = world.view("web");
        assert_eq!((view.generation, view.observed_generation), (2, 1));
        assert_eq!((view.state, view.restart_count), (State::RunningOk, 0));
        let cause = "exitCode=1 oomKilled=false";
        assert_eq!(view.failed_update, Some((2, cause.to_owned())));
        assert_eq!((view.error_message.as_str(), view.last_error.as_str()), (cause, cause));
        assert_eq!(view.next_attempt, Some(Tick(died + 5 * MINUTE)));
        let info = format!("generation 2 failed and the version before it runs: {cause}; try 2");
        assert_eq!(view.info, info);
    }
}

#[test]
fn a_version_that_dies_after_thirty_seconds_is_restarted_like_any_other() {
    let mut world = proved(31_000, 1);
    world.apply(&[&image(2)]);
    let new = world.container("web");
    world.pass(30_000);
    assert_eq!(images(&world), ["image:2"]);
    world.pass(1_000);
    assert_eq!((world.container("web"), world.view("web").restart_count), (new, 1));
    let view = world.view("web");
    assert_eq!((view.failed_update.as_ref(), view.observed_generation), (None, 2));
}

/// What is known at 30 s may be old: nothing is given up before another look.
#[test]
fn a_death_that_was_not_told_in_time_counts_all_the_same() {
    let mut world = proved(60_000, 1);
    world.apply(&[&image(2)]);
    world.pass(29_000);
    let id = world.container("web");
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 1);
    world.pass(1_000);
    assert_eq!(runs(&world), "image:1");
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
}

#[test]
fn a_clean_exit_of_a_service_is_no_proof() {
    let mut world = proved(3_000, 0);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    assert_eq!(runs(&world), "image:1");
    let cause = "exitCode=0 before it had run for 30s";
    assert_eq!(world.view("web").failed_update, Some((2, cause.to_owned())));
}

#[test]
fn a_signal_of_an_operator_is_judged_as_a_crash() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.verb("web", Verb::Kill("SIGKILL".to_owned()));
    assert_eq!(runs(&world), "image:1");
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
}

#[test]
fn a_version_that_vanishes_brings_the_old_one_back_at_once() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    let (id, uid) = (world.container("web"), world.view("web").uid.clone());
    world.engine.containers.retain(|_, made| made.id != id);
    world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Removed }));
    assert_eq!(images(&world), ["image:1"]);
    assert_eq!(runs(&world), "image:1");
    let cause = "the container vanished".to_owned();
    assert_eq!(world.view("web").failed_update, Some((2, cause)));
}

// --- jobs --------------------------------------------------------------------------------------

#[test]
fn a_job_proves_itself_by_its_end() {
    let mut world = World::new();
    world.engine.mortal_images.insert("image:1".to_owned(), (1_000, 0));
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 0));
    world.apply(&[&never(1)]);
    world.pass(10_000);
    world.apply(&[&never(2)]);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    world.pass(3_000);
    assert_eq!((images(&world), world.state("web")), (vec!["image:2"], State::SucceededOk));
    assert_eq!(world.view("web").observed_generation, 2);
}

/// The old job had come to its end and is not run again; the new one is tried later.
#[test]
fn a_job_that_fails_leaves_the_old_one_as_it_was() {
    let mut world = World::new();
    world.engine.mortal_images.insert("image:1".to_owned(), (1_000, 0));
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 1));
    world.apply(&[&never(1)]);
    world.pass(10_000);
    let old = world.container("web");
    world.apply(&[&never(2)]);
    world.pass(3_000);
    assert_eq!((world.container("web"), world.state("web")), (old, State::SucceededOk));
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    assert_eq!((world.running(), world.count("start")), (0, 2));
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 0));
    world.pass(6 * MINUTE);
    assert_eq!((images(&world), world.state("web")), (vec!["image:2"], State::SucceededOk));
    assert_eq!(world.view("web").error_message, "");
}

/// As in a single turn: it ended before its start was looked at.
#[test]
fn a_job_that_is_over_at_the_first_look_is_judged_by_its_code() {
    for (code, image) in [(0, "image:2"), (1, "image:1")] {
        let mut world = World::new();
        world.apply(&[&never(1)]);
        world.pass(MINUTE);
        world.unanswered.push("start");
        world.apply(&[&never(2)]);
        let Some(Event::StepDone(_, Ok(Outcome::Started(reading)))) = world.withheld.first_mut()
        else {
            panic!("a start");
        };
        (reading.phase, reading.exit_code) = (Phase::Exited, code);
        let made = world.engine.find_mut(reading.id.clone().as_str());
        (made.phase, made.exit_code) = (Phase::Exited, code);
        world.answer_late();
        assert_eq!(images(&world), [image], "exit {code}");
    }
}

// --- nothing to return to ----------------------------------------------------------------------

/// The first version never worked: the second is not given up for it.
#[test]
fn what_never_proved_itself_is_not_returned_to() {
    let mut world = World::new();
    world.engine.mortal_images.insert("image:1".to_owned(), (3_000, 1));
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 1));
    world.apply(&[&image(1)]);
    world.pass(3_000);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    assert_eq!((images(&world), world.view("web").failed_update.as_ref()), (vec!["image:2"], None));
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 10_000)), "as at first");
}

#[test]
fn without_the_old_container_the_new_one_is_restarted_like_any_other() {
    let mut world = proved(20_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    let uid = world.view("web").uid.clone();
    world.engine.containers.retain(|_, made| made.id != old);
    let action = ContainerAction::Removed;
    world.feed(Event::Container(ContainerEvent { id: old, uid, action }));
    world.pass(20_000);
    assert_eq!(world.view("web").failed_update, None);
    assert_eq!(world.view("web").info, "exitCode=1; restart 1");
}
