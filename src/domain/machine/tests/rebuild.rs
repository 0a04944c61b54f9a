//! Containers made anew because somebody asks for it.

use super::*;
use crate::domain::intent::Intent;
use crate::limits;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

/// Asks for a rebuild; what became of the task, and what the engine was asked to do for it.
fn rebuild(world: &mut World) -> (TaskState, Vec<String>) {
    world.engine.calls.clear();
    let task = world.verb("web", Verb::Rebuild);
    (world.task(task), world.engine.calls.clone())
}

/// Nothing of the rebuild is left to be done, whatever happens, and whoever looks.
fn expect_over(mut world: World) {
    world.pass(limits::STABLE_MS + limits::ROW_WRITE_MS);
    let row = world.row("web");
    assert_eq!(row.rebuilds_asked, row.rebuilds_done);
    let mut world = world.restart_agent(BOOT);
    let container = world.container("web");
    world.pass(600_000);
    assert_eq!((world.count("pull"), world.count("create")), (0, 0));
    assert_eq!(world.container("web"), container);
    assert_eq!(world.engine.containers.len(), 1);
    assert_eq!(world.entries.len(), 0);
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const ANEW: [&str; 5] = ["pull image:1", "create image:1", "SIGTERM", "inspect", "start"];

#[test]
fn it_pulls_and_makes_the_container_anew_and_removes_the_old_one_when_that_has_proved_itself() {
    for pull in [Pull::Missing, Pull::Always, Pull::Never] {
        let mut world = World::new();
        world.apply(&[&workload("web", |spec| spec.pull = pull)]);
        world.pass(5_000);
        for _ in 0..2 {
            let old = world.container("web");
            let (task, calls) = rebuild(&mut world);
            let anew = if pull == Pull::Never { &ANEW[1..] } else { &ANEW[..] };
            assert_eq!((task, calls), (TaskState::Done, strings(anew)));
            assert_ne!(world.container("web"), old);
            world.engine.calls.clear();
            world.pass(limits::STABLE_MS);
            assert_eq!((world.count("inspect"), world.count("remove")), (1, 1));
        }
        assert_eq!(world.row("web").rebuilds_asked, 2);
        assert_eq!((world.view("web").generation, world.view("web").observed_generation), (1, 1));
        assert_eq!(world.view("web").error_message, "");
        expect_over(world);
    }
}

#[test]
fn it_is_shown_as_what_it_is() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.unanswered.push("create");
    rebuild(&mut world);
    let view = world.view("web");
    assert_eq!((view.state, view.runtime_state), (State::RunningOk, RuntimeState::Updating));
    assert_eq!(view.info, "rebuild: creating the new container");
}

#[test]
fn counters_and_waits_begin_anew_and_the_last_error_stays() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    for _ in 0..3 {
        world.exit("web", 1);
        world.pass(60_000);
    }
    world.exit("web", 1);
    assert_eq!(world.view("web").restart_count, 4);
    world.exit("web", 1);
    let at = world.view("web").last_error_at_ms;
    assert_eq!(rebuild(&mut world).0, TaskState::Done);
    let view = world.view("web");
    assert_eq!((view.state, view.restart_count), (State::RunningOk, 0));
    assert_eq!(
        (view.last_error.as_str(), view.last_error_at_ms),
        ("exitCode=1 oomKilled=false", at)
    );
    world.pass(limits::STABLE_MS);
    for _ in 0..2 {
        world.exit("web", 1);
    }
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 10_000)));
}

#[test]
fn what_is_stopped_or_has_succeeded_runs_anew() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.verb("web", Verb::Stop);
    let anew = ["pull image:1", "create image:1", "start"];
    let wanted = (TaskState::Done, strings(&anew));
    assert_eq!(rebuild(&mut world), wanted);
    assert_eq!(world.state("web"), State::RunningOk);
    expect_over(world);

    let mut world = World::new();
    world.apply(&[&policy("web", RestartPolicy::OnFailure)]);
    world.exit("web", 0);
    assert_eq!(rebuild(&mut world), wanted);
    expect_over(world);
}

#[test]
fn what_is_refused_is_tried_afresh() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::Refused; 5]);
    world.apply(&[&image(1)]);
    world.pass(600_000);
    assert_eq!(world.view("web").runtime_state, RuntimeState::Failed);
    let (task, calls) = rebuild(&mut world);
    assert_eq!(task, TaskState::Done);
    assert_eq!(calls, ["pull image:1", "create image:1", "start"]);
    expect_over(world);

    // The same for one that was made, and could not be started.
    let mut world = World::new();
    world.fail_next("start", &[FaultKind::Refused; 5]);
    world.apply(&[&image(1)]);
    world.pass(600_000);
    let (task, calls) = rebuild(&mut world);
    assert_eq!(task, TaskState::Done);
    assert_eq!(calls, ["pull image:1", "remove", "create image:1", "start"]);
    expect_over(world);
}

/// A job must not run twice for one rebuild, and what was stopped not from the image of before.
#[test]
fn what_does_not_run_is_not_started_while_its_image_is_pulled() {
    for stopped in [true, false] {
        let mut world = World::new();
        world.apply(&[&policy("web", RestartPolicy::OnFailure)]);
        match stopped {
            true => {
                world.verb("web", Verb::Stop);
            }
            false => world.exit("web", 0),
        }
        world.unanswered.push("pull");
        let (task, calls) = rebuild(&mut world);
        assert_eq!((task, calls), (TaskState::Running, strings(&["pull image:1"])));
        world.pass(50_000);
        assert_eq!(world.count("start"), 0);
        let view = world.view("web");
        assert_eq!((view.state, view.info.as_str()), (State::PendingStarting, "pulling image:1"));
        // If it comes to nothing, what was done is done.
        world.unanswered.clear();
        let Some(Event::PullDone(pull, _)) = world.withheld.pop() else { panic!("no pull") };
        let fault = Fault::new(FaultKind::Trouble, "pull", "image:1", "no route");
        world.feed(Event::PullDone(pull, Err(fault)));
        let state = if stopped { State::RunningOk } else { State::SucceededOk };
        assert_eq!(world.state("web"), state);
    }
}

/// The pull may take hours.
#[test]
fn what_runs_is_kept_running_while_its_image_is_pulled() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.unanswered.push("pull");
    rebuild(&mut world);
    world.exit("web", 1);
    world.pass(10_000);
    let view = world.view("web");
    assert_eq!((view.state, view.restart_count), (State::RunningOk, 1));
    assert_eq!(view.info, "rebuild: pulling image:1");
}

#[test]
fn a_failed_update_is_tried_again_with_its_generation() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.fail_next("create", &[FaultKind::Refused; 2]);
    world.apply(&[&image(2)]);
    assert_eq!(rebuild(&mut world).0, TaskState::Failed);
    assert_eq!(world.view("web").failed_update.as_ref().unwrap().0, 2);
    assert_eq!((world.state("web"), world.view("web").observed_generation), (State::RunningOk, 1));
    assert_eq!(rebuild(&mut world).0, TaskState::Done);
    let view = world.view("web");
    assert_eq!((view.observed_generation, view.failed_update.as_ref()), (2, None));
    expect_over(world);
}

#[test]
fn one_that_fails_leaves_the_old_container_running_and_says_why() {
    for word in ["pull", "create", "start"] {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        world.pass(60_000);
        let old = world.container("web");
        world.fail_next(word, &[FaultKind::Trouble]);
        world.engine.calls.clear();
        let task = world.verb("web", Verb::Rebuild);
        assert_eq!(world.task(task), TaskState::Failed, "{word}");
        assert!(world.tasks[&task].message.contains("Trouble"), "{:?}", world.tasks[&task]);
        let view = world.view("web");
        assert_eq!((view.state, view.container.as_ref()), (State::RunningOk, Some(&old)));
        assert_eq!((view.failed_update.as_ref(), view.restart_count), (None, 0));
        assert_eq!(world.count("SIG"), usize::from(word == "start"), "{word}");
        expect_over(world);
    }
}

/// There is nothing to return to, but the image of before.
#[test]
fn a_first_container_does_not_wait_for_the_registry_for_ever() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::Refused; 5]);
    world.apply(&[&image(1)]);
    world.pass(600_000);
    world.fail_next("pull", &[FaultKind::Trouble; 3]);
    assert_eq!(rebuild(&mut world).0, TaskState::Failed);
    world.pass(10_000);
    assert_eq!((world.state("web"), world.count("pull")), (State::RunningOk, 1));
}

#[test]
fn it_survives_the_agent() {
    for call in ["pull", "create", "start"] {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        world.pass(5_000);
        let old = world.container("web");
        world.unanswered.push(call);
        rebuild(&mut world);
        assert_ne!(world.row("web").rebuilds_asked, world.row("web").rebuilds_done, "{call}");
        let mut world = world.restart_agent(BOOT);
        world.pass(30_000);
        assert_ne!(world.container("web"), old, "{call}");
        // The one that was begun before the agent died may be gone for another.
        assert!(world.count("create") <= 1);
        expect_over(world);
    }
}

/// What is being made while it is asked for was not made from a fresh pull.
#[test]
fn what_was_begun_before_it_was_asked_for_does_not_do() {
    for call in ["create", "start"] {
        let mut world = World::new();
        world.apply(&[&image(1)]);
        world.pass(5_000);
        world.unanswered.push(call);
        world.apply(&[&image(2)]);
        let task = world.verb("web", Verb::Rebuild);
        world.unanswered.clear();
        world.engine.calls.clear();
        world.answer_late();
        assert_eq!(world.task(task), TaskState::Done, "{call}");
        assert_eq!((world.count("pull image:2"), world.count("create image:2")), (1, 1), "{call}");
        expect_over(world);
    }
}

#[test]
fn a_stop_calls_it_off() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    world.unanswered.push("create");
    let task = world.verb("web", Verb::Rebuild);
    world.unanswered.clear();
    world.verb("web", Verb::Stop);
    world.answer_late();
    assert_eq!(world.task(task), TaskState::Superseded);
    assert_eq!((world.state("web"), world.engine.containers.len()), (State::StoppedOk, 1));
    world.engine.calls.clear();
    world.verb("web", Verb::Start);
    assert_eq!(world.engine.calls, ["start"]);
    expect_over(world);
}

/// The entry says which container takes the place of which.
#[test]
fn the_journal_tells_it_like_an_update() {
    let mut world = World::new();
    world.apply(&[&image(1)]);
    let old = world.row("web").current.as_ref().unwrap().name.clone();
    world.unanswered.push("remove");
    rebuild(&mut world);
    world.pass(limits::STABLE_MS);
    let new = world.row("web").current.as_ref().unwrap().name.clone();
    let intents: Vec<_> = world.entries.values().map(|entry| entry.intent.clone()).collect();
    let [Intent::Replace { old: goes, new: stays, .. }] = &intents[..] else {
        panic!("{intents:?}");
    };
    assert_eq!((goes, stays), (&old, &new));
}
