//! Everything that can happen to the agent. Asks carry a number, not a channel.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::declared::Declared;
use super::directory::Scan;
use super::effect::{CommitId, ListId, PullId, StepId};
use super::fault::Fault;
use super::intent::Seq;
use super::names::{ContainerId, EngineId, Source, StoreId, Uid};
use super::observed::{EngineInfo, Listed, Reading};
use super::time::Span;
use super::view::PullProgress;

/// Everything that can happen.
#[derive(Debug)]
pub enum Event {
    /// A deadline of the machine has passed.
    Deadline,
    /// The agent is told to stop.
    Stopping,
    /// The agent is to end, and to stop its workloads before that; each may take so long, or as
    /// long as its manifest says.
    Drain(Option<Span>),
    /// Somebody asks for something.
    Ask(AskId, Request),
    /// A commit ended.
    Committed(CommitId, Result<(), String>),
    /// The event stream was opened, by an engine that says this of itself.
    StreamUp(EngineInfo),
    /// The event stream could not be opened, or ended.
    StreamDown(Fault),
    /// The event stream ended, and what follows is being found out: until then the engine may be
    /// another one.
    StreamLost,
    /// What the engine calls itself, ahead of the listing that comes next. `None`: it does not say.
    Identity(Option<EngineId>),
    /// A line of the event stream.
    Container(ContainerEvent),
    /// The process of this container, by the id that the engine gave it, was looked for twice and
    /// is gone.
    ProcessGone(ContainerId, u32),
    /// Of the other stores that have containers in the listing that comes next, those whose agents
    /// run on this device.
    Neighbours(BTreeSet<StoreId>),
    /// A listing ended.
    Listing(ListId, Result<Vec<Listed>, Fault>),
    /// A step ended.
    StepDone(StepId, Result<Outcome, Fault>),
    /// A pull moves.
    PullProgress(PullId, PullProgress),
    /// A pull brought all of its image, which is being made durable.
    PullSyncs(PullId),
    /// A pull ended.
    PullDone(PullId, Result<(), Fault>),
    /// The manifests directory was looked at, and is not as it was.
    Directory(Box<Scan>),
}

/// The number under which the shell keeps who asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AskId(pub u64);

/// What can be asked for.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Declare workloads, all or none.
    Apply(Apply),
    /// Change one workload.
    Verb(Verb, Uid),
    /// Replay this entry of the journal now, or all that failed.
    Replay(Option<Seq>),
    /// Drop this entry of the journal: nothing is done for it.
    DropEntry(Seq),
    /// With a new store: take over containers of another store, of one workload or of all that
    /// wait, whatever they were made from.
    Adopt(Option<Uid>),
    /// What is held because it is suspicious is as it should be.
    Confirm,
    /// Hold reconciling for so long from now on.
    Quiesce(Span),
    /// Go on reconciling.
    Resume,
}

/// A set of declarations.
#[derive(Clone, PartialEq, Debug)]
pub struct Apply {
    /// Who declares.
    pub source: Source,
    /// What is declared; keys differ.
    pub declared: Vec<Arc<Declared>>,
    /// Fresh identities, one for each, used where the workload is new.
    pub uids: Vec<Uid>,
    /// Answer what would change, change nothing.
    pub dry_run: bool,
    /// Remove what the same source declared in these applications and does not declare here.
    pub prune: bool,
    /// Want those of them running that are wanted stopped.
    pub start: bool,
}

/// What can be asked of one workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Want it running.
    Start,
    /// Want it stopped.
    Stop,
    /// Stop and start it once.
    Restart,
    /// Make its container anew from a fresh pull.
    Rebuild,
    /// Send a signal.
    Kill(String),
    /// Want it gone.
    Remove,
}

impl Verb {
    /// As it stands in tasks.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Rebuild => "rebuild",
            Self::Kill(_) => "kill",
            Self::Remove => "rm",
        }
    }
}

/// What happened to a container, by the engine's event stream. A hint: decisions come from a
/// listing or an inspect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerEvent {
    /// The container.
    pub id: ContainerId,
    /// The workload named on its label.
    pub uid: Uid,
    /// What happened.
    pub action: ContainerAction,
}

/// What can happen to a container that matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContainerAction {
    /// Its process was started.
    Started,
    /// Its process ended.
    Died,
    /// The kernel killed something in it for memory.
    OutOfMemory,
    /// It was removed.
    Removed,
    /// Paused, unpaused, renamed, updated, another health: worth a look.
    Changed,
}

/// What a step came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Inspect: it is there.
    Found(Box<Reading>),
    /// Inspect: it is not there.
    NotFound,
    /// Check of the host paths: all are there.
    PathsThere,
    /// Create: made.
    Created(ContainerId),
    /// Start: sent, and this was read right after it.
    Started(Box<Reading>),
    /// Signal: sent.
    Signalled,
    /// Remove: gone.
    Removed,
    /// Remove network: gone, or still in use by somebody and left.
    NetworkRemoved,
}
