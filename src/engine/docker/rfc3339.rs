//! Times as engines write them, to unix nanoseconds.

/// Reads `2026-11-30T12:06:39.729876324Z`, or with an offset as `+02:00`. What lies before 1970,
/// such as the `0001-01-01T00:00:00Z` of something that never happened, is 0. `None`: no such time.
pub(super) fn unix_ns(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once('T')?;
    let days = days(date)?;
    let clock_end = rest.find(['Z', '+', '-'])?;
    let (clock, zone) = rest.split_at(clock_end);
    let (seconds, nanoseconds) = clock_time(clock)?;
    let seconds = days * 86_400 + seconds - offset(zone)?;
    let Ok(seconds) = u64::try_from(seconds) else { return Some(0) };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
fn days(date: &str) -> Option<i64> {
    let mut fields = date.split('-');
    let year = number(fields.next()?, 4)?;
    let month = number(fields.next()?, 2)?;
    let day = number(fields.next()?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if fields.next().is_some() || year == 0 || !(1..=last).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at the end, so the months before it are alike.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 1970-01-01 is day 719468 of the years that begin in March.
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// Seconds of the day and nanoseconds of `HH:MM:SS[.fraction]`.
fn clock_time(clock: &str) -> Option<(i64, u64)> {
    let (clock, fraction) = match clock.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (clock, None),
    };
    let mut fields = clock.split(':');
    let hour = number(fields.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = number(fields.next()?, 2).filter(|minute| *minute < 60)?;
    // A leap second is the second after it.
    let second = number(fields.next()?, 2).filter(|second| *second <= 60)?;
    if fields.next().is_some() {
        return None;
    }
    let nanoseconds = fraction.map_or(Some(0), nanoseconds)?;
    Some((hour * 3_600 + minute * 60 + second, nanoseconds))
}

/// Nanoseconds of a decimal fraction; digits beyond the ninth are dropped.
fn nanoseconds(fraction: &str) -> Option<u64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Seconds east of Greenwich of `Z` or `+HH:MM`.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (hour, minute) = zone.get(1..)?.split_once(':')?;
    let hour = number(hour, 2).filter(|hour| *hour < 24)?;
    let minute = number(minute, 2).filter(|minute| *minute < 60)?;
    let seconds = hour * 3_600 + minute * 60;
    Some(if zone.starts_with('-') { -seconds } else { seconds })
}

/// A number of exactly `width` digits.
fn number(text: &str, width: usize) -> Option<i64> {
    let digits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_engines_write() {
        // Checked with `date -u -d TIME +%s%N`.
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-30T12:06:39.729876324Z", 1_796_040_399_729_876_324),
            ("2026-11-30T12:06:39Z", 1_796_040_399_000_000_000),
            ("2026-11-30T14:06:39.5+02:00", 1_796_040_399_500_000_000),
            ("2026-11-30T06:36:39-05:30", 1_796_040_399_000_000_000),
            ("2000-02-29T23:59:59.999999999Z", 951_868_799_999_999_999),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000_000_000),
            ("2024-12-31T23:59:60Z", 1_735_689_600_000_000_000),
            ("2026-01-02T03:04:05.1234567891Z", 1_767_323_045_123_456_789),
        ] {
            assert_eq!(unix_ns(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_never_happened_is_zero() {
        assert_eq!(unix_ns("0001-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_ns("1969-12-31T23:59:59.9Z"), Some(0));
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "now",
            "2026-11-30",
            "2026-11-30T12:06:39",
            "2026-11-30 12:06:39Z",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-31T00:00:00Z",
            "2026-1-30T12:06:39Z",
            "2026-11-30T24:00:00Z",
            "2026-11-30T12:60:00Z",
            "2026-11-30T12:06:39.Z",
            "2026-11-30T12:06:39.5xZ",
            "2026-11-30T12:06:39+2:00",
            "2026-11-30T12:06:39Zulu",
            "2026-11-30T12:06Z",
            "+026-11-30T12:06:39Z",
            "0000-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(unix_ns(text), None, "{text}");
        }
    }
}
