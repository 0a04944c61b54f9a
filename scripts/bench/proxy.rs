//! A proxy between agent and engine that records what passes, and when.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Instant;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::Result;
use crate::http::Request;
use crate::stopwatch::now;

/// The proxy. It goes away with the process.
pub struct Proxy {
    directory: TempDir,
    record: Arc<Record>,
}

/// One request and when it passed.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Method and path: `GET /containers/json`.
    pub line: String,
    /// When it came from the agent.
    pub begin: Instant,
    /// When the last piece of its answer was there.
    pub end: Instant,
}

#[derive(Default)]
struct Record {
    exchanges: Mutex<BTreeMap<u64, Exchange>>,
    /// Number of the last exchange; the first is 1.
    last: AtomicU64,
    /// Pieces of event streams, by the moment before they left for the agent.
    events: Mutex<Vec<(Instant, String)>>,
}

impl Proxy {
    /// Listens on a socket of its own and passes everything on to `engine`.
    pub fn start(engine: &Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let listener = UnixListener::bind(directory.path().join("s"))?;
        let record = Arc::new(Record::default());
        let (engine, shared) = (engine.to_owned(), Arc::clone(&record));
        let accept = move || {
            while let Ok((agent, _)) = listener.accept() {
                let shared = Arc::clone(&shared);
                // Without an engine the agent's connection ends, which is what it would see.
                if let Ok(engine) = UnixStream::connect(&engine) {
                    let _ = relay(agent, engine, shared);
                }
            }
        };
        Builder::new().spawn(accept)?;
        Ok(Self { directory, record })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Forgets what was recorded.
    pub fn clear(&self) {
        self.record.exchanges.lock().clear();
        self.record.events.lock().clear();
    }

    /// The requests since the last clear.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.record.exchanges.lock().values().cloned().collect()
    }

    /// When an event that holds all of `words` left for the agent.
    pub fn event_left(&self, words: &[&str]) -> Option<Instant> {
        let events = self.record.events.lock();
        let wanted = |text: &str| words.iter().all(|word| text.contains(word));
        events.iter().find(|(_, text)| wanted(text)).map(|(at, _)| *at)
    }
}

fn relay(agent: UnixStream, engine: UnixStream, record: Arc<Record>) -> Result<()> {
    let current = Arc::new(AtomicU64::new(0));
    let (from_agent, to_engine) = (agent.try_clone()?, engine.try_clone()?);
    let (log, index) = (Arc::clone(&record), Arc::clone(&current));
    Builder::new().spawn(move || {
        let _ = pass_requests(from_agent, &to_engine, &log, &index);
        let _ = to_engine.shutdown(Shutdown::Both);
    })?;
    Builder::new().spawn(move || {
        let _ = pass_answers(engine, &agent, &record, &current);
        let _ = agent.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

fn pass_requests(
    agent: UnixStream,
    mut engine: &UnixStream,
    record: &Record,
    current: &AtomicU64,
) -> Result<()> {
    let mut reader = BufReader::new(agent);
    while let Some(request) = Request::read(&mut reader)? {
        let number = record.last.fetch_add(1, Ordering::SeqCst) + 1;
        current.store(number, Ordering::SeqCst);
        let begin = now();
        let exchange = Exchange { line: request.line(), begin, end: begin };
        record.exchanges.lock().insert(number, exchange);
        engine.write_all(&request.bytes)?;
    }
    Ok(())
}

fn pass_answers(
    mut engine: UnixStream,
    mut agent: &UnixStream,
    record: &Record,
    current: &AtomicU64,
) -> Result<()> {
    let mut piece = vec![0; 64 << 10];
    let mut is_events = false;
    loop {
        let length = engine.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        let at = now();
        let mut exchanges = record.exchanges.lock();
        if let Some(exchange) = exchanges.get_mut(&current.load(Ordering::SeqCst)) {
            exchange.end = at;
            is_events |= exchange.line == "GET /events";
        }
        drop(exchanges);
        if is_events {
            let text = String::from_utf8_lossy(&piece[..length]).into_owned();
            record.events.lock().push((at, text));
        }
        agent.write_all(&piece[..length])?;
    }
}
