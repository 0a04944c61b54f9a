//! A stop that was recorded and perhaps never sent: the agent died in between, and the next one
//! wants something else by now.

use super::lifecycle::{Context, Slot, Workload};
use super::observed::Phase;
use super::time::Span;
use crate::limits;

impl Workload {
    /// A run that goes on for as long as a stop takes was not stopped. Its end is one of its own,
    /// whenever that comes.
    pub(super) fn settle_own_stop(&mut self, context: Context) {
        let runs = self.seen.reading().is_some_and(|reading| reading.phase == Phase::Running);
        let doubtful = runs && self.stop_deadline.is_none() && self.stop_is_recorded(Slot::Current);
        if !doubtful {
            self.own_stop_void_at = None;
            return;
        }
        let takes = Span(self.record.declared.spec.stop.grace.0 + limits::KILL_AGAIN_MS);
        let void_at = *self.own_stop_void_at.get_or_insert(context.now.tick + takes);
        if void_at <= context.now.tick {
            self.own_stop_void_at = None;
            self.record.own_stop = None;
            self.dirty = true;
        }
    }
}
