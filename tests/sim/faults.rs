//! What is set up to go wrong.

use bargee::domain::effect::Op;
use bargee::domain::names::ContainerId;

use super::acts::{Side, Way, Word};

/// What is set up to go wrong next.
#[derive(Debug, Default)]
pub struct Faults {
    /// Calls that do not go as usual, after so many of their kind.
    mishaps: Vec<(Word, u8, Way)>,
    /// The agent dies when so much has left it, and another one starts so much later.
    pub fuse: Option<(u8, Side, u64)>,
    /// Events that are lost, and that come twice.
    pub lost: u8,
    pub doubled: u8,
    /// How late events are.
    pub lag_ms: u64,
    /// Listings that leave something out.
    pub short_lists: u8,
    pub unremovable: Vec<ContainerId>,
    /// Containers that hear no signal before this.
    pub deaf: Vec<(ContainerId, u64)>,
    /// The disk that some are made with is not there.
    pub no_disk: bool,
    /// The next create finds its name taken.
    pub squatters: u8,
    /// The faults are over: what ended because of its image runs from now on.
    pub over: bool,
}

impl Faults {
    /// A call of this kind goes this way, after so many.
    pub fn add(&mut self, word: Word, after: u8, way: Way) {
        self.mishaps.push((word, after, way));
    }

    /// What befalls a call of this kind.
    pub fn befalls(&mut self, word: Word) -> Option<Way> {
        let first = self.mishaps.iter().position(|(of, ..)| *of == word)?;
        match &mut self.mishaps[first].1 {
            0 => Some(self.mishaps.remove(first).2),
            after => {
                *after -= 1;
                None
            }
        }
    }

    /// All faults are over.
    pub fn end(&mut self) {
        *self = Self { over: true, ..Self::default() };
    }

    /// Until when the container hears nothing.
    pub fn deaf_until(&self, id: &ContainerId) -> u64 {
        let those = self.deaf.iter().filter(|(deaf, _)| deaf == id);
        those.map(|(_, until)| *until).max().unwrap_or(0)
    }
}

/// What kind of call it is.
pub fn word(op: &Op) -> Word {
    match op {
        Op::Inspect(_) | Op::CheckPaths(_) => Word::Inspect,
        Op::Create(_) => Word::Create,
        Op::Start(..) => Word::Begin,
        Op::Signal(..) => Word::Signal,
        Op::Remove(_) => Word::Delete,
        Op::RemoveNetwork(_) => Word::Network,
    }
}
