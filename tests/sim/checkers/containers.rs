//! What the agent does to containers, held against what the engine really has.

use std::sync::Arc;

use bargee::domain::effect::{Effect, Op, Step, StepId};
use bargee::domain::intent::Entry;
use bargee::domain::names::ContainerId;
use bargee::domain::observed::Phase;
use bargee::domain::record::Desired;
use bargee::domain::view::State;

use crate::agent::STORE;
use crate::memory_engine::Made;
use crate::world::{Cause, World};

type Found = Option<(&'static str, String)>;

/// Made by this store, with labels that count.
pub fn is_ours(made: &Made) -> bool {
    made.owner().is_some() && made.tags.as_ref().is_some_and(|tags| tags.store.as_str() == STORE)
}

impl World {
    /// Two containers of one workload, or of one key, live at the same time.
    ///
    /// That is nobody's fault where one of the two was started by hand, or by a call that the
    /// engine carried out after the agent had been told that it failed, or had died: by then the
    /// agent may have looked, seen that it does not run, and gone on. A call whose answer was lost,
    /// or that only takes long, is no excuse: the agent has to look before it goes on.
    ///
    /// Nor can an agent see what no row and no listing shows.
    pub fn twins(&self, id: &ContainerId) -> Found {
        let made = self.engine.model.find(id.as_str()).filter(|made| is_ours(made))?;
        let tags = made.tags.as_ref()?;
        let wanted = |made: &Made| self.engine.runs.get(&made.id).is_some_and(|run| run.wanted);
        if !wanted(made) {
            return None;
        }
        let mut others = self.engine.model.all().filter(|other| {
            let same = other.tags.as_ref();
            let same = same.is_some_and(|o| o.uid == tags.uid || o.key == tags.key);
            same && other.id != *id && other.is_live() && is_ours(other)
        });
        let twin = others.find(|other| wanted(other) && !self.is_out_of_sight(other))?;
        Some(("twins", format!("{} is started while {} lives", made.name, twin.name)))
    }

    /// It was made while the store could not write, so that only listings show it, and they did
    /// not.
    fn is_out_of_sight(&self, made: &Made) -> bool {
        let row = made.owner().and_then(|uid| self.store.kept.rows.get(uid));
        let recorded = row.is_some_and(|row| {
            let mut known = row.current.iter().chain(&row.next).chain(&row.discards);
            known.any(|instance| instance.name.as_str() == made.name)
        });
        !recorded && self.engine.left_out.contains(&made.id)
    }

    /// A start is wanted of a container whose workload is wanted otherwise, as was acknowledged.
    pub fn check_wanted(&self, id: &ContainerId) -> Found {
        let made = self.engine.model.find(id.as_str())?;
        let desired = self.checkers.promises.desired(made.owner()?)?;
        (desired != Desired::Running)
            .then(|| ("desired", format!("{} is started, and is wanted {desired:?}", made.name)))
    }

    /// A removal is wanted of a container that has proved itself, and that stopped only because the
    /// agent stopped it or still runs, while nothing that ran in its place has proved itself. A
    /// container that lost its network can only be made anew.
    ///
    /// Of two that run, one of them by a hand, either may go.
    pub fn check_replaced(&self, target: &str) -> Found {
        let made = self.engine.model.find(target).filter(|made| is_ours(made))?;
        let uid = made.owner()?;
        if self.checkers.promises.desired(uid)? != Desired::Running {
            return None;
        }
        let run = self.engine.runs.get(&made.id)?;
        let works = match run.ended {
            // What somebody has frozen does not work, for all that an agent can tell.
            None => made.phase != Phase::Paused,
            Some((cause, ..)) => cause == Cause::Signal && !self.engine.netless.contains(&made.id),
        };
        let proved = self.engine.runs.iter().any(|(id, other)| {
            let is_later = *id != made.id && other.began_at >= run.began_at;
            is_later && self.engine.owners.get(id) == Some(uid) && other.proved_by(self.now)
        });
        let twin = |other: &Made| other.owner() == Some(uid) && other.id != made.id;
        let by_hand = |m: &Made| self.engine.runs.get(&m.id).is_none_or(|run| !run.wanted);
        let replaced =
            proved || self.engine.model.all().any(|m| twin(m) && m.is_live() && by_hand(m));
        // What a listing left out may have got a twin, of which the other one was kept.
        // And what no row came to know before its agent died goes, whatever it did meanwhile.
        let replays = &self.agent.as_ref()?.replays;
        let is_replayed = replays.iter().any(|instance| instance.as_str() == made.name);
        let was_hidden = is_replayed || self.engine.ever_left_out.contains(&made.id);
        if was_hidden
            || !works
            || run.frozen
            || !run.wanted
            || !run.lasted_in_sight(self.now)
            || replaced
        {
            return None;
        }
        Some(("working", format!("{} works, and is removed for nothing that works", made.name)))
    }

    /// Keeps in mind when a run is shown, and when its end was wanted.
    pub fn note_run(&mut self, effect: &Effect) {
        match effect {
            Effect::Publish(_, Some(view)) if view.state == State::RunningOk => {
                let run = view.container.as_ref().and_then(|id| self.engine.runs.get_mut(id));
                if let Some(run) = run.filter(|run| run.ended.is_none()) {
                    run.shown_at.get_or_insert(self.now);
                    run.stop_at = None;
                }
            }
            Effect::Run(Step { op: Op::Signal(id, _), .. }) => {
                if let Some(run) = self.engine.runs.get_mut(id) {
                    run.stop_at.get_or_insert(self.now);
                }
            }
            _ => {}
        }
    }

    /// People are shown an entry about this instance: it was durable. A drop by an operator whose
    /// outcome the store did not know has taken it since, perhaps.
    fn shows_entry_of(&self, name: &str) -> bool {
        let is_about = |entry: &Arc<Entry>| {
            entry.intent.instance().is_some_and(|instance| instance.as_str() == name)
        };
        self.agent.as_ref().is_some_and(|agent| agent.entries.values().any(is_about))
    }

    /// No intent, no step; but a store that cannot write keeps nothing from being made.
    pub fn unintended(&self, id: StepId, op: &Op) -> Found {
        match op {
            Op::Create(new) => {
                let agent = self.agent.as_ref()?;
                let may = agent.unrecorded.contains(&id);
                let name = new.name.as_str();
                let intended = self.store.intends_create(name) || self.shows_entry_of(name);
                // An operator may drop an entry while what it tells of is under way.
                let intended = intended || self.checkers.let_go.contains(name);
                (!may && !intended)
                    .then(|| ("intents", format!("nothing tells of the create of {}", new.name)))
            }
            Op::Remove(target) => {
                let made = self.engine.model.find(target)?;
                let is_shown = self.shows_entry_of(&made.name);
                let intended = is_shown || self.store.intends_removal(&made.name);
                (!intended)
                    .then(|| ("intents", format!("nothing tells of the removal of {}", made.name)))
            }
            Op::Signal(target, signal) if signal == "SIGTERM" => {
                let made = self.engine.model.find(target.as_str())?;
                let row = self.store.kept.rows.get(made.owner()?)?;
                let view = self.agent.as_ref()?.views.get(made.owner()?)?;
                let is_current = view.container.as_ref() == Some(target);
                let recorded = row.own_stop.as_ref().is_some_and(|stop| stop.container == *target);
                (is_current && !recorded)
                    .then(|| ("intents", format!("no row tells of the stop of {}", made.name)))
            }
            _ => None,
        }
    }

    /// What is not bargee's, or is another store's, is left alone.
    pub fn careless(&self, op: &Op) -> Found {
        let target = match op {
            Op::Start(id, _) | Op::Signal(id, _) => id.as_str(),
            Op::Remove(target) => target,
            _ => return None,
        };
        let made = self.engine.model.find(target)?;
        let ours = made.tags.as_ref().is_some_and(|tags| tags.store.as_str() == STORE);
        (!ours).then(|| ("careless", format!("{op:?} is done to {}", made.name)))
    }
}
