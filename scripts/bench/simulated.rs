//! The agent on the scripted engine: a thousand workloads, and its own part of an event's way.

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::agent::{Agent, Place, manifests, word};
use crate::process;
use crate::report::{Report, median};
use crate::scripted::Scripted;
use crate::stopwatch::{now, pause};

const WORKLOADS: usize = 1_000;
const EVENTS: usize = 50;

/// Prints the figures.
pub fn measure(report: &mut Report, program: &Path) -> Result<()> {
    let engine = Scripted::start()?;
    let place = Place::new(program, &engine.socket())?;
    let agent = place.start()?;
    let mut transitions = agent.transitions()?;
    let begin = now();
    // A body holds a megabyte at most.
    for part in 0..4 {
        agent.apply(&manifests(&format!("app-{part}"), WORKLOADS / 4))?;
    }
    let took = transitions.running(WORKLOADS)? - begin;
    drop(transitions);
    report.figure("scripted engine: 1000 to RUNNING", took.as_secs_f64(), "s", None);
    memory(report, "1000 workloads, after their start", &agent)?;
    latency(report, &engine, &agent)?;
    drop(agent);

    engine.take_calls();
    let begin = now();
    let agent = place.start()?;
    agent.wait_for("Running", (WORKLOADS - EVENTS) as u64)?;
    let took = begin.elapsed().as_secs_f64();
    report.figure("agent started again, 1000 recorded: ready in", took, "s", None);
    let calls = engine.take_calls();
    let calls = |name: &str| calls.get(name).copied().unwrap_or(0) as f64;
    let name = |what| format!("agent started again, 1000 recorded: {what}");
    report.figure(&name("lists"), calls("GET /containers/json"), "calls", Some(1.0));
    // Those that were ended are looked at; what runs is not.
    let looks = (calls("GET json") - EVENTS as f64).max(0.0);
    report.figure(&name("inspects of what runs"), looks, "calls", Some(0.0));
    report.figure(&name("starts"), calls("POST start"), "calls", Some(0.0));
    // One sample of the stats and one more look at the rows.
    pause(Duration::from_secs(12));
    memory(report, "1000 workloads, agent started again", &agent)
}

fn memory(report: &mut Report, what: &str, agent: &Agent) -> Result<()> {
    let memory = process::memory(agent.pid())?;
    let mib = |kib: u64| kib as f64 / 1_024.0;
    report.figure(&format!("memory, {what}: RSS"), mib(memory.rss), "MiB", Some(16.0));
    report.figure(&format!("memory, {what}: PSS"), mib(memory.pss), "MiB", None);
    report.figure(&format!("memory, {what}: peak"), mib(memory.peak), "MiB", None);
    Ok(())
}

/// From the event line written to the state in the API, the inspect included.
fn latency(report: &mut Report, engine: &Scripted, agent: &Agent) -> Result<()> {
    let all = agent.get("/v1/ms")?;
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let mut transitions = agent.transitions()?;
    let mut taken = Vec::new();
    for item in all.iter().take(EVENTS) {
        let uid = word(item, "uid");
        let began = engine.end(&word(item, "containerId"))?;
        while word(&transitions.next()?, "uid") != uid {}
        let shown = agent.get(&format!("/v1/ms/{uid}"))?;
        taken.push(began.elapsed().as_secs_f64() * 1e3);
        if word(&shown, "state") != "Failed" {
            return Err(format!("not shown as failed: {shown}").into());
        }
    }
    let worst = taken.iter().copied().fold(0.0, f64::max);
    report.figure("event line to API, scripted engine", median(&taken), "ms", Some(5.0));
    report.figure("event line to API, scripted engine, slowest of 50", worst, "ms", None);
    Ok(())
}
