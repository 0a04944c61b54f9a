//! What an engine itself says, read past the code that is tested.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use bargee::os::unix_http;
use serde_json::{Value, json};

use super::engine::IMAGE;
use super::{DEADLINE, until};

/// A plain client of the Docker API.
#[derive(Debug)]
pub struct DockerApi(ureq::Agent);

/// A container as the engine has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Container {
    /// The engine's id.
    pub id: String,
    /// Name of the workload, from its label.
    pub workload: String,
    /// As the engine writes it; it names a run.
    pub started_at: String,
    /// As the engine writes it.
    pub finished_at: String,
    /// `running`, `exited` and so on.
    pub status: String,
    /// The whole inspect.
    pub inspect: Value,
}

impl Container {
    /// Its process runs.
    pub fn is_running(&self) -> bool {
        self.status == "running"
    }
}

impl DockerApi {
    /// A client of the engine behind `socket`.
    pub fn new(socket: &Path) -> Self {
        Self(unix_http::agent(socket, DEADLINE))
    }

    /// Reads `path`; the status and what came as JSON.
    pub fn get(&self, path: &str) -> Option<(u16, Value)> {
        let mut answer = self.0.get(format!("http://engine{path}")).call().ok()?;
        let text = answer.body_mut().read_to_string().ok()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Some((answer.status().as_u16(), body))
    }

    /// Reads `path`, which must be there.
    pub fn read(&self, path: &str) -> Value {
        match self.get(path) {
            Some((200, body)) => body,
            other => panic!("GET {path}: {other:?}"),
        }
    }

    /// Posts `body`; the answer as JSON. Fails unless that went well.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("http://engine{path}");
        let request = self.0.post(url).content_type("application/json");
        let mut answer = request.send(body.to_string()).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(answer.status().is_success(), "POST {path}: {} {text}", answer.status());
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Deletes `path`; whether that went well.
    pub fn delete(&self, path: &str) -> bool {
        let answer = self.0.delete(format!("http://engine{path}")).call();
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// All containers of a node, by workload and id; nothing when the engine does not answer.
    pub fn containers(&self, node: &str) -> Vec<Container> {
        let path = format!("/containers/json?all=1&filters={}", labelled(node));
        let Some((200, list)) = self.get(&path) else { return Vec::new() };
        let ids = list.as_array().unwrap().iter().map(|one| one["Id"].as_str().unwrap());
        let mut containers: Vec<_> = ids.filter_map(|id| self.container(id)).collect();
        containers.sort_by(|a, b| (&a.workload, &a.id).cmp(&(&b.workload, &b.id)));
        containers
    }

    /// One container, unless it is gone.
    pub fn container(&self, id: &str) -> Option<Container> {
        let (status, inspect) = self.get(&format!("/containers/{id}/json"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (status == 200).then(|| Container {
            id: text(&inspect["Id"]),
            workload: text(&inspect["Config"]["Labels"]["bargee.name"]),
            started_at: text(&inspect["State"]["StartedAt"]),
            finished_at: text(&inspect["State"]["FinishedAt"]),
            status: text(&inspect["State"]["Status"]),
            inspect,
        })
    }

    /// Names of the networks of a node, sorted.
    pub fn networks(&self, node: &str) -> Vec<String> {
        let Some((200, list)) = self.get(&format!("/networks?filters={}", labelled(node))) else {
            return Vec::new();
        };
        let names = list.as_array().unwrap().iter();
        let mut names: Vec<_> = names.map(|one| one["Name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// Names of all volumes.
    pub fn volumes(&self) -> Vec<String> {
        let list = self.read("/volumes");
        let names = list["Volumes"].as_array().into_iter().flatten();
        names.map(|one| one["Name"].as_str().unwrap().to_owned()).collect()
    }

    /// Makes a container that nobody starts, for a moment.
    fn make_briefly<T>(&self, then: impl FnOnce(&str) -> T) -> T {
        let made = self.post("/containers/create", &json!({"Image": IMAGE}));
        let id = made["Id"].as_str().unwrap();
        let done = then(id);
        assert!(self.delete(&format!("/containers/{id}")));
        done
    }

    /// Writes down from now on what happens. An engine remembers the last 256 events only, which
    /// are those of a few seconds when many tests run.
    pub fn history(&self) -> History<'_> {
        let url = "http://engine/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D";
        let stream = self.0.get(url).call().unwrap().into_body().into_reader();
        let events = Arc::new(Mutex::new(Vec::<Value>::new()));
        let written = Arc::clone(&events);
        let read = move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                written.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        };
        thread::Builder::new().spawn(read).unwrap();
        History { docker: self, events }
    }

    /// Makes an image `name:1` from the test image, with a change as in a Dockerfile.
    pub fn make_image(&self, name: &str, change: &str) {
        let change = change.replace(' ', "%20");
        self.make_briefly(|id| {
            let path = format!("/commit?container={id}&repo={name}&tag=1&changes={change}");
            self.post(&path, &Value::Null);
        });
    }
}

/// What happened since it was begun.
#[derive(Debug)]
pub struct History<'a> {
    docker: &'a DockerApi,
    events: Arc<Mutex<Vec<Value>>>,
}

impl History<'_> {
    /// All that happened to a container until now.
    pub fn of(&self, id: &str) -> Vec<Value> {
        self.those(|event| event["id"] == id)
    }

    /// All that happened to the containers of an agent until now.
    pub fn of_node(&self, node: &str) -> Vec<Value> {
        self.those(|event| event["Actor"]["Attributes"]["bargee.node"] == node)
    }

    fn those(&self, are_meant: impl Fn(&Value) -> bool) -> Vec<Value> {
        let those = |are_meant: &dyn Fn(&Value) -> bool| {
            let events = self.events.lock().unwrap();
            events.iter().filter(|event| are_meant(event)).cloned().collect::<Vec<_>>()
        };
        // Events come in order: once something of now is there, all that was before is there.
        self.docker.make_briefly(|marker| {
            let is_there = || !those(&|event| event["id"] == marker).is_empty();
            until("an event of now", || is_there().then_some(()));
        });
        those(&are_meant)
    }

    /// How often a container was started.
    pub fn starts(&self, id: &str) -> usize {
        self.of(id).iter().filter(|event| event["Action"] == "start").count()
    }
}

fn labelled(node: &str) -> String {
    format!("%7B%22label%22%3A%5B%22bargee.node%3D{node}%22%5D%7D")
}
