//! What the event stream tells while a step is in flight.

use super::lifecycle::{FlightKind, Workload};
use super::names::ContainerId;

impl Workload {
    /// The start of `id` that shows on the event stream is our own, and read already.
    pub fn took_own_start(&mut self, id: &ContainerId) -> bool {
        if let Some(FlightKind::Start(slot)) = self.step.as_ref().map(|flight| flight.kind)
            && self.instance(slot).and_then(|i| i.container.as_ref()) == Some(id)
        {
            self.start_shown = true;
            return true;
        }
        self.start_expected.take_if(|(expected, _)| expected == id).is_some()
    }

    /// What was heard during the step that just ended makes what it read old.
    pub fn take_heard(&mut self) {
        for id in std::mem::take(&mut self.heard) {
            if let Some(slot) = self.slot_of(&id) {
                self.mark_stale(slot);
            }
        }
    }
}
