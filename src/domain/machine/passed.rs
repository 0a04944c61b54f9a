//! What passes came to, for whoever tells of it.

use super::Machine;

/// What passes came to since somebody asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Workloads that were due.
    pub due: u64,
    /// Decisions that were carried out.
    pub actions: u64,
}

impl Machine {
    /// What the passes since the last call came to.
    pub fn take_passed(&mut self) -> Passed {
        std::mem::take(&mut self.passed)
    }
}
