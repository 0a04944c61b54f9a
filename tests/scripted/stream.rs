//! An event stream that dies, loses what it should tell, or never opens: states follow all the
//! same.

use std::time::Duration;

use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{pause, until};

/// Polling every 5 s shows a change within that time; the rest is for a slow machine.
const POLLED: Duration = Duration::from_secs(20);

#[test]
fn states_follow_though_the_stream_dies_every_200_ms() {
    let device = Device::running(&["web", "db"]);
    let logged = device.log().len();
    device.engine.cut_events_after(Duration::from_millis(200));
    until("the stream to be missed", || device.condition("eventStream"));
    for round in 1..=3 {
        let before = device.container("web");
        device.engine.exit(&before.name, round);
        device.until_started_again("web", &before);
    }
    device.deploy(&service("late"));
    device.until_running(&["web", "db", "late"]);
    assert_eq!(device.not_ready(), None, "the engine itself answers");
    assert_eq!(device.engine.containers().len(), 3);
    let log = device.log()[logged..].to_owned();
    let about: Vec<&str> = log.lines().filter(|line| line.contains("stream")).collect();
    assert_eq!(about.len(), 1, "{about:?}");
    let streams = device.engine.count(Route::Events);
    assert!(streams < 20, "opened once in 5 s and not at once again: {streams}");
}

#[test]
fn states_follow_though_no_stream_opens() {
    for bend in [Bend::Status(500), Bend::Half, Bend::Garbage] {
        let device = Device::started();
        device.engine.bend(Route::Events, bend);
        device.engine.end_connections();
        until("the stream to be missed", || device.condition("eventStream"));
        device.deploy(&service("web"));
        device.until_running(&["web"]);
        let before = device.container("web");
        device.engine.exit(&before.name, 1);
        device.until_started_again("web", &before);
        assert_eq!(device.not_ready(), None);
        assert_eq!(device.log_lines("the event stream is down").len(), 1, "{}", device.log());
    }
}

#[test]
fn a_start_that_never_shows_makes_the_agent_poll_and_reopen() {
    let device = Device::started();
    for action in ["create", "start", "die", "destroy", "kill"] {
        device.engine.lose_events(action);
    }
    device.engine.forget_requests();
    device.deploy(&service("web"));
    device.until_running(&["web"]);
    until("the stream to be doubted", || device.condition("eventStream"));
    until("the stream to be opened again", || {
        (device.engine.count(Route::Events) > 0).then_some(())
    });
    // The new stream tells nothing either: exits are found by polling, each time.
    for round in 1..=2 {
        let before = device.container("web");
        let begin = bargee::os::clock::boot_ms();
        device.engine.exit(&before.name, round);
        device.until_started_again("web", &before);
        let took = Duration::from_millis(bargee::os::clock::boot_ms() - begin);
        assert!(took < POLLED, "{took:?}");
    }
    assert_eq!(device.log_lines("did not show on the event stream").len(), 1);

    // As soon as it tells something it is trusted, and nobody polls any more.
    device.engine.straighten();
    let before = device.container("web");
    device.engine.exit(&before.name, 1);
    device.until_started_again("web", &before);
    until("the stream to be trusted", || (device.status().stream == "up").then_some(()));
    device.until_state("web", "Running(Ok)");
    pause(Duration::from_secs(1));
    device.engine.forget_requests();
    pause(Duration::from_secs(12));
    assert!(device.engine.count(Route::List) <= 1, "{}", device.engine.told());
}
