//! Ends a call from another thread.

use std::fmt;

use parking_lot::Mutex;

/// Ends one call, whether it began already or not.
#[derive(Default)]
pub struct Cancel(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Idle,
    UnderWay(Box<dyn FnOnce() + Send>),
    Cancelled,
}

impl Cancel {
    /// Ends the call, which answers with a fault at once. Calls that begin later fail too.
    pub fn cancel(&self) {
        let before = std::mem::replace(&mut *self.0.lock(), State::Cancelled);
        if let State::UnderWay(end) = before {
            end();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(*self.0.lock(), State::Cancelled)
    }

    /// The call begins, and `end` will end it; `false`: it was cancelled before.
    pub(super) fn begin(&self, end: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.0.lock();
        if matches!(*state, State::Cancelled) {
            return false;
        }
        *state = State::UnderWay(Box::new(end));
        true
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn it_ends_what_began_and_lets_nothing_begin() {
        let ended = Arc::new(AtomicUsize::new(0));
        let cancel = Cancel::default();
        let count = Arc::clone(&ended);
        assert!(cancel.begin(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(!cancel.is_cancelled());
        cancel.cancel();
        cancel.cancel();
        assert_eq!(ended.load(Ordering::Relaxed), 1);
        assert!(cancel.is_cancelled() && !cancel.begin(|| {}));
    }
}
