//! What has to hold once the faults are over and some time has passed: everything is as it was
//! declared, nothing else is there, and nothing is under way.

use std::collections::BTreeSet;

use bargee::domain::declared::{RestartPolicy, WhenStuck};
use bargee::domain::directory::{Content, Found as Directory};
use bargee::domain::names::Source;
use bargee::domain::record::Desired;
use bargee::domain::view::{RuntimeState, State, View};

use super::Violation;
use super::containers::is_ours;
use crate::agent::Agent;
use crate::memory_engine::Made;
use crate::wishes;
use crate::world::{Cause, World};

impl World {
    /// Everything that does not hold.
    pub fn unrest(&self) -> Vec<Violation> {
        let Some(agent) = &self.agent else { return vec![found("rest", "there is no agent")] };
        let mut all = Vec::new();
        let broken = self.checkers.promises.broken(&agent.views);
        all.extend(broken.map(|(checker, text)| Violation { checker, text }));
        for view in agent.views.values() {
            all.extend(self.unlike(view).map(|text| {
                let View { declared, state, runtime_state, info, .. } = &**view;
                found(
                    "converge",
                    format!(
                        "{} {}: {text}; {state:?} {runtime_state:?} {info}",
                        view.uid, declared.key
                    ),
                )
            }));
        }
        all.extend(self.unlike_directory(agent));
        all.extend(self.leftovers(agent));
        all.extend(self.unsettled(agent));
        all
    }

    /// In what a workload differs from what is declared.
    fn unlike(&self, view: &View) -> Option<String> {
        let live: Vec<&Made> =
            self.engine.model.all().filter(|made| lives_for(made, view)).collect();
        match (view.desired, &live[..]) {
            (Desired::Deleted, _) => Some("is still there".to_owned()),
            (_, [_, _, ..]) => Some(format!("{} containers of it live", live.len())),
            (Desired::Stopped, []) => {
                (view.state != State::StoppedOk).then(|| "is stopped and not shown so".to_owned())
            }
            (Desired::Stopped, [one]) => Some(format!("{} lives", one.name)),
            (Desired::Running, [one]) => self.unlike_running(view, one),
            (Desired::Running, []) => self.not_running(view),
        }
    }

    /// It does not run; `None`: nor should it.
    fn not_running(&self, view: &View) -> Option<String> {
        let spec = &view.declared.spec;
        let image = &spec.image;
        if view.state == State::PendingStartingFailed {
            return (!self.may_refuse(image))
                .then(|| "is given up, and nothing ever refused it".to_owned());
        }
        if view.runtime_state == RuntimeState::StuckInRestart {
            let holds = spec.restart.stuck == WhenStuck::Hold;
            return (!holds).then(|| "is left alone as stuck".to_owned());
        }
        let run = view.container.as_ref().and_then(|id| self.engine.runs.get(id));
        let ended = run.and_then(|run| run.ended);
        let policy = spec.restart.policy;
        let may = match (view.state, ended) {
            (_, Some((Cause::Reboot, ..))) => false,
            // A hand ran it once more, and nobody saw that.
            (State::SucceededOk, Some((Cause::Hand, ..))) => policy != RestartPolicy::Always,
            (State::SucceededOk, Some((_, _, 0))) => policy != RestartPolicy::Always,
            (State::FailedExecFailed, Some((_, _, code))) => {
                code != 0 && policy == RestartPolicy::Never
            }
            (State::FailedLost, _) => policy == RestartPolicy::Never,
            _ => false,
        };
        (!may).then(|| format!("does not run under {policy:?}; it ended {ended:?}"))
    }

    /// Something in this world may have refused it as wrong.
    fn may_refuse(&self, image: &str) -> bool {
        wishes::is_refused(image) || wishes::is_inert(image) || self.was_refused
    }

    /// It runs, but not as it should. An update that failed was tried again since, and what runs
    /// from now on runs; one that was refused as wrong is left alone.
    fn unlike_running(&self, view: &View, made: &Made) -> Option<String> {
        if view.state != State::RunningOk || view.container.as_ref() != Some(&made.id) {
            return Some(format!("{} runs, and that is not shown", made.name));
        }
        let image = &view.declared.spec.image;
        if *made.image != **image {
            let failed = view.failed_update.as_ref().is_some_and(|(g, _)| *g == view.generation);
            let may = failed && self.may_refuse(image);
            return (!may).then(|| format!("runs {} instead of {image}", made.image));
        }
        None
    }

    /// What the files say holds, and nothing else is of the directory.
    fn unlike_directory(&self, agent: &Agent) -> Option<Violation> {
        let Directory::There(listing) = &self.directory else { return None };
        let mut wanted = BTreeSet::new();
        for content in listing.files.values() {
            let Content::Good(workloads) = content else { return None };
            wanted.extend(workloads.iter().map(|d| (d.key.clone(), d.spec.image.clone())));
        }
        let declared = agent.views.values().filter(|view| view.source == Source::Directory);
        let declared: BTreeSet<_> = declared
            .map(|view| (view.declared.key.clone(), view.declared.spec.image.clone()))
            .collect();
        let text = || {
            let conditions = &agent.status.conditions;
            format!("the files say {wanted:?}, and there is {declared:?}; {conditions:?}")
        };
        (declared != wanted).then(|| found("directory", text()))
    }

    /// Containers of this store that stand for no workload.
    fn leftovers(&self, agent: &Agent) -> Vec<Violation> {
        let mut known: BTreeSet<_> =
            agent.views.values().filter_map(|v| v.container.as_ref()).collect();
        // What an update may have to return to is kept until that has proved itself by running.
        let unproved = agent.views.values().filter(|view| view.state != State::RunningOk);
        let rows = unproved.filter_map(|view| self.store.kept.rows.get(&view.uid));
        known.extend(rows.filter_map(|row| row.previous.as_ref()?.instance.container.as_ref()));
        let beside =
            self.engine.model.all().filter(|made| is_ours(made) && !known.contains(&made.id));
        beside.map(|made| found("leftovers", format!("{} is left behind", made.name))).collect()
    }

    fn unsettled(&self, agent: &Agent) -> Vec<Violation> {
        let mut all = Vec::new();
        let asks = self.checkers.asks.open();
        if !asks.is_empty() {
            all.push(found("asks", format!("{asks:?} are not answered")));
        }
        let tasks = self.checkers.shown.open_tasks();
        if !tasks.is_empty() {
            let tasks: Vec<_> = tasks.iter().map(|id| agent.tasks.get(id)).collect();
            all.push(found("tasks", format!("{tasks:?} are not settled")));
        }
        if agent.status.tasks > 0 {
            all.push(found("tasks", format!("{} are told to be open", agent.status.tasks)));
        }
        let kept = &self.store.kept.entries;
        if !kept.is_empty() || !agent.entries.is_empty() || agent.status.journal != (0, 0) {
            let counts = agent.status.journal;
            all.push(found("journal", format!("{counts:?}: {kept:?}, {:?}", agent.entries)));
        }
        if agent.status.recovering.is_some() {
            all.push(found("journal", "changes are not accepted".to_owned()));
        }
        if !agent.is_idle() {
            all.push(found("rest", format!("in flight: {}", agent.in_flight())));
        }
        all
    }
}

fn found(checker: &'static str, text: impl Into<String>) -> Violation {
    Violation { checker, text: text.into() }
}

fn lives_for(made: &Made, view: &View) -> bool {
    made.is_live() && is_ours(made) && made.owner() == Some(&view.uid)
}
