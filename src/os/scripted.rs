//! For tests: an HTTP server on a Unix socket that does what the test says, wrong things too.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tempfile::TempDir;

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Method and target: `GET /v1.41/events`.
    pub line: String,
    /// Its body.
    pub body: String,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// It takes the next request.
    Keep,
    /// It ends.
    Close,
}

/// The server; it goes away with the test process.
#[derive(Debug)]
pub(crate) struct Scripted {
    directory: TempDir,
    heard: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl Scripted {
    /// Answers every request by `serve`, each connection on a thread of its own.
    pub fn new(serve: impl Fn(&Heard, &mut UnixStream) -> Then + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("s")).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (log, count, serve) = (Arc::clone(&heard), Arc::clone(&connections), Arc::new(serve));
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                *count.lock() += 1;
                let (log, serve) = (Arc::clone(&log), Arc::clone(&serve));
                thread::Builder::new().spawn(move || converse(stream, &log, &*serve)).unwrap();
            }
        };
        thread::Builder::new().spawn(accept).unwrap();
        Self { directory, heard, connections }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Method and target of every request so far.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        *self.connections.lock()
    }
}

fn converse(
    mut stream: UnixStream,
    log: &Mutex<Vec<String>>,
    serve: &dyn Fn(&Heard, &mut UnixStream) -> Then,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(heard) = hear(&mut reader) {
        log.lock().push(heard.line.clone());
        if serve(&heard, &mut stream) == Then::Close {
            return;
        }
    }
}

/// Reads one request; `None`: the client is gone.
fn hear(reader: &mut impl BufRead) -> Option<Heard> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|amount| *amount > 0)?;
        if line == "\r\n" {
            break;
        }
        head.push(line);
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut body = vec![0; length.unwrap_or(0)];
    // A body of which the server wants nothing may be larger than what it waits for.
    if body.len() <= 1 << 20 {
        reader.read_exact(&mut body).ok()?;
    }
    let line = head.first()?.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Heard { line, body: String::from_utf8_lossy(&body).into_owned() })
}

/// A whole answer.
pub(crate) fn answer(stream: &mut UnixStream, status: u16, body: &str) -> Then {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    Then::Keep
}

/// The head of an answer that comes in chunks.
pub(crate) fn begin_chunks(stream: &mut UnixStream) {
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
}

/// One chunk; an empty one is the last. A client that is gone is no fault of the test.
pub(crate) fn chunk(stream: &mut UnixStream, bytes: &[u8]) {
    let frame = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let _ = stream.write_all(&frame);
}

/// Waits until the client closes the connection.
pub(crate) fn until_closed(stream: &mut UnixStream) -> Then {
    let _ = stream.read(&mut [0]);
    Then::Close
}
