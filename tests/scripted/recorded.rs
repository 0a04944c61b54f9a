//! The agent with answers of a real engine.

use crate::support::device::{Device, workload};
use crate::support::recorded::bend;
use crate::support::scripted_engine::{PULLED_IMAGE, Route};
use crate::support::until;

/// A device on an engine that says of itself and of its containers what a real one said.
fn device() -> Device {
    let mut device = Device::new();
    device.engine.bend(Route::Ping, bend("ping"));
    device.engine.bend(Route::Version, bend("version"));
    device.engine.bend(Route::Info, bend("info"));
    device.engine.bend_next(Route::List, 1, bend("list"));
    device.start();
    device
}

#[test]
fn a_workload_gets_through_the_refusals_of_a_real_engine() {
    let device = device();
    // They are of another node.
    assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());

    device.engine.bend_next(Route::Create, 1, bend("create-no-image"));
    device.engine.bend_next(Route::Pull, 1, bend("pull-no-tag"));
    device.engine.bend_next(Route::Start, 1, bend("start-port-taken"));
    let web = workload("web", "serve", "restart: {delay: 100ms}, stop: {grace: 1s}");
    let web = web.replace("never", "missing");
    let web = web.replace(crate::support::scripted_engine::IMAGE, PULLED_IMAGE);
    device.deploy(&web);
    let told = |words: &str| {
        device.until("web", |one| one.last_error.contains(words));
    };
    told("manifest unknown");
    told("address already in use");
    device.until_state("web", "Running(Ok)");
    assert_eq!(device.engine.count(Route::Pull), 2);
    assert_eq!(device.engine.count(Route::Start), 2);
    let one = device.container("web");

    // The engine says once that it does not run, and is not believed without a look.
    device.engine.bend_next(Route::Kill, 1, bend("kill-stopped"));
    assert_eq!(device.cli(&["stop", "web"]).code, 0);
    device.until("web", |one| one.state == "Stopped");
    assert_eq!(device.container("web").id, one.id);
}

#[test]
fn a_command_that_is_not_there_is_told_in_the_words_of_a_real_engine() {
    let device = device();
    device.engine.bend(Route::Start, bend("start-no-command"));
    device.deploy(&workload("web", "serve", "restart: {delay: 100ms}"));
    let shown = until("it to be given up", || {
        Some(device.workload("web")).filter(|one| one.runtime_state == "FAILED")
    });
    assert_eq!(shown.state_words(), "Pending(StartingFailed)");
    assert!(shown.error_message.contains("/no/such/command"), "{}", shown.error_message);
}
