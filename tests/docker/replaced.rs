//! The engine finds another data directory than before: a disk that was not mounted in time, or one
//! that is new. Each test has an engine of its own.

use std::fs;

use crate::support::agent::Agent;
use crate::support::engine::DockerEngine;
use crate::support::manifest::Manifest;
use crate::support::until;

const DISKS: [&str; 2] = ["docker", "docker.other"];

/// Puts the other disk under the engine.
fn change_disks(engine: &DockerEngine) {
    engine.stop();
    let [present, other] = DISKS.map(|name| engine.directory().join(name));
    let aside = engine.directory().join("docker.aside");
    fs::rename(&present, &aside).unwrap();
    if other.exists() {
        fs::rename(&other, &present).unwrap();
    }
    fs::rename(&aside, &other).unwrap();
    engine.start_again();
}

fn until_condition(agent: &Agent) -> String {
    until("the condition", || agent.condition("engineReplaced"))
}

fn until_over(agent: &Agent) {
    until("the end of the condition", || agent.condition("engineReplaced").is_none().then_some(()));
}

#[test]
fn b65_a_disk_that_is_mounted_late_is_waited_for_and_one_that_is_new_is_confirmed() {
    let engine = DockerEngine::start();
    let mut agent = Agent::on(&engine);
    let with_volume = Manifest::service("db").with("volumes", serde_json::json!(["data:/data"]));
    agent.deploy(&[
        Manifest::service("web").bridged(),
        with_volume.bridged(),
        Manifest::job("job").bridged(),
    ]);
    agent.until_running(&["web", "db"]);
    agent.until_state("job", "Succeeded(Ok)");
    let made = agent.containers();

    // It is not mounted yet.
    change_disks(&engine);
    let told = until_condition(&agent);
    assert!(told.contains("default/db") && told.contains("bargee confirm"), "{told}");
    agent.until_state("db", "Pending(WaitingToStart)");
    let web = agent.until_state("web", "Pending(WaitingToStart)");
    assert!(web.state_info.starts_with("engineReplaced"), "{web:?}");
    assert!(web.next_attempt_at > 0, "{web:?}");
    // What is new has nothing to wait for, and the wait holds over the agent's end.
    agent.deploy(&[Manifest::service("new").bridged()]);
    agent.until_running(&["new"]);
    agent.kill9_and_start();
    assert_eq!(until_condition(&agent), told);
    agent.until_running(&["new"]);
    let there = agent.containers();
    assert!(there.iter().all(|one| one.workload == "new") && there.len() == 1, "{there:?}");

    // And then it is.
    change_disks(&engine);
    until_over(&agent);
    agent.until_running(&["web", "db", "new"]);
    agent.until_state("job", "Succeeded(Ok)");
    let again = agent.containers();
    for before in &made {
        assert!(again.iter().any(|one| one.id == before.id), "{} of {again:?}", before.workload);
    }
    assert_eq!(again.len(), 4);
    for name in ["web", "db", "new", "job"] {
        let one = agent.workload(name);
        assert_eq!((one.restart_count, one.last_error.as_str()), (0, ""), "{name}");
    }

    // A disk that is new: somebody says so. It is that of before, where `new` has a container; that
    // one is gone, as it is on a disk that has nothing.
    agent.ok(&["rm", "new"]);
    engine.stop();
    fs::remove_dir_all(engine.directory().join(DISKS[1])).unwrap();
    engine.start_again();
    agent.until_running(&["web", "db"]);
    change_disks(&engine);
    until_condition(&agent);
    let said = agent.ok(&["confirm"]);
    assert!(said.contains("default/db") && said.contains("default/web"), "{said}");
    until_over(&agent);
    agent.until_running(&["web", "db"]);
    let fresh = agent.containers();
    assert!(fresh.iter().all(|one| made.iter().all(|old| old.id != one.id)), "{fresh:?}");
    assert_eq!(fresh.len(), 2);
    let said = agent.ok(&["confirm"]);
    assert!(said.contains("nothing"), "{said}");
}
