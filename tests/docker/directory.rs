//! The manifests directory on a real engine.

use std::fs;

use crate::support::agent::{Agent, write_file};
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

#[test]
fn a_file_is_applied_changed_and_removed_over_a_killed_agent() {
    let mut agent = Agent::new(shared(), &shared().url());
    let directory = agent.use_manifests_dir();
    let put = |name: &str, manifests: &[Manifest]| {
        // As editors do.
        let beside = directory.join(".new");
        write_file(&beside, Manifest::file(manifests).as_bytes());
        fs::rename(&beside, directory.join(name)).unwrap();
    };
    put("a.yaml", &[Manifest::service("web"), Manifest::service("db")]);
    agent.start();
    until("both to be declared", || (agent.workloads().len() == 2).then_some(()));
    agent.until_running(&["web", "db"]);
    let db = agent.container("db");

    agent.kill9();
    put("a.yaml", &[Manifest::service("web").with("user", "1"), Manifest::service("db")]);
    agent.start();
    agent.until("web", "updated", |one| one.generation == 2 && one.observed_generation == 2);
    agent.until_running(&["web", "db"]);
    assert_eq!(agent.container("db").id, db.id);

    put("b.yaml", &[Manifest::service("other")]);
    until("the third one", || (agent.workloads().len() == 3).then_some(()));
    fs::remove_file(directory.join("a.yaml")).unwrap();
    until("the removal", || (agent.workloads().len() == 1).then_some(()));
    agent.until_running(&["other"]);
    let left = agent.containers();
    assert!(left.iter().all(|one| one.workload == "other") && left.len() == 1, "{left:?}");
}
