//! Everything the agent may want done, reports included.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::declared::{Declared, Port};
use super::event::AskId;
use super::intent::{Entry, Seq};
use super::names::{ContainerId, EngineId, InstanceName, Key, Uid};
use super::quiesce::Quiesce;
use super::record::Record;
use super::view::{Status, Task, TaskId, Transition, View};

/// Everything that may be wanted of the shell, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Make these changes of the store durable, all or none.
    Persist(Commit),
    /// Carry out a step on the engine; not before `after` is durable, never if that failed.
    Run(Step),
    /// Carry out a step that waits for its commit without waiting any longer.
    Release(StepId),
    /// Pull an image.
    Pull(PullId, Arc<str>),
    /// Close the connection of a pull, so that the engine ends it. What it answers is of no
    /// interest any more.
    CancelPull(PullId),
    /// List the containers of this node.
    List(ListId),
    /// Ask the engine what it calls itself ahead of the next listing.
    Identify,
    /// Close the event stream and open it again: it is in doubt.
    ReopenStream,
    /// Answer an ask.
    Answer(AskId, Answer),
    /// Show this from now on; `None`: it is gone.
    Publish(Uid, Option<Arc<View>>),
    /// Show this of the agent from now on.
    PublishStatus(Arc<Status>),
    /// Show this of a task from now on; settled ones are dropped by the machine's word only.
    PublishTask(Arc<Task>),
    /// Show this of a journal entry from now on; `None`: it is settled.
    PublishEntry(Seq, Option<Arc<Entry>>),
    /// Forget a task.
    DropTask(TaskId),
    /// A workload changed its state.
    Transition(Transition),
    /// Log a line.
    Log(Level, String),
    /// The workloads are stopped as far as they can be: the agent may end.
    Drained,
}

/// How loud a log line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Somebody should look.
    Warn,
    /// Worth knowing.
    Info,
}

/// The number of a commit, counted up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommitId(pub u64);

/// The number of a step, counted up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepId(pub u64);

/// The number of a pull, counted up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PullId(pub u64);

/// The number of a listing, counted up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListId(pub u64);

/// One transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    /// Its number.
    pub id: CommitId,
    /// It carries declarations: `workloads.json` follows before the answer.
    pub declares: bool,
    /// The changes.
    pub writes: Vec<Write>,
}

/// One change of the store.
#[derive(Clone, PartialEq, Debug)]
pub enum Write {
    /// Insert the row of a new workload.
    Insert(Arc<Record>),
    /// Replace the row. A row that is gone is not inserted again, and an older generation never
    /// overwrites a newer one.
    Update(Arc<Record>),
    /// Delete the row.
    Delete(Uid),
    /// Write an entry of the journal, before the step that it is about.
    Intend(Entry),
    /// Take over an entry of an earlier process, or note another try: the whole entry as it is now.
    Claim(Entry),
    /// Delete an entry: its step is settled. The commit fails if the entry does not carry the token
    /// of this process any more.
    Settle(Seq),
    /// Delete an entry whoever wrote it, because an operator says so.
    DropEntry(Seq),
    /// The store is whole: its containers were all found, or none of another store is there.
    MarkWhole,
    /// Reconciling is held, or is not any more.
    Quiesce(Option<Quiesce>),
    /// The engine that all containers of this store are on, as far as is known.
    KnowEngine(EngineId),
}

/// One step on the engine for one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Its number; the answer names it.
    pub id: StepId,
    /// The commit it needs.
    pub after: Option<CommitId>,
    /// What to do.
    pub op: Op,
}

/// What can be done on the engine.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// Look at one container, by id or by name.
    Inspect(String),
    /// Check the host paths that a container is made with, and nothing else.
    CheckPaths(Arc<Declared>),
    /// Check the host paths and ports, make the network if it is not there, create the container.
    Create(Box<NewContainer>),
    /// Check the host paths of what it was made from, where that is still known, start the
    /// container, look at it.
    Start(ContainerId, Option<Arc<Declared>>),
    /// Send a signal.
    Signal(ContainerId, String),
    /// Remove the container by force, anonymous volumes too. Absent is as good.
    Remove(String),
    /// Remove a network of ours; in use is left, absent is as good.
    RemoveNetwork(String),
}

/// What a container is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct NewContainer {
    /// Its reserved name.
    pub name: InstanceName,
    /// What was declared.
    pub declared: Arc<Declared>,
    /// Labels, bargee's and the owner's.
    pub labels: BTreeMap<String, String>,
    /// Environment, the injected variables included.
    pub env: BTreeMap<String, String>,
    /// bargee's network and the aliases on it; `None`: the host's network.
    pub network: Option<AppNetwork>,
    /// Named volumes by what they are called in the manifest: `data` is `shop.data` on the engine.
    pub volume_prefix: String,
    /// Ports of an update that the container which it replaces does not hold: checked first, since
    /// engines only find out at the start, when the old one is stopped.
    pub ports_to_check: Vec<Port>,
}

/// The network of an application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppNetwork {
    /// Its name on the engine.
    pub name: String,
    /// Labels it is made with.
    pub labels: BTreeMap<String, String>,
    /// Names of the workload on it.
    pub aliases: Vec<String>,
}

/// The answer to an ask.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// To an apply.
    Applied(Vec<Applied>),
    /// To a request that is about the agent itself: what was done, as one sentence.
    Done(String),
    /// To a verb: the task that carries it out.
    Accepted(TaskId),
    /// No.
    Refused(Refusal),
}

/// What an apply did, or would do, to one workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The workload.
    pub key: Key,
    /// Its identity.
    pub uid: Uid,
    /// Its generation.
    pub generation: u64,
    /// What changed.
    pub change: Change,
}

/// What an apply did, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A new workload.
    Created,
    /// A new generation, which replaces the container.
    Replaced,
    /// A new generation, which keeps the container.
    Kept,
    /// Nothing.
    Unchanged,
    /// Nothing, but it is wanted running again.
    Started,
    /// It is removed.
    Removed,
}

impl Change {
    /// As it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::Kept => "updated",
            Self::Unchanged => "unchanged",
            Self::Started => "started",
            Self::Removed => "removed",
        }
    }
}

/// Why an ask is not carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// There is no such workload any more.
    NotFound(String),
    /// Another source, or the workload's own state, stands in the way.
    Conflict(String),
    /// Too much waits already.
    Busy(String),
    /// The store could not make it durable; nothing changed.
    Store(String),
    /// The agent is about to end.
    Ending(String),
}
