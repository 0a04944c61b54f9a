//! Time as a value: ticks of the boot clock for every duration, wall time only for printing.
//!
//! The boot clock counts through suspend and is not set by NTP, so a jump from 1970 to today moves
//! no deadline.

use std::fmt;
use std::ops::{Add, Sub};

/// Milliseconds since boot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(pub u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub u64);

/// Both clocks as the shell read them at the beginning of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// The boot clock, for every decision.
    pub tick: Tick,
    /// Unix time in milliseconds, for printing.
    pub wall_ms: u64,
}

impl Tick {
    /// Time from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Tick) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Now {
    /// By how much the wall clock was set since `earlier`, in milliseconds; negative: back. Within
    /// one boot.
    pub fn clock_set_since(self, earlier: Now) -> i64 {
        let passed = |later: u64, earlier: u64| i128::from(later) - i128::from(earlier);
        let set = passed(self.wall_ms, earlier.wall_ms) - passed(self.tick.0, earlier.tick.0);
        i64::try_from(set).unwrap_or(if set < 0 { i64::MIN } else { i64::MAX })
    }
}

impl Add<Span> for Tick {
    type Output = Tick;
    fn add(self, span: Span) -> Tick {
        Tick(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Tick {
    type Output = Tick;
    fn sub(self, span: Span) -> Tick {
        Tick(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// Whole seconds.
    pub const fn seconds(n: u64) -> Span {
        Span(n.saturating_mul(1_000))
    }

    /// In its largest unit that divides it: `15m`, `90s`, `1h`, `1500ms`.
    pub fn words(self) -> String {
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        let fits = units.into_iter().find(|(scale, _)| self.0.is_multiple_of(*scale));
        match fits.filter(|_| self.0 > 0) {
            Some((scale, unit)) => format!("{}{unit}", self.0 / scale),
            None => format!("{}ms", self.0),
        }
    }

    /// A length of time above zero as people type it: `500ms`, `60s`, `5m`, `1h`; a bare number is
    /// seconds. `None`: it is none.
    pub fn parse(text: &str) -> Option<Span> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let scale = match unit {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let ms = number.parse::<u64>().ok()?.checked_mul(scale)?;
        (ms > 0).then_some(Span(ms))
    }
}

impl fmt::Display for Span {
    /// `850ms`, `32s`, `1.5s`: as in manifests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1_000) {
            write!(f, "{}s", self.0 / 1_000)
        } else {
            write!(f, "{}ms", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_type_them() {
        let good = [("500ms", 500), ("60s", 60_000), ("60", 60_000), ("5m", 300_000)];
        for (text, ms) in good.into_iter().chain([("1h", 3_600_000)]) {
            assert_eq!(Span::parse(text), Some(Span(ms)), "{text}");
        }
        for bad in ["", "0", "0s", "s", "-1s", "1.5s", "1d", "1 s", "99999999999999999999s"] {
            assert_eq!(Span::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_clock_that_is_set_differs_from_one_that_goes() {
        let now = |tick, wall_ms| Now { tick: Tick(tick), wall_ms };
        assert_eq!(now(5_000, 9_000).clock_set_since(now(1_000, 5_000)), 0);
        assert_eq!(now(5_000, 90_000).clock_set_since(now(1_000, 5_000)), 81_000);
        assert_eq!(now(5_000, 0).clock_set_since(now(1_000, 5_000)), -9_000);
        assert_eq!(now(0, u64::MAX).clock_set_since(now(u64::MAX, 0)), i64::MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Tick(u64::MAX) + Span(1), Tick(u64::MAX));
        assert_eq!(Tick(1) - Span(2), Tick(0));
        assert_eq!(Tick(1).since(Tick(5)), Span(0));
    }
}
