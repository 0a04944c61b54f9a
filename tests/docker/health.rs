//! Health checks, which the engine runs and bargee acts on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::docker_api::DockerApi;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::{pause, until};

/// A service with a check that is run every second, and is unhealthy after two failures.
fn checked(name: &str, test: impl Into<Value>) -> Manifest {
    let check = json!({"test": test.into(), "interval": "1s", "timeout": "5s", "retries": 2});
    Manifest::service(name).hasty().with("healthCheck", check)
}

/// One that is only reported.
fn reported(name: &str, test: impl Into<Value>) -> Manifest {
    checked(name, test).with("healthCheck.onUnhealthy", "none")
}

/// Runs a line of shell in a container.
fn exec(docker: &DockerApi, container: &str, line: &str) {
    let exec = json!({"Cmd": ["sh", "-c", line]});
    let made = docker.post(&format!("/containers/{container}/exec"), &exec);
    let path = format!("/exec/{}", made["Id"].as_str().unwrap());
    docker.post(&format!("{path}/start"), &json!({"Detach": true}));
    until("the end of a command", || {
        let state = docker.read(&format!("{path}/json"));
        (state["Running"] == false).then(|| assert_eq!(state["ExitCode"], 0))
    });
}

#[test]
fn b41_an_unhealthy_workload_is_restarted_counted_and_waits_twice_as_long() {
    let agent = Agent::on(shared());
    let (history, told) = (agent.docker().history(), agent.events());
    agent.deploy(&[checked("web", "echo no good; exit 3")]);
    let words = "unhealthy: exitCode=3 output=no good";
    let waiting = agent.until("web", "between tries", |one| one.next_attempt_at > 0);
    let waiting = match waiting.state.as_str() {
        "Stopping" => agent.until_state("web", "Pending(Starting)"),
        _ => waiting,
    };
    assert!(waiting.state_info.starts_with("unhealthy; restart 1"), "{waiting:?}");
    assert_eq!((&*waiting.error_message, waiting.restart_count), (words, 0));
    assert_eq!(waiting.health, "");

    let web = agent.until("web", "restarted twice", |one| one.restart_count == 2);
    assert_eq!((&*web.last_error, &web.container_id), (words, &waiting.container_id));
    agent.ok(&["stop", "web"]);
    let events = history.of(&web.container_id);
    let times = |action: &str| {
        let mine = events.iter().filter(|event| event["Action"] == action);
        mine.map(|event| event["timeNano"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (starts, ends) = (times("start"), times("die"));
    assert_eq!(starts.len() as u64, agent.workload("web").restart_count + 1, "{events:?}");
    for (delay, (end, start)) in [1, 2].into_iter().zip(ends.iter().zip(&starts[1..])) {
        assert!(start - end >= delay * 1_000_000_000, "{delay} s: {events:?}");
    }
    // Each change of health was told, with what the check said.
    let told = told.until("default/web", "Stopped(Ok)");
    let changes = told.iter().map(|one| (one.to.as_str(), one.health.as_str()));
    let first: Vec<_> = changes.skip_while(|(to, _)| *to != "Running(Ok)").take(3).collect();
    let stopping = ("Stopping(RequestedAtRuntime)", "unhealthy");
    assert_eq!(first, [("Running(Ok)", "starting"), stopping, ("Pending(Starting)", "")]);
    assert!(told.iter().any(|one| one.health == "unhealthy" && one.info.contains(words)));
}

#[test]
fn one_that_recovers_by_its_restart_is_healthy_again() {
    let agent = Agent::on(shared());
    let line = "rm -f /bad; trap 'exit 0' TERM; sleep 100000 & wait";
    let check = json!({"test": ["CMD", "test", "!", "-e", "/bad"], "interval": "1s", "retries": 1});
    agent.deploy(&[Manifest::shell("web", line).hasty().with("healthCheck", check)]);
    let before = agent.until("web", "healthy", |one| one.health == "healthy");
    assert!(agent.ok(&["ps"]).contains("Running(Ok) healthy"));

    exec(agent.docker(), &before.container_id, "touch /bad");
    agent.until("web", "restarted", |one| one.restart_count == 1);
    let after = agent.until("web", "healthy again", |one| one.health == "healthy");
    assert_eq!((after.restart_count, &after.container_id), (1, &before.container_id));
    assert_ne!(after.started_at, before.started_at);
    assert!(after.last_error.starts_with("unhealthy: exitCode=1"), "{}", after.last_error);
}

#[test]
fn b41_none_leaves_it_running_and_an_image_s_own_check_is_only_shown() {
    let agent = Agent::on(shared());
    agent.docker().make_image("checked", "HEALTHCHECK --interval=1s --retries=1 CMD exit 1");
    let of_image = |name: &str| Manifest::service(name).with("image", "checked:1");
    let off = of_image("off").with("healthCheck", json!({"test": ["NONE"]}));
    agent.deploy(&[reported("web", "exit 4"), of_image("image"), off]);

    let web = agent.until("web", "unhealthy", |one| one.health == "unhealthy");
    let words = "unhealthy: exitCode=4";
    assert_eq!((&*web.state_info, &*web.error_message), (words, words));
    let image = agent.until("image", "unhealthy", |one| one.health == "unhealthy");
    assert_eq!((&*image.state_info, &*image.error_message), ("unhealthy: exitCode=1", ""));
    pause(Duration::from_secs(3));
    for before in [web, image, agent.workload("off")] {
        let now = agent.workload(&before.name);
        assert_eq!(now.state_words(), "Running(Ok)");
        assert_eq!((now.started_at, now.restart_count), (before.started_at, 0));
    }
    assert_eq!(agent.workload("off").health, "");
    assert!(agent.container("off").inspect["State"]["Health"].is_null());
}

#[test]
fn b43_probes_that_hang_are_ended_and_do_not_pile_up() {
    let agent = Agent::on(shared());
    let hangs = reported("web", json!(["CMD", "sleep", "500"]));
    agent.deploy(&[hangs.with("healthCheck.timeout", "1s")]);
    let web = agent.until("web", "unhealthy", |one| one.health == "unhealthy");
    let words = "unhealthy: exitCode=-1 output=Health check exceeded timeout (1s)";
    assert_eq!(web.error_message, words);
    let path = format!("/containers/{}", web.container_id);
    let streak = || {
        let state = agent.docker().read(&format!("{path}/json"));
        state["State"]["Health"]["FailingStreak"].as_u64().unwrap()
    };
    let first = streak();
    until("four more probes", || (streak() >= first + 4).then_some(()));
    // The shell, what it waits for, and one probe at most.
    let top = agent.docker().read(&format!("{path}/top"));
    assert!(top["Processes"].as_array().unwrap().len() <= 3, "{top}");
    assert_eq!(agent.workload("web").started_at, web.started_at);
}

#[test]
fn b41_an_agent_killed_over_it_neither_doubles_nor_loses_the_restart() {
    let mut agent = Agent::on(shared());
    // It does not listen, so that the agent dies between signal and end.
    let deaf = Manifest::shell("web", "trap '' TERM; while :; do sleep 1; done");
    let check = json!({"test": "exit 1", "interval": "2s", "retries": 1});
    let docker = DockerApi::new(&shared().socket());
    let history = docker.history();
    agent.deploy(&[deaf.with("healthCheck", check).with("stop.grace", "6s")]);
    let first = agent.until("web", "being stopped", |one| one.state == "Stopping");
    agent.kill9_and_start();
    // The first agent's stop is brought to its end, and waits like that after any short run.
    let waiting = agent.until_state("web", "Pending(Starting)");
    assert_eq!((waiting.restart_count, &waiting.container_id), (0, &first.container_id));
    assert!(waiting.state_info.starts_with("unhealthy; restart 1 in "), "{waiting:?}");
    agent.kill9_and_start();
    let again = agent.until("web", "restarted", |one| one.restart_count == 1);
    assert_eq!(again.last_error, "unhealthy: exitCode=1");
    agent.kill9_and_start();
    assert_eq!(agent.workload("web").restart_count, 1);
    assert_eq!(history.starts(&first.container_id), 2);
}

#[test]
fn a_healthy_workload_is_adopted_and_what_turns_meanwhile_is_found() {
    let mut agent = Agent::on(shared());
    let test = "test ! -e /bad";
    agent.deploy(&[checked("web", test), reported("left", test)]);
    let is_healthy = |agent: &Agent| {
        ["web", "left"].map(|name| agent.until(name, "healthy", |one| one.health == "healthy"))
    };
    let before = is_healthy(&agent);
    agent.restart();
    for (now, before) in is_healthy(&agent).iter().zip(&before) {
        assert_eq!((now.started_at, now.restart_count), (before.started_at, 0));
        assert_eq!(now.container_id, before.container_id);
    }
    agent.kill9();
    for one in &before {
        exec(agent.docker(), &one.container_id, "touch /bad");
    }
    for one in &before {
        until("the verdict of the engine", || {
            let state = &agent.container(&one.name).inspect["State"];
            (state["Health"]["Status"] == "unhealthy").then_some(())
        });
    }
    agent.start();
    agent.until("left", "unhealthy", |one| one.health == "unhealthy");
    agent.until("web", "restarted", |one| one.restart_count == 1);
    assert_eq!(agent.workload("left").started_at, before[1].started_at);
}

#[test]
fn an_update_that_turns_unhealthy_brings_the_version_before_back() {
    let agent = Agent::on(shared());
    let test = "test ! -e /bad || { echo bad version; exit 1; }";
    agent.deploy_with(&["--wait"], &[checked("web", test)]).expect(0, &["deploy"]);
    let old = agent.workload("web");
    let history = agent.docker().history();

    let line = "touch /bad; trap 'exit 0' TERM; sleep 100000 & wait";
    let bad = checked("web", test).with("command", json!(["sh", "-c", line]));
    let output = agent.deploy_with(&["--wait"], &[bad]);
    assert_eq!(output.code, 1, "{output:?}");
    let words = "unhealthy: exitCode=1 output=bad version";
    let why = format!("the update to generation 2 failed: {words}");
    assert!(output.err.contains(&why), "{}", output.err);
    let web = agent.until("web", "healthy as before", |one| one.health == "healthy");
    assert_eq!((&web.container_id, web.observed_generation), (&old.container_id, 1));
    assert_eq!((web.restart_count, &*web.error_message), (0, words));
    assert_eq!(web.failed_update.unwrap().cause, words);
    until("the new container to be gone", || (agent.containers().len() == 1).then_some(()));
    assert_eq!(history.starts(&old.container_id), 1, "once more, in place");
}

#[test]
fn deploy_waits_for_healthy_and_says_who_is_not() {
    let agent = Agent::on(shared());
    let soon = checked("soon", "test -e /ok || touch /ok");
    let never = reported("never", "echo still broken; exit 1");
    let output = agent.deploy_with(&["--wait"], std::slice::from_ref(&soon));
    output.expect(0, &["deploy"]);
    assert_eq!(agent.workload("soon").health, "healthy");
    let output = agent.deploy_with(&["--wait=10s"], &[soon, never]);
    assert_eq!(output.code, 1, "{output:?}");
    let why = "default/never: the wait of 10s is over: Running(Ok): unhealthy: exitCode=1 \
               output=still broken";
    assert!(output.err.contains(why), "{}", output.err);
    assert!(!output.err.contains("error: default/soon"), "{}", output.err);
}
