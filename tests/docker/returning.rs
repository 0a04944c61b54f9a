//! Updates on probation: how long the service is down for one that fails, and that it is back.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bargee::limits;
use serde_json::{Value, json};

use crate::support::agent::Agent;
use crate::support::docker_api::{Container, History};
use crate::support::engine::{DockerEngine, shared};
use crate::support::manifest::Manifest;
use crate::support::registry::Registry;
use crate::support::until;

/// Somebody who asks the service for a page all the time.
struct Visitor {
    port: u16,
    stays: Sender<()>,
    thread: JoinHandle<(usize, usize)>,
}

impl Visitor {
    /// Of a service that is up.
    fn of(port: u16) -> Self {
        until("the service to answer", || visit(port).then_some(()));
        let (stays, until_left) = mpsc::channel();
        let pause = Duration::from_millis(20);
        let ask = move || {
            let (mut asked, mut failed) = (0, 0);
            while until_left.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                asked += 1;
                failed += usize::from(!visit(port));
            }
            (asked, failed)
        };
        Self { port, stays, thread: thread::Builder::new().spawn(ask).unwrap() }
    }

    /// Leaves when it is answered; how often it asked, and how often it was not answered.
    fn leave(self) -> (usize, usize) {
        until("the service to answer again", || visit(self.port).then_some(()));
        drop(self.stays);
        self.thread.join().unwrap()
    }
}

fn visit(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut answer = [0; 9];
    let asked = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
    asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.")
}

/// A port that nobody holds at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Answers on `port` of the device, and does what `line` says beside.
fn web(port: u16, line: &str) -> Manifest {
    let server = "echo hello >/tmp/index.html; httpd -p 80 -h /tmp;";
    let line = format!("{server} trap 'exit 0' TERM; {line}");
    let ports = json!([format!("127.0.0.1:{port}:80")]);
    Manifest::shell("web", &line).bridged().with("ports", ports)
}

const LASTS: &str = "sleep 100000 & wait";

/// Deploys the first version of a service; it has not proved itself yet.
fn deploy_first(agent: &Agent, port: u16) -> Container {
    agent.deploy(&[web(port, LASTS)]);
    agent.until_running(&["web"]);
    agent.container("web")
}

/// All the time in which nothing ran, by what the engine says.
fn down(history: &History, agent: &Agent) -> Duration {
    let (mut live, mut since, mut down) = (0, None, 0);
    for event in history.of_node(agent.node()) {
        let at = event["timeNano"].as_u64().unwrap();
        match event["Action"].as_str() {
            Some("start") => {
                down += since.take().map_or(0, |since| at - since);
                live += 1;
                assert_eq!(live, 1, "two of one workload live");
            }
            Some("die") => {
                live -= 1;
                since = Some(at);
            }
            _ => {}
        }
    }
    Duration::from_nanos(down)
}

fn starts(history: &History, agent: &Agent) -> usize {
    let is_start = |event: &&Value| event["Action"] == "start";
    history.of_node(agent.node()).iter().filter(is_start).count()
}

/// The old container runs, alone and as it was, and the update is tried again in 5 minutes.
fn expect_return(agent: &Agent, old: &Container, cause: &str) {
    let web = agent.until("web", "running as before", |one| {
        one.state == "Running" && one.container_id == old.id && one.failed_update.is_some()
    });
    assert_eq!((web.generation, web.observed_generation, web.restart_count), (2, 1, 0));
    let failed = web.failed_update.unwrap();
    assert!(failed.generation == 2 && failed.cause.contains(cause), "{failed:?}");
    assert!(failed.retries);
    let next = web.next_attempt_at.saturating_sub(web.last_error_at);
    assert!(next.abs_diff(limits::UPDATE_WAITS_MS[0]) < 5_000, "the next try after {next} ms");
    let table = agent.ok(&["ps"]);
    assert!(table.contains(cause) && table.contains("; try 2 in "), "{table}");
    until("the new container to be gone", || (agent.containers().len() == 1).then_some(()));
}

fn expect_proof(agent: &Agent) {
    until("the old container to be gone", || (agent.containers().len() == 1).then_some(()));
    let web = agent.workload("web");
    assert_eq!((web.observed_generation, web.failed_update), (2, None));
    assert_eq!((web.error_message.as_str(), web.restart_count), ("", 0));
    agent.ok(&["rm", "web"]);
    agent.expect_no_trace();
}

/// It answers for 3 s, and is not left alone with its death.
#[test]
fn b106_a_version_that_dies_brings_the_old_container_back() {
    let agent = Agent::on(shared());
    let history = agent.docker().history();
    let port = free_port();
    let old = deploy_first(&agent, port);
    let visitor = Visitor::of(port);
    let output = agent.deploy_with(&["--wait"], &[web(port, "sleep 3; exit 3")]);
    assert_eq!(output.code, 1, "{output:?}");
    let told = "the update to generation 2 failed: exitCode=3 oomKilled=false (it will be tried";
    assert!(output.err.contains(told), "{output:?}");
    expect_return(&agent, &old, "exitCode=3 oomKilled=false");
    assert_ne!(agent.container("web").started_at, old.started_at);
    let (asked, failed) = visitor.leave();
    let down = down(&history, &agent);
    println!("down for {down:?}, {failed} of {asked} requests failed");
    assert_eq!(starts(&history, &agent), 3);
    // For a start there and a start back, and not for the delay of a crash.
    assert!(down < Duration::from_millis(limits::RESTART_DELAY_MS), "{down:?}");
    agent.ok(&["rm", "web"]);
    agent.expect_no_trace();
}

#[test]
fn b109_a_version_whose_pull_hangs_does_not_touch_the_service() {
    let agent = Agent::on(shared());
    let registry = Registry::start();
    registry.stall();
    let history = agent.docker().history();
    let port = free_port();
    let old = deploy_first(&agent, port);
    let visitor = Visitor::of(port);
    let words = ["/busybox", "httpd", "-f", "-p", "80", "-h", "/"];
    let pulled = Manifest::new("web", &words)
        .with("image", registry.image("1"))
        .with("pull", "missing")
        .with("stop.signal", "SIGKILL")
        .bridged()
        .with("ports", json!([format!("127.0.0.1:{port}:80")]));
    agent.deploy(&[pulled]);
    agent.until("web", "half pulled", |one| one.state_info.contains("pulling"));
    // Until nothing came for so long that it gives up its place.
    expect_return(&agent, &old, "stalled");
    assert_eq!(agent.container("web").started_at, old.started_at, "not even stopped");
    let (asked, failed) = visitor.leave();
    println!("{failed} of {asked} requests failed");
    assert_eq!((failed, down(&history, &agent)), (0, Duration::ZERO));

    registry.go_on();
    agent.ok(&["rebuild", "web"]);
    until("the service to answer", || visit(port).then_some(()));
    expect_proof(&agent);
}

/// Somebody else holds a port that the new version wants beside that of the old one.
#[test]
fn a_version_that_wants_a_taken_port_does_not_touch_the_service() {
    let agent = Agent::on(shared());
    let history = agent.docker().history();
    let port = free_port();
    let old = deploy_first(&agent, port);
    let visitor = Visitor::of(port);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().port();
    let ports = json!([format!("127.0.0.1:{port}:80"), format!("127.0.0.1:{taken}:80")]);
    let two = web(port, LASTS).with("ports", ports);
    let output = agent.deploy_with(&["--wait"], &[two]);
    assert_eq!(output.code, 1, "{output:?}");
    expect_return(&agent, &old, &taken.to_string());
    assert_eq!(agent.container("web").started_at, old.started_at, "not even stopped");
    let (asked, failed) = visitor.leave();
    println!("{failed} of {asked} requests failed");
    assert_eq!((failed, down(&history, &agent)), (0, Duration::ZERO));

    drop(listener);
    agent.ok(&["rebuild", "web"]);
    for port in [port, taken] {
        until("the service to answer", || visit(port).then_some(()));
    }
    expect_proof(&agent);
}

/// Neither the death of the agent nor that of the engine is one of the new version.
#[test]
fn a_version_on_probation_outlives_agent_and_engine() {
    let engine = DockerEngine::start();
    let mut agent = Agent::on(&engine);
    agent.deploy(&[Manifest::service("web")]);
    agent.until_running(&["web"]);
    agent.deploy(&[Manifest::service("web").with("env", json!({"COLOUR": "blue"}))]);
    let new = agent.until("web", "updated", |one| one.observed_generation == 2);
    assert!(new.state_info.contains("has to run for"), "{}", new.state_info);

    agent.kill9_and_start();
    let adopted = agent.until_state("web", "Running(Ok)");
    assert_eq!((&adopted.container_id, adopted.started_at), (&new.container_id, new.started_at));
    assert_eq!(agent.containers().len(), 2);

    // With all its containers.
    engine.kill();
    until("the engine to be away", || (!agent.status().engine.up).then_some(()));
    engine.start_again();
    let again = agent.until("web", "running again", |one| {
        one.state == "Running" && one.started_at != new.started_at
    });
    assert_eq!((&again.container_id, &again.failed_update), (&new.container_id, &None));
    expect_proof(&agent);
}
