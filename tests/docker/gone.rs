//! What supervises a container hangs, and its process is killed: the engine hears of nothing.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

/// The process that started `pid`.
fn parent(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

/// Goes on again however the test ends.
struct Frozen(Pid);

impl Frozen {
    fn new(pid: i32) -> Self {
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        Self(Pid::from_raw(pid))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

#[test]
fn b131_what_the_engine_calls_running_for_ever_is_found_and_made_anew() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::service("web"), Manifest::service("other")]);
    agent.until_running(&["web", "other"]);
    let (before, other) = (agent.container("web"), agent.container("other"));
    let pid = i32::try_from(before.inspect["State"]["Pid"].as_i64().unwrap()).unwrap();
    let frozen = Frozen::new(parent(pid));
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    assert!(agent.container("web").is_running(), "the engine heard of it");

    let one = agent.until("web", "found gone", |one| !one.last_error.is_empty());
    assert!(one.last_error.contains("its process is gone"), "{one:?}");
    agent.until("web", "made anew", |one| {
        one.state_words() == "Running(Ok)" && one.container_id != before.id
    });
    assert_eq!(agent.workload("web").restart_count, 1);
    // What is left of the old one can be removed only now: the engine waits for what hangs.
    drop(frozen);
    until("the old one to be gone", || {
        agent.docker().container(&before.id).is_none().then_some(())
    });
    let after = agent.containers();
    assert_eq!(after.len(), 2, "{after:?}");
    assert_eq!(agent.container("other").started_at, other.started_at);
}
