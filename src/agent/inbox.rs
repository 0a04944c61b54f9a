//! What the monitor gets.

use crossbeam_channel::Sender;

use crate::domain::effect::Answer;
use crate::domain::event::{Event, Request};

/// One item of the monitor's inbox.
#[derive(Debug)]
pub enum Mail {
    /// Something happened.
    Event(Event),
    /// Somebody asks; the answer comes with the revision from which it shows.
    Ask(Request, Sender<(Answer, u64)>),
    /// Finish what is in flight, write what is not durable, and end.
    Stop,
}
