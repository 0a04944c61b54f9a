//! The thread that writes the agent's own log, so that nobody else ever waits for a disk, a full
//! pipe or a terminal. What cannot be written is dropped and counted, and told once it can be.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use log::Level;

use super::log_file::LogFile;
use super::repeats::{Line, Repeats};
use super::{clock, thread};
use crate::limits;

/// Where lines go.
pub trait Sink: Send {
    /// Writes one line, which ends in a newline.
    ///
    /// # Errors
    /// It was not written.
    fn write(&mut self, line: &str) -> io::Result<()>;

    /// What to call it where somebody is told that it does not work.
    fn name(&self) -> String;
}

/// Standard error.
#[derive(Debug)]
pub struct Stderr;

impl Sink for Stderr {
    fn write(&mut self, line: &str) -> io::Result<()> {
        io::stderr().write_all(line.as_bytes())
    }

    fn name(&self) -> String {
        "standard error".to_owned()
    }
}

impl Sink for LogFile {
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.append(line)
    }

    fn name(&self) -> String {
        self.path().display().to_string()
    }
}

/// The target of log records that are figures: each is written, however often it says the same.
pub const FIGURES: &str = "figures";

/// Where lines are said. Saying one never blocks.
#[derive(Clone, Debug)]
pub struct Log {
    said: Sender<Said>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Said {
    Line { line: Line, wall_ms: u64, figures: bool },
    Stop(Sender<()>),
}

/// Starts the thread. `time` gives the text for a time in unix milliseconds; without it, lines have
/// none: who reads them adds it.
///
/// # Errors
/// The system has no more threads.
pub fn start(sink: Box<dyn Sink>, time: Option<fn(u64) -> String>) -> io::Result<Log> {
    let (said, heard) = bounded(limits::AGENT_LOG_QUEUE);
    let dropped = Arc::<AtomicU64>::default();
    let writer = Writer::new(sink, time, dropped.clone());
    thread::spawn("log", move || writer.run(&heard))?;
    Ok(Log { said, dropped })
}

impl Log {
    /// Says something, now. `target` is that of the log record.
    pub fn say(&self, level: Level, target: &str, text: String) {
        let line = Line { level, text };
        let said = Said::Line { line, wall_ms: clock::wall_ms(), figures: target == FIGURES };
        if self.said.try_send(said).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all that was said is written, but not for long, and ends the thread.
    pub fn stop(&self) {
        let wait = Duration::from_millis(limits::AGENT_LOG_STOP_MS);
        let (stopped, wait_for_it) = bounded(0);
        if self.said.send_timeout(Said::Stop(stopped), wait).is_ok() {
            // Nothing is ever sent: the channel closes.
            let _ = wait_for_it.recv_timeout(wait);
        }
    }
}

struct Writer {
    sink: Box<dyn Sink>,
    time: Option<fn(u64) -> String>,
    repeats: Repeats,
    /// Lines that found the queue full.
    dropped: Arc<AtomicU64>,
    /// Lines that were not written, and nobody has been told yet.
    lost: u64,
    /// Why the last of them was not; `None`: there was no time.
    cause: Option<io::Error>,
}

impl Writer {
    fn new(sink: Box<dyn Sink>, time: Option<fn(u64) -> String>, dropped: Arc<AtomicU64>) -> Self {
        let (repeats, cause) = (Repeats::default(), None);
        Self { sink, time, repeats, dropped, lost: 0, cause }
    }

    fn run(mut self, heard: &Receiver<Said>) {
        loop {
            match self.next(heard) {
                Ok(Said::Line { line, wall_ms, figures: true }) => self.write(&line, wall_ms),
                Ok(Said::Line { line, wall_ms, .. }) => self.take(&line, wall_ms),
                Ok(Said::Stop(stopped)) => {
                    self.tell_counts(u64::MAX);
                    self.tell_lost();
                    return drop(stopped);
                }
                Err(RecvTimeoutError::Timeout) => self.tell_counts(clock::boot_ms()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn next(&self, heard: &Receiver<Said>) -> Result<Said, RecvTimeoutError> {
        match self.repeats.next_deadline() {
            None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => {
                heard.recv_timeout(Duration::from_millis(at.saturating_sub(clock::boot_ms())))
            }
        }
    }

    fn take(&mut self, line: &Line, wall_ms: u64) {
        let now = clock::boot_ms();
        self.tell_counts(now);
        if self.repeats.is_news(line, now) {
            self.write(line, wall_ms);
        }
    }

    fn tell_counts(&mut self, now_ms: u64) {
        for line in self.repeats.take_counts(now_ms) {
            self.write(&line, clock::wall_ms());
        }
    }

    fn write(&mut self, line: &Line, wall_ms: u64) {
        if !self.tell_lost() {
            self.lost += 1;
            return;
        }
        let text = self.composed(line.level, &line.text, wall_ms);
        if let Err(error) = self.sink.write(&text) {
            let name = self.sink.name();
            // The only other place; where that is none either, there is nobody to tell.
            let _ = writeln!(
                io::stderr(),
                "warn  cannot write the log to {name}: {error}; lines are dropped until it can be \
                 written"
            );
            self.lost += 1;
            self.cause = Some(error);
        }
    }

    /// Says how many lines are missing, if any are. Whether it could be said.
    fn tell_lost(&mut self) -> bool {
        self.lost += self.dropped.swap(0, Ordering::Relaxed);
        if self.lost == 0 {
            return true;
        }
        let lines =
            if self.lost == 1 { "1 line".to_owned() } else { format!("{} lines", self.lost) };
        let why = match &self.cause {
            Some(error) => error.to_string(),
            None => "they came faster than they could be written".to_owned(),
        };
        let text = format!("{lines} of this log were dropped: {why}");
        let text = self.composed(Level::Warn, &text, clock::wall_ms());
        match self.sink.write(&text) {
            Ok(()) => (self.lost, self.cause) = (0, None),
            Err(error) => self.cause = Some(error),
        }
        self.lost == 0
    }

    fn composed(&self, level: Level, text: &str, wall_ms: u64) -> String {
        let level = level.as_str().to_ascii_lowercase();
        let text = one_line(text);
        let mut line = match self.time {
            Some(time) => format!("{} {level:<5} {text}", time(wall_ms)),
            None => format!("{level:<5} {text}"),
        };
        let most = limits::AGENT_LOG_LINE_BYTES - 1;
        if line.len() > most {
            let end = (0..=most).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
        }
        line.push('\n');
        line
    }
}

/// What is said comes from engines and registries too: no end of a line within it may pass for the
/// beginning of another one, and nothing in it moves the cursor of a terminal.
fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim_end();
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { plain.extend(c.escape_default()) } else { plain.push(c) }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A sink that fails, or waits, as the test says.
    #[derive(Clone, Default)]
    struct Paper {
        lines: Arc<Mutex<Vec<String>>>,
        full: Arc<Mutex<bool>>,
    }

    impl Sink for Paper {
        fn write(&mut self, line: &str) -> io::Result<()> {
            if *self.full.lock() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.lines.lock().push(line.to_owned());
            Ok(())
        }

        fn name(&self) -> String {
            "paper".to_owned()
        }
    }

    impl Paper {
        fn log(&self, time: Option<fn(u64) -> String>) -> Log {
            start(Box::new(self.clone()), time).unwrap()
        }

        fn lines(&self) -> Vec<String> {
            self.lines.lock().clone()
        }
    }

    #[test]
    fn lines_are_written_in_order_with_time_and_level() {
        let paper = Paper::default();
        let log = paper.log(Some(|_| "noon".to_owned()));
        log.say(Level::Info, "a", "one".to_owned());
        log.say(Level::Error, "a", "two".to_owned());
        log.say(Level::Error, "a", "two".to_owned());
        for _ in 0..100 {
            log.say(Level::Info, FIGURES, "1 2 3".to_owned());
        }
        log.stop();
        let mut lines = paper.lines();
        lines.retain(|line| line != "noon info  1 2 3\n");
        assert_eq!(paper.lines().len() - lines.len(), 100, "figures are no repetitions");
        let expected = [
            "noon info  one\n",
            "noon error two\n",
            "noon error two (said once more within an hour)\n",
        ];
        assert_eq!(lines, expected);
        let paper = Paper::default();
        let log = paper.log(None);
        log.say(Level::Warn, "a", "ä".repeat(10_000));
        log.stop();
        let lines = paper.lines();
        assert!(lines[0].starts_with("warn  ä") && lines[0].ends_with("ä\n"));
        assert!(lines[0].len() <= limits::AGENT_LOG_LINE_BYTES, "{}", lines[0].len());
    }

    /// An engine's words may hold anything, and who reads a line believes its beginning.
    #[test]
    fn what_is_said_is_one_line_and_does_nothing_to_a_terminal() {
        let paper = Paper::default();
        let log = paper.log(None);
        log.say(Level::Warn, "a", "no:\n\terror all is well\r\u{1b}[2J\u{9b}A ä\n".to_owned());
        log.stop();
        assert_eq!(paper.lines(), ["warn  no:\\n\\terror all is well\\r\\u{1b}[2J\\u{9b}A ä\n"]);
    }

    #[test]
    fn what_could_not_be_written_is_counted_and_told() {
        let paper = Paper::default();
        let mut writer = Writer::new(Box::new(paper.clone()), None, Arc::default());
        let mut say = |text: &str| {
            let line = Line { level: Level::Info, text: text.to_owned() };
            writer.take(&line, 0);
        };
        *paper.full.lock() = true;
        ["a", "b", "c"].iter().for_each(|text| say(text));
        assert_eq!(paper.lines(), [""; 0]);
        *paper.full.lock() = false;
        ["d", "e"].iter().for_each(|text| say(text));
        let lines = paper.lines();
        assert_eq!(lines[0], "warn  3 lines of this log were dropped: no storage space\n");
        assert_eq!(lines[1..], ["info  d\n", "info  e\n"]);
    }

    #[test]
    fn nobody_waits_for_a_sink_that_hangs() {
        let paper = Paper::default();
        let log = paper.log(None);
        let hanging = paper.full.lock();
        let many = limits::AGENT_LOG_QUEUE * 4;
        for number in 0..many {
            log.say(Level::Info, "a", format!("line {number}"));
        }
        // One is being written, the queue is full, and this came to its end.
        drop(hanging);
        // The end of the log waits for no more than half a second, however slow all is.
        let (missing, lines) = loop {
            let lines = paper.lines();
            let told = lines.iter().find_map(|line| {
                line.strip_prefix("warn  ")?
                    .split_once(" lines of this log were dropped: they came faster")
            });
            let missing: usize = told.map_or(0, |(number, _)| number.parse().unwrap());
            if missing > 0 && missing + lines.len() > many {
                break (missing, lines.len());
            }
            std::thread::yield_now();
        };
        log.stop();
        assert_eq!(missing + lines - 1, many);
        assert!(missing >= many - limits::AGENT_LOG_QUEUE - 2, "{missing}");
    }
}
