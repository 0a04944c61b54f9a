//! A new version with a health check has to be healthy, and gives way when it is not.

use super::*;
use crate::domain::health_check::{Check, Health, HealthCheck, OnUnhealthy, Test};
use Health::{Healthy, Starting, Unhealthy};
use world::{Fuse, Pace, Side};

const COMPLAINT: &str = "unhealthy: exitCode=1 output=bad";

fn checked(tag: u32, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    workload("web", |spec| {
        spec.image = format!("image:{tag}");
        spec.health_check = Some(HealthCheck::On(Check::new(Test::Shell("probe".to_owned()))));
        change(spec);
    })
}

/// Version 1 has proved itself, and version 2 was started just now.
fn updated(change: impl Fn(&mut Spec)) -> World {
    let mut world = World::new();
    world.apply(&[&checked(1, &change)]);
    world.becomes("web", Healthy);
    world.pass(MINUTE);
    world.engine.calls.clear();
    world.apply(&[&checked(2, change)]);
    assert_eq!((runs(&world), world.view("web").health), ("image:2", Some(Starting)));
    world
}

fn went_back(world: &World, what: &str) {
    assert_eq!((runs(world), images(world)), ("image:1", vec!["image:1"]), "{what}");
    let view = world.view("web");
    assert_eq!((view.state, view.observed_generation), (State::RunningOk, 1), "{what}");
    assert_eq!(view.failed_update, Some((2, COMPLAINT.to_owned())), "{what}");
    assert_eq!((&*view.error_message, &*view.last_error), (COMPLAINT, COMPLAINT), "{what}");
    assert_eq!((view.restart_count, &*world.twins), (0, &[][..]), "{what}");
}

#[test]
fn an_unhealthy_version_gives_way_and_is_tried_again_later() {
    let mut world = updated(|_| {});
    let info = "generation 2 has to be healthy for 30s, until then the container before it is kept";
    assert_eq!(world.view("web").info, info);
    // Running alone proves nothing.
    world.pass(5 * MINUTE);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    world.becomes("web", Unhealthy);
    let failed = world.now;
    went_back(&world, "at once");
    assert_eq!(world.view("web").next_attempt, Some(Tick(failed + 5 * MINUTE)));
    assert_eq!(tries(&mut world, 6 * MINUTE), [failed + 5 * MINUTE]);
}

#[test]
fn thirty_seconds_of_healthy_prove_it() {
    let mut world = updated(|_| {});
    world.pass(40_000);
    world.becomes("web", Healthy);
    world.pass(29_999);
    assert_eq!(images(&world), ["image:1", "image:2"]);
    world.pass(1);
    assert_eq!(images(&world), ["image:2"]);
    // From now on it is restarted like any other.
    world.becomes("web", Unhealthy);
    let view = world.view("web");
    assert_eq!((runs(&world), view.restart_count), ("image:2", 1));
    assert_eq!((view.failed_update.as_ref(), view.observed_generation), (None, 2));
}

/// What is known at 30 s may be old: nothing is given up before another look.
#[test]
fn a_verdict_that_was_not_told_in_time_counts_all_the_same() {
    let mut world = updated(|_| {});
    world.becomes("web", Healthy);
    world.pass(29_000);
    world.turn("web", Unhealthy);
    world.pass(1_000);
    went_back(&world, "looked at");
}

#[test]
fn whatever_follows_later_an_unhealthy_update_gives_way() {
    let report = |spec: &mut Spec| {
        let Some(HealthCheck::On(check)) = &mut spec.health_check else { panic!("{spec:?}") };
        check.on_unhealthy = OnUnhealthy::Report;
    };
    let never = |spec: &mut Spec| spec.restart.policy = RestartPolicy::Never;
    let often = |spec: &mut Spec| spec.restart.policy = RestartPolicy::OnFailure;
    for (what, mut world) in
        [("none", updated(report)), ("never", updated(never)), ("on-failure", updated(often))]
    {
        // Its handler ends it well, which is no success of a job.
        world.fail_next("deaf", &[FaultKind::Trouble]);
        world.becomes("web", Unhealthy);
        let view = world.view("web");
        assert_eq!(view.state, State::StoppingRequestedAtRuntime, "{what}");
        let info =
            format!("{COMPLAINT}; for the version before it: its stop was sent, SIGKILL follows");
        assert_eq!(view.info, info, "{what}");
        assert_eq!(images(&world), ["image:1", "image:2"], "not seen stopped: no other");
        world.exit("web", 0);
        went_back(&world, what);
    }
}

/// The check of an image was not asked for.
#[test]
fn without_a_declared_check_running_is_enough() {
    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    let id = world.container("web");
    world.engine.find_mut(id.as_str()).health = Some(Starting);
    world.becomes("web", Unhealthy);
    world.pass(30_000);
    assert_eq!((images(&world), world.view("web").failed_update.as_ref()), (vec!["image:2"], None));
}

#[test]
fn a_stop_an_update_or_a_restart_meanwhile_wins() {
    let deaf = || {
        let mut world = updated(|_| {});
        world.fail_next("deaf", &[FaultKind::Trouble]);
        world.becomes("web", Unhealthy);
        world
    };
    let mut world = deaf();
    world.verb("web", Verb::Stop);
    world.pass(10_000);
    assert_eq!((world.state("web"), &world.view("web").failed_update), (State::StoppedOk, &None));
    let mut world = deaf();
    world.verb("web", Verb::Restart);
    world.pass(10_000);
    assert_eq!((runs(&world), world.view("web").health), ("image:2", Some(Starting)));
    let mut world = deaf();
    world.apply(&[&checked(3, |_| {})]);
    world.pass(10_000);
    assert_eq!((runs(&world), &world.view("web").failed_update), ("image:3", &None));
    assert!(images(&world).contains(&"image:1"), "the last that proved itself is kept");
}

/// The agent dies just before and just after everything that leaves it over the return.
#[test]
fn a_crash_at_any_point_of_the_return_ends_in_the_version_before() {
    for pace in [Pace::InOrder, Pace::SlowStore, Pace::SlowEngine] {
        let mut points = 0;
        for at in 1.. {
            let deaths = [Side::Before, Side::After].map(|side| {
                let mut world = updated(|_| {});
                world.pass(10_000);
                world.pace = pace;
                world.left = 0;
                world.fuse = Some(Fuse { at, side });
                world.becomes("web", Unhealthy);
                world.pass(4_000);
                let died = world.died.take();
                if died.is_some() {
                    world.fuse = None;
                    world.crash();
                    world.pass(MINUTE);
                }
                went_back(&world, &format!("{pace:?} {died:?}: {:?}", world.engine.calls));
                died
            });
            if deaths == [None, None] {
                break;
            }
            points += 1;
        }
        assert!(points >= 6, "{pace:?}: {points}");
    }
}
