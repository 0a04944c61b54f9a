//! How long a command has waited for an agent that replays its journal.

use std::cell::Cell;
use std::time::Duration;

use super::console::Console;
use crate::domain::time::Span;
use crate::limits;

/// The patience of one command. Several calls in a row that meet the same replay share it.
#[derive(Debug, Default)]
pub struct Patience {
    /// When the first call was refused, by the client's clock.
    since: Cell<Option<u64>>,
    told: Cell<bool>,
}

impl Patience {
    /// Waits a little, with a note the first time. `false`: patience is at its end.
    pub fn wait(&self, message: &str, console: &mut Console) -> bool {
        let now = console.time.now_ms();
        let since = self.since.get().unwrap_or(now);
        self.since.set(Some(since));
        if now.saturating_sub(since) >= limits::CLI_RECOVERING_MS {
            return false;
        }
        if !self.told.replace(true) {
            let limit = Span(limits::CLI_RECOVERING_MS);
            console.note(&format!("{message}; waiting up to {limit}"));
        }
        console.time.pause(Duration::from_millis(limits::CLI_RECOVERING_POLL_MS));
        true
    }

    /// A call was served: the next replay is another one.
    pub fn restore(&self) {
        self.since.set(None);
    }
}
