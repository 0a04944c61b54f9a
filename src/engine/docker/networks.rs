//! Networks of bargee's own.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde::Serialize;

use super::transport::{Ask, Transport};
use super::{create, url, wire};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::observed::label;

/// Body of `POST /networks/create`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct CreateNetwork<'a, L> {
    name: &'a str,
    /// Without it old engines make a second network of the same name.
    check_duplicate: bool,
    labels: L,
}

/// Body of `POST /networks/{name}/connect`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Connect<'a> {
    container: &'a str,
    endpoint_config: create::Endpoint<'a>,
}

/// The networks that were seen to exist. The lock is held while one is made, so that workers who
/// need it at the same time do not all make it.
#[derive(Debug, Default)]
pub(super) struct Networks(Mutex<BTreeSet<String>>);

impl Networks {
    /// Makes a network unless it is known to exist. One that exists already is as good.
    ///
    /// # Errors
    /// `Refused`, `Trouble` and those of the connection.
    pub fn ensure(
        &self,
        transport: &Transport,
        name: &str,
        labels: impl Serialize,
    ) -> Result<(), Fault> {
        let mut known = self.0.lock();
        if known.contains(name) {
            return Ok(());
        }
        let body = CreateNetwork { name, check_duplicate: true, labels };
        let ask = Ask::post("make network", name, "/networks/create".into()).json(&body)?;
        let reply = transport.call(&ask)?;
        match reply.status {
            201 | 409 => {
                known.insert(name.to_owned());
                Ok(())
            }
            400 => Err(reply.fault(FaultKind::Refused, &ask)),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }

    /// Believes of no network any more that it exists.
    pub fn forget(&self) {
        self.0.lock().clear();
    }

    /// Removes a network; one in use is left, one that is not there is as good.
    ///
    /// # Errors
    /// `Trouble` and those of the connection.
    pub fn remove(&self, transport: &Transport, name: &str) -> Result<(), Fault> {
        // Held, so that nobody finds it known while it goes.
        let mut known = self.0.lock();
        known.remove(name);
        let ask = Ask::delete("remove network", name, format!("/networks/{}", url::escape(name)));
        let mut reply = transport.call(&ask)?;
        if reply.status == 400 && leave_one(transport, name)? {
            reply = transport.call(&ask)?;
        }
        match reply.status {
            200 | 204 | 403 | 404 | 409 => Ok(()),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }

    /// Puts a container that does not run back onto its network, which was removed meanwhile and
    /// is made again: the container knows it by an id that is gone.
    ///
    /// # Errors
    /// As for [`Networks::ensure`].
    pub fn rejoin(&self, transport: &Transport, container: &wire::Container) -> Result<(), Fault> {
        let name = &container.host_config.network_mode;
        self.0.lock().remove(name);
        let labels = container.config.as_ref().map(|config| create::ownership(&config.labels));
        self.ensure(transport, name, labels.unwrap_or_default())?;

        let mut aliases = match container.network_settings.networks.get(name) {
            Some(endpoint) => endpoint.aliases.clone(),
            None => Vec::new(),
        };
        // The engine adds the short id by itself.
        aliases.retain(|alias| !container.id.starts_with(alias.as_str()));
        let body = Connect {
            container: &container.id,
            endpoint_config: create::Endpoint { aliases: &aliases },
        };
        let target = format!("/networks/{}/connect", url::escape(name));
        let ask = Ask::post("join network", name, target).json(&body)?;
        let reply = transport.call(&ask)?;
        match reply.status {
            200 => Ok(()),
            404 => Err(reply.fault(FaultKind::NoNetwork, &ask)),
            _ => Err(reply.fault(FaultKind::Trouble, &ask)),
        }
    }
}

/// Leaves one of our networks of this name, if there are more. Engines make a second one for two
/// requests that come at the same time, as from an agent that was killed and from the next, and
/// then neither start a container on it nor remove it: its name is ambiguous. One that is in use
/// they refuse to remove, so that no container loses its own. Whether there is one less.
///
/// # Errors
/// `Trouble` and those of the connection.
pub(super) fn leave_one(transport: &Transport, name: &str) -> Result<bool, Fault> {
    let filter = url::escape(&format!(r#"{{"name":["{name}"],"label":["{}"]}}"#, label::STORE));
    let ask = Ask::get("list networks", name, format!("/networks?filters={filter}"));
    let reply = transport.call(&ask)?;
    if reply.status != 200 {
        return Err(reply.fault(FaultKind::Trouble, &ask));
    }
    let mut found: Vec<wire::Network> = reply.json(&ask)?;
    // The engine's filter also finds names that this one is a part of.
    found.retain(|network| network.name == name);
    let mut left = found.len();
    for network in &found {
        if left <= 1 {
            break;
        }
        let target = format!("/networks/{}", url::escape(&network.id));
        let ask = Ask::delete("remove network", &network.id, target);
        if matches!(transport.call(&ask)?.status, 200 | 204 | 404) {
            left -= 1;
        }
    }
    Ok(left < found.len())
}
