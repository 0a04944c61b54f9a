//! Logs and events: answers without an end.

use bargee::domain::view::State;
use bargee::limits;
use serde_json::{Value, json};

use crate::fake::{DB, Fake, NOW, Served, WEB, serve, stopped, transition, view};
use crate::http::{Answer, Connection, get};

fn open(served: &Served, path: &str) -> (Connection, Answer) {
    let mut connection = Connection::open(&served.socket);
    connection.request("GET", path, "", b"");
    let head = connection.head();
    (connection, head)
}

/// A served fake with a log, and the end through which it is written.
fn with_log() -> (Served, crossbeam_channel::Sender<Vec<u8>>) {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    let (log, pieces) = crossbeam_channel::unbounded();
    served.fake.set(|inner| inner.log = Some(pieces));
    (served, log)
}

#[test]
fn a_log_arrives_piece_by_piece_as_it_is_written() {
    let (served, log) = with_log();
    let (mut stream, head) = open(&served, "/v1/ms/web/logs?follow=true&tail=5");
    assert_eq!(head.status, 200);
    assert_eq!(head.header("Content-Type"), Some("text/plain; charset=utf-8"));
    for piece in ["one\n", "two"] {
        log.send(piece.into()).unwrap();
        assert_eq!(stream.chunk(), piece);
    }
    served.fake.set(|inner| inner.log = None);
    drop(log);
    assert_eq!(stream.chunk(), "");
    let asked = served.fake.set(|inner| inner.logs.clone());
    assert_eq!(asked, [("c-web".to_owned(), true, Some(5))]);
    stream.request("GET", "/health/live", "", b"");
    assert_eq!(stream.answer().status, 200, "the connection goes on");
}

#[test]
fn a_log_that_breaks_off_is_told_to_clients_that_close() {
    let (served, log) = with_log();
    log.send(b"half".to_vec()).unwrap();
    log.send(Vec::new()).unwrap();
    let mut stream = Connection::open(&served.socket);
    stream.send(b"GET /v1/ms/web/logs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(stream.head().status, 200);
    assert_eq!(stream.rest(), "4\r\nhalf\r\n", "no last chunk");
}

#[test]
fn an_old_client_gets_the_bytes_alone() {
    let (mut served, log) = with_log();
    log.send(b"line\n".to_vec()).unwrap();
    let mut stream = Connection::open(&served.socket);
    stream.send(b"GET /v1/ms/web/logs HTTP/1.0\r\n\r\n");
    let head = stream.head();
    assert_eq!(head.header("Transfer-Encoding"), None);
    drop(log);
    assert_eq!(stream.rest(), "line\n");
    served.stop();
}

#[test]
fn what_never_ran_has_no_log() {
    let served = serve(Fake::new().with([stopped("shop", "db", DB)]));
    let answer = get(&served.socket, "/v1/ms/db/logs");
    assert_eq!((answer.status, answer.code().as_str()), (409, "CONFLICT"));
    assert!(answer.message().contains("shop/db has no container"));
}

#[test]
fn events_are_lines_of_json() {
    let served = serve(Fake::new());
    served.fake.set(|inner| {
        inner.transitions.push(transition(None, State::PendingInitial, ""));
        inner.transitions.push(transition(Some(State::PendingInitial), State::RunningOk, "up"));
    });
    let (mut stream, head) = open(&served, "/v1/events?since=1");
    assert_eq!(head.header("Content-Type"), Some("application/x-ndjson"));
    let line: Value = serde_json::from_str(&stream.chunk()).unwrap();
    assert_eq!(
        line,
        json!({
            "seq": 2, "at": NOW.wall_ms, "uid": WEB, "key": "shop/web", "generation": 1,
            "from": "Pending(Initial)", "to": "Running(Ok)", "info": "up",
        })
    );
    assert_eq!(stream.chunk(), "", "without follow it ends");
}

#[test]
fn followed_events_come_as_they_happen() {
    let served = serve(Fake::new());
    let (mut stream, _) = open(&served, "/v1/events?follow=true");
    for (from, to) in [(None, State::PendingInitial), (Some(State::PendingInitial), State::Removed)]
    {
        served.fake.set(|inner| inner.transitions.push(transition(from, to, "")));
        let line: Value = serde_json::from_str(&stream.chunk()).unwrap();
        assert_eq!(line.get("from").is_some(), from.is_some());
        assert_eq!(line["to"], if from.is_some() { "Removed" } else { "Pending(Initial)" });
    }
}

#[test]
fn a_quiet_event_stream_shows_signs_of_life() {
    let served = serve(Fake::new());
    served.fake.set(|inner| {
        inner.quiet_times = 2;
        inner.transitions.push(transition(None, State::PendingInitial, ""));
    });
    let (mut stream, _) = open(&served, "/v1/events?follow=true");
    assert_eq!([stream.chunk(), stream.chunk()], ["\n", "\n"]);
    assert!(stream.chunk().starts_with('{'));
}

#[test]
fn streams_end_with_the_agent() {
    let (mut served, log) = with_log();
    let (mut events, _) = open(&served, "/v1/events?follow=true");
    let (mut lines, _) = open(&served, "/v1/ms/web/logs?follow=true");
    served.fake.set(|inner| inner.log = None);
    // As in the agent, where the engine's streams are closed beside the API.
    drop(log);
    served.stop();
    assert_eq!(events.chunk(), "");
    assert_eq!(lines.chunk(), "");
    assert!(!served.socket.exists(), "the socket goes with the server");
}

#[test]
fn the_seventeenth_stream_is_refused_and_a_client_that_leaves_makes_room() {
    let served = serve(Fake::new());
    let path = "/v1/events?follow=true";
    let mut streams: Vec<_> = (0..limits::STREAMS).map(|_| open(&served, path).0).collect();
    let refused = get(&served.socket, path);
    assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"));
    assert_eq!(get(&served.socket, "/health/live").status, 200, "the rest is served");

    streams.pop();
    // Each event is a write, and the second write to a client that left fails.
    let mut room = false;
    for _ in 0..100 {
        let event = transition(None, State::PendingInitial, "");
        served.fake.set(|inner| inner.transitions.push(event));
        for stream in &mut streams {
            while !stream.chunk().contains(r#""seq""#) {}
        }
        let mut next = Connection::open(&served.socket);
        next.request("GET", path, "", b"");
        if next.head().status == 200 {
            room = true;
            break;
        }
    }
    assert!(room, "the place of the client that left was given to another");
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let (served, log) = with_log();
    let (idle, _) = open(&served, "/v1/ms/web/logs?follow=true");
    for _ in 0..200 {
        log.send(vec![b'x'; limits::LOG_CHUNK_BYTES]).unwrap();
    }
    assert_eq!(get(&served.socket, "/v1/ms/web").status, 200);
    assert!(!log.is_empty(), "what the client does not take stays where it is");
    drop(idle);
}
