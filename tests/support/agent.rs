//! The program as a process: an agent with a folder, a socket and a name of its own, and commands
//! that talk to it.
//!
//! `BARGEE_BIN` names another program than the one that was built with the tests, `BARGEE_RUNNER` a
//! program that runs it, as an emulator does.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bargee::api::wire::{List, Status, Transition, Workload};
use bargee::os::{clock, unix_http};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::docker_api::{Container, DockerApi};
use super::engine::DockerEngine;
use super::manifest::Manifest;
use super::{DEADLINE, until};

/// An agent. It and all that it made is gone when this is dropped.
#[derive(Debug)]
pub struct Agent {
    folder: TempDir,
    data: PathBuf,
    node: String,
    docker: DockerApi,
    url: String,
    http: ureq::Agent,
    /// Settings of its own.
    variables: Vec<(&'static str, &'static str)>,
    /// The boot that it sees; `None`: that of the machine.
    boot: Option<PathBuf>,
    process: Option<Child>,
}

/// What a command came to.
#[derive(Debug)]
pub struct Output {
    /// Its exit code.
    pub code: i32,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Agent {
    /// An agent that has reached `engine`.
    pub fn on(engine: &DockerEngine) -> Self {
        let mut agent = Self::new(engine, &engine.url());
        agent.start();
        agent
    }

    /// An agent that does not run yet and will reach `engine` by `url`.
    pub fn new(engine: &DockerEngine, url: &str) -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::Builder::new().prefix("bargee-agent-").tempdir().unwrap();
        let socket = folder.path().join("api.sock");
        Self {
            // Agents on one engine see each other's containers, and sort them out by node.
            node: format!("node-{}", LAST.fetch_add(1, Ordering::Relaxed)),
            docker: DockerApi::new(&engine.socket()),
            url: url.to_owned(),
            http: unix_http::agent(&socket, DEADLINE),
            boot: None,
            process: None,
            variables: Vec::new(),
            data: folder.path().join("data"),
            folder,
        }
    }

    // --- the process ---------------------------------------------------------------------------

    /// Starts it and waits until it has read what the engine has.
    pub fn start(&mut self) {
        self.launch();
        until("the agent to be ready", || (self.get("/health/ready")?.0 == 200).then_some(()));
    }

    /// Starts it and waits until it answers.
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let mut process = self
            .program()
            .arg("agent")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        until("the agent to answer", || {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "the agent ended ({ended:?}): {}", self.log());
            (self.get("/health/live")?.0 == 200).then_some(())
        });
        self.process = Some(process);
    }

    /// Starts it and waits for its end; the exit code.
    pub fn fail_to_start(&self) -> i32 {
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let status = self.program().arg("agent").stdin(Stdio::null()).stderr(log).status();
        status.unwrap().code().unwrap()
    }

    /// Kills it, and waits until it is gone.
    pub fn kill9(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Kills it and starts it again.
    pub fn kill9_and_start(&mut self) {
        self.kill9();
        self.start();
    }

    /// Ends it as an init system does. It has to end in time, and well.
    pub fn sigterm(&mut self) {
        let mut process = self.process.take().unwrap();
        let begin = clock::boot_ms();
        kill(Pid::from_raw(process.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let status = until("the agent to end", || process.try_wait().unwrap());
        let took = Duration::from_millis(clock::boot_ms() - begin);
        // An emulator takes its time, but no timeout is as short as this.
        let limit =
            Duration::from_secs(if env::var_os("BARGEE_RUNNER").is_some() { 30 } else { 5 });
        assert!(took < limit, "SIGTERM took {took:?}");
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    /// Tells it to end, and goes on.
    pub fn tell(&self) {
        kill(Pid::from_raw(self.pid().try_into().unwrap()), Signal::SIGTERM).unwrap();
    }

    /// Waits for its end after it was told; it has to end well.
    pub fn until_ended(&mut self) {
        let mut process = self.process.take().unwrap();
        let status = until("the agent to end", || process.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    /// Ends it as an init system does, and starts it again.
    pub fn restart(&mut self) {
        self.sigterm();
        self.start();
    }

    /// From its next start on it sees another boot of the device, called `id`.
    pub fn set_boot(&mut self, id: &str) {
        let file = self.folder.path().join(format!("boot-{id}"));
        write_file(&file, format!("{id}\n").as_bytes());
        self.boot = Some(file);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Name of its device.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Names its device, before it starts.
    pub fn set_node(&mut self, node: &str) {
        node.clone_into(&mut self.node);
    }

    /// Sets a variable for it, before it starts.
    pub fn set(&mut self, variable: &'static str, value: &'static str) {
        self.variables.push((variable, value));
    }

    /// Where it keeps its state.
    pub fn data_dir(&self) -> PathBuf {
        self.data.clone()
    }

    /// Has it look for its state in another folder, before it starts.
    pub fn set_data_dir(&mut self, folder: PathBuf) {
        self.data = folder;
    }

    /// Has it look at a manifests directory of its own, before it starts; where that is.
    pub fn use_manifests_dir(&self) -> PathBuf {
        let directory = self.manifests_dir();
        fs::create_dir(&directory).unwrap();
        directory
    }

    fn manifests_dir(&self) -> PathBuf {
        self.folder.path().join("manifests.d")
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// The same with all that it logged until now.
    pub fn settled_log(&self) -> String {
        super::pause(super::LOG_SETTLES);
        self.log()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn program(&self) -> Command {
        let program = env::var_os("BARGEE_BIN").unwrap_or(env!("CARGO_BIN_EXE_bargee").into());
        let mut words: Vec<OsString> = env::var_os("BARGEE_RUNNER").into_iter().collect();
        words.push(program);
        if let Some(boot) = &self.boot {
            let script = r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#;
            let around = ["unshare", "-m", "sh", "-c", script].map(OsString::from);
            words.splice(0..0, around.into_iter().chain([boot.into()]));
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let settings = [
            ("BARGEE_NODE", self.node.clone()),
            ("BARGEE_ENGINE_URL", self.url.clone()),
            ("BARGEE_DATA_DIR", self.data_dir().display().to_string()),
            ("BARGEE_API_SOCKET", self.folder.path().join("api.sock").display().to_string()),
            ("BARGEE_LOG_LEVEL", "debug".to_owned()),
        ];
        command.env_remove("BARGEE_BIN").env_remove("BARGEE_RUNNER").envs(settings);
        command.envs(self.variables.iter().copied());
        if self.manifests_dir().exists() {
            command.env("BARGEE_MANIFESTS_DIR", self.manifests_dir());
        }
        command
    }

    // --- commands ------------------------------------------------------------------------------

    /// Runs a command to its end.
    pub fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, "")
    }

    /// The same with something to read from standard input.
    pub fn run_with(&self, words: &[&str], input: &str) -> Output {
        let mut command = self.program();
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may end without reading all of it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that has to go well; what it wrote.
    pub fn ok(&self, words: &[&str]) -> String {
        self.run(words).expect(0, words)
    }

    /// Runs a command that answers with JSON.
    pub fn json<T: DeserializeOwned>(&self, words: &[&str]) -> T {
        let words = [words, &["-o", "json"]].concat();
        let text = self.ok(&words);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }

    /// Deploys, and goes on as soon as it is accepted.
    pub fn deploy(&self, manifests: &[Manifest]) {
        self.deploy_with(&[], manifests).expect(0, &["deploy"]);
    }

    /// Deploys with further options.
    pub fn deploy_with(&self, options: &[&str], manifests: &[Manifest]) -> Output {
        let words = [&["deploy", "-f", "-"], options].concat();
        self.run_with(&words, &Manifest::file(manifests))
    }

    /// Follows a command that goes on writing lines.
    pub fn follow(&self, words: &[&str]) -> Lines {
        Lines::new(self.program().args(words))
    }

    /// Follows the transitions of all workloads, from the first one that the agent still has.
    pub fn events(&self) -> Lines {
        self.follow(&["events", "-f", "-o", "json"])
    }

    // --- the API -------------------------------------------------------------------------------

    /// Reads `path` past the command line; `None`: nobody answered.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut answer = self.http.get(format!("http://bargee{path}")).call().ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
    }

    /// Posts to `path` past the command line.
    pub fn post(&self, path: &str) -> (u16, String) {
        let mut answer = self.http.post(format!("http://bargee{path}")).send_empty().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    fn read<T: DeserializeOwned>(&self, path: &str) -> T {
        super::parsed(path, self.get(path))
    }

    /// All workloads.
    pub fn workloads(&self) -> Vec<Workload> {
        self.read::<List<Workload>>("/v1/ms").items
    }

    /// One workload, as it is now.
    pub fn workload(&self, name: &str) -> Workload {
        self.read(&format!("/v1/ms/{name}"))
    }

    /// The agent's own state.
    pub fn status(&self) -> Status {
        self.read("/v1/system/status")
    }

    /// The message of a condition in the status.
    pub fn condition(&self, kind: &str) -> Option<String> {
        let conditions = self.status().conditions.into_iter();
        conditions.filter(|one| one.kind == kind).map(|one| one.message).next()
    }

    /// Waits until a workload is `what`.
    pub fn until(&self, name: &str, what: &str, is: impl Fn(&Workload) -> bool) -> Workload {
        until(format_args!("{name} to be {what}"), || Some(self.workload(name)).filter(&is))
    }

    /// Waits until a workload is in a state, as `Running(Ok)`.
    pub fn until_state(&self, name: &str, state: &str) -> Workload {
        self.until(name, state, |one| one.state_words() == state)
    }

    /// Waits until all of `names` run.
    pub fn until_running(&self, names: &[&str]) -> Vec<Workload> {
        names.iter().map(|name| self.until_state(name, "Running(Ok)")).collect()
    }

    // --- the engine ----------------------------------------------------------------------------

    /// The engine past the agent.
    pub fn docker(&self) -> &DockerApi {
        &self.docker
    }

    /// All containers of this agent, by workload.
    pub fn containers(&self) -> Vec<Container> {
        self.docker.containers(&self.node)
    }

    /// The only container of a workload.
    pub fn container(&self, name: &str) -> Container {
        let mut found = self.containers();
        found.retain(|one| one.workload == name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found.remove(0)
    }

    /// Nothing that it made is left on the engine.
    pub fn expect_no_trace(&self) {
        assert_eq!(self.containers(), []);
        for name in self.docker.networks(&self.node) {
            // Docker counts the members of a network, and miscounts when many come and go at once.
            // Until it starts again it then lets nobody remove the network.
            let path = format!("/networks/{name}");
            assert_eq!(self.docker.read(&path)["Containers"], serde_json::json!({}));
            assert!(!self.docker.delete(&path), "{name} was left behind");
        }
    }

    /// Everything that somebody wants to know of a test that failed.
    fn dump(&self) {
        eprintln!("---- log of {} ----\n{}", self.node, self.log());
        let list = self.get("/v1/ms").unwrap_or_default().1;
        let list = serde_json::from_str::<List<Workload>>(&list);
        eprintln!("---- workloads ----");
        for one in list.map(|list| list.items).unwrap_or_default() {
            let words = (one.state_words(), &one.state_info, &one.error_message, &one.last_error);
            let counts = (one.generation, one.observed_generation, one.restart_count);
            eprintln!("{} {:.12} {counts:?} {words:?}", one.key(), one.container_id);
        }
        eprintln!("---- status ----\n{}", self.get("/v1/system/status").unwrap_or_default().1);
        for Container { id, workload, started_at, finished_at, status, .. } in self.containers() {
            eprintln!("{workload} {id:.12} {status} started {started_at} finished {finished_at}");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if thread::panicking() {
            self.dump();
        }
        if self.process.is_some() {
            self.kill9();
        }
        for container in self.containers() {
            self.docker.delete(&format!("/containers/{}?force=1&v=1", container.id));
        }
        for network in self.docker.networks(&self.node) {
            self.docker.delete(&format!("/networks/{network}"));
        }
    }
}

impl Output {
    /// Checks the exit code; what went to standard output.
    pub fn expect(self, code: i32, words: &[&str]) -> String {
        assert_eq!(self.code, code, "{words:?} wrote: {}{}", self.out, self.err);
        self.out
    }
}

/// The lines of a command that goes on.
#[derive(Debug)]
pub struct Lines {
    process: Child,
    lines: Receiver<String>,
}

impl Lines {
    fn new(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        let read = move || {
            for line in out.lines().map_while(Result::ok) {
                // Nobody may listen any more.
                let _ = sender.send(line);
            }
        };
        thread::Builder::new().spawn(read).unwrap();
        Self { process, lines }
    }

    /// The next line; `None`: it has ended.
    pub fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(late) => panic!("no line: {late}"),
        }
    }

    /// Reads until a workload has come to a state; all its transitions so far, as `from -> to`.
    pub fn until(&self, key: &str, state: &str) -> Vec<Transition> {
        let mut passed = Vec::new();
        loop {
            let line = self.next().unwrap();
            let transition: Transition = serde_json::from_str(&line).unwrap();
            if transition.key == key {
                let is_last = transition.to == state;
                passed.push(transition);
                if is_last {
                    return passed;
                }
            }
        }
    }

    /// Its exit code, once it has ended.
    pub fn code(&mut self) -> i32 {
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes a file in one go.
pub fn write_file(path: &std::path::Path, bytes: &[u8]) {
    File::create(path).unwrap().write_all(bytes).unwrap();
}
