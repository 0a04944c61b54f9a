//! The device starts again: engine, what supervises the containers, and their processes are killed,
//! the agent too, and the kernel's boot id is another one. Each test has an engine of its own.

use std::collections::BTreeMap;

use crate::support::agent::Agent;
use crate::support::engine::DockerEngine;
use crate::support::manifest::Manifest;
use crate::support::until;

const SERVICES: [&str; 3] = ["always", "never", "on-failure"];
const ALL: [&str; 8] =
    ["always", "never", "on-failure", "once", "each", "cut", "looping", "stopped"];

/// Services of every policy; jobs that are done, of which one is done anew after a boot, and one
/// that is not done; a crash loop between two tries; a service that is stopped.
fn deploy_all(agent: &Agent) {
    let mut all: Vec<_> = SERVICES.map(|name| Manifest::service(name).restart(name)).into();
    all.extend([
        Manifest::job("once"),
        Manifest::job("each").with("rerun", "boot"),
        Manifest::shell("cut", "sleep 100000").restart("on-failure"),
        Manifest::shell("looping", "exit 3").with("restart.delay", "300s"),
        Manifest::service("stopped"),
    ]);
    agent.deploy(&all.into_iter().map(Manifest::bridged).collect::<Vec<_>>());
    agent.until_running(&SERVICES);
    agent.until_running(&["cut", "stopped"]);
    agent.until_state("once", "Succeeded(Ok)");
    agent.until_state("each", "Succeeded(Ok)");
    agent.until("looping", "between two tries", |one| one.next_attempt_at > 0);
    agent.ok(&["stop", "stopped"]);
}

fn ids(agent: &Agent) -> BTreeMap<String, String> {
    agent.containers().into_iter().map(|one| (one.workload, one.id)).collect()
}

fn starts(agent: &Agent) -> BTreeMap<String, String> {
    agent.containers().into_iter().map(|one| (one.workload, one.started_at)).collect()
}

/// All that is wanted runs in this boot, and what was done or stopped is as it was.
fn expect_all(agent: &Agent, before: &BTreeMap<String, String>) {
    for name in ["always", "never", "on-failure", "cut", "each", "looping"] {
        until(format_args!("{name} to be started"), || {
            (agent.container(name).started_at != before[name]).then_some(())
        });
    }
    agent.until_running(&SERVICES);
    agent.until_running(&["cut"]);
    agent.until_state("each", "Succeeded(Ok)");
    agent.until_state("once", "Succeeded(Ok)");
    agent.until_state("stopped", "Stopped(Ok)");
    let after = starts(agent);
    for name in ["once", "stopped"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    for name in ALL.into_iter().filter(|name| *name != "looping") {
        let one = agent.workload(name);
        assert_eq!((one.restart_count, one.last_error.as_str()), (0, ""), "{name}");
    }
}

#[test]
fn b13_b28_after_a_power_cut_all_that_is_wanted_runs_and_what_is_done_is_done() {
    let engine = DockerEngine::start();
    let mut agent = Agent::on(&engine);
    deploy_all(&agent);
    let (made, before) = (ids(&agent), starts(&agent));

    // The engine is there before the agent.
    engine.kill();
    agent.kill9();
    agent.set_boot("second");
    engine.start_again();
    agent.start();
    expect_all(&agent, &before);
    // The wait of the crash loop was over with the boot, and its crash before that was counted.
    agent.until("looping", "between two tries", |one| one.next_attempt_at > 0);
    assert_eq!(agent.workload("looping").restart_count, 1);

    // The agent is there before the engine.
    let before = starts(&agent);
    engine.kill();
    agent.kill9();
    agent.set_boot("third");
    agent.launch();
    assert_eq!(agent.workload("once").desired_state, "running");
    engine.start_again();
    expect_all(&agent, &before);
    assert_eq!(ids(&agent), made, "each has the container that it had, and nothing is doubled");

    // In the same boot nothing of that happens again.
    let before = starts(&agent);
    agent.kill9_and_start();
    agent.until_running(&SERVICES);
    let after = starts(&agent);
    for name in ALL.into_iter().filter(|name| *name != "looping") {
        assert_eq!(after[name], before[name], "{name}");
    }
}
