//! A proxy on a Unix socket between an agent and its engine. It passes bytes on, writes down the
//! line of every request, can hold requests back, and can kill the agent around one of them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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
    trap: Option<Trap>,
    /// The line of the request around which the agent was killed.
    sprung: Option<String>,
    /// A request that was to come late may come now.
    late: bool,
}

/// When the agent dies, seen from a request that changes something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The engine never hears of the request.
    Before,
    /// The engine hears of it when [`Proxy::pass_late`] is called.
    Late,
    /// The engine has carried it out, and the agent never hears of that.
    After,
}

/// Kills a process around a request.
#[derive(Clone, Copy, Debug)]
struct Trap {
    process: u32,
    /// Requests to let pass before.
    skip: usize,
    moment: Moment,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passed,
    Dropped,
    /// Carried through to the engine, whatever becomes of its client, which hears nothing of it;
    /// then this process is killed.
    CarriedThrough(Option<u32>),
}

/// Whether a request changes something on the engine.
pub fn is_change(line: &str) -> bool {
    line.starts_with("POST ") || line.starts_with("DELETE ")
}

/// SIGKILL; who started the process has to wait for it.
pub fn end(process: u32) {
    kill(Pid::from_raw(process.try_into().unwrap()), Signal::SIGKILL).unwrap();
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

    /// Kills `process` around the request that changes something and comes after `skip` others.
    pub fn trap(&self, process: u32, skip: usize, moment: Moment) {
        let mut state = self.shared.state.lock().unwrap();
        state.trap = Some(Trap { process, skip, moment });
        state.sprung = None;
        state.late = false;
    }

    /// Waits until the process was killed; the line of the request.
    pub fn wait_sprung(&self) -> String {
        let state = self.shared.state.lock().unwrap();
        let is_set = |state: &mut State| state.sprung.is_none();
        let (state, late) =
            self.shared.changed.wait_timeout_while(state, DEADLINE, is_set).unwrap();
        assert!(!late.timed_out(), "{:?} was not sprung: {:?}", state.trap, state.requests);
        state.sprung.clone().unwrap()
    }

    /// Passes on the request that was to come late.
    pub fn pass_late(&self) {
        self.shared.state.lock().unwrap().late = true;
        self.shared.changed.notify_all();
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
    /// Writes a request down, and waits while it is to be held.
    fn admit(&self, line: &str) -> Fate {
        let mut state = self.state.lock().unwrap();
        state.requests.push(line.to_owned());
        if let Some(trap) = state.trap.as_mut().filter(|_| is_change(line)) {
            if trap.skip == 0 {
                return self.spring(state, line);
            }
            trap.skip -= 1;
        }
        let is_held = |state: &State| state.gate.as_ref().is_some_and(|words| line.contains(words));
        if !is_held(&state) {
            return Fate::Passed;
        }
        state.held += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| is_held(state)).unwrap();
        state.held -= 1;
        self.changed.notify_all();
        if state.drops { Fate::Dropped } else { Fate::Passed }
    }

    fn spring(&self, mut state: MutexGuard<'_, State>, line: &str) -> Fate {
        let Trap { process, moment, .. } = state.trap.take().unwrap();
        if moment == Moment::After {
            return Fate::CarriedThrough(Some(process));
        }
        end(process);
        self.tell_sprung(&mut state, line);
        if moment == Moment::Before {
            return Fate::Dropped;
        }
        let late = self.changed.wait_timeout_while(state, DEADLINE, |state| !state.late).unwrap();
        assert!(!late.1.timed_out(), "{line} was never passed on");
        Fate::CarriedThrough(None)
    }

    fn tell_sprung(&self, state: &mut State, line: &str) {
        state.sprung = Some(line.to_owned());
        self.changed.notify_all();
    }
}

/// Passes bytes both ways until one side has ended.
fn serve(client: UnixStream, shared: &Arc<Shared>) {
    // A client of an engine that is away finds its connection closed, as it would find it refused.
    let Ok(engine) = UnixStream::connect(&shared.engine) else { return };
    let (answers, to_client) = (engine.try_clone().unwrap(), client.try_clone().unwrap());
    let catch = Arc::new(Catch::default());
    let caught = Arc::clone(&catch);
    let back = move || pass_back(answers, to_client, &caught);
    thread::Builder::new().spawn(back).unwrap();
    let shared = Arc::clone(shared);
    let forth = move || {
        let mut to_engine = engine;
        let _ = forward(&mut BufReader::new(client), &mut to_engine, &shared, &catch);
        let _ = to_engine.shutdown(Shutdown::Both);
    };
    thread::Builder::new().spawn(forth).unwrap();
}

/// Catches the answer to the last request of a connection.
#[derive(Debug, Default)]
struct Catch {
    state: Mutex<Caught>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Caught {
    #[default]
    NotWanted,
    Wanted,
    /// The answer has begun, or never will.
    Done,
}

impl Catch {
    fn want(&self) {
        *self.state.lock().unwrap() = Caught::Wanted;
    }

    fn wait(&self) {
        let state = self.state.lock().unwrap();
        let is_open = |state: &mut Caught| *state != Caught::Done;
        let wait = self.changed.wait_timeout_while(state, DEADLINE, is_open).unwrap();
        assert!(!wait.1.timed_out(), "the engine does not answer");
    }

    /// Whether what came is the answer to be caught.
    fn take(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        if *state == Caught::NotWanted {
            return false;
        }
        *state = Caught::Done;
        self.changed.notify_all();
        true
    }
}

/// Passes answers on until a side has ended, or one was caught.
fn pass_back(mut engine: UnixStream, mut client: UnixStream, catch: &Catch) {
    let mut buffer = [0; 16 << 10];
    loop {
        let length = engine.read(&mut buffer).unwrap_or(0);
        if catch.take() || length == 0 || client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Passes requests on until the client has ended. An error: a side is gone.
fn forward(
    client: &mut BufReader<UnixStream>,
    engine: &mut UnixStream,
    shared: &Shared,
    catch: &Catch,
) -> io::Result<()> {
    loop {
        let head = read_head(client)?;
        let Some(line) = head.lines().next() else { return Ok(()) };
        let line = line.trim_end_matches(" HTTP/1.1");
        // A client that dies while its request is held has sent all of it.
        let body = read_body(client, &head)?;
        let fate = shared.admit(line);
        match fate {
            Fate::Dropped => return Ok(()),
            Fate::Passed => {}
            Fate::CarriedThrough(_) => catch.want(),
        }
        engine.write_all(&[head.as_bytes(), &body].concat())?;
        if let Fate::CarriedThrough(process) = fate {
            catch.wait();
            if let Some(process) = process {
                end(process);
                shared.tell_sprung(&mut shared.state.lock().unwrap(), line);
            }
            return Ok(());
        }
    }
}

/// The body that belongs to `head`.
fn read_body(client: &mut BufReader<UnixStream>, head: &str) -> io::Result<Vec<u8>> {
    let lower = head.to_ascii_lowercase();
    assert!(!lower.contains("\r\ntransfer-encoding:"), "no length: {head}");
    let length = lower
        .split_once("\r\ncontent-length:")
        .map_or(0, |(_, rest)| rest.lines().next().unwrap_or_default().trim().parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body)?;
    Ok(body)
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
