//! What is done at the same time is limited, and what hangs holds up nothing else.

use std::time::Duration;

use bargee::limits;

use crate::support::device::{Device, service, services};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{let_exits_stand, pause, until};

/// A service of an image that has to be pulled.
fn of_image(name: &str, image: &str) -> String {
    service(name).replace("pull: never", "pull: missing").replace("scripted/image:1", image)
}

#[test]
fn starts_that_hang_are_four_and_hold_up_no_stop_removal_or_look() {
    let device = Device::running(&["runs", "goes", "crashes"]);
    device.engine.bend(Route::Start, Bend::Hang);
    let names: Vec<String> = (0..30).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    device.deploy(&services(&names));
    until("all to be made", || (device.engine.containers().len() == 33).then_some(()));
    until("four starts", || (device.engine.under_way(Route::Start) == 4).then_some(()));
    let waiting = device.until("w29", |one| one.state_info.contains("waits for other starts"));
    assert_eq!(waiting.state_words(), "Pending(Starting)");
    // Whatever the workers do besides.
    for words in [["stop", "runs"], ["rm", "goes"], ["rm", "w29"]] {
        let output = device.cli(&words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.err);
    }
    device.engine.exit(&device.container("crashes").name, 3);
    device.until("crashes", |one| one.exit_code == Some(3));
    assert_eq!(device.engine.under_way(Route::Start), 4);
    // They come to nothing, and are sent again.
    device.engine.straighten();
    device.until_running(&names[..29]);
    assert_eq!(device.engine.most_under_way(Route::Start), limits::STARTS);
}

#[test]
fn lower_schedules_start_first() {
    let device = Device::started();
    device.engine.bend(Route::Start, Bend::Late(Duration::from_millis(200)));
    let late = |name: &str, schedule| {
        service(name).replace("pull: never", &format!("pull: never, schedule: {schedule}"))
    };
    let names: Vec<String> = (0..12).map(|number| format!("w{number:02}")).collect();
    let manifests: String = names.iter().enumerate().map(|(n, name)| late(name, 12 - n)).collect();
    device.deploy(&manifests);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    device.until_running(&names);
    let mut order: Vec<_> =
        names.iter().map(|name| (device.container(name).started, *name)).collect();
    order.sort_unstable();
    // Four are under way at the same time.
    for (at, (_, name)) in order.iter().enumerate() {
        let wanted = names.iter().rev().position(|other| other == name).unwrap();
        assert!(at.abs_diff(wanted) < 4, "{order:?}");
    }
}

#[test]
fn a_registry_that_hangs_holds_up_no_other_and_an_unwanted_pull_is_ended() {
    let device = Device::running(&["runs"]);
    for image in ["works:5000/a:1", "works:5000/b:1", "hangs:5000/a:1", "hangs:5000/b:1"] {
        device.engine.publish(image);
    }
    device.engine.bend_for(Route::Pull, "hangs", Bend::Dally);
    device.deploy(&of_image("ha", "hangs:5000/a:1"));
    device.until("ha", |one| one.pull_progress.is_some_and(|pull| pull.done_bytes == 1));
    device.deploy(&of_image("hb", "hangs:5000/b:1"));
    let info = "waits for other pulls before that of hangs:5000/b:1";
    device.until("hb", |one| one.state_info == info);
    device.deploy(&of_image("wa", "works:5000/a:1"));
    device.deploy(&of_image("wb", "works:5000/b:1"));
    device.until_running(&["wa", "wb"]);
    assert_eq!(device.engine.under_way(Route::Pull), 1);

    // A stop, and the place goes to the next one.
    assert_eq!(device.cli(&["stop", "ha"]).code, 0);
    until("the pull to be ended", || (device.engine.left_pulls() == 1).then_some(()));
    device.until("hb", |one| one.pull_progress.is_some_and(|pull| pull.done_bytes == 1));
    // A new generation with another image.
    device.deploy(&service("hb"));
    device.until_running(&["hb"]);
    until("the pull to be ended", || (device.engine.left_pulls() == 2).then_some(()));
    // A removal.
    assert_eq!(device.cli(&["start", "--no-wait", "ha"]).code, 0);
    device.until("ha", |one| one.pull_progress.is_some_and(|pull| pull.done_bytes == 1));
    assert_eq!(device.cli(&["rm", "ha"]).code, 0);
    until("the pull to be ended", || (device.engine.left_pulls() == 3).then_some(()));
    let heard = device.engine.heard().into_iter().filter(|(route, _)| *route == Route::Pull);
    assert_eq!(heard.count(), 5, "{}", device.engine.told());
    assert_eq!(device.engine.most_under_way(Route::Pull), 2);
    // A stop of the agent ends them, too.
    device.deploy(&of_image("hc", "hangs:5000/b:1"));
    device.until("hc", |one| one.pull_progress.is_some_and(|pull| pull.done_bytes == 1));
    let mut device = device;
    device.sigterm();
    until("the pull to be ended", || (device.engine.left_pulls() == 4).then_some(()));
}

/// It goes on saying that it tries, and nothing comes.
#[test]
fn a_pull_that_stalls_gives_up_its_place_and_is_tried_again() {
    let device = Device::started();
    device.engine.publish("hangs:5000/a:1");
    device.engine.publish("hangs:5000/b:1");
    device.engine.bend_for(Route::Pull, "hangs:5000/a", Bend::Dally);
    device.deploy(&of_image("a", "hangs:5000/a:1"));
    device.until("a", |one| one.runtime_state == "PULLING");
    device.deploy(&of_image("b", "hangs:5000/b:1"));
    pause(Duration::from_millis(limits::PULL_STALL_MS - 10_000));
    assert_eq!(device.engine.left_pulls(), 0);
    device.until_running(&["b"]);
    // The engine notices a little later that its client left.
    until("the stalled pull to be left", || (device.engine.left_pulls() == 1).then_some(()));
    let a = device.workload("a");
    assert_eq!(a.error_message, "pull hangs:5000/a:1: stalled: nothing came for 60 s");
    assert_eq!((a.state_words().as_str(), a.restart_count), ("Pending(Starting)", 0));
    device.engine.straighten();
    device.until_running(&["a"]);
}

/// As at a shutdown: containers get their signal with the agent.
#[test]
fn what_ends_just_before_the_agent_is_told_to_stop_was_interrupted() {
    let job = service("job").replace("restart: {delay: 1s}", "restart: {policy: never}");
    let done = job.replace("name: job", "name: done");
    let mut device = Device::running(&["web"]);
    device.deploy(&job);
    device.deploy(&done);
    device.until_running(&["job", "done"]);
    device.engine.exit(&device.container("done").name, 0);
    device.until_state("done", "Succeeded(Ok)");
    let_exits_stand();
    let before = device.fingerprint();
    device.engine.exit(&device.container("job").name, 0);
    device.until_state("job", "Succeeded(Ok)");
    device.engine.exit(&device.container("web").name, 143);
    device.until("web", |one| one.exit_code == Some(143));
    device.sigterm();
    device.start();
    device.until_running(&["web", "job"]);
    assert_eq!(device.until_state("done", "Succeeded(Ok)").restart_count, 0);
    let web = device.workload("web");
    assert_eq!((web.restart_count, web.last_error.as_str()), (0, ""));
    let started = |name: &str| {
        let of =
            |all: &[(String, String, u64)]| all.iter().find(|one| one.0.contains(name)).unwrap().2;
        of(&device.fingerprint()) > of(&before)
    };
    assert_eq!((started("-web-"), started("-job-"), started("-done-")), (true, true, false));
}
