//! Events, logs and pulls.

use std::io::Read;
use std::thread;

use super::*;
use crate::domain::event::ContainerAction;
use crate::domain::fault::FaultKind;
use crate::domain::names::ContainerId;
use crate::domain::view::PullProgress;
use crate::engine::LogOptions;
use crate::engine::cancel::Cancel;
use crate::os::scripted::{begin_chunks, chunk, until_closed};

fn event(action: &str) -> String {
    format!(
        r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"c1","Attributes":
        {{"bargee.uid":"u1"}}}}}}"#
    )
    .replace('\n', "")
        + "\n"
}

/// Sends these chunks, then ends the stream as a whole one or cuts it off.
fn stream_of(chunks: Vec<String>, whole: bool) -> impl Fn(&Heard, &mut UnixStream) -> Then {
    move |_, stream| {
        begin_chunks(stream);
        for bytes in &chunks {
            chunk(stream, bytes.as_bytes());
        }
        if !whole {
            return Then::Close;
        }
        chunk(stream, b"");
        Then::Keep
    }
}

#[test]
fn events_come_whatever_the_pieces_until_the_stream_ends() {
    for whole in [true, false] {
        let start = event("start");
        let (first, second) = start.split_at(30);
        let chunks =
            vec![first.into(), second.into(), "garbage\n".into(), event("top") + &event("die")];
        let (server, docker) = engine(PATIENT_TIMEOUTS, stream_of(chunks, whole));
        let mut events = docker.events().unwrap();
        assert_eq!(events.next().unwrap().action, ContainerAction::Started);
        assert_eq!(events.next().unwrap().action, ContainerAction::Died);
        assert_eq!(events.next().unwrap_err().kind, FaultKind::Away);
        assert_eq!(
            asked(&server),
            ["GET /v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22label%22%3A%5B\
              %22bargee.uid%22%5D%2C%22event%22%3A%5B%22start%22%2C%22die%22%2C%22destroy%22%2C\
              %22oom%22%2C%22pause%22%2C%22unpause%22%2C%22update%22%2C%22rename%22%2C\
              %22health_status%22%5D%7D"]
        );
    }
}

/// An engine whose streams open with `first`, and are silent then.
fn quiet(first: &'static [u8]) -> (Scripted, Docker) {
    engine(BRIEF_TIMEOUTS, move |heard, stream| {
        if heard.line.contains("/json") {
            return answer(stream, 200, &inspected("host"));
        }
        begin_chunks(stream);
        chunk(stream, first);
        until_closed(stream)
    })
}

#[test]
fn a_quiet_event_stream_stays_open_until_it_is_closed() {
    let (_server, docker) = quiet(b"{}\n");
    let mut events = docker.events().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || events.next());
        // Longer than a call that reads may take.
        let stalled = docker.pull("nginx", &Cancel::default(), &mut |_| {}).unwrap_err();
        assert_eq!(stalled.kind, FaultKind::Timeout);
        assert!(!waiting.is_finished());
        docker.close_events();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, FaultKind::Away);
    });
    // The engine can still be used, another stream too.
    docker.inspect("c1").unwrap();
    docker.events().unwrap();
}

#[test]
fn opening_another_event_stream_ends_the_one_before() {
    let (_server, docker) = quiet(b"{}\n");
    let mut first = docker.events().unwrap();
    let _second = docker.events().unwrap();
    assert_eq!(first.next().map(|_| ()).unwrap_err().kind, FaultKind::Away);
}

#[test]
fn shutdown_ends_every_stream_and_call() {
    let (_server, docker) = quiet(&[1, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']);
    let mut events = docker.events().unwrap();
    let follow = LogOptions { follow: true, tail: Some(5) };
    let mut log = docker.logs(&ContainerId::new("c1"), follow).unwrap();
    let mut room = [0; 16];
    assert_eq!(log.read(&mut room).unwrap(), 2);
    assert_eq!(&room[..2], b"hi");
    thread::scope(|scope| {
        let event = scope.spawn(move || events.next().map(|_| ()));
        let line = scope.spawn(move || log.read(&mut room));
        docker.shutdown();
        assert_eq!(event.join().unwrap().unwrap_err().kind, FaultKind::Away);
        assert!(line.join().unwrap().is_err());
    });
    assert_eq!(docker.list().unwrap_err().kind, FaultKind::Away);
    assert_eq!(docker.events().map(|_| ()).unwrap_err().kind, FaultKind::Away);
}

#[test]
fn logs_of_no_container_are_told_at_once() {
    let (server, docker) = engine(PATIENT_TIMEOUTS, |_, stream| answer(stream, 404, "{}"));
    for follow in [false, true] {
        let options = LogOptions { follow, tail: Some(10) };
        let fault = docker.logs(&ContainerId::new("c1"), options).map(|_| ()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoContainer, "{fault}");
    }
    assert_eq!(
        asked(&server),
        [
            "GET /v1.41/containers/c1/logs?stdout=1&stderr=1&follow=0&tail=10",
            "GET /v1.41/containers/c1/json",
        ]
    );
}

const DOWNLOADING: &str =
    "{\"status\":\"Downloading\",\"id\":\"a\",\"progressDetail\":{\"current\":1,\"total\":4}}\r\n";

/// Pulls from an engine that sends `lines`, and has the image then or not.
fn pull(lines: &'static str, whole: bool, there: bool) -> (Result<bool, FaultKind>, usize) {
    let stream_lines = stream_of(vec![lines.to_owned()], whole);
    let (_server, docker) = engine(PATIENT_TIMEOUTS, move |heard, stream| match &heard.line[..9] {
        "GET /v1.4" => answer(stream, if there { 200 } else { 404 }, "{}"),
        _ => stream_lines(heard, stream),
    });
    let mut told = 0;
    let result = docker.pull("shop/web:2", &Cancel::default(), &mut |progress| {
        assert_eq!(progress, PullProgress { done_bytes: 1, total_bytes: 4 });
        told += 1;
    });
    (result.map_err(|fault| fault.kind), told)
}

#[test]
fn a_pull_is_good_when_no_line_failed_and_the_image_is_there() {
    assert_eq!(pull(DOWNLOADING, true, true), (Ok(true), 1));
    assert_eq!(pull("garbage\n", true, true), (Ok(false), 0));
    assert_eq!(pull(DOWNLOADING, true, false), (Err(FaultKind::Trouble), 1));
    assert_eq!(pull(DOWNLOADING, false, true), (Err(FaultKind::Garbled), 1));
    let failed = "{\"errorDetail\":{\"message\":\"denied\"},\"error\":\"denied\"}";
    assert_eq!(pull(failed, true, true), (Err(FaultKind::Trouble), 0));
}

#[test]
fn a_pull_asks_for_one_image() {
    let (server, docker) = engine(PATIENT_TIMEOUTS, |heard, stream| match &heard.line[..4] {
        "POST" => stream_of(Vec::new(), true)(heard, stream),
        _ => answer(stream, 200, "{}"),
    });
    docker.pull("registry:5000/shop/web", &Cancel::default(), &mut |_| {}).unwrap();
    assert_eq!(
        asked(&server),
        [
            "POST /v1.41/images/create?fromImage=registry%3A5000%2Fshop%2Fweb&tag=latest",
            "GET /v1.41/images/registry%3A5000%2Fshop%2Fweb/json",
        ]
    );
}
