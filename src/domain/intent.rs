//! The journal's entries: intent, not state. An entry is written before a risky step and deleted
//! once the step is settled, so what is left after a crash is exactly what was in flight.
//!
//! Entries hold names and ids, never values: replay reads values afresh.

use super::names::{ContainerId, InstanceName, Uid};

/// The number of an entry: counts up over the life of the store and is never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Seq(pub u64);

/// One entry, under the key `/wal/{address}/{seq}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// What was about to be done.
    pub intent: Intent,
    /// The process that wrote it, or that replays it: random, another one at each start.
    pub token: String,
    /// Unix milliseconds at which it was written.
    pub at_ms: u64,
    /// Replays so far.
    pub tries: u32,
    /// Why the last replay failed; empty: none did.
    pub error: String,
}

/// What was about to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intent {
    /// `create-workload`, direction create: the engine is asked to create this instance.
    Create {
        /// The workload.
        uid: Uid,
        /// The reserved name.
        instance: InstanceName,
    },
    /// `create-workload`, direction remove: this instance is removed.
    Remove {
        /// The workload.
        uid: Uid,
        /// Its name.
        instance: InstanceName,
        /// Its id, if it was ever known.
        container: Option<ContainerId>,
    },
    /// `replace-workload`: the new container runs, the old one of the update is removed.
    Replace {
        /// The workload.
        uid: Uid,
        /// The container that goes.
        old: InstanceName,
        /// Its id, if it was ever known.
        container: Option<ContainerId>,
        /// The container that stays.
        new: InstanceName,
    },
    /// An entry of a type that this version does not know, or whose text cannot be read. It is kept
    /// and counted, and nothing is done for it.
    Unreadable {
        /// Its type as written.
        kind: String,
        /// Its text as written.
        text: String,
    },
}

impl Intent {
    /// The type, as it is stored and shown.
    pub fn kind(&self) -> &str {
        match self {
            Self::Create { .. } | Self::Remove { .. } => "create-workload",
            Self::Replace { .. } => "replace-workload",
            Self::Unreadable { kind, .. } => kind,
        }
    }

    /// `create` or `remove`, where the type has a direction.
    pub fn direction(&self) -> Option<&'static str> {
        match self {
            Self::Create { .. } => Some("create"),
            Self::Remove { .. } => Some("remove"),
            Self::Replace { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// The workload it is about, if it can be read.
    pub fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Create { uid, .. } | Self::Remove { uid, .. } | Self::Replace { uid, .. } => {
                Some(uid)
            }
            Self::Unreadable { .. } => None,
        }
    }

    /// The instance that replay may remove; never another one.
    pub fn instance(&self) -> Option<&InstanceName> {
        match self {
            Self::Create { instance, .. } | Self::Remove { instance, .. } => Some(instance),
            Self::Replace { old, .. } => Some(old),
            Self::Unreadable { .. } => None,
        }
    }
}
