//! Nothing happens: the agent asks for one list a minute and writes nothing. Then somebody does
//! things by hand, and within the next minute all is as it was declared.
//!
//! `BARGEE_IDLE_MINUTES` is how long nothing happens after the first full compare: no minute if it
//! is not set. `scripts/test.sh` has ten of them pass beside the other tests.

use std::env;
use std::time::Duration;

use bargee::limits::{FULL_COMPARE_MS, ROW_WRITE_MS, STABLE_MS};
use bargee::os::clock;
use serde_json::Value;

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::docker_api::Container;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::proxy::Proxy;
use crate::support::{bytes_written, files, pause, until};

const WORKLOADS: usize = 50;

fn minutes() -> usize {
    let minutes = env::var("BARGEE_IDLE_MINUTES");
    minutes.map_or(0, |text| text.parse().expect("BARGEE_IDLE_MINUTES is a number"))
}

fn is_list(line: &str) -> bool {
    line.starts_with("GET ") && line.contains("/containers/json?")
}

/// Full compares since the requests were last taken.
fn lists(proxy: &Proxy) -> usize {
    proxy.requests().iter().filter(|line| is_list(line)).count()
}

fn until_listed(proxy: &Proxy, count: usize) {
    until(format_args!("full compare {count}"), || (lists(proxy) >= count).then_some(()));
}

#[test]
fn an_idle_agent_lists_once_a_minute_and_writes_nothing_and_heals_what_is_done_by_hand() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    let names: Vec<String> = (0..WORKLOADS).map(|n| format!("w{n:02}")).collect();
    let make = |name: &String| Manifest::service(name).with("stop.grace", "2s");
    agent.deploy(&names.iter().map(make).collect::<Vec<_>>());
    until("all to run", || {
        (agent.status().counts.get("Running") == Some(&WORKLOADS)).then_some(())
    });
    // That each has proved itself is written once, a little later.
    pause(Duration::from_millis(STABLE_MS + ROW_WRITE_MS + 2_000));
    idle(&agent, &proxy);
    heal(&agent, &proxy);
}

/// Nothing happens.
fn idle(agent: &Agent, proxy: &Proxy) {
    proxy.take_requests();
    let state = || (bytes_written(agent.pid()), files(&agent.data_dir()), agent.log());
    let (before, containers) = (state(), runs(agent));
    until_listed(proxy, 1);
    let begin = clock::boot_ms();
    for minute in 1..=minutes() {
        until_listed(proxy, minute + 1);
    }
    let passed = clock::boot_ms() - begin;
    let compares = minutes() as u64;
    assert!(passed + 1_000 >= compares * FULL_COMPARE_MS, "{compares} lists in {passed} ms");
    // The answer to the last one is compared, too.
    pause(Duration::from_secs(1));
    let requests = proxy.take_requests();
    assert!(requests.iter().all(|line| is_list(line)), "{requests:#?}");
    assert_eq!(requests.len(), minutes() + 1);
    assert_eq!(state(), before);
    assert_eq!(runs(agent), containers);
}

/// Somebody does things by hand, each to another workload.
fn heal(agent: &Agent, proxy: &Proxy) {
    let docker = agent.docker();
    let of = |name: &str| agent.container(name);
    let post = |one: &Container, act: &str| {
        docker.post(&format!("/containers/{}/{act}", one.id), &Value::Null);
    };
    let before = runs(agent);
    let (removed, stopped, killed) = (of("w00"), of("w01"), of("w02"));
    let (paused, renamed, doubled) = (of("w03"), of("w04"), of("w05"));
    proxy.take_requests();
    let twin = twin(agent, &doubled);
    assert!(docker.delete(&format!("/containers/{}?force=1", removed.id)));
    post(&stopped, "stop?t=1");
    post(&killed, "kill");
    post(&paused, "pause");
    post(&renamed, &format!("rename?name=somebody-{}", &renamed.id[..12]));
    agent.until_state("w03", "Failed(Unknown)");
    post(&paused, "unpause");

    until("w00 to be made again", || {
        let now = agent.containers().into_iter().find(|one| one.workload == "w00")?;
        (now.is_running() && now.id != removed.id).then_some(())
    });
    for one in [&stopped, &killed] {
        until(format_args!("{} to be started again", one.workload), || {
            let now = docker.container(&one.id)?;
            (now.is_running() && now.started_at != one.started_at).then_some(())
        });
    }
    until("the twin to be gone", || docker.container(&twin).is_none().then_some(()));
    let touched = ["w00", "w01", "w02", "w03", "w04", "w05"];
    agent.until_running(&touched);
    let compares = lists(proxy);
    assert!(compares <= 1, "all of it within a minute, not {compares}");

    if minutes() > 0 {
        // The next full compare finds nothing to do.
        proxy.take_requests();
        until_listed(proxy, 1);
        pause(Duration::from_secs(1));
        let requests = proxy.take_requests();
        assert!(requests.iter().all(|line| is_list(line)), "{requests:#?}");
    }
    // Nobody else was touched, and a container is that of its workload whatever it is called.
    let now = runs(agent);
    assert_eq!(now.len(), WORKLOADS, "{now:#?}");
    let changed: Vec<&str> =
        now.iter().filter(|run| !before.contains(run)).map(|run| run.0.as_str()).collect();
    assert_eq!(changed, ["w00", "w01", "w02"]);
    assert_eq!(agent.workload("w04").container_id, renamed.id);
    agent.ok(&["rm", "w04", "w05"]);
    assert_eq!(agent.containers().len(), WORKLOADS - 2);
}

/// A copy of a container, labels and all, which somebody makes and starts.
fn twin(agent: &Agent, of: &Container) -> String {
    let name = format!("bargee-{}-00000001", of.workload);
    let mut body = of.inspect["Config"].clone();
    body["HostConfig"] = of.inspect["HostConfig"].clone();
    body["Labels"]["bargee.instance"] = name.as_str().into();
    let made = agent.docker().post(&format!("/containers/create?name={name}"), &body);
    let id = made["Id"].as_str().unwrap().to_owned();
    agent.docker().post(&format!("/containers/{id}/start"), &Value::Null);
    id
}
