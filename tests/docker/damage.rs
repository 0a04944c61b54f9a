//! Files of the store that are gone or damaged.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::adopting::runs;
use crate::support::agent::{Agent, write_file};
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

const NAMES: [&str; 2] = ["db", "web"];

fn deploy_two(agent: &Agent) {
    agent.deploy(&NAMES.map(|name| Manifest::service(name).bridged()));
    agent.until_running(&NAMES);
}

#[test]
fn an_empty_directory_removes_and_doubles_nothing() {
    let mut agent = Agent::on(shared());
    deploy_two(&agent);
    agent.deploy(&[Manifest::service("left")]);
    agent.until_running(&["left"]);
    let before = runs(&agent);
    agent.sigterm();
    let aside = agent.data_dir().with_extension("aside");
    fs::rename(agent.data_dir(), &aside).unwrap();

    agent.start();
    assert!(agent.workloads().is_empty());
    assert_eq!(runs(&agent), before);
    // The same key and content is taken over; another content waits; another key is made.
    let changed = Manifest::service("db").bridged().with("env", json!({"NEW": "yes"}));
    agent.deploy(&[Manifest::service("web").bridged(), changed, Manifest::service("fresh")]);
    agent.until_running(&["web", "fresh"]);
    let waiting = agent.until_state("db", "Pending(WaitingToStart)");
    assert!(waiting.state_info.contains("storeMissing"), "{}", waiting.state_info);
    let web = agent.container("web");
    assert_eq!(agent.workload("web").container_id, web.id);
    let without_fresh = || {
        let mut all = runs(&agent);
        all.retain(|(name, ..)| name != "fresh");
        all
    };
    assert_eq!(without_fresh(), before);
    agent.ok(&["rm", "fresh"]);
    agent.restart();
    agent.until_running(&["web"]);
    agent.until_state("db", "Pending(WaitingToStart)");
    assert_eq!(runs(&agent), before);

    // The old store comes back.
    agent.sigterm();
    fs::remove_dir_all(agent.data_dir()).unwrap();
    fs::rename(aside, agent.data_dir()).unwrap();
    agent.start();
    agent.until_running(&["db", "left", "web"]);
    assert_eq!(runs(&agent), before);
}

/// Damages the database of an agent that has ended, and expects the next one to say so, and to find
/// all containers as they are.
fn survives(end: fn(&mut Agent), damage: fn(&Path)) {
    let mut agent = Agent::on(shared());
    deploy_two(&agent);
    agent.deploy(&[Manifest::service("stopped")]);
    agent.until_running(&["stopped"]);
    agent.ok(&["stop", "stopped"]);
    let before = runs(&agent);
    let uid = agent.workload("web").uid;
    let store = agent.status().store_id;
    end(&mut agent);
    damage(&agent.data_dir().join("bargee.db"));

    agent.start();
    let told = agent.condition("storeNotice");
    let told = told.unwrap_or_else(|| panic!("nothing said: {:?}", agent.status()));
    assert!(told.contains("bargee.db"), "{told}");
    assert!(agent.settled_log().contains(&told), "{told}");
    agent.until_running(&NAMES);
    assert_eq!(agent.until_state("stopped", "Stopped(Ok)").desired_state, "stopped");
    assert_eq!(runs(&agent), before);
    assert_eq!((agent.workload("web").uid, agent.status().store_id), (uid, store));

    // It is a store like any other from now on, and says nothing more.
    agent.ok(&["rm", "web"]);
    agent.restart();
    agent.until_running(&["db"]);
    assert_eq!(agent.workloads().len(), 2);
    assert_eq!(agent.condition("storeNotice"), None);
    until("two containers", || (agent.containers().len() == 2).then_some(()));
}

fn cut(file: &Path, keep: impl Fn(u64) -> u64) {
    let file = fs::OpenOptions::new().write(true).open(file).unwrap();
    let length = file.metadata().unwrap().len();
    assert!(length > 0);
    file.set_len(keep(length)).unwrap();
}

#[test]
fn a_database_cut_to_nothing() {
    survives(Agent::sigterm, |file| cut(file, |_| 0));
}

#[test]
fn a_database_cut_in_half() {
    survives(Agent::sigterm, |file| cut(file, |length| length / 2));
}

#[test]
fn a_database_cut_to_nothing_under_a_killed_agent() {
    survives(Agent::kill9, |file| cut(file, |_| 0));
}

#[test]
fn a_database_with_flipped_bytes() {
    survives(Agent::sigterm, |file| {
        let mut bytes = fs::read(file).unwrap();
        // The first page says what the file is: that is the easy case.
        bytes.iter_mut().skip(4_096).step_by(97).for_each(|byte| *byte ^= 0x55);
        write_file(file, &bytes);
    });
}
