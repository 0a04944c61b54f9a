//! Health checks: what follows from their verdicts, in which order, and what does not.

use super::*;
use crate::domain::declared::{Restart, WhenStuck};
use crate::domain::health::RunHealth;
use crate::domain::health_check::{Check, Health, HealthCheck, OnUnhealthy, Test};
use Health::{Healthy, Starting, Unhealthy};
use world::{Fuse, Pace, Side};

const COMPLAINT: &str = "unhealthy: exitCode=1 output=bad";
const MINUTE: u64 = 60_000;

fn checked(on_unhealthy: OnUnhealthy, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    workload("web", |spec| {
        let check = Check::new(Test::Shell("probe".to_owned()));
        spec.health_check = Some(HealthCheck::On(Check { on_unhealthy, ..check }));
        change(spec);
    })
}

/// A workload with a check has just been started.
fn started(on_unhealthy: OnUnhealthy, change: impl FnOnce(&mut Spec)) -> World {
    let mut world = World::new();
    world.apply(&[&checked(on_unhealthy, change)]);
    world
}

/// The same, and it has been healthy for longer than a minute.
fn healthy() -> World {
    let mut world = started(OnUnhealthy::Restart, |_| {});
    world.becomes("web", Healthy);
    world.pass(70_000);
    world
}

/// SIGTERM is sent and does nothing yet.
fn deaf(mut world: World) -> World {
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.becomes("web", Unhealthy);
    assert_eq!(world.state("web"), State::StoppingRequestedAtRuntime);
    world
}

fn restarts(world: &World) -> u64 {
    world.view("web").restart_count
}

fn is_running(world: &World, health: Health) {
    assert_eq!((world.state("web"), world.view("web").health), (State::RunningOk, Some(health)));
}

// --- what it leads to --------------------------------------------------------------------------

#[test]
fn b41_an_unhealthy_workload_is_restarted_in_place_and_counted_once() {
    let mut world = healthy();
    let id = world.container("web");
    world.engine.calls.clear();
    world.becomes("web", Unhealthy);
    assert_eq!(world.engine.calls, ["inspect", "SIGTERM", "inspect", "start"], "at once");
    is_running(&world, Starting);
    assert_eq!((restarts(&world), world.container("web")), (1, id));
    let view = world.view("web");
    assert_eq!((&*view.error_message, &*view.last_error), (COMPLAINT, COMPLAINT));
    assert_eq!(view.last_error_at_ms, world.now);
    // As of any failure, until it has been well for 30 s.
    world.pass(40_000);
    assert_eq!(world.view("web").error_message, COMPLAINT);
    world.becomes("web", Healthy);
    world.pass(29_999);
    assert_eq!(world.view("web").error_message, COMPLAINT);
    world.pass(1);
    let view = world.view("web");
    assert_eq!((&*view.error_message, &*view.last_error), ("", COMPLAINT));
}

#[test]
fn it_is_stopped_with_its_grace_and_says_why() {
    let mut world = deaf(healthy());
    let view = world.view("web");
    assert_eq!((view.runtime_state, view.health), (RuntimeState::Stopping, Some(Unhealthy)));
    assert_eq!(
        view.info,
        format!("{COMPLAINT}; for a restart: its stop was sent, SIGKILL follows")
    );
    assert_eq!(view.next_attempt, Some(Tick(world.now + 10_000)));
    world.pass(9_999);
    assert_eq!(world.count("SIGKILL"), 0);
    world.pass(1);
    is_running(&world, Starting);
    assert_eq!((world.count("SIGKILL"), restarts(&world)), (1, 1));
}

#[test]
fn one_that_never_becomes_healthy_is_restarted_on_the_backoff() {
    let mut world = started(OnUnhealthy::Restart, |_| {});
    for delay in [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000] {
        // Longer than a run that counts as stable without a check.
        world.pass(90_000);
        world.becomes("web", Unhealthy);
        let view = world.view("web");
        assert_eq!((view.state, view.health), (State::PendingStarting, None));
        assert_eq!(view.info, format!("unhealthy; restart {}", view.restart_count + 1));
        assert_eq!(view.next_attempt, Some(Tick(world.now + delay)));
        assert_eq!(view.error_message, COMPLAINT);
        world.pass(delay);
        is_running(&world, Starting);
    }
    assert_eq!(restarts(&world), 7);
}

#[test]
fn thirty_seconds_of_healthy_end_the_backoff() {
    let mut world = started(OnUnhealthy::Restart, |_| {});
    for _ in 0..3 {
        world.becomes("web", Unhealthy);
        world.pass(40_000);
    }
    is_running(&world, Starting);
    assert_eq!(world.row("web").streak, 3);
    world.pass(MINUTE);
    assert_eq!(world.row("web").streak, 3, "it runs, and is not healthy");
    world.becomes("web", Healthy);
    world.pass(20_000);
    // Not without a break.
    world.becomes("web", Starting);
    world.becomes("web", Healthy);
    world.pass(29_999);
    assert_eq!(world.machine.workloads.values().next().unwrap().record.streak, 3);
    world.pass(1);
    assert_eq!(world.machine.workloads.values().next().unwrap().record.streak, 0);
    // A crash after that is none of a loop; one before would be.
    world.exit("web", 1);
    is_running(&world, Starting);
    world.pass(MINUTE);
    world.exit("web", 1);
    assert_eq!(world.view("web").next_attempt, Some(Tick(world.now + 10_000)));
}

#[test]
fn the_policy_decides_and_any_exit_code_is_a_failure() {
    for (policy, again) in [
        (RestartPolicy::Always, true),
        (RestartPolicy::OnFailure, true),
        (RestartPolicy::Never, false),
    ] {
        let mut world = started(OnUnhealthy::Restart, |spec| spec.restart.policy = policy);
        world.fail_next("deaf", &[FaultKind::Trouble]);
        world.becomes("web", Unhealthy);
        assert_eq!(world.count("SIGTERM"), usize::from(again), "{policy:?}");
        if again {
            // Its handler ends it well.
            world.exit("web", 0);
            assert_eq!(world.state("web"), State::PendingStarting, "{policy:?}");
            world.pass(10_000);
        }
        assert_eq!((world.state("web"), restarts(&world)), (State::RunningOk, u64::from(again)));
    }
}

#[test]
fn b41_none_only_reports() {
    let mut world = started(OnUnhealthy::Report, |_| {});
    world.becomes("web", Unhealthy);
    world.pass(10 * MINUTE);
    is_running(&world, Unhealthy);
    let view = world.view("web");
    assert_eq!((&*view.info, &*view.error_message), (COMPLAINT, COMPLAINT));
    assert_eq!((world.count("SIG"), restarts(&world)), (0, 0));
    // It is one failure, however often it is told of.
    let at = view.last_error_at_ms;
    world.becomes("web", Unhealthy);
    assert_eq!(world.view("web").last_error_at_ms, at);
    world.becomes("web", Healthy);
    assert_eq!(world.view("web").info, "");
    world.pass(30_000);
    assert_eq!(world.view("web").error_message, "");
}

#[test]
fn restarts_for_health_make_it_stuck() {
    let hasty = |stuck| {
        let (delay, max_delay) = (Span::seconds(1), Span::seconds(30));
        Restart { policy: RestartPolicy::Always, delay, max_delay, stuck }
    };
    let mut world = started(OnUnhealthy::Restart, |spec| spec.restart = hasty(WhenStuck::Retry));
    for _ in 0..10 {
        world.becomes("web", Unhealthy);
        world.pass(30_000);
    }
    assert_eq!((restarts(&world), world.row("web").stuck), (10, true));
    world.becomes("web", Unhealthy);
    assert_eq!(world.view("web").runtime_state, RuntimeState::StuckInRestart);
    let info = "unhealthy, and restarted 10 times in 10 minutes; restart 11";
    assert_eq!(world.view("web").info, info);
    // What is to be left alone is not taken from people: it would not come back.
    let mut world = started(OnUnhealthy::Restart, |spec| spec.restart = hasty(WhenStuck::Hold));
    for _ in 0..10 {
        world.becomes("web", Unhealthy);
        world.pass(30_000);
    }
    assert!(world.row("web").stuck);
    world.becomes("web", Unhealthy);
    is_running(&world, Unhealthy);
    assert!(world.view("web").info.starts_with(COMPLAINT), "{}", world.view("web").info);
}

#[test]
fn the_check_of_an_image_is_shown_and_nothing_else() {
    for health_check in [None, Some(HealthCheck::Off)] {
        let mut world = World::new();
        world.apply(&[&workload("web", |spec| spec.health_check = health_check)]);
        let id = world.container("web");
        world.engine.find_mut(id.as_str()).health = Some(Unhealthy);
        world.becomes("web", Unhealthy);
        world.pass(MINUTE);
        is_running(&world, Unhealthy);
        let view = world.view("web");
        assert_eq!((&*view.info, &*view.error_message), (COMPLAINT, ""));
        assert_eq!((world.count("SIG"), world.count("start")), (0, 1));
        // Nor does it keep a run from being stable.
        world.exit("web", 1);
        assert_eq!(world.view("web").next_attempt, None);
    }
}

// --- whose verdict it is -----------------------------------------------------------------------

#[test]
fn the_verdict_on_an_earlier_start_does_not_count() {
    let mut world = healthy();
    let id = world.container("web");
    let uid = world.view("web").uid.clone();
    let event = ContainerEvent { id, uid, action: ContainerAction::Changed };
    // It crashed; what its check came to before that is told when it runs again, twice.
    world.exit("web", 1);
    is_running(&world, Starting);
    for _ in 0..2 {
        world.feed(Event::Container(event.clone()));
    }
    is_running(&world, Starting);
    // And what the engine says of one that has ended is nothing.
    world.exit("web", 1);
    world.engine.find_mut(event.id.as_str()).health = Some(Unhealthy);
    world.feed(Event::Container(event));
    assert_eq!((world.state("web"), world.view("web").health), (State::PendingStarting, None));
    assert_eq!(world.view("web").error_message, "exitCode=1 oomKilled=false");
    assert_eq!((world.count("SIG"), restarts(&world)), (0, 1));
}

/// Somebody starts it anew while no agent is there, and its check fails again.
#[test]
fn the_same_verdict_on_another_start_is_another_failure() {
    let mut world = started(OnUnhealthy::Report, |_| {});
    world.becomes("web", Unhealthy);
    world.pass(10_000);
    let before = world.view("web").last_error_at_ms;
    let id = world.container("web");
    world.engine.find_mut(id.as_str()).started_at_ns += 1;
    let world = world.restart_agent(BOOT);
    is_running(&world, Unhealthy);
    assert_eq!(world.view("web").last_error_at_ms, before + 10_000);
}

#[test]
fn what_an_engine_says_of_one_that_has_ended_changes_nothing() {
    let known = RunHealth { health: Healthy, since: Tick(1), proved: false };
    let mut made = healthy().engine.containers.into_values().next().unwrap();
    made.health = Some(Unhealthy);
    let follow = |made: &Made| RunHealth::follow(Some(&known), &reading(made), Tick(9));
    let unhealthy = RunHealth { health: Unhealthy, since: Tick(9), proved: false };
    assert_eq!(follow(&made), Some(unhealthy));
    made.phase = Phase::Exited;
    assert_eq!(follow(&made), Some(known.clone()));
}

#[test]
fn a_look_that_is_answered_after_the_end_counts_nothing() {
    let mut world = healthy();
    world.unanswered.push("inspect");
    world.becomes("web", Unhealthy);
    world.exit("web", 3);
    // The look showed it running and unhealthy; by now it has ended.
    world.answer_late();
    assert_eq!((restarts(&world), world.running()), (1, 1));
    assert_eq!(world.count("start"), 2);
    assert!(world.count("SIGTERM") <= 1);
}

#[test]
fn during_an_own_stop_nothing_counts() {
    for verb in [Verb::Stop, Verb::Restart, Verb::Remove] {
        let mut world = healthy();
        world.fail_next("deaf", &[FaultKind::Trouble]);
        world.verb("web", verb.clone());
        world.becomes("web", Unhealthy);
        assert_eq!(world.view("web").error_message, "", "{verb:?}");
        assert_eq!(world.view("web").last_error, "", "{verb:?}");
        world.pass(10_000);
        match verb {
            Verb::Stop => assert_eq!(world.state("web"), State::StoppedOk),
            Verb::Restart => is_running(&world, Starting),
            _ => assert!(world.views.is_empty()),
        }
        if verb != Verb::Remove {
            assert_eq!(restarts(&world), 0, "{verb:?}");
        }
        assert_eq!(world.count("SIGTERM"), 1, "{verb:?}");
    }
}

#[test]
fn a_stop_or_restart_that_is_asked_for_meanwhile_wins() {
    let mut world = deaf(healthy());
    world.verb("web", Verb::Stop);
    world.pass(10_000);
    assert_eq!((world.state("web"), restarts(&world)), (State::StoppedOk, 0));
    let mut world = deaf(healthy());
    world.verb("web", Verb::Restart);
    world.pass(10_000);
    is_running(&world, Starting);
    assert_eq!((restarts(&world), world.count("SIGTERM")), (0, 1));
    let mut world = deaf(healthy());
    world.apply(&[&checked(OnUnhealthy::Restart, |spec| spec.image = "image:2".to_owned())]);
    world.pass(10_000);
    is_running(&world, Starting);
    assert_eq!((world.view("web").observed_generation, restarts(&world)), (2, 0));
}

#[test]
fn what_is_stopped_for_an_update_is_not_restarted_for_its_health() {
    let mut world = healthy();
    world.unanswered.push("create");
    world.apply(&[&checked(OnUnhealthy::Restart, |spec| spec.image = "image:2".to_owned())]);
    world.becomes("web", Unhealthy);
    // The new one cannot be started, so that the old one comes back.
    world.fail_next("start", &[FaultKind::Refused]);
    world.answer_late();
    is_running(&world, Starting);
    assert_eq!((world.view("web").observed_generation, restarts(&world)), (1, 0));
}

#[test]
fn while_an_update_is_pulled_the_old_one_is_restarted() {
    let mut world = healthy();
    world.engine.missing_images.push("image:2".to_owned());
    world.unanswered.push("pull");
    world.apply(&[&checked(OnUnhealthy::Restart, |spec| spec.image = "image:2".to_owned())]);
    world.becomes("web", Unhealthy);
    assert_eq!((restarts(&world), world.running()), (1, 1));
    world.answer_late();
    assert_eq!((world.view("web").observed_generation, restarts(&world)), (2, 1));
}

// --- what is changed by hand -------------------------------------------------------------------

#[test]
fn changing_what_follows_keeps_the_container_and_acts_at_once() {
    let mut world = started(OnUnhealthy::Report, |_| {});
    let id = world.container("web");
    world.becomes("web", Unhealthy);
    world.pass(MINUTE);
    let change = world.apply(&[&checked(OnUnhealthy::Restart, |_| {})]);
    assert_eq!(change, [(2, Change::Kept)]);
    world.pass(10_000);
    is_running(&world, Starting);
    assert_eq!((restarts(&world), world.container("web")), (1, id));
    let other = checked(OnUnhealthy::Restart, |spec| {
        let check = Check::new(Test::Shell("other".to_owned()));
        spec.health_check = Some(HealthCheck::On(check));
    });
    assert_eq!(world.apply(&[&other]), [(3, Change::Replaced)]);
    let off = workload("web", |spec| spec.health_check = Some(HealthCheck::Off));
    assert_eq!(world.apply(&[&off]), [(4, Change::Replaced)]);
    assert_eq!(world.apply(&[&workload("web", |_| {})]), [(5, Change::Replaced)]);
    assert_eq!(world.view("web").health, None);
}

// --- agents and engines that go ----------------------------------------------------------------

#[test]
fn b41_an_agent_that_dies_over_it_neither_doubles_nor_loses_the_restart() {
    // Before anything was sent, and after the signal: what the row says is seen through.
    for lost in ["commit", "SIGTERM"] {
        let mut world = healthy();
        if lost == "commit" {
            world.store_hangs = true;
            world.becomes("web", Unhealthy);
            assert_eq!(world.count("SIGTERM"), 0);
        } else {
            world = deaf(world);
        }
        let mut world = world.restart_agent(BOOT);
        assert_eq!((restarts(&world), world.running()), (1, 1), "{lost}");
        is_running(&world, Starting);
        assert_eq!(world.view("web").last_error, COMPLAINT, "{lost}");
        world.pass(10 * MINUTE);
        assert_eq!((restarts(&world), world.count("start")), (1, 1), "{lost}");
    }
}

/// The agent dies just before or just after everything that leaves it over a restart for health.
#[test]
fn b41_a_crash_at_any_point_of_it_neither_doubles_nor_loses_the_restart() {
    for pace in [Pace::InOrder, Pace::SlowStore, Pace::SlowEngine] {
        let mut points = 0;
        for at in 1.. {
            let deaths = [Side::Before, Side::After].map(|side| {
                let mut world = healthy();
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
                let what = format!("{pace:?} {died:?}: {:?}", world.engine.calls);
                is_running(&world, Starting);
                assert_eq!((restarts(&world), world.count("start")), (1, 2), "{what}");
                died
            });
            if deaths == [None, None] {
                break;
            }
            points += 1;
        }
        assert!(points >= 5, "{pace:?}: {points}");
    }
}

#[test]
fn b41_what_ended_for_its_health_while_no_agent_was_there_is_counted_once() {
    let mut world = deaf(healthy());
    let id = world.container("web");
    let made = world.engine.find_mut(id.as_str());
    (made.phase, made.exit_code) = (Phase::Exited, 0);
    let mut world = world.restart_agent(BOOT);
    world.pass(10_000);
    is_running(&world, Starting);
    assert_eq!((restarts(&world), world.count("start"), world.count("SIG")), (1, 1, 0));
    // Dead again, between the exit and the start.
    let mut world = world.restart_agent(BOOT);
    world.pass(MINUTE);
    assert_eq!((restarts(&world), world.count("start")), (1, 0));
}

#[test]
fn a_healthy_one_is_adopted_without_a_look() {
    let mut world = healthy().restart_agent(BOOT);
    is_running(&world, Healthy);
    assert_eq!(world.engine.calls, ["list"]);
    // Its time as a healthy one goes on.
    world.exit("web", 1);
    is_running(&world, Starting);
    assert_eq!(restarts(&world), 1);
}

#[test]
fn a_verdict_that_came_while_no_agent_was_there_is_found() {
    let mut world = healthy();
    world.turn("web", Unhealthy);
    let world = world.restart_agent(BOOT);
    assert_eq!(world.engine.calls, ["list", "inspect", "SIGTERM", "inspect", "start"]);
    assert_eq!(restarts(&world), 1);
    // One that is left running is looked at for what it says.
    let mut world = started(OnUnhealthy::Report, |_| {});
    world.becomes("web", Unhealthy);
    world.pass(10_000);
    let mut world = world.restart_agent(BOOT);
    assert_eq!(world.engine.calls, ["list", "inspect"]);
    assert_eq!(world.view("web").info, COMPLAINT);
    let at = world.view("web").last_error_at_ms;
    world.pass(10 * MINUTE);
    assert_eq!((world.count("inspect"), world.view("web").last_error_at_ms), (1, at));
}

#[test]
fn after_a_reboot_a_stop_for_health_was_none() {
    let mut world = deaf(healthy());
    world.cut_power();
    let world = world.restart_agent("boot-2");
    is_running(&world, Starting);
    assert_eq!(restarts(&world), 0);
}

#[test]
fn a_lost_event_is_found_by_the_full_compare_and_idle_costs_no_look() {
    let mut world = healthy();
    world.apply(&[&workload("db", |_| {})]);
    world.engine.calls.clear();
    world.pass(10 * MINUTE);
    assert_eq!(world.engine.calls, ["list"; 10]);
    world.turn("web", Unhealthy);
    world.pass(MINUTE);
    let rest = ["list", "inspect", "SIGTERM", "inspect", "start"];
    assert_eq!(world.engine.calls[10..], rest);
    assert_eq!(restarts(&world), 1);
}

#[test]
fn b46_where_a_listing_has_no_health_it_is_read_by_a_look() {
    let mut world = healthy();
    world.engine.list_without_health = true;
    world.apply(&[&workload("db", |_| {})]);
    world.engine.calls.clear();
    world.pass(3 * MINUTE);
    assert_eq!(world.engine.calls, ["list", "inspect"].repeat(3), "of the one with a check");
    is_running(&world, Healthy);
    world.turn("web", Unhealthy);
    world.pass(MINUTE);
    assert_eq!(restarts(&world), 1);
}

#[test]
fn while_the_engine_is_away_nothing_is_sent_and_then_it_is_asked() {
    let mut world = healthy();
    world.engine.gone = true;
    world.becomes("web", Unhealthy);
    let away = Fault::new(FaultKind::Away, "connect", "", "refused");
    world.feed(Event::StreamDown(away));
    world.pass(MINUTE);
    assert_eq!((world.count("SIG"), restarts(&world)), (0, 0));
    // It recovered meanwhile.
    world.turn("web", Healthy);
    world.engine.gone = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
    is_running(&world, Healthy);
    assert_eq!((world.count("SIG"), restarts(&world)), (0, 0));
}

#[test]
fn a_stop_whose_outcome_is_unknown_is_sent_again_and_counted_once() {
    let mut world = healthy();
    world.fail_next("signal", &[FaultKind::Timeout, FaultKind::Away]);
    world.becomes("web", Unhealthy);
    world.pass(MINUTE);
    is_running(&world, Starting);
    assert_eq!(restarts(&world), 1);
}

#[test]
fn changes_of_health_are_told() {
    let mut world = started(OnUnhealthy::Report, |_| {});
    let told = |world: &mut World| {
        let told = std::mem::take(&mut world.transitions);
        told.into_iter().map(|t| (t.from, t.to, t.health, t.info)).collect::<Vec<_>>()
    };
    let running = State::RunningOk;
    let start = told(&mut world).pop().unwrap();
    assert_eq!(start, (Some(State::PendingStarting), running, Some(Starting), String::new()));
    world.becomes("web", Healthy);
    world.becomes("web", Healthy);
    world.becomes("web", Unhealthy);
    let expected = [
        (Some(running), running, Some(Healthy), String::new()),
        (Some(running), running, Some(Unhealthy), COMPLAINT.to_owned()),
    ];
    assert_eq!(told(&mut world), expected);
}
