//! Stops that were sent, and containers that do not end by them.

use super::lifecycle::{Context, Slot, Workload};
use super::record::Desired;
use super::time::{Span, Tick};
use crate::limits;

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

    /// An agent that died, in a drain or amid an update, may have sent a stop or not. What ends
    /// soon ended by it; what goes on for longer than a stop takes will not, and its end will be
    /// its own.
    pub(super) fn doubt_stop(&mut self, context: Context) {
        let goes_on = self.stop_is_recorded(Slot::Current) && self.may_live(Slot::Current);
        let is_wanted = self.record.desired == Desired::Running;
        if !goes_on || !is_wanted || self.stop_deadline.is_some() {
            self.stop_in_doubt = None;
            return;
        }
        let wait = self.record.declared.spec.stop.grace;
        let until = context.now.tick + wait + Span(limits::KILL_AGAIN_MS);
        let until = *self.stop_in_doubt.get_or_insert(until);
        if until <= context.now.tick {
            self.stop_in_doubt = None;
            self.record.own_stop = None;
            self.dirty = true;
        }
    }
}
