//! Exits, failed starts, and what follows them.

use super::*;

#[test]
fn a_workload_is_created_and_started_with_one_look() {
    let mut world = World::new();
    assert_eq!(world.apply(&[&workload("web", |_| {})]), [(1, Change::Created)]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").observed_generation, 1);
    assert_eq!(world.engine.calls, ["list", "create image:1", "start"]);
}

#[test]
fn b25_crash_loop_waits_10_20_40_seconds_after_each_exit_exactly() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let id = world.container("web");
    for (restarts, delay) in
        [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000].into_iter().enumerate()
    {
        world.pass(1_000);
        world.exit("web", 1);
        let starts = world.count("start");
        assert_eq!(world.state("web"), State::PendingStarting);
        assert_eq!(world.view("web").runtime_state, RuntimeState::Exiting);
        assert_eq!(world.view("web").error_message, "exitCode=1 oomKilled=false");
        assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + delay)));
        world.pass(delay - 1);
        assert_eq!(world.count("start"), starts, "too early");
        world.pass(1);
        assert_eq!(world.count("start"), starts + 1, "not on time");
        assert_eq!(world.view("web").restart_count, restarts as u64 + 1);
        assert_eq!(world.container("web"), id, "started in place");
    }
}

#[test]
fn b26_a_crash_after_30_seconds_starts_again_at_once() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(29_999);
    world.exit("web", 1);
    assert_eq!(world.state("web"), State::PendingStarting);
    world.pass(10_000);
    world.pass(30_000);
    assert_eq!(world.view("web").error_message, "", "forgotten after a stable run");
    assert_eq!(world.view("web").last_error, "exitCode=1 oomKilled=false");
    world.exit("web", 1);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").restart_count, 2);
    // The next short run begins the backoff afresh.
    world.exit("web", 1);
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 10_000)));
}

#[test]
fn clean_exits_by_policy() {
    let mut world = World::new();
    world.apply(&[
        &policy("always", RestartPolicy::Always),
        &policy("on-failure", RestartPolicy::OnFailure),
        &policy("never", RestartPolicy::Never),
    ]);
    for name in ["always", "on-failure", "never"] {
        world.exit(name, 0);
    }
    assert_eq!(world.state("always"), State::PendingStarting);
    assert_eq!(world.view("always").error_message, "", "a clean exit is no error");
    assert_eq!(world.state("on-failure"), State::SucceededOk);
    assert_eq!(world.state("never"), State::SucceededOk);
    world.pass(600_000);
    assert_eq!(world.state("always"), State::RunningOk);
    assert_eq!(world.count("start"), 4, "three and one restart");
}

#[test]
fn failed_exits_by_policy() {
    let mut world = World::new();
    world.apply(&[
        &policy("on-failure", RestartPolicy::OnFailure),
        &policy("never", RestartPolicy::Never),
    ]);
    world.exit("on-failure", 3);
    world.exit("never", 3);
    assert_eq!(world.state("never"), State::FailedExecFailed);
    assert_eq!(world.view("never").exit_code, Some(3));
    world.pass(10_000);
    assert_eq!(world.state("on-failure"), State::RunningOk);
    assert_eq!(world.view("on-failure").restart_count, 1);
}

#[test]
fn a_container_removed_by_somebody_is_made_again() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {}), &policy("job", RestartPolicy::Never)]);
    world.pass(60_000);
    for name in ["web", "job"] {
        let id = world.container(name);
        let uid = world.view(name).uid.clone();
        world.engine.containers.retain(|_, made| made.id != id);
        let action = ContainerAction::Removed;
        world.feed(Event::Container(ContainerEvent { id, uid, action }));
    }
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").restart_count, 1);
    assert_eq!(world.state("job"), State::FailedLost);
    world.pass(600_000);
    assert_eq!(world.running(), 1);
}

#[test]
fn refused_as_wrong_gets_five_tries() {
    let mut world = World::new();
    world.fail_next("start", &[FaultKind::Refused; 5]);
    world.apply(&[&workload("web", |_| {})]);
    assert_eq!(world.state("web"), State::PendingStartingFailed);
    world.pass(3_600_000);
    assert_eq!(world.count("start"), 5);
    assert_eq!(world.view("web").runtime_state, RuntimeState::Failed);
    assert_eq!(world.state("web"), State::PendingStartingFailed);
    assert_eq!(world.view("web").restart_count, 0);
    // Another generation has fresh tries, and nothing to return to.
    world.apply(&[&workload("web", |spec| spec.image = "image:2".to_owned())]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn b29_trouble_is_retried_for_ever_and_counts_no_restart() {
    let mut world = World::new();
    world.fail_next("start", &[FaultKind::Trouble; 12]);
    world.apply(&[&workload("web", |_| {})]);
    assert_eq!(world.state("web"), State::PendingStarting);
    world.pass(3_600_000);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.count("start"), 13);
    let view = world.view("web");
    assert_eq!((view.restart_count, view.failure_count), (0, 0));
}

#[test]
fn counters_and_waits_survive_the_agent() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.exit("web", 1);
    world.pass(10_000);
    world.exit("web", 1);
    world.pass(6_000);
    let next = world.view("web").next_attempt;
    let mut world = world.restart_agent(BOOT);
    assert_eq!(world.view("web").next_attempt, next);
    assert_eq!(world.view("web").restart_count, 1);
    world.pass(14_000);
    assert_eq!(world.view("web").restart_count, 2);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn after_a_reboot_all_runs_at_once_and_nothing_is_counted() {
    let mut world = World::new();
    world.apply(&[
        &workload("web", |_| {}),
        &policy("done", RestartPolicy::Never),
        &policy("cut", RestartPolicy::Never),
        &workload("looping", |_| {}),
    ]);
    world.exit("done", 0);
    world.exit("looping", 1);
    world.pass(5_000);
    for made in world.engine.containers.values_mut().filter(|m| m.phase == Phase::Running) {
        made.phase = Phase::Exited;
        made.exit_code = 255;
    }
    world.now = 1_000;
    let world = world.restart_agent("boot-2");
    for name in ["web", "cut", "looping"] {
        assert_eq!(world.state(name), State::RunningOk, "{name}");
        assert!(!world.view(name).last_error.contains("255"), "{name}");
    }
    assert_eq!(world.state("done"), State::SucceededOk);
    assert_eq!(world.view("web").restart_count, 0);
    assert_eq!(world.view("looping").restart_count, 1, "the crash before the reboot");
}

#[test]
fn the_end_of_a_job_is_durable_at_once() {
    let mut world = World::new();
    world.apply(&[&policy("job", RestartPolicy::Never), &workload("web", |_| {})]);
    world.exit("web", 1);
    world.exit("job", 0);
    assert_eq!(world.row("job").last_exit.as_ref().unwrap().code, Some(0), "no 5 s for this");
}

/// Somebody cleans up what does not run, or the engine forgets what it makes.
#[test]
fn a_container_that_is_gone_before_it_runs_is_made_again_on_the_backoff() {
    let mut world = World::new();
    world.engine.made_is_lost = true;
    world.apply(&[&workload("web", |_| {})]);
    assert_eq!(world.count("create"), 1);
    world.pass(10_000);
    assert_eq!(world.count("create"), 2);
    world.pass(600_000);
    assert_eq!(world.count("create"), 7, "10, 20, 40, 80, 160, 300 s");
    let view = world.view("web");
    assert_eq!((view.state, view.restart_count), (State::PendingStarting, 0));
    assert!(view.error_message.contains("vanished"), "{}", view.error_message);
    world.engine.made_is_lost = false;
    world.pass(300_000);
    assert_eq!(world.state("web"), State::RunningOk);
}

/// As an engine does whose answer comes before the deed, and the deed never.
#[test]
fn a_start_that_starts_nothing_is_a_failed_try() {
    let mut world = World::new();
    world.engine.starts_nothing = true;
    world.apply(&[&workload("web", |_| {})]);
    world.pass(70_000);
    assert_eq!(world.count("start"), 4, "after 10, 20, 40 s");
    world.engine.starts_nothing = false;
    world.pass(80_000);
    assert_eq!(world.state("web"), State::RunningOk);
    // The same for one that ran before.
    world.engine.starts_nothing = true;
    world.exit("web", 1);
    let starts = world.count("start");
    world.pass(70_000);
    assert!(world.count("start") - starts <= 4, "{}", world.count("start") - starts);
}

#[test]
fn a_network_that_is_gone_is_retried_on_the_backoff_and_said() {
    let mut world = World::new();
    world.fail_next("start", &[FaultKind::NoNetwork; 4]);
    world.apply(&[&workload("web", |_| {})]);
    assert!(world.view("web").error_message.contains("NoNetwork"));
    world.pass(70_000);
    assert_eq!((world.count("create"), world.count("start")), (4, 4));
    world.pass(80_000);
    assert_eq!((world.state("web"), world.engine.containers.len()), (State::RunningOk, 1));
}

/// The store did not know of its run, and it was taken for cut short and started once more first.
#[test]
fn what_has_ended_for_good_is_not_shown_between_two_tries() {
    let mut world = World::new();
    world.apply(&[&policy("job", RestartPolicy::Never)]);
    world.pass(6_000);
    let id = world.container("job");
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 2);
    let row = world.store.kept.rows.values_mut().next().unwrap();
    row.next = row.current.take();
    row.boot = Some(crate::domain::names::BootId::new("boot-0"));
    let next = row.next.as_mut().unwrap();
    (next.container, next.run) = (None, None);
    world.fail_next("start", &[FaultKind::Conflict]);
    world.crash();
    world.pass(600_000);
    assert_eq!((world.state("job"), world.count("start")), (State::FailedExecFailed, 2));
}
