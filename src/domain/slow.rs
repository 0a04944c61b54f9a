//! Workloads whose calls time out: they share one worker, so that what hangs holds up what is like
//! it and nothing else.

use super::lifecycle::FlightKind;

/// Which calls for a workload are known to hang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Slow {
    /// None.
    #[default]
    No,
    /// The last look timed out.
    Look,
    /// The last call that was to change something timed out. A look that is answered says nothing
    /// of the next such call.
    Change,
}

impl Slow {
    /// What is known after a call of this kind.
    pub fn after(self, kind: FlightKind, timed_out: bool) -> Self {
        let looks = matches!(kind, FlightKind::Inspect(_) | FlightKind::CheckPaths);
        match (looks, timed_out) {
            (false, true) => Self::Change,
            (true, _) if self == Self::Change => Self::Change,
            (true, true) => Self::Look,
            (_, false) => Self::No,
        }
    }
}
