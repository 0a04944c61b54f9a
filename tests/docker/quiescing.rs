//! Reconciling is held: nothing reaches the engine but looks, and all that waited is done later.

use serde_json::Value;

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::{Proxy, is_change};
use crate::support::until;

fn changes(proxy: &Proxy) -> Vec<String> {
    proxy.requests().into_iter().filter(|line| is_change(line)).collect()
}

#[test]
fn what_happens_and_what_is_asked_for_waits_for_the_end_even_over_a_killed_agent() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    let names = ["crashing", "drifting", "stopping", "going"];
    agent.deploy(&names.map(|name| Manifest::service(name).hasty()));
    agent.until_running(&names);
    let stopping = agent.container("stopping");
    assert!(agent.ok(&["quiesce"]).starts_with("reconciling is held for 15m: "));
    proxy.take_requests();

    // What happens.
    let crashing = agent.container("crashing").id;
    agent.docker().post(&format!("/containers/{crashing}/kill"), &Value::Null);
    assert!(
        agent.docker().delete(&format!("/containers/{}?force=1", agent.container("drifting").id))
    );
    agent.until("crashing", "seen ended", |one| one.runtime_state == "EXITING" && one.held);
    agent.until("drifting", "seen gone", |one| one.runtime_state == "QUEUED" && one.held);

    // What is asked for.
    let stop = agent.run(&["stop", "stopping"]);
    assert!(
        stop.err.contains("stop was accepted and is kept, but reconciling is held"),
        "{stop:?}"
    );
    assert_eq!(stop.code, 5);
    assert_eq!(agent.run(&["rm", "going"]).code, 5);
    assert_eq!(agent.run(&["kill", "stopping"]).code, 5);
    assert_eq!(agent.deploy_with(&["--wait"], &[Manifest::service("late")]).code, 5);
    agent.kill9_and_start();
    let status = agent.status();
    assert!(status.ready && status.quiesced.is_some(), "{status:?}");
    agent.until("crashing", "held", |one| one.held);
    assert!(agent.workload("late").state_info.starts_with("reconciling is held for another "));
    let states = ["stopping", "going"].map(|name| agent.workload(name).desired_state);
    assert_eq!(states, ["stopped", "deleted"]);
    assert_eq!(changes(&proxy), [""; 0]);
    assert_eq!(agent.container("stopping"), stopping);

    agent.ok(&["resume"]);
    agent.until_running(&["crashing", "drifting", "late"]);
    agent.until_state("stopping", "Stopped(Ok)");
    until("the removal", || (agent.workloads().len() == 4).then_some(()));
    assert_eq!(agent.container("crashing").id, crashing);
    assert_eq!(agent.workload("crashing").restart_count, 1);
    assert_eq!(agent.status().quiesced, None);
    assert_eq!(agent.containers().len(), 4);
}

#[test]
fn it_ends_by_itself() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web").hasty()]);
    agent.until_running(&["web"]);
    let before = agent.container("web");
    agent.ok(&["quiesce", "--for", "3s"]);
    assert!(agent.docker().delete(&format!("/containers/{}?force=1", before.id)));
    until("the end of it", || agent.status().quiesced.is_none().then_some(()));
    agent.until("web", "made anew", |one| one.state == "Running" && one.container_id != before.id);
    assert!(agent.log().contains("reconciling goes on after 3 s: its time is over"));
}
