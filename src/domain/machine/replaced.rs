//! Another engine where the known one was: a disk that was not mounted in time, another data
//! directory, an engine that was installed anew. Its containers and volumes may come back, so that
//! nothing is made in their place at once.

use std::collections::BTreeSet;

use super::Machine;
use super::asks::PendingChange;
use super::commits::Purpose;
use super::directory::names;
use super::listing::is_line_of;
use crate::domain::effect::{Level, Write};
use crate::domain::lifecycle::{Context, Workload};
use crate::domain::names::{EngineId, Uid};
use crate::domain::observed::Listed;
use crate::domain::record::Desired;
use crate::domain::time::Tick;
use crate::limits;

/// The engine is another one.
const REPLACED: &str = "engineReplaced";

/// Whether the engine is the one that the containers of this store are on.
#[derive(Debug, Default)]
pub(super) struct Acquaintance {
    /// The engine that they are on.
    known: Option<EngineId>,
    /// The store has that.
    is_written: bool,
    /// The engine that answers, as it calls itself.
    present: Option<EngineId>,
    /// A listing was read since the engine may have become another one.
    met: bool,
    /// Workloads that wait for another engine.
    waiting: BTreeSet<Uid>,
    /// When the first of them need not wait any longer.
    until: Option<Tick>,
    /// They changed, or what is declared of them.
    changed: bool,
    /// The store was not asked to know the engine since that may have changed.
    is_news: bool,
}

impl Acquaintance {
    /// With the engine that the store knows.
    pub(super) fn with(known: Option<EngineId>) -> Self {
        let is_written = known.is_some();
        Self { known, is_written, ..Self::default() }
    }

    /// What is read of the engine is about the one that is known, or was found not to be.
    pub(super) fn is_met(&self) -> bool {
        self.met
    }

    /// The engine may be another one from now on.
    pub(super) fn forget(&mut self) {
        self.met = false;
        self.present = None;
    }

    /// What it calls itself.
    pub(super) fn introduce(&mut self, id: Option<EngineId>) {
        self.present = id;
    }

    /// Something was declared for this workload.
    pub(super) fn note_change(&mut self, uid: &Uid) {
        self.changed |= self.waiting.contains(uid);
    }

    /// The workload is gone.
    pub(super) fn leave(&mut self, uid: &Uid) {
        self.changed |= self.waiting.remove(uid);
    }

    fn is_other(&self) -> bool {
        self.known.as_ref().zip(self.present.as_ref()).is_some_and(|(known, now)| known != now)
    }
}

impl Machine {
    /// A workload that waited for its engine when the last agent ended goes on with that; after a
    /// boot from the beginning.
    pub(super) fn go_on_waiting(&mut self, w: &mut Workload) {
        let Some(since) = &w.record.elsewhere else { return };
        if since.boot != self.boot {
            w.go_elsewhere(Context { now: self.now, boot: &self.boot });
        }
        self.acquaintance.waiting.insert(w.record.uid.clone());
        self.acquaintance.changed = true;
    }

    pub(super) fn on_stream_lost(&mut self) {
        // One that could not be opened tells nothing new.
        if self.engine.stream_up {
            self.acquaintance.forget();
            self.engine.listing = None;
        }
    }

    /// That a container of this workload is not there says nothing: the engine may be another one.
    pub(super) fn may_be_elsewhere(&self, uid: &Uid) -> bool {
        !self.acquaintance.met || self.workloads.get(uid).is_some_and(|w| w.is_elsewhere())
    }

    /// The first listing since the engine may have become another one.
    pub(super) fn meet(&mut self, items: &[Listed]) {
        if std::mem::replace(&mut self.acquaintance.met, true) {
            return;
        }
        self.acquaintance.is_news = true;
        // What was asked for meanwhile waited for this.
        self.mark_all();
        let here = self.found_here(items);
        if here.iter().any(|uid| self.acquaintance.waiting.contains(uid)) {
            self.log(Level::Info, "the engine is the one before again: its containers are here");
            self.end_waiting(|_| true);
        }
        let recorded = self.workloads.values().filter(|w| {
            let record = &w.record;
            let made = record.current.as_ref().is_some_and(|current| current.container.is_some());
            made && record.desired != Desired::Deleted && record.elsewhere.is_none()
        });
        let recorded: Vec<Uid> = recorded.map(|w| w.record.uid.clone()).collect();
        let lost = !recorded.iter().any(|uid| here.contains(uid));
        if lost && self.tells_of_another(&recorded) {
            for uid in recorded {
                self.with(&uid, |w, context| w.go_elsewhere(context));
                self.mark(&uid);
                self.acquaintance.waiting.insert(uid);
            }
            self.acquaintance.changed = true;
            // What is made on this engine from now on makes it look like the right one.
            self.store_state.next_flush = None;
            self.store_state.urgent = true;
        }
    }

    /// Whether the engine is another one if it has none of the containers of `recorded`.
    fn tells_of_another(&self, recorded: &[Uid]) -> bool {
        let one = &self.acquaintance;
        if one.is_other() {
            return !recorded.is_empty();
        }
        if self.engine.up {
            // What is gone was taken away by somebody just now.
            return false;
        }
        // It said before who it is, and does not now.
        let keeps_silent = one.known.is_some() && one.present.is_none();
        let enough = if keeps_silent { 1 } else { limits::ENGINE_REPLACED_CONTAINERS };
        // Containers of jobs that are done are cleaned away like any litter.
        let is_missed = |uid: &Uid| self.workloads.get(uid).is_some_and(|w| !w.has_finished());
        recorded.len() >= enough && recorded.iter().any(is_missed)
    }

    /// Workloads of which the engine has a container, but for successors that may just have been
    /// made.
    fn found_here(&self, items: &[Listed]) -> BTreeSet<Uid> {
        let mut here = BTreeSet::new();
        for line in items {
            let by_label = || {
                let ours = line.tags.store == self.store && !line.misnamed;
                ours.then_some(&line.tags.uid)
            };
            let uid = self.by_container.get(&line.id).or_else(by_label);
            let Some(w) = uid.and_then(|uid| self.workloads.get(uid)) else { continue };
            if w.record.next.as_ref().is_none_or(|next| !is_line_of(line, next)) {
                here.insert(w.record.uid.clone());
            }
        }
        here
    }

    /// Workloads that `may` wait no longer, which are due then; their keys.
    fn end_waiting(&mut self, may: impl Fn(&Workload) -> bool) -> Vec<String> {
        let mut keys = Vec::new();
        for uid in self.acquaintance.waiting.clone() {
            let Some(w) = self.workloads.get_mut(&uid).filter(|w| may(w)) else { continue };
            w.come_back();
            keys.push(w.record.declared.key.to_string());
            self.acquaintance.leave(&uid);
            self.mark(&uid);
        }
        keys
    }

    /// Workloads without named volumes wait for a while only.
    pub(super) fn end_waiting_in_time(&mut self) {
        let now = self.now.tick;
        if !self.engine_is_ready() || self.acquaintance.until.is_none_or(|at| at > now) {
            return;
        }
        let keys = self.end_waiting(|w| w.elsewhere_until().is_some_and(|at| at <= now));
        if !keys.is_empty() {
            let minutes = limits::ENGINE_REPLACED_MS / 60_000;
            let keys = names(&keys);
            let text = format!(
                "the engine before did not come back in {minutes} minutes; made anew: {keys}"
            );
            self.log(Level::Warn, text);
        }
    }

    /// When the first of those that wait need not any longer.
    pub(super) fn replaced_deadline(&self) -> Option<Tick> {
        self.acquaintance.until.filter(|_| self.engine_is_ready())
    }

    /// What it means that the engine is the right one; `None`: nobody doubts that.
    pub(super) fn confirm_engine(&self) -> Option<(String, Vec<PendingChange>)> {
        let waiting = self.acquaintance.waiting.iter().filter_map(|uid| self.workloads.get(uid));
        let waiting: Vec<&Workload> = waiting.map(|w| &**w).filter(|w| w.is_elsewhere()).collect();
        if waiting.is_empty() {
            return None;
        }
        let keys: Vec<String> = waiting.iter().map(|w| w.record.declared.key.to_string()).collect();
        let text = format!(
            "the engine is confirmed; what was on another is made anew, with empty volumes: {}",
            names(&keys)
        );
        let accepted = waiting.iter().map(|w| PendingChange::AcceptEngine(w.record.uid.clone()));
        Some((text, accepted.collect()))
    }

    /// It waits no longer, which is durable.
    pub(super) fn accepted_engine(&mut self, uid: &Uid) {
        self.with(uid, |w, _| w.come_back());
        self.acquaintance.leave(uid);
        self.mark(uid);
    }

    /// Tells what changed about it, and has the store know the engine once nothing waits for
    /// another.
    pub(super) fn tend_engine(&mut self) {
        if std::mem::take(&mut self.acquaintance.changed) {
            self.acquaintance.is_news = true;
            self.show_replaced();
        }
        let one = &mut self.acquaintance;
        let is_settled = one.is_news && one.met && one.waiting.is_empty();
        let Some(present) = one.present.as_ref().filter(|_| is_settled) else { return };
        one.is_news = false;
        if one.known.as_ref() != Some(present) || !one.is_written {
            let id = present.clone();
            one.known = Some(id.clone());
            one.is_written = true;
            self.persist(Purpose::Engine, false, vec![Write::KnowEngine(id)]);
        }
    }

    /// The store did not take it: it is told again with the next acquaintance.
    pub(super) fn on_engine_known(&mut self, written: bool) {
        self.acquaintance.is_written = written;
    }

    fn show_replaced(&mut self) {
        let waiting = self.acquaintance.waiting.iter().filter_map(|uid| self.workloads.get(uid));
        let waiting: Vec<&Workload> = waiting.map(|w| &**w).filter(|w| w.is_elsewhere()).collect();
        self.acquaintance.until = waiting.iter().filter_map(|w| w.elsewhere_until()).min();
        if waiting.is_empty() {
            if self.conditions.remove(REPLACED).is_some() {
                self.log(Level::Info, "no workload waits for another engine any more");
            }
            return;
        }
        let keys = |volumes: bool| {
            let some = waiting.iter().filter(|w| w.elsewhere_until().is_none() == volumes);
            some.map(|w| w.record.declared.key.to_string()).collect::<Vec<_>>()
        };
        let text = self.replaced_text(&keys(false), &keys(true));
        if self.conditions.get(REPLACED) != Some(&text) {
            self.set_condition(REPLACED, text);
        }
    }

    fn replaced_text(&self, in_time: &[String], confirmed: &[String]) -> String {
        let one = &self.acquaintance;
        let mut text = match (&one.known, &one.present) {
            (Some(known), Some(now)) if known != now => format!(
                "the engine is another one (now {now}, before {known}), and has none of the \
                 containers that were made"
            ),
            _ => "the engine has none of the containers that were made on it".to_owned(),
        };
        text.push_str("; if the one before comes back, or its disk, they go on");
        if !in_time.is_empty() {
            let minutes = limits::ENGINE_REPLACED_MS / 60_000;
            let keys = names(in_time);
            text.push_str(&format!("; made anew if that takes more than {minutes} min: {keys}"));
        }
        if !confirmed.is_empty() {
            let keys = names(confirmed);
            text.push_str(&format!(
                "; with named volumes, and so only by `bargee confirm`: {keys}"
            ));
        }
        text
    }
}
