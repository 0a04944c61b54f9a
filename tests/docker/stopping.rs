//! The agent is told to end while something is under way. It ends in time, touches no workload, and
//! the next one goes on.

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::Proxy;
use crate::support::registry::Registry;
use crate::support::until;

/// An agent behind a proxy, with a workload that nothing may happen to.
fn with_bystander(proxy: &Proxy) -> Agent {
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    agent.deploy(&[Manifest::service("bystander")]);
    agent.until_running(&["bystander"]);
    agent
}

#[test]
fn b20_while_it_pulls() {
    let registry = Registry::start();
    registry.stall();
    let proxy = Proxy::start(&shared().socket());
    let mut agent = with_bystander(&proxy);
    let before = runs(&agent);
    let pulled = Manifest::new("web", &["/busybox", "sleep", "100000"]);
    let pulled = pulled.with("image", registry.image("1")).with("pull", "missing");
    agent.deploy(&[pulled]);
    agent.until("web", "pulling", |one| one.runtime_state == "PULLING");
    agent.sigterm();
    assert_eq!(runs(&agent), before);

    registry.go_on();
    agent.start();
    agent.until_running(&["web"]);
    assert_eq!(agent.container("bystander").started_at, before[0].2);
}

/// Holds requests that contain `words` back and ends the agent meanwhile. They reach the engine
/// late, when nobody waits for them any more, or not at all.
fn while_held(words: &str, late: bool) {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = with_bystander(&proxy);
    let before = runs(&agent);
    proxy.hold(words);
    agent.deploy(&[Manifest::service("web").bridged()]);
    proxy.wait_held();
    agent.sigterm();
    if late {
        proxy.release();
    } else {
        proxy.drop_held();
    }
    agent.start();
    agent.until_running(&["web"]);
    // An engine that is still busy with the late call may make a second one.
    until("one container", || (agent.containers().len() == 2).then_some(()));
    assert_eq!(agent.container("web").id, agent.workload("web").container_id);
    assert_eq!(agent.workload("web").restart_count, 0);
    let bystander = agent.container("bystander");
    assert_eq!((bystander.id, bystander.started_at), (before[0].1.clone(), before[0].2.clone()));
}

#[test]
fn b20_while_it_creates_and_the_call_is_lost() {
    while_held("/containers/create", false);
}

#[test]
fn b20_while_it_creates_and_the_call_comes_late() {
    while_held("/containers/create", true);
}

#[test]
fn b20_while_it_starts_and_the_call_is_lost() {
    while_held("/start", false);
}

#[test]
fn b20_while_it_starts_and_the_call_comes_late() {
    while_held("/start", true);
}

#[test]
fn b20_while_it_stops_and_removes() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = with_bystander(&proxy);
    let stubborn =
        |name| Manifest::shell(name, "trap '' TERM; sleep 100000").with("stop.grace", "3s");
    agent.deploy(&[stubborn("stopped"), stubborn("removed")]);
    agent.until_running(&["stopped", "removed"]);
    let before = runs(&agent);
    agent.ok(&["stop", "stopped", "--no-wait"]);
    agent.ok(&["rm", "removed", "--no-wait"]);
    for name in ["stopped", "removed"] {
        agent.until_state(name, "Stopping(RequestedAtRuntime)");
    }
    agent.sigterm();
    assert_eq!(runs(&agent), before);
    assert!(agent.containers().iter().all(|one| one.is_running()));

    agent.start();
    agent.until_state("stopped", "Stopped(Ok)");
    assert_eq!(agent.container("stopped").inspect["State"]["ExitCode"], 137);
    until("the removal", || (agent.workloads().len() == 2).then_some(()));
    assert_eq!(agent.containers().len(), 2);
    assert_eq!(agent.container("bystander").started_at, before[0].2);
}

#[test]
fn b20_while_it_is_listened_to() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = with_bystander(&proxy);
    let mut events = agent.events();
    let log = agent.follow(&["logs", "-f", "bystander"]);
    events.until("default/bystander", "Running(Ok)");
    agent.sigterm();
    assert_eq!(log.next(), None);
    while events.next().is_some() {}
    assert_ne!(events.code(), 101, "a panic");
}
