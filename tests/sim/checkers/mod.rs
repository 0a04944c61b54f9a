//! What has to hold, judged apart from the machine: by what the engine really has, by what was
//! acknowledged to people, and by what is published. Nothing here looks into the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bargee::domain::effect::{Answer, Effect, Op, StepId};
use bargee::domain::event::{AskId, Request};
use bargee::domain::names::{ContainerId, Uid};
use bargee::domain::view::View;

mod asks;
pub mod containers;
mod drained;
mod held;
mod promises;
mod rebooted;
pub mod rest;
mod shown;

use super::world::World;

/// Something that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Who says so.
    pub checker: &'static str,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.checker, self.text)
    }
}

/// What checkers remember.
#[derive(Debug, Default)]
pub struct Checkers {
    asks: asks::Asks,
    pub promises: promises::Promises,
    shown: shown::Shown,
    pub held: held::Held,
    /// Commits and steps since this was last set to zero.
    pub commits: u64,
    pub steps: u64,
    pub lists: u64,
    /// A network could not be removed, and was left behind.
    pub network_left: bool,
    /// Instances whose entries an operator dropped.
    pub let_go: BTreeSet<String>,
}

impl Checkers {
    pub fn asked(
        &mut self,
        ask: AskId,
        request: &Request,
        views: &BTreeMap<Uid, Arc<View>>,
        now: u64,
    ) {
        self.asks.asked(ask);
        self.held.asked(ask, request, now);
        self.promises.asked(ask, request, views);
    }

    pub fn agent_died(&mut self) {
        self.asks.died();
        self.promises.died();
        self.shown.died();
        self.held.died();
    }

    pub fn directory_changed(&mut self) {
        self.promises.directory_changed();
    }
}

impl World {
    /// Something that the machine wants, before it is carried out.
    pub fn check_effect(&mut self, effect: &Effect) {
        self.note_run(effect);
        let found = match effect {
            Effect::Answer(ask, answer) => self.check_answer(*ask, answer),
            Effect::Publish(uid, view) => self.checkers.shown.published(uid, view.as_deref()),
            Effect::Transition(change) => self.checkers.shown.changed(change),
            Effect::PublishTask(task) => self.checkers.shown.task(task),
            Effect::DropTask(id) => self.checkers.shown.dropped(*id),
            Effect::Persist(_) => {
                self.checkers.commits += 1;
                None
            }
            Effect::List(_) => {
                self.checkers.lists += 1;
                None
            }
            Effect::Run(step) => {
                self.checkers.steps += 1;
                match &step.op {
                    Op::Start(id, _) => self.check_wanted(id),
                    Op::Remove(target) => self.check_replaced(target),
                    _ => None,
                }
            }
            Effect::Log(_, text) => {
                self.checkers.network_left |= text.contains("a network is left behind");
                text.starts_with("bug").then(|| ("bug", text.clone()))
            }
            _ => None,
        };
        let held = || self.checkers.held.wants(effect, self.now);
        let drains = self.agent.as_ref().is_some_and(|agent| agent.drains);
        let in_drain = || if drains { drained::wants(effect) } else { None };
        if let Some((checker, text)) = found.or_else(held).or_else(in_drain) {
            self.blame(checker, text);
        }
    }

    fn check_answer(&mut self, ask: AskId, answer: &Answer) -> Option<(&'static str, String)> {
        if let Some(found) = self.checkers.asks.answered(ask) {
            return Some(found);
        }
        self.checkers.held.answered(ask, answer);
        let views = &self.agent.as_ref()?.views;
        self.checkers.promises.answered(ask, answer, views)
    }

    /// A step leaves the agent.
    pub fn check_step(&mut self, id: StepId, op: &Op) {
        if let Some((checker, text)) = self.unintended(id, op).or_else(|| self.careless(op)) {
            self.blame(checker, text);
        }
    }

    /// A container began to run.
    pub fn check_twins(&mut self, id: &ContainerId) {
        if let Some((checker, text)) = self.twins(id) {
            self.blame(checker, text);
        }
    }

    /// An agent has just started, on what was durable.
    pub fn check_start(&mut self) {
        let Some(agent) = &self.agent else { return };
        if let Some((checker, text)) = self.checkers.promises.broken(&agent.views) {
            self.blame(checker, text);
        }
    }
}
