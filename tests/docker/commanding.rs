//! The commands for one workload.

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;

#[test]
fn a_stop_sends_the_signal_and_kills_after_the_grace() {
    let agent = Agent::on(shared());
    let polite = "trap 'echo told; exit 5' USR1; echo ready; sleep 100000 & wait";
    let polite = Manifest::shell("polite", polite).with("stop.signal", "USR1");
    let stubborn = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done";
    let stubborn = Manifest::shell("stubborn", stubborn);
    agent.deploy(&[polite, stubborn.with("stop.grace", "2s")]);
    agent.until_running(&["polite", "stubborn"]);
    for name in ["polite", "stubborn"] {
        // Running is said before the shell has come as far as to listen.
        assert_eq!(agent.follow(&["logs", "-f", name]).next().as_deref(), Some("ready"));
    }
    assert_eq!(
        agent.ok(&["stop", "polite", "stubborn"]),
        "default/polite stopped\ndefault/stubborn stopped\n"
    );
    for (name, code) in [("polite", 5), ("stubborn", 137)] {
        let one = agent.workload(name);
        assert_eq!(one.state_words(), "Stopped(Ok)");
        assert_eq!((one.exit_code, one.restart_count), (Some(code), 0), "{name}");
        assert_eq!(agent.ok(&["logs", name]), "ready\ntold\n", "{name}");
        assert_eq!(one.error_message, "", "an own stop is no failure");
    }
    assert_eq!(agent.ok(&["ps"]).lines().count(), 1);
    assert_eq!(agent.ok(&["ps", "-a"]).lines().count(), 3);
}

#[test]
fn a_restart_is_one_run_more_and_no_restart_of_the_policy() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web")]);
    let before = agent.until_state("web", "Running(Ok)");
    let history = agent.docker().history();
    assert_eq!(agent.ok(&["restart", "web"]), "default/web restarted\n");
    let after = agent.workload("web");
    assert_eq!(after.container_id, before.container_id);
    assert!(after.started_at > before.started_at);
    assert_eq!((after.state_words().as_str(), after.restart_count), ("Running(Ok)", 0));
    assert_eq!(history.starts(&after.container_id), 1);
}

#[test]
fn a_kill_is_judged_by_the_policy() {
    let agent = Agent::on(shared());
    let line = "trap 'echo hup' HUP; echo ready; while :; do sleep 0.1; done";
    let web = |name: &str| Manifest::shell(name, line).hasty();
    agent.deploy(&[web("web"), web("job").restart("never")]);
    let before = agent.until_running(&["web", "job"]);
    let log = agent.follow(&["logs", "-f", "web"]);
    assert_eq!(log.next().as_deref(), Some("ready"));
    assert_eq!(agent.ok(&["kill", "-s", "HUP", "web"]), "default/web signalled\n");
    assert_eq!(log.next().as_deref(), Some("hup"));
    assert_eq!(agent.workload("web").started_at, before[0].started_at);

    agent.ok(&["kill", "web", "job"]);
    let web = agent.until("web", "running again", |one| {
        one.state == "Running" && one.started_at > before[0].started_at
    });
    assert_eq!((web.restart_count, web.last_error.as_str()), (1, "exitCode=137 oomKilled=false"));
    let job = agent.until_state("job", "Failed(ExecFailed)");
    assert_eq!((job.exit_code, job.restart_count), (Some(137), 0));
    let refused = agent.run(&["kill", "job"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("does not run"), "{}", refused.err);
    // An operator's start runs it once more, whatever the policy says.
    agent.ok(&["start", "job"]);
    assert_eq!(agent.workload("job").state_words(), "Running(Ok)");
}

#[test]
fn a_log_is_followed_to_its_end_and_cut_to_its_tail() {
    let agent = Agent::on(shared());
    let line = "trap 'echo last; exit 0' TERM; seq 6; while :; do sleep 0.1; done";
    agent.deploy(&[Manifest::shell("web", line)]);
    agent.until_running(&["web"]);
    let mut followed = agent.follow(&["logs", "-f", "web"]);
    let lines: Vec<_> = (0..6).map(|_| followed.next().unwrap()).collect();
    assert_eq!(lines, ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(agent.ok(&["logs", "--tail", "2", "web"]), "5\n6\n");
    let tail = agent.follow(&["logs", "-f", "-n", "1", "web"]);
    assert_eq!(tail.next().as_deref(), Some("6"));
    agent.ok(&["stop", "web"]);
    for lines in [&followed, &tail] {
        assert_eq!(lines.next().as_deref(), Some("last"));
        assert_eq!(lines.next(), None);
    }
    assert_eq!(followed.code(), 0);
}

#[test]
fn events_tell_each_change_once_and_in_order() {
    let agent = Agent::on(shared());
    let events = agent.events();
    agent.deploy(&[Manifest::service("web").application("told")]);
    agent.until_running(&["web"]);
    agent.ok(&["stop", "web"]);
    agent.ok(&["start", "web"]);
    agent.ok(&["rm", "web"]);
    let passed = events.until("told/web", "Removed");
    let states: Vec<_> = passed.iter().map(|one| one.to.as_str()).collect();
    let wanted = [
        "Pending(Starting)",
        "Running(Ok)",
        "Stopping(RequestedAtRuntime)",
        "Stopped(Ok)",
        "Pending(Starting)",
        "Running(Ok)",
        "Stopping(RequestedAtRuntime)",
        "Removed",
    ];
    assert_eq!(states, wanted, "{passed:#?}");
    for pair in passed.windows(2) {
        assert_eq!(pair[0].to, pair[1].from);
        assert!(pair[0].seq < pair[1].seq);
    }
    let sentences = agent.ok(&["events"]);
    assert!(sentences.contains("told/web  Stopping(RequestedAtRuntime) -> Removed"), "{sentences}");
}

#[test]
fn the_answers_as_json_are_those_of_the_api() {
    use bargee::api::wire::{List, Workload};
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web")]);
    let web = agent.until_state("web", "Running(Ok)");
    let list: List<Workload> = agent.json(&["ps"]);
    assert_eq!(list.items.len(), 1);
    let listed = &list.items[0];
    assert_eq!((&listed.uid, &listed.container_id), (&web.uid, &web.container_id));
    let container = agent.container("web");
    assert_eq!(web.container_id, container.id);
    assert_eq!(u64::from(web.pid), container.inspect["State"]["Pid"].as_u64().unwrap());
    assert_eq!(web.image_id, container.inspect["Image"].as_str().unwrap());
    for name in ["web", "default/web", &web.uid, &web.uid[..8]] {
        let text = agent.ok(&["inspect", name, "-o", "json"]);
        assert!(text.contains(&web.container_id), "{name}: {text}");
    }
    assert_eq!(agent.run(&["inspect", "none"]).code, 4);
}
