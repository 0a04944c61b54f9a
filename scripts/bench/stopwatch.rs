//! Time for measuring.

use std::time::{Duration, Instant};

use crossbeam_channel::never;
use nix::time::{ClockId, clock_gettime};

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

/// CPU time of this thread so far: what others on the machine do is not in it, but for the caches.
pub fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
