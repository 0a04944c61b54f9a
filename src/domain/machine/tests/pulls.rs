//! Places for pulls: who gets one, who loses it, and what is said meanwhile.

use super::*;

use crate::domain::view::PullProgress;
use crate::limits::PULL_STALL_MS;

/// A device on which pulls are not answered.
fn device() -> World {
    let mut world = World::new();
    world.unanswered.push("pull");
    world
}

fn of_image(name: &str, image: &str) -> Arc<Declared> {
    workload(name, |spec| image.clone_into(&mut spec.image))
}

/// Declares a workload whose image is not on the device.
fn declare(world: &mut World, name: &str, image: &str) {
    world.engine.missing_images.push(image.to_owned());
    world.apply(&[&of_image(name, image)]);
}

fn pulls(world: &World) -> Vec<&str> {
    world.engine.calls.iter().filter_map(|call| call.strip_prefix("pull ")).collect()
}

fn cancels(world: &World) -> Vec<&str> {
    world.engine.calls.iter().filter_map(|call| call.strip_prefix("cancel ")).collect()
}

/// The pull that was begun first of those that are not answered comes to its end.
fn end_first(world: &mut World) {
    let answer = world.withheld.remove(0);
    world.feed(answer);
}

#[test]
fn two_pulls_at_a_time_and_one_of_each_registry() {
    let mut world = device();
    for (name, image) in [
        ("a", "r1:5000/a"),
        ("b", "r1:5000/b"),
        ("c", "r2:5000/c"),
        ("d", "r3:5000/d"),
        ("e", "nginx"),
    ] {
        declare(&mut world, name, image);
    }
    assert_eq!(pulls(&world), ["r1:5000/a", "r2:5000/c"], "r1 has its place, c comes before d");
    end_first(&mut world);
    assert_eq!(pulls(&world)[2..], ["r1:5000/b"], "in the order in which they were asked for");
    end_first(&mut world);
    assert_eq!(pulls(&world)[3..], ["r3:5000/d"]);
    end_first(&mut world);
    end_first(&mut world);
    end_first(&mut world);
    assert_eq!((world.running(), world.count("pull")), (5, 5));
}

#[test]
fn one_pull_serves_all_that_wait_for_its_image() {
    let mut world = device();
    world.engine.missing_images.push("image:2".to_owned());
    world.apply(&[&of_image("a", "image:2"), &of_image("b", "image:2")]);
    assert_eq!(world.count("pull"), 1);
    // The last one that waits is what holds it.
    world.verb("a", Verb::Stop);
    assert!(cancels(&world).is_empty());
    world.answer_late();
    assert_eq!((world.running(), world.state("a")), (1, State::StoppedOk));
}

#[test]
fn a_registry_that_hangs_holds_up_no_other() {
    let mut world = device();
    for n in 0..5 {
        declare(&mut world, &format!("h{n}"), &format!("hangs:5000/{n}"));
    }
    for n in 0..5 {
        declare(&mut world, &format!("w{n}"), &format!("works:5000/{n}"));
        // What hangs stays in front.
        let answer = world.withheld.pop().unwrap();
        world.feed(answer);
        assert_eq!(world.state(&format!("w{n}")), State::RunningOk);
    }
    assert_eq!(world.count("pull hangs"), 1);
}

#[test]
fn an_unwanted_pull_is_cancelled_and_its_place_is_free_at_once() {
    let stop = |world: &mut World| {
        world.verb("a", Verb::Stop);
    };
    let remove = |world: &mut World| {
        world.verb("a", Verb::Remove);
    };
    let renew = |world: &mut World| {
        world.apply(&[&of_image("a", "image:1")]);
    };
    let never = |world: &mut World| {
        let never = workload("a", |spec| {
            spec.image = "r1:5000/a".to_owned();
            spec.pull = Pull::Never;
        });
        world.apply(&[&never]);
    };
    let ways: [fn(&mut World); 4] = [stop, remove, renew, never];
    for way in ways {
        let mut world = device();
        declare(&mut world, "a", "r1:5000/a");
        declare(&mut world, "b", "r1:5000/b");
        way(&mut world);
        assert_eq!(cancels(&world), ["1"]);
        assert_eq!(pulls(&world), ["r1:5000/a", "r1:5000/b"]);
        // What the engine still says of it is of no interest.
        end_first(&mut world);
        assert_eq!(world.view("b").runtime_state, RuntimeState::Pulling);
        end_first(&mut world);
        assert_eq!(world.state("b"), State::RunningOk);
        assert_eq!(world.view("b").last_error, "");
    }
}

#[test]
fn a_pull_that_has_no_place_yet_ends_without_a_word() {
    let mut world = device();
    declare(&mut world, "a", "r1:5000/a");
    declare(&mut world, "b", "r1:5000/b");
    let view = world.view("b");
    assert_eq!((view.state, view.runtime_state), (State::PendingStarting, RuntimeState::Queued));
    assert_eq!(view.info, "waits for other pulls before that of r1:5000/b");
    world.verb("b", Verb::Remove);
    world.answer_late();
    assert_eq!((world.count("pull"), world.count("cancel")), (1, 0));
}

#[test]
fn a_new_generation_of_the_same_image_keeps_its_pull() {
    let mut world = device();
    declare(&mut world, "a", "image:2");
    let again = workload("a", |spec| {
        spec.image = "image:2".to_owned();
        spec.user = Some("1".to_owned());
    });
    world.apply(&[&again]);
    assert_eq!((world.count("pull"), world.count("cancel")), (1, 0));
    world.answer_late();
    assert_eq!((world.view("a").observed_generation, world.count("pull")), (2, 1));
}

#[test]
fn an_update_that_is_taken_back_cancels_its_pull() {
    let mut world = device();
    world.apply(&[&of_image("a", "image:1")]);
    declare(&mut world, "a", "image:2");
    assert_eq!(world.view("a").runtime_state, RuntimeState::Updating);
    world.apply(&[&of_image("a", "image:1")]);
    assert_eq!(cancels(&world), ["1"]);
    assert_eq!(
        (world.state("a"), world.view("a").runtime_state),
        (State::RunningOk, RuntimeState::Running)
    );
}

#[test]
fn a_pull_in_which_nothing_moves_gives_up_its_place_and_is_tried_again() {
    let mut world = device();
    declare(&mut world, "a", "r1:5000/a");
    declare(&mut world, "b", "r1:5000/b");
    world.pass(PULL_STALL_MS - 1);
    // Something moves, though no byte more is counted: it is unpacked.
    world.feed(Event::PullProgress(PullId(1), PullProgress::default()));
    world.pass(PULL_STALL_MS - 1);
    assert_eq!(world.count("cancel"), 0);
    world.pass(1);
    assert_eq!((cancels(&world), pulls(&world)), (vec!["1"], vec!["r1:5000/a", "r1:5000/b"]));
    let view = world.view("a");
    assert_eq!(view.last_error, "pull r1:5000/a: stalled: nothing came for 60 s");
    assert_eq!((view.state, view.failure_count), (State::PendingStarting, 1));
    // Its late end is not that of the next try.
    end_first(&mut world);
    assert_eq!(world.view("a").failure_count, 1);
    end_first(&mut world);
    world.engine.missing_images.push("r1:5000/a".to_owned());
    world.pass(10_000);
    assert_eq!(pulls(&world)[2..], ["r1:5000/a"]);
    world.answer_late();
    assert_eq!((world.running(), world.view("a").restart_count), (2, 0));
}

#[test]
fn a_disk_that_takes_long_is_no_stall() {
    let mut world = device();
    declare(&mut world, "a", "image:2");
    world.feed(Event::PullSyncs(PullId(1)));
    assert_eq!(world.view("a").info, "pulled image:2, waits for the disk");
    world.pass(10 * PULL_STALL_MS);
    assert_eq!(world.count("cancel"), 0);
    world.answer_late();
    assert_eq!(world.state("a"), State::RunningOk);
}
