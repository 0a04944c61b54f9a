//! The engine's side of its socket: connections, routes, and what the bends make of the answers.

use std::io::{self, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use serde_json::{Value, json};

use super::bend::{Bend, Route};
use super::http::{self, Reply, Request};
use super::trap::Passage;
use super::world::{self, Refusal, World};
use super::{Shared, flaw, lock, logs, pull, refuse};

/// A stream without events looks this often whether its client is still there.
pub const STREAM_LOOK: Duration = Duration::from_millis(100);

/// Takes connections until the door is closed.
pub fn accept(listener: &UnixListener, shared: &Arc<Shared>, opening: u64) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.opening.load(Ordering::Acquire) != opening {
            return;
        }
        // Here and not on its own thread: who closes the door ends all that came through it.
        let number = shared.enter(&stream);
        let shared = Arc::clone(shared);
        let converse = move || {
            // The end of a connection is no error of the engine.
            let _ = converse(stream, &shared);
            shared.leave(number);
        };
        thread::Builder::new().spawn(converse).unwrap();
    }
}

fn converse(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = http::read(&mut reader) {
        let (route, object) = route(&request);
        let passage = shared.pass(route, &object);
        if passage == Passage::Held {
            shared.wait_for_release();
            return Ok(());
        }
        let bend = shared.bend_for(route, &object);
        let _under_way = UnderWay::begin(shared, route);
        if passage == Passage::Last {
            if bend.is_none() {
                answer(route, &object, &request, shared);
            }
            shared.wait_for_release();
            return Ok(());
        }
        match bend {
            None if route == Route::Events => return events(&mut stream, &request, shared),
            None if route == Route::Logs => logs::logs(&mut stream, &object, &request, shared)?,
            None => stream.write_all(&answer(route, &object, &request, shared).bytes())?,
            Some(bend) => {
                let end =
                    bent(&bend, &mut stream, shared, &|| answer(route, &object, &request, shared))?;
                if end {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Answers as `bend` says; whether the connection ends.
fn bent(
    bend: &Bend,
    stream: &mut UnixStream,
    shared: &Shared,
    answer: &dyn Fn() -> Reply,
) -> io::Result<bool> {
    match bend {
        Bend::Hang => {
            shared.wait_for_other_bends();
            return Ok(true);
        }
        Bend::Postponed => {
            shared.wait_for_other_bends();
            answer();
            return Ok(true);
        }
        Bend::Half => {
            let bytes = answer().bytes();
            let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(0) + 4;
            stream.write_all(&bytes[..head + (bytes.len() - head) / 2])?;
            return Ok(true);
        }
        Bend::Garbage => {
            stream.write_all(b"\x16\x03\x01\x00\xff\xfe{]}\r\n\r\n\x00\x00garbage")?;
            return Ok(true);
        }
        Bend::Lost => {
            answer();
            return Ok(true);
        }
        Bend::Status(status) => {
            let words = format!("the script says {status}");
            stream.write_all(&Reply::error(*status, &words).bytes())?;
        }
        Bend::Body(body) => {
            let body = body.clone();
            stream.write_all(&Reply { status: 200, body }.bytes())?;
        }
        Bend::Answer(status, body) => {
            let (status, body) = (*status, body.clone());
            stream.write_all(&Reply { status, body }.bytes())?;
        }
        Bend::Late(time) => {
            let reply = answer();
            shared.wait_for_door(*time);
            stream.write_all(&reply.bytes())?;
        }
        Bend::Dally => {
            dally(stream, shared)?;
            return Ok(true);
        }
        Bend::NameTaken => {
            stream.write_all(&answer().bytes())?;
        }
    }
    Ok(false)
}

/// What a request is about: its route, and the name or id in it.
fn route(request: &Request) -> (Route, String) {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    let (route, object) = match (request.method.as_str(), path.as_slice()) {
        ("GET", ["_ping"]) => (Route::Ping, ""),
        ("GET", ["version"]) => (Route::Version, ""),
        ("GET", ["events"]) => (Route::Events, ""),
        ("GET", ["containers", "json"]) => (Route::List, ""),
        ("POST", ["containers", "create"]) => {
            (Route::Create, request.query.get("name").map_or("", String::as_str))
        }
        ("GET", ["containers", id, "json"]) => (Route::Inspect, *id),
        ("GET", ["containers", id, "logs"]) => (Route::Logs, *id),
        ("POST", ["containers", id, "start"]) => (Route::Start, *id),
        ("POST", ["containers", id, "kill"]) => (Route::Kill, *id),
        ("DELETE", ["containers", id]) => (Route::Remove, *id),
        ("POST", ["networks", "create"]) => (Route::MakeNetwork, ""),
        ("POST", ["networks", name, "connect"]) => (Route::JoinNetwork, *name),
        ("GET", ["networks"]) => (Route::ListNetworks, ""),
        ("DELETE", ["networks", name]) => (Route::RemoveNetwork, *name),
        ("POST", ["images", "create"]) => {
            (Route::Pull, request.query.get("fromImage").map_or("", String::as_str))
        }
        ("GET", ["images", name, "json"]) => (Route::Image, *name),
        ("GET", ["info"]) => (Route::Info, ""),
        _ => (Route::Other, ""),
    };
    (route, object.to_owned())
}

/// The true answer; what was asked for is carried out.
fn answer(route: Route, object: &str, request: &Request, shared: &Shared) -> Reply {
    let mut world = lock(&shared.world);
    let before = world.events.len();
    let mut reply = match flaw::instead(&mut world, route, object, request) {
        Some(reply) => reply,
        None => carry_out(route, object, request, &mut world),
    };
    flaw::spoil(&mut world, route, &mut reply);
    let happened = world.events.len() > before;
    drop(world);
    if happened {
        shared.changed.notify_all();
    }
    reply
}

fn carry_out(route: Route, object: &str, request: &Request, world: &mut World) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let done = |done: Result<(), Refusal>, status| match done {
        Ok(()) => Reply::empty(status),
        Err((status, words)) => Reply::error(status, &words),
    };
    match route {
        Route::Ping => Reply { status: 200, body: "OK".to_owned() },
        Route::Version => Reply::json(
            200,
            &json!({"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12"}),
        ),
        Route::List => {
            let passing = world.passing(request.query.get("filters"));
            let lines = passing.into_iter().map(world::Container::listed);
            Reply::json(200, &lines.collect::<Vec<_>>().into())
        }
        Route::Create => match world.create(object, &body) {
            Ok(id) => Reply::json(201, &json!({"Id": id, "Warnings": []})),
            Err((status, words)) => Reply::error(status, &words),
        },
        Route::Inspect => match world.find(object) {
            Some(made) => Reply::json(200, &made.inspected()),
            None => Reply::error(404, &format!("No such container: {object}")),
        },
        Route::Start => match world.start(object) {
            Ok(true) => Reply::empty(204),
            Ok(false) => Reply::empty(304),
            Err((status, words)) => Reply::error(status, &words),
        },
        Route::Kill => {
            let signal = request.query.get("signal").map_or("SIGKILL", String::as_str);
            match refuse::signal(signal) {
                Ok(()) => done(world.kill(object, signal), 204),
                refused => done(refused, 204),
            }
        }
        Route::Remove => {
            let force = request.query.get("force").is_some_and(|value| value == "1");
            done(world.remove(object, force), 204)
        }
        Route::MakeNetwork => match world.create_network(&body) {
            Ok(()) => Reply::json(201, &json!({"Id": body["Name"], "Warning": ""})),
            Err((status, words)) => Reply::error(status, &words),
        },
        Route::RemoveNetwork => done(world.remove_network(object), 204),
        Route::JoinNetwork => done(world.join_network(object, &body), 200),
        Route::ListNetworks => {
            Reply::json(200, &world.passing_networks(request.query.get("filters")))
        }
        Route::Pull => {
            let tag = request.query.get("tag").map_or("", String::as_str);
            pull::pull(world, object, tag)
        }
        Route::Image if world.images.contains(object) => Reply::json(200, &json!({"Id": object})),
        Route::Image => Reply::error(404, &format!("No such image: {object}")),
        Route::Info => Reply::json(
            200,
            &json!({
                "ID": "MADE:UP00:IN00:MEMO:RY00",
                "DockerRootDir": world.data_root,
                "DriverStatus": [["Backing Filesystem", "none"]]
            }),
        ),
        Route::Logs | Route::Events | Route::Other => Reply::error(404, "page not found"),
    }
}

/// A pull that never gets on.
fn dally(stream: &mut UnixStream, shared: &Shared) -> io::Result<()> {
    let edition = lock(&shared.script).edition;
    http::begin_chunks(stream)?;
    let detail = json!({"current": 1, "total": 4});
    let begin = json!({"status": "Downloading", "id": "a1", "progressDetail": detail});
    http::chunk(stream, format!("{begin}\n").as_bytes())?;
    while lock(&shared.script).edition == edition {
        if is_closed(stream) {
            lock(&shared.script).left += 1;
            return Ok(());
        }
        http::chunk(stream, b"{\"status\":\"Retrying in 1 second\",\"id\":\"a1\"}\n")?;
        shared.wait_for_door(STREAM_LOOK);
    }
    Ok(())
}

/// A request from when it came until its answer has gone out.
struct UnderWay<'a>(&'a Shared, Route);

impl<'a> UnderWay<'a> {
    fn begin(shared: &'a Shared, route: Route) -> Self {
        let mut script = lock(&shared.script);
        let now = script.under_way.entry(route).or_insert(0);
        *now += 1;
        let now = *now;
        let most = script.most.entry(route).or_insert(0);
        *most = now.max(*most);
        drop(script);
        Self(shared, route)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(now) = lock(&self.0.script).under_way.get_mut(&self.1) {
            *now -= 1;
        }
    }
}

/// Sends what happens from now on, until the client leaves or the script ends the stream.
fn events(stream: &mut UnixStream, request: &Request, shared: &Shared) -> io::Result<()> {
    let filters = request.query.get("filters");
    let mut world = lock(&shared.world);
    let mut next = world.events.len();
    // Under the lock, so that nothing happens between the subscription and its confirmation.
    http::begin_chunks(stream)?;
    let until = lock(&shared.script).cut_events_after.map(|time| shared.now() + time);
    loop {
        if shared.is_held() {
            drop(world);
            shared.wait_for_release();
            return Ok(());
        }
        for (labels, line) in &world.events[next..] {
            if world::passes(labels, filters) {
                http::chunk(stream, format!("{line}\n").as_bytes())?;
            }
        }
        next = world.events.len();
        let left = until.map(|until| until.saturating_sub(shared.now()));
        if left.is_some_and(|left| left.is_zero()) || is_closed(stream) {
            return Ok(());
        }
        let wait = left.map_or(STREAM_LOOK, |left| left.min(STREAM_LOOK));
        shared.changed.wait_for(&mut world, wait);
    }
}

/// Whether the client of a stream has left.
pub fn is_closed(stream: &UnixStream) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(stream.as_raw_fd(), &mut [0], flags) != Err(Errno::EAGAIN)
}
