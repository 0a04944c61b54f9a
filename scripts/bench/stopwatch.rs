//! Time for measuring.

use std::time::{Duration, Instant};

use crossbeam_channel::never;

/// The present moment.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time, finer than os/clock.rs")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since `begin`.
pub fn seconds(begin: Instant) -> f64 {
    (now() - begin).as_secs_f64()
}

/// Waits.
pub fn pause(time: Duration) {
    let _ = never::<()>().recv_timeout(time);
}
