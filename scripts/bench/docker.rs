//! The agent on a real Docker engine, through the recording proxy.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bargee::domain::names::ContainerId;
use bargee::engine::Engine;
use bargee::engine::docker::Docker;

use crate::Result;
use crate::agent::{Agent, Place, manifests, word};
use crate::process;
use crate::proxy::Proxy;
use crate::report::{Report, median};
use crate::stopwatch::{now, pause};

const WORKLOADS: usize = 100;
const EVENTS: usize = 20;

/// Prints the figures.
pub fn measure(report: &mut Report, program: &Path, socket: &Path, quick: bool) -> Result<()> {
    let engine = engine(socket)?;
    let proxy = Proxy::start(socket)?;
    let place = Place::new(program, &proxy.socket())?;
    let agent = place.start()?;
    // Past the first sample of the stats.
    pause(Duration::from_secs(if quick { 2 } else { 12 }));
    memory(report, "0 workloads", &agent, None)?;

    agent.apply(&manifests("idle", WORKLOADS))?;
    agent.wait_for("Running", WORKLOADS as u64)?;
    pause(Duration::from_secs(if quick { 2 } else { 15 }));
    if quick {
        report.note("--quick: no minute of idling");
    } else {
        idle(report, &agent, &proxy)?;
    }
    memory(report, "100 workloads", &agent, Some(8.0))?;
    latency(report, &agent, &proxy, &engine)?;
    drop(agent);

    let agent = place.start()?;
    agent.wait_for("Running", (WORKLOADS - EVENTS) as u64)?;
    pause(Duration::from_secs(if quick { 2 } else { 12 }));
    memory(report, "100 workloads, agent started again", &agent, Some(8.0))?;
    agent.remove_all()
}

/// An engine as the agent uses it.
pub fn engine(socket: &Path) -> Result<Engine> {
    Ok(Engine::Docker(Docker::new(&format!("unix://{}", socket.display()))?))
}

fn memory(report: &mut Report, what: &str, agent: &Agent, goal: Option<f64>) -> Result<()> {
    let memory = process::memory(agent.pid())?;
    let mib = |kib: u64| kib as f64 / 1_024.0;
    report.figure(&format!("memory, {what}: RSS"), mib(memory.rss), "MiB", goal);
    report.figure(&format!("memory, {what}: PSS"), mib(memory.pss), "MiB", None);
    report.figure(&format!("memory, {what}: peak"), mib(memory.peak), "MiB", None);
    Ok(())
}

/// A minute in which nothing happens: one full compare and six samples of the stats.
fn idle(report: &mut Report, agent: &Agent, proxy: &Proxy) -> Result<()> {
    proxy.clear();
    let (begin, before) = (now(), process::work(agent.pid())?);
    pause(Duration::from_secs(60));
    let done = process::work(agent.pid())?.since(&before);
    let minute = begin.elapsed().as_nanos() as f64;
    let percent = |ns: u64| ns as f64 / minute * 100.0;
    let total: u64 = done.cpu_ns.values().sum();
    let stats = done.cpu_ns.get("stats").copied().unwrap_or(0);
    let name = |what| format!("idle minute, 100 workloads: {what}");
    report.figure(&name("CPU without stats"), percent(total - stats), "%", Some(0.05));
    report.figure(&name("CPU with stats"), percent(total), "%", Some(0.1));
    report.figure(&name("bytes written"), done.written as f64, "B", Some(0.0));
    report.figure(&name("wakes"), done.wakes.values().sum::<u64>() as f64, "", None);

    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for exchange in proxy.exchanges() {
        *calls.entry(exchange.line).or_default() += 1;
    }
    let lists = calls.remove("GET /containers/json").unwrap_or(0);
    report.figure(&name("full compares"), lists as f64, "calls", Some(1.0));
    report.figure(&name("other calls"), calls.values().sum::<usize>() as f64, "calls", Some(0.0));
    for (thread, wakes) in done.wakes.iter().filter(|(_, wakes)| **wakes > 0) {
        let cpu = done.cpu_ns.get(thread).copied().unwrap_or(0) as f64 / 1e6;
        report.note(&format!("idle minute: thread {thread} woke {wakes} times, {cpu:.2} ms CPU"));
    }
    Ok(())
}

/// From the event line of an exit leaving the proxy to the state in the API.
fn latency(report: &mut Report, agent: &Agent, proxy: &Proxy, engine: &Engine) -> Result<()> {
    let all = agent.get("/v1/ms")?;
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let mut transitions = agent.transitions()?;
    let (mut whole, mut own) = (Vec::new(), Vec::new());
    for item in all.iter().take(EVENTS) {
        let (uid, id) = (word(item, "uid"), word(item, "containerId"));
        proxy.clear();
        engine.signal(&ContainerId::new(id.as_str()), "SIGKILL").map_err(|f| f.to_string())?;
        while word(&transitions.next()?, "uid") != uid {}
        let shown = agent.get(&format!("/v1/ms/{uid}"))?;
        let end = now();
        if word(&shown, "state") != "Failed" {
            return Err(format!("not shown as failed: {shown}").into());
        }
        let left = proxy.event_left(&[&id, r#""Action":"die""#]).ok_or("no event passed")?;
        let line = format!("GET /containers/{id}/json");
        let looks = proxy.exchanges();
        let look = looks.iter().find(|e| e.line == line && e.begin > left);
        let look = look.ok_or("no inspect followed the event")?;
        whole.push((end - left).as_secs_f64() * 1e3);
        own.push(((end - left).saturating_sub(look.end - look.begin)).as_secs_f64() * 1e3);
    }
    report.figure("event line to API, Docker, inspect included", median(&whole), "ms", Some(5.0));
    report.figure("event line to API, Docker, less the inspect", median(&own), "ms", None);
    let worst = whole.iter().copied().fold(0.0, f64::max);
    report.figure("event line to API, Docker, slowest of 20", worst, "ms", None);
    Ok(())
}
