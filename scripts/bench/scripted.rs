//! An engine that does nothing, at once: containers are rows of a table. It makes more workloads
//! than a machine can run, and leaves the agent's own time visible.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;
use crate::http::{Request, answer, begin_chunks, chunk};
use crate::stopwatch::now;

/// The engine. It goes away with the process.
pub struct Scripted {
    directory: TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    containers: BTreeMap<String, Container>,
    streams: Vec<UnixStream>,
    calls: BTreeMap<String, usize>,
    made: u64,
}

struct Container {
    name: String,
    image: Value,
    labels: Value,
    status: &'static str,
}

impl Scripted {
    /// Listens on a socket of its own.
    pub fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let listener = UnixListener::bind(directory.path().join("s"))?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                let shared = Arc::clone(&shared);
                let spawned = Builder::new().spawn(move || {
                    // The agent may leave at any time.
                    let _ = converse(stream, &shared);
                });
                drop(spawned);
            }
        };
        Builder::new().spawn(accept)?;
        Ok(Self { directory, state })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// The calls since this was asked last, with their number.
    pub fn take_calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.state.lock().calls)
    }

    /// Ends the process of container `id`, and says when its event was about to leave.
    pub fn end(&self, id: &str) -> Result<Instant> {
        let mut state = self.state.lock();
        state.set(id, "exited");
        let at = now();
        state.tell(id, "die");
        Ok(at)
    }
}

impl State {
    fn set(&mut self, id: &str, status: &'static str) {
        if let Some(container) = self.containers.get_mut(id) {
            container.status = status;
        }
    }

    fn tell(&mut self, id: &str, action: &str) {
        let Some(container) = self.containers.get(id) else { return };
        let event = json!({
            "Type": "container", "Action": action, "scope": "local",
            "Actor": {"ID": id, "Attributes": container.labels},
        });
        let line = format!("{event}\n");
        self.streams.retain_mut(|stream| chunk(stream, &line).is_ok());
    }

    /// The id of the container in a path like `/containers/web/json`, by id or name.
    fn find(&self, name: &str) -> Option<String> {
        if self.containers.contains_key(name) {
            return Some(name.to_owned());
        }
        let mut all = self.containers.iter();
        all.find(|(_, container)| container.name == name).map(|(id, _)| id.clone())
    }

    fn create(&mut self, name: &str, body: &[u8]) -> Result<String> {
        let body: Value = serde_json::from_slice(body)?;
        self.made += 1;
        let id = format!("{:064x}", self.made);
        let (image, labels) = (body["Image"].clone(), body["Labels"].clone());
        let container = Container { name: name.to_owned(), image, labels, status: "created" };
        self.containers.insert(id.clone(), container);
        Ok(json!({"Id": id, "Warnings": []}).to_string())
    }

    /// As long as what Docker says.
    fn list(&self) -> String {
        let entry = |(id, c): (&String, &Container)| {
            json!({
                "Id": id, "Names": [c.name], "Image": c.image, "Labels": c.labels,
                "State": c.status, "Status": c.status, "Ports": [], "Mounts": [],
                "Command": "x".repeat(100), "NetworkSettings": "x".repeat(600),
            })
        };
        Value::Array(self.containers.iter().map(entry).collect()).to_string()
    }

    fn inspect(&self, id: &str) -> String {
        let c = &self.containers[id];
        let ran =
            if c.status == "created" { "0001-01-01T00:00:00Z" } else { "2026-01-01T00:00:00Z" };
        json!({
            "Id": id, "Image": format!("sha256:{:064x}", 1),
            "State": {
                "Status": c.status, "OOMKilled": false, "Pid": 0, "Error": "",
                "ExitCode": if c.status == "exited" { 137 } else { 0 },
                "StartedAt": ran, "FinishedAt": "0001-01-01T00:00:00Z",
            },
            "Config": {"Labels": c.labels}, "HostConfig": "x".repeat(4_000),
            "NetworkSettings": {"Ports": {}, "Networks": {"n": {"IPAddress": "10.0.0.2"}}},
        })
        .to_string()
    }
}

fn converse(mut stream: UnixStream, state: &Mutex<State>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(request) = Request::read(&mut reader)? {
        let line = request.line();
        let mut state = state.lock();
        let words: Vec<&str> = line.split(['/', ' ']).filter(|word| !word.is_empty()).collect();
        let kind = match words.as_slice() {
            [method, "containers", _, verb] => format!("{method} {verb}"),
            _ => line.clone(),
        };
        *state.calls.entry(kind).or_default() += 1;
        if line == "GET /events" {
            begin_chunks(&mut stream)?;
            state.streams.push(stream.try_clone()?);
            continue;
        }
        let (status, body) = respond(&mut state, &request, &words)?;
        drop(state);
        answer(&mut stream, status, &body)?;
    }
    Ok(())
}

fn respond(state: &mut State, request: &Request, words: &[&str]) -> Result<(u16, String)> {
    let empty = String::new();
    Ok(match words {
        ["GET", "_ping"] => (200, "OK".to_owned()),
        ["GET", "version"] => {
            (200, json!({"Version": "scripted", "MinAPIVersion": "1.24"}).to_string())
        }
        ["GET", "containers", "json"] => (200, state.list()),
        ["POST", "containers", "create"] => {
            let name = request.target.split("name=").nth(1).unwrap_or_default();
            (201, state.create(name, request.body())?)
        }
        ["POST", "networks", "create"] => (201, json!({"Id": "n"}).to_string()),
        ["DELETE", "networks", _] => (204, empty),
        [method, "containers", name, verb @ ..] => match state.find(name) {
            None => (404, json!({"message": "no such container"}).to_string()),
            Some(id) => one(state, method, &id, verb),
        },
        _ => (404, json!({"message": "no such route"}).to_string()),
    })
}

fn one(state: &mut State, method: &str, id: &str, verb: &[&str]) -> (u16, String) {
    match (method, verb) {
        ("GET", ["json"]) => return (200, state.inspect(id)),
        ("POST", ["start"]) => {
            state.set(id, "running");
            state.tell(id, "start");
        }
        ("POST", ["kill"]) => {
            state.set(id, "exited");
            state.tell(id, "die");
        }
        ("DELETE", []) => {
            state.tell(id, "destroy");
            state.containers.remove(id);
        }
        _ => return (404, json!({"message": "no such route"}).to_string()),
    }
    (204, String::new())
}
