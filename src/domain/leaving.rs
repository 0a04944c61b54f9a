//! Containers that leave by somebody else's hand: gone, or for long on their way out.

use super::lifecycle::{Context, Slot, Workload};
use super::observed::{Phase, Seen};
use super::record::Desired;
use super::time::{Span, Tick};
use crate::limits;

/// Whether the current container is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leaving {
    /// It is not.
    #[default]
    No,
    /// Somebody else is removing it, and was first seen to at that time.
    Since(Tick),
    /// For so long that it is not waited for.
    Hangs,
}

impl Workload {
    /// Takes in that the container in `slot` is not there.
    pub fn read_absent(&mut self, slot: Slot, context: Context) {
        self.unknowns = 0;
        self.retry_at = None;
        match slot {
            // Reserved, not made (any more): the name is free to be used.
            Slot::Next => {
                self.set_seen(slot, Seen::Absent);
                self.unreserve();
            }
            Slot::Discard => self.drop_discard(),
            Slot::Previous => self.lose_previous(),
            Slot::Current => {
                if self.record.desired == Desired::Running {
                    let on_probation = self.on_probation();
                    self.judge_vanished(context);
                    if on_probation && !self.on_probation() {
                        // The one before it is in its place already.
                        return;
                    }
                } else {
                    self.record.current = None;
                    self.record.own_stop = None;
                    self.stop_deadline = None;
                    self.dirty = true;
                }
                self.set_seen(slot, Seen::Absent);
            }
        }
    }

    /// Notes that somebody else is removing the current container. Engines have been seen to be
    /// never done with that: after a while it is judged by the exit that it had.
    pub(super) fn note_removing(&mut self, slot: Slot, phase: &Phase, context: Context) {
        if slot != Slot::Current {
            return;
        }
        let now = context.now.tick;
        self.leaving = match (phase, self.leaving) {
            (Phase::Removing, Leaving::No) => Leaving::Since(now),
            (Phase::Removing, Leaving::Since(at)) if now.since(at) >= Span(limits::REMOVING_MS) => {
                Leaving::Hangs
            }
            (Phase::Removing, leaving) => leaving,
            _ => Leaving::No,
        };
        // What never ran has no exit.
        let ran = self.seen.reading().is_some_and(|reading| reading.started_at_ns != 0);
        if ran && self.leaving == Leaving::Hangs {
            self.judge_exit(context);
        }
    }
}
