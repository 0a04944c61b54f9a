//! An agent and its engine at one time, for the check of what holds at rest.

use std::thread;
use std::time::Duration;

use crate::support::agent::Agent;
use crate::support::at_rest::{Held, Scene, Still, Wanted, until_at_rest};
use crate::support::docker_api::Container;
use crate::support::proxy::{Proxy, is_change};

/// Between two looks. Each asks the engine a dozen times, while other tests need it too.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

fn held(container: Container) -> Held {
    let Container { id, inspect, status, started_at: started, .. } = container;
    let text = |pointer: &str| inspect.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let labels = serde_json::from_value(inspect["Config"]["Labels"].clone()).unwrap();
    let name = text("/Name").trim_start_matches('/').to_owned();
    Held { id, name, labels, status, started, network: text("/HostConfig/NetworkMode") }
}

/// Everything that is there now; `None`: nobody answers.
pub fn look(agent: &Agent) -> Option<Scene> {
    thread::park_timeout(BETWEEN_LOOKS);
    let scene = Scene::read(|path| agent.get(path))?;
    if !scene.unrest.is_empty() || !scene.journal.is_empty() {
        return Some(scene);
    }
    Some(Scene {
        containers: agent.containers().into_iter().map(held).collect(),
        networks: agent.docker().networks(agent.node()),
        log: agent.log(),
        ..scene
    })
}

/// Waits until everything is as `wanted`, and then holds that an agent which is killed and started
/// leaves it so: it asks the engine for no change, and neither does a replay of its journal.
pub fn expect_rest(agent: &mut Agent, proxy: &Proxy, wanted: &[Wanted]) -> Scene {
    let scene = until_at_rest(wanted, || look(agent));
    agent.kill9();
    proxy.take_requests();
    agent.start();
    // It is answered after all that the start itself led to.
    assert_eq!(agent.post("/v1/journal/replay").0, 200);
    let again = until_at_rest(wanted, || look(agent));
    assert_eq!(still(again.clone()), still(scene));
    let mut changes = proxy.take_requests();
    changes.retain(|line| is_change(line) && !is_try(&again, line));
    assert!(changes.is_empty(), "an agent that starts at rest asked for {changes:#?}");
    again
}

/// What cannot be made is tried again and again.
fn is_try(scene: &Scene, line: &str) -> bool {
    scene.workloads.iter().filter(|one| one.container_id.is_empty()).any(|one| {
        let name = format!("/containers/create?name=bargee-{}-", one.name);
        line.contains(&name) || line.ends_with("/networks/create")
    })
}

/// What must be the same. Counters are written every 5 s, so that an agent that is killed may lose
/// the newest.
fn still(mut scene: Scene) -> Still {
    scene.workloads.iter_mut().for_each(|one| one.restart_count = 0);
    scene.still()
}
