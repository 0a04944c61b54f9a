//! Containers made anew on request, and workloads that are restarted too often.

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::registry::Registry;
use crate::support::until;

/// Runs from the registry's image.
fn web(registry: &Registry, pull: &str) -> Manifest {
    Manifest::new("web", &["/busybox", "sleep", "100000"])
        .with("image", registry.image("1"))
        .with("pull", pull)
        .with("stop.signal", "SIGKILL")
}

fn one_container(agent: &Agent) {
    until("the old container to be gone", || (agent.containers().len() == 1).then_some(()));
}

#[test]
fn a_rebuild_pulls_and_makes_the_container_anew_in_any_state() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[web(&registry, "missing")]);
    let first = agent.until_state("web", "Running(Ok)");
    // An engine that has the image does not ask for it again, but for a rebuild.
    registry.publish("1");
    let asked = registry.requests();
    assert_eq!(agent.ok(&["rebuild", "web"]), "default/web rebuilt\n");
    assert!(registry.requests() > asked);
    let second = agent.workload("web");
    assert_eq!(second.state_words(), "Running(Ok)");
    assert_ne!(second.container_id, first.container_id);
    assert_ne!(second.image_id, first.image_id);
    assert_eq!((second.uid.as_str(), second.generation), (first.uid.as_str(), 1));
    one_container(&agent);

    agent.ok(&["stop", "web"]);
    let (code, answer) = agent.post("/v1/ms/web/rebuild");
    assert_eq!(code, 202, "{answer}");
    let third = agent.until("web", "running again", |one| {
        one.state == "Running" && one.container_id != second.container_id
    });
    assert_eq!((third.image_id.as_str(), third.restart_count), (second.image_id.as_str(), 0));
    one_container(&agent);
    agent.ok(&["rm", "web"]);
    agent.expect_no_trace();
}

#[test]
fn a_rebuild_that_cannot_be_leaves_the_old_container_running_and_says_why() {
    let mut agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[web(&registry, "missing")]);
    let before = agent.until_state("web", "Running(Ok)");
    registry.refuse();
    let output = agent.run(&["rebuild", "web"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.err.contains("rebuild failed: "), "{output:?}");
    assert!(output.err.contains(&registry.image("1")), "{output:?}");
    let after = agent.workload("web");
    assert_eq!(after.state_words(), "Running(Ok)");
    assert_eq!(after.container_id, before.container_id);
    assert_eq!(after.started_at, before.started_at, "it was not even stopped");
    // Nor is it tried again, by this agent or the next.
    let asked = registry.requests();
    registry.go_on();
    agent.restart();
    agent.until_running(&["web"]);
    assert_eq!(agent.workload("web").container_id, before.container_id);
    assert_eq!(registry.requests(), asked);
}

#[test]
fn a_rebuild_tries_a_failed_update_again() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[Manifest::service("web")]);
    let before = agent.until_state("web", "Running(Ok)");
    registry.refuse();
    agent.deploy_with(&["--wait"], &[web(&registry, "missing")]).expect(1, &["deploy"]);
    assert_eq!(agent.workload("web").failed_update.unwrap().generation, 2);
    registry.go_on();
    agent.ok(&["rebuild", "web"]);
    let after = agent.workload("web");
    assert_eq!((after.observed_generation, after.failed_update), (2, None));
    assert_ne!(after.container_id, before.container_id);
    one_container(&agent);
}

#[test]
fn ten_restarts_in_a_short_time_are_told_and_held_or_paced() {
    let agent = Agent::on(shared());
    let hasty = |name: &str, stuck: &str| {
        let ends = Manifest::shell(name, "exit 1").with("restart.delay", "100ms");
        ends.with("restart.maxDelay", "200ms").with("restart.stuck", stuck)
    };
    let history = agent.docker().history();
    agent.deploy(&[hasty("held", "hold"), hasty("paced", "retry")]);
    let held = agent.until("held", "stuck", |one| one.runtime_state == "STUCK_IN_RESTART");
    assert_eq!((held.state_words().as_str(), held.restart_count), ("Failed(ExecFailed)", 10));
    assert!(held.state_info.starts_with("exitCode=1, and restarted 10 times"), "{held:?}");
    assert_eq!(held.next_attempt_at, 0);
    let log = agent.settled_log();
    assert!(log.contains("default/held: STUCK_IN_RESTART, restarted 10 times"), "{log}");
    agent.until("paced", "restarted on", |one| one.restart_count >= 15);
    assert_eq!(history.starts(&held.container_id), 11, "left alone meanwhile");

    // Whichever runs then: one that ends before it is looked at gives way to the one before it.
    agent.run(&["rebuild", "held"]);
    let again = agent.until("held", "stuck again", |one| {
        one.runtime_state == "STUCK_IN_RESTART" && one.last_error_at > held.last_error_at
    });
    assert_eq!(again.restart_count, 10, "counted from the rebuild on");
    assert_eq!(again.last_error, "exitCode=1 oomKilled=false");
}
