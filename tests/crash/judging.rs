//! That the check of what is at rest finds what is not.

use std::collections::BTreeMap;

use bargee::api::wire::{Entry, FailedUpdate, Workload};

use crate::support::at_rest::{Held, Outcome, Scene, Wanted};

const KEY: &str = "shop/web";

fn held(id: &str, generation: u64) -> Held {
    let name = format!("bargee-web-{id}");
    let generation = generation.to_string();
    let labels = [
        ("uid", "u"),
        ("application", "shop"),
        ("name", "web"),
        ("instance", &name),
        ("generation", &generation),
        ("store", "s"),
    ];
    let labels = labels.map(|(name, value)| (format!("bargee.{name}"), value.to_owned()));
    Held {
        id: id.to_owned(),
        labels: BTreeMap::from(labels),
        name,
        status: "running".to_owned(),
        started: "1".to_owned(),
        network: "n".to_owned(),
    }
}

/// Generation 2 of one workload runs.
fn scene() -> Scene {
    let web = Workload {
        uid: "u".to_owned(),
        application: "shop".to_owned(),
        name: "web".to_owned(),
        desired_state: "running".to_owned(),
        state: "Running".to_owned(),
        substate: "Ok".to_owned(),
        generation: 2,
        observed_generation: 2,
        container_id: "c".to_owned(),
        ..Workload::default()
    };
    Scene {
        store: "s".to_owned(),
        containers: vec![held("c", 2)],
        networks: vec!["n".to_owned()],
        workloads: vec![web],
        ..Scene::default()
    }
}

type Change = fn(&mut Scene);

/// What is wrong with the scene after `change`, if generation 2 was answered.
fn found(change: impl FnOnce(&mut Scene)) -> String {
    let mut scene = scene();
    change(&mut scene);
    scene.problems(&[(KEY, Outcome::Running(2)).into()]).join("; ")
}

#[test]
fn a_scene_that_is_not_at_rest_is_told_from_one_that_is() {
    assert_eq!(found(|_| {}), "");
    let wrong: [(&str, Change); 12] = [
        ("no container", |scene| scene.containers.clear()),
        ("2 containers", |scene| scene.containers.push(held("d", 2))),
        ("does not run", |scene| scene.containers[0].status = "exited".to_owned()),
        ("container \"c\" and \"d\"", |scene| scene.containers = vec![held("d", 2)]),
        ("generation \"2\" and \"1\"", |scene| scene.containers = vec![held("c", 1)]),
        ("observed generation", |scene| scene.workloads[0].observed_generation = 1),
        ("there is none", |scene| scene.workloads.clear()),
        ("Starting", |scene| scene.workloads[0].substate = "Starting".to_owned()),
        ("network m", |scene| scene.networks.push("m".to_owned())),
        ("in the journal", |scene| scene.journal.push(Entry::default())),
        ("under way", |scene| scene.unrest = "1 tasks are under way".to_owned()),
        ("bug: x", |scene| scene.log = "a\nbug: x\n".to_owned()),
    ];
    for (words, change) in wrong {
        let found = found(change);
        assert!(found.contains(words), "{words}: {found:?}");
    }
}

#[test]
fn a_scene_is_held_against_what_was_answered() {
    let scene = scene();
    let is = |outcomes: &[Outcome]| scene.problems(&[Wanted::any_of(KEY, outcomes)]).is_empty();
    assert!(is(&[Outcome::Running(1), Outcome::Running(2)]));
    assert!(!is(&[Outcome::Running(1), Outcome::Gone]));
    assert!(!is(&[Outcome::Stopped(2)]));
    let left = scene.problems(&[]).join("; ");
    assert!(left.contains("nobody declared shop/web"), "{left}");
    assert!(left.contains("left on the engine: bargee-web-c"), "{left}");
}

#[test]
fn a_workload_that_went_back_or_was_never_made_is_told_from_others() {
    let is = |outcome: Outcome, change: Change| {
        let mut scene = scene();
        change(&mut scene);
        scene.problems(&[(KEY, outcome).into()]).is_empty()
    };
    let failed = |scene: &mut Scene| {
        scene.containers = vec![held("c", 1)];
        let failed = FailedUpdate { generation: 2, cause: "x".to_owned(), retries: true };
        scene.workloads[0].failed_update = Some(failed);
    };
    let returned = |running| Outcome::Returned { running, declared: 2 };
    assert!(is(returned(1), failed));
    assert!(!is(Outcome::Running(2), failed));
    assert!(!is(returned(2), failed));
    // The older one runs, and nobody says why.
    assert!(!is(returned(1), |scene| scene.containers = vec![held("c", 1)]));

    let bare = |scene: &mut Scene| {
        scene.containers.clear();
        scene.networks = vec!["bargee-s-shop".to_owned()];
        let web = &mut scene.workloads[0];
        (web.state, web.substate) = ("Pending".to_owned(), "Starting".to_owned());
        web.container_id.clear();
    };
    assert!(is(Outcome::Waiting(2), bare));
    assert!(!is(Outcome::Waiting(1), bare));
    assert!(!is(Outcome::Waiting(2), |_| {}));
}
