//! The agent as the API sees it.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, TrySendError, bounded};

use super::Rooms;
use super::inbox::Mail;
use super::now;
use super::stats::Usages;
use crate::api::backend::{ApplyOptions, AskError, Backend, Identity, ManifestFile, Usage};
use crate::domain::effect::{Answer, Applied, Refusal};
use crate::domain::event::{Apply, Request, Verb};
use crate::domain::fault::Fault;
use crate::domain::intent::Entry;
use crate::domain::names::{ContainerId, Source, Uid};
use crate::domain::time::Now;
use crate::domain::view::{Status, Task, TaskId, Transition, View};
use crate::engine::LogOptions;
use crate::limits;
use crate::manifest;
use crate::os::random;

/// Answers reads from what is published and passes asks to the monitor.
pub struct AgentBackend {
    identity: Identity,
    config: Vec<(&'static str, String)>,
    rooms: Rooms,
    usages: Usages,
}

impl AgentBackend {
    /// A backend over the rooms of the agent.
    pub fn new(
        identity: Identity,
        config: Vec<(&'static str, String)>,
        rooms: Rooms,
        usages: Usages,
    ) -> Self {
        Self { identity, config, rooms, usages }
    }

    /// Passes a request to the monitor and waits for its answer.
    fn ask(&self, request: Request) -> Result<(Answer, u64), AskError> {
        let (answer_to, answer) = bounded(1);
        match self.rooms.inbox.try_send(Mail::Ask(request, answer_to)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                let text = "the agent has too much to do at the moment; try again".to_owned();
                return Err(AskError::Refused(Refusal::Busy(text)));
            }
            Err(TrySendError::Disconnected(_)) => return Err(stopping()),
        }
        match answer.recv_timeout(Duration::from_millis(limits::ASK_MS)) {
            Ok((Answer::Refused(refusal), _)) => Err(AskError::Refused(refusal)),
            Ok(answered) => Ok(answered),
            Err(RecvTimeoutError::Timeout) => Err(AskError::Late),
            Err(RecvTimeoutError::Disconnected) => Err(stopping()),
        }
    }
}

fn stopping() -> AskError {
    AskError::Unavailable("the agent is stopping".to_owned())
}

fn fresh_uid() -> Result<Uid, AskError> {
    let mut bytes = [0; 16];
    random::fill(&mut bytes)
        .map_err(|error| AskError::Unavailable(format!("no random numbers: {error}")))?;
    Ok(Uid::from_random(bytes))
}

impl Backend for AgentBackend {
    fn workloads(&self) -> Vec<Arc<View>> {
        self.rooms.published.workloads()
    }

    fn usage(&self, uid: &Uid) -> Option<Usage> {
        self.usages.read().get(uid).copied()
    }

    fn revision(&self) -> u64 {
        self.rooms.published.revision()
    }

    fn status(&self) -> Arc<Status> {
        self.rooms.published.status()
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        self.rooms.published.task(id)
    }

    fn apply(
        &self,
        files: &[ManifestFile],
        options: ApplyOptions,
    ) -> Result<(Vec<Applied>, u64), AskError> {
        let files: Vec<(String, String)> =
            files.iter().map(|file| (file.name.clone(), file.text.clone())).collect();
        let declared = manifest::parse(&files).map_err(AskError::Invalid)?;
        let uids = declared.iter().map(|_| fresh_uid()).collect::<Result<_, _>>()?;
        let declared = declared.into_iter().map(Arc::new).collect();
        let ApplyOptions { dry_run, prune, start } = options;
        let apply = Apply { source: Source::Local, declared, uids, dry_run, prune, start };
        match self.ask(Request::Apply(apply))? {
            (Answer::Applied(applied), revision) => Ok((applied, revision)),
            (other, _) => Err(AskError::Unavailable(format!("bug: answered with {other:?}"))),
        }
    }

    fn verb(&self, uid: &Uid, verb: Verb) -> Result<(TaskId, u64), AskError> {
        match self.ask(Request::Verb(verb, uid.clone()))? {
            (Answer::Accepted(task), revision) => Ok((task, revision)),
            (other, _) => Err(AskError::Unavailable(format!("bug: answered with {other:?}"))),
        }
    }

    fn journal(&self) -> Vec<Arc<Entry>> {
        self.rooms.published.entries()
    }

    fn act(&self, request: Request) -> Result<String, AskError> {
        match self.ask(request)? {
            (Answer::Done(text), _) => Ok(text),
            (other, _) => Err(AskError::Unavailable(format!("bug: answered with {other:?}"))),
        }
    }

    fn logs(
        &self,
        container: &ContainerId,
        follow: bool,
        tail: Option<u64>,
    ) -> Result<Box<dyn Read + Send>, Fault> {
        self.rooms.engine.logs(container, LogOptions { follow, tail })
    }

    fn transitions(&self, since: u64, wait: Duration) -> Vec<(u64, Arc<Transition>)> {
        self.rooms.published.transitions(since, wait)
    }

    fn config(&self) -> Vec<(&'static str, String)> {
        self.config.clone()
    }

    fn now(&self) -> Now {
        now()
    }

    fn stopping(&self) -> bool {
        self.rooms.published.is_stopping()
    }
}
