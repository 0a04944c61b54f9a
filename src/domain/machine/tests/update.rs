//! Updates, and the way back from a failed one.

use super::*;
use crate::domain::names::InstanceName;
use crate::domain::spec_hash::spec_hash;
use crate::limits;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

#[test]
fn an_update_creates_before_it_stops_and_removes_once_the_new_one_has_proved_itself() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.engine.calls.clear();
    assert_eq!(world.apply(&[&image(2)]), [(2, Change::Replaced)]);
    assert_eq!(
        world.engine.calls,
        ["create image:2", "SIGTERM", "inspect", "start"],
        "the old one stops only when the new one is made"
    );
    assert_ne!(world.container("web"), old);
    let view = world.view("web");
    assert_eq!((view.generation, view.observed_generation), (2, 2));
    assert_eq!(view.restart_count, 0);
    assert_eq!(view.error_message, "");
    world.engine.calls.clear();
    world.pass(limits::STABLE_MS - 1);
    assert_eq!(world.engine.containers.len(), 2);
    world.pass(1);
    assert_eq!(world.engine.calls, ["inspect", "remove"], "a last look before nothing leads back");
    assert_eq!(world.engine.containers.len(), 1);
    assert_eq!(world.view("web").info, "");
}

#[test]
fn what_is_not_in_the_hash_keeps_the_container() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.engine.calls.clear();
    let kept = workload("web", |spec| {
        spec.image = "image:1".to_owned();
        spec.restart.policy = RestartPolicy::Never;
        spec.stop.grace = Span::seconds(1);
    });
    assert_eq!(world.apply(&[&kept]), [(2, Change::Kept)]);
    assert_eq!(world.container("web"), old);
    assert_eq!(world.view("web").observed_generation, 2);
    assert!(world.engine.calls.is_empty());
    assert_eq!(world.apply(&[&kept]), [(2, Change::Unchanged)]);
}

#[test]
fn an_update_that_cannot_be_made_leaves_the_old_one_running() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.engine.missing_images.push("image:2".to_owned());
    world.fail_next("pull", &[FaultKind::Trouble]);
    world.engine.calls.clear();
    world.apply(&[&image(2)]);
    assert_eq!(world.count("SIG"), 0, "never stopped");
    assert_eq!(world.container("web"), old);
    assert_eq!(world.state("web"), State::RunningOk);
    let (generation, cause) = world.view("web").failed_update.clone().unwrap();
    assert_eq!(generation, 2);
    assert!(cause.contains("Trouble"), "{cause}");
    assert_eq!(world.view("web").observed_generation, 1);
    world.apply(&[&image(3)]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").observed_generation, 3);
    assert_eq!(world.view("web").failed_update, None);
}

#[test]
fn an_update_that_cannot_start_brings_the_old_one_back() {
    for fault in [FaultKind::Refused, FaultKind::Trouble] {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        let old = world.container("web");
        world.fail_next("start", &[fault]);
        world.apply(&[&image(2)]);
        assert_eq!(world.container("web"), old);
        assert_eq!(world.state("web"), State::RunningOk);
        assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
        assert_eq!(world.view("web").restart_count, 0, "not a restart after an exit");
        assert_eq!(world.engine.containers.len(), 1, "the failed one is gone");
        assert!(world.view("web").error_message.contains(&format!("{fault:?}")));
    }
}

#[test]
fn an_update_back_to_the_old_manifest_keeps_the_old_container() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.fail_next("create", &[FaultKind::Refused]);
    world.apply(&[&image(2)]);
    world.apply(&[&image(1)]);
    assert_eq!(world.container("web"), old);
    let view = world.view("web");
    assert_eq!((view.generation, view.observed_generation), (3, 3));
    assert_eq!(view.failed_update, None);
}

#[test]
fn b07_new_wins_over_a_backoff() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    for _ in 0..4 {
        world.exit("web", 1);
        world.pass(300_000);
    }
    world.exit("web", 1);
    world.apply(&[&image(2)]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").observed_generation, 2);
}

#[test]
fn always_pulls_once_for_each_generation() {
    let always = |tag: u32| {
        workload("web", move |spec| {
            spec.image = format!("image:{tag}");
            spec.pull = Pull::Always;
        })
    };
    let mut world = World::new();
    world.apply(&[&always(1)]);
    world.exit("web", 1);
    world.pass(60_000);
    assert_eq!(world.count("pull"), 1);
    world.apply(&[&always(2)]);
    assert_eq!(world.count("pull"), 2);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn never_does_not_pull_and_says_so() {
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    world.apply(&[&workload("web", |spec| spec.pull = Pull::Never)]);
    assert_eq!(world.count("pull"), 0);
    assert!(world.view("web").info.contains("pull is never"), "{}", world.view("web").info);
    world.engine.missing_images.clear();
    world.pass(10_000);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn a_stopped_workload_takes_the_update_at_its_next_start() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.verb("web", Verb::Stop);
    world.engine.calls.clear();
    world.apply(&[&image(2)]);
    assert!(world.engine.calls.is_empty(), "{:?}", world.engine.calls);
    assert_eq!(world.state("web"), State::StoppedOk);
    assert_eq!(world.view("web").observed_generation, 1);
    world.verb("web", Verb::Start);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").observed_generation, 2);
    world.pass(30_000);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn a_create_that_timed_out_is_looked_up_before_it_is_repeated() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::Timeout]);
    world.apply(&[&image(1)]);
    world.pass(5_000);
    assert_eq!(
        world.engine.calls,
        ["list", "create image:1", "inspect", "create image:1", "start"]
    );
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn the_old_container_does_not_wait_for_the_mounts_of_the_new_one() {
    let mounted = workload("web", |spec| spec.mounts = vec![disk()]);
    let mut world = World::new();
    world.engine.missing_paths.push("/mnt/disk");
    world.apply(&[&image(1)]);
    world.apply(&[&mounted]);
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    world.exit("web", 1);
    world.pass(10_000);
    assert_eq!(world.state("web"), State::RunningOk);
    // A container that has the mount does.
    world.engine.missing_paths.clear();
    world.verb("web", Verb::Remove);
    world.apply(&[&mounted]);
    world.engine.missing_paths.push("/mnt/disk");
    world.exit("web", 1);
    world.pass(10_000);
    assert_eq!(world.state("web"), State::PendingWaitingToStart);
    world.engine.missing_paths.clear();
    world.pass(5_000);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn an_update_whose_network_is_gone_brings_the_old_one_back() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.fail_next("start", &[FaultKind::NoNetwork]);
    world.apply(&[&image(2)]);
    assert_eq!((world.container("web"), world.state("web")), (old, State::RunningOk));
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn b58_a_container_made_again_in_its_generation_needs_no_registry() {
    let always = workload("web", |spec| spec.pull = Pull::Always);
    let mut world = World::new();
    world.apply(&[&always]);
    world.pass(10_000);
    let mut world = world.restart_agent(BOOT);
    world.fail_next("pull", &[FaultKind::Trouble]);
    world.engine.containers.clear();
    world.pass(120_000);
    assert_eq!((world.count("pull"), world.state("web")), (0, State::RunningOk));
}

#[test]
fn a_successor_that_cannot_be_started_for_ever_gives_way_to_the_old_one() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.fail_next("start", &[FaultKind::Conflict]);
    world.apply(&[&image(2)]);
    world.pass(30_000);
    assert_eq!(world.container("web"), old);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
}

/// Its create was answered with a failure, and the engine makes it all the same.
#[test]
fn what_comes_late_of_a_failed_update_does_not_stand_in_for_what_works() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.container("web");
    world.fail_next("create", &[FaultKind::Refused]);
    world.apply(&[&image(2)]);
    let mut late = world.engine.find(old.as_str()).unwrap().clone();
    late.id = ContainerId::new("late");
    late.phase = Phase::Created;
    late.tags.spec_hash = spec_hash(&image(2));
    late.tags.instance = InstanceName::new("bargee-web-late");
    world.engine.containers.insert("bargee-web-late".to_owned(), late);
    world.pass(60_000);
    assert_eq!((world.container("web"), world.state("web")), (old, State::RunningOk));
    assert_eq!((world.engine.containers.len(), world.count("SIG")), (1, 0));
}

/// The store could not record the name of the new container, and the agent dies after its create.
#[test]
fn a_successor_that_was_not_recorded_has_to_prove_itself() {
    for (tag, kept) in [("crashing:2", 1), ("image:2", 2)] {
        let mut world = World::new();
        world.engine.crashing_images.push("crashing:2".to_owned());
        world.apply(&[&image(1)]);
        world.pass(31_000);
        world.store.rows_fail = true;
        world.unanswered.push("create");
        world.apply(&[&workload("web", |spec| spec.image = tag.to_owned())]);
        world.pass(limits::ENGINE_LOOK_MS);
        assert_eq!(world.engine.containers.len(), 2);
        world.store.rows_fail = false;
        world.unanswered.clear();
        world.crash();
        world.pass(30_000);
        assert_eq!((world.state("web"), world.engine.containers.len()), (State::RunningOk, 1));
        assert_eq!(world.view("web").observed_generation, kept);
    }
}
