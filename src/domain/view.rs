//! What people and the API see of a workload, of a task, of the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::declared::Declared;
use super::health_check::Health;
use super::names::{ContainerId, Source, Uid};
use super::observed::EngineInfo;
use super::quiesce::Quiesce;
use super::record::Desired;
use super::time::{Now, Tick};

/// The state that people and dependencies go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Accepted, not yet looked at.
    PendingInitial,
    /// Something it needs is missing.
    PendingWaitingToStart,
    /// Pull, create or start is under way, or the time between tries.
    PendingStarting,
    /// The engine refused it as wrong.
    PendingStartingFailed,
    /// The engine says it runs.
    RunningOk,
    /// The runtime reports stopping.
    StoppingStopping,
    /// A stop or removal was sent.
    StoppingRequestedAtRuntime,
    /// The engine could not remove it; retried.
    StoppingDeleteFailed,
    /// Wanted stopped, and it is.
    StoppedOk,
    /// Exit 0, and the policy does not start it again.
    SucceededOk,
    /// Exit other than 0, and the policy does not start it again; or stuck in restarts.
    FailedExecFailed,
    /// A state that bargee does not manage.
    FailedUnknown,
    /// Its container vanished, and the policy does not make it again.
    FailedLost,
    /// Gone; in events only.
    Removed,
}

impl State {
    /// `(state, substate)` as printed: `Pending(Starting)`.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::PendingInitial => ("Pending", "Initial"),
            Self::PendingWaitingToStart => ("Pending", "WaitingToStart"),
            Self::PendingStarting => ("Pending", "Starting"),
            Self::PendingStartingFailed => ("Pending", "StartingFailed"),
            Self::RunningOk => ("Running", "Ok"),
            Self::StoppingStopping => ("Stopping", "Stopping"),
            Self::StoppingRequestedAtRuntime => ("Stopping", "RequestedAtRuntime"),
            Self::StoppingDeleteFailed => ("Stopping", "DeleteFailed"),
            Self::StoppedOk => ("Stopped", "Ok"),
            Self::SucceededOk => ("Succeeded", "Ok"),
            Self::FailedExecFailed => ("Failed", "ExecFailed"),
            Self::FailedUnknown => ("Failed", "Unknown"),
            Self::FailedLost => ("Failed", "Lost"),
            Self::Removed => ("Removed", ""),
        }
    }
}

/// What the container really is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are the words of the API; docs/states.md explains them")]
pub enum RuntimeState {
    Queued,
    Pulling,
    Creating,
    Created,
    Starting,
    Running,
    Updating,
    Restarting,
    Exiting,
    StuckInRestart,
    Failed,
    Deleting,
    Stopping,
    Stopped,
    Unknown,
}

impl RuntimeState {
    /// As it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Pulling => "PULLING",
            Self::Creating => "CREATING",
            Self::Created => "CREATED",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Updating => "UPDATING",
            Self::Restarting => "RESTARTING",
            Self::Exiting => "EXITING",
            Self::StuckInRestart => "STUCK_IN_RESTART",
            Self::Failed => "FAILED",
            Self::Deleting => "DELETING",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// One workload as published. Shared, never copied.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// Identity.
    pub uid: Uid,
    /// Key, labels, spec, manifest.
    pub declared: Arc<Declared>,
    /// Who declared it.
    pub source: Source,
    /// Wanted state.
    pub desired: Desired,
    /// Generation declared.
    pub generation: u64,
    /// Generation the live container matches; 0: none.
    pub observed_generation: u64,
    /// State and substate.
    pub state: State,
    /// One line that says what is being waited for; empty if nothing is.
    pub info: String,
    /// The next try or deadline that `info` speaks of.
    pub next_attempt: Option<Tick>,
    /// Something is to be done for it, and reconciling is held.
    pub awaits_resume: bool,
    /// What the container really is.
    pub runtime_state: RuntimeState,
    /// What its check says while it runs, whoever declared it; `None`: it has none.
    pub health: Option<Health>,
    /// Progress of the pull it waits for.
    pub pull: Option<PullProgress>,
    /// The engine's id of the container.
    pub container: Option<ContainerId>,
    /// Name of the container on the engine.
    pub instance: Option<String>,
    /// Process id; 0: none.
    pub pid: u32,
    /// Start of the run in unix milliseconds by the engine's clock; 0: none.
    pub started_at_ms: u64,
    /// Both clocks when that was first seen, if it was in this boot and still runs: the wall clock
    /// may have been set since.
    pub run_seen: Option<Now>,
    /// Address on its network.
    pub ip: Option<String>,
    /// Ports as published.
    pub ports: Vec<String>,
    /// The engine's id of the image.
    pub image_id: String,
    /// Accepted, unix milliseconds.
    pub created_at_ms: u64,
    /// Exit code of the last run.
    pub exit_code: Option<i32>,
    /// Present failure; empty if none.
    pub error_message: String,
    /// Last failure.
    pub last_error: String,
    /// Unix milliseconds; 0: none.
    pub last_error_at_ms: u64,
    /// Restarts after an exit.
    pub restart_count: u64,
    /// Tries in a row that never came to RUNNING.
    pub failure_count: u32,
    /// The update that failed, as `(generation, cause)`.
    pub failed_update: Option<(u64, String)>,
    /// It is tried again by itself.
    pub update_retries: bool,
}

/// How far a pull has come. Zero in `total_bytes`: not known yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PullProgress {
    /// Bytes of the layers that arrived.
    pub done_bytes: u64,
    /// Bytes of the layers known so far.
    pub total_bytes: u64,
}

/// A verb that was accepted and is carried out in the background.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// `start`, `stop`, `restart`, `kill`, `rm`.
    pub verb: &'static str,
    /// The workload.
    pub uid: Uid,
    /// `application/name` of the workload.
    pub key: String,
    /// How it stands.
    pub state: TaskState,
    /// Why it failed or what superseded it.
    pub message: String,
}

/// The number of a task, unique within one run of the agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(pub u64);

/// How a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// Accepted.
    Pending,
    /// A step for it was sent.
    Running,
    /// What was asked for is so.
    Done,
    /// It cannot become so without somebody's help.
    Failed,
    /// A newer verb for the same workload replaced it.
    Superseded,
}

impl TaskState {
    /// As it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
        }
    }
}

/// The agent as published.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// The engine answers.
    pub engine_up: bool,
    /// What it said about itself when it last answered.
    pub engine: EngineInfo,
    /// Why it is away, empty if it is not.
    pub engine_error: String,
    /// On the boot clock; `None` if it is not away.
    pub away_since: Option<Tick>,
    /// The event stream is open and trusted.
    pub stream_up: bool,
    /// One listing was read since the agent started.
    pub listed: bool,
    /// Replay of the journal before changes are accepted: entries done and entries in all. `None`:
    /// changes are accepted.
    pub recovering: Option<(usize, usize)>,
    /// Entries in the journal, and how many of them failed or cannot be read.
    pub journal: (usize, usize),
    /// Tasks that are not settled.
    pub tasks: usize,
    /// Reconciling is held.
    pub quiesced: Option<Quiesce>,
    /// The manifests directory; `None`: it is not there.
    pub manifests: Option<Arc<Manifests>>,
    /// Things that somebody should know: `(type, message)`.
    pub conditions: BTreeMap<&'static str, String>,
}

/// The manifests directory as it was last looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifests {
    /// Its path.
    pub path: Arc<str>,
    /// Manifests in it.
    pub files: usize,
    /// Those of them that have not settled yet.
    pub settling: usize,
    /// The first things in it that are no manifests, by name.
    pub ignored: Vec<String>,
    /// How many of those there are.
    pub ignored_count: usize,
}

/// A change of state or of health, for `GET /v1/events`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// Unix milliseconds.
    pub at_ms: u64,
    /// Boot clock.
    pub at: Tick,
    /// The workload.
    pub uid: Uid,
    /// `application/name`.
    pub key: String,
    /// Generation declared at that time.
    pub generation: u64,
    /// State before; `None`: new.
    pub from: Option<State>,
    /// State after.
    pub to: State,
    /// Health after.
    pub health: Option<Health>,
    /// The line beside it.
    pub info: String,
    /// Container it was about.
    pub container: Option<ContainerId>,
}
