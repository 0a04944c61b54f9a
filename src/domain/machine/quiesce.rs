//! Quiesce: reconciling is held for a while. What is asked for is kept, what happens is read and
//! recorded, and nothing is done on the engine. Where work begins in a plan, `domain/plan.rs` has
//! the gate; what begins elsewhere (pulls that wait for a place, leftovers) asks `holds_still`.

use super::Machine;
use super::commits::Purpose;
use super::drain::ending;
use crate::domain::drain::Rank;
use crate::domain::effect::{Answer, Level, Refusal, Write};
use crate::domain::event::{AskId, Verb};
use crate::domain::lifecycle::Workload;
use crate::domain::plan::Mode;
use crate::domain::quiesce::Quiesce;
use crate::domain::time::{Span, Tick};
use crate::domain::view::{TaskId, TaskState};

impl Machine {
    /// What the agent does at the moment, for this workload.
    pub(super) fn mode(&self, w: &Workload) -> Mode {
        match (&self.drain, &self.quiesced) {
            (Some(drain), _) => Mode::Draining(drain.is_turn_of(Rank::of(w))),
            (None, Some(_)) => Mode::Quiesced,
            (None, None) => Mode::Reconciling,
        }
    }

    /// Nothing new is begun on the engine, but for looks and the stops of a drain.
    pub(super) fn holds_still(&self) -> bool {
        self.quiesced.is_some() || self.drain.is_some()
    }

    /// When it ends by itself.
    pub(super) fn quiesce_deadline(&self) -> Option<Tick> {
        self.quiesced.as_ref().map(|quiesced| quiesced.until)
    }

    /// Takes in what the store has of it. Called once, before anything else happens.
    pub(super) fn take_quiesce(&mut self, kept: Option<Quiesce>) {
        let Some(kept) = kept else { return };
        if kept.boot != self.boot {
            self.persist(Purpose::Settled, false, vec![Write::Quiesce(None)]);
            return self.log(Level::Info, "reconciling goes on: the device was started anew");
        }
        if kept.is_over(self.context()) {
            self.persist(Purpose::Settled, false, vec![Write::Quiesce(None)]);
            return self.log(Level::Info, "reconciling goes on: it was held long enough");
        }
        let left = kept.until.since(self.now.tick);
        let text = format!("reconciling is still held, for another {} s", left.0.div_ceil(1_000));
        self.log(Level::Info, text);
        self.quiesced = Some(kept);
    }

    // --- asks ----------------------------------------------------------------------------------

    pub(super) fn ask_quiesce(&mut self, ask: AskId, span: Span) {
        let quiesce = Quiesce::begin(self.quiesced.as_ref(), span, self.context());
        let write = Write::Quiesce(Some(quiesce.clone()));
        self.persist(Purpose::Quiesce(ask, Some(quiesce)), false, vec![write]);
    }

    pub(super) fn ask_resume(&mut self, ask: AskId) {
        if self.quiesced.is_none() && !self.quiesce_is_coming() {
            let text = "reconciling is not held, so there is nothing to resume".to_owned();
            return self.answer(ask, Answer::Done(text));
        }
        self.persist(Purpose::Quiesce(ask, None), false, vec![Write::Quiesce(None)]);
    }

    /// The store is to write one yet, or the end of one, and has the last word then.
    fn quiesce_is_coming(&self) -> bool {
        let mut purposes = self.store_state.commits.values();
        purposes.any(|purpose| matches!(purpose, Purpose::Quiesce(..)))
    }

    /// What was asked for is durable, or could not be written.
    pub(super) fn on_quiesce_written(
        &mut self,
        ask: AskId,
        quiesce: Option<Quiesce>,
        result: Result<(), String>,
    ) {
        if (result.is_err() || self.drain.is_some()) && !self.quiesce_is_coming() {
            // It may have been written all the same. An agent that ends stops its workloads for the
            // next one to start, so that one must not be held.
            let meant = self.quiesced.clone().filter(|_| quiesce.is_some());
            self.persist(Purpose::Settled, false, vec![Write::Quiesce(meant)]);
        }
        let answer = match (quiesce, result) {
            (Some(_), Ok(())) if self.drain.is_some() => Answer::Refused(ending()),
            (Some(_), Err(text)) => Answer::Refused(Refusal::Store(format!(
                "the store could not write that, and reconciling is not held for it: {text}"
            ))),
            (Some(quiesce), Ok(())) => Answer::Done(self.begin_quiesce(quiesce)),
            (None, result) => {
                self.end_quiesce("it was asked for");
                let done = "reconciling goes on, beginning with a full compare".to_owned();
                match result {
                    Ok(()) => Answer::Done(done),
                    Err(text) => Answer::Refused(Refusal::Store(format!(
                        "{done}; but the store could not write that, and an agent that is \
                         started before the time is over holds it again: {text}"
                    ))),
                }
            }
        };
        self.answer(ask, answer);
    }

    /// A signal is sent at once or not at all: it is no wish that could be kept.
    pub(super) fn check_not_held(&self, verb: &Verb) -> Result<(), Refusal> {
        let Some(quiesced) = self.quiesced.as_ref().filter(|_| matches!(verb, Verb::Kill(_)))
        else {
            return Ok(());
        };
        let left = quiesced.until.since(self.now.tick).0.div_ceil(1_000);
        Err(Refusal::Conflict(format!(
            "reconciling is held for another {left} s, and a signal is sent at once or not at all; \
             `bargee resume` ends that"
        )))
    }

    /// Signals that could not be sent yet are not sent any more.
    pub(super) fn drop_signals(&mut self, why: &str) {
        let taken = self.workloads.values_mut().filter_map(|w| w.kill.take());
        let tasks: Vec<TaskId> = taken.map(|(task, _)| task).collect();
        for task in tasks {
            self.end_task(task, TaskState::Failed, format!("the signal was not sent: {why}"));
        }
    }

    // --- begin and end -------------------------------------------------------------------------

    fn begin_quiesce(&mut self, quiesce: Quiesce) -> String {
        // Writing it took a moment.
        let span = Span::seconds(quiesce.until.since(self.now.tick).0.div_ceil(1_000)).words();
        let now = if self.quiesced.is_some() { "from now on " } else { "" };
        let text = format!(
            "reconciling is held {now}for {span}: what is asked for is kept, and carried out when \
             that is over, by `bargee resume`, or after a reboot"
        );
        self.quiesced = Some(quiesce);
        self.log(Level::Info, text.clone());
        self.drop_signals("reconciling is held by now");
        // Those that wait for something show it.
        self.mark_all();
        text
    }

    /// Whether its time is over.
    pub(super) fn check_quiesce(&mut self) {
        if self.quiesced.as_ref().is_some_and(|quiesced| quiesced.is_over(self.context())) {
            // One whose time is over holds nothing, so that nothing depends on this; but it must
            // not take away a longer one that is being written.
            if !self.quiesce_is_coming() {
                self.persist(Purpose::Settled, false, vec![Write::Quiesce(None)]);
            }
            self.end_quiesce("its time is over");
        }
    }

    /// Always with one full compare; while the engine is away, its return is one.
    fn end_quiesce(&mut self, why: &str) {
        let Some(quiesced) = self.quiesced.take() else { return };
        let held = self.now.tick.since(quiesced.since).0 / 1_000;
        self.log(Level::Info, format!("reconciling goes on after {held} s: {why}"));
        if self.engine.up {
            self.engine.listing = None;
            self.engine.next_list = Some(self.now.tick);
        }
        self.grant_pulls();
        self.mark_all();
    }
}
