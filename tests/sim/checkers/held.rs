//! While reconciling is held, as it was acknowledged, nothing is asked of the engine but looks;
//! what was in flight may end.

use std::collections::BTreeMap;

use bargee::domain::effect::{Answer, Effect, Op};
use bargee::domain::event::{AskId, Request};

/// What people were told of it, in milliseconds of the world.
#[derive(Debug, Default)]
pub struct Held {
    /// Until when it is held for certain.
    until: Option<u64>,
    /// Asks that are open, with the end that each would give it.
    open: BTreeMap<AskId, Option<u64>>,
    /// Another end may be durable than the one that was acknowledged.
    in_doubt: bool,
}

type Found = Option<(&'static str, String)>;

impl Held {
    pub fn asked(&mut self, ask: AskId, request: &Request, now: u64) {
        match request {
            Request::Quiesce(span) => drop(self.open.insert(ask, Some(now + span.0))),
            Request::Resume => drop(self.open.insert(ask, None)),
            _ => {}
        }
    }

    pub fn answered(&mut self, ask: AskId, answer: &Answer) {
        let Some(until) = self.open.remove(&ask) else { return };
        match answer {
            Answer::Done(_) => self.until = until,
            // It goes on all the same, or is held no longer than before.
            _ if until.is_none() => self.until = None,
            _ => self.in_doubt = true,
        }
    }

    /// The next agent goes by what is durable.
    pub fn died(&mut self) {
        if self.in_doubt || !self.open.is_empty() {
            self.until = None;
        }
        self.in_doubt = false;
        self.open.clear();
    }

    /// It holds in one boot only.
    pub fn rebooted(&mut self) {
        self.until = None;
    }

    pub fn wants(&self, effect: &Effect, now: u64) -> Found {
        let asks = match effect {
            Effect::Run(step) => !matches!(step.op, Op::Inspect(_) | Op::CheckPaths(_)),
            Effect::Pull(..) => true,
            _ => false,
        };
        // What is asked for at the moment may hold already.
        let asked = self.open.values().map(|until| until.unwrap_or(0)).min();
        let until = self.until.map(|until| until.min(asked.unwrap_or(until)));
        let is_held = until.is_some_and(|until| now < until);
        (asks && is_held).then(|| {
            let text = crate::report::effect(effect);
            ("held", format!("{text}, while reconciling is held"))
        })
    }
}
