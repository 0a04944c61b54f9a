//! A boot of the device: what runs again, what is done, what waits.

use super::*;
use crate::domain::declared::Rerun;

fn job(name: &str, rerun: Rerun) -> Arc<Declared> {
    workload(name, |spec| {
        spec.restart.policy = RestartPolicy::OnFailure;
        spec.rerun = rerun;
    })
}

fn reboot(world: &mut World) {
    world.cut_power();
    world.crash();
}

#[test]
fn a_job_that_succeeded_runs_again_once_after_each_boot_if_its_owner_wants_that() {
    let mut world = World::new();
    world.apply(&[&job("each", Rerun::Boot), &job("once", Rerun::Never)]);
    world.exit("each", 0);
    world.exit("once", 0);
    for boots in 1..3 {
        reboot(&mut world);
        assert_eq!(world.state("each"), State::RunningOk);
        assert_eq!(world.state("once"), State::SucceededOk);
        world.exit("each", 0);
        assert_eq!(world.state("each"), State::SucceededOk);
        // Once in each boot, whatever becomes of the agent.
        world = world.restart_agent(&format!("boot-{}", boots + 1));
        world.pass(120_000);
        assert_eq!(world.state("each"), State::SucceededOk);
        assert_eq!((world.view("each").restart_count, world.view("each").failure_count), (0, 0));
    }
}

#[test]
fn a_job_that_could_not_be_run_again_after_a_boot_is_tried_until_it_can() {
    let mut world = World::new();
    world.apply(&[&job("each", Rerun::Boot)]);
    world.exit("each", 0);
    world.cut_power();
    world.fail_next("start", &[FaultKind::Trouble]);
    world.crash();
    assert_eq!(world.state("each"), State::PendingStarting);
    let boot = world.boot.clone();
    let mut world = world.restart_agent(&boot);
    world.pass(20_000);
    assert_eq!(world.state("each"), State::RunningOk);
}

#[test]
fn a_job_that_failed_or_is_stopped_does_not_run_again_after_a_boot() {
    let mut world = World::new();
    let never = workload("failed", |spec| {
        spec.restart.policy = RestartPolicy::Never;
        spec.rerun = Rerun::Boot;
    });
    world.apply(&[&never, &job("stopped", Rerun::Boot)]);
    world.exit("failed", 3);
    world.exit("stopped", 0);
    world.verb("stopped", Verb::Stop);
    reboot(&mut world);
    assert_eq!(world.state("failed"), State::FailedExecFailed);
    assert_eq!(world.state("stopped"), State::StoppedOk);
    assert_eq!(world.running(), 0);
}

#[test]
fn what_is_declared_after_a_boot_holds_from_the_next_one_on() {
    let mut world = World::new();
    world.apply(&[&job("job", Rerun::Never)]);
    world.exit("job", 0);
    reboot(&mut world);
    world.pass(10_000);
    let before = world.container("job");
    world.apply(&[&job("job", Rerun::Boot)]);
    let boot = world.boot.clone();
    let mut world = world.restart_agent(&boot);
    assert_eq!(world.state("job"), State::SucceededOk);
    reboot(&mut world);
    assert_eq!((world.state("job"), world.container("job")), (State::RunningOk, before));
}

#[test]
fn b37_waits_are_over_with_a_boot() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    for _ in 0..5 {
        world.exit("web", 1);
        while world.state("web") != State::RunningOk {
            world.pass(1_000);
        }
    }
    world.exit("web", 1);
    world.pass(6_000);
    assert!(world.view("web").next_attempt.is_some());
    let count = world.view("web").restart_count;
    reboot(&mut world);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").restart_count, count + 1, "the crash before the boot");
}

#[test]
fn what_ran_again_after_an_exit_with_0_is_no_job_that_is_done() {
    let mut world = World::new();
    world.apply(&[&policy("web", RestartPolicy::Always)]);
    world.pass(40_000);
    world.exit("web", 0);
    world.pass(40_000);
    world.apply(&[&policy("web", RestartPolicy::Never)]);
    assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 1));
    reboot(&mut world);
    assert_eq!((world.state("web"), world.view("web").restart_count), (State::RunningOk, 1));
    assert_eq!(world.view("web").last_error, "");
}
