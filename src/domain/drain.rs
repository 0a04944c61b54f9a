//! Before the agent ends it may have to stop its workloads: in the reverse order of their starts,
//! side by side where that allows it, and nothing else.

use std::cmp::Reverse;

use super::lifecycle::{FlightKind, Slot, Workload};
use super::plan::{Decision, look, plan_discard, stop, stop_previous};
use super::time::Tick;

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
