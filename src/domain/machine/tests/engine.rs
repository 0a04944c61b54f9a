//! The engine and its event stream: away, back, silent, wrong.

use super::*;
use crate::domain::names::InstanceName;
use crate::domain::spec_hash::spec_hash;
use crate::limits;

fn away() -> Fault {
    Fault::new(FaultKind::Away, "connect", "", "refused")
}

/// The engine dies and takes every container along, as Docker does.
pub(super) fn kill_engine(world: &mut World) {
    for made in world.engine.containers.values_mut().filter(|m| m.phase.is_live()) {
        made.phase = Phase::Exited;
        made.exit_code = 137;
    }
    world.engine.gone = true;
    world.engine.die();
    world.feed(Event::StreamDown(away()));
}

pub(super) fn revive_engine(world: &mut World) {
    world.engine.gone = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
}

#[test]
fn an_idle_agent_calls_once_a_minute_and_writes_nothing() {
    let mut world = World::new();
    world.apply(&[&workload("a", |_| {}), &workload("b", |_| {})]);
    world.pass(60_000);
    world.engine.calls.clear();
    let rows = world.store.kept.rows.clone();
    world.pass(3_600_000);
    assert_eq!(world.engine.calls.len(), 60);
    assert_eq!(world.count("list"), 60);
    assert_eq!(world.store.kept.rows, rows);
}

#[test]
fn a_restarted_agent_lists_once_and_touches_nothing() {
    let mut world = World::new();
    let many: Vec<_> = (0..10).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.apply(&many.iter().collect::<Vec<_>>());
    world.pass(6_000);
    let before = world.engine.containers.clone();
    let world = world.restart_agent(BOOT);
    assert_eq!(world.engine.calls, ["list"]);
    for (name, made) in &before {
        assert_eq!(world.engine.containers[name].started_at_ns, made.started_at_ns);
    }
    assert!(world.views.values().all(|view| view.state == State::RunningOk));
    assert!(world.views.values().all(|view| view.pid == 1), "known without a look");
}

#[test]
fn a_restart_right_before_the_agent_died_is_read_and_counted() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {}), &workload("other", |_| {})]);
    world.pass(31_000);
    // What is seen of the one is written at once, and what is seen next is written later.
    world.exit("other", 1);
    world.exit("web", 1);
    assert_eq!(world.count("start"), 4);
    let world = world.restart_agent(BOOT);
    let view = world.view("web");
    let made = world.engine.find(world.container("web").as_str()).unwrap();
    assert_eq!(view.started_at_ms, made.started_at_ns / 1_000_000);
    assert_eq!((view.state, view.restart_count), (State::RunningOk, 1));
    assert_eq!(view.last_error, "exitCode=1 oomKilled=false");
}

#[test]
fn a_restarted_agent_does_not_take_a_new_run_for_the_recorded_one() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.verb("web", Verb::Stop);
    world.pass(6_000);
    // The agent dies before it has written what it saw of the start.
    world.verb("web", Verb::Start);
    assert_eq!(world.row("web").current.as_ref().unwrap().run.as_ref().unwrap().pid, 0);
    let world = world.restart_agent(BOOT);
    assert_eq!(world.engine.calls, ["list", "inspect"]);
    let started_at_ns = world.engine.find(world.container("web").as_str()).unwrap().started_at_ns;
    assert_eq!(world.view("web").started_at_ms, started_at_ns / 1_000_000);
    assert_eq!(world.view("web").restart_count, 0);
}

#[test]
fn an_engine_restart_is_an_interruption_for_every_policy() {
    let mut world = World::new();
    world.apply(&[
        &policy("always", RestartPolicy::Always),
        &policy("on-failure", RestartPolicy::OnFailure),
        &policy("never", RestartPolicy::Never),
    ]);
    world.pass(5_000);
    kill_engine(&mut world);
    world.pass(20_000);
    assert_eq!(world.state("always"), State::RunningOk, "the last seen state stays");
    revive_engine(&mut world);
    for name in ["always", "on-failure", "never"] {
        assert_eq!(world.state(name), State::RunningOk, "{name}");
        assert_eq!(world.view(name).restart_count, 0, "{name}");
        assert_eq!(world.view(name).last_error, "", "{name}");
    }
    assert_eq!(world.engine.containers.len(), 3);
    let lines: Vec<_> = world.logs.iter().filter(|l| l.contains("the engine is")).collect();
    assert_eq!(lines.len(), 3, "there, away, there: {lines:?}");
}

/// An engine that is told to end stops its containers first, and tells of each.
#[test]
fn an_exit_that_is_read_across_an_engine_restart_is_an_interruption() {
    for listed_before in [false, true] {
        let mut world = World::new();
        world.apply(&[&policy("job", RestartPolicy::Never)]);
        world.pass(5_000);
        let made = world.engine.find_mut(world.container("job").clone().as_str());
        made.phase = Phase::Exited;
        let (id, uid, read) = (made.id.clone(), made.tags.uid.clone(), reading(made));
        world.unanswered.push("inspect");
        let action = ContainerAction::Died;
        world.feed(Event::Container(ContainerEvent { id, uid: uid.clone(), action }));
        world.unanswered.clear();
        world.engine.gone = true;
        world.feed(Event::StreamDown(away()));
        let step = world.machine.workloads[&uid].step.as_ref().unwrap().step;
        let answer = Event::StepDone(step, Ok(Outcome::Found(Box::new(read))));
        if listed_before {
            revive_engine(&mut world);
            world.feed(answer);
        } else {
            world.feed(answer);
            revive_engine(&mut world);
        }
        assert_eq!(world.state("job"), State::RunningOk, "listed before: {listed_before}");
        assert_eq!(world.view("job").last_error, "");
    }
}

#[test]
fn an_engine_that_a_fresh_agent_finds_away_has_interrupted_its_containers() {
    let mut world = World::new();
    world.apply(&[&policy("never", RestartPolicy::Never)]);
    world.pass(6_000);
    kill_engine(&mut world);
    let mut world = world.restart_agent(BOOT);
    revive_engine(&mut world);
    assert_eq!(world.state("never"), State::RunningOk);
    assert_eq!(world.view("never").last_error, "");
}

#[test]
fn what_was_stopped_stays_stopped_over_an_engine_restart() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.verb("web", Verb::Stop);
    kill_engine(&mut world);
    revive_engine(&mut world);
    world.pass(600_000);
    assert_eq!(world.state("web"), State::StoppedOk);
}

#[test]
fn a_listing_that_fails_removes_and_creates_nothing() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.engine.calls.clear();
    world.fail_next("list", &[FaultKind::Trouble, FaultKind::Garbled, FaultKind::Timeout]);
    world.pass(60_000);
    assert_eq!(world.state("web"), State::RunningOk);
    world.pass(15_000);
    assert_eq!(world.engine.calls, ["list"; 4]);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn an_inspect_that_fails_is_unknown_and_not_absent() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(30_000);
    world.fail_next("inspect", &[FaultKind::Trouble, FaultKind::Garbled]);
    world.exit("web", 1);
    assert_eq!(world.count("create"), 1);
    assert_eq!(world.state("web"), State::RunningOk, "the last seen state stays");
    world.pass(15_000);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").restart_count, 1);
    assert_eq!(world.engine.containers.len(), 1);
}

#[test]
fn drift_by_hand_is_healed_by_the_next_full_compare() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {}), &workload("db", |_| {})]);
    world.pass(31_000);
    // No event tells of either.
    let id = world.container("web");
    world.engine.containers.retain(|_, made| made.id != id);
    let id = world.container("db");
    world.engine.find_mut(id.as_str()).phase = Phase::Exited;
    world.pass(limits::FULL_COMPARE_MS);
    assert_eq!(world.running(), 2);
}

#[test]
fn b11_a_twin_is_stopped_and_removed() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let id = world.container("web");
    let mut twin = world.engine.find(id.as_str()).unwrap().clone();
    twin.id = ContainerId::new("twin");
    twin.tags.instance = crate::domain::names::InstanceName::new("bargee-web-twin");
    world.engine.containers.insert("bargee-web-twin".to_owned(), twin);
    world.pass(limits::FULL_COMPARE_MS);
    assert_eq!(world.engine.containers.len(), 1);
    assert_eq!(world.container("web"), id);
    assert_eq!(world.count("SIGTERM"), 1);
}

#[test]
fn a_start_that_does_not_show_on_the_stream_makes_it_doubtful() {
    let mut world = World::new();
    world.engine.stream_silent = true;
    world.apply(&[&workload("web", |_| {})]);
    world.engine.calls.clear();
    world.pass(limits::START_EVENT_MS);
    assert_eq!(world.engine.calls, ["reopen", "list"]);
    world.pass(limits::ENGINE_LOOK_MS);
    assert_eq!(world.count("list"), 2, "polled every 5 s");
    world.feed(Event::StreamUp(EngineInfo::default()));
    world.engine.calls.clear();
    world.pass(60_000);
    assert_eq!(world.count("list"), 12, "the new one has told nothing yet");
    world.engine.stream_silent = false;
    world.exit("web", 1);
    world.pass(limits::RESTART_DELAY_MS);
    world.engine.calls.clear();
    world.pass(120_000);
    assert_eq!(world.count("list"), 2, "trusted again: {:?}", world.engine.calls);
}

#[test]
fn a_listing_without_a_container_is_checked_by_a_look() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {}), &workload("db", |_| {})]);
    world.pass(30_000);
    let before = world.engine.containers.clone();
    world.engine.calls.clear();
    world.engine.short_list = true;
    world.pass(limits::FULL_COMPARE_MS);
    assert_eq!(world.engine.calls, ["list", "inspect", "inspect"]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.engine.containers.len(), before.len());
    // A crash after that is a crash, although the listing came after a lost stream.
    world.feed(Event::StreamDown(Fault::new(FaultKind::Trouble, "read", "", "ended")));
    world.feed(Event::StreamUp(EngineInfo::default()));
    world.engine.short_list = false;
    world.exit("web", 1);
    assert_eq!(world.view("web").last_error, "exitCode=1 oomKilled=false");
}

#[test]
fn our_own_start_on_the_stream_costs_no_look() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.pass(30_000);
    assert_eq!(world.count("inspect"), 0, "{:?}", world.engine.calls);
    // A start by somebody else does.
    let (id, uid) = (world.container("web"), world.view("web").uid.clone());
    let action = ContainerAction::Started;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    assert_eq!(world.count("inspect"), 1);
}

#[test]
fn a_new_store_adopts_what_matches_and_waits_for_the_rest() {
    let mut world = World::new();
    world.apply(&[&workload("same", |_| {}), &workload("other", |_| {})]);
    let same = world.container("same");
    // Another store: nothing is recorded, the containers carry the old store's label.
    for made in world.engine.containers.values_mut() {
        made.tags.store = StoreId::new("ffffffffffffffff");
    }
    let containers = world.engine.containers.clone();
    world.store = Store::default();
    world.crash();
    world.engine.calls.clear();
    world.apply(&[
        &workload("same", |_| {}),
        &workload("other", |spec| spec.user = Some("1".to_owned())),
        &workload("third", |_| {}),
    ]);
    assert_eq!(world.state("same"), State::RunningOk);
    assert_eq!(world.container("same"), same);
    assert_eq!(world.state("other"), State::PendingWaitingToStart);
    assert!(world.view("other").info.starts_with("storeMissing"), "{}", world.view("other").info);
    assert_eq!(world.state("third"), State::RunningOk);
    assert_eq!(world.engine.containers.len(), containers.len() + 1);
    // Once the old one is out of the way it starts.
    world.engine.containers.retain(|name, _| !name.starts_with("bargee-other"));
    world.pass(limits::FULL_COMPARE_MS);
    assert_eq!(world.state("other"), State::RunningOk);
}

#[test]
fn workloads_with_timed_out_calls_share_one_place() {
    let mut world = World::new();
    let many: Vec<_> = (0..5).map(|n| workload(&format!("w{n}"), |_| {})).collect();
    world.fail_next("create", &[FaultKind::Timeout; 5]);
    world.apply(&many.iter().collect::<Vec<_>>());
    world.unanswered.push("inspect");
    let before = world.machine.steps.len();
    world.pass(limits::ENGINE_LOOK_MS);
    assert_eq!(world.machine.steps.len(), before + 1);
}

#[test]
fn an_exit_that_overtakes_the_answer_of_the_start_is_not_lost() {
    let mut world = World::new();
    world.fail_next("dies", &[FaultKind::Trouble]);
    world.apply(&[&policy("job", RestartPolicy::Never)]);
    assert_eq!(world.state("job"), State::SucceededOk);
}

#[test]
fn a_name_that_is_taken_by_nobody_is_given_up() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::NameTaken, FaultKind::NameTaken]);
    world.apply(&[&workload("web", |_| {})]);
    assert_eq!(
        world.engine.calls,
        ["list", "create image:1", "inspect", "create image:1", "inspect"]
    );
    let reserved = world.row("web").next.clone();
    assert_eq!(reserved, None, "the next try draws another name");
    world.pass(10_000);
    assert_eq!(world.state("web"), State::RunningOk);
}

/// The agent was killed during a create, and the engine is still busy with it.
#[test]
fn a_container_that_comes_late_under_a_taken_name_is_used() {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::NameTaken, FaultKind::NameTaken]);
    let web = workload("web", |_| {});
    world.apply(&[&web]);
    let name = "bargee-web-00000001";
    let tags = Tags {
        uid: world.row("web").uid.clone(),
        key: web.key.clone(),
        instance: InstanceName::new(name),
        generation: 1,
        spec_hash: spec_hash(&web),
        store: StoreId::new("0123456789abcdef"),
        node: "node".to_owned(),
    };
    let late = made("late", tags, Phase::Created);
    world.engine.containers.insert(name.to_owned(), late);
    world.pass(10_000);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.engine.containers.keys().collect::<Vec<_>>(), [name]);
}

#[test]
fn a_job_that_ends_while_only_the_stream_is_down_has_ended() {
    let mut world = World::new();
    world.apply(&[
        &policy("done", RestartPolicy::Never),
        &policy("failed", RestartPolicy::OnFailure),
    ]);
    world.pass(1_000);
    for (name, code) in [("done", 0), ("failed", 1)] {
        let id = world.container(name);
        let made = world.engine.find_mut(id.as_str());
        (made.phase, made.exit_code) = (Phase::Exited, code);
    }
    world.feed(Event::StreamDown(Fault::new(FaultKind::Trouble, "read", "", "ended")));
    world.feed(Event::StreamUp(EngineInfo::default()));
    assert_eq!(world.state("done"), State::SucceededOk);
    assert_eq!(world.view("failed").error_message, "exitCode=1 oomKilled=false");
    world.pass(10_000);
    assert_eq!(world.view("failed").restart_count, 1);
}

/// A listing that was sent before the stream was lost is not the first one after it.
#[test]
fn an_old_listing_does_not_use_up_the_loss_of_the_stream() {
    let mut world = World::new();
    world.apply(&[&policy("never", RestartPolicy::Never)]);
    world.pass(30_000);
    world.hold_list = true;
    world.pass(limits::FULL_COMPARE_MS);
    let old = world.withheld.pop().expect("a listing");
    world.hold_list = false;
    kill_engine(&mut world);
    world.feed(old);
    assert!(!world.machine.engine.up, "an old answer does not say that it is there");
    revive_engine(&mut world);
    assert_eq!(world.state("never"), State::RunningOk);
}

#[test]
fn a_name_of_ours_that_somebody_else_took_is_left_alone() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    world.unanswered.push("create");
    world.fail_next("create", &[FaultKind::Trouble]);
    world.apply(&[&workload("web", |spec| spec.image = "image:2".to_owned())]);
    let name = world.row("web").next.as_ref().unwrap().name.to_string();
    let tags = Tags {
        uid: Uid::new("somebody"),
        key: Key { application: Label::parse("x").unwrap(), name: Label::parse("x").unwrap() },
        instance: InstanceName::new("other"),
        generation: 1,
        spec_hash: spec_hash(&workload("x", |_| {})),
        store: StoreId::new("other"),
        node: "node".to_owned(),
    };
    world.engine.containers.insert(name.clone(), made("foreign", tags, Phase::Running));
    world.answer_late();
    world.pass(60_000);
    assert_eq!(world.state("web"), State::RunningOk);
    assert!(world.row("web").discards.is_empty());
    assert_eq!(world.engine.containers[&name].phase, Phase::Running);
    assert!(world.count("inspect") < 5, "{:?}", world.engine.calls);
}

#[test]
fn a_stream_that_was_opened_after_a_start_is_not_doubted_for_it() {
    let mut world = World::new();
    world.engine.stream_silent = true;
    world.apply(&[&workload("web", |_| {})]);
    world.pass(1_000);
    world.feed(Event::StreamDown(Fault::new(FaultKind::Trouble, "read", "", "ended")));
    world.pass(2_000);
    world.feed(Event::StreamUp(EngineInfo::default()));
    world.pass(60_000);
    assert_eq!(world.count("reopen"), 0);
}

/// The engine cannot remove one container, and behind it waits one that runs.
#[test]
fn b05_a_container_that_cannot_be_removed_does_not_hide_those_behind_it() {
    let mut world = World::new();
    world.apply(&[&workload("web", |_| {})]);
    let old = world.container("web");
    world.engine.unremovable.push(old);
    // Its tries and the listings do not fall together.
    world.pass(3_000);
    world.apply(&[&workload("web", |spec| spec.image = "image:2".to_owned())]);
    assert_eq!(world.state("web"), State::RunningOk, "not held by what was left");
    let mut twin = world.engine.find(world.container("web").as_str()).unwrap().clone();
    twin.id = ContainerId::new("twin");
    twin.tags.instance = InstanceName::new("bargee-web-twin");
    world.engine.containers.insert("bargee-web-twin".to_owned(), twin);
    world.pass(2 * limits::FULL_COMPARE_MS);
    assert_eq!((world.running(), world.engine.containers.len()), (1, 2));
    // And nothing runs beside one that is being removed for good.
    world.verb("web", Verb::Remove);
    world.pass(60_000);
    assert_eq!((world.running(), world.engine.containers.len()), (0, 1));
    assert_eq!(world.state("web"), State::StoppingDeleteFailed);
    world.engine.unremovable.clear();
    world.pass(60_000);
    assert!(world.engine.containers.is_empty() && world.store.kept.rows.is_empty());
}
