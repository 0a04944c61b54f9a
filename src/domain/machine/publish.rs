//! What is shown: views, transitions, the status. Only what changed is published.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Machine;
use crate::domain::effect::Effect;
use crate::domain::lifecycle::{Context, Workload};
use crate::domain::names::Uid;
use crate::domain::show;
use crate::domain::view::{State, Status, Transition, View};

impl Machine {
    pub(super) fn publish(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let pull = self.pulls.progress(uid);
        let context = Context { now: self.now, boot: &self.boot };
        let view = show::view(w, context, pull);
        let before = w.view.as_ref();
        if before.is_some_and(|before| **before == view) {
            return;
        }
        let from = before.map(|before| before.state);
        let health = before.and_then(|before| before.health);
        let view = Arc::new(view);
        w.view = Some(view.clone());
        let changes = from != Some(view.state) || view.health.is_some() && view.health != health;
        let transition = changes.then(|| self.transition(&view, from, view.state));
        // The state first: who hears of a change and asks must not be shown what was before.
        self.out.push(Effect::Publish(uid.clone(), Some(view)));
        self.out.extend(transition);
    }

    pub(super) fn publish_removed(&mut self, w: &Workload) {
        self.out.push(Effect::Publish(w.record.uid.clone(), None));
        if let Some(view) = &w.view {
            let transition = self.transition(view, Some(view.state), State::Removed);
            self.out.push(transition);
        }
    }

    fn transition(&self, view: &View, from: Option<State>, to: State) -> Effect {
        Effect::Transition(Transition {
            at_ms: self.now.wall_ms,
            at: self.now.tick,
            uid: view.uid.clone(),
            key: view.declared.key.to_string(),
            generation: view.generation,
            from,
            to,
            health: view.health.filter(|_| to != State::Removed),
            info: if to == State::Removed { String::new() } else { view.info.clone() },
            container: view.container.clone(),
        })
    }

    pub(super) fn publish_status(&mut self) {
        let status = Status {
            engine_up: self.engine.up,
            engine: self.engine.info.clone(),
            engine_error: self.engine.error.clone(),
            away_since: self.engine.away_since,
            stream_up: self.engine.stream_up && !self.engine.stream_doubted,
            listed: self.engine.listed,
            recovering: self.recovering(),
            journal: self.journal.counts(),
            tasks: self.tasks.open(),
            quiesced: self.quiesced.clone(),
            manifests: self.directory.shown(),
            conditions: self.all_conditions(),
        };
        if *self.status != status {
            self.status = Arc::new(status);
            self.out.push(Effect::PublishStatus(self.status.clone()));
        }
    }

    fn all_conditions(&self) -> BTreeMap<&'static str, String> {
        let mut conditions = self.conditions.clone();
        if !self.store_state.whole && !self.engine.unclaimed.is_empty() {
            let names = self.engine.unclaimed.values().map(|l| l.tags.instance.as_str());
            let text = format!(
                "the store is new or lost something, and containers that it does not know are \
                 here: {}; they are left alone until a workload of the same name and content is \
                 declared, `bargee adopt` takes one over for a workload of its name, or somebody \
                 removes them with the engine",
                names.collect::<Vec<_>>().join(", ")
            );
            conditions.insert("storeMissing", text);
        }
        conditions
    }
}
