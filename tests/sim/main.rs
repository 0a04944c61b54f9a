//! The simulation: one seed replays a whole world of the real machine, an engine, a store and a
//! clock in memory, with everything that goes wrong in it. `docs/architecture.md` says how to run
//! it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a failing test says what it saw")]

mod acts;
mod agent;
mod checkers;
mod draw;
mod engine;
mod faults;
mod found;
mod hands;
#[path = "../support/memory_engine/mod.rs"]
mod memory_engine;
mod mutation;
mod random;
mod report;
mod run;
mod shrink;
mod store;
mod stream;
mod wishes;
mod world;

use bargee::os::clock;

use acts::{Personality, Script};

/// Steps when nobody says how many.
const STEPS: u64 = 1_000_000;
/// Where the seeds begin when nobody says so. A fresh one at each run would have a change fail for
/// what was there before it.
const BASE: u64 = 2_000_000;

/// Says what is wrong with a world: its last steps, and the smallest world that shows the same.
fn tell(seed: u64, script: &Script, checker: &'static str) -> String {
    let small = shrink::shrink(script, checker, None);
    let outcome = run::run(&small, None, true);
    let violation = outcome.violation.map_or_else(String::new, |found| found.to_string());
    let trace = outcome.trace.join("\n");
    let small = report::script(&small);
    format!(
        "{trace}\n\n{violation}\n\nThe smallest world found that shows it:\n{small}\n\n\
         All of it again: BARGEE_SIM_SEED={seed} cargo test --test sim many"
    )
}

/// The script of a seed, on the engine that was asked for.
fn script_of(seed: u64) -> Script {
    let mut script = draw::script(seed);
    match std::env::var("BARGEE_SIM_ENGINE").as_deref() {
        Err(_) => {}
        Ok("docker") => script.engine = Personality::Docker,
        Ok("live-restore") => script.engine = Personality::LiveRestore,
        Ok("podman") => script.engine = Personality::Podman,
        Ok(other) => panic!("BARGEE_SIM_ENGINE is no engine of this world: {other}"),
    }
    script
}

/// Runs the world of a seed; how many steps that took.
fn check(seed: u64) -> u64 {
    let script = script_of(seed);
    let outcome = run::run(&script, None, false);
    if let Some(violation) = outcome.violation {
        panic!("seed {seed}:\n{}", tell(seed, &script, violation.checker));
    }
    outcome.steps
}

fn set(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is to be a number: {text}")))
}

/// From [`BASE`] on, from the one that was asked for, or, with `BARGEE_SIM_FRESH`, from one that is
/// drawn from the time and that nobody has seen before.
#[test]
fn many_seeds_end_as_declared() {
    let (given, wanted) = (set("BARGEE_SIM_SEED"), set("BARGEE_SIM_STEPS"));
    if let (Some(seed), None) = (given, wanted) {
        check(seed);
        return;
    }
    let fresh = set("BARGEE_SIM_FRESH").map(|_| clock::wall_ms().wrapping_mul(1_000));
    let base = given.or(fresh).unwrap_or(BASE);
    let wanted = wanted.unwrap_or(STEPS);
    println!("seeds from {base} on, {wanted} steps");
    let (mut steps, mut seed) = (0, base);
    while steps < wanted {
        steps += if set("BARGEE_SIM_SURVEY").is_some() { survey(seed) } else { check(seed) };
        seed += 1;
    }
    println!("{steps} steps in {} worlds", seed - base);
}

/// Only says that something is wrong with a seed, and goes on.
fn survey(seed: u64) -> u64 {
    let outcome = run::run(&script_of(seed), None, false);
    if let Some(violation) = outcome.violation {
        println!("seed {seed}: {violation}");
    }
    outcome.steps
}

/// The same seeds each time.
#[test]
fn first_seeds_end_as_declared() {
    for seed in 0..300 {
        check(seed);
    }
}

#[test]
fn a_seed_replays_the_same_world() {
    for seed in [3, 71, 254] {
        let script = draw::script(seed);
        let (first, second) = (run::run(&script, None, true), run::run(&script, None, true));
        assert!(first.trace.len() > 10, "{:?}", first.trace);
        assert_eq!((first.steps, first.trace), (second.steps, second.trace), "seed {seed}");
    }
}
