//! Rebuilds: what is made anew has to prove itself like a new version.

use super::*;

/// Ran for a minute, and is rebuilt; what is made anew lives for so long.
fn rebuilt(ms: u64) -> World {
    let mut world = proved(600_000, 1);
    world.engine.mortal_images.insert("image:1".to_owned(), (ms, 1));
    let task = world.verb("web", Verb::Rebuild);
    assert_eq!(world.task(task), TaskState::Done);
    world
}

#[test]
fn what_is_made_anew_and_dies_brings_the_old_one_back_and_is_not_tried_again() {
    let mut world = proved(600_000, 1);
    let old = world.container("web");
    world.engine.mortal_images.insert("image:1".to_owned(), (29_000, 1));
    world.verb("web", Verb::Rebuild);
    let info = "what was made anew has to run for 30s, until then the container before it is kept";
    assert_eq!(world.view("web").info, info);
    assert_eq!(images(&world), ["image:1", "image:1"]);
    world.engine.mortal_images.clear();
    world.pass(29_000);
    assert_eq!((world.container("web"), images(&world)), (old.clone(), vec!["image:1"]));
    let view = world.view("web");
    assert_eq!((view.failed_update.as_ref(), view.restart_count), (None, 0));
    assert_eq!(view.error_message, "exitCode=1 oomKilled=false");
    assert_eq!((view.next_attempt, view.info.as_str()), (None, ""));
    world.pass(30_000);
    assert_eq!(world.view("web").error_message, "");
    world.engine.calls.clear();
    world.pass(24 * 60 * MINUTE);
    assert_eq!((world.count("create"), world.container("web")), (0, old));
}

#[test]
fn what_is_made_anew_and_lives_takes_the_place() {
    let mut world = rebuilt(31_000);
    let new = world.container("web");
    world.pass(30_000);
    assert_eq!(images(&world), ["image:1"]);
    world.pass(1_000);
    assert_eq!((world.container("web"), world.view("web").restart_count), (new, 1));
}

/// The count of its tries begins anew.
#[test]
fn a_rebuild_tries_a_failed_update_at_once_and_as_for_the_first_time() {
    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    tries(&mut world, 16 * MINUTE);
    assert_eq!(world.row("web").failed_update.as_ref().unwrap().tries, 3);
    world.verb("web", Verb::Rebuild);
    assert_eq!((runs(&world), &world.view("web").failed_update), ("image:2", &None));
    world.pass(3_000);
    assert_eq!(runs(&world), "image:1");
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 5 * MINUTE)));
    assert_eq!(world.row("web").failed_update.as_ref().unwrap().tries, 1);
}

#[test]
fn what_was_refused_as_wrong_is_tried_once_more_by_a_rebuild() {
    let mut world = proved(600_000, 1);
    world.fail_next("create", &[FaultKind::Refused; 2]);
    world.apply(&[&image(2)]);
    let task = world.verb("web", Verb::Rebuild);
    assert_eq!((world.task(task), runs(&world)), (TaskState::Failed, "image:1"));
    assert_eq!(tries(&mut world, 60 * MINUTE), [0; 0]);
    world.verb("web", Verb::Rebuild);
    assert_eq!((runs(&world), &world.view("web").failed_update), ("image:2", &None));
}

/// The unproved one goes, whoever asks for another.
#[test]
fn a_rebuild_on_probation_keeps_the_last_proved_one() {
    let mut world = proved(20_000, 1);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    let second = world.container("web");
    world.pass(10_000);
    world.verb("web", Verb::Rebuild);
    assert_ne!(world.container("web"), second);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    world.pass(20_000);
    assert_eq!((world.container("web"), images(&world)), (old, vec!["image:1"]));
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
}

/// It is the version of before that is asked for, but not the container.
#[test]
fn going_back_makes_a_container_where_the_image_may_be_another_by_now() {
    let always = workload("web", |spec| {
        spec.image = "image:1".to_owned();
        spec.pull = Pull::Always;
    });
    let mut world = World::new();
    world.apply(&[&always]);
    world.pass(MINUTE);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    world.engine.calls.clear();
    world.apply(&[&always]);
    assert_eq!((world.count("pull"), world.count("create image:1")), (1, 1));
    assert_ne!(world.container("web"), old);
    assert_eq!(images(&world), ["image:1", "image:1"]);
}

/// A registry that is away does not take away what ended.
#[test]
fn a_rebuild_of_what_failed_for_good_leaves_it_if_nothing_can_be_pulled() {
    let mut world = World::new();
    world.apply(&[&policy("web", RestartPolicy::Never)]);
    world.exit("web", 1);
    world.fail_next("pull", &[FaultKind::Trouble]);
    let task = world.verb("web", Verb::Rebuild);
    assert_eq!(world.task(task), TaskState::Failed);
    assert_eq!(world.state("web"), State::FailedExecFailed);
    assert_eq!((world.count("start"), world.engine.containers.len()), (1, 1));
}
