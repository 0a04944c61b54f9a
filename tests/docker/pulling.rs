//! Images that come from a registry.

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::registry::{LAYER_BYTES, Registry};
use crate::support::strace::Strace;
use crate::support::until;

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
    registry.publish("1");
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

/// Docker ends a pull when the connection on which it was asked for is closed, and then it leaves
/// the registry.
#[test]
fn a_pull_that_nobody_wants_any_more_is_ended_by_the_engine() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    registry.publish("2");
    registry.trickle();
    let half = |name: &str| {
        agent.until(name, "half pulled", |one| {
            one.pull_progress.is_some_and(|pull| pull.done_bytes > 0)
        });
    };
    let next = Manifest::new("next", &["/busybox", "sleep", "100000"])
        .with("image", registry.image("2"))
        .with("pull", "missing")
        .with("stop.signal", "SIGKILL");
    let ends: [fn(&Agent); 3] = [
        |agent| drop(agent.ok(&["stop", "web"])),
        |agent| agent.deploy(&[Manifest::service("web")]),
        |agent| drop(agent.ok(&["rm", "web"])),
    ];
    for (round, end) in ends.into_iter().enumerate() {
        agent.deploy(&[web(&registry, "missing")]);
        half("web");
        agent.deploy(std::slice::from_ref(&next));
        agent.until("next", "without a place", |one| {
            one.state_info.starts_with("waits for other pulls")
        });
        end(&agent);
        let left = |pulls| (registry.left() == pulls).then_some(());
        until("the engine to leave the registry", || left(2 * round + 1));
        // Its place is free at once.
        half("next");
        agent.ok(&["rm", "next"]);
        until("the engine to leave the registry", || left(2 * round + 2));
        if agent.workloads().len() == 1 {
            agent.ok(&["rm", "web"]);
        }
    }
    // Nothing of it is in the way of a pull that is wanted.
    registry.go_on();
    agent.deploy(&[next]);
    agent.until_running(&["next"]);
}

/// A sync that takes 5 s: the old container runs all the while, and the new one is not made before.
#[test]
fn what_was_pulled_is_on_the_disk_before_the_old_container_goes() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    agent.deploy(&[Manifest::service("web")]);
    agent.until_running(&["web"]);
    let old = agent.container("web");
    let folder = tempfile::tempdir().unwrap();
    let words = ["-y", "-e", "trace=syncfs,sync", "-e", "inject=syncfs,sync:delay_enter=5000000"];
    let strace = Strace::attach(agent.pid(), &words, &folder.path().join("log"));
    agent.deploy(&[web(&registry, "always")]);
    agent.until("web", "pulled", |one| one.state_info.contains("waits for the disk"));
    assert_eq!(agent.containers().len(), 1);
    assert_eq!(agent.container("web").started_at, old.started_at);
    assert!(agent.container("web").is_running());
    agent.until("web", "updated", |one| {
        one.state_words() == "Running(Ok)" && one.observed_generation == 2
    });
    assert_eq!(strace.count("syncfs,sync"), 1, "{}", strace.log());
    // What the engine says of its folder is where it really is.
    let root = shared().directory().display().to_string();
    assert!(strace.log().contains(&root), "{root}: {}", strace.log());

    // The registry is asked, and has nothing new: there is nothing to sync.
    let asked = registry.requests();
    let again = web(&registry, "always").with("env.NEW", "1");
    agent.deploy_with(&["--wait"], &[again]).expect(0, &["deploy"]);
    assert!(registry.requests() > asked);
    assert_eq!(strace.count("syncfs,sync"), 1, "{}", strace.log());
}
