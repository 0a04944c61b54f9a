//! The clocks, read here only.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since boot, suspend included. Never set, so it measures durations.
pub fn boot_ms() -> u64 {
    read_ms(ClockId::CLOCK_BOOTTIME)
}

/// Microseconds since boot, for what takes less than a millisecond.
pub fn boot_us() -> u64 {
    let time = read(ClockId::CLOCK_BOOTTIME);
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000;
    seconds.saturating_mul(1_000_000).saturating_add(micros)
}

/// Unix time in milliseconds. It may be set at any time, so it is only for printing.
pub fn wall_ms() -> u64 {
    read_ms(ClockId::CLOCK_REALTIME)
}

fn read_ms(clock: ClockId) -> u64 {
    let time = read(clock);
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let millis = u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000;
    seconds.saturating_mul(1_000).saturating_add(millis)
}

fn read(clock: ClockId) -> TimeSpec {
    clock_gettime(clock).expect("Linux has had both clocks since 2.6.39")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_never_goes_back() {
        let earlier = boot_ms();
        assert!(boot_ms() >= earlier);
        assert!(earlier > 0);
        assert!(boot_us() / 1_000 >= earlier);
    }
}
