//! Images that come from a registry.

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::registry::{LAYER_BYTES, Registry};

fn web(registry: &Registry, pull: &str) -> Manifest {
    let words = ["/busybox", "sleep", "100000"];
    Manifest::new("web", &words)
        .with("image", registry.image("1"))
        .with("pull", pull)
        .with("stop.signal", "SIGKILL")
}

#[test]
fn a_missing_image_is_pulled_once_and_the_progress_is_told() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    registry.stall();
    agent.deploy(&[web(&registry, "missing")]);
    let pulling = agent.until("web", "half pulled", |one| {
        one.pull_progress.is_some_and(|pull| pull.done_bytes > 0)
    });
    assert_eq!(
        (pulling.state_words().as_str(), pulling.runtime_state.as_str()),
        ("Pending(Starting)", "PULLING")
    );
    let progress = pulling.pull_progress.unwrap();
    assert!(progress.done_bytes < progress.total_bytes, "{progress:?}");
    assert!(progress.total_bytes >= LAYER_BYTES as u64, "{progress:?}");
    assert!(agent.ok(&["ps"]).contains(" pulled"), "{}", agent.ok(&["ps"]));

    // The registry holds up nobody else, even where they have to be made and stopped.
    agent.deploy(&[Manifest::service("other")]);
    agent.until_running(&["other"]);
    agent.ok(&["stop", "other"]);
    assert_eq!(agent.workload("web").runtime_state, "PULLING");

    registry.go_on();
    let running = agent.until_state("web", "Running(Ok)");
    assert_eq!(running.pull_progress, None);
    let asked = registry.requests();
    let again = web(&registry, "missing").with("env.NEW", "1");
    agent.deploy_with(&["--wait"], &[again]).expect(0, &["deploy"]);
    assert_eq!(registry.requests(), asked, "a present image needs no network");
}

#[test]
fn an_image_is_always_pulled_for_a_new_generation_and_for_nothing_else() {
    let mut agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[web(&registry, "always")]);
    let first = agent.until_state("web", "Running(Ok)");
    registry.publish("1", b'y');
    let asked = registry.requests();
    // Neither for a restart, nor for an agent that comes back.
    agent.ok(&["restart", "web"]);
    agent.restart();
    agent.until_running(&["web"]);
    assert_eq!(registry.requests(), asked);
    assert_eq!(agent.workload("web").image_id, first.image_id);

    let again = web(&registry, "always").with("env.NEW", "1");
    agent.deploy_with(&["--wait"], &[again]).expect(0, &["deploy"]);
    assert!(registry.requests() > asked);
    assert_ne!(agent.workload("web").image_id, first.image_id);
}

#[test]
fn an_image_that_must_not_be_pulled_is_waited_for() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[web(&registry, "never").hasty()]);
    let waiting = agent.until("web", "tried twice", |one| one.failure_count >= 2);
    assert_eq!(waiting.state_words(), "Pending(Starting)");
    assert!(waiting.error_message.contains(&registry.image("1")), "{}", waiting.error_message);
    assert_eq!(registry.requests(), 0);
    // Somebody loads it.
    let path = format!("/images/create?fromImage={}", registry.image("1"));
    agent.docker().post(&path, &serde_json::Value::Null);
    agent.until_running(&["web"]);
}

#[test]
fn a_registry_that_is_away_is_tried_again() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    registry.refuse();
    agent.deploy(&[web(&registry, "missing").hasty(), Manifest::service("other")]);
    let failing = agent.until("web", "tried twice", |one| one.failure_count >= 2);
    assert_eq!((failing.state_words().as_str(), failing.restart_count), ("Pending(Starting)", 0));
    assert!(failing.error_message.contains(&registry.image("1")), "{}", failing.error_message);
    agent.until_running(&["other"]);
    let before = runs(&agent);
    registry.go_on();
    let healed = agent.until_state("web", "Running(Ok)");
    assert_eq!((healed.failure_count, healed.restart_count), (0, 0));
    assert_eq!(before[0], runs(&agent)[0]);
}
