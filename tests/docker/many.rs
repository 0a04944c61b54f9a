//! Many workloads at once.

use std::collections::BTreeSet;
use std::thread;

use serde_json::json;

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::Proxy;
use crate::support::until;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("w{n:03}")).collect()
}

/// `bargee rm` with all of `names`.
fn remove(names: &[String]) -> Vec<&str> {
    ["rm"].into_iter().chain(names.iter().map(String::as_str)).collect()
}

#[test]
fn a_hundred_workloads_come_with_one_apply_and_go_without_a_trace() {
    let agent = Agent::on(shared());
    agent.docker().make_image("localtest/volume", "VOLUME /data");
    let names = names(100);
    let make =
        |name: &String| Manifest::service(name).bridged().with("image", "localtest/volume:1");
    agent.deploy(&names.iter().map(make).collect::<Vec<_>>());
    until("all to run", || {
        (agent.status().counts.get("Running") == Some(&names.len())).then_some(())
    });
    let containers = agent.containers();
    let workloads: Vec<_> = containers.iter().map(|one| one.workload.clone()).collect();
    assert_eq!(workloads, names);
    let mounts = containers.iter().map(|one| one.inspect["Mounts"][0]["Name"].as_str().unwrap());
    let mounts: BTreeSet<String> = mounts.map(str::to_owned).collect();
    assert_eq!(mounts.len(), names.len());
    assert_eq!(agent.docker().networks(agent.node()).len(), 1);

    let removed = agent.ok(&remove(&names));
    assert_eq!(removed.lines().count(), names.len(), "{removed}");
    assert!(agent.workloads().is_empty());
    assert_eq!(agent.containers(), []);
    assert_eq!(agent.docker().networks(agent.node()), [""; 0]);
    let volumes = agent.docker().volumes();
    assert!(volumes.iter().all(|name| !mounts.contains(name)), "{volumes:?}");
}

#[test]
fn more_tasks_than_the_queue_holds_are_asked_for_again() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    // Each has a container, made and never started, so that its removal takes a call.
    let names = names(150);
    let make = |name: &String| {
        Manifest::new(name, &["/no/such/command"])
            .with("restart", json!({"delay": "1h", "maxDelay": "1h"}))
    };
    agent.deploy(&names.iter().map(make).collect::<Vec<_>>());
    until("all to be made", || {
        agent.workloads().iter().all(|one| one.failure_count > 0).then_some(())
    });
    proxy.hold("DELETE ");
    thread::scope(|scope| {
        let words = remove(&names);
        let agent = &agent;
        let removal = scope.spawn(move || agent.run(&words));
        until("the queue to be full", || {
            let queue = agent.status().queue;
            (queue.tasks == queue.limit).then_some(())
        });
        let name = format!("default.{}", names[149]);
        let refused = agent.post(&format!("/v1/ms/{name}/start"));
        assert_eq!(refused.0, 429, "{refused:?}");
        proxy.release();
        removal.join().unwrap().expect(0, &["rm"]);
    });
    assert!(agent.workloads().is_empty());
    assert_eq!(agent.containers(), []);
}
