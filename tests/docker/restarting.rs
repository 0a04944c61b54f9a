//! Exits, and what is done to containers behind the agent's back.

use serde_json::Value;

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

/// Seconds from one time to another of the same or the next day, as the engine writes them.
fn seconds(from: &str, to: &str) -> f64 {
    let of_day = |time: &str| {
        let (_, time) = time.trim_end_matches('Z').split_once('T').unwrap();
        time.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap())
    };
    (of_day(to) - of_day(from)).rem_euclid(86_400.0)
}

#[test]
fn a_crash_is_tried_again_ten_seconds_after_the_exit() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::shell("web", "exit 1")]);
    let waiting = agent.until("web", "between tries", |one| one.next_attempt_at > 0);
    assert_eq!(waiting.state_words(), "Pending(Starting)");
    assert!(waiting.state_info.starts_with("exitCode=1; restart 1 in "), "{waiting:?}");
    assert_eq!(waiting.error_message, "exitCode=1 oomKilled=false");
    assert_eq!(waiting.restart_count, 0);
    let first = agent.container("web");

    agent.until("web", "restarted", |one| one.restart_count == 1);
    let second = agent.container("web");
    assert_eq!(second.id, first.id);
    assert_ne!(second.started_at, first.started_at);
    let waited = seconds(&first.finished_at, &second.started_at);
    assert!(waited >= 10.0, "{waited}");
}

#[test]
fn b35_each_restart_is_counted_once_and_waits_twice_as_long() {
    let agent = Agent::on(shared());
    let history = agent.docker().history();
    agent.deploy(&[Manifest::shell("web", "exit 1").hasty()]);
    let web = agent.until("web", "restarted three times", |one| one.restart_count == 3);
    let id = web.container_id;
    agent.ok(&["stop", "web"]);
    let web = agent.workload("web");
    let events = history.of(&id);
    let times = |action: &str| {
        let mine = events.iter().filter(|event| event["Action"] == action);
        mine.map(|event| event["timeNano"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let (starts, ends) = (times("start"), times("die"));
    assert_eq!(web.restart_count, starts.len() as u64 - 1, "{events:?}");
    for (delay, (end, start)) in [1, 2, 4].into_iter().zip(ends.iter().zip(&starts[1..])) {
        assert!(start - end >= delay * 1_000_000_000, "{delay} s: {events:?}");
    }
}

#[test]
fn the_policy_decides_what_follows_an_exit() {
    let agent = Agent::on(shared());
    let of = |policy: &str, code: u8| {
        let name = format!("{policy}-{code}");
        Manifest::shell(&name, &format!("exit {code}")).restart(policy).hasty()
    };
    let policies = ["always", "on-failure", "never"];
    let history = agent.docker().history();
    let all = policies.iter().flat_map(|policy| [of(policy, 0), of(policy, 7)]);
    agent.deploy(&all.collect::<Vec<_>>());

    for name in ["always-0", "always-7", "on-failure-7"] {
        let one = agent.until(name, "restarted twice", |one| one.restart_count >= 2);
        let error = if name == "always-0" { "" } else { "exitCode=7 oomKilled=false" };
        assert_eq!(one.error_message, error, "{name}");
    }
    for name in ["on-failure-0", "never-0"] {
        let one = agent.until_state(name, "Succeeded(Ok)");
        assert_eq!((one.exit_code, one.restart_count), (Some(0), 0), "{name}");
    }
    let failed = agent.until_state("never-7", "Failed(ExecFailed)");
    assert_eq!((failed.exit_code, failed.restart_count), (Some(7), 0));
    // Those that are over have run once.
    for name in ["on-failure-0", "never-0", "never-7"] {
        assert_eq!(history.starts(&agent.container(name).id), 1, "{name}");
    }
}

#[test]
fn b08_what_is_done_behind_the_agents_back_is_put_right() {
    let agent = Agent::on(shared());
    let quick = |name: &str| Manifest::service(name).hasty().with("restart.maxDelay", "1s");
    agent.deploy(&[quick("removed"), quick("killed"), quick("stopped")]);
    let before = agent.until_running(&["removed", "killed", "stopped"]);
    let docker = agent.docker();

    assert!(docker.delete(&format!("/containers/{}?force=1", before[0].container_id)));
    docker.post(&format!("/containers/{}/kill", before[1].container_id), &Value::Null);
    docker.post(&format!("/containers/{}/stop?t=10", before[2].container_id), &Value::Null);
    for one in before {
        let again = agent.until(&one.name, "running again", |now| {
            now.state == "Running" && now.started_at != one.started_at
        });
        assert_eq!(again.restart_count, 1, "{}", one.name);
        // A container that is still there is started again in place.
        assert_eq!(again.container_id == one.container_id, one.name != "removed");
        assert!(agent.container(&one.name).is_running());
    }
    assert_eq!(agent.workload("removed").last_error, "the container vanished");
    assert_eq!(agent.workload("killed").last_error, "exitCode=137 oomKilled=false");
}

#[test]
fn a_command_that_cannot_start_is_given_up_after_five_tries() {
    let agent = Agent::on(shared());
    let wrong = Manifest::new("web", &["/no/such/command"]);
    agent.deploy(&[wrong.with("restart", serde_json::json!({"delay": "1s", "maxDelay": "1s"}))]);
    let given_up = agent.until("web", "given up", |one| one.runtime_state == "FAILED");
    assert_eq!(given_up.state_words(), "Pending(StartingFailed)");
    assert_eq!((given_up.failure_count, given_up.restart_count), (5, 0));
    assert!(given_up.error_message.contains("/no/such/command"), "{given_up:?}");

    agent.deploy(&[Manifest::service("web")]);
    let runs = agent.until_state("web", "Running(Ok)");
    assert_eq!((runs.failure_count, runs.restart_count), (0, 0));
    until("one container", || (agent.containers().len() == 1).then_some(()));
}
