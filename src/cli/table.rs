//! Columns, sizes and times for people.

use std::io::{self, Write};

/// Writes `rows` under `head` in columns two blanks apart. Cells are cleaned of control characters.
///
/// # Errors
/// Those of the writer.
pub fn write(out: &mut dyn Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(&head)
        .chain(rows)
        .map(|row| row.iter().map(|cell| clean(cell)).collect())
        .collect();
    let width = |column: usize| {
        lines.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in &lines {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 2 - length(cell)));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    out.flush()
}

fn length(cell: &str) -> usize {
    cell.chars().count()
}

/// `text` on one line and without the characters that could steer a terminal: names of images and
/// words of engines come from elsewhere.
pub fn clean(text: &str) -> String {
    let keep = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(keep).collect()
}

/// At most `width` characters of `text`.
pub fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A length of time in its largest whole unit: `42s`, `7m`, `3h`, `12d`.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A size with one digit behind the point: `812 B`, `12.3 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1_024 {
        return format!("{count} B");
    }
    // Tenths of a unit, rounded down, so that no float is needed.
    let mut tenths = count.saturating_mul(10) / 1_024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A unix time in milliseconds as UTC: `2026-11-30T12:03:04Z`.
pub fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1_000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day counted from 1970. Years are counted from March, so that the day that comes
/// and goes is the last of a year.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut out = Vec::new();
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "Größe", ""]), row(["long name", "x", "\x1b[2J\nhi"])];
        write(&mut out, &["NAME", "SIZE", "INFO"], &rows).unwrap();
        let expected = "NAME       SIZE   INFO\na          Größe\nlong name  x      ?[2J hi\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn sizes_and_spans_have_one_unit() {
        let sizes = [0, 1_023, 1_024, 1_536, 96 << 20, 5 << 30, u64::MAX].map(bytes);
        assert_eq!(sizes[..4], ["0 B", "1023 B", "1.0 KiB", "1.5 KiB"]);
        assert_eq!(sizes[4..6], ["96.0 MiB", "5.0 GiB"]);
        assert!(sizes[6].ends_with(" TiB"));
        let spans = [0, 59_999, 60_000, 3_599_999, 3_600_000, 86_400_000].map(span);
        assert_eq!(spans, ["0s", "59s", "1m", "59m", "1h", "1d"]);
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_709_251_199_999), "2024-02-29T23:59:59Z");
        assert_eq!(utc(1_796_040_184_000), "2026-11-30T12:03:04Z");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
    }
}
