//! Containers that the engine goes on calling running though their process is gone: what supervised
//! them was killed or hangs. Nothing is heard of their end, so that somebody has to look.

use std::collections::BTreeMap;

use super::Machine;
use crate::domain::lifecycle::Slot;
use crate::domain::names::ContainerId;
use crate::domain::observed::{Phase, Reading};

/// What the engine's word is not believed about: runs by container and start.
#[derive(Debug, Default)]
pub(super) struct Ghosts(BTreeMap<ContainerId, u64>);

impl Ghosts {
    /// The reading as it is to be taken.
    pub(super) fn see_through(&self, reading: Reading) -> Reading {
        let is_ghost = self.0.get(&reading.id) == Some(&reading.started_at_ns);
        if !is_ghost || reading.phase != Phase::Running {
            return reading;
        }
        Reading { phase: Phase::Gone, pid: 0, ..reading }
    }
}

impl Machine {
    /// The process that the engine named as that of a container is gone, or is another one's.
    pub(super) fn on_process_gone(&mut self, id: &ContainerId, pid: u32) {
        let Some(uid) = self.by_container.get(id).cloned() else { return };
        let order = self.order;
        let Some(w) = self.workloads.get_mut(&uid) else { return };
        let seen = w.seen.reading().filter(|seen| seen.id == *id && seen.pid == pid);
        let Some(seen) = seen.filter(|seen| seen.phase == Phase::Running) else { return };
        let started_at_ns = seen.started_at_ns;
        // It is looked at once more: it may have ended as any other, and only that was not heard.
        w.mark_stale(Slot::Current);
        w.touched = order;
        let by_container = &self.by_container;
        self.ghosts.0.retain(|id, _| by_container.contains_key(id));
        self.ghosts.0.insert(id.clone(), started_at_ns);
        self.mark(&uid);
    }
}
