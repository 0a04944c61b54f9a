//! What no client should send to the agent's socket: everybody else is answered all along.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::device::{Device, service};

/// A client that gets nothing gives up after this time.
const PATIENCE: Duration = Duration::from_secs(5);

fn connect(device: &Device) -> UnixStream {
    let stream = UnixStream::connect(device.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `bytes` and hangs up; a server may hang up before.
fn send(device: &Device, bytes: &[u8]) {
    let _ = connect(device).write_all(bytes);
}

/// Sends `bytes` and reads until the server hangs up.
fn talk(device: &Device, bytes: &[u8]) -> String {
    let mut stream = connect(device);
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn others_are_answered(device: &Device, what: &str) {
    assert_eq!(device.get("/health/live").map(|(status, _)| status), Some(200), "{what}");
    assert_eq!(device.workload("web").state, "Running", "{what}");
}

#[test]
fn broken_requests_hurt_nobody_else() {
    const APPLY: &str = "POST /v1/deploy/microservices:apply HTTP/1.1\r\nHost: x\r\n";
    let device = Device::running(&["web"]);
    let body = service("evil");
    let memory = device.memory_kib("VmHWM");
    let requests: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("half a line", b"GET /v1/m".to_vec()),
        ("half a head", b"GET /v1/ms HTTP/1.1\r\nHost: x\r\nAcce".to_vec()),
        ("no method", b" / HTTP/1.1\r\n\r\n".to_vec()),
        ("no version", b"GET /v1/ms\r\n\r\n".to_vec()),
        ("another version", b"GET /v1/ms HTTP/9.9\r\nHost: x\r\n\r\n".to_vec()),
        ("binary", (0..=255).cycle().take(4_096).collect()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("bare line feeds", b"GET /v1/ms HTTP/1.1\nHost: x\n\n".to_vec()),
        ("odd header", b"GET /v1/ms HTTP/1.1\r\nno colon here\r\n\r\n".to_vec()),
        ("odd bytes in a header", b"GET /v1/ms HTTP/1.1\r\nX: \xff\xfe\r\n\r\n".to_vec()),
        ("long URL", format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000)).into_bytes()),
        ("long header", format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(1 << 20)).into_bytes()),
        ("many headers", format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(20_000)).into()),
        ("short body", format!("{APPLY}Content-Length: 5000\r\n\r\n{body}").into_bytes()),
        ("negative length", format!("{APPLY}Content-Length: -1\r\n\r\n{body}").into_bytes()),
        ("length of letters", format!("{APPLY}Content-Length: many\r\n\r\n{body}").into_bytes()),
        ("no length", format!("{APPLY}\r\n{body}").into_bytes()),
        (
            "length of the universe",
            format!("{APPLY}Content-Length: 99999999999999999999999\r\n\r\n{body}").into_bytes(),
        ),
        ("bad chunks", format!("{APPLY}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}").into()),
        ("huge chunk", format!("{APPLY}Transfer-Encoding: chunked\r\n\r\nffffffffff\r\nx").into()),
        (
            "chunks without an end",
            format!("{APPLY}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").into_bytes(),
        ),
    ];
    for (what, request) in &requests {
        let answer = talk(&device, request);
        others_are_answered(&device, what);
        assert!(!answer.starts_with("HTTP/1.1 200") || *what == "odd header", "{what}: {answer}");
        send(&device, request);
        others_are_answered(&device, what);
    }
    let grown = device.memory_kib("VmHWM") - memory;
    println!("resident memory grew by {grown} KiB from {memory} KiB");
    assert!(grown < 16 << 10, "{grown} KiB");
    assert_eq!(device.workloads().len(), 1, "nothing of it was applied");
    device.deploy(&service("db"));
    device.until_running(&["web", "db"]);
    assert_eq!(device.log_lines("panic"), [] as [String; 0]);
}

/// A body of which the mere length is dangerous is refused before it comes.
#[test]
fn a_body_beyond_all_bounds_is_refused_at_once() {
    let device = Device::running(&["web"]);
    for length in ["20000000", "100000000000"] {
        let mut stream = connect(&device);
        let head = "POST /v1/deploy/microservices:apply HTTP/1.1\r\nHost: x\r\n";
        stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n#").as_bytes()).unwrap();
        let mut answer = Vec::new();
        // It comes at once, behind an interim one; the connection is not closed.
        while !String::from_utf8_lossy(&answer).contains("HTTP/1.1 413") {
            let mut room = [0; 512];
            let read = stream.read(&mut room).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend(&room[..read]);
        }
        drop(stream);
        others_are_answered(&device, length);
    }
}

/// A client that was answered once and then keeps its connection. Whoever was answered has a thread
/// of its own, so that it is known who holds what.
fn acquaintance(device: &Device) -> UnixStream {
    let mut stream = connect(device);
    stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"HTTP/1.1 200");
    stream
}

#[test]
fn a_hundred_idle_clients_hold_nobody_up() {
    let device = Device::running(&["web"]);
    let idle: Vec<UnixStream> = (0..100).map(|_| acquaintance(&device)).collect();
    let half: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut stream = acquaintance(&device);
            stream.write_all(b"GET /v1/ms HTTP/1.1\r\nHo").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        others_are_answered(&device, "with idle clients");
    }
    device.deploy(&service("db"));
    device.until_running(&["db"]);
    let ps = device.cli(&["ps"]);
    assert_eq!(ps.code, 0, "{}", ps.err);
    drop((idle, half));
    others_are_answered(&device, "after idle clients");
}

#[test]
fn clients_that_stall_in_a_body_leave_a_thread_for_the_others() {
    let device = Device::running(&["web"]);
    let stalled: Vec<UnixStream> = (1..bargee::limits::API_THREADS)
        .map(|_| {
            let mut stream = acquaintance(&device);
            let head = "POST /v1/deploy/microservices:apply HTTP/1.1\r\nContent-Length: 90000\r\n";
            stream.write_all(format!("{head}\r\n# begun").as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        others_are_answered(&device, "with stalled bodies");
    }
    drop(stalled);
    device.deploy(&service("db"));
    device.until_running(&["db"]);
}

#[test]
fn an_agent_stops_in_time_though_clients_hang() {
    let mut device = Device::running(&["web"]);
    let mut hanging: Vec<UnixStream> = (0..10).map(|_| connect(&device)).collect();
    for stream in &mut hanging[..3] {
        stream.write_all(b"GET /v1/events?follow=true HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    hanging[3].write_all(b"POST /v1/deploy/microservices:apply HTTP/1.1\r\nConte").unwrap();
    let begin = bargee::os::clock::boot_ms();
    device.sigterm();
    let took = bargee::os::clock::boot_ms() - begin;
    assert!(took < 5_000, "{took} ms");
    assert_eq!(device.container("web").status, "running");
}
