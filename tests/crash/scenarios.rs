//! What the agent is asked to do when it dies.

use crate::support::at_rest::{Outcome, Wanted};
use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::until;

/// A thing to do, on a device in a certain state.
pub struct Scenario {
    pub name: &'static str,
    /// Brings a device to the state, from `other` that runs already.
    pub prepare: fn(&Device),
    /// Asks for it or makes it happen. Whether it was answered that it will be done.
    pub act: fn(&Device) -> bool,
    /// How `web` is before; it may stay so if nobody was answered.
    pub before: Outcome,
    /// How it has to be once it was answered.
    pub after: Outcome,
    /// Once it was answered, the container is not the run of before.
    pub runs_anew: bool,
}

/// All of them.
pub const SCENARIOS: [Scenario; 10] = [
    Scenario {
        name: "create",
        prepare: |_| {},
        act: |device| accepted(device.ask("POST", APPLY, &service("web"))),
        before: Outcome::Gone,
        after: Outcome::Running(1),
        runs_anew: false,
    },
    Scenario {
        name: "stop",
        prepare: run_web,
        act: |device| accepted(device.ask("POST", "/v1/ms/web/stop", "")),
        before: Outcome::Running(1),
        after: Outcome::Stopped(1),
        runs_anew: false,
    },
    Scenario {
        name: "start",
        prepare: stop_web,
        act: |device| accepted(device.ask("POST", "/v1/ms/web/start", "")),
        before: Outcome::Stopped(1),
        after: Outcome::Running(1),
        runs_anew: false,
    },
    Scenario {
        name: "restart",
        prepare: run_web,
        act: |device| accepted(device.ask("POST", "/v1/ms/web/restart", "")),
        before: Outcome::Running(1),
        after: Outcome::Running(1),
        runs_anew: true,
    },
    Scenario {
        name: "rebuild",
        prepare: run_web,
        act: |device| accepted(device.ask("POST", "/v1/ms/web/rebuild", "")),
        before: Outcome::Running(1),
        after: Outcome::Running(1),
        runs_anew: true,
    },
    Scenario {
        name: "update",
        prepare: run_web,
        act: |device| accepted(device.ask("POST", APPLY, &second())),
        before: Outcome::Running(1),
        after: Outcome::Running(2),
        runs_anew: false,
    },
    Scenario {
        name: "replace",
        prepare: replace_in_vain,
        act: |device| {
            device.engine.straighten();
            accepted(device.ask("POST", "/v1/journal/replay", ""))
        },
        before: Outcome::Running(2),
        after: Outcome::Running(2),
        runs_anew: false,
    },
    Scenario {
        name: "recreate",
        prepare: run_web,
        act: |device| {
            device.engine.take_away("bargee-web-");
            false
        },
        before: Outcome::Running(1),
        after: Outcome::Running(1),
        runs_anew: false,
    },
    Scenario {
        name: "remove",
        prepare: run_web,
        act: |device| accepted(device.ask("DELETE", "/v1/ms/web", "")),
        before: Outcome::Running(1),
        after: Outcome::Gone,
        runs_anew: false,
    },
    Scenario {
        name: "remove a stopped one",
        prepare: stop_web,
        act: |device| accepted(device.ask("DELETE", "/v1/ms/web", "")),
        before: Outcome::Stopped(1),
        after: Outcome::Gone,
        runs_anew: false,
    },
];

/// The workload beside it, which is left alone all the time.
const OTHER: &str = "beside/other";
const APPLY: &str = "/v1/deploy/microservices:apply";

impl Scenario {
    /// What has to be there at rest, the workload beside it included.
    pub fn wanted(&self, answered: bool) -> [Wanted; 2] {
        let web = match answered {
            true => Wanted::exactly("default/web", self.after),
            false => Wanted::any_of("default/web", &[self.before, self.after]),
        };
        [web, Wanted::exactly(OTHER, Outcome::Running(1))]
    }
}

/// A device in the state that the scenario begins with.
pub fn prepared(scenario: &Scenario) -> Device {
    let device = Device::started();
    // Of another application, so that the network of the first is made and removed.
    let other = service("other").replace("{name: other}", "{name: other, application: beside}");
    device.deploy(&other);
    device.until_running(&["other"]);
    (scenario.prepare)(&device);
    device.engine.forget_requests();
    device
}

fn run_web(device: &Device) {
    device.deploy(&service("web"));
    device.until_running(&["web"]);
}

fn stop_web(device: &Device) {
    run_web(device);
    assert_eq!(device.cli(&["stop", "web"]).code, 0);
    device.until_state("web", "Stopped(Ok)");
}

/// An update whose new container runs, and whose old one the engine does not remove.
fn replace_in_vain(device: &Device) {
    run_web(device);
    device.engine.bend_for(Route::Remove, "bargee-web-", Bend::Status(500));
    device.deploy(&second());
    until("the removal to fail", || {
        let journal = device.journal();
        journal.iter().any(|entry| !entry.error.is_empty()).then_some(())
    });
    device.until_running(&["web"]);
}

/// Another generation of `web`, from which another container is made.
fn second() -> String {
    service("web").replace("[serve]", "[serve, again]")
}

fn accepted(answer: Option<(u16, String)>) -> bool {
    match answer {
        Some((200 | 202, _)) => true,
        Some((status, body)) => panic!("answered {status}: {body}"),
        None => false,
    }
}
