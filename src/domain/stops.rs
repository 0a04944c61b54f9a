//! Stops that were sent, and containers that do not end by them.

use super::lifecycle::{Slot, Workload};
use super::time::Tick;

impl Workload {
    /// When the stops that are under way are over.
    pub fn deadlines_of_stops(&mut self) -> [&mut Option<Tick>; 3] {
        [&mut self.stop_deadline, &mut self.discard_deadline, &mut self.previous_deadline]
    }

    /// A stop of the very run that was last seen in `slot` was recorded.
    pub fn stop_is_recorded(&self, slot: Slot) -> bool {
        let stop = self.record.own_stop.as_ref().zip(self.seen(slot).reading());
        stop.is_some_and(|(stop, run)| {
            stop.container == run.id && stop.started_at_ns == run.started_at_ns
        })
    }

    /// A stop was sent to the present run, which has not ended yet.
    pub fn is_being_stopped(&self) -> bool {
        let recorded = self.stop_deadline.is_some() && self.stop_is_recorded(Slot::Current);
        recorded && self.may_live(Slot::Current)
    }

    /// What was sent to the run that is being stopped, and what follows at the deadline.
    pub fn stop_info(&self) -> &'static str {
        // A process that waits for a disk or a server that is gone does not end by SIGKILL either.
        if self.killed.is_some() && self.killed == self.record.own_stop {
            "SIGKILL was sent and it still runs, it is sent again"
        } else {
            "its stop was sent, SIGKILL follows"
        }
    }
}
