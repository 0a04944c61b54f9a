//! Leftovers come last in a pass: what has ended and is only to be removed holds up nothing that is
//! to run.

use std::collections::BTreeSet;
use std::mem;

use super::Machine;
use super::starts::Turn;
use crate::domain::lifecycle::{Slot, Workload};
use crate::domain::observed::Listed;
use crate::domain::plan::Decision;

/// What is removed at the end of a pass.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Workloads with a container that has ended.
    workloads: BTreeSet<Turn>,
    /// Containers of this store that no record knows, if a listing was read.
    orphans: Option<Vec<Listed>>,
    /// It is their turn.
    is_due: bool,
}

impl Leftovers {
    /// Whether `decision` for `w` is put off to the end of the pass.
    pub(super) fn take(&mut self, w: &Workload, decision: &Decision) -> bool {
        // One that lives keeps its successor waiting.
        let waits = *decision == Decision::Remove && !w.may_live(Slot::Discard) && !self.is_due;
        if waits {
            self.workloads.insert(Turn::of(w));
        }
        waits
    }

    /// What a listing showed.
    pub(super) fn set_orphans(&mut self, orphans: Vec<Listed>) {
        self.orphans = Some(orphans);
    }
}

impl Machine {
    pub(super) fn clear_leftovers(&mut self) {
        self.leftovers.is_due = true;
        for turn in mem::take(&mut self.leftovers.workloads) {
            self.attend(&turn.uid);
        }
        self.leftovers.is_due = false;
        if let Some(orphans) = self.leftovers.orphans.take() {
            self.sweep(&orphans);
        }
    }
}
