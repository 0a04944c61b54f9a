//! What must not leave the machine while reconciling is held, or while the agent ends.

use super::World;
use crate::domain::effect::{Effect, Op};

impl World {
    /// Fails if `effects` have something that is to wait.
    pub fn check_held(&self, was_held: bool, effects: &[Effect]) {
        if was_held && self.machine.quiesced.is_some() {
            let deed = effects.iter().find(|effect| is_deed(effect));
            assert!(deed.is_none(), "done while reconciling is held: {deed:?}");
        }
        if self.machine.drain.is_some() {
            let begun = effects.iter().find(|effect| is_begun(effect));
            assert!(begun.is_none(), "begun while the agent ends: {begun:?}");
        }
    }
}

/// Something is done on the engine.
fn is_deed(effect: &Effect) -> bool {
    match effect {
        Effect::Run(step) => !matches!(step.op, Op::Inspect(_)),
        Effect::Pull(..) => true,
        _ => false,
    }
}

/// Something is made or started.
fn is_begun(effect: &Effect) -> bool {
    match effect {
        Effect::Run(step) => {
            let ends = matches!(step.op, Op::Inspect(_) | Op::Signal(..) | Op::Remove(_));
            !ends
        }
        Effect::Pull(..) => true,
        _ => false,
    }
}
