//! The crash matrix: the agent dies just before and just after everything that leaves it, and a new
//! one starts. At rest there is one running container for each workload that is wanted running, of
//! the generation that was acknowledged, and nothing beside.

use super::*;
use crate::domain::intent::Intent;
use world::{Due, Fuse, Mishap, Pace, Side, Way};

mod check;

mod scenario;

mod trial;

use scenario::{PAIRS, SCENARIOS};
use trial::Trial;

const PACES: [Pace; 3] = [Pace::InOrder, Pace::SlowStore, Pace::SlowEngine];
/// When a call that the engine took on before the agent died is done at last.
const DUES: [Due; 4] = [Due::List, Due::Miss, Due::In(1_000), Due::In(10_000)];
/// What is tried where every pair of points would be too much otherwise.
const FEW: [Due; 1] = [Due::In(10_000)];

/// Everything that the death of an agent at this may mean, the plain one first.
fn sides(death: &str, dues: &[Due]) -> Vec<(Side, bool)> {
    let is_call = death.contains("call of");
    let is_look = death.contains("call of Inspect") || death.contains("list");
    let mut sides = vec![(Side::Before, false)];
    if !is_look {
        // Nothing differs after a look that was not heard of.
        sides.push((Side::After, false));
    }
    if is_call && !is_look {
        let late = dues.iter().map(|due| Side::Late(*due));
        sides.extend(late.clone().map(|late| (late, false)));
        if death.contains("call of Create") {
            sides.extend(late.map(|late| (late, true)));
        }
    }
    sides
}

/// Tries every side of every point, until a trial has no such point; how many trials there were.
fn at_every_point(trial: &Trial, dues: &[Due], mut each: impl FnMut(&Trial)) -> usize {
    let mut trials = 0;
    // What dies before its mishap never has it.
    let first = trial.mishap.filter(|_| trial.fuses.is_empty()).map_or(1, |mishap| mishap.at);
    for at in first.. {
        let with = |(side, holds_names): (Side, bool)| {
            let mut trial = Trial { holds_names, ..trial.clone() };
            trial.fuses.push(Fuse { at, side });
            trial
        };
        let deaths = with((Side::Before, false)).deaths();
        let Some(death) = deaths.get(trial.fuses.len()) else { break };
        for side in sides(death, dues) {
            each(&with(side));
            trials += 1;
        }
    }
    trials
}

#[test]
fn a_crash_at_any_point_loses_doubles_and_leaves_nothing() {
    for scenario in SCENARIOS {
        for pace in PACES {
            let trial = Trial { pace, ..Trial::of(scenario) };
            trial.check();
            let trials = at_every_point(&trial, &DUES, |trial| drop(trial.check()));
            assert!(trials > 10, "{trials} of {}", scenario.name);
        }
    }
}

/// The second deed is asked for at every moment of the first, and the agent dies at any point.
#[test]
fn a_crash_amid_two_deeds_loses_doubles_and_leaves_nothing() {
    for scenario in PAIRS {
        for pace in PACES {
            for at in 1.. {
                let trial = Trial { pace, meanwhile: Some(at), ..Trial::of(scenario) };
                if !trial.check().happened {
                    break;
                }
                at_every_point(&trial, &FEW, |trial| drop(trial.check()));
            }
        }
    }
}

/// The next agent dies as well, at any point of what it does first.
#[test]
fn a_crash_during_the_recovery_loses_doubles_and_leaves_nothing() {
    for scenario in SCENARIOS {
        at_every_point(&Trial::of(scenario), &FEW, |trial| {
            at_every_point(trial, &FEW, |trial| drop(trial.check()));
        });
    }
}

/// Lets each mishap befall everything that it can.
fn at_every_call(trial: &Trial, ways: &[Way], mut each: impl FnMut(&Trial)) {
    for at in 1..=trial.left() {
        for &way in ways {
            let trial = Trial { mishap: Some(Mishap { at, way }), ..trial.clone() };
            if trial.happens() {
                each(&trial);
            }
        }
    }
}

/// The power goes, so that the engine dies as well, and with it whatever runs.
#[test]
fn a_power_cut_at_any_point_loses_doubles_and_leaves_nothing() {
    for scenario in SCENARIOS.iter().chain(PAIRS) {
        let trial = Trial { between: World::cut_power, ..Trial::of(scenario) };
        at_every_point(&trial, &[], |trial| drop(trial.check()));
    }
}

/// A call is answered with a fault that says nothing about what was done.
#[test]
fn a_call_of_unknown_outcome_loses_doubles_and_leaves_nothing() {
    let mut ways = Vec::new();
    for kind in [FaultKind::Timeout, FaultKind::Away, FaultKind::Garbled] {
        ways.extend([Way::NotDone(kind), Way::Done(kind)]);
        // The next listing may be later than the second look for what comes late.
        let soon = DUES.into_iter().filter(|due| *due != Due::List);
        ways.extend(soon.map(|due| Way::DoneLater(kind, due)));
    }
    for scenario in SCENARIOS.iter().chain(PAIRS) {
        at_every_call(&Trial::of(scenario), &ways, |trial| drop(trial.check()));
    }
}

/// A call takes long, and the agent dies at any point before it is done or after.
#[test]
fn a_crash_during_a_slow_call_loses_doubles_and_leaves_nothing() {
    let ways = [Way::Slow(Due::In(15_000)), Way::DoneLater(FaultKind::Timeout, Due::In(15_000))];
    for scenario in PAIRS {
        at_every_call(&Trial::of(scenario), &ways, |trial| {
            trial.check();
            at_every_point(trial, &FEW, |trial| drop(trial.check()));
        });
    }
}

/// The store fails once, or stalls for 20 s, at any commit.
#[test]
fn a_store_that_fails_or_stalls_loses_doubles_and_leaves_nothing() {
    let ways = [Way::Fails, Way::Stalls(20_000)];
    for scenario in SCENARIOS.iter().chain(PAIRS) {
        at_every_call(&Trial::of(scenario), &ways, |trial| drop(trial.check()));
    }
}

/// And the agent dies at any point after that.
#[test]
fn a_crash_after_the_store_failed_loses_doubles_and_leaves_nothing() {
    let ways = [Way::Fails, Way::Stalls(20_000)];
    for scenario in PAIRS {
        at_every_call(&Trial::of(scenario), &ways, |trial| {
            at_every_point(trial, &FEW, |trial| drop(trial.check()));
        });
    }
}

// --- without the journal -----------------------------------------------------------------------

/// Sooner than orphans are swept: then the journal is all there is.
const SOON_MS: u64 = 60_000;

/// What is wrong at rest in all trials of `scenarios` if `forget` is done to the journal between
/// two agents, of those in which nothing is with the journal as it was.
fn wrong_without(scenarios: &[&str], forget: fn(&mut World)) -> Vec<String> {
    let slow = [Way::Slow(Due::In(15_000))];
    let mut wrong = Vec::new();
    let mut each = |trial: &Trial| {
        let with = trial.run().faults;
        let without = Trial { between: forget, ..trial.clone() }.run().faults;
        wrong.extend(without.into_iter().filter(|_| with.is_empty()));
    };
    let all = SCENARIOS.iter().chain(PAIRS);
    for scenario in all.filter(|scenario| scenarios.contains(&scenario.name)) {
        let trial = Trial { rest_ms: SOON_MS, ..Trial::of(scenario) };
        at_every_point(&trial, &FEW, &mut each);
        at_every_call(&trial, &slow, |trial| {
            at_every_point(trial, &FEW, &mut each);
        });
    }
    wrong
}

fn forget_if(world: &mut World, is_meant: impl Fn(&Intent) -> bool) {
    world.store.kept.entries.retain(|_, entry| !is_meant(&entry.intent));
}

/// As if nobody knew what to do for such an entry.
fn switch_off(world: &mut World, is_meant: impl Fn(&Intent) -> bool) {
    let kept = world.store.kept.entries.values_mut();
    for entry in kept.filter(|entry| is_meant(&entry.intent)) {
        let kind = entry.intent.kind().to_owned();
        entry.intent = Intent::Unreadable { kind, text: "nobody handles it".to_owned() };
    }
}

#[test]
fn with_a_handler_switched_off_entries_are_left() {
    let check = |scenario: &'static str, switch_off: fn(&mut World)| {
        let wrong = wrong_without(&[scenario], switch_off);
        let left = wrong.iter().any(|fault| fault.starts_with("entries are left"));
        assert!(left, "{scenario}: {wrong:#?}");
    };
    check("create", |world| switch_off(world, |i| matches!(i, Intent::Create { .. })));
    check("remove", |world| switch_off(world, |i| matches!(i, Intent::Remove { .. })));
    check("update", |world| switch_off(world, |i| matches!(i, Intent::Replace { .. })));
}

fn are_left_behind(wrong: &[String]) -> bool {
    wrong.iter().any(|fault| fault.contains("is left behind"))
}

/// A workload is gone with its row while the engine is still busy with its create.
#[test]
fn without_the_entries_of_creates_containers_are_left_behind() {
    let wrong = wrong_without(&["apply and remove", "update and remove"], |world| {
        forget_if(world, |intent| matches!(intent, Intent::Create { .. }));
    });
    assert!(are_left_behind(&wrong), "{wrong:#?}");
}

/// An orphan was recognised, and is in no row.
#[test]
fn without_the_entries_of_removals_containers_are_left_behind() {
    let wrong = wrong_without(&["orphan", "running orphan"], |world| {
        forget_if(world, |intent| matches!(intent, Intent::Remove { .. }));
    });
    assert!(are_left_behind(&wrong), "{wrong:#?}");
}

/// What goes is in the row of its workload as well, written together with the entry, until it is
/// gone. So these entries hold changes up, and show what is in flight; the row alone would do.
#[test]
fn what_a_workload_removes_is_in_its_row_as_well() {
    let scenarios: Vec<&str> = SCENARIOS.iter().chain(PAIRS).map(|s| s.name).collect();
    let orphans = ["orphan", "running orphan"];
    let of_rows: Vec<&str> = scenarios.into_iter().filter(|s| !orphans.contains(s)).collect();
    let wrong = wrong_without(&of_rows, |world| {
        forget_if(world, |intent| !matches!(intent, Intent::Create { .. }));
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
