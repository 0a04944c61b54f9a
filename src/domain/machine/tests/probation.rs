//! A new version has to prove itself: what becomes of one that does not, when it is tried again,
//! and how long the service is down for it.

use super::*;
use crate::domain::declared::{Port, Protocol};
use crate::domain::record::Retry;
use crate::limits;

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
fn a_version_that_dies_before_thirty_seconds_brings_the_old_one_back_at_once() {
    for ms in [3_000, 29_000, 29_999] {
        let mut world = proved(ms, 1);
        let old = world.container("web");
        world.apply(&[&image(2)]);
        let info = "generation 2 has to run for 30s, until then the version before it is kept";
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

// --- the next tries ----------------------------------------------------------------------------

#[test]
fn it_is_tried_again_after_5_10_20_40_and_then_every_60_minutes() {
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
        assert!(world.view("web").info.ends_with("not tried again before a new generation"));
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

#[test]
fn a_pull_that_hangs_costs_nothing_and_is_tried_again() {
    let mut world = proved(600_000, 1);
    world.engine.missing_images.push("image:2".to_owned());
    world.fail_next("pull", &[FaultKind::Trouble]);
    world.unanswered.push("pull");
    world.apply(&[&image(2)]);
    world.pass(60 * MINUTE);
    assert_eq!((runs(&world), world.count("SIG")), ("image:1", 0));
    assert_eq!(world.view("web").runtime_state, RuntimeState::Updating);
    // Given up at last.
    world.answer_late();
    assert_eq!((runs(&world), world.count("SIG")), ("image:1", 0));
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 5 * MINUTE)));
    world.engine.missing_images.push("image:2".to_owned());
    world.pass(6 * MINUTE);
    assert_eq!((runs(&world), world.count("pull")), ("image:2", 2));
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

// --- new wins ----------------------------------------------------------------------------------

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
    super::engine::kill_engine(&mut world);
    super::engine::revive_engine(&mut world);
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

/// And a death that nobody saw.
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

    let mut world = proved(600_000, 1);
    world.apply(&[&image(2)]);
    world.pass(20_000);
    let id = world.container("web");
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 1);
    world.now += 60 * MINUTE;
    let world = world.restart_agent(BOOT);
    assert_eq!((runs(&world), images(&world)), ("image:1", vec!["image:1"]));
}

#[test]
fn a_start_that_is_refused_on_probation_brings_the_old_one_back() {
    for kind in [FaultKind::Trouble, FaultKind::Refused, FaultKind::HostPath, FaultKind::NoNetwork]
    {
        let mut world = proved(600_000, 1);
        world.apply(&[&image(2)]);
        world.pass(20_000);
        world.fail_next("start", &[kind]);
        super::engine::kill_engine(&mut world);
        super::engine::revive_engine(&mut world);
        assert_eq!((runs(&world), images(&world)), ("image:1", vec!["image:1"]), "{kind:?}");
        assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    }
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
