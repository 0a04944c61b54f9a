//! Progress on standard error: rewritten in place on a terminal, else a line for each change.

use std::io::{self, Write};

use super::console::Console;
use super::reach::{Goal, Verdict};
use super::table;

/// Lines that are rewritten at most, so that they fit on any screen.
const LINES: usize = 12;
/// Longest line that is rewritten: a longer one would wrap and be two.
const WIDTH: usize = 79;

/// What was shown so far.
#[derive(Debug, Default)]
pub struct Progress {
    /// Lines on the terminal that the next look overwrites.
    shown: usize,
    /// The last line of each goal, without a terminal.
    told: Vec<String>,
}

impl Progress {
    /// Shows how `goals` stand. Whoever does not listen misses nothing that counts.
    pub fn show(&mut self, console: &mut Console, goals: &[Goal]) {
        let _ = if console.terminal {
            self.rewrite(console.err, goals)
        } else {
            self.tell(console.err, goals)
        };
    }

    fn rewrite(&mut self, err: &mut dyn Write, goals: &[Goal]) -> io::Result<()> {
        let mut lines: Vec<String> =
            goals.iter().filter(|goal| !goal.is_settled()).map(line).collect();
        let settled = goals.len() - lines.len();
        if lines.len() > LINES {
            let more = lines.len() - LINES + 1;
            lines.truncate(LINES - 1);
            lines.push(format!("... and {more} more"));
        }
        lines.push(format!("{settled} of {} settled", goals.len()));
        let mut text = String::new();
        if self.shown > 0 {
            text.push_str(&format!("\x1b[{}A", self.shown));
        }
        for line in &lines {
            text.push_str(&format!("\x1b[2K{}\n", table::cut(&table::clean(line), WIDTH)));
        }
        // What is left of a longer look before.
        text.push_str("\x1b[J");
        self.shown = lines.len();
        err.write_all(text.as_bytes())?;
        err.flush()
    }

    fn tell(&mut self, err: &mut dyn Write, goals: &[Goal]) -> io::Result<()> {
        self.told.resize(goals.len(), String::new());
        for (goal, told) in goals.iter().zip(&mut self.told) {
            let stage = match goal.verdict() {
                Verdict::Waiting { stage, .. } => stage,
                Verdict::Reached(how) => how,
                // Told as an error at the end.
                Verdict::Failed(_) => continue,
            };
            if stage != told {
                writeln!(err, "{}: {}", goal.key, table::clean(stage))?;
                stage.clone_into(told);
            }
        }
        err.flush()
    }
}

fn line(goal: &Goal) -> String {
    match goal.verdict() {
        Verdict::Waiting { stage, detail } if detail.is_empty() => {
            format!("{}: {stage}", goal.key)
        }
        Verdict::Waiting { stage, detail } => format!("{}: {stage}, {detail}", goal.key),
        Verdict::Reached(text) | Verdict::Failed(text) => format!("{}: {text}", goal.key),
    }
}
