//! The number of short runs and failed starts in a row gives a delay.

use super::declared::Restart;
use super::time::Span;
use crate::limits;

/// The delay after the `streak`-th failure in a row, counted from 0: `delay` doubled each time, at
/// most `max_delay`. With the defaults 10, 20, 40, 80, 160, then 300 s.
pub fn delay(restart: Restart, streak: u32) -> Span {
    // The exponent is clamped before the power is taken, so that no streak can overflow.
    let factor = 1_u64 << streak.min(32);
    Span(restart.delay.0.saturating_mul(factor).min(restart.max_delay.0))
}

/// The delay after all that are to go were tried, and failed to go, `rounds` times: 10, 20, 40, 80,
/// 160, then 300 s.
pub fn removal_delay(rounds: usize) -> Span {
    let factor = 1_u64 << rounds.saturating_sub(1).min(32);
    Span((limits::KILL_AGAIN_MS * factor).min(limits::RESTART_MAX_DELAY_MS))
}

/// The delay after the `tries`-th failure of an update: 5, 10, 20, 40, then 60 minutes.
pub fn update_delay(tries: u32) -> Span {
    let waits = limits::UPDATE_WAITS_MS;
    let n = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    Span(waits[n.min(waits.len() - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::declared::RestartPolicy;

    #[test]
    fn doubles_up_to_the_cap_for_ever() {
        let restart = Restart {
            policy: RestartPolicy::Always,
            delay: Span(limits::RESTART_DELAY_MS),
            ..Restart::default()
        };
        let seconds: Vec<u64> = (0..8).map(|n| delay(restart, n).0 / 1_000).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(delay(restart, u32::MAX), Span(300_000));
    }
}
