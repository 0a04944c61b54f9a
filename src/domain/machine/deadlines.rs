//! What is due by itself: one deadline of the machine, taken from all that wait for a time.

use super::Machine;
use crate::domain::lifecycle::Context;
use crate::domain::names::Uid;
use crate::domain::plan;
use crate::domain::time::{Span, Tick};

impl Machine {
    /// When the machine wants [`Event::Deadline`] if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Tick> {
        let workloads = self.wakes.first().map(|(tick, _)| *tick);
        let list = self.engine.next_list.filter(|_| self.engine.listing.is_none());
        let flush = self.store_state.next_flush.filter(|_| !self.store_state.dirty.is_empty());
        let journal = self.journal.next_deadline(self.engine_is_ready() && !self.holds_still());
        let (pulls, directory) = (self.pulls.next_deadline(), self.directory_deadline());
        let (quiesce, drain) = (self.quiesce_deadline(), self.drain_deadline());
        let rare = [journal, pulls, directory, quiesce, drain, self.replaced_deadline()];
        [workloads, list, flush].into_iter().chain(rare).flatten().min()
    }

    pub(super) fn take_deadlines(&mut self) {
        while let Some((tick, uid)) = self.wakes.first().cloned() {
            if tick > self.now.tick {
                break;
            }
            self.wakes.pop_first();
            if let Some(w) = self.workloads.get_mut(&uid) {
                w.wake = None;
            }
            self.mark(&uid);
        }
        self.end_stalled_pulls();
        self.check_quiesce();
        self.check_list_deadline();
    }

    /// Has the workload wake up when its plan may change by itself.
    pub(super) fn arm(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let wake = plan::wake(w, Context { now: self.now, boot: &self.boot });
        if wake == w.wake {
            return;
        }
        if let Some(old) = w.wake {
            self.wakes.remove(&(old, uid.clone()));
        }
        w.wake = wake;
        if let Some(tick) = wake {
            self.wakes.insert((tick, uid.clone()));
        }
    }

    pub(super) fn later(&self, ms: u64) -> Tick {
        self.now.tick + Span(ms)
    }
}
