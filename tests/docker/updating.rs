//! Changes of what is declared.

use std::net::TcpListener;

use serde_json::json;

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

/// Deploys a generation that cannot be, which has to be told, and to leave the old one running.
fn deploy_in_vain(agent: &Agent, generation: u64, manifest: Manifest, cause: &str) {
    let before = agent.container("web");
    let output = agent.deploy_with(&["--wait"], &[manifest]);
    assert_eq!(output.code, 1, "{output:?}");
    let told = format!("the update to generation {generation} failed");
    assert!(output.err.contains(&told) && output.err.contains(cause), "{output:?}");

    let web = agent
        .until("web", "running again", |one| one.state == "Running" && one.failed_update.is_some());
    assert_eq!(web.container_id, before.id);
    assert_eq!((web.generation, web.observed_generation), (generation, 1));
    let failed = web.failed_update.unwrap();
    assert_eq!(failed.generation, generation);
    assert!(failed.cause.contains(cause), "{}", failed.cause);
    assert!(web.error_message.contains(cause), "{}", web.error_message);
    assert!(agent.ok(&["ps"]).contains(cause));
    until("the new container to be gone", || (agent.containers().len() == 1).then_some(()));
    assert!(agent.container("web").is_running());
}

#[test]
fn an_update_that_cannot_be_leaves_the_old_container_running() {
    let mut agent = Agent::on(shared());
    let good = Manifest::service("web");
    agent.deploy(std::slice::from_ref(&good));
    agent.until_running(&["web"]);
    let first = agent.container("web");

    let no_image = "127.0.0.1:1/nobody/listens:1";
    let imageless = good.clone().with("image", no_image).with("pull", "missing");
    deploy_in_vain(&agent, 2, imageless, no_image);
    // It was not even stopped.
    assert_eq!(agent.container("web").started_at, first.started_at);

    let wrong = good.clone().with("command", json!(["/no/such/command"]));
    deploy_in_vain(&agent, 3, wrong, "/no/such/command");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let ports = json!([format!("127.0.0.1:{port}:80")]);
    let portless = good.clone().bridged().with("ports", ports);
    deploy_in_vain(&agent, 4, portless.clone(), &port);

    // It is not tried again, nor forgotten, by an agent that comes back.
    agent.restart();
    let web = agent.until_state("web", "Running(Ok)");
    assert_eq!(web.failed_update.unwrap().generation, 4);
    assert_eq!((web.container_id.as_str(), web.restart_count), (first.id.as_str(), 0));

    drop(listener);
    let better = portless.with("env", json!({"TRY": "again"}));
    agent.deploy_with(&["--wait"], &[better]).expect(0, &["deploy"]);
    let web = agent.workload("web");
    assert_eq!((web.generation, web.observed_generation), (5, 5));
    assert_eq!(web.failed_update, None);
    until("the old container to be gone", || (agent.containers().len() == 1).then_some(()));
    assert_eq!(agent.container("web").id, web.container_id);

    agent.ok(&["rm", "web"]);
    agent.expect_no_trace();
}

#[test]
fn an_update_changes_the_container_once_and_keeps_the_workload() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web")]);
    let before = agent.until_state("web", "Running(Ok)");
    let events = agent.events();
    let changed = Manifest::service("web").with("env", json!({"COLOUR": "blue"}));
    agent.deploy_with(&["--wait"], &[changed]).expect(0, &["deploy"]);
    let after = agent.workload("web");
    assert_eq!(after.uid, before.uid);
    assert_ne!(after.container_id, before.container_id);
    assert_eq!((after.generation, after.observed_generation), (2, 2));
    assert_eq!(after.restart_count, 0);
    until("the old container to be gone", || (agent.containers().len() == 1).then_some(()));

    agent.ok(&["rm", "web"]);
    let passed = events.until("default/web", "Removed");
    let mut containers: Vec<_> = passed.iter().map(|one| one.container_id.as_str()).collect();
    containers.retain(|id| !id.is_empty());
    containers.dedup();
    assert_eq!(containers, [&before.container_id, &after.container_id], "{passed:#?}");
}

#[test]
fn what_does_not_make_a_container_does_not_change_it() {
    let agent = Agent::on(shared());
    let web = Manifest::service("web");
    agent.deploy(std::slice::from_ref(&web));
    agent.until_running(&["web"]);
    let before = runs(&agent);
    let changes = [
        web.clone().label("tier", "front"),
        web.clone().restart("on-failure"),
        web.clone().with("stop", json!({"signal": "SIGINT", "grace": "3s"})),
        web.clone().with("pull", "missing"),
    ];
    for (change, generation) in changes.iter().zip(2..) {
        agent.deploy_with(&["--wait"], std::slice::from_ref(change)).expect(0, &["deploy"]);
        let one = agent.workload("web");
        assert_eq!((one.generation, one.observed_generation), (generation, generation));
        assert_eq!(runs(&agent), before, "{change:?}");
    }
    // The same again is no change at all.
    let same = agent.deploy_with(&[], &[changes[3].clone()]).expect(0, &["deploy"]);
    assert!(same.contains("unchanged (generation 5)"), "{same}");
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web"), Manifest::service("same")]);
    agent.until_running(&["web", "same"]);
    let before = runs(&agent);
    let changed = Manifest::service("web").with("env", json!({"COLOUR": "blue"}));
    let all = [changed, Manifest::service("same"), Manifest::service("new")];
    let told = agent.deploy_with(&["--dry-run"], &all).expect(0, &["deploy"]);
    let wanted = [
        "default/web would be replaced (generation 2)",
        "default/same would stay unchanged (generation 1)",
        "default/new would be created (generation 1)",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
    let now: Vec<_> = agent.workloads().into_iter().map(|w| (w.name, w.generation)).collect();
    assert_eq!(now, [("same".to_owned(), 1), ("web".to_owned(), 1)]);
    assert_eq!(runs(&agent), before);
}
