//! A proxy on a Unix socket between an agent and its engine. It passes bytes on, writes down the
//! line of every request, and can hold requests back.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use tempfile::TempDir;

use super::DEADLINE;

/// The proxy; it serves until the test process ends.
#[derive(Debug)]
pub struct Proxy {
    folder: TempDir,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<String>,
    /// Requests whose line has these words wait.
    gate: Option<String>,
    /// How many wait.
    held: usize,
    /// Those that wait are dropped with their connection instead of passed on.
    drops: bool,
}

impl Proxy {
    /// A proxy in front of the engine behind `engine`.
    pub fn start(engine: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("bargee-proxy-").tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let engine = engine.to_owned();
        let shared = Shared { engine, state: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let proxy = Self { folder, shared: Arc::clone(&shared) };
        let accept = move || {
            while let Ok((client, _)) = listener.accept() {
                serve(client, &shared);
            }
        };
        thread::Builder::new().spawn(accept).unwrap();
        proxy
    }

    /// Its socket as an engine URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.folder.path().join("engine.sock").display())
    }

    /// The request lines so far, each as `GET /v1.41/containers/json?all=1`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// Takes the request lines so far out of the record.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state.lock().unwrap().requests)
    }

    /// From now on requests whose line contains `words` wait.
    pub fn hold(&self, words: &str) {
        let mut state = self.shared.state.lock().unwrap();
        state.gate = Some(words.to_owned());
        state.drops = false;
    }

    /// Waits until a request is held back.
    pub fn wait_held(&self) {
        let state = self.shared.state.lock().unwrap();
        let wait = self.shared.changed.wait_timeout_while(state, DEADLINE, |s| s.held == 0);
        let (state, late) = wait.unwrap();
        assert!(!late.timed_out(), "no request for {:?} came: {:?}", state.gate, state.requests);
    }

    /// Passes on what was held back, and holds nothing back any more.
    pub fn release(&self) {
        self.open(false);
    }

    /// Drops what was held back, as if it had never been sent, and holds nothing back any more.
    pub fn drop_held(&self) {
        self.open(true);
    }

    fn open(&self, drops: bool) {
        let mut state = self.shared.state.lock().unwrap();
        state.gate = None;
        state.drops = drops;
        self.shared.changed.notify_all();
        let wait = self.shared.changed.wait_timeout_while(state, DEADLINE, |s| s.held > 0);
        assert!(!wait.unwrap().1.timed_out());
    }
}

impl Shared {
    /// Writes a request down and waits while it is to be held; whether it is to be passed on.
    fn admit(&self, line: &str) -> bool {
        let mut state = self.state.lock().unwrap();
        let line = line.trim_end().trim_end_matches(" HTTP/1.1");
        state.requests.push(line.to_owned());
        let is_held = |state: &State| state.gate.as_ref().is_some_and(|words| line.contains(words));
        if !is_held(&state) {
            return true;
        }
        state.held += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| is_held(state)).unwrap();
        state.held -= 1;
        self.changed.notify_all();
        !state.drops
    }
}

/// Passes bytes both ways until one side has ended.
fn serve(client: UnixStream, shared: &Arc<Shared>) {
    // A client of an engine that is away finds its connection closed, as it would find it refused.
    let Ok(engine) = UnixStream::connect(&shared.engine) else { return };
    let (mut answers, mut to_client) = (engine.try_clone().unwrap(), client.try_clone().unwrap());
    let back = move || {
        let _ = io::copy(&mut answers, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    };
    thread::Builder::new().spawn(back).unwrap();
    let shared = Arc::clone(shared);
    let forth = move || {
        let mut to_engine = engine;
        let _ = forward(&mut BufReader::new(client), &mut to_engine, &shared);
        let _ = to_engine.shutdown(Shutdown::Both);
    };
    thread::Builder::new().spawn(forth).unwrap();
}

/// Passes requests on until the client has ended. An error: a side is gone.
fn forward(
    client: &mut BufReader<UnixStream>,
    engine: &mut UnixStream,
    shared: &Shared,
) -> io::Result<()> {
    loop {
        let head = read_head(client)?;
        let Some(first) = head.split_inclusive('\n').next() else { return Ok(()) };
        if !shared.admit(first) {
            return Ok(());
        }
        engine.write_all(head.as_bytes())?;
        let lower = head.to_ascii_lowercase();
        assert!(!lower.contains("\r\ntransfer-encoding:"), "no length: {head}");
        let length = lower
            .split_once("\r\ncontent-length:")
            .map_or(0, |(_, rest)| rest.lines().next().unwrap_or_default().trim().parse().unwrap());
        io::copy(&mut client.take(length), engine)?;
    }
}

/// Everything up to the empty line; nothing when the client has ended.
fn read_head(client: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if client.read_line(&mut head)? == 0 {
            return Ok(String::new());
        }
    }
    Ok(head)
}
