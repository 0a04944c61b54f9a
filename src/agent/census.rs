//! Whether the processes of running workloads live. Engines have been seen to go on saying
//! `running` for ever when what supervises a container was killed together with it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::domain::names::ContainerId;
use crate::limits;
use crate::os::cgroup;

/// Looks for processes, all of them once a minute.
#[derive(Debug)]
pub struct Census {
    proc: PathBuf,
    round: u64,
    /// One of them was found. Until then the agent may look at another `/proc` than the engine, and
    /// nothing follows from what it does not find.
    sees: bool,
    /// Those that were not found the last time.
    missed: BTreeSet<(ContainerId, u32)>,
}

impl Census {
    /// Looks through the `/proc` that is mounted at `proc`.
    pub fn new(proc: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into(), round: 0, sees: false, missed: BTreeSet::new() }
    }

    /// Looks for all processes when that is due, and else for those that were not found the last
    /// time. What was not found twice in a row is gone.
    pub fn take<'a>(
        &mut self,
        running: impl Iterator<Item = (&'a ContainerId, u32)>,
    ) -> Vec<(ContainerId, u32)> {
        let all = self.round.is_multiple_of(limits::CENSUS_SAMPLES);
        self.round += 1;
        let before = std::mem::take(&mut self.missed);
        if !all && before.is_empty() {
            return Vec::new();
        }
        let mut gone = Vec::new();
        for (id, pid) in running {
            let one = (id.clone(), pid);
            let again = before.contains(&one);
            if !all && !again {
                continue;
            }
            if cgroup::lives(&self.proc, pid, id.as_str()) {
                self.sees = true;
            } else if again {
                gone.push(one);
            } else {
                self.missed.insert(one);
            }
        }
        if !self.sees {
            self.missed.clear();
        }
        gone
    }
}

#[cfg(test)]
mod tests;
