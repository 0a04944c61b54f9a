//! A container engine as a value: containers, names, networks and images, and what calls do to
//! them. It has no clock, thread or socket: whoever uses it says when things happen, and takes from
//! [`MemoryEngine::told`] what the event stream would show.
//!
//! What a process does by itself is not in here: it ends when somebody calls
//! [`MemoryEngine::exit`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bargee::domain::effect::NewContainer;
use bargee::domain::event::{ContainerAction, ContainerEvent};
use bargee::domain::fault::{Fault, FaultKind};
use bargee::domain::names::{ContainerId, Uid};
use bargee::domain::observed::{Listed, Phase, Reading, Tags};

mod ways;

pub use ways::Ways;

/// One container.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The engine's id, never given twice.
    pub id: ContainerId,
    /// Its name now.
    pub name: String,
    /// What its labels say, if they are bargee's.
    pub tags: Option<Tags>,
    /// As it was asked for.
    pub image: Arc<str>,
    /// The network that it is on; `None`: the host's.
    pub network: Option<String>,
    /// What it is doing.
    pub phase: Phase,
    /// Start of the last run in unix nanoseconds; 0: it never ran.
    pub started_at_ns: u64,
    /// Exit code of the last run.
    pub exit_code: i32,
    /// Process id; 0: no process.
    pub pid: u32,
    /// Runs so far.
    pub runs: u32,
}

impl Made {
    /// It has a process.
    pub fn is_live(&self) -> bool {
        self.phase.is_live()
    }

    /// Its name is not the one that its labels say.
    pub fn is_misnamed(&self) -> bool {
        self.tags.as_ref().is_some_and(|tags| tags.instance.as_str() != self.name)
    }

    /// The workload that it was made for, if its labels count.
    pub fn owner(&self) -> Option<&Uid> {
        self.tags.as_ref().filter(|_| !self.is_misnamed()).map(|tags| &tags.uid)
    }

    fn listed(&self) -> Option<Listed> {
        let tags = self.tags.clone()?;
        let misnamed = self.is_misnamed();
        let (id, phase) = (self.id.clone(), self.phase.clone());
        Some(Listed { id, phase, tags, misnamed, health: None })
    }

    /// As an inspect has it.
    pub fn reading(&self) -> Reading {
        Reading {
            id: self.id.clone(),
            phase: self.phase.clone(),
            tags: self.tags.clone(),
            started_at_ns: self.started_at_ns,
            exit_code: self.exit_code,
            oom_killed: false,
            error: String::new(),
            pid: self.pid,
            ip: None,
            ports: Vec::new(),
            image_id: String::new(),
            stop_signal: None,
            verdict: None,
        }
    }
}

/// What a start came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It runs, as a run of its own.
    Anew,
    /// It ran already.
    Already,
}

/// The engine.
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    /// What kind of engine it is.
    pub ways: Ways,
    containers: BTreeMap<ContainerId, Made>,
    names: BTreeMap<String, ContainerId>,
    /// Networks that bargee made.
    pub networks: BTreeSet<String>,
    /// Images on the device.
    pub images: BTreeSet<Arc<str>>,
    /// What the event stream shows next.
    pub told: Vec<ContainerEvent>,
    last: u64,
}

impl MemoryEngine {
    /// An engine with nothing in it.
    pub fn new(ways: Ways) -> Self {
        Self {
            ways,
            containers: BTreeMap::new(),
            names: BTreeMap::new(),
            networks: BTreeSet::new(),
            images: BTreeSet::new(),
            told: Vec::new(),
            last: 0,
        }
    }

    // --- what is there -------------------------------------------------------------------------

    /// All containers, in no order that means anything.
    pub fn all(&self) -> impl Iterator<Item = &Made> {
        self.containers.values()
    }

    /// A container by id or name.
    pub fn find(&self, id_or_name: &str) -> Option<&Made> {
        let id = self.names.get(id_or_name).cloned();
        self.containers.get(&id.unwrap_or_else(|| ContainerId::new(id_or_name)))
    }

    fn find_mut(&mut self, id_or_name: &str) -> Option<&mut Made> {
        let id = self.names.get(id_or_name).cloned();
        self.containers.get_mut(&id.unwrap_or_else(|| ContainerId::new(id_or_name)))
    }

    /// All containers with bargee's labels.
    pub fn list(&self) -> Vec<Listed> {
        self.containers.values().filter_map(Made::listed).collect()
    }

    // --- what calls do -------------------------------------------------------------------------

    /// Makes the network if it is not there, then the container.
    ///
    /// # Errors
    /// `NoImage`, `NameTaken`.
    pub fn create(&mut self, new: &NewContainer) -> Result<ContainerId, Fault> {
        let image = &new.declared.spec.image;
        if !self.images.contains(image.as_str()) {
            return Err(fault(FaultKind::NoImage, "create container", image, "no such image"));
        }
        let tags = Tags::read(|label| new.labels.get(label).map(String::as_str));
        let network = new.network.as_ref().map(|network| network.name.clone());
        self.networks.extend(network.clone());
        self.add(new.name.as_str(), tags, image.as_str().into(), network)
    }

    /// Puts a container there, made by whomever.
    ///
    /// # Errors
    /// `NameTaken`.
    pub fn add(
        &mut self,
        name: &str,
        tags: Option<Tags>,
        image: Arc<str>,
        network: Option<String>,
    ) -> Result<ContainerId, Fault> {
        if self.names.contains_key(name) {
            return Err(fault(FaultKind::NameTaken, "create container", name, "in use"));
        }
        self.last += 1;
        // Ids that do not sort by age, as those of engines.
        let id = format!("{:016x}", self.last.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let id = ContainerId::new(id);
        let made = Made {
            id: id.clone(),
            name: name.to_owned(),
            tags,
            image,
            network,
            phase: Phase::Created,
            started_at_ns: 0,
            exit_code: 0,
            pid: 0,
            runs: 0,
        };
        self.names.insert(made.name.clone(), id.clone());
        self.containers.insert(id.clone(), made);
        Ok(id)
    }

    /// Starts a container.
    ///
    /// # Errors
    /// `NoContainer`, `NoNetwork`, `Conflict` (frozen or half removed).
    pub fn start(&mut self, id: &str, wall_ns: u64) -> Result<Begun, Fault> {
        self.last += 1;
        let last = self.last;
        let Some(made) = self.containers.get_mut(&ContainerId::new(id)) else {
            return Err(no_container("start container", id));
        };
        match made.phase {
            Phase::Running => return Ok(Begun::Already),
            Phase::Created | Phase::Exited => {}
            _ => return Err(fault(FaultKind::Conflict, "start container", id, "not in a state")),
        }
        if !self.ways.starts_in_place && made.started_at_ns != 0 {
            return Err(fault(FaultKind::Conflict, "start container", id, "it has run"));
        }
        if made.network.as_ref().is_some_and(|network| !self.networks.contains(network)) {
            return Err(fault(FaultKind::NoNetwork, "start container", id, "network not found"));
        }
        made.phase = Phase::Running;
        // Two runs never begin at the same time.
        made.started_at_ns = wall_ns + last % 1_000_000 + 1;
        made.exit_code = 0;
        made.runs += 1;
        made.pid = 1_000 + u32::try_from(last % 30_000).unwrap_or(0);
        self.tell(id, ContainerAction::Started);
        Ok(Begun::Anew)
    }

    /// Whether a signal gets through to the process of a container.
    ///
    /// # Errors
    /// `NoContainer`, `Conflict` when it does not run.
    pub fn signal(&mut self, id: &str) -> Result<(), Fault> {
        match self.find(id).map(Made::is_live) {
            Some(true) => Ok(()),
            Some(false) => {
                Err(fault(FaultKind::Conflict, "signal container", id, "it does not run"))
            }
            None => Err(no_container("signal container", id)),
        }
    }

    /// Removes a container by force. Whether there was one.
    pub fn remove(&mut self, id_or_name: &str) -> bool {
        let Some(made) = self.find(id_or_name) else { return false };
        let (id, live) = (made.id.clone(), made.is_live());
        if live {
            self.exit(id.as_str(), 137);
        }
        self.tell(id.as_str(), ContainerAction::Removed);
        if let Some(made) = self.containers.remove(&id) {
            self.names.remove(&made.name);
        }
        true
    }

    /// Removes a network that nobody lives on. Whether it is gone.
    pub fn remove_network(&mut self, name: &str) -> bool {
        let used = |made: &Made| made.is_live() && made.network.as_deref() == Some(name);
        !self.containers.values().any(used) && self.networks.remove(name)
    }

    // --- what happens by itself, or by other hands ---------------------------------------------

    /// The process of a container ends. Whether there was one.
    pub fn exit(&mut self, id: &str, code: i32) -> bool {
        let Some(made) = self.find_mut(id).filter(|made| made.is_live()) else { return false };
        made.phase = Phase::Exited;
        made.exit_code = code;
        made.pid = 0;
        self.tell(id, ContainerAction::Died);
        true
    }

    /// Freezes a container that runs, or goes on with a frozen one.
    pub fn freeze(&mut self, id: &str, freeze: bool) {
        let (from, to) = match freeze {
            true => (Phase::Running, Phase::Paused),
            false => (Phase::Paused, Phase::Running),
        };
        let Some(made) = self.find_mut(id).filter(|made| made.phase == from) else { return };
        made.phase = to;
        self.tell(id, ContainerAction::Changed);
    }

    /// Gives a container that runs the word that some engines have for one on its way out.
    pub fn begin_stop(&mut self, id: &str) {
        if !self.ways.tells_stopping {
            return;
        }
        if let Some(made) = self.find_mut(id).filter(|made| made.phase == Phase::Running) {
            made.phase = Phase::Stopping;
        }
    }

    /// Every process ends and nobody tells of it.
    pub fn end_all(&mut self, code: i32) {
        for made in self.containers.values_mut().filter(|made| made.is_live()) {
            made.phase = Phase::Exited;
            made.exit_code = code;
            made.pid = 0;
        }
        self.told.clear();
    }

    fn tell(&mut self, id_or_name: &str, action: ContainerAction) {
        let Some(made) = self.find(id_or_name) else { return };
        // The stream shows what has bargee's labels.
        let Some(tags) = &made.tags else { return };
        let event = ContainerEvent { id: made.id.clone(), uid: tags.uid.clone(), action };
        self.told.push(event);
    }
}

fn no_container(call: &'static str, id: &str) -> Fault {
    fault(FaultKind::NoContainer, call, id, "no such container")
}

/// A typed answer.
pub fn fault(kind: FaultKind, call: &'static str, object: &str, text: &str) -> Fault {
    Fault::new(kind, call, object, text)
}
