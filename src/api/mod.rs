//! The HTTP API on the local socket.
//!
//! tiny_http reads the requests, a fixed number of threads answers them from the published snapshot
//! or by asking the agent. The socket is for trusted users only: tiny_http has no timeouts, so a
//! client that stalls in the middle of a body holds a thread.

pub mod backend;

pub mod wire;

pub mod reply;

pub mod url;

pub mod route;

pub mod select;

pub mod workload;

pub mod journal;

pub mod body;

pub mod stream;

pub mod handle;

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use tiny_http::{Header, Request, Response};

use self::backend::Backend;
use self::handle::{Answer, Context, handle};
use self::reply::{ApiError, Code, Reply};
use self::stream::{Framing, Places, Stream};
use crate::limits;
use crate::os::thread;

/// The API, being served.
pub struct Server {
    shared: Arc<Shared>,
    /// Disconnected once every handler and stream has ended.
    ended: Receiver<()>,
}

struct Shared {
    http: tiny_http::Server,
    backend: Arc<dyn Backend>,
    places: Places,
    stop: AtomicBool,
}

/// Held by every thread of the API as long as it runs. The fields are dropped in their order, so
/// the server has the last word on what they share once all threads are gone.
#[derive(Clone)]
struct Held {
    shared: Arc<Shared>,
    _alive: Sender<()>,
}

impl Deref for Held {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Serves the API on `listener`, whose file is removed when the server stops.
///
/// # Errors
/// A thread could not be started.
pub fn serve(listener: UnixListener, backend: Arc<dyn Backend>) -> io::Result<Server> {
    let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
    let (alive, ended) = crossbeam_channel::bounded(0);
    let shared =
        Arc::new(Shared { http, backend, places: Places::default(), stop: AtomicBool::new(false) });
    let held = Held { shared: Arc::clone(&shared), _alive: alive };
    // Made first: if a thread cannot be started, those before it are stopped.
    let server = Server { shared, ended };
    for number in 1..=limits::API_THREADS {
        let held = held.clone();
        let name = format!("api-{number}");
        if let Err(error) = thread::spawn(&name, move || answer_all(&held)) {
            server.stop();
            return Err(error);
        }
    }
    Ok(server)
}

impl Server {
    /// Stops serving: no request is taken any more, streams end. Returns once every thread has
    /// ended, or after a second without those that wait for a client or for the engine.
    pub fn stop(self) {
        self.shared.stop.store(true, Ordering::Release);
        for _ in 0..limits::API_THREADS {
            self.shared.http.unblock();
        }
        let deadline = Duration::from_millis(limits::API_STOP_MS);
        // Nothing is ever sent: it ends by the last thread or by the deadline.
        if let Err(error) = self.ended.recv_timeout(deadline)
            && error.is_timeout()
        {
            log::warn!("API: a request or stream did not end within {deadline:?}; left behind");
        }
    }
}

/// Answers requests until the server stops.
fn answer_all(held: &Held) {
    while !held.stop.load(Ordering::Acquire) {
        match held.http.recv() {
            Ok(request) => answer(request, held),
            Err(_) if held.stop.load(Ordering::Acquire) => {}
            Err(error) => log::error!("API: no more connections are taken: {error}"),
        }
    }
}

fn answer(request: Request, held: &Held) {
    let sent = if request.body_length().is_some_and(|length| length > limits::BODY_BYTES) {
        refuse_body(request)
    } else {
        handle_and_send(request, held)
    };
    if let Err(error) = sent {
        log::debug!("API: the answer was not sent: {error}");
    }
}

fn handle_and_send(mut request: Request, held: &Held) -> io::Result<()> {
    let context = Context { backend: &*held.backend, places: &held.places };
    let handled = catch_unwind(AssertUnwindSafe(|| handle(&mut request, &context)));
    match handled {
        Ok(Answer::Whole(reply)) => respond(request, reply),
        Ok(Answer::Stream(stream)) => begin(request, stream, held),
        Err(_) => {
            let message = format!("a bug in bargee: {} {}", request.method(), request.url());
            log::error!("API: panic: {message}");
            respond(request, Reply::from(&ApiError::new(Code::Internal, message)))
        }
    }
}

/// Refuses a body that was declared too large. It is read away first, piece by piece, so that a
/// client that sends before it reads gets its answer.
fn refuse_body(mut request: Request) -> io::Result<()> {
    let declared = request.body_length().unwrap_or(0);
    if declared > limits::BODY_DRAIN_BYTES {
        return refuse_huge_body(request);
    }
    let surplus = declared.saturating_sub(limits::BODY_BYTES) as u64;
    io::copy(&mut request.as_reader().take(surplus), &mut io::sink())?;
    respond(request, Reply::from(&body::too_large()))
}

/// Refuses a body whose mere length is dangerous: when a request ends, tiny_http allocates all that
/// is left of its body, and the process ends if there is not as much memory. So this request never
/// ends: it is answered behind tiny_http's back and then forgotten, which costs a thread and two
/// descriptors. Only trusted users reach the socket, and none of them does this twice.
fn refuse_huge_body(request: Request) -> io::Result<()> {
    log::warn!("API: a body of {:?} bytes was announced", request.body_length());
    // An upgrade is the one way to the writer that leaves the body alone.
    let mut connection = request.upgrade("none", Response::empty(100));
    let body = Reply::from(&body::too_large()).body;
    let sent = write!(
        connection,
        "HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .and_then(|()| connection.write_all(&body))
    .and_then(|()| connection.flush());
    std::mem::forget(connection);
    sent
}

fn respond(request: Request, reply: Reply) -> io::Result<()> {
    let mut response = Response::from_data(reply.body)
        .with_status_code(reply.status)
        .with_header(header("Content-Type", "application/json"))
        .with_header(header("Cache-Control", "no-store"))
        .with_chunked_threshold(usize::MAX);
    for (name, value) in &reply.headers {
        response.add_header(header(name, value));
    }
    request.respond(response)
}

fn header(name: &str, value: &str) -> Header {
    Header::from_bytes(name, value).expect("headers of the API are ASCII words of its own")
}

/// Begins a stream on a thread of its own.
fn begin(request: Request, stream: Stream, held: &Held) -> io::Result<()> {
    let held = held.clone();
    let run = move || {
        let Stream { place, source } = stream;
        let framing = framing(&request);
        let mut writer = request.into_writer();
        let backend = &*held.backend;
        if let Err(error) = stream::send(&mut *writer, framing, source, backend, &held.stop) {
            log::debug!("API: a stream ended early: {error}");
        }
        drop(place);
    };
    thread::spawn("api-stream", run).map(drop)
}

fn framing(request: &Request) -> Framing {
    let close = handle::header(request, "Connection")
        .is_some_and(|value| value.to_ascii_lowercase().contains("close"));
    if *request.http_version() < (1, 1) {
        Framing::Close
    } else if close {
        Framing::ChunkedThenClose
    } else {
        Framing::Chunked
    }
}
