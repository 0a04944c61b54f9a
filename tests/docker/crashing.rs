//! The agent dies around every request that changes something on the engine, in every event of the
//! journal. Once one that starts again has come to rest, all is as it was declared.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

use serde_json::json;

use crate::engine_down;
use crate::rest::{expect_rest, look};
use crate::support::agent::Agent;
use crate::support::at_rest::Outcome::{self, Gone, Returned, Running, Stopped};
use crate::support::at_rest::{Wanted, until_at_rest};
use crate::support::engine::{DockerEngine, shared};
use crate::support::manifest::Manifest;
use crate::support::proxy::{Moment, Proxy, is_change};
use crate::support::until;

/// Cases under way at a time: most of what each does is to wait.
const LANES: usize = 6;

const KEY: &str = "crash/web";
const BYSTANDER: &str = "default/bystander";

/// One event of the journal, on the workload `crash/web`.
struct Event {
    /// Brings the workload to where the event begins, and waits for that.
    prepare: fn(&Agent),
    /// Asks for what makes the event happen. Whether all of it was answered.
    ask: fn(&Agent) -> bool,
    /// How the workload may be found if that was not answered.
    unanswered: &'static [Outcome],
    /// How it has to be found if it was.
    answered: Outcome,
    /// What the event asks of the engine when nothing goes wrong, as a part of each request line.
    requests: &'static [&'static str],
}

impl Event {
    fn wanted(&self, answered: bool) -> [Wanted; 2] {
        let web = if answered {
            Wanted::exactly(KEY, self.answered)
        } else {
            Wanted::any_of(KEY, self.unanswered)
        };
        [web, Wanted::exactly(BYSTANDER, Running(1))]
    }

    /// An agent with a workload that nothing may happen to, before the event.
    fn prepared(&self, proxy: &Proxy) -> Agent {
        let mut agent = Agent::new(shared(), &proxy.url());
        agent.start();
        agent.deploy(&[Manifest::service("bystander").with("stop.grace", "1s")]);
        agent.until_running(&["bystander"]);
        (self.prepare)(&agent);
        proxy.take_requests();
        agent
    }

    /// Without a crash: that the requests are those of the table, and no more.
    fn undisturbed(&self) {
        let proxy = Proxy::start(&shared().socket());
        let mut agent = self.prepared(&proxy);
        assert!((self.ask)(&agent), "{}", agent.log());
        until_at_rest(&self.wanted(true), || look(&agent));
        let changes = proxy.requests().into_iter().filter(|line| is_change(line) && !is_late(line));
        let changes: Vec<_> = changes.collect();
        let fits = |(line, words): (&String, &&str)| line.contains(words);
        assert!(
            changes.len() == self.requests.len() && changes.iter().zip(self.requests).all(fits),
            "{changes:#?} are not {:#?}",
            self.requests
        );
        expect_rest(&mut agent, &proxy, &self.wanted(true));
    }

    /// With a crash around one request.
    fn crash(&self, number: usize, moment: Moment) {
        let proxy = Proxy::start(&shared().socket());
        let mut agent = self.prepared(&proxy);
        let bystander = agent.container("bystander");
        proxy.trap(agent.pid(), number, moment);
        let answered = (self.ask)(&agent);
        let line = proxy.wait_sprung();
        let expected = self.requests[number];
        assert!(line.contains(expected) || is_late(&line), "{line} is not {expected}");
        agent.kill9_and_start();
        if moment == Moment::Late {
            proxy.pass_late();
        }
        expect_rest(&mut agent, &proxy, &self.wanted(answered));
        assert_eq!(agent.container("bystander").started_at, bystander.started_at);
    }

    /// All of it.
    fn survives_every_crash(&self) {
        let moments = [Moment::Before, Moment::Late, Moment::After];
        let numbers = 0..self.requests.len();
        let crashes = numbers.flat_map(|number| moments.map(|moment| Some((number, moment))));
        let cases: Vec<_> = [None].into_iter().chain(crashes).collect();
        in_lanes(&cases, |case| match *case {
            None => self.undisturbed(),
            Some((number, moment)) => self.crash(number, moment),
        });
    }
}

/// Runs all cases, a few at a time, and fails with those that failed.
pub fn in_lanes<T: std::fmt::Debug + Sync>(cases: &[T], run: impl Fn(&T) + Sync) {
    let left = Mutex::new(cases.iter());
    let failed = Mutex::new(Vec::new());
    let lane = || {
        loop {
            let Some(case) = left.lock().unwrap().next() else { return };
            if catch_unwind(AssertUnwindSafe(|| run(case))).is_err() {
                failed.lock().unwrap().push(case);
            }
        }
    };
    thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// Only sent to a process that did not listen yet when it was told to stop.
fn is_late(line: &str) -> bool {
    line.contains("signal=SIGKILL")
}

/// The workload, in a generation of its own for each mark.
fn web(mark: &str) -> Manifest {
    let web = Manifest::service("web").application("crash").bridged().hasty();
    web.with("env", json!({"MARK": mark})).with("stop.grace", "1s")
}

fn deploy(agent: &Agent, manifest: Manifest) -> bool {
    agent.deploy_with(&[], &[manifest]).code == 0
}

/// Asks with a verb; whether that was answered.
fn verb(agent: &Agent, verb: &str) -> bool {
    agent.run(&[verb, KEY, "--no-wait"]).code == 0
}

fn is_running(agent: &Agent) {
    agent.deploy(&[web("one")]);
    agent.until_running(&["web"]);
}

#[test]
fn while_it_creates() {
    Event {
        prepare: |_| {},
        ask: |agent| deploy(agent, web("one")),
        unanswered: &[Gone, Running(1)],
        answered: Running(1),
        requests: &["POST /v1.41/networks/create", "/containers/create", "/start"],
    }
    .survives_every_crash();
}

#[test]
fn while_it_stops_and_starts() {
    Event {
        prepare: is_running,
        ask: |agent| verb(agent, "stop"),
        unanswered: &[Running(1), Stopped(1)],
        answered: Stopped(1),
        requests: &["/kill?"],
    }
    .survives_every_crash();
    Event {
        prepare: |agent| {
            is_running(agent);
            agent.ok(&["stop", "web"]);
        },
        ask: |agent| verb(agent, "start"),
        unanswered: &[Stopped(1), Running(1)],
        answered: Running(1),
        requests: &["/start"],
    }
    .survives_every_crash();
}

#[test]
fn b04_while_it_updates_and_replaces() {
    Event {
        prepare: is_running,
        ask: |agent| deploy(agent, web("two")),
        unanswered: &[Running(1), Running(2)],
        answered: Running(2),
        requests: &["/containers/create", "/kill?", "/start", "DELETE /v1.41/containers/"],
    }
    .survives_every_crash();
}

#[test]
fn while_it_rebuilds() {
    Event {
        prepare: is_running,
        ask: |agent| verb(agent, "rebuild"),
        unanswered: &[Running(1)],
        answered: Running(1),
        requests: &["/containers/create", "/kill?", "/start", "DELETE /v1.41/containers/"],
    }
    .survives_every_crash();
}

#[test]
fn while_it_goes_back_from_an_update_that_cannot_be() {
    Event {
        prepare: is_running,
        ask: |agent| deploy(agent, web("two").with("command", json!(["/no/such/command"]))),
        unanswered: &[Running(1), Returned { running: 1, declared: 2 }],
        answered: Returned { running: 1, declared: 2 },
        requests: &[
            "/containers/create",
            "/kill?",
            "/start",
            "/start",
            "DELETE /v1.41/containers/",
        ],
    }
    .survives_every_crash();
}

#[test]
fn while_it_removes() {
    Event {
        prepare: is_running,
        ask: |agent| verb(agent, "rm"),
        unanswered: &[Running(1), Gone],
        answered: Gone,
        requests: &["/kill?", "DELETE /v1.41/containers/", "DELETE /v1.41/networks/"],
    }
    .survives_every_crash();
}

#[test]
fn while_it_makes_again_what_vanished() {
    Event {
        prepare: is_running,
        ask: |agent| {
            let id = agent.container("web").id;
            agent.docker().delete(&format!("/containers/{id}?force=1"))
        },
        unanswered: &[],
        answered: Running(1),
        requests: &["/containers/create", "/start"],
    }
    .survives_every_crash();
}

#[test]
fn while_it_removes_what_is_declared_again() {
    Event {
        prepare: is_running,
        ask: |agent| verb(agent, "rm") && deploy(agent, web("two")),
        unanswered: &[Running(1), Gone],
        answered: Running(1),
        requests: &["/kill?", "DELETE /v1.41/containers/", "/containers/create", "/start"],
    }
    .survives_every_crash();
}

#[test]
fn a_create_that_comes_after_its_workload_was_removed() {
    let proxy = Proxy::start(&shared().socket());
    let mut agent = Agent::new(shared(), &proxy.url());
    agent.start();
    // After the network.
    proxy.trap(agent.pid(), 1, Moment::Late);
    agent.deploy(&[web("one")]);
    assert!(proxy.wait_sprung().contains("/containers/create"));
    agent.kill9_and_start();
    agent.ok(&["rm", "web"]);
    assert!(agent.workloads().is_empty());
    proxy.pass_late();
    until("the late container", || (agent.containers().len() == 1).then_some(()));
    // Long before it would go as an orphan.
    expect_rest(&mut agent, &proxy, &[]);
    assert_eq!(agent.containers(), []);
}

/// An update on an engine that dies together with the agent, around one of its requests.
struct Doomed {
    proxy: Proxy,
    agent: Agent,
    answered: bool,
}

impl Doomed {
    fn new(engine: &DockerEngine, number: usize, moment: Moment) -> Self {
        let proxy = Proxy::start(&engine.socket());
        let mut agent = Agent::new(engine, &proxy.url());
        agent.start();
        is_running(&agent);
        proxy.trap(agent.pid(), number, moment);
        let answered = deploy(&agent, web("two"));
        proxy.wait_sprung();
        agent.kill9();
        Self { proxy, agent, answered }
    }

    fn expect_rest(mut self) {
        self.agent.start();
        let wanted = if self.answered { &[Running(2)][..] } else { &[Running(1), Running(2)] };
        expect_rest(&mut self.agent, &self.proxy, &[Wanted::any_of(KEY, wanted)]);
    }
}

#[test]
fn the_engine_dies_with_it_while_it_updates() {
    let engine = DockerEngine::start();
    let moments = [Moment::Before, Moment::After];
    let cases: Vec<_> = (0..4).flat_map(|number| moments.map(|moment| (number, moment))).collect();
    let doomed = Mutex::new(Vec::new());
    in_lanes(&cases, |&(number, moment)| {
        let one = Doomed::new(&engine, number, moment);
        doomed.lock().unwrap().push(one);
    });
    engine_down::kill9(&engine);
    engine.start_again();
    thread::scope(|scope| {
        for one in doomed.into_inner().unwrap() {
            scope.spawn(|| one.expect_rest());
        }
    });
}
