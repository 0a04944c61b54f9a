//! Nothing happens, and so nothing is done: an hour of made-up time, effect by effect.

use super::*;
use crate::domain::effect::Effect;
use crate::domain::time::Now;
use crate::limits::FULL_COMPARE_MS;

const MINUTE: u64 = 60_000;

/// What the machine did by itself.
#[derive(Default)]
struct Hour {
    /// Deadlines that came.
    wakes: u64,
    listings: u64,
    /// Everything else.
    effects: Vec<Effect>,
}

/// Lets the machine have its deadlines, and answers its listings; nothing else happens.
fn idle(world: &mut World, ms: u64) -> Hour {
    let mut hour = Hour::default();
    let end = world.now + ms;
    while let Some(next) = world.machine.next_deadline().filter(|next| next.0 <= end) {
        world.now = next.0;
        let now = Now { tick: next, wall_ms: next.0 };
        hour.wakes += 1;
        let mut effects = world.machine.step(now, Event::Deadline);
        while !effects.is_empty() {
            let mut answers = Vec::new();
            for effect in effects {
                match effect {
                    Effect::List(id) => {
                        hour.listings += 1;
                        answers.push(Event::Listing(id, world.engine.list(world.now)));
                    }
                    other => hour.effects.push(other),
                }
            }
            let steps = answers.into_iter().map(|event| world.machine.step(now, event));
            effects = steps.flatten().collect();
        }
    }
    world.now = end;
    hour
}

/// Fifty that run, and of each kind that has come to rest one.
fn at_rest() -> World {
    let mut world = World::new();
    let running: Vec<_> = (0..50).map(|n| workload(&format!("w{n:02}"), |_| {})).collect();
    world.apply(&running.iter().collect::<Vec<_>>());
    let job = policy("job", RestartPolicy::OnFailure);
    let failed = policy("failed", RestartPolicy::Never);
    world.apply(&[&job, &failed, &workload("stopped", |_| {})]);
    world.exit("job", 0);
    world.exit("failed", 1);
    world.verb("stopped", Verb::Stop);
    assert_eq!(world.state("job"), State::SucceededOk);
    assert_eq!(world.state("failed"), State::FailedExecFailed);
    assert_eq!(world.state("stopped"), State::StoppedOk);
    world.pass(2 * MINUTE);
    assert_eq!(world.running(), 50);
    world
}

#[test]
fn an_idle_hour_is_sixty_listings_and_nothing_else() {
    let mut world = at_rest();
    let hour = idle(&mut world, 60 * MINUTE);
    assert_eq!((hour.wakes, hour.listings), (60, 60));
    assert!(hour.effects.is_empty(), "{:?}", hour.effects);
    assert_eq!(world.machine.flush_all(), [], "nothing had to be written");
}

/// The same with what is known of the agent before it only.
#[test]
fn so_it_is_after_an_agent_that_started_again() {
    let mut world = at_rest().restart_agent(BOOT);
    // What runs as recorded is believed; how a container ended is looked at once.
    assert_eq!(world.engine.calls, ["list", "inspect", "inspect", "inspect"]);
    world.pass(MINUTE);
    let hour = idle(&mut world, 60 * MINUTE);
    assert_eq!((hour.wakes, hour.listings), (60, 60));
    assert!(hour.effects.is_empty(), "{:?}", hour.effects);
}

/// What is done by hand while no event tells of it shows in the next full compare.
#[test]
fn what_no_event_tells_is_seen_within_a_minute() {
    let mut world = at_rest();
    let id = world.container("w07");
    idle(&mut world, FULL_COMPARE_MS / 2);
    world.engine.find_mut(id.as_str()).phase = Phase::Exited;
    world.pass(FULL_COMPARE_MS);
    assert_eq!((world.state("w07"), world.running()), (State::RunningOk, 50));
}
