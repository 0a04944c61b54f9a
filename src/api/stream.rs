//! Logs and events: answers without an end, each on a thread of its own, bounded in number.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::backend::Backend;
use super::reply::{ApiError, Code};
use super::route::EventsSince;
use super::workload;
use crate::limits;

/// The places that streams take up.
#[derive(Debug, Default)]
pub struct Places(Arc<AtomicUsize>);

/// One place, given back when it is dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Places {
    /// Takes a place.
    ///
    /// # Errors
    /// All are taken.
    pub fn take(&self) -> Result<Place, ApiError> {
        let count = |open| (open < limits::STREAMS).then_some(open + 1);
        match self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, count) {
            Ok(_) => Ok(Place(Arc::clone(&self.0))),
            Err(open) => Err(ApiError::new(
                Code::Unavailable,
                format!("{open} log and event streams are open, which is the most; close one"),
            )),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An answer without an end, not begun.
pub struct Stream {
    /// The place it takes up.
    pub place: Place,
    /// What it carries.
    pub source: Source,
}

/// What a stream carries.
pub enum Source {
    /// The log of a container, opened.
    Log(Box<dyn Read + Send>),
    /// Transitions.
    Events(EventsSince),
}

impl Source {
    fn content_type(&self) -> &'static str {
        match self {
            Self::Log(_) => "text/plain; charset=utf-8",
            Self::Events(_) => "application/x-ndjson",
        }
    }
}

/// How the end of a body is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// HTTP/1.1 and a connection that goes on: chunks, ended in any case.
    Chunked,
    /// HTTP/1.1 and a connection that closes: chunks, and no last one if the source broke off, so
    /// that the client knows.
    ChunkedThenClose,
    /// HTTP/1.0: the end of the connection.
    Close,
}

/// Sends `source` until it ends, the client leaves or the agent stops. A client that does not read
/// holds up nothing but its own thread, and no memory beyond one piece.
///
/// # Errors
/// The client left, or the source broke off.
pub fn send(
    writer: &mut dyn Write,
    framing: Framing,
    source: Source,
    backend: &dyn Backend,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut body = Body { writer, framing };
    body.head(source.content_type())?;
    let stopping = || stop.load(Ordering::Acquire) || backend.stopping();
    let sent = match source {
        Source::Log(mut log) => send_log(&mut body, &mut *log, &stopping),
        Source::Events(events) => send_events(&mut body, backend, events, &stopping),
    };
    match sent {
        Ok(()) => body.end(),
        // The client left: there is nobody to tell.
        Err(Ended::Client(error)) => Err(error),
        Err(Ended::Source(error)) => {
            if framing != Framing::ChunkedThenClose {
                body.end()?;
            }
            Err(error)
        }
    }
}

/// Why a stream ended before its end.
enum Ended {
    Client(io::Error),
    Source(io::Error),
}

fn send_log(body: &mut Body, log: &mut dyn Read, stopping: &dyn Fn() -> bool) -> Result<(), Ended> {
    let mut piece = vec![0; limits::LOG_CHUNK_BYTES];
    while !stopping() {
        match log.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => body.piece(&piece[..length]).map_err(Ended::Client)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Ended::Source(error)),
        }
    }
    Ok(())
}

fn send_events(
    body: &mut Body,
    backend: &dyn Backend,
    events: EventsSince,
    stopping: &dyn Fn() -> bool,
) -> Result<(), Ended> {
    let heartbeat = if events.follow { limits::EVENT_HEARTBEAT_MS } else { 0 };
    let heartbeat = Duration::from_millis(heartbeat);
    let mut since = events.since;
    let mut lines = Vec::new();
    loop {
        let news = backend.transitions(since, heartbeat);
        if stopping() {
            return Ok(());
        }
        lines.clear();
        for (seq, transition) in &news {
            since = *seq;
            serde_json::to_writer(&mut lines, &workload::transition(*seq, transition))
                .map_err(|error| Ended::Source(error.into()))?;
            lines.push(b'\n');
        }
        if !events.follow && news.is_empty() {
            return Ok(());
        }
        if news.is_empty() {
            // A write is the only way to find out that the client has left.
            lines.push(b'\n');
        }
        body.piece(&lines).map_err(Ended::Client)?;
    }
}

/// A body in the making.
struct Body<'a> {
    writer: &'a mut dyn Write,
    framing: Framing,
}

impl Body<'_> {
    /// Sends the head at once, so that a client of a quiet stream knows that it is open.
    fn head(&mut self, content_type: &str) -> io::Result<()> {
        let framing = match self.framing {
            Framing::Chunked => "Transfer-Encoding: chunked\r\n",
            Framing::ChunkedThenClose => "Transfer-Encoding: chunked\r\nConnection: close\r\n",
            Framing::Close => "Connection: close\r\n",
        };
        write!(
            self.writer,
            "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\
             Cache-Control: no-store\r\n{framing}\r\n"
        )?;
        self.writer.flush()
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.framing == Framing::Close {
            self.writer.write_all(bytes)?;
        } else {
            write!(self.writer, "{:x}\r\n", bytes.len())?;
            self.writer.write_all(bytes)?;
            self.writer.write_all(b"\r\n")?;
        }
        self.writer.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        if self.framing != Framing::Close {
            self.writer.write_all(b"0\r\n\r\n")?;
        }
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let places = Places::default();
        let mut taken: Vec<Place> = (0..limits::STREAMS).map(|_| places.take().unwrap()).collect();
        let error = places.take().unwrap_err();
        assert_eq!(error.code.status(), 503);
        assert!(error.message.starts_with("16 log and event streams"), "{}", error.message);
        taken.pop();
        assert!(places.take().is_ok());
    }

    #[test]
    fn pieces_are_framed_as_the_client_can_read_them() {
        let sent = |framing| {
            let mut out = Vec::new();
            let mut body = Body { writer: &mut out, framing };
            body.piece(b"0123456789abcdef").unwrap();
            body.end().unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(sent(Framing::Chunked), "10\r\n0123456789abcdef\r\n0\r\n\r\n");
        assert_eq!(sent(Framing::Close), "0123456789abcdef");
    }
}
