//! What an engine reported. Present, absent and unknown are three answers.

use super::health_check::{Health, Verdict};
use super::names::{ContainerId, InstanceName, Key, Label, SpecHash, StoreId, Uid};

/// The last trustworthy word about one container.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Seen {
    /// Not looked at, or the look failed. Never a reason to start a second one.
    #[default]
    Unknown,
    /// The engine says that it does not exist.
    Absent,
    /// It exists.
    Present(Box<Reading>),
}

impl Seen {
    /// The reading, if there is one.
    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Present(reading) => Some(reading),
            Self::Unknown | Self::Absent => None,
        }
    }
}

/// What the engine says a container is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Made, never started (or its start failed).
    Created,
    /// Its process runs.
    Running,
    /// The engine restarts it by itself; bargee never asks for that.
    Restarting,
    /// Frozen by somebody.
    Paused,
    /// Its stop is under way (Podman says so).
    Stopping,
    /// Its removal is under way.
    Removing,
    /// Its process ended.
    Exited,
    /// The engine half removed it.
    Dead,
    /// The engine says that it runs, and its process is gone.
    Gone,
    /// A word that bargee does not know; shown as it is.
    Unknown(String),
}

impl Phase {
    /// A process of the container may exist.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Running | Self::Restarting | Self::Paused | Self::Stopping => true,
            Self::Created | Self::Removing | Self::Exited | Self::Dead | Self::Gone => false,
            // Not knowing is no licence to start a second one.
            Self::Unknown(_) => true,
        }
    }
}

/// bargee's own labels on a container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tags {
    /// `bargee.uid`.
    pub uid: Uid,
    /// `bargee.application` and `bargee.name`.
    pub key: Key,
    /// `bargee.instance`.
    pub instance: InstanceName,
    /// `bargee.generation`.
    pub generation: u64,
    /// `bargee.spec-hash`.
    pub spec_hash: SpecHash,
    /// `bargee.store`.
    pub store: StoreId,
    /// `bargee.node`.
    pub node: String,
}

/// Names of the labels, in one place for writing and reading.
pub mod label {
    /// Workload uid.
    pub const UID: &str = "bargee.uid";
    /// Application.
    pub const APPLICATION: &str = "bargee.application";
    /// Workload name.
    pub const NAME: &str = "bargee.name";
    /// Instance name.
    pub const INSTANCE: &str = "bargee.instance";
    /// Generation it was made from.
    pub const GENERATION: &str = "bargee.generation";
    /// Hash of what it was made from.
    pub const SPEC_HASH: &str = "bargee.spec-hash";
    /// Store that made it.
    pub const STORE: &str = "bargee.store";
    /// Node that made it.
    pub const NODE: &str = "bargee.node";
    /// Source of the workload.
    pub const SOURCE: &str = "bargee.source";
    /// Prefix of all of them, refused in manifests.
    pub const PREFIX: &str = "bargee.";
}

impl Tags {
    /// Reads the labels of a container; `None` if they are not all there and well formed, which
    /// makes the container a foreign one.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        Some(Self {
            uid: Uid::new(get(label::UID)?),
            key: Key {
                application: Label::parse(get(label::APPLICATION)?).ok()?,
                name: Label::parse(get(label::NAME)?).ok()?,
            },
            instance: InstanceName::new(get(label::INSTANCE)?),
            generation: get(label::GENERATION)?.parse().ok()?,
            spec_hash: SpecHash::new(get(label::SPEC_HASH)?),
            store: StoreId::new(get(label::STORE)?),
            node: get(label::NODE)?.to_owned(),
        })
    }
}

/// One line of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The engine's id.
    pub id: ContainerId,
    /// What it is doing.
    pub phase: Phase,
    /// bargee's labels on it.
    pub tags: Tags,
    /// It has another name than its labels say: it was renamed, or made from an image that was
    /// taken from a container of ours, labels included.
    pub misnamed: bool,
    /// What the engine's words for people say of its health; `None`: nothing. A hint that something
    /// was missed, never a ground for a decision.
    pub health: Option<Health>,
}

/// An inspect: everything that decisions and the status need to know of one container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The engine's id.
    pub id: ContainerId,
    /// What it is doing.
    pub phase: Phase,
    /// bargee's labels; `None` on a foreign container.
    pub tags: Option<Tags>,
    /// Unix time of the last start in nanoseconds, by the engine's clock; 0: never started. With
    /// the id it names one run.
    pub started_at_ns: u64,
    /// Exit code of the last run.
    pub exit_code: i32,
    /// The kernel killed it for memory.
    pub oom_killed: bool,
    /// The engine's words about a failed start.
    pub error: String,
    /// Process id while running, else 0.
    pub pid: u32,
    /// Address on its network, if any.
    pub ip: Option<String>,
    /// Ports as published: `0.0.0.0:8080->80/tcp`.
    pub ports: Vec<String>,
    /// The engine's id of the image.
    pub image_id: String,
    /// The image's stop signal.
    pub stop_signal: Option<String>,
    /// What its check says, if it has one. Of a container that has ended it means nothing.
    pub verdict: Option<Verdict>,
}

/// In what engines differ, as far as decisions go. Until an engine says what it is, it is taken for
/// a Docker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Its containers go on when it ends: an exit that is first seen after it was away is one like
    /// any other.
    pub containers_outlive: bool,
}

/// What the engine told about itself when it was reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineInfo {
    /// `docker`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The API version agreed upon.
    pub api_version: String,
    /// What it can do that others cannot, and the other way round.
    pub capabilities: Capabilities,
}
