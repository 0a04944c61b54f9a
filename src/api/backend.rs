//! What the API needs of the agent. The agent implements it; tests implement it without one.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::declared::Problem;
use crate::domain::effect::{Applied, Refusal};
use crate::domain::event::{Request, Verb};
use crate::domain::fault::Fault;
use crate::domain::intent::Entry;
use crate::domain::names::{ContainerId, Uid};
use crate::domain::time::Now;
use crate::domain::view::{Status, Task, TaskId, Transition, View};

/// The agent, as the API sees it. Reads never wait for the monitor.
pub trait Backend: Send + Sync {
    /// All workloads, by key.
    fn workloads(&self) -> Vec<Arc<View>>;
    /// CPU and memory of a workload, if they were sampled.
    fn usage(&self, uid: &Uid) -> Option<Usage>;
    /// Counts declarations that are published; every read is at least the revision answered before.
    fn revision(&self) -> u64;
    /// The agent itself.
    fn status(&self) -> Arc<Status>;
    /// What does not change while the agent runs.
    fn identity(&self) -> &Identity;
    /// A task, unless it is unknown or long settled.
    fn task(&self, id: TaskId) -> Option<Arc<Task>>;
    /// Declares the workloads of these files, all or none. Waits until they are durable.
    ///
    /// # Errors
    /// Nothing was changed, unless it is [`AskError::Late`].
    fn apply(
        &self,
        files: &[ManifestFile],
        options: ApplyOptions,
    ) -> Result<(Vec<Applied>, u64), AskError>;
    /// Changes one workload: the task that carries it out, and the revision.
    ///
    /// # Errors
    /// As for `apply`.
    fn verb(&self, uid: &Uid, verb: Verb) -> Result<(TaskId, u64), AskError>;
    /// The journal, in order.
    fn journal(&self) -> Vec<Arc<Entry>>;
    /// Passes a request that is about the agent itself to it: what was done, as one sentence.
    ///
    /// # Errors
    /// As for `apply`.
    fn act(&self, request: Request) -> Result<String, AskError>;
    /// The log of a container.
    ///
    /// # Errors
    /// The engine's.
    fn logs(
        &self,
        container: &ContainerId,
        follow: bool,
        tail: Option<u64>,
    ) -> Result<Box<dyn Read + Send>, Fault>;
    /// Transitions with a number above `since`, oldest first. Waits up to `wait` for the first one;
    /// returns early and empty when the agent stops.
    fn transitions(&self, since: u64, wait: Duration) -> Vec<(u64, Arc<Transition>)>;
    /// The settled configuration as `(key, value)`, in the order of the documentation.
    fn config(&self) -> Vec<(&'static str, String)>;
    /// Both clocks.
    fn now(&self) -> Now;
    /// The agent is stopping: streams end.
    fn stopping(&self) -> bool;
}

/// What does not change while the agent runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Name of the device.
    pub node: String,
    /// Identity of the store.
    pub store_id: String,
    /// bargee's version.
    pub version: &'static str,
    /// The token of this process, which its journal entries carry: random, another at each start.
    pub token: String,
}

/// CPU and memory of a workload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// Percent of one core over the last period; absent until there were two samples.
    pub cpu_percent: Option<f64>,
    /// Bytes; absent where the kernel does not count them.
    pub memory_bytes: Option<u64>,
}

/// What an apply is to do beside declaring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ApplyOptions {
    /// Only say what would change.
    pub dry_run: bool,
    /// Remove what was deployed in the applications named and is not declared any more.
    pub prune: bool,
    /// Want those running that are wanted stopped.
    pub start: bool,
}

/// One file of an apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestFile {
    /// As the caller names it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Why an ask was not carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum AskError {
    /// The manifests are wrong.
    Invalid(Vec<Problem>),
    /// The agent refused.
    Refused(Refusal),
    /// No answer in time; it may still be carried out.
    Late,
    /// The agent is starting or stopping.
    Unavailable(String),
}
