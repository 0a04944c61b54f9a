//! A device of its own for each test: a scripted engine, a folder, and the program on it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use bargee::api::wire::{Entry, List, Status, Workload};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chown, geteuid};
use serde_json::Value;
use tempfile::TempDir;

use super::at_rest::{Held, Scene};
use super::scripted_engine::{Container, IMAGE, ScriptedEngine};
use super::{DEADLINE, until};

/// A user without rights.
pub const NOBODY: u32 = 65_534;

/// A device.
#[derive(Debug)]
pub struct Device {
    pub engine: ScriptedEngine,
    folder: TempDir,
    /// User of the agent; `None`: that of the tests.
    user: Option<u32>,
    /// The agent sees the processes of the containers in a `/proc` of its own.
    has_processes: bool,
    /// Further settings of the agent.
    settings: Vec<(String, String)>,
    agent: Option<Child>,
}

/// What a command came to.
#[derive(Debug)]
pub struct Output {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// What does not change as long as a container is left alone.
pub type Fingerprint = Vec<(String, String, u64)>;

impl Device {
    /// A device whose agent does not run yet.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("bargee-scripted-").tempdir().unwrap();
        fs::create_dir(folder.path().join("engine")).unwrap();
        let engine = ScriptedEngine::start(&folder.path().join("engine/engine.sock"));
        Self { engine, folder, user: None, has_processes: false, settings: Vec::new(), agent: None }
    }

    /// A device whose agent runs and has listed.
    pub fn started() -> Self {
        let mut device = Self::new();
        device.start();
        device
    }

    /// A device on which these workloads run.
    pub fn running(names: &[&str]) -> Self {
        let device = Self::started();
        device.deploy(&services(names));
        device.until_running(names);
        device
    }

    /// A device whose agent will run as a user without rights; only as root.
    pub fn unprivileged() -> Self {
        assert!(geteuid().is_root(), "only root can give up its rights");
        let mut device = Self::new();
        let folder = device.folder.path();
        let readable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder, readable.clone()).unwrap();
        // Where the tests were built may be closed to others.
        fs::copy(env!("CARGO_BIN_EXE_bargee"), folder.join("bargee")).unwrap();
        for own in ["data", "run"] {
            fs::create_dir(folder.join(own)).unwrap();
            chown(&folder.join(own), Some(NOBODY.into()), Some(NOBODY.into())).unwrap();
        }
        File::create(device.log_file()).unwrap();
        device.user = Some(NOBODY);
        device
    }

    /// Sets a variable for the agent, before it starts.
    pub fn set(&mut self, variable: &str, value: impl Into<String>) {
        self.settings.push((variable.to_owned(), value.into()));
    }

    // --- places --------------------------------------------------------------------------------

    /// A path in the folder of the device.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the agent keeps its state.
    pub fn data(&self, name: &str) -> PathBuf {
        self.path("data").join(name)
    }

    /// A path in the manifests directory, which the agent looks at if `etc` is there.
    pub fn manifests(&self, name: &str) -> PathBuf {
        self.path("etc/manifests.d").join(name)
    }

    /// The agent's socket.
    pub fn socket(&self) -> PathBuf {
        self.path("run/api.sock")
    }

    fn log_file(&self) -> PathBuf {
        self.path("log")
    }

    // --- the agent -----------------------------------------------------------------------------

    fn command(&self) -> Command {
        let mut command = match self.user {
            None if self.has_processes => {
                let mut command = Command::new("unshare");
                let script = r#"mount --bind "$0" /proc && exec "$@""#;
                command.args(["-m", "sh", "-c", script]).arg(self.path("proc"));
                command.arg(env!("CARGO_BIN_EXE_bargee"));
                command
            }
            None => Command::new(env!("CARGO_BIN_EXE_bargee")),
            Some(user) => {
                let mut command = Command::new(self.path("bargee"));
                command.uid(user).gid(user);
                command
            }
        };
        command
            .env("BARGEE_NODE", "device")
            .env("BARGEE_ENGINE_URL", self.engine.url())
            .env("BARGEE_DATA_DIR", self.path("data"))
            .env("BARGEE_API_SOCKET", self.socket())
            .envs(self.settings.clone());
        if self.path("etc").exists() {
            command.env("BARGEE_MANIFESTS_DIR", self.manifests(""));
        }
        command
    }

    /// From its next start on the agent sees the processes of all containers that run now; without
    /// it believes no pid, since there is no such process. Whether this user may do that.
    pub fn show_processes(&mut self) -> bool {
        if !geteuid().is_root() {
            println!("skipped: only root can give the agent a /proc of its own");
            return false;
        }
        for made in self.engine.containers().iter().filter(|made| made.pid != 0) {
            let process = self.path("proc").join(made.pid.to_string());
            fs::create_dir_all(&process).unwrap();
            let group = format!("0::/docker/{}\n", made.id);
            File::create(process.join("cgroup")).unwrap().write_all(group.as_bytes()).unwrap();
        }
        // What else the agent reads there.
        for file in ["sys/kernel/random/boot_id", "self/mountinfo"] {
            let copy = self.path("proc").join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            let text = fs::read(Path::new("/proc").join(file)).unwrap();
            File::create(copy).unwrap().write_all(&text).unwrap();
        }
        self.has_processes = true;
        true
    }

    /// Starts the agent and waits until it answers.
    pub fn launch(&mut self) {
        assert!(self.agent.is_none(), "it runs already");
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let mut command = self.command();
        command.arg("agent").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut agent = command.spawn().unwrap();
        until("the agent to answer", || {
            let ended = agent.try_wait().unwrap();
            assert!(ended.is_none(), "the agent ended ({ended:?}): {}", self.log());
            (self.socket().exists() && self.get("/health/live")?.0 == 200).then_some(())
        });
        self.agent = Some(agent);
    }

    /// Starts the agent and waits until it has listed.
    pub fn start(&mut self) {
        self.launch();
        self.until_ready();
    }

    /// Starts the agent, which has to end by itself; what it said.
    pub fn fail_to_start(&self) -> Output {
        let output = self.command().arg("agent").stdin(Stdio::null()).output().unwrap();
        Output::of(output)
    }

    /// Kills the agent.
    pub fn kill9(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Process id of the agent.
    pub fn pid(&self) -> u32 {
        self.agent.as_ref().unwrap().id()
    }

    /// The agent is dead, but for its name.
    pub fn is_dead(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // After the name, which is in brackets.
        stat.rsplit_once(") ").unwrap().1.starts_with('Z')
    }

    /// Sends SIGKILL to the agent. [`Device::kill9`] has to follow.
    pub fn send_sigkill(&self) {
        kill(Pid::from_raw(self.pid().try_into().unwrap()), Signal::SIGKILL).unwrap();
    }

    /// Ends the agent as an init system does.
    pub fn sigterm(&mut self) {
        let mut agent = self.agent.take().unwrap();
        kill(Pid::from_raw(agent.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let status = until("the agent to end", || agent.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    /// Resident memory of the agent in KiB: `VmHWM` is the most it ever was, `VmRSS` what it is.
    pub fn memory_kib(&self, line: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let found = text.lines().find(|text| text.starts_with(line)).unwrap();
        found.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Bytes that the agent sent to storage so far.
    pub fn bytes_written(&self) -> u64 {
        super::bytes_written(self.pid())
    }

    /// What the files of its state are like.
    pub fn files(&self) -> super::Files {
        super::files(&self.path("data"))
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// All lines of the log until now with `text` in them.
    pub fn log_lines(&self, text: &str) -> Vec<String> {
        super::pause(super::LOG_SETTLES);
        self.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    /// Runs a command line to its end.
    pub fn cli(&self, words: &[&str]) -> Output {
        self.cli_with(words, b"")
    }

    /// The same with something to read from standard input.
    pub fn cli_with(&self, words: &[&str], input: &[u8]) -> Output {
        let mut command = self.command();
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // It may end without reading all of it.
            scope.spawn(move || drop(stdin.write_all(input)));
            Output::of(child.wait_with_output().unwrap())
        })
    }

    // --- the API -------------------------------------------------------------------------------

    /// One GET; `None`: nobody answered.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        request(&self.socket(), "GET", path, b"")
    }

    /// One POST.
    pub fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        request(&self.socket(), "POST", path, body).unwrap()
    }

    /// Applies a manifest, whatever comes of it.
    pub fn apply(&self, manifest: &str) -> (u16, String) {
        self.post("/v1/deploy/microservices:apply", manifest.as_bytes())
    }

    /// Applies a manifest that has to be accepted.
    pub fn deploy(&self, manifest: &str) {
        let (status, body) = self.apply(manifest);
        assert_eq!(status, 200, "{body}");
    }

    /// One request of any method; `None`: nobody answered.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        request(&self.socket(), method, path, body.as_bytes())
    }

    fn read<T: serde::de::DeserializeOwned>(&self, path: &str) -> T {
        super::parsed(path, self.get(path))
    }

    pub fn workloads(&self) -> Vec<Workload> {
        self.read::<List<Workload>>("/v1/ms").items
    }

    pub fn workload(&self, name: &str) -> Workload {
        self.read(&format!("/v1/ms/{name}"))
    }

    pub fn journal(&self) -> Vec<Entry> {
        self.read::<List<Entry>>("/v1/journal").items
    }

    pub fn status(&self) -> Status {
        self.read("/v1/system/status")
    }

    /// The text of a condition in the status.
    pub fn condition(&self, kind: &str) -> Option<String> {
        let conditions = self.status().conditions;
        conditions.into_iter().find(|one| one.kind == kind).map(|one| one.message)
    }

    /// Why `/health/ready` says no; `None`: it says yes.
    pub fn not_ready(&self) -> Option<String> {
        let (status, body) = self.get("/health/ready").unwrap();
        let cause = serde_json::from_str::<Value>(&body).unwrap()["cause"].clone();
        match status {
            200 => None,
            503 => Some(cause.as_str().unwrap().to_owned()),
            other => panic!("/health/ready answered {other}"),
        }
    }

    pub fn until_ready(&self) {
        until("the agent to be ready", || self.not_ready().is_none().then_some(()));
    }

    /// Waits until a workload is as it should be.
    pub fn until(&self, name: &str, is: impl Fn(&Workload) -> bool) -> Workload {
        until(format_args!("{name} to change"), || Some(self.workload(name)).filter(&is))
    }

    /// Waits until a workload is in a state, as `Running(Ok)`.
    pub fn until_state(&self, name: &str, state: &str) -> Workload {
        let what = format!("{name} to be {state}");
        until(what, || Some(self.workload(name)).filter(|one| one.state_words() == state))
    }

    pub fn until_running(&self, names: &[&str]) {
        for name in names {
            self.until_state(name, "Running(Ok)");
        }
    }

    // --- the engine ----------------------------------------------------------------------------

    /// The container of a workload.
    pub fn container(&self, name: &str) -> Container {
        self.engine.container(&format!("bargee-{name}-"))
    }

    /// Waits until a container was started once more than at `before`.
    pub fn until_started_again(&self, name: &str, before: &Container) -> Container {
        until(format!("{name} to be started again"), || {
            let now = self.container(name);
            (now.pid != 0 && now.started > before.started).then_some(now)
        })
    }

    /// Engine, records, journal and log as they are now; `None`: the agent does not answer.
    pub fn scene(&self) -> Option<Scene> {
        let scene = Scene::read(|path| self.get(path))?;
        let held = self.engine.containers().into_iter().map(|made| Held {
            started: made.started.to_string(),
            id: made.id,
            name: made.name,
            labels: made.labels,
            status: made.status,
            network: made.network,
        });
        let networks = self.engine.networks();
        Some(Scene { containers: held.collect(), networks, log: self.log(), ..scene })
    }

    /// Name, id and start of every container.
    pub fn fingerprint(&self) -> Fingerprint {
        let made = self.engine.containers().into_iter();
        made.map(|made| (made.name, made.id, made.started)).collect()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("---- log ----\n{}", self.log());
            let workloads = self.get("/v1/ms").unwrap_or_default().1;
            eprintln!("---- workloads ----\n{workloads:.4000}");
            eprintln!("---- status ----\n{}", self.get("/v1/system/status").unwrap_or_default().1);
            for made in self.engine.containers().iter().take(20) {
                eprintln!("{} {:.12} {} {}", made.name, made.id, made.status, made.started);
            }
        }
        if self.agent.is_some() {
            self.kill9();
        }
    }
}

impl Output {
    fn of(output: std::process::Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// One request on a connection of its own.
pub fn request(socket: &Path, method: &str, path: &str, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A server may answer before it has read all, and close.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head.lines().filter_map(|line| line.split_once(": ")).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
    });
    if length.is_some_and(|length| body.len() < length) {
        // Who answered has died in the middle of it.
        return None;
    }
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// The manifest of a workload that runs until it is stopped, and starts again soon.
pub fn service(name: &str) -> String {
    workload(name, "serve", "restart: {delay: 1s}")
}

/// The manifests of several.
pub fn services(names: &[&str]) -> String {
    names.iter().map(|name| service(name)).collect()
}

/// A manifest with a command of one word and further fields of its spec.
pub fn workload(name: &str, command: &str, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    format!(
        "---\napiVersion: bargee/v1\nkind: Workload\nmetadata: {{name: {name}}}\n\
         spec: {{image: {IMAGE}, pull: never, command: [{command}]{more}}}\n"
    )
}
