//! Sizes, durations, shares of processors, counts.

use crate::domain::time::Span;
use crate::limits::{LOG_FILES, MANIFEST_SPAN_MS, SCHEDULE_MAX};
use crate::yaml::shown;
use crate::yaml::size::number_and_unit;

pub use crate::yaml::size::{SIZE, digits, show_size, size};

/// What a duration may be.
pub const SPAN: &str = "a duration as 500ms, 10s, 2m or 1h30m";
/// What a share of processors may be.
pub const CPUS: &str = "a number of processors as 0.5 or 2, at least 0.01, in steps of 0.001";

/// Longest unit first, as they stand in a duration.
const SPAN_UNITS: &[(&str, u64)] = &[("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration, zero included.
pub fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("must be {SPAN}, found {}", shown(text));
    let (mut rest, mut units, mut total) = (text, SPAN_UNITS, 0_u64);
    while !rest.is_empty() {
        let (number, after) = number_and_unit(rest);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let at = units.iter().position(|(known, _)| *known == unit).ok_or_else(wrong)?;
        let number: u64 = digits(number).ok_or_else(wrong)?;
        total = total.saturating_add(number.saturating_mul(units[at].1));
        (rest, units) = (next, &units[at + 1..]);
    }
    if text.is_empty() {
        return Err(wrong());
    }
    if total > MANIFEST_SPAN_MS {
        let hours = MANIFEST_SPAN_MS / 3_600_000;
        return Err(format!("{} is longer than {hours}h", shown(text)));
    }
    Ok(Span(total))
}

/// A duration of at least `least`.
pub fn span_from(least: Span, text: &str) -> Result<Span, String> {
    let span = span(text)?;
    let short = || format!("must be at least {least}, found {}", shown(text));
    (span >= least).then_some(span).ok_or_else(short)
}

/// Thousandths of a processor.
pub fn cpus(text: &str) -> Result<u32, String> {
    let wrong = || format!("must be {CPUS}, found {}", shown(text));
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let cores: u32 = digits(whole).ok_or_else(wrong)?;
    let significant = part.trim_end_matches('0');
    if part.is_empty() || significant.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let thousandths: u32 = digits(&format!("{significant:0<3}")).ok_or_else(wrong)?;
    let milli = cores.checked_mul(1_000).and_then(|milli| milli.checked_add(thousandths));
    milli.filter(|milli| *milli >= 10).ok_or_else(wrong)
}

/// A number of log files.
pub fn log_files(text: &str) -> Result<u32, String> {
    digits(text)
        .filter(|number| (1..=LOG_FILES).contains(number))
        .ok_or_else(|| format!("must be a number from 1 to {LOG_FILES}, found {}", shown(text)))
}

/// A place in the order of starts.
pub fn schedule(text: &str) -> Result<u32, String> {
    digits(text)
        .filter(|number| *number <= SCHEDULE_MAX)
        .ok_or_else(|| format!("must be a number from 0 to {SCHEDULE_MAX}, found {}", shown(text)))
}
