//! When an update that failed is tried again, and what is checked before the old container stops.

use super::*;
use crate::domain::declared::{Port, Protocol};
use crate::domain::record::Retry;

#[test]
fn b106_it_is_tried_again_after_5_10_20_40_and_then_every_60_minutes() {
    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    let mut failed = world.now;
    let mut wanted = Vec::new();
    for minutes in [5, 10, 20, 40, 60, 60, 60] {
        wanted.push(failed + minutes * MINUTE);
        failed += minutes * MINUTE + 3_000;
    }
    assert_eq!(tries(&mut world, 256 * MINUTE), wanted);
    assert_eq!(world.twins, [""; 0]);
    // Each of them costs what the start of the old one takes.
    assert_eq!(runs(&world), "image:1");
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn a_try_that_proves_itself_ends_the_failed_update() {
    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    world.engine.mortal_images.clear();
    world.pass(5 * MINUTE);
    // Named as failed until it has proved itself.
    assert_eq!((runs(&world), world.view("web").observed_generation), ("image:2", 2));
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    world.pass(30_000);
    let view = world.view("web");
    assert_eq!((view.failed_update.as_ref(), view.error_message.as_str()), (None, ""));
    assert_eq!(view.last_error, "exitCode=1 oomKilled=false");
    assert_eq!(images(&world), ["image:2"]);
}

#[test]
fn what_is_refused_as_wrong_is_not_tried_again_before_a_new_generation() {
    for call in ["create", "start"] {
        let mut world = proved(600_000, 1);
        world.fail_next(call, &[FaultKind::Refused]);
        world.apply(&[&image(2)]);
        assert_eq!(runs(&world), "image:1", "{call}");
        assert_eq!(world.view("web").next_attempt, None);
        assert!(
            world
                .view("web")
                .info
                .ends_with("not tried again before a new generation or a rebuild")
        );
        assert_eq!(tries(&mut world, 24 * 60 * MINUTE), [0; 0]);
        let mut world = world.restart_agent(BOOT);
        assert_eq!(tries(&mut world, 60 * MINUTE), [0; 0]);
        world.apply(&[&image(3)]);
        assert_eq!((runs(&world), &world.view("web").failed_update), ("image:3", &None));
    }
}

#[test]
fn the_wait_for_the_next_try_survives_an_agent() {
    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    let failed = world.now;
    world.pass(2 * MINUTE);
    let mut world = world.restart_agent(BOOT);
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 1));
    assert_eq!(tries(&mut world, 4 * MINUTE), [failed + 5 * MINUTE]);
    // As does the number of tries.
    let failed = failed + 5 * MINUTE + 3_000;
    world.pass(failed + MINUTE - world.now);
    let mut world = world.restart_agent(BOOT);
    assert_eq!(tries(&mut world, 10 * MINUTE), [failed + 10 * MINUTE]);
}

#[test]
fn a_device_that_starts_again_tries_five_minutes_later_and_goes_on_counting() {
    let mut world = proved(3_000, 1);
    world.apply(&[&image(2)]);
    world.pass(3_000);
    tries(&mut world, 16 * MINUTE);
    for made in world.engine.containers.values_mut() {
        made.phase = Phase::Exited;
    }
    world.now = 1_000;
    let mut world = world.restart_agent("boot-2");
    world.engine.mortal_images.insert("image:2".to_owned(), (3_000, 1));
    assert_eq!(runs(&world), "image:1", "at once");
    assert_eq!(tries(&mut world, 6 * MINUTE), [1_000 + 5 * MINUTE]);
    let failed = world.row("web").failed_update.as_ref().unwrap();
    assert_eq!(failed.tries, 4);
    let Retry::At(at) = &failed.retry else { panic!("{failed:?}") };
    assert_eq!(at.tick, Tick(1_000 + 5 * MINUTE + 3_000 + 40 * MINUTE));
}

/// A name for it, and how it comes about.
type Way = (&'static str, fn(&mut World));

/// Whatever is wrong with the new version: at every second of many tries one container runs.
#[test]
fn the_service_is_never_left_down() {
    let ways: [Way; 6] = [
        ("dies after 3 s", |world| live(world, 3_000)),
        ("dies after 29 s", |world| live(world, 29_000)),
        ("dies at once", |world| world.engine.crashing_images.push("image:2".to_owned())),
        ("cannot be pulled", |world| {
            world.engine.missing_images.push("image:2".to_owned());
            world.fail_next("pull", &[FaultKind::Trouble; 9]);
        }),
        ("cannot be made", |world| world.fail_next("create", &[FaultKind::Trouble; 9])),
        ("is refused", |world| world.engine.refused_images.push("image:2".to_owned())),
    ];
    for (way, go_wrong) in ways {
        let mut world = proved(600_000, 1);
        let old = world.container("web");
        go_wrong(&mut world);
        world.apply(&[&image(2)]);
        let until = world.now + 80 * MINUTE;
        while world.now < until {
            world.pass(1_000);
            runs(&world);
        }
        assert_eq!((world.container("web"), runs(&world)), (old, "image:1"), "{way}");
        let tries = world.row("web").failed_update.as_ref().unwrap().tries;
        assert_eq!(tries, if way == "is refused" { 1 } else { 5 }, "{way}");
        assert_eq!((world.view("web").restart_count, world.engine.containers.len()), (0, 1));
    }
}

fn live(world: &mut World, ms: u64) {
    world.engine.mortal_images.insert("image:2".to_owned(), (ms, 1));
}

// --- checks, pulls -----------------------------------------------------------------------------

#[test]
fn a_port_that_somebody_else_holds_does_not_stop_the_old_one() {
    let published = |ports: &[u16], tag: u32| {
        workload("web", |spec| {
            spec.image = format!("image:{tag}");
            spec.ports = ports
                .iter()
                .map(|&port| Port {
                    host_ip: None,
                    host_port: Some(port),
                    container_port: port,
                    protocol: Protocol::Tcp,
                })
                .collect();
        })
    };
    let mut world = World::new();
    world.apply(&[&published(&[80], 1)]);
    world.pass(MINUTE);
    world.engine.publishes = vec!["0.0.0.0:80->80/tcp".to_owned()];
    let id = world.container("web");
    let uid = world.view("web").uid.clone();
    world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Changed }));
    // The old one itself holds 80.
    world.engine.taken_ports = vec![80, 443];
    world.apply(&[&published(&[80, 443], 2)]);
    assert_eq!((world.count("SIG"), runs(&world)), (0, "image:1"));
    let cause = "check port 443: taken".to_owned();
    assert_eq!(world.view("web").failed_update, Some((2, cause)));
    // It is tried again, and the old one is not stopped while the check does not pass.
    world.pass(40 * MINUTE);
    assert_eq!((world.count("SIG"), world.count("create image:2")), (0, 4));
    world.engine.taken_ports = vec![80];
    world.pass(40 * MINUTE);
    assert_eq!((runs(&world), &world.view("web").failed_update), ("image:2", &None));
}

#[test]
fn a_port_that_only_the_start_finds_taken_brings_the_old_one_back() {
    let mut world = proved(600_000, 1);
    world.fail_next("start", &[FaultKind::Trouble]);
    let old = world.container("web");
    world.apply(&[&image(2)]);
    assert_eq!((world.container("web"), runs(&world)), (old, "image:1"));
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 5 * MINUTE)));
    world.pass(5 * MINUTE + 30_000);
    assert_eq!((images(&world), &world.view("web").failed_update), (vec!["image:2"], &None));
}

/// It gives up its place when nothing came for 60 s, and the wait begins then.
#[test]
fn a_pull_that_hangs_costs_nothing_and_is_tried_again() {
    let mut world = proved(600_000, 1);
    world.engine.missing_images.push("image:2".to_owned());
    world.unanswered.push("pull");
    world.apply(&[&image(2)]);
    let view = world.view("web");
    assert_eq!((view.runtime_state, runs(&world)), (RuntimeState::Updating, "image:1"));
    for (tries, minutes) in [5, 10, 20, 40, 60, 60].into_iter().enumerate() {
        world.pass(limits::PULL_STALL_MS);
        let view = world.view("web");
        assert_eq!(view.next_attempt, Some(Tick(world.now + minutes * MINUTE)));
        let (generation, cause) = view.failed_update.as_ref().unwrap();
        assert!(*generation == 2 && cause.contains("stalled"), "{cause}");
        assert_eq!(world.count("pull"), tries + 1);
        world.pass(minutes * MINUTE - 1);
        assert_eq!((runs(&world), world.count("pull")), ("image:1", tries + 1));
        world.engine.missing_images.push("image:2".to_owned());
        world.pass(1);
    }
    assert_eq!((world.count("SIG"), world.count("create image:2")), (0, 7));
    world.unanswered.clear();
    world.pass(limits::PULL_STALL_MS + 60 * MINUTE + limits::STABLE_MS);
    assert_eq!((runs(&world), &world.view("web").failed_update), ("image:2", &None));
}

#[test]
fn a_try_asks_the_registry_again_where_it_is_always_asked() {
    let always = workload("web", |spec| {
        spec.image = "image:2".to_owned();
        spec.pull = Pull::Always;
    });
    let mut world = proved(3_000, 1);
    world.apply(&[&always]);
    world.pass(3_000 + 5 * MINUTE);
    assert_eq!(world.count("pull"), 2);
}
