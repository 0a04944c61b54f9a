//! A drain: nothing is started from its beginning on, and the next agent starts again what ran
//! before, and counts nothing of it.

use bargee::domain::effect::{Effect, Op};
use bargee::domain::names::Uid;
use bargee::domain::view::State;

use super::containers::is_ours;
use crate::world::World;

/// The agent whose workloads are being stopped begins nothing.
pub fn wants(effect: &Effect) -> Option<(&'static str, String)> {
    let begins = match effect {
        Effect::Run(step) => matches!(step.op, Op::Start(..) | Op::Create(_)),
        Effect::Pull(..) => true,
        _ => false,
    };
    begins.then(|| ("drain", format!("{}, in a drain", crate::report::effect(effect))))
}

/// Longer than a start of everything takes.
const PAUSE_MS: u64 = 120_000;

impl World {
    /// One drain in a world without faults, from one agent to the next.
    pub fn drain_once(&mut self) {
        self.note(|| "=== all is drained".to_owned());
        let before = self.counts();
        self.drain_agent();
        let left = self.engine.model.all().find(|m| m.is_live() && is_ours(m));
        if let Some(name) = left.map(|made| made.name.clone()) {
            return self.blame("drain", format!("{name} lives after the drain"));
        }
        self.pass(1_000);
        self.start_agent();
        self.pass(PAUSE_MS);
        let after = self.counts();
        if before.iter().any(|one| !after.contains(one)) {
            self.blame("drain", format!("restarts before and after it: {before:?}, {after:?}"));
        }
    }

    /// What runs, with its restarts so far. What stands in for a failed update cannot be made again
    /// if its network is gone.
    fn counts(&self) -> Vec<(Uid, u64)> {
        let views = self.agent.iter().flat_map(|agent| agent.views.values());
        let running =
            views.filter(|view| view.state == State::RunningOk && view.failed_update.is_none());
        running.map(|view| (view.uid.clone(), view.restart_count)).collect()
    }
}
