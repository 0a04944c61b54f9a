//! A request at which the engine stands still, so that a test can end the agent right there.

/// Which side of the engine's work on the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The request never reaches the engine.
    Before,
    /// It is carried out, and nobody reads the answer.
    After,
}

/// Waits for a request, and then holds all connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trap {
    /// There is none.
    #[default]
    None,
    /// It springs at the request after so many others.
    Set(usize, Side),
    /// It sprang: nothing goes in or out.
    Sprung,
}

impl Trap {
    /// A request came. Whether it goes in, and what becomes of it then.
    pub fn pass(&mut self) -> Passage {
        match *self {
            Self::None => Passage::Free,
            Self::Sprung => Passage::Held,
            Self::Set(0, side) => {
                *self = Self::Sprung;
                match side {
                    Side::Before => Passage::Held,
                    Side::After => Passage::Last,
                }
            }
            Self::Set(left, side) => {
                *self = Self::Set(left - 1, side);
                Passage::Free
            }
        }
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// It is carried out and answered.
    Free,
    /// It is carried out and not answered.
    Last,
    /// Neither.
    Held,
}
