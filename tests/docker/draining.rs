//! With `shutdown.policy: drain` the agent stops its workloads before it ends, and the next one
//! starts them again.

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

/// An agent that drains.
fn draining() -> Agent {
    let mut agent = Agent::new(shared(), &shared().url());
    agent.set("BARGEE_SHUTDOWN_POLICY", "drain");
    agent.start();
    agent
}

/// Ends by nothing but SIGKILL.
fn stubborn(name: &str, grace: &str) -> Manifest {
    let line = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    Manifest::shell(name, line).with("stop.grace", grace)
}

/// It is told of a signal from now on.
fn until_it_listens(agent: &Agent, name: &str) {
    assert_eq!(agent.follow(&["logs", "-f", name]).next().as_deref(), Some("ready"));
}

#[test]
fn all_are_stopped_and_started_again_and_meanwhile_reads_are_served_and_changes_refused() {
    let mut agent = draining();
    let job = Manifest::service("job").restart("never");
    let off = Manifest::service("off");
    agent.deploy(&[Manifest::service("web"), stubborn("deaf", "4s"), job, off]);
    agent.until_running(&["web", "deaf", "job", "off"]);
    until_it_listens(&agent, "deaf");
    agent.ok(&["stop", "off"]);
    agent.tell();
    agent.until("deaf", "being stopped", |one| one.state == "Stopping");
    let refused = agent.run(&["start", "off"]);
    assert!(
        refused.err.starts_with("error: the agent ends, and stops its workloads"),
        "{refused:?}"
    );
    assert_eq!((refused.code, agent.post("/v1/ms/off/start").0), (1, 503));
    assert!(agent.condition("draining").is_some());
    agent.until_ended();
    assert!(agent.containers().iter().all(|one| one.status == "exited"));
    assert_eq!(agent.container("deaf").inspect["State"]["ExitCode"], 137);
    let log = agent.log();
    assert!(log.contains("draining: stopping 3 workloads within 3m"), "{log}");
    assert!(log.contains("drained: 3 workloads stopped in "), "{log}");

    agent.start();
    for one in agent.until_running(&["web", "deaf", "job"]) {
        assert_eq!((one.restart_count, one.last_error.as_str()), (0, ""), "{}", one.name);
    }
    agent.until_state("off", "Stopped(Ok)");
    assert_eq!(agent.containers().len(), 4);
}

#[test]
fn a_second_signal_leaves_the_rest_running() {
    let mut agent = draining();
    agent.deploy(&[stubborn("deaf", "60s").with("schedule", 2), Manifest::service("web")]);
    agent.until_running(&["deaf", "web"]);
    until_it_listens(&agent, "deaf");
    let before = agent.container("deaf");
    agent.tell();
    // It starts last and is stopped first.
    until("web to be stopped", || (!agent.container("web").is_running()).then_some(()));
    agent.tell();
    agent.until_ended();
    assert_eq!(agent.container("deaf"), before);
    agent.start();
    agent.until_running(&["web", "deaf"]);
    let deaf = agent.container("deaf");
    assert_eq!((deaf.id, deaf.started_at), (before.id, before.started_at));
    assert_eq!(agent.workload("web").restart_count, 0);
}

#[test]
fn an_agent_that_is_killed_in_a_drain_loses_nothing() {
    let mut agent = draining();
    let first = |name: &str, schedule: u32| Manifest::service(name).with("schedule", schedule);
    let deaf = stubborn("deaf", "60s").with("schedule", 20);
    agent.deploy(&[first("last", 10), deaf, first("first", 30).restart("never")]);
    agent.until_running(&["last", "deaf", "first"]);
    until_it_listens(&agent, "deaf");
    let before = runs(&agent);
    agent.tell();
    agent.until("deaf", "being stopped", |one| one.state == "Stopping");
    assert!(!agent.container("first").is_running());
    agent.kill9_and_start();
    agent.until_running(&["last", "deaf", "first"]);
    let after = runs(&agent);
    assert_eq!(after.len(), 3);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.1, after.1);
        assert_eq!(before.2 == after.2, before.0 != "first", "{before:?} {after:?}");
        assert_eq!(agent.workload(&after.0).restart_count, 0);
    }
}

#[test]
fn the_time_of_each_is_that_of_the_configuration() {
    let mut agent = Agent::new(shared(), &shared().url());
    agent.set("BARGEE_SHUTDOWN_POLICY", "drain");
    agent.set("BARGEE_SHUTDOWN_PER_CONTAINER", "1s");
    agent.start();
    agent.deploy(&[stubborn("deaf", "10m")]);
    agent.until_running(&["deaf"]);
    until_it_listens(&agent, "deaf");
    agent.tell();
    agent.until_ended();
    assert_eq!(agent.container("deaf").inspect["State"]["ExitCode"], 137);
}
