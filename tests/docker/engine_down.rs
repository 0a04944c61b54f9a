//! The engine dies, or is stopped, and comes back. Each test has an engine of its own.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::docker_api::Container;
use crate::support::engine::DockerEngine;
use crate::support::manifest::Manifest;
use crate::support::until;

const LASTING: [&str; 3] = ["always", "never", "on-failure"];

/// Services of every policy, a job that is done, and a service that is stopped.
fn deploy_all(agent: &Agent) {
    let mut all: Vec<_> = LASTING.map(|name| Manifest::service(name).restart(name)).into();
    all.push(Manifest::job("job"));
    all.push(Manifest::service("stopped"));
    agent.deploy(&all.into_iter().map(Manifest::bridged).collect::<Vec<_>>());
    agent.until_running(&LASTING);
    agent.until_state("job", "Succeeded(Ok)");
    agent.ok(&["stop", "stopped"]);
}

/// Ends the engine and its containerd as the kernel does when memory runs out. What supervises the
/// containers lives on.
pub fn kill9(engine: &DockerEngine) {
    for file in ["docker.pid", "exec/containerd/containerd.pid"] {
        let pid = fs::read_to_string(engine.directory().join(file)).unwrap();
        kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    }
}

fn until_away(agent: &Agent) {
    until("the engine to be away", || (!agent.status().engine.up).then_some(()));
}

/// How all stands before the engine is disturbed: containers, and starts that the agent saw.
fn look(agent: &Agent) -> (Vec<Container>, BTreeMap<String, u64>) {
    let starts = agent.workloads().into_iter().map(|one| (one.name, one.started_at));
    (agent.containers(), starts.collect())
}

/// All that is wanted runs again, once and with no restart counted, and the rest is as it was.
fn expect_all(agent: &Agent, (before, starts): &(Vec<Container>, BTreeMap<String, u64>)) {
    until("the engine to be back", || agent.status().engine.up.then_some(()));
    for name in LASTING {
        // What was seen before the engine went away stays on show until it was looked at again.
        let one = agent.until(name, "running again", |one| {
            one.state == "Running" && one.started_at != starts[name]
        });
        assert_eq!((one.restart_count, one.error_message.as_str()), (0, ""), "{name}");
    }
    agent.until_state("job", "Succeeded(Ok)");
    agent.until_state("stopped", "Stopped(Ok)");
    let containers = agent.containers();
    let ids = |all: &[Container]| all.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&containers), ids(before));
    for (now, before) in containers.iter().zip(before) {
        let lasts = LASTING.contains(&now.workload.as_str());
        assert_eq!(now.is_running(), lasts, "{now:?}");
        assert_eq!(now.started_at != before.started_at, lasts, "{now:?}");
    }
}

#[test]
fn b31_after_the_engine_was_killed_all_that_is_wanted_runs_again_and_nothing_is_counted() {
    let engine = DockerEngine::start();
    let mut agent = Agent::on(&engine);
    deploy_all(&agent);
    let before = look(&agent);

    kill9(&engine);
    until_away(&agent);
    // It answers all along, with what it saw last.
    let seen = agent.workload("always");
    assert_eq!(seen.state_words(), "Running(Ok)");
    assert!(seen.state_info.contains("engine"), "{seen:?}");
    assert_eq!(agent.run(&["ps"]).code, 0);
    assert_eq!(agent.get("/health/ready").unwrap().0, 503);
    engine.start_again();
    expect_all(&agent, &before);
    let lines = agent.settled_log();
    assert_eq!(lines.matches("the engine is away").count(), 1, "{lines}");

    // With all containers, and the agent with it.
    let before = look(&agent);
    engine.kill();
    agent.kill9();
    agent.launch();
    assert_eq!(agent.workload("job").desired_state, "running");
    engine.start_again();
    expect_all(&agent, &before);
}

#[test]
fn after_the_engine_was_restarted_in_order_nothing_is_counted_either() {
    let engine = DockerEngine::start();
    let agent = Agent::on(&engine);
    deploy_all(&agent);
    let before = look(&agent);
    // It stops its containers first, and tells of each.
    engine.stop();
    until_away(&agent);
    engine.start_again();
    expect_all(&agent, &before);
}

#[test]
fn what_is_asked_while_the_engine_is_away_is_done_when_it_is_back() {
    let engine = DockerEngine::start();
    let agent = Agent::on(&engine);
    let names = ["stopped", "removed", "changed"];
    agent.deploy(&names.map(Manifest::service));
    agent.until_running(&names);
    engine.stop();
    until_away(&agent);
    agent.ok(&["stop", "stopped", "--no-wait"]);
    agent.ok(&["rm", "removed", "--no-wait"]);
    let changed = Manifest::service("changed").with("env", serde_json::json!({"NEW": "yes"}));
    agent.deploy(&[changed, Manifest::service("added")]);

    engine.start_again();
    agent.until_running(&["changed", "added"]);
    agent.until("changed", "of the new generation", |one| one.observed_generation == 2);
    agent.until_state("stopped", "Stopped(Ok)");
    until("the removal", || (agent.workloads().len() == 3).then_some(()));
    let left =
        || agent.containers().into_iter().map(|one| (one.workload.clone(), one.is_running()));
    let wanted = [("added", true), ("changed", true), ("stopped", false)];
    let wanted = wanted.map(|(name, runs)| (name.to_owned(), runs));
    until("one container each", || left().eq(wanted.clone()).then_some(()));
}

#[test]
fn what_is_stopped_stays_stopped() {
    let engine = DockerEngine::start();
    let mut agent = Agent::on(&engine);
    agent.deploy(&[Manifest::service("web"), Manifest::service("other")]);
    agent.until_running(&["web", "other"]);
    agent.ok(&["stop", "web"]);
    let stopped = agent.container("web");
    let expect_stopped = |agent: &Agent| {
        agent.until_running(&["other"]);
        assert_eq!(agent.until_state("web", "Stopped(Ok)").desired_state, "stopped");
        let now = agent.container("web");
        assert_eq!((now.is_running(), &now.started_at), (false, &stopped.started_at));
    };
    agent.restart();
    expect_stopped(&agent);
    agent.kill9_and_start();
    expect_stopped(&agent);
    engine.stop();
    until_away(&agent);
    engine.start_again();
    until("the engine to be back", || agent.status().engine.up.then_some(()));
    expect_stopped(&agent);

    agent.ok(&["start", "web"]);
    let web = agent.workload("web");
    assert_eq!((web.state_words().as_str(), web.restart_count), ("Running(Ok)", 0));
    assert_eq!(web.container_id, stopped.id);
}
