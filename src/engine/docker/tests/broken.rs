//! Engines that are away, silent, cut off, or no engines at all.

use std::io::Write;
use std::os::unix::net::UnixListener;

use super::*;
use crate::domain::fault::FaultKind;
use crate::domain::names::ContainerId;
use crate::engine::cancel::Cancel;
use crate::os::scripted::{begin_chunks, chunk, until_closed};

fn list_fault(docker: &Docker) -> (FaultKind, String) {
    let fault = docker.list().unwrap_err();
    (fault.kind, fault.message)
}

fn list_kind(serve: impl Fn(&Heard, &mut UnixStream) -> Then + Send + Sync + 'static) -> FaultKind {
    let (_server, docker) = engine(PATIENT_TIMEOUTS, serve);
    list_fault(&docker).0
}

#[test]
fn an_engine_that_is_away_is_told_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("docker.sock");
    let docker = Docker::new(&format!("unix://{}", socket.display())).unwrap();

    let (kind, message) = list_fault(&docker);
    assert_eq!(kind, FaultKind::Away);
    assert!(message.contains("no engine socket at") && message.contains("installed"), "{message}");

    drop(UnixListener::bind(&socket).unwrap());
    let (kind, message) = list_fault(&docker);
    assert_eq!(kind, FaultKind::Away);
    assert!(message.contains("left its socket"), "{message}");
    assert_eq!(docker.ping().unwrap_err().kind, FaultKind::Away);
    assert_eq!(docker.events().map(|_| ()).unwrap_err().kind, FaultKind::Away);
}

#[test]
fn no_answer_is_ever_an_empty_list() {
    let whole = r#"[{"Id":"c1"}]"#;
    assert_eq!(list_kind(|_, _| Then::Close), FaultKind::Away);
    assert_eq!(list_kind(|_, stream| answer(stream, 200, "{}")), FaultKind::Garbled);
    assert_eq!(list_kind(|_, stream| answer(stream, 200, "")), FaultKind::Garbled);
    assert_eq!(list_kind(move |_, stream| answer(stream, 200, &whole[..6])), FaultKind::Garbled);
    assert_eq!(list_kind(|_, stream| answer(stream, 404, "[]")), FaultKind::Trouble);
    assert_eq!(list_kind(|_, stream| answer(stream, 204, "")), FaultKind::Trouble);
    let garbage = |_: &Heard, stream: &mut UnixStream| {
        stream.write_all(b"\x00\xff\x00garbage\r\n\r\n").unwrap();
        Then::Close
    };
    assert_eq!(list_kind(garbage), FaultKind::Garbled);
}

#[test]
fn half_an_answer_is_garbled_however_it_was_framed() {
    let by_length = |_: &Heard, stream: &mut UnixStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]").unwrap();
        Then::Close
    };
    assert_eq!(list_kind(by_length), FaultKind::Garbled);
    let by_chunks = |_: &Heard, stream: &mut UnixStream| {
        begin_chunks(stream);
        chunk(stream, b"[]");
        Then::Close
    };
    assert_eq!(list_kind(by_chunks), FaultKind::Garbled);
    let by_closing = |_: &Heard, stream: &mut UnixStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[{\"Id\":").unwrap();
        Then::Close
    };
    assert_eq!(list_kind(by_closing), FaultKind::Garbled);
    let head = |_: &Heard, stream: &mut UnixStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap();
        Then::Close
    };
    assert_eq!(list_kind(head), FaultKind::Away);
}

#[test]
fn an_answer_that_never_ends_is_given_up() {
    let (_server, docker) = engine(BRIEF_TIMEOUTS, |_, stream| {
        begin_chunks(stream);
        chunk(stream, b"[");
        until_closed(stream)
    });
    assert_eq!(list_fault(&docker).0, FaultKind::Timeout);
}

#[test]
fn trouble_comes_in_the_engines_words() {
    let (_server, docker) = engine(PATIENT_TIMEOUTS, |_, stream| {
        answer(stream, 500, r#"{"message":"driver failed: disk full"}"#)
    });
    let (kind, message) = list_fault(&docker);
    assert_eq!((kind, message.as_str()), (FaultKind::Trouble, "driver failed: disk full"));
    assert_eq!(docker.inspect("c1").unwrap_err().kind, FaultKind::Trouble);
    let id = ContainerId::new("c1");
    let faults = [
        docker.start(&id).unwrap_err(),
        docker.signal(&id, "SIGTERM").unwrap_err(),
        docker.remove("c1").unwrap_err(),
        docker.remove_network("n").unwrap_err(),
        docker.create(&full_container()).unwrap_err(),
        docker.pull("nginx", &Cancel::default(), &mut |_| {}).unwrap_err(),
        docker.events().map(|_| ()).unwrap_err(),
    ];
    for fault in faults {
        assert_eq!(fault.kind, FaultKind::Trouble, "{fault}");
    }
}

#[test]
fn a_server_that_is_no_engine_is_told_as_such() {
    let server = Scripted::new(|_, stream| answer(stream, 200, "hello"));
    let fault = client(&server, PATIENT_TIMEOUTS).ping().unwrap_err();
    assert_eq!(fault.kind, FaultKind::Garbled);
    assert!(fault.message.contains("API version"), "{fault}");
}

#[test]
fn every_call_gives_up_a_silent_engine() {
    let (_server, docker) = engine(HASTY_TIMEOUTS, |_, stream| until_closed(stream));
    let id = ContainerId::new("c1");
    let faults = [
        docker.list().unwrap_err(),
        docker.inspect("c1").unwrap_err(),
        docker.start(&id).unwrap_err(),
        docker.signal(&id, "SIGTERM").unwrap_err(),
        docker.remove("c1").unwrap_err(),
        docker.remove_network("n").unwrap_err(),
        docker.create(&full_container()).unwrap_err(),
        docker.pull("nginx", &Cancel::default(), &mut |_| {}).unwrap_err(),
        docker.events().map(|_| ()).unwrap_err(),
        docker.logs(&id, Default::default()).map(|_| ()).unwrap_err(),
    ];
    for fault in faults {
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault}");
    }
}

#[test]
fn urls_that_name_no_socket_are_refused() {
    for url in ["", "/var/run/docker.sock", "tcp://host:2375", "unix://docker.sock", "unix://"] {
        assert!(Docker::new(url).is_err(), "{url}");
    }
    assert!(Docker::new(&format!("unix:///{}", "x".repeat(107))).is_err());
    assert!(Docker::new(&format!("unix:///{}", "x".repeat(106))).is_ok());
}
