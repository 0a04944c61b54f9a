//! The line about reconciling that `log.reconcileEvery` asks for: what set it off, how many
//! workloads were due, what was done about them, and what it cost.

use std::fmt::Write;

use crate::domain::effect::Effect;
use crate::domain::event::Event;
use crate::domain::machine::Passed;

/// Sums up passes until there are as many as make a line.
#[derive(Debug, Default)]
pub struct ReconcileLog {
    /// 0: no line ever.
    every: u64,
    passes: u64,
    /// In the order in which they came first.
    causes: Vec<(&'static str, u64)>,
    due: u64,
    actions: u64,
    calls: u64,
    micros: u64,
}

impl ReconcileLog {
    /// A line for each `every` passes; 0: none.
    pub fn new(every: u64) -> Self {
        Self { every, ..Self::default() }
    }

    /// Takes in a step of the machine: the line, if it is time for one. A step in which nothing was
    /// due is no pass.
    pub fn note(
        &mut self,
        cause: &'static str,
        passed: Passed,
        effects: &[Effect],
        micros: u64,
    ) -> Option<String> {
        if self.every == 0 || passed.due == 0 {
            return None;
        }
        self.passes += 1;
        match self.causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => self.causes.push((cause, 1)),
        }
        self.due += passed.due;
        self.actions += passed.actions;
        self.calls += u64::try_from(effects.iter().filter(|e| is_call(e)).count()).unwrap_or(0);
        self.micros += micros;
        (self.passes == self.every).then(|| self.line())
    }

    fn line(&mut self) -> String {
        let done = std::mem::replace(self, Self::new(self.every));
        let mut causes = String::new();
        for (cause, count) in done.causes {
            let comma = if causes.is_empty() { "" } else { ", " };
            // Writing to a text cannot fail.
            let _ = write!(causes, "{comma}{cause} {count}");
        }
        let (whole, tenths) = (done.micros / 1_000, done.micros / 100 % 10);
        format!(
            "reconcile: passes={} cause=[{causes}] due={} actions={} calls={} ms={whole}.{tenths}",
            done.passes, done.due, done.actions, done.calls
        )
    }
}

/// What an event is called there.
pub fn cause(event: &Event) -> &'static str {
    match event {
        Event::Deadline => "deadline",
        Event::Stopping | Event::Drain(_) => "stop",
        Event::Ask(..) => "request",
        Event::Committed(..) => "store",
        Event::StreamUp(_) | Event::StreamDown(_) | Event::StreamLost => "stream",
        Event::Container(_) => "event",
        Event::Neighbours(_) | Event::Listing(..) => "listing",
        Event::StepDone(..) => "call",
        Event::PullProgress(..) | Event::PullSyncs(_) | Event::PullDone(..) => "pull",
        Event::Directory(_) => "directory",
        Event::Identity(_) => "engine",
        Event::ProcessGone(..) => "process",
    }
}

/// It is a call of the engine.
fn is_call(effect: &Effect) -> bool {
    matches!(effect, Effect::Run(_) | Effect::List(_) | Effect::Pull(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::effect::ListId;

    #[test]
    fn passes_are_summed_up_and_steps_without_any_are_not_counted() {
        let mut log = ReconcileLog::new(3);
        let list = [Effect::List(ListId(1)), Effect::ReopenStream];
        let mut note =
            |cause, due, actions, micros| log.note(cause, Passed { due, actions }, &list, micros);
        assert_eq!(note("listing", 10, 2, 1_500), None);
        assert_eq!(note("deadline", 0, 0, 90_000), None);
        assert_eq!(note("event", 1, 1, 100), None);
        let line = note("listing", 10, 0, 850).unwrap();
        let expected =
            "reconcile: passes=3 cause=[listing 2, event 1] due=21 actions=3 calls=3 ms=2.4";
        assert_eq!(line, expected);
        assert_eq!(note("event", 1, 1, 100), None, "the next line begins with nothing");
    }

    #[test]
    fn no_line_is_the_default() {
        let mut log = ReconcileLog::default();
        assert_eq!(log.note("event", Passed { due: 1, actions: 1 }, &[], 1), None);
        assert_eq!(log.passes, 0);
    }
}
