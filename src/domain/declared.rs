//! What a manifest asks for, once valid.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::health_check::HealthCheck;
use super::names::Key;
use super::time::Span;
use crate::limits;

/// One workload as its owner declared it, defaults filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Its key.
    pub key: Key,
    /// The owner's labels, copied to the container when it is made.
    pub labels: BTreeMap<String, String>,
    /// What is to run and how.
    pub spec: Spec,
    /// The same as a manifest in JSON, defaults filled in: what is stored and shown.
    pub manifest: Arc<str>,
}

/// The `spec` of a manifest. Field meanings are in `docs/manifest.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Image reference as written.
    pub image: String,
    /// When the registry is asked.
    pub pull: Pull,
    /// `None`: the image's.
    pub entrypoint: Option<Vec<String>>,
    /// `None`: the image's.
    pub command: Option<Vec<String>>,
    /// `None`: the image's.
    pub working_dir: Option<String>,
    /// `None`: the image's.
    pub user: Option<String>,
    /// Environment, beside the injected `BARGEE_` variables.
    pub env: BTreeMap<String, String>,
    /// Published ports.
    pub ports: Vec<Port>,
    /// Bind mounts and named volumes.
    pub mounts: Vec<Mount>,
    /// The network it is on.
    pub network: Network,
    /// What follows an exit.
    pub restart: Restart,
    /// When a job that Succeeded runs again.
    pub rerun: Rerun,
    /// How it is stopped.
    pub stop: Stop,
    /// The health check; `None`: the image's own, which is only reported.
    pub health_check: Option<HealthCheck>,
    /// Limits.
    pub resources: Resources,
    /// Among workloads that are due together, lower starts first.
    pub schedule: u32,
    /// Log limits.
    pub log: Log,
}

/// When the registry is asked for the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pull {
    /// When it is not on the device.
    Missing,
    /// Once for each new generation.
    Always,
    /// Never.
    Never,
}

/// A published port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Port {
    /// Address on the host; `None`: all.
    pub host_ip: Option<IpAddr>,
    /// Port on the host; `None`: the engine picks one.
    pub host_port: Option<u16>,
    /// Port in the container.
    pub container_port: u16,
    /// TCP or UDP.
    pub protocol: Protocol,
}

/// Transport of a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// As engines and manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Something mounted into the container.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mount {
    /// Where it comes from.
    pub source: MountSource,
    /// Absolute path in the container.
    pub target: String,
    /// Mounted read-only.
    pub read_only: bool,
}

/// Where a mount comes from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MountSource {
    /// A named volume, without the application's prefix.
    Volume(String),
    /// An absolute path of the host, which must exist before a start.
    Host {
        /// The path.
        path: String,
        /// It must also be on another file system than `/`.
        mounted: bool,
    },
}

/// The network of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// bargee's own of the application; names resolve on it.
    Bridge,
    /// The host's.
    Host,
}

/// What follows an exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart {
    /// Which exits are restarted.
    pub policy: RestartPolicy,
    /// First delay of the backoff.
    pub delay: Span,
    /// Longest delay of the backoff.
    pub max_delay: Span,
    /// What follows many restarts in a short time.
    pub stuck: WhenStuck,
}

/// What follows many restarts in a short time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenStuck {
    /// A warning and a pace: every further try waits for the longest delay.
    Retry,
    /// It is left alone.
    Hold,
}

/// Which exits are restarted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestartPolicy {
    /// Any exit.
    Always,
    /// Exit codes other than 0.
    OnFailure,
    /// None.
    Never,
}

/// When a job that Succeeded runs again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rerun {
    /// Only for an operator or a new generation.
    #[default]
    Never,
    /// Once after every boot of the device.
    Boot,
}

/// How a workload is stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// Signal name with `SIG`; `None`: the image's, else SIGTERM.
    pub signal: Option<String>,
    /// Time until SIGKILL.
    pub grace: Span,
}

/// Limits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    /// CPU time in thousandths of a core.
    pub cpus_milli: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// Log limits; every container gets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Log {
    /// Log driver; empty: the engine's `json-file`.
    pub driver: String,
    /// Size of one log file in bytes.
    pub max_size_bytes: u64,
    /// Log files kept.
    pub max_files: u32,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            policy: RestartPolicy::Always,
            delay: Span(limits::RESTART_DELAY_MS),
            max_delay: Span(limits::RESTART_MAX_DELAY_MS),
            stuck: WhenStuck::Retry,
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: None, grace: Span(limits::STOP_GRACE_MS) }
    }
}

impl Default for Log {
    fn default() -> Self {
        let (max_size_bytes, max_files) = (limits::LOG_FILE_BYTES, limits::LOG_FILES_KEPT);
        Self { driver: String::new(), max_size_bytes, max_files }
    }
}

impl Spec {
    /// What a manifest that names nothing but the image asks for.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            pull: Pull::Missing,
            entrypoint: None,
            command: None,
            working_dir: None,
            user: None,
            env: BTreeMap::new(),
            ports: Vec::new(),
            mounts: Vec::new(),
            network: Network::Bridge,
            restart: Restart::default(),
            rerun: Rerun::default(),
            stop: Stop::default(),
            health_check: None,
            resources: Resources::default(),
            schedule: limits::SCHEDULE,
            log: Log::default(),
        }
    }

    /// Host paths that must exist before a start.
    pub fn host_paths(&self) -> impl Iterator<Item = (&str, bool)> {
        self.mounts.iter().filter_map(|m| match &m.source {
            MountSource::Host { path, mounted } => Some((path.as_str(), *mounted)),
            MountSource::Volume(_) => None,
        })
    }
}

/// What is wrong with a manifest, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// File as named by the caller.
    pub file: String,
    /// Line, from 1; 0: the file as a whole.
    pub line: usize,
    /// Path of the field, as `spec.ports[1]`; empty: the document as a whole.
    pub field: String,
    /// What was found and what is allowed, as one sentence.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.field.is_empty() {
            write!(f, ": {}", self.message)
        } else {
            write!(f, ": {}: {}", self.field, self.message)
        }
    }
}
