//! Engines whose containers go on when they end: an exit under them is an exit.

use super::engine::kill_engine;
use super::*;
use crate::domain::observed::Capabilities;

fn away() -> Fault {
    Fault::new(FaultKind::Away, "connect", "", "refused")
}

fn stream_up(world: &mut World) {
    let capabilities = Capabilities { containers_outlive: true };
    world.engine.gone = false;
    world.feed(Event::StreamUp(EngineInfo { capabilities, ..EngineInfo::default() }));
}

fn begin() -> World {
    let mut world = World::new();
    stream_up(&mut world);
    world.apply(&[
        &policy("always", RestartPolicy::Always),
        &policy("on-failure", RestartPolicy::OnFailure),
        &policy("never", RestartPolicy::Never),
        &policy("job", RestartPolicy::OnFailure),
    ]);
    world.pass(40_000);
    world
}

fn end(world: &mut World, name: &str, code: i32) {
    let made = world.engine.find_mut(world.container(name).clone().as_str());
    (made.phase, made.exit_code) = (Phase::Exited, code);
}

fn end_all(world: &mut World) {
    for (name, code) in [("always", 1), ("on-failure", 1), ("never", 1), ("job", 0)] {
        end(world, name, code);
    }
}

fn check_all_judged(world: &World) {
    assert_eq!(world.state("never"), State::FailedExecFailed);
    assert_eq!(world.state("job"), State::SucceededOk);
    for name in ["always", "on-failure"] {
        assert_eq!(world.state(name), State::RunningOk, "{name}");
        assert_eq!(world.view(name).restart_count, 1, "{name}");
        assert_eq!(world.view(name).last_error, "exitCode=1 oomKilled=false", "{name}");
    }
}

#[test]
fn an_exit_while_the_engine_was_away_is_judged_as_any_exit() {
    let mut world = begin();
    world.engine.gone = true;
    world.feed(Event::StreamDown(away()));
    end_all(&mut world);
    world.pass(20_000);
    stream_up(&mut world);
    world.pass(1_000);
    check_all_judged(&world);
}

/// Nor does a fresh agent know what kind of engine is away.
#[test]
fn an_exit_under_an_engine_that_a_fresh_agent_finds_away_is_one_too() {
    let mut world = begin();
    world.engine.gone = true;
    end_all(&mut world);
    let mut world = world.restart_agent(BOOT);
    world.feed(Event::StreamDown(away()));
    world.pass(20_000);
    stream_up(&mut world);
    world.pass(1_000);
    check_all_judged(&world);
}

/// With the device everything ends.
#[test]
fn an_exit_with_another_boot_is_an_interruption_all_the_same() {
    let mut world = begin();
    kill_engine(&mut world);
    let mut world = world.restart_agent("another boot");
    stream_up(&mut world);
    world.pass(1_000);
    for name in ["always", "on-failure", "never", "job"] {
        assert_eq!(world.state(name), State::RunningOk, "{name}");
        assert_eq!(world.view(name).restart_count, 0, "{name}");
    }
}
