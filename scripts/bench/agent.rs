//! The agent under measurement: its process and its API.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bargee::os::unix_http;
use serde_json::Value;
use tempfile::TempDir;
use ureq::Body;
use ureq::http::Response;

use crate::Result;
use crate::stopwatch::{now, pause, seconds};

/// Nothing here takes this long; what does is not coming.
const PATIENCE: Duration = Duration::from_secs(600);
/// The image that every engine of scripts/engines.sh has.
pub const IMAGE: &str = "localtest/busybox:1";

/// A data directory that outlives an agent, and what is needed to start one on it.
pub struct Place {
    program: PathBuf,
    engine: PathBuf,
    directory: TempDir,
}

/// A running agent. It is stopped when this is dropped.
pub struct Agent {
    process: Child,
    http: ureq::Agent,
}

/// Transitions of the agent, as they come.
pub struct Transitions {
    lines: BufReader<Box<dyn Read>>,
}

impl Place {
    /// A new data directory for agents of `program` on the engine behind the socket `engine`.
    pub fn new(program: &Path, engine: &Path) -> Result<Self> {
        let (program, engine) = (program.to_owned(), engine.to_owned());
        Ok(Self { program, engine, directory: tempfile::tempdir()? })
    }

    /// Starts an agent and waits until it is ready.
    pub fn start(&self) -> Result<Agent> {
        let path = self.directory.path();
        let socket = path.join("api.sock");
        let log = File::create(path.join("log"))?;
        let process = Command::new(&self.program)
            .arg("agent")
            .env_clear()
            .env("BARGEE_DATA_DIR", path.join("data"))
            .env("BARGEE_API_SOCKET", &socket)
            .env("BARGEE_ENGINE_URL", format!("unix://{}", self.engine.display()))
            .env("BARGEE_NODE", "bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let agent = Agent { process, http: unix_http::agent(&socket, PATIENCE) };
        let begin = now();
        while agent.get("/health/ready").is_err() {
            if begin.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(path.join("log"))?;
                return Err(format!("the agent does not get ready:\n{log}").into());
            }
            pause(Duration::from_millis(20));
        }
        Ok(agent)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let id = i32::try_from(self.process.id()).map(nix::unistd::Pid::from_raw);
        if let Ok(id) = id
            && nix::sys::signal::kill(id, nix::sys::signal::SIGTERM).is_err()
        {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

impl Agent {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Reads a route.
    pub fn get(&self, path: &str) -> Result<Value> {
        read(self.http.get(format!("http://agent{path}")).call()?)
    }

    /// Declares what `manifests` hold.
    pub fn apply(&self, manifests: &str) -> Result<Value> {
        let url = "http://agent/v1/deploy/microservices:apply";
        read(self.http.post(url).content_type("application/yaml").send(manifests)?)
    }

    /// Removes a workload, in the background.
    pub fn remove(&self, key: &str) -> Result<Value> {
        let key = bargee::api::url::encode(key);
        read(self.http.delete(format!("http://agent/v1/ms/{key}")).call()?)
    }

    /// The number of workloads in `state`.
    pub fn count(&self, state: &str) -> Result<u64> {
        let status = self.get("/v1/system/status")?;
        Ok(status["counts"][state].as_u64().unwrap_or(0))
    }

    /// Waits until `wanted` workloads are in `state`.
    pub fn wait_for(&self, state: &str, wanted: u64) -> Result<()> {
        let begin = now();
        while self.count(state)? != wanted {
            if begin.elapsed() > PATIENCE {
                return Err(format!("not {wanted} workloads get {state}").into());
            }
            pause(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Removes every workload and waits until all are gone.
    pub fn remove_all(&self) -> Result<()> {
        loop {
            let left = self.get("/v1/ms")?;
            let left = left["items"].as_array().cloned().unwrap_or_default();
            if left.is_empty() {
                return Ok(());
            }
            // Not all are taken at once: the agent bounds what waits.
            for item in left.iter().filter(|item| item["desiredState"] != "deleted") {
                let key = format!("{}/{}", word(item, "application"), word(item, "name"));
                if self.remove(&key).is_err() {
                    break;
                }
            }
            pause(Duration::from_millis(100));
        }
    }

    /// The transitions from now on.
    pub fn transitions(&self) -> Result<Transitions> {
        let past = self.http.get("http://agent/v1/events").call()?;
        let past = past.into_body().read_to_string()?;
        let mut last = past.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let since = last.next_back().and_then(|line| line["seq"].as_u64()).unwrap_or(0);
        let url = format!("http://agent/v1/events?since={since}&follow=true");
        let body = self.http.get(url).call()?.into_body();
        Ok(Transitions { lines: BufReader::new(Box::new(body.into_reader())) })
    }
}

impl Transitions {
    /// Waits for the next.
    pub fn next(&mut self) -> Result<Value> {
        let begin = now();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 || seconds(begin) > PATIENCE.as_secs_f64() {
                return Err("a transition does not come".into());
            }
            // An empty line is a sign of life.
            if !line.trim().is_empty() {
                return Ok(serde_json::from_str(&line)?);
            }
        }
    }

    /// Waits until `wanted` workloads got Running, and says when.
    pub fn running(&mut self, wanted: usize) -> Result<Instant> {
        let mut running = BTreeSet::new();
        while running.len() < wanted {
            let transition = self.next()?;
            if word(&transition, "to") == "Running(Ok)" {
                running.insert(word(&transition, "uid"));
            }
        }
        Ok(now())
    }
}

fn read(mut response: Response<Body>) -> Result<Value> {
    let status = response.status().as_u16();
    let text = response.body_mut().with_config().limit(64 << 20).read_to_string()?;
    if !(200..300).contains(&status) {
        return Err(format!("the agent answered {status}: {text}").into());
    }
    Ok(serde_json::from_str(&text)?)
}

/// A field that is text.
pub fn word(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// Manifests of `count` workloads of one application that do nothing.
pub fn manifests(application: &str, count: usize) -> String {
    let one = |number| {
        format!(
            "apiVersion: bargee/v1\n\
             kind: Workload\n\
             metadata: {{name: w-{number:04}, application: {application}, labels: {{tier: x}}}}\n\
             spec:\n  \
               image: {IMAGE}\n  \
               pull: never\n  \
               command: [sleep, \"86400\"]\n  \
               env: {{TZ: UTC}}\n  \
               restart: {{policy: never}}\n  \
               stop: {{signal: SIGKILL, grace: 1s}}\n"
        )
    };
    (0..count).map(one).collect::<Vec<_>>().join("---\n")
}
