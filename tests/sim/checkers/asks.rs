//! Every ask gets exactly one answer, unless its agent dies.

use std::collections::BTreeSet;

use bargee::domain::event::AskId;

/// Asks of the present agent.
#[derive(Debug, Default)]
pub struct Asks {
    open: BTreeSet<AskId>,
}

impl Asks {
    pub fn asked(&mut self, ask: AskId) {
        self.open.insert(ask);
    }

    pub fn answered(&mut self, ask: AskId) -> Option<(&'static str, String)> {
        let is_open = self.open.remove(&ask);
        (!is_open).then(|| ("asks", format!("{ask:?} is answered, and nobody waits for that")))
    }

    pub fn died(&mut self) {
        self.open.clear();
    }

    /// Those without an answer.
    pub fn open(&self) -> &BTreeSet<AskId> {
        &self.open
    }
}
