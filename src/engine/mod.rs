//! The contract that every engine keeps, and the engines behind it.
//!
//! Every call has a timeout and answers with a typed [`Fault`]; "no such container" is an answer of
//! the engine, never a match on its text.

use std::io::Read;

use crate::domain::effect::NewContainer;
use crate::domain::event::ContainerEvent;
use crate::domain::fault::Fault;
use crate::domain::names::{ContainerId, EngineId};
use crate::domain::observed::{EngineInfo, Listed, Reading};
use crate::domain::view::PullProgress;

use cancel::Cancel;

pub mod cancel;

pub mod docker;

/// A container engine. Dispatch goes through this enum, so the compiler lists what another engine
/// must answer.
#[derive(Debug)]
pub enum Engine {
    /// Docker, over its Unix socket.
    Docker(docker::Docker),
}

/// Which lines of a log are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogOptions {
    /// Go on with what is written later.
    pub follow: bool,
    /// Only the last lines; `None`: all.
    pub tail: Option<u64>,
}

/// The event stream of an engine, already open.
pub trait EventStream: Send {
    /// Blocks until the next event, or until the stream ends with a fault. A line that cannot be
    /// read is skipped.
    ///
    /// # Errors
    /// The stream ended: the engine went away, or [`Engine::shutdown`] was called.
    fn next(&mut self) -> Result<ContainerEvent, Fault>;
}

impl Engine {
    /// Asks the engine whether it is there and agrees on an API version.
    ///
    /// # Errors
    /// [`FaultKind::Away`](crate::domain::fault::FaultKind) with the remedy in the message when it
    /// is not.
    pub fn ping(&self) -> Result<EngineInfo, Fault> {
        match self {
            Self::Docker(docker) => docker.ping(),
        }
    }

    /// What the engine calls itself and where it keeps its data; `None`: it does not say. What was
    /// known of its networks is forgotten, since it may be another one.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn identity(&self) -> Result<Option<EngineId>, Fault> {
        match self {
            Self::Docker(docker) => docker.identity(),
        }
    }

    /// All containers that carry bargee's labels, of every store.
    ///
    /// # Errors
    /// Any fault; never a partial list.
    pub fn list(&self) -> Result<Vec<Listed>, Fault> {
        match self {
            Self::Docker(docker) => docker.list(),
        }
    }

    /// One container by id or name; `None`: the engine says that there is none.
    ///
    /// # Errors
    /// Any other fault.
    pub fn inspect(&self, name_or_id: &str) -> Result<Option<Reading>, Fault> {
        match self {
            Self::Docker(docker) => docker.inspect(name_or_id),
        }
    }

    /// Makes the network if it is not there, then the container.
    ///
    /// # Errors
    /// `NoImage`, `NameTaken`, `Refused`, `Trouble` and those of the connection.
    pub fn create(&self, new: &NewContainer) -> Result<ContainerId, Fault> {
        match self {
            Self::Docker(docker) => docker.create(new),
        }
    }

    /// Starts a container; one that runs already is as good. A network of bargee's that it is on
    /// and that was removed meanwhile is made again.
    ///
    /// # Errors
    /// `NoContainer`, `NoNetwork`, `Refused`, `Trouble`, `Conflict` and those of the connection.
    pub fn start(&self, id: &ContainerId) -> Result<(), Fault> {
        match self {
            Self::Docker(docker) => docker.start(id),
        }
    }

    /// Sends a signal, named with `SIG`.
    ///
    /// # Errors
    /// `NoContainer`, `Conflict` when it does not run, and those of the connection.
    pub fn signal(&self, id: &ContainerId, signal: &str) -> Result<(), Fault> {
        match self {
            Self::Docker(docker) => docker.signal(id, signal),
        }
    }

    /// Removes a container by force, with its anonymous volumes; absent is as good.
    ///
    /// # Errors
    /// `Conflict` when its removal is under way already, `Trouble`, and those of the connection.
    pub fn remove(&self, name_or_id: &str) -> Result<(), Fault> {
        match self {
            Self::Docker(docker) => docker.remove(name_or_id),
        }
    }

    /// Removes a network; in use or absent is as good.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn remove_network(&self, name: &str) -> Result<(), Fault> {
        match self {
            Self::Docker(docker) => docker.remove_network(name),
        }
    }

    /// Pulls an image and tells how far it has come, each time that something moves. Whether it
    /// brought anything: what is there already is good, too. It has a connection of its own, which
    /// `cancel` closes; the engine ends the pull then.
    ///
    /// # Errors
    /// `Refused` for a reference that no registry could answer, `Trouble` for the rest, `Timeout`
    /// when nothing came for two minutes, and those of the connection, a cancel included.
    pub fn pull(
        &self,
        image: &str,
        cancel: &Cancel,
        tell: &mut dyn FnMut(PullProgress),
    ) -> Result<bool, Fault> {
        match self {
            Self::Docker(docker) => docker.pull(image, cancel, tell),
        }
    }

    /// Makes durable what pulls brought: engines answer before the disk has it. Waits for the disk.
    ///
    /// # Errors
    /// `Trouble` when the disk fails.
    pub fn sync_images(&self) -> Result<(), Fault> {
        match self {
            Self::Docker(docker) => docker.sync_images(),
        }
    }

    /// Opens the event stream. It has a connection of its own; the stream that was open before
    /// ends.
    ///
    /// # Errors
    /// `Trouble` and those of the connection.
    pub fn events(&self) -> Result<Box<dyn EventStream>, Fault> {
        match self {
            Self::Docker(docker) => docker.events(),
        }
    }

    /// Opens the log of a container: bytes as the process wrote them, both streams in order. A
    /// followed log blocks until something is written; it ends with the container.
    ///
    /// # Errors
    /// `NoContainer`, `Trouble` (the log driver keeps nothing) and those of the connection.
    pub fn logs(
        &self,
        id: &ContainerId,
        options: LogOptions,
    ) -> Result<Box<dyn Read + Send>, Fault> {
        match self {
            Self::Docker(docker) => docker.logs(id, options),
        }
    }

    /// Ends the event stream that is open, so that its reader returns; the engine can still be
    /// used.
    pub fn close_events(&self) {
        match self {
            Self::Docker(docker) => docker.close_events(),
        }
    }

    /// Ends every connection and stream, so that whoever waits on one returns. For the stop of the
    /// agent: the engine cannot be used after it.
    pub fn shutdown(&self) {
        match self {
            Self::Docker(docker) => docker.shutdown(),
        }
    }
}
