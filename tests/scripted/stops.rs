//! Stops that last, and what never stops: everything else goes on meanwhile.

use std::collections::BTreeSet;

use crate::support::device::{Device, service, services, workload};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::until;

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number:03}")).collect()
}

fn words(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Workloads that have two minutes to end, and ignore that they are asked to.
fn stubborn(names: &[String], more: &str) -> String {
    let more = format!("stop: {{grace: 120s}}{more}");
    names.iter().map(|name| workload(name, "stubborn", &more)).collect()
}

fn until_running(device: &Device, count: usize) {
    until(format_args!("{count} to run"), || {
        (device.status().counts.get("Running") == Some(&count)).then_some(())
    });
}

/// Whatever a device does all day: a deploy, a crash, a restart, a stop and a removal.
fn a_day_goes_by(device: &Device) {
    let fresh = names("fresh", 20);
    device.deploy(&services(&words(&fresh)));
    device.until_running(&words(&fresh));
    let crashed = device.container("crashes");
    device.engine.exit(&crashed.name, 3);
    device.until_started_again("crashes", &crashed);
    for act in [["restart", "fresh000"], ["stop", "fresh001"], ["rm", "fresh002"]] {
        let output = device.cli(&act);
        assert_eq!(output.code, 0, "{act:?}: {}", output.err);
    }
}

#[test]
fn two_hundred_stops_with_a_long_grace_hold_up_nothing() {
    let device = Device::running(&["crashes"]);
    // Fewer than may wait in the queue of verbs, which is why the rest is stopped for an update.
    let (stopped, updated) = (names("stopped", 60), names("updated", 140));
    device.deploy(&(stubborn(&stopped, "") + &stubborn(&updated, "")));
    until_running(&device, 201);
    let old: BTreeSet<String> = device.engine.containers().into_iter().map(|one| one.id).collect();
    device.engine.forget_requests();
    let output = device.cli(&[&["stop", "--no-wait"], &words(&stopped)[..]].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    device.deploy(&stubborn(&updated, ", workingDir: /other"));
    until("all to be told", || (device.engine.count(Route::Kill) == 200).then_some(()));
    let asked = device.workload("stopped000");
    assert_eq!(asked.state_words(), "Stopping(RequestedAtRuntime)");
    let info = "its stop was sent, SIGKILL follows in 1";
    assert!(asked.state_info.starts_with(info), "{}", asked.state_info);
    assert_eq!(device.workload("updated000").state_words(), "Stopping(RequestedAtRuntime)");

    a_day_goes_by(&device);
    let heard = device.engine.heard();
    let signals = heard.iter().filter(|(route, id)| *route == Route::Kill && old.contains(id));
    let signals: Vec<&str> = signals.map(|(_, id)| id.as_str()).collect();
    let signalled: BTreeSet<&str> = signals.iter().copied().collect();
    assert_eq!((signals.len(), signalled.len()), (200, 200), "one signal each");
    assert!(device.engine.most_under_way(Route::Kill) < 4, "they take no worker for long");
    assert_eq!(device.status().queue.tasks, 60);

    // They end by themselves at last.
    for one in device.engine.containers().iter().filter(|one| signalled.contains(&*one.id)) {
        device.engine.exit(&one.name, 0);
    }
    // 140 of the update, 18 of 20 new ones, and the one that crashed.
    until_running(&device, 159);
    assert_eq!(device.status().counts.get("Stopped"), Some(&61));
    until("the old ones to be removed", || (device.engine.containers().len() == 220).then_some(()));
    assert_eq!(device.engine.count(Route::Start), 140 + 20 + 2);
}

#[test]
fn what_no_signal_ends_is_told_and_holds_up_nothing() {
    let device = Device::running(&["crashes"]);
    let undying = names("undying", 12);
    let manifests = undying.iter().map(|name| workload(name, "undying", "stop: {grace: 1s}"));
    device.deploy(&manifests.collect::<String>());
    until_running(&device, 13);
    let (stopped, removed) = undying.split_at(6);
    for (act, names) in [("stop", stopped), ("rm", removed)] {
        let output = device.cli(&[&[act, "--no-wait"], &words(names)[..]].concat());
        assert_eq!(output.code, 0, "{}", output.err);
    }
    let killed = "SIGKILL was sent and it still runs";
    for name in &undying {
        let told = device.until(name, |one| one.state_info.contains(killed));
        assert_eq!(told.state_words(), "Stopping(RequestedAtRuntime)", "{}", told.state_info);
        assert!(told.next_attempt_at > 0, "it is sent again");
    }
    a_day_goes_by(&device);
    // A successor would run beside it.
    device.deploy(&service(&removed[0]));
    let waits = device.until(&removed[0], |one| one.desired_state == "running");
    assert_eq!(waits.state_words(), "Pending(WaitingToStart)");
    for one in device.engine.containers().iter().filter(|one| one.name.contains("undying")) {
        device.engine.exit(&one.name, 137);
    }
    for name in stopped {
        device.until_state(name, "Stopped(Ok)");
    }
    device.until_state(&removed[0], "Running(Ok)");
}

#[test]
fn stops_that_the_engine_does_not_answer_hold_up_nothing() {
    let device = Device::running(&["crashes"]);
    let hung = names("hung", 8);
    device.deploy(&services(&words(&hung)));
    until_running(&device, 9);
    device.engine.bend_for(Route::Kill, "hung", Bend::Hang);
    let output = device.cli(&[&["stop", "--no-wait"], &words(&hung)[..]].concat());
    assert_eq!(output.code, 0, "{}", output.err);
    until("calls that hang", || (device.engine.under_way(Route::Kill) > 2).then_some(()));
    a_day_goes_by(&device);
    assert!(device.engine.under_way(Route::Kill) > 0, "they still hang");
    device.engine.straighten();
    for name in &hung {
        device.until_state(name, "Stopped(Ok)");
    }
}
