//! Declarations, verbs and their tasks.

use super::*;
use crate::domain::effect::Refusal;
use crate::limits;

#[test]
fn stop_persists_and_start_brings_it_back() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let stop = world.verb("web", Verb::Stop);
    assert_eq!(world.task(stop), TaskState::Done);
    assert_eq!(world.state("web"), State::StoppedOk);
    assert_eq!(world.view("web").error_message, "", "an own stop is no error");
    let mut world = world.restart_agent(BOOT);
    world.pass(600_000);
    assert_eq!(world.state("web"), State::StoppedOk);
    let start = world.verb("web", Verb::Start);
    assert_eq!(world.task(start), TaskState::Done);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn an_apply_does_not_change_what_was_stopped() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.verb("web", Verb::Stop);
    world.apply(&[&workload("web", |spec| spec.user = Some("1".to_owned()))]);
    assert_eq!(world.state("web"), State::StoppedOk);
}

#[test]
fn a_stop_is_recorded_before_it_is_sent_and_ends_with_sigkill() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    let task = world.verb("web", Verb::Stop);
    assert!(world.row("web").own_stop.is_some());
    assert_eq!(world.state("web"), State::StoppingRequestedAtRuntime);
    assert_eq!(world.task(task), TaskState::Running);
    world.pass(9_999);
    assert_eq!(world.count("SIGKILL"), 0);
    world.pass(1);
    assert_eq!(world.count("SIGKILL"), 1);
    assert_eq!(world.task(task), TaskState::Done);
}

#[test]
fn restart_is_a_counter_in_the_row_and_no_restart_after_an_exit() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let id = world.container("web");
    let starts = world.count("start");
    let task = world.verb("web", Verb::Restart);
    assert_eq!(world.task(task), TaskState::Done);
    assert_eq!(world.count("start"), starts + 1);
    assert_eq!(world.container("web"), id);
    assert_eq!(world.row("web").restarts_asked, 1);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn an_operators_kill_is_judged_as_a_crash() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let task = world.verb("web", Verb::Kill("SIGUSR1".to_owned()));
    assert_eq!(world.task(task), TaskState::Done);
    assert_eq!(world.count("SIGUSR1"), 1);
    assert_eq!(world.view("web").error_message, "exitCode=143 oomKilled=false");
    world.pass(10_000);
    assert_eq!(world.view("web").restart_count, 1);
    world.exit("web", 1);
    let task = world.verb("web", Verb::Kill("SIGKILL".to_owned()));
    assert_eq!(world.task(task), TaskState::Failed, "it does not run");
}

#[test]
fn a_finished_job_runs_again_when_it_is_started() {
    let mut world = World::new();
    world.apply(&[&policy("job", RestartPolicy::Never)]);
    world.exit("job", 0);
    let starts = world.count("start");
    world.verb("job", Verb::Start);
    assert_eq!(world.count("start"), starts + 1);
    world.exit("job", 4);
    assert_eq!(world.state("job"), State::FailedExecFailed);
}

#[test]
fn removal_leaves_nothing_and_the_last_one_takes_the_network_along() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {}), &workload("b", |_| {})]);
    let task = world.verb("a", Verb::Remove);
    assert_eq!(world.task(task), TaskState::Done);
    assert_eq!(world.count("remove network"), 0);
    world.verb("b", Verb::Remove);
    assert_eq!(world.count("remove network"), 1);
    assert!(
        world.engine.containers.is_empty()
            && world.store.kept.rows.is_empty()
            && world.views.is_empty()
    );
}

#[test]
fn an_apply_during_a_removal_is_a_new_workload_that_waits_for_it() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let old = world.view("web").uid.clone();
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("web", Verb::Remove);
    assert_eq!(world.apply(&[&workload("web", |_| {})]), [(1, Change::Created)]);
    assert_eq!(world.running(), 1, "the old one is not seen stopped yet");
    let new = world.views.values().find(|v| v.uid != old).unwrap();
    assert_eq!(new.state, State::PendingWaitingToStart);
    world.pass(10_000);
    assert_eq!(world.view("web").state, State::RunningOk);
    assert_ne!(world.view("web").uid, old);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn nothing_is_changed_or_shown_when_the_store_fails() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.store.fails = true;
    let uid = world.view("web").uid.clone();
    let answer = world.ask(Request::Verb(Verb::Stop, uid));
    assert!(matches!(answer, Answer::Refused(Refusal::Store(_))), "{answer:?}");
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.count("SIG"), 0);
    world.store.fails = false;
    world.verb("web", Verb::Stop);
    assert_eq!(world.state("web"), State::StoppedOk);
}

#[test]
fn a_workload_is_made_again_though_the_store_fails() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(31_000);
    world.store.fails = true;
    let id = world.container("web");
    world.engine.containers.retain(|_, made| made.id != id);
    let uid = world.view("web").uid.clone();
    world.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Removed }));
    assert_eq!(world.count("create"), 1, "it was tried to record the name first");
    world.pass(limits::ENGINE_LOOK_MS);
    assert_eq!(world.count("create"), 2);
    assert_eq!(world.state("web"), State::RunningOk);
    let made = world.container("web");
    // The next agent finds it by its labels.
    let world = world.restart_agent(BOOT);
    assert_eq!(world.engine.containers.len(), 1);
    assert_eq!(world.container("web"), made);
    assert_eq!(world.state("web"), State::RunningOk);
}

#[test]
fn a_stop_whose_commit_failed_is_not_sent_and_comes_later() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(31_000);
    world.store.rows_fail = true;
    world.verb("web", Verb::Stop);
    world.pass(limits::ENGINE_LOOK_MS - 1_000);
    assert_eq!(world.count("SIG"), 0, "no stop that is not recorded");
    world.store.rows_fail = false;
    world.pass(limits::ENGINE_LOOK_MS);
    assert_eq!(world.state("web"), State::StoppedOk);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn an_interrupted_stop_is_taken_up_by_the_next_agent() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("web", Verb::Stop);
    let mut world = world.restart_agent(BOOT);
    world.pass(1_000);
    assert_eq!(world.state("web"), State::StoppedOk);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn waiting_for_a_mount_writes_nothing() {
    let mut world = World::new();
    world.engine.missing_paths.push("/mnt/disk");
    world.apply(&[&workload("web", |spec| spec.mounts = vec![disk()])]);
    world.pass(10_000);
    let commits = world.store.commits;
    world.pass(3_600_000);
    assert!(world.count("check") > 700);
    assert_eq!(world.store.commits, commits);
}

#[test]
fn containers_that_are_gone_are_forgotten() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    for tag in 2..20 {
        world.apply(&[&workload("web", |spec| spec.image = format!("image:{tag}"))]);
        let id = world.container("web");
        world.engine.containers.retain(|_, made| made.id != id);
        let uid = world.view("web").uid.clone();
        let action = ContainerAction::Removed;
        world.feed(Event::Container(ContainerEvent { id, uid, action }));
        world.pass(60_000);
    }
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.machine.by_container.len(), 1);
}

#[test]
fn a_full_queue_still_takes_the_stop_of_what_waits_in_it() {
    let mut world = World::new();
    let many: Vec<_> =
        (0..limits::TASK_QUEUE).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.apply(&many.iter().collect::<Vec<_>>());
    world.apply(&[&workload("other", |_| {})]);
    world.engine.gone = true;
    let away = Fault::new(FaultKind::Away, "connect", "", "refused");
    world.feed(Event::StreamDown(away));
    for n in 0..limits::TASK_QUEUE {
        world.verb(&format!("w{n}"), Verb::Restart);
    }
    let uid = world.view("other").uid.clone();
    let answer = world.ask(Request::Verb(Verb::Restart, uid));
    assert!(matches!(answer, Answer::Refused(Refusal::Busy(_))), "{answer:?}");
    let stop = world.verb("w0", Verb::Stop);
    assert_eq!(world.task(stop), TaskState::Pending);
}

#[test]
fn a_store_that_hangs_is_sent_one_write_of_observations() {
    let mut world = World::new();
    world.apply(&[&policy("a", RestartPolicy::Never), &policy("b", RestartPolicy::Never)]);
    world.pass(10_000);
    world.store_hangs = true;
    world.engine.calls.clear();
    world.exit("a", 0);
    world.pass(60_000);
    world.exit("b", 0);
    world.pass(60_000);
    assert_eq!(world.count("commit"), 1, "{:?}", world.engine.calls);
    assert_eq!(world.state("b"), State::SucceededOk, "supervised all the same");
    // The end of a job waits for the writer and not for the next 5 s.
    world.store_hangs = false;
    let hung = world.hung.take().unwrap();
    world.feed(Event::Committed(hung, Ok(())));
    assert_eq!(world.row("b").last_exit.as_ref().unwrap().code, Some(0));
}
