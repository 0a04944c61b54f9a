//! Lines of the log that come again and again are written a few times, and counted from then on.

use log::Level;

use crate::limits::{
    AGENT_LOG_LINES_KNOWN, AGENT_LOG_REPEAT_MS, AGENT_LOG_SAME_NEWS, AGENT_LOG_SAME_TROUBLES,
};

/// What was written of late. The times are those of the boot clock in milliseconds.
#[derive(Debug, Default)]
pub struct Repeats {
    /// The one written last comes last.
    known: Vec<Known>,
    /// Of lines that had to be forgotten before their time.
    forgotten: Vec<Line>,
}

/// A line, without its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its level.
    pub level: Level,
    /// What it says.
    pub text: String,
}

#[derive(Debug)]
struct Known {
    line: Line,
    since_ms: u64,
    written: u32,
    counted: u64,
}

impl Repeats {
    /// Whether `line` is to be written; otherwise it is counted. A warning or error that says the
    /// same as the line before it is, and so is any that was written a few times within an hour.
    /// Who asks for debug or trace wants all of it.
    pub fn is_news(&mut self, line: &Line, now_ms: u64) -> bool {
        let most = match line.level {
            Level::Debug | Level::Trace => return true,
            Level::Info => AGENT_LOG_SAME_NEWS,
            Level::Warn | Level::Error => AGENT_LOG_SAME_TROUBLES,
        };
        self.known.retain(|known| known.counted > 0 || now_ms < known.until_ms());
        let Some(at) = self.known.iter().position(|known| known.line == *line) else {
            self.make_room();
            let line = line.clone();
            self.known.push(Known { line, since_ms: now_ms, written: 1, counted: 0 });
            return true;
        };
        let again = at + 1 == self.known.len() && line.level <= Level::Warn;
        if again || self.known[at].written >= most {
            self.known[at].counted += 1;
            return false;
        }
        let mut known = self.known.remove(at);
        known.written += 1;
        self.known.push(known);
        true
    }

    /// What became due by `now_ms`: for each line that was counted, how often.
    pub fn take_counts(&mut self, now_ms: u64) -> Vec<Line> {
        let mut counts = std::mem::take(&mut self.forgotten);
        let over = self.known.extract_if(.., |known| known.until_ms() <= now_ms);
        counts.extend(over.filter_map(|known| known.told()));
        counts
    }

    /// When [`Repeats::take_counts`] has something next, if it ever has.
    pub fn next_deadline(&self) -> Option<u64> {
        self.known.iter().filter(|known| known.counted > 0).map(Known::until_ms).min()
    }

    fn make_room(&mut self) {
        if self.known.len() >= AGENT_LOG_LINES_KNOWN {
            let uncounted = self.known.iter().position(|known| known.counted == 0);
            let oldest = self.known.remove(uncounted.unwrap_or(0));
            self.forgotten.extend(oldest.told());
        }
    }
}

impl Known {
    fn until_ms(&self) -> u64 {
        self.since_ms.saturating_add(AGENT_LOG_REPEAT_MS)
    }

    fn told(self) -> Option<Line> {
        let Line { level, text } = self.line;
        let times = match self.counted {
            0 => return None,
            1 => "once".to_owned(),
            counted => format!("{counted} times"),
        };
        Some(Line { level, text: format!("{text} (said {times} more within an hour)") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    /// What is written of lines that are said at these times.
    fn written<'a>(said: impl IntoIterator<Item = (u64, Level, &'a str)>) -> Vec<String> {
        let mut repeats = Repeats::default();
        let mut written = Vec::new();
        let mut last = 0;
        for (at, level, text) in said {
            let counts = repeats.take_counts(at);
            written.extend(counts.into_iter().map(|line| line.text));
            if repeats.is_news(&Line { level, text: text.to_owned() }, at) {
                written.push(text.to_owned());
            }
            last = at;
        }
        written.extend(repeats.take_counts(last + HOUR).into_iter().map(|line| line.text));
        assert_eq!(repeats.next_deadline(), None);
        written
    }

    #[test]
    fn the_same_error_is_written_once_and_then_counted() {
        let said = (0..100).map(|second| (second * 1_000, Level::Warn, "no"));
        assert_eq!(written(said), ["no", "no (said 99 times more within an hour)"]);
        let said = [(0, Level::Error, "no"), (5, Level::Error, "no")];
        assert_eq!(written(said), ["no", "no (said once more within an hour)"]);
        let said = [(0, Level::Warn, "no"), (HOUR, Level::Warn, "no")];
        assert_eq!(written(said), ["no", "no"], "after an hour it is news");
    }

    #[test]
    fn what_comes_and_goes_is_written_a_few_times() {
        let said = (0..20).map(|n| (n, Level::Warn, if n % 2 == 0 { "away" } else { "refused" }));
        let lines = written(said);
        assert_eq!(lines[..6], ["away", "refused", "away", "refused", "away", "refused"]);
        let counts = ["away", "refused"].map(|w| format!("{w} (said 7 times more within an hour)"));
        assert_eq!(lines[6..], counts);
        // News is not taken for trouble: two changes of the same kind are two lines.
        let news = (0..13).map(|n| (n, Level::Info, "changed"));
        assert_eq!(written(news).len(), 12 + 1);
        let all = (0..50).map(|n| (n, Level::Debug, "detail"));
        assert_eq!(written(all).len(), 50);
    }

    #[test]
    fn few_lines_are_known_and_no_count_is_lost() {
        let texts: Vec<String> = (0..100).map(|n| format!("trouble {n}")).collect();
        let said = texts.iter().flat_map(|text| {
            let line = (0, Level::Warn, text.as_str());
            [line, line]
        });
        let lines = written(said);
        assert_eq!(
            lines.iter().filter(|line| line.ends_with("(said once more within an hour)")).count(),
            100
        );
        let mut repeats = Repeats::default();
        for text in texts {
            repeats.is_news(&Line { level: Level::Warn, text }, 0);
        }
        assert_eq!(repeats.known.len(), AGENT_LOG_LINES_KNOWN);
    }

    /// The engine is looked for every 5 s, and every look finds another reason.
    #[test]
    fn b94_a_day_without_an_engine_takes_less_than_100_kb() {
        let why = ["Connection refused", "No such file or directory", "timed out"];
        let texts =
            why.map(|why| format!("the engine is away: {why} (unix:///var/run/docker.sock)"));
        let looks =
            (0..24 * 3_600 / 5).map(|n: usize| (n as u64 * 5_000, Level::Warn, &*texts[n % 3]));
        let said: usize = looks.clone().map(|(_, _, text)| text.len()).sum();
        let bytes: usize = written(looks).iter().map(|line| line.len() + 30).sum();
        assert!(said > 1_000_000 && bytes < 100_000, "{bytes} of {said}");
    }
}
