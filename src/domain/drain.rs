//! Before the agent ends it may have to stop its workloads: in the reverse order of their starts,
//! side by side where that allows it, and nothing else.

use std::cmp::Reverse;

use super::lifecycle::{Context, FlightKind, Slot, Workload};
use super::plan::{Decision, look, plan_discard, stop, stop_previous};
use super::record::Desired;
use super::time::{Span, Tick};
use crate::limits;

/// The place of a workload in the order of stops; those of one rank are stopped side by side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank(Reverse<(u8, u32)>);

impl Rank {
    /// What starts last is stopped first. This is the one place where the order is made.
    pub fn of(w: &Workload) -> Self {
        Self(Reverse((w.record.source.turn(), w.record.declared.spec.schedule)))
    }
}

/// What is done for a workload whose turn it is, or is not yet.
pub fn plan(w: &Workload, turn: bool, now: Tick) -> Decision {
    if let Some(look) = look(w, &[Slot::Current, Slot::Next, Slot::Previous]) {
        return look;
    }
    if !turn || has_ended(w) {
        return Decision::Nothing;
    }
    for slot in [Slot::Next, Slot::Current] {
        if let Some(decision) = stop(w, slot, now) {
            return decision;
        }
    }
    match w.may_live(Slot::Previous) {
        true => stop_previous(w, now),
        false => plan_discard(w, now),
    }
}

/// No process of it lives, and none is about to.
pub fn has_ended(w: &Workload) -> bool {
    let starts = w.step.as_ref().is_some_and(|f| matches!(f.kind, FlightKind::Start(_)));
    let lives = [Slot::Current, Slot::Next, Slot::Previous].into_iter().any(|s| w.may_live(s));
    // What is on another engine cannot be stopped here.
    !(starts || !w.is_elsewhere() && (lives || w.discards_may_live()))
}

impl Workload {
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
