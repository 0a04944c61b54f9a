//! When the agent dies, what else goes wrong at a certain moment, and in what order things that are under way at the same time come about.

use crate::domain::effect::{Op, StepId};
use crate::domain::event::Event;
use crate::domain::fault::FaultKind;

/// The agent dies at the `at`-th thing that leaves it, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuse {
    pub at: usize,
    pub side: Side,
}

/// On which side of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Before it reaches the store or the engine.
    Before,
    /// After it was done, and before the agent hears of it.
    After,
    /// The engine has taken it and does it only later; a commit is not written.
    Late(Due),
}

/// The `at`-th thing that leaves the agent does not go as usual, if it is one of those that can go
/// this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mishap {
    pub at: usize,
    pub way: Way,
}

/// How a call of the engine, or a commit, goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A call is not done, and answered with this.
    NotDone(FaultKind),
    /// A call is done, and answered with this.
    Done(FaultKind),
    /// A call is answered with this, and done later.
    DoneLater(FaultKind, Due),
    /// A call is done later, and answered then.
    Slow(Due),
    /// A commit fails.
    Fails,
    /// A commit takes so many milliseconds.
    Stalls(u64),
}

/// Happens when the `at`-th thing leaves the agent, and is heard of before its answer.
#[derive(Debug)]
pub struct Meanwhile {
    pub at: usize,
    pub event: Event,
}

/// When something that the engine took on is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// So many milliseconds after it was taken.
    In(u64),
    /// After the next listing that is answered.
    List,
    /// After the next look that found no such container.
    Miss,
}

/// Something that the engine took on and has not done.
#[derive(Clone, Debug)]
pub struct Late {
    pub op: Op,
    pub due: LateDue,
    /// Who waits for the answer.
    pub step: Option<StepId>,
    /// Its name is taken already, though nothing is there to be looked at.
    pub holds_name: bool,
}

/// [`Due`], with its time on the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateDue {
    At(u64),
    List,
    Miss,
}

impl Due {
    pub fn from(self, now: u64) -> LateDue {
        match self {
            Self::In(ms) => LateDue::At(now + ms),
            Self::List => LateDue::List,
            Self::Miss => LateDue::Miss,
        }
    }
}

/// What comes first of what is under way at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// Everything in the order in which it was sent.
    #[default]
    InOrder,
    /// The store waits until there is nothing else, and takes all that waits in one transaction.
    SlowStore,
    /// The engine waits until there is nothing else, and takes one call at a time, the last first.
    SlowEngine,
}
