//! Containers that no record knows.

use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::docker_api::Container;
use crate::support::engine::{IMAGE, shared};
use crate::support::manifest::Manifest;
use crate::support::proxy::{Proxy, is_change};
use crate::support::until;

/// Makes a container with these labels past the agent, and starts it.
fn make(agent: &Agent, name: &str, labels: &Value) -> String {
    let body = json!({
        "Image": IMAGE, "Cmd": ["sleep", "100000"], "Labels": labels,
        "HostConfig": {"NetworkMode": "host"},
    });
    let made = agent.docker().post(&format!("/containers/create?name={name}"), &body);
    let id = made["Id"].as_str().unwrap().to_owned();
    agent.docker().post(&format!("/containers/{id}/start"), &Value::Null);
    id
}

fn lists(proxy: &Proxy) -> usize {
    proxy.requests().iter().filter(|line| line.contains("/containers/json?")).count()
}

fn look(agent: &Agent, ids: &[String]) -> Vec<Option<Container>> {
    ids.iter().map(|id| agent.docker().container(id)).collect()
}

#[test]
fn only_an_orphan_of_this_store_goes_and_only_after_two_minutes() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    agent.deploy(&[Manifest::service("web")]);
    agent.until_running(&["web"]);
    let web = agent.container("web");
    let labels = |instance: &str, store: Option<&str>| {
        let mut labels = web.inspect["Config"]["Labels"].clone();
        labels["bargee.uid"] = "99999999-0000-4000-8000-000000000000".into();
        labels["bargee.name"] = "gone".into();
        labels["bargee.instance"] = instance.into();
        if let Some(store) = store {
            labels["bargee.store"] = store.into();
        }
        labels
    };
    let other = "0".repeat(32);
    let foreign = format!("bargee-foreign-{}", &agent.node()[5..]);
    let foreign = make(&agent, &foreign, &json!({}));
    let others =
        make(&agent, "bargee-gone-0000000a", &labels("bargee-gone-0000000a", Some(&other)));
    let kept = [web.id.clone(), foreign.clone(), others];
    let before = look(&agent, &kept);
    proxy.take_requests();
    let orphan = make(&agent, "bargee-gone-0000000b", &labels("bargee-gone-0000000b", None));

    // It is there for less than two minutes as long as only one full compare has seen it.
    for count in 1..=2 {
        until(format_args!("full compare {count}"), || (lists(&proxy) >= count).then_some(()));
        assert!(agent.docker().container(&orphan).is_some());
    }
    until("the orphan to be gone", || agent.docker().container(&orphan).is_none().then_some(()));
    assert_eq!(look(&agent, &kept), before);
    until("the entry to be settled", || (agent.status().journal.entries == 0).then_some(()));
    let changes: Vec<_> = proxy.take_requests().into_iter().filter(|r| is_change(r)).collect();
    assert!(changes.iter().all(|line| line.contains(&orphan)), "{changes:#?}");
    assert!(agent.settled_log().contains("bargee-gone-0000000b"), "it is told");
    assert!(agent.docker().delete(&format!("/containers/{foreign}?force=1")));
}

/// An image that is taken from a container of ours (`docker commit`) carries its labels along.
#[test]
fn a_container_that_only_has_the_labels_of_ours_is_left_alone() {
    let mut agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web").with("stop.grace", "1s")]);
    agent.until_running(&["web"]);
    let web = agent.container("web");
    let name = format!("debug-{}", &agent.node()[5..]);
    let copy = make(&agent, &name, &web.inspect["Config"]["Labels"]);
    let before = look(&agent, std::slice::from_ref(&copy));
    agent.kill9();
    assert!(agent.docker().delete(&format!("/containers/{}?force=1", web.id)));
    agent.start();
    agent.until_running(&["web"]);
    let made = agent.workload("web").container_id;
    assert!(![&web.id, &copy].contains(&&made), "it is made anew");
    agent.restart();
    agent.until_running(&["web"]);
    assert_eq!(look(&agent, std::slice::from_ref(&copy)), before);
    assert!(agent.docker().delete(&format!("/containers/{copy}?force=1")));
}
