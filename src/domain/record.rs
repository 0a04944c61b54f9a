//! The durable part of a workload: what the store keeps and a restarted agent goes on from.

use std::sync::Arc;

use super::declared::Declared;
use super::diary::Diary;
use super::health::RunHealth;
use super::names::{BootId, ContainerId, InstanceName, Source, SpecHash, Uid};
use super::time::Tick;

/// The state a workload is wanted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Desired {
    /// It runs, or has run to its end.
    Running,
    /// It does not run, and is kept.
    Stopped,
    /// It and its containers are gone.
    Deleted,
}

impl Desired {
    /// As it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Deleted => "deleted",
        }
    }

    /// The inverse of [`Desired::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Stopped, Self::Deleted].into_iter().find(|d| d.as_str() == text)
    }
}

/// One row of the store.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Identity, kept over updates.
    pub uid: Uid,
    /// Who declared it.
    pub source: Source,
    /// The file that declares it, where one of the manifests directory does.
    pub origin: Option<Origin>,
    /// What was declared.
    pub declared: Arc<Declared>,
    /// Counts up with each change of the manifest, from 1.
    pub generation: u64,
    /// The generation that the live container matches; 0: none yet.
    pub observed_generation: u64,
    /// The state it is wanted in.
    pub desired: Desired,
    /// Unix time in milliseconds at which it was accepted.
    pub created_at_ms: u64,

    /// The container that stands for the workload.
    pub current: Option<Instance>,
    /// The container being made: the first one, or the successor in an update.
    pub next: Option<Instance>,
    /// What to return to while `current` has not proved itself.
    pub previous: Option<Previous>,
    /// Containers that are to go: replaced ones, failed successors, twins.
    pub discards: Vec<Instance>,
    /// The update that failed, until a newer generation or until it has proved itself after all.
    pub failed_update: Option<FailedUpdate>,

    /// A stop that bargee asked for, recorded before it is sent.
    pub own_stop: Option<OwnStop>,
    /// The last exit of `current` that was judged.
    pub last_exit: Option<Exit>,
    /// How the next run of this workload is to be counted.
    pub owed_start: OwedStart,
    /// `restart` verbs accepted.
    pub restarts_asked: u64,
    /// `restart` verbs carried out.
    pub restarts_done: u64,
    /// `rebuild` verbs accepted.
    pub rebuilds_asked: u64,
    /// `rebuild` verbs carried out, or given up.
    pub rebuilds_done: u64,

    /// Restarts after an exit, as shown.
    pub restart_count: u64,
    /// Tries in a row that never came to RUNNING.
    pub failure_count: u32,
    /// Short runs and failed starts in a row: the exponent of the backoff.
    pub streak: u32,
    /// Refusals as wrong in a row.
    pub refusals: u32,
    /// The latest restarts after an exit.
    pub diary: Diary,
    /// They were too many in too short a time: STUCK_IN_RESTART.
    pub stuck: bool,
    /// No try before this.
    pub wait: Option<BootTick>,
    /// Present failure, `""` if none.
    pub error_message: String,
    /// Last failure ever.
    pub last_error: String,
    /// Unix time in milliseconds of the last failure; 0: none.
    pub last_error_at_ms: u64,
    /// The boot under which it was last asked to run.
    pub boot: Option<BootId>,
    /// Since when its containers have been missing because the engine is another one.
    pub elsewhere: Option<BootTick>,
}

impl Record {
    /// All containers of the workload.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        let previous = self.previous.iter().map(|previous| &previous.instance);
        self.current.iter().chain(&self.next).chain(previous).chain(&self.discards)
    }

    /// The row of a workload that was just accepted: generation 1, wanted running, nothing made.
    pub fn new(uid: Uid, source: Source, declared: Arc<Declared>, created_at_ms: u64) -> Self {
        Self {
            uid,
            source,
            origin: None,
            declared,
            generation: 1,
            observed_generation: 0,
            desired: Desired::Running,
            created_at_ms,
            current: None,
            next: None,
            previous: None,
            discards: Vec::new(),
            failed_update: None,
            own_stop: None,
            last_exit: None,
            owed_start: OwedStart::Uncounted,
            restarts_asked: 0,
            restarts_done: 0,
            rebuilds_asked: 0,
            rebuilds_done: 0,
            restart_count: 0,
            failure_count: 0,
            streak: 0,
            refusals: 0,
            diary: Diary::default(),
            stuck: false,
            wait: None,
            error_message: String::new(),
            last_error: String::new(),
            last_error_at_ms: 0,
            boot: None,
            elsewhere: None,
        }
    }
}

/// A file of the manifests directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Its name in the directory.
    pub file: Arc<str>,
    /// The source of the mount that the directory was on; empty: not known.
    pub mount: Arc<str>,
}

/// One container made, or to be made, for a workload. The name is reserved before the create.
#[derive(Clone, PartialEq, Debug)]
pub struct Instance {
    /// Its name on the engine.
    pub name: InstanceName,
    /// The engine's id, once known.
    pub container: Option<ContainerId>,
    /// Generation it is made from.
    pub generation: u64,
    /// The `rebuild` that it is made for or after, by `rebuilds_asked`.
    pub rebuild: u64,
    /// Hash of what it is made from.
    pub spec_hash: SpecHash,
    /// What was last seen of it, so that a restarted agent need not inspect what still runs.
    pub run: Option<Run>,
    /// It ran for 30 s without an end, or came to its end as a job.
    pub proved: bool,
}

/// The container that an update took the place of: stopped, and kept until the new one has proved
/// itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Previous {
    /// The container.
    pub instance: Instance,
    /// Its last exit that was judged.
    pub last_exit: Option<Exit>,
    /// The generation that it matched.
    pub observed_generation: u64,
}

/// One run of a container, as last read.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Start by the engine's clock, unix nanoseconds.
    pub started_at_ns: u64,
    /// When it was first seen running.
    pub since: BootTick,
    /// The same on the wall clock, unix milliseconds; 0: not known.
    pub since_ms: u64,
    /// Process id.
    pub pid: u32,
    /// Address on its network.
    pub ip: Option<String>,
    /// Ports as published.
    pub ports: Vec<String>,
    /// The engine's id of the image.
    pub image_id: String,
    /// The image's stop signal.
    pub stop_signal: Option<String>,
    /// How it fares by its check, if it has one.
    pub health: Option<RunHealth>,
}

/// A tick that is only comparable within its boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BootTick {
    /// The boot.
    pub boot: BootId,
    /// The tick within it.
    pub tick: Tick,
}

/// A stop asked for by bargee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnStop {
    /// The container that is stopped.
    pub container: ContainerId,
    /// The run that is stopped, by its start in unix nanoseconds.
    pub started_at_ns: u64,
    /// Because it is unhealthy: a restart like that after a crash.
    pub unhealthy: bool,
}

/// How the next run of a workload is to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OwedStart {
    /// No restart: the first run, an update, an operator's start, an interruption.
    #[default]
    Uncounted,
    /// A restart after an exit.
    Restart,
}

/// An exit that was judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The container that exited.
    pub container: ContainerId,
    /// The run that exited, by its start in unix nanoseconds; 0: it never ran.
    pub started_at_ns: u64,
    /// Exit code; `None`: the container vanished.
    pub code: Option<i32>,
    /// The kernel killed it for memory.
    pub oom_killed: bool,
    /// The engine's words.
    pub error: String,
    /// An interruption: counts nothing, runs again.
    pub interrupted: bool,
    /// bargee ended it, because it was unhealthy.
    pub unhealthy: bool,
}

/// An update that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedUpdate {
    /// The generation that failed.
    pub generation: u64,
    /// Why.
    pub cause: String,
    /// Unix time in milliseconds.
    pub at_ms: u64,
    /// Tries of this generation that failed.
    pub tries: u32,
    /// Whether there is another one.
    pub retry: Retry,
}

/// Whether an update that failed is tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Refused as wrong: not before a newer generation.
    Never,
    /// Not before this.
    At(BootTick),
    /// It is under way.
    Now,
}
