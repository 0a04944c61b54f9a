//! Stores that are lost or moved, and two of them on one engine.

use std::fs;

use serde_json::json;

use crate::adopting::runs;
use crate::rest::look;
use crate::support::agent::Agent;
use crate::support::at_rest::Outcome::{Gone, Running};
use crate::support::at_rest::{Wanted, until_at_rest};
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::{Proxy, is_change};
use crate::support::until;

const NAMES: [&str; 2] = ["db", "web"];

fn service(name: &str, mark: &str) -> Manifest {
    Manifest::service(name).application("shop").bridged().with("env", json!({"MARK": mark}))
}

fn deploy_both(agent: &Agent) {
    agent.deploy(&NAMES.map(|name| service(name, "one")));
    agent.until_running(&NAMES);
}

/// The label of the only container of a workload.
fn store_of(agent: &Agent, name: &str) -> String {
    let label = &agent.container(name).inspect["Config"]["Labels"]["bargee.store"];
    label.as_str().unwrap().to_owned()
}

#[test]
fn after_its_store_was_lost_an_agent_takes_over_what_it_is_told_to() {
    let mut agent = Agent::on(shared());
    deploy_both(&agent);
    let (before, lost) = (runs(&agent), agent.status().store_id);
    agent.kill9();
    fs::remove_dir_all(agent.data_dir()).unwrap();
    agent.start();
    let store = agent.status().store_id;
    assert_ne!(store, lost);
    let told = until("it to be told", || agent.condition("storeMissing"));
    let names = NAMES.map(|name| format!("bargee-{name}-"));
    assert!(names.iter().all(|name| told.contains(name)), "{told}");

    // What is declared as it was goes on as it does, what is not waits.
    agent.deploy(&[service("db", "two"), service("web", "one")]);
    agent.until_running(&["web"]);
    let waits = agent.until_state("db", "Pending(WaitingToStart)");
    assert!(waits.state_info.starts_with("storeMissing"), "{}", waits.state_info);
    assert_eq!(runs(&agent), before);

    let adopted = agent.ok(&["adopt", "db"]);
    assert!(adopted.contains(&names[0]) && !adopted.contains(&names[1]), "{adopted}");
    until("db to be made of what is declared", || {
        let containers = agent.containers();
        (containers.len() == 2 && containers[0].id != before[0].1).then_some(())
    });
    agent.until_running(&["db"]);
    assert_eq!((store_of(&agent, "db"), store_of(&agent, "web")), (store, lost));
    assert_eq!(runs(&agent)[1], before[1]);
    until("nothing to be missing", || agent.condition("storeMissing").is_none().then_some(()));

    // From now on all of it is its own.
    let after = runs(&agent);
    agent.kill9_and_start();
    agent.until_running(&NAMES);
    assert_eq!(runs(&agent), after);
    agent.ok(&["rm", "db", "web"]);
    assert_eq!(agent.containers(), []);
}

#[test]
fn adopt_all_takes_over_all_that_is_declared() {
    let mut agent = Agent::on(shared());
    deploy_both(&agent);
    let before = runs(&agent);
    agent.sigterm();
    fs::remove_dir_all(agent.data_dir()).unwrap();
    agent.start();
    agent.deploy(&[service("db", "two")]);
    agent.until_state("db", "Pending(WaitingToStart)");
    let adopted = agent.ok(&["adopt", "--all"]);
    assert!(adopted.contains("for 1 that no record knows"), "{adopted}");
    agent.until("db", "of its new content", |one| {
        one.state == "Running" && one.container_id != before[0].1
    });
    assert!(runs(&agent).contains(&before[1]));
    agent.deploy(&[service("web", "two")]);
    agent.until_state("web", "Pending(WaitingToStart)");
    agent.ok(&["adopt", "shop/web"]);
    agent.until("web", "of its new content", |one| {
        one.state == "Running" && one.container_id != before[1].1
    });
    let wanted = ["shop/db", "shop/web"].map(|key| Wanted::exactly(key, Running(1)));
    until_at_rest(&wanted, || {
        let mut scene = look(&agent)?;
        // The network of the lost store is on nobody's books.
        let own = scene.store.get(..8).unwrap().to_owned();
        scene.networks.retain(|name| name.contains(&own));
        Some(scene)
    });
}

#[test]
fn a_store_that_was_moved_is_the_same_store() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    deploy_both(&agent);
    let (before, store) = (runs(&agent), agent.status().store_id);
    for (name, end) in [("moved", Agent::sigterm as fn(&mut Agent)), ("again", Agent::kill9)] {
        end(&mut agent);
        let moved = agent.data_dir().with_file_name(name);
        fs::rename(agent.data_dir(), &moved).unwrap();
        agent.set_data_dir(moved);
        proxy.take_requests();
        agent.start();
        agent.until_running(&NAMES);
        assert_eq!(agent.post("/v1/journal/replay").0, 200);
        let changes: Vec<_> = proxy.take_requests().into_iter().filter(|r| is_change(r)).collect();
        assert_eq!(changes, [""; 0]);
        assert_eq!((runs(&agent), agent.status().store_id), (before.clone(), store.clone()));
        assert_eq!(agent.status().conditions, []);
    }
}

/// All that `agent` has, though another one calls itself by the same name.
fn own(agent: &Agent) -> Vec<(String, String)> {
    let store = agent.status().store_id;
    let mut all = agent.containers();
    all.retain(|one| one.inspect["Config"]["Labels"]["bargee.store"] == *store);
    all.into_iter().map(|one| (one.id, one.started_at)).collect()
}

fn expect_only_its_own(agent: &Agent, gone: bool) {
    let wanted = |key| Wanted::exactly(key, if gone { Gone } else { Running(1) });
    let wanted = ["shop/db", "shop/web"].map(wanted);
    until_at_rest(&wanted, || {
        let mut scene = look(agent)?;
        let own = scene.store.clone();
        scene.containers.retain(|held| held.labels["bargee.store"] == own);
        scene.networks.retain(|name| name.contains(&own[..8]));
        Some(scene)
    });
}

#[test]
fn two_agents_of_one_name_leave_each_others_containers_alone() {
    let mut first = Agent::on(shared());
    deploy_both(&first);
    let of_first = own(&first);
    let mut second = Agent::new(shared(), &shared().url());
    second.set_node(first.node());
    second.start();
    assert_eq!(second.condition("storeMissing"), None);
    deploy_both(&second);
    expect_only_its_own(&second, false);
    let of_second = own(&second);
    let all = || {
        assert_eq!(first.containers().len(), 4);
        (own(&first), own(&second))
    };
    assert_eq!(all(), (of_first.clone(), of_second.clone()));
    let adopted = second.ok(&["adopt", "--all"]);
    assert!(adopted.contains("nothing was adopted"), "{adopted}");

    // However they come and go.
    second.kill9_and_start();
    first.restart();
    first.sigterm();
    second.restart();
    first.start();
    for agent in [&first, &second] {
        agent.until_running(&NAMES);
        expect_only_its_own(agent, false);
        assert_eq!(agent.condition("storeMissing"), None);
    }
    assert_eq!((own(&first), own(&second)), (of_first.clone(), of_second));

    second.ok(&["rm", "shop/db", "shop/web"]);
    expect_only_its_own(&second, true);
    assert_eq!(own(&first), of_first);
    expect_only_its_own(&first, false);
}
