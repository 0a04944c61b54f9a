//! The end of the agent. At a shutdown what just ended was interrupted.
//!
//! The drain: before the agent ends it stops its workloads, those of one rank side by side, the
//! next rank when they have ended. Each stop is recorded as the agent's own before it is sent, so
//! that it counts nothing and the next agent starts them all again.

use std::collections::{BTreeMap, BTreeSet};

use super::Machine;
use crate::domain::drain::{Rank, has_ended};
use crate::domain::effect::{Answer, Effect, Level, Refusal};
use crate::domain::lifecycle::{Context, Workload};
use crate::domain::names::Uid;
use crate::domain::time::{Span, Tick};
use crate::limits;

/// How far the drain is.
#[derive(Debug)]
pub(super) struct Drain {
    per_container: Option<Span>,
    began: Tick,
    /// Those that have not ended, by when they are stopped.
    left: BTreeSet<(Rank, Uid)>,
    /// The places that they have among those: a declaration that was on its way may change them.
    places: BTreeMap<Uid, Rank>,
    total: usize,
    /// Whose turn it is.
    turn: Option<Rank>,
    /// The time is over: the rest is killed, in no order.
    late: bool,
    /// Stops can be neither recorded nor sent, and are not waited for any longer than this.
    blocked_until: Option<Tick>,
    over: bool,
}

impl Drain {
    /// It has not ended.
    fn enter(&mut self, uid: &Uid, rank: Rank) {
        self.leave(uid);
        self.left.insert((rank, uid.clone()));
        self.places.insert(uid.clone(), rank);
    }

    /// It has ended.
    fn leave(&mut self, uid: &Uid) {
        if let Some(rank) = self.places.remove(uid) {
            self.left.remove(&(rank, uid.clone()));
        }
    }

    pub(super) fn is_turn_of(&self, rank: Rank) -> bool {
        !self.over && (self.late || self.turn == Some(rank))
    }

    /// The time is over: what still lives is killed.
    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    /// How long a stop may take that the manifest gives `grace`.
    pub(super) fn grace(&self, grace: Span) -> Span {
        self.per_container.unwrap_or(grace)
    }

    fn ends_by(&self) -> Tick {
        let wait = if self.late { limits::DRAIN_KILL_MS } else { 0 };
        self.began + Span(limits::DRAIN_MS + wait)
    }

    fn next_deadline(&self) -> Option<Tick> {
        let deadlines = [Some(self.ends_by()), self.blocked_until];
        deadlines.into_iter().flatten().min().filter(|_| !self.over)
    }
}

impl Machine {
    pub(super) fn drain_deadline(&self) -> Option<Tick> {
        self.drain.as_ref().and_then(Drain::next_deadline)
    }

    /// At a shutdown of the device the containers are told first.
    pub(super) fn on_stopping(&mut self) {
        let context = Context { now: self.now, boot: &self.boot };
        let mut forgiven = BTreeSet::new();
        for (uid, w) in &mut self.workloads {
            w.ending = true;
            if w.forgive_recent_exits(context) {
                forgiven.insert(uid.clone());
            }
        }
        for uid in &forgiven {
            // Nothing is planned any more.
            self.note_dirty(uid);
            self.publish(uid);
        }
    }

    pub(super) fn on_drain(&mut self, per_container: Option<Span>) {
        if self.drain.is_some() {
            return;
        }
        if self.quiesced.is_some() {
            // The next agent is held, too: nobody would start them again.
            self.log(Level::Info, "no drain while reconciling is held: workloads are left running");
            return self.out.push(Effect::Drained);
        }
        self.on_stopping();
        let left = self.workloads.values().filter(|w| !has_ended(w));
        let left: BTreeSet<_> = left.map(|w| (Rank::of(w), w.record.uid.clone())).collect();
        let text = format!(
            "draining: stopping {} within {}; a second signal leaves the rest running",
            workloads(left.len()),
            Span(limits::DRAIN_MS).words()
        );
        self.log(Level::Info, text);
        self.drain = Some(Drain {
            per_container,
            began: self.now.tick,
            total: left.len(),
            places: left.iter().map(|(rank, uid)| (uid.clone(), *rank)).collect(),
            left,
            turn: None,
            late: false,
            blocked_until: None,
            over: false,
        });
        let text = "the agent was told to end, and stops its workloads before that";
        self.conditions.insert("draining", text.to_owned());
        self.refuse_waiting();
        self.drop_signals("the agent ends");
        self.leave_all_pulls();
        self.shorten_stops(per_container);
        self.mark_all();
    }

    /// Changes are not accepted any more.
    pub(super) fn check_not_ending(&self) -> Result<(), Refusal> {
        if self.drain.is_some() { Err(ending()) } else { Ok(()) }
    }

    fn refuse_waiting(&mut self) {
        for (ask, _) in std::mem::take(&mut self.waiting_asks) {
            self.answer(ask, Answer::Refused(ending()));
        }
    }

    /// Stops that are under way take no longer than those to come.
    fn shorten_stops(&mut self, most: Option<Span>) {
        let Some(most) = most else { return };
        let by = self.now.tick + most;
        for w in self.workloads.values_mut() {
            for deadline in w.deadlines_of_stops() {
                *deadline = deadline.map(|at| at.min(by));
            }
        }
    }

    /// Whether the workload has ended, or lives again.
    pub(super) fn note_drained(&mut self, uid: &Uid) {
        let (Some(drain), Some(w)) = (&mut self.drain, self.workloads.get(uid)) else { return };
        if has_ended(w) {
            drain.leave(uid);
        } else {
            drain.enter(uid, Rank::of(w));
        }
    }

    /// The workload is gone.
    pub(super) fn leave_drain(&mut self, w: &Workload) {
        if let Some(drain) = &mut self.drain {
            drain.leave(&w.record.uid);
        }
    }

    /// Gives the turn to the next rank, kills when the time is over, and ends.
    pub(super) fn tend_drain(&mut self) {
        let able = self.engine_is_ready() && self.store_writes();
        let give_up = self.later(limits::DRAIN_BLOCKED_MS);
        let now = self.now.tick;
        let Some(drain) = self.drain.as_mut().filter(|drain| !drain.over) else { return };
        drain.blocked_until =
            if able { None } else { Some(drain.blocked_until.unwrap_or(give_up)) };
        if !drain.late && drain.ends_by() <= now {
            self.kill_the_rest();
        }
        self.take_turns();
        let Some(drain) = &self.drain else { return };
        let blocked = drain.blocked_until.is_some_and(|at| at <= now);
        if drain.left.is_empty() || blocked || (drain.late && drain.ends_by() <= now) {
            self.end_drain();
        }
    }

    fn take_turns(&mut self) {
        loop {
            let Some(drain) = &mut self.drain else { return };
            let next = drain.left.first().map(|(rank, _)| *rank);
            if next == drain.turn {
                return;
            }
            drain.turn = next;
            let theirs = drain.left.iter().filter(|(rank, _)| Some(*rank) == next);
            let theirs: Vec<Uid> = theirs.map(|(_, uid)| uid.clone()).collect();
            theirs.iter().for_each(|uid| self.mark(uid));
            self.pass();
        }
    }

    fn kill_the_rest(&mut self) {
        let now = self.now.tick;
        let Some(drain) = &mut self.drain else { return };
        drain.late = true;
        let left: Vec<Uid> = drain.left.iter().map(|(_, uid)| uid.clone()).collect();
        for uid in &left {
            self.with(uid, |w, _| {
                for deadline in w.deadlines_of_stops() {
                    *deadline = deadline.map(|at| at.min(now));
                }
            });
            self.mark(uid);
        }
        self.pass();
    }

    fn end_drain(&mut self) {
        let cause = if !self.store_writes() {
            ": the store cannot write that they are stopped"
        } else if !self.engine_is_ready() {
            ": the engine is away"
        } else {
            ""
        };
        let Some(drain) = &mut self.drain else { return };
        drain.over = true;
        let took = self.now.tick.since(drain.began).0 / 1_000;
        let text = match drain.left.len() {
            0 => format!("drained: {} stopped in {took} s", workloads(drain.total)),
            left => {
                let names = drain.left.iter().take(limits::MANIFEST_NAMES_TOLD);
                let names = names.filter_map(|(_, uid)| self.workloads.get(uid));
                let names: Vec<String> = names.map(|w| w.record.declared.key.to_string()).collect();
                format!(
                    "the drain ends after {took} s{cause}; {} not stopped: {}",
                    workloads(left),
                    names.join(", ")
                )
            }
        };
        let level = if drain.left.is_empty() { Level::Info } else { Level::Warn };
        self.log(level, text);
        self.out.push(Effect::Drained);
    }
}

/// To whoever wants a change.
pub(super) fn ending() -> Refusal {
    let text = "the agent ends, and stops its workloads before that; nothing is changed any more, \
                and the next agent starts them again";
    Refusal::Ending(text.to_owned())
}

fn workloads(count: usize) -> String {
    if count == 1 { "1 workload".to_owned() } else { format!("{count} workloads") }
}
