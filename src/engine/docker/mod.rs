//! Docker, over its Unix socket. Speaks the API of Docker 20.10 and later.

mod create;
mod events;
mod health;
mod lines;
mod logs;
mod map;
mod networks;
mod pull;
mod rfc3339;
#[cfg(test)]
mod tests;
mod transport;
mod url;
mod version;
mod wire;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use ureq::Agent;

pub use transport::Timeouts;

use self::create::Create;
use self::events::Events;
use self::logs::Log;
use self::networks::Networks;
use self::transport::{Ask, Patience, Reply, Transport};
use super::cancel::Cancel;
use super::{EventStream, LogOptions};
use crate::domain::effect::NewContainer;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{ContainerId, EngineId};
use crate::domain::observed::{EngineInfo, Listed, Phase, Reading, label};
use crate::domain::view::PullProgress;
use crate::os::unix_http;

/// A Docker engine. What its methods do and answer is told at [`Engine`](super::Engine).
#[derive(Debug)]
pub struct Docker {
    transport: Arc<Transport>,
    networks: Networks,
    events: Mutex<EventSlot>,
}

/// The client of the event stream. It has one of its own, because ending the stream ends every
/// connection of its client.
#[derive(Debug)]
enum EventSlot {
    /// No stream is open.
    Empty,
    /// The last one that was opened.
    Open(Agent),
    /// No stream may be opened any more.
    Shut,
}

impl Docker {
    /// An engine at `url`, which is `unix://` and an absolute path. Nothing is connected yet.
    ///
    /// # Errors
    /// What is wrong with `url`, as a sentence.
    pub fn new(url: &str) -> Result<Self, String> {
        Self::with_timeouts(url, Timeouts::default())
    }

    /// The same with other timeouts.
    ///
    /// # Errors
    /// As for [`Docker::new`].
    pub fn with_timeouts(url: &str, timeouts: Timeouts) -> Result<Self, String> {
        let path = url.strip_prefix("unix://").ok_or_else(|| {
            format!("the engine URL {url:?} must be unix:// and the path of a socket")
        })?;
        let socket = PathBuf::from(path);
        if !socket.is_absolute() {
            return Err(format!("the socket in the engine URL {url:?} must be an absolute path"));
        }
        if !unix_http::path_fits(Path::new(path)) {
            return Err(format!("the socket in the engine URL {url:?} is longer than 107 bytes"));
        }
        Ok(Self {
            transport: Arc::new(Transport::new(socket, timeouts)),
            networks: Networks::default(),
            events: Mutex::new(EventSlot::Empty),
        })
    }

    pub(super) fn ping(&self) -> Result<EngineInfo, Fault> {
        self.transport.ping()
    }

    pub(super) fn identity(&self) -> Result<Option<EngineId>, Fault> {
        self.networks.forget();
        let ask = Ask::get("ask the engine who it is", "", "/info".into());
        match self.transport.call(&ask) {
            Ok(reply) if reply.status == 200 => {
                let info: Option<wire::Info> = reply.json(&ask).ok();
                Ok(info.and_then(|info| info.identity()))
            }
            // As a proxy that lets only some requests through.
            Ok(_) => Ok(None),
            // Nothing is done before this is answered, and engines have been seen to hang in it
            // alone: they sum up there what plugins and drivers say.
            Err(fault) if fault.kind == FaultKind::Timeout => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Listed>, Fault> {
        let filter = url::escape(&format!(r#"{{"label":["{}"]}}"#, label::UID));
        let target = format!("/containers/json?all=1&filters={filter}");
        let ask = Ask::get("list containers", "", target);
        let reply = self.transport.call(&ask)?;
        match reply.status {
            200 => Ok(map::list(reply.json(&ask)?)),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }

    pub(super) fn inspect(&self, name_or_id: &str) -> Result<Option<Reading>, Fault> {
        let Some(container) = self.look(name_or_id)? else { return Ok(None) };
        let garbled =
            |message| Fault::new(FaultKind::Garbled, "inspect container", name_or_id, message);
        let reading = map::reading(container).map_err(garbled)?;
        if reading.phase == Phase::Exited {
            self.transport.expect_open()?;
        }
        Ok(Some(reading))
    }

    /// An inspect as the engine says it; `None`: there is no such container.
    fn look(&self, name_or_id: &str) -> Result<Option<wire::Container>, Fault> {
        let target = format!("{}/json", url::container(name_or_id));
        let ask = Ask::get("inspect container", name_or_id, target);
        let reply = self.transport.call(&ask)?;
        match reply.status {
            200 => reply.json(&ask).map(Some),
            404 => Ok(None),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }

    pub(super) fn create(&self, new: &NewContainer) -> Result<ContainerId, Fault> {
        if let Some(network) = &new.network {
            self.networks.ensure(&self.transport, &network.name, &network.labels)?;
        }
        let name = new.name.as_str();
        let target = format!("/containers/create?name={}", url::escape(name));
        let ask = Ask::post("create container", name, target).json(&Create::new(new))?;
        let reply = self.transport.call(&ask)?;
        let kind = match reply.status {
            201 => {
                let made: wire::Made = reply.json(&ask)?;
                return Ok(ContainerId::new(made.id));
            }
            400 | 403 => FaultKind::Refused,
            // A network that is not there shows at the start only.
            404 => FaultKind::NoImage,
            409 => FaultKind::NameTaken,
            _ => FaultKind::Trouble,
        };
        Err(reply.fault(kind, &ask))
    }

    pub(super) fn start(&self, id: &ContainerId) -> Result<(), Fault> {
        let target = format!("{}/start", url::container(id.as_str()));
        let ask = Ask::post("start container", id.as_str(), target);
        let reply = self.transport.call(&ask)?;
        match reply.status {
            404 => self.start_without(&ask, &reply),
            // Whatever goes wrong here, the refusal is what is told.
            400 if self.unite_network(id).is_ok_and(|united| united) => {
                started(&ask, &self.transport.call(&ask)?)
            }
            _ => started(&ask, &reply),
        }
    }

    /// Sees to it that the network of a container is the only one of its name; whether it was not.
    fn unite_network(&self, id: &ContainerId) -> Result<bool, Fault> {
        let Some(container) = self.look(id.as_str())? else { return Ok(false) };
        let mode = container.host_config.network_mode.as_str();
        if is_engines_own(mode) { Ok(false) } else { networks::leave_one(&self.transport, mode) }
    }

    /// Finds out what is missing when a start was answered with 404. A network that was removed
    /// (`docker network prune` takes those whose containers do not run) is made again.
    fn start_without(&self, ask: &Ask, missing: &Reply) -> Result<(), Fault> {
        let Some(container) = self.look(ask.object)? else {
            return Err(missing.fault(FaultKind::NoContainer, ask));
        };
        let mode = container.host_config.network_mode.as_str();
        if is_engines_own(mode) {
            return Err(missing.fault(FaultKind::Trouble, ask));
        }
        self.networks.rejoin(&self.transport, &container)?;
        started(ask, &self.transport.call(ask)?)
    }

    pub(super) fn signal(&self, id: &ContainerId, signal: &str) -> Result<(), Fault> {
        let path = url::container(id.as_str());
        let target = format!("{path}/kill?signal={}", url::escape(signal));
        let ask = Ask::post("signal container", id.as_str(), target);
        // Sent at once. Only after SIGKILL the engine waits for the end, 10 s and then for ever.
        let ask = ask.with(Patience::Read);
        let reply = self.transport.call(&ask)?;
        let kind = match reply.status {
            200 | 204 => return Ok(()),
            400 => FaultKind::Refused,
            404 => FaultKind::NoContainer,
            409 => FaultKind::Conflict,
            _ => FaultKind::Trouble,
        };
        Err(reply.fault(kind, &ask))
    }

    pub(super) fn remove(&self, name_or_id: &str) -> Result<(), Fault> {
        let target = format!("{}?force=1&v=1", url::container(name_or_id));
        let ask = Ask::delete("remove container", name_or_id, target);
        let reply = self.transport.call(&ask)?;
        match reply.status {
            200 | 204 | 404 => Ok(()),
            409 => Err(reply.fault(FaultKind::Conflict, &ask)),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }

    pub(super) fn remove_network(&self, name: &str) -> Result<(), Fault> {
        self.networks.remove(&self.transport, name)
    }

    pub(super) fn pull(
        &self,
        image: &str,
        cancel: &Cancel,
        tell: &mut dyn FnMut(PullProgress),
    ) -> Result<bool, Fault> {
        pull::pull(&self.transport, image, cancel, tell)
    }

    pub(super) fn sync_images(&self) -> Result<(), Fault> {
        pull::sync_images(&self.transport)
    }

    pub(super) fn events(&self) -> Result<Box<dyn EventStream>, Fault> {
        let target = format!("/events?filters={}", url::escape(events::FILTER));
        let ask = Ask::get("open the event stream", "", target).with(Patience::Stream);
        let agent = self.transport.own_agent();
        // Kept before it connects, so that closing reaches a stream that is being opened.
        if !self.keep_events(EventSlot::Open(agent.clone())) {
            return Err(ask.fault(FaultKind::Away, "the agent is stopping"));
        }
        let response = self.transport.open(&agent, &ask)?;
        let body = transport::body(&ask, response, |_| FaultKind::Trouble)?;
        Ok(Box::new(Events::new(body.into_reader())))
    }

    /// Puts `next` in the place of the stream that was open, which ends; `false`: all is shut.
    fn keep_events(&self, next: EventSlot) -> bool {
        let mut slot = self.events.lock();
        if matches!(*slot, EventSlot::Shut) {
            return false;
        }
        if let EventSlot::Open(agent) = std::mem::replace(&mut *slot, next) {
            agent.shutdown();
        }
        true
    }

    pub(super) fn logs(
        &self,
        id: &ContainerId,
        options: LogOptions,
    ) -> Result<Box<dyn Read + Send>, Fault> {
        let mut log = Log::new(Arc::clone(&self.transport), id.clone(), options);
        if !options.follow {
            log.open()?;
        } else if self.look(id.as_str())?.is_none() {
            let message = "there is no such container";
            return Err(Fault::new(
                FaultKind::NoContainer,
                "read the log of",
                id.as_str(),
                message,
            ));
        }
        Ok(Box::new(log))
    }

    pub(super) fn close_events(&self) {
        self.keep_events(EventSlot::Empty);
    }

    pub(super) fn shutdown(&self) {
        self.keep_events(EventSlot::Shut);
        self.transport.shutdown();
    }
}

/// A network mode that names no network that somebody made.
fn is_engines_own(mode: &str) -> bool {
    matches!(mode, "" | "default" | "bridge" | "host" | "none")
}

/// What the answer to a start means.
fn started(ask: &Ask, reply: &Reply) -> Result<(), Fault> {
    let kind = match reply.status {
        204 | 304 => return Ok(()),
        400 | 403 => FaultKind::Refused,
        409 => FaultKind::Conflict,
        _ => FaultKind::Trouble,
    };
    Err(reply.fault(kind, ask))
}
