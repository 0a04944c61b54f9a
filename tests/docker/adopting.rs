//! An agent that comes back finds its containers again.

use serde_json::json;

use crate::support::agent::Agent;
use crate::support::docker_api::Container;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::Proxy;

/// What has to be the same after the agent is back: each container and its run.
pub fn runs(agent: &Agent) -> Vec<(String, String, String)> {
    let run = |one: Container| (one.workload, one.id, one.started_at);
    agent.containers().into_iter().map(run).collect()
}

#[test]
fn b02_ten_workloads_outlive_a_killed_agent_which_then_reads_one_list_and_no_container() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    let names: Vec<String> = (0..10).map(|n| format!("w{n}")).collect();
    let manifests: Vec<Manifest> = names.iter().map(|n| Manifest::service(n).bridged()).collect();
    agent.deploy(&manifests);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    agent.until_running(&names);
    let before = runs(&agent);
    assert_eq!(before.len(), 10);

    // At once: what was seen last is not written yet.
    agent.kill9_and_start();
    agent.until_running(&names);
    assert_eq!(runs(&agent), before);

    // An ordered stop writes what was seen; the start after it finds nothing new.
    agent.restart();
    agent.until_running(&names);
    agent.kill9();
    proxy.take_requests();
    agent.start();
    agent.until_running(&names);
    assert_eq!(runs(&agent), before);
    let requests = proxy.take_requests();
    assert!(requests.iter().all(|line| line.starts_with("GET ")), "{requests:#?}");
    let about_containers = requests.iter().filter(|line| line.contains("/containers/"));
    let about_containers: Vec<_> = about_containers.collect();
    assert_eq!(about_containers.len(), 1, "{requests:#?}");
    assert!(about_containers[0].contains("/containers/json?"), "{requests:#?}");
}

/// Values that YAML readers take for something else, limits and a restart policy that somebody
/// changed by hand, and everything that the engine filled in.
#[test]
fn b113_what_an_engine_reads_back_differently_replaces_nothing() {
    let mut agent = Agent::on(shared());
    let [web, file] = [Manifest::service("web"), Manifest::service("file")].map(|one| {
        let env = json!({"A": "no", "B": "off", "C": "08", "D": "1e3", "E": "22:22", "F": "~"});
        Manifest::file(&[one.with("env", env)])
    });
    // Without quotes they are the same text.
    let bare = ["no", "off", "08", "1e3", "22:22"];
    let file = bare.iter().fold(file, |text, one| text.replace(&format!("\"{one}\""), one));
    assert!(file.contains("22:22,") && !file.contains("\"off\""), "{file}");
    let both = web + &file;
    agent.run_with(&["deploy", "-f", "-"], &both).expect(0, &["deploy"]);
    agent.until_running(&["web", "file"]);
    for name in ["web", "file"] {
        let inspect = agent.container(name).inspect;
        let env = inspect["Config"]["Env"].as_array().unwrap();
        for one in ["A=no", "B=off", "C=08", "D=1e3", "E=22:22", "F=~"] {
            assert!(env.contains(&json!(one)), "{one} is not in {env:?}");
        }
        let by_hand = json!({"Memory": 64 << 20, "MemorySwap": -1, "RestartPolicy": {"Name": ""}});
        let id = agent.container(name).id;
        agent.docker().post(&format!("/containers/{id}/update"), &by_hand);
    }
    let before = runs(&agent);
    for _ in 0..3 {
        // Each start holds all of it against the manifests.
        agent.restart();
        agent.until_running(&["web", "file"]);
        assert_eq!(runs(&agent), before);
        let again = agent.run_with(&["deploy", "-f", "-"], &both).expect(0, &["deploy"]);
        assert_eq!(again.matches("unchanged (generation 1)").count(), 2, "{again}");
        assert_eq!(runs(&agent), before);
    }
}

#[test]
fn a_second_agent_in_the_same_directory_is_refused_by_name_and_process() {
    let agent = Agent::on(shared());
    let data_dir = agent.data_dir();
    let other = Agent::new(shared(), &shared().url());
    let refused = other.run(&["agent", "--data-dir", data_dir.to_str().unwrap()]);
    assert_eq!(refused.code, 1);
    let words = ["bargee agent", &format!("{}", agent.pid())];
    assert!(words.iter().all(|word| refused.err.contains(word)), "{}", refused.err);
    assert_eq!(agent.run(&["status"]).code, 0);
}
