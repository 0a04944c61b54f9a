//! File, environment and flags settled once: a flag wins over the environment, the environment over
//! the file, the file over the default. Each value remembers where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use log::LevelFilter;

use crate::limits::{AGENT_LOG_BYTES, BODY_BYTES, WORKERS};
use crate::yaml::field::{Field, Shape};
use crate::yaml::nearest::nearest;
use crate::yaml::size::show_size;
use crate::yaml::{self, Bounds, Flaws};

mod values;

#[cfg(test)]
mod tests;

/// Where the file is looked for unless another one is named.
pub const DEFAULT_PATH: &str = "/etc/bargee/config.yaml";

const ROOT: Shape = Shape {
    path: "",
    keys: &[
        "node",
        "engine",
        "engineUrl",
        "dataDir",
        "manifestsDir",
        "api",
        "workers",
        "log",
        "shutdown",
    ],
    later: &[],
};
const API: Shape = Shape { path: "api", keys: &["socket"], later: &["listen", "tokenFile"] };
const LOG: Shape =
    Shape { path: "log", keys: &["level", "file", "maxSize", "reconcileEvery"], later: &[] };

const SHUTDOWN: Shape = Shape { path: "shutdown", keys: &["policy", "perContainer"], later: &[] };

/// Variables of keys that are not built yet.
const LATER_VARIABLES: &[&str] = &["BARGEE_API_LISTEN", "BARGEE_API_TOKEN_FILE"];

/// A key and the other places it can be set in.
struct Key {
    name: &'static str,
    variable: &'static str,
    /// Empty: it is no flag.
    flag: &'static str,
}

const NODE: Key = Key { name: "node", variable: "BARGEE_NODE", flag: "--node" };
const ENGINE: Key = Key { name: "engine", variable: "BARGEE_ENGINE", flag: "--engine" };
const ENGINE_URL: Key =
    Key { name: "engineUrl", variable: "BARGEE_ENGINE_URL", flag: "--engine-url" };
const DATA_DIR: Key = Key { name: "dataDir", variable: "BARGEE_DATA_DIR", flag: "--data-dir" };
const MANIFESTS_DIR: Key =
    Key { name: "manifestsDir", variable: "BARGEE_MANIFESTS_DIR", flag: "--manifests-dir" };
const API_SOCKET: Key = Key { name: "api.socket", variable: "BARGEE_API_SOCKET", flag: "--socket" };
const WORKER_COUNT: Key = Key { name: "workers", variable: "BARGEE_WORKERS", flag: "--workers" };
const LOG_LEVEL: Key = Key { name: "log.level", variable: "BARGEE_LOG_LEVEL", flag: "--log-level" };
const SHUTDOWN_POLICY: Key =
    Key { name: "shutdown.policy", variable: "BARGEE_SHUTDOWN_POLICY", flag: "" };
const SHUTDOWN_PER_CONTAINER: Key =
    Key { name: "shutdown.perContainer", variable: "BARGEE_SHUTDOWN_PER_CONTAINER", flag: "" };

const LOG_FILE: Key = Key { name: "log.file", variable: "BARGEE_LOG_FILE", flag: "--log-file" };
const LOG_MAX_SIZE: Key =
    Key { name: "log.maxSize", variable: "BARGEE_LOG_MAX_SIZE", flag: "--log-max-size" };
const RECONCILE_EVERY: Key = Key {
    name: "log.reconcileEvery",
    variable: "BARGEE_LOG_RECONCILE_EVERY",
    flag: "--log-reconcile-every",
};

/// In the order of the documentation; those that are no flags come last.
const KEYS: [&Key; 13] = [
    &NODE,
    &ENGINE,
    &ENGINE_URL,
    &DATA_DIR,
    &MANIFESTS_DIR,
    &API_SOCKET,
    &WORKER_COUNT,
    &LOG_LEVEL,
    &LOG_FILE,
    &LOG_MAX_SIZE,
    &RECONCILE_EVERY,
    &SHUTDOWN_POLICY,
    &SHUTDOWN_PER_CONTAINER,
];

/// The values of the flags that were given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// `--node`
    pub node: Option<String>,
    /// `--engine`
    pub engine: Option<String>,
    /// `--engine-url`
    pub engine_url: Option<String>,
    /// `--data-dir`
    pub data_dir: Option<String>,
    /// `--manifests-dir`
    pub manifests_dir: Option<String>,
    /// `--socket`
    pub api_socket: Option<String>,
    /// `--workers`
    pub workers: Option<String>,
    /// `--log-level`
    pub log_level: Option<String>,
    /// `--log-file`
    pub log_file: Option<String>,
    /// `--log-max-size`
    pub log_max_size: Option<String>,
    /// `--log-reconcile-every`
    pub reconcile_every: Option<String>,
}

/// The whole configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Name of the device; the host name by default.
    pub node: Setting<String>,
    /// The container engine.
    pub engine: Setting<EngineKind>,
    /// Socket of the engine, from `engineUrl`.
    pub engine_socket: Setting<PathBuf>,
    /// Directory of the store.
    pub data_dir: Setting<PathBuf>,
    /// Directory whose manifests are declared as long as they are there.
    pub manifests_dir: Setting<PathBuf>,
    /// Socket that the API is served on.
    pub api_socket: Setting<PathBuf>,
    /// Threads that carry out steps.
    pub workers: Setting<usize>,
    /// Least level that is logged.
    pub log_level: Setting<LevelFilter>,
    /// Where the log goes; `None`: standard error.
    pub log_file: Setting<Option<PathBuf>>,
    /// Bytes of the log file, and of the older one beside it.
    pub log_max_bytes: Setting<u64>,
    /// Passes that are told in one line; 0: none.
    pub reconcile_every: Setting<u64>,
    /// What becomes of workloads when the agent is told to end.
    pub shutdown_policy: Setting<ShutdownPolicy>,
    /// How long the stop of each may take in a drain; `None`: as its manifest says.
    pub shutdown_per_container: Setting<Option<Duration>>,
}

/// A value and where it came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a value came from. Printed as people know the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A flag, with its dashes.
    Flag(&'static str),
    /// A variable of the environment.
    Environment(&'static str),
    /// A line of a file.
    File(PathBuf, usize),
    /// Built in.
    Default,
}

/// A container engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineKind {
    /// Docker.
    Docker,
}

impl EngineKind {
    /// As the config names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
        }
    }
}

/// What becomes of workloads when the agent is told to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownPolicy {
    /// They go on.
    LeaveRunning,
    /// They are stopped, and the next agent starts them again.
    Drain,
}

impl ShutdownPolicy {
    /// As the config names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeaveRunning => "leave-running",
            Self::Drain => "drain",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Environment(name) => f.write_str(name),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Settled {
    /// `(key, value, origin)` of every key, in the order of the documentation.
    pub fn entries(&self) -> Vec<(&'static str, String, String)> {
        let url = format!("unix://{}", self.engine_socket.value.display());
        let level = self.log_level.value.as_str().to_ascii_lowercase();
        let path = |path: &Path| path.display().to_string();
        let every = self.reconcile_every.value.to_string();
        let policy = self.shutdown_policy.value.as_str().to_owned();
        let per_container = values::shown_per_container(self.shutdown_per_container.value);
        let rows = [
            (&NODE, self.node.value.clone(), &self.node.origin),
            (&ENGINE, self.engine.value.as_str().to_owned(), &self.engine.origin),
            (&ENGINE_URL, url, &self.engine_socket.origin),
            (&DATA_DIR, path(&self.data_dir.value), &self.data_dir.origin),
            (&MANIFESTS_DIR, path(&self.manifests_dir.value), &self.manifests_dir.origin),
            (&API_SOCKET, path(&self.api_socket.value), &self.api_socket.origin),
            (&WORKER_COUNT, self.workers.value.to_string(), &self.workers.origin),
            (&LOG_LEVEL, level, &self.log_level.origin),
            (&LOG_FILE, values::show_log_file(self), &self.log_file.origin),
            (&LOG_MAX_SIZE, show_size(self.log_max_bytes.value), &self.log_max_bytes.origin),
            (&RECONCILE_EVERY, every, &self.reconcile_every.origin),
            (&SHUTDOWN_POLICY, policy, &self.shutdown_policy.origin),
            (&SHUTDOWN_PER_CONTAINER, per_container, &self.shutdown_per_container.origin),
        ];
        rows.map(|(key, value, origin)| (key.name, value, origin.to_string())).into()
    }
}

/// Settles the configuration, and says what is odd but harmless: warnings, as sentences.
/// `file` is a file that was asked for; without it the one at [`DEFAULT_PATH`] is read if there is
/// one.
///
/// # Errors
/// Everything that is wrong, as sentences that name the place.
pub fn settle(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &Flags,
) -> Result<(Settled, Vec<String>), Vec<String>> {
    let mut given = Given::default();
    match file {
        Some(path) => given.file(path, true),
        None => given.file(Path::new(DEFAULT_PATH), false),
    }
    given.environment(environment);
    given.flags(flags);
    given.settle(host_name())
}

fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok())
}

/// Everything that was given, the strongest origin last.
#[derive(Default)]
struct Given {
    values: BTreeMap<&'static str, Vec<(String, Origin)>>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Given {
    fn add(&mut self, key: &Key, text: &str, origin: Origin) {
        self.values.entry(key.name).or_default().push((text.to_owned(), origin));
    }

    fn file(&mut self, path: &Path, must_be: bool) {
        let bytes = match read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !must_be => return,
            Err(error) => return self.errors.push(format!("{}: {error}", path.display())),
            Ok(bytes) => bytes,
        };
        let mut flaws = Flaws::default();
        match yaml::text(bytes, BODY_BYTES) {
            Ok(text) => self.documents(&text, path, &mut flaws),
            Err(flaw) => flaws.add(flaw.line, String::new, flaw.message),
        }
        let (flaws, more) = flaws.into_parts();
        self.errors.extend(flaws.iter().map(|flaw| flaw.located(&path.display())));
        if more > 0 {
            self.errors.push(format!("{}: and {more} more", path.display()));
        }
    }

    fn documents(&mut self, text: &str, path: &Path, flaws: &mut Flaws) {
        let documents = yaml::read(text, Bounds::FILE, flaws);
        let Some((node, others)) = documents.split_first() else { return };
        if let Some(other) = others.first() {
            flaws.add(other.line, String::new, "is a second document; a config has one");
        }
        let root = Field::root(node);
        self.mapping(&root, &ROOT, path, flaws);
    }

    fn mapping(&mut self, field: &Field<'_>, shape: &Shape, path: &Path, flaws: &mut Flaws) {
        let Some(members) = field.members(shape, flaws) else { return };
        for (name, value) in members.all().filter(|(name, _)| shape.keys.contains(name)) {
            let inner = [&API, &LOG, &SHUTDOWN].into_iter().find(|inner| inner.path == name);
            if let Some(inner) = inner.filter(|_| shape.path.is_empty()) {
                self.mapping(&value, inner, path, flaws);
                continue;
            }
            let full = value.path();
            let Some(key) = KEYS.into_iter().find(|key| key.name == full) else { continue };
            if let Some(text) = value.text("a value", flaws) {
                self.add(key, text, Origin::File(path.to_owned(), value.line()));
            }
        }
    }

    fn environment(&mut self, variables: impl Iterator<Item = (String, String)>) {
        for (name, value) in variables.filter(|(name, _)| name.starts_with("BARGEE_")) {
            if let Some(key) = KEYS.into_iter().find(|key| key.variable == name) {
                self.add(key, &value, Origin::Environment(key.variable));
            } else if LATER_VARIABLES.contains(&name.as_str()) {
                self.errors.push(format!("{name}: is not supported yet"));
            } else {
                let meant = nearest(&name, KEYS.into_iter().map(|key| key.variable));
                let hint = meant.map(|meant| format!("; did you mean {meant}?"));
                let hint = hint.unwrap_or_default();
                self.warnings.push(format!("{name}: is unknown and has no effect{hint}"));
            }
        }
    }

    fn flags(&mut self, flags: &Flags) {
        let Flags { node, engine, engine_url, data_dir, .. } = flags;
        let Flags { manifests_dir, api_socket, workers, log_level, .. } = flags;
        let Flags { log_file, log_max_size, reconcile_every, .. } = flags;
        let first = [node, engine, engine_url, data_dir];
        let values = first.into_iter().chain([manifests_dir, api_socket, workers, log_level]);
        let values = values.chain([log_file, log_max_size, reconcile_every]);
        for (key, value) in KEYS.into_iter().zip(values) {
            if let Some(value) = value {
                self.add(key, value, Origin::Flag(key.flag));
            }
        }
    }

    fn settle(mut self, host_name: Option<String>) -> Result<(Settled, Vec<String>), Vec<String>> {
        let node = self.pick(&NODE, String::new(), values::node);
        let engine = self.pick(&ENGINE, EngineKind::Docker, values::engine);
        let docker = PathBuf::from("/var/run/docker.sock");
        let engine_socket = self.pick(&ENGINE_URL, docker, values::engine_url);
        let data_dir = self.pick(&DATA_DIR, PathBuf::from("/var/lib/bargee"), values::directory);
        let manifests = PathBuf::from("/etc/bargee/manifests.d");
        let manifests_dir = self.pick(&MANIFESTS_DIR, manifests, values::directory);
        let socket = PathBuf::from("/run/bargee/bargee.sock");
        let api_socket = self.pick(&API_SOCKET, socket, values::socket);
        let workers = self.pick(&WORKER_COUNT, WORKERS, values::workers);
        let log_level = self.pick(&LOG_LEVEL, LevelFilter::Info, values::log_level);
        let log_file = self.pick(&LOG_FILE, None, values::log_file);
        let log_max_bytes = self.pick(&LOG_MAX_SIZE, AGENT_LOG_BYTES, values::log_max_size);
        let reconcile_every = self.pick(&RECONCILE_EVERY, 0, values::reconcile_every);
        let leave = ShutdownPolicy::LeaveRunning;
        let shutdown_policy = self.pick(&SHUTDOWN_POLICY, leave, values::shutdown_policy);
        let shutdown_per_container =
            self.pick(&SHUTDOWN_PER_CONTAINER, None, values::per_container);
        let mut settled = Settled {
            node,
            engine,
            engine_socket,
            data_dir,
            manifests_dir,
            api_socket,
            workers,
            log_level,
            log_file,
            log_max_bytes,
            reconcile_every,
            shutdown_policy,
            shutdown_per_container,
        };
        if settled.node.origin == Origin::Default {
            settled.node.value = self.node_by_host_name(host_name);
        }
        if self.errors.is_empty() { Ok((settled, self.warnings)) } else { Err(self.errors) }
    }

    /// The value of the strongest origin. What a weaker one says is checked all the same: it would
    /// surprise on the day the stronger one is taken away.
    fn pick<T>(
        &mut self,
        key: &Key,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Setting<T> {
        let mut setting = Setting { value: default, origin: Origin::Default };
        for (text, origin) in self.values.remove(key.name).unwrap_or_default() {
            match parse(&text) {
                Ok(value) => setting = Setting { value, origin },
                Err(fault) if matches!(origin, Origin::File(..)) => {
                    self.errors.push(format!("{origin}: {}: {fault}", key.name));
                }
                Err(fault) => self.errors.push(format!("{origin}: {fault}")),
            }
        }
        setting
    }

    /// Boards without a host name are common, and they are to run containers all the same.
    fn node_by_host_name(&mut self, host_name: Option<String>) -> String {
        let name = host_name.unwrap_or_default();
        values::node(&name).unwrap_or_else(|_| {
            let name = yaml::shown(&name);
            self.warnings.push(format!(
                "node: the host name {name} cannot be used, so it is localhost; set node"
            ));
            "localhost".to_owned()
        })
    }
}

/// The bytes of a file, one more than allowed at most.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(BODY_BYTES).unwrap_or(u64::MAX);
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
