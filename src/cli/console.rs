//! Everything around a command: what it reads, where it writes, its environment, its clock.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::config_cmd::Loaded;
use super::failure::Failure;
use super::pretty::pretty;
use super::tree::Tree;
use crate::limits;

/// Settles a configuration; what is wrong with it are sentences, each naming its place.
pub type LoadConfig<'a> = dyn Fn(Option<&Path>) -> Result<Loaded, Vec<String>> + 'a;

/// What a command has to do with the world beside the agent.
pub struct Console<'a> {
    /// Standard input.
    pub input: &'a mut dyn Read,
    /// Standard output: data only.
    pub out: &'a mut dyn Write,
    /// Standard error: progress, notes and errors.
    pub err: &'a mut dyn Write,
    /// Standard error is a terminal, so lines on it can be rewritten.
    pub terminal: bool,
    /// Standard input is a terminal too, so somebody can answer questions.
    pub input_terminal: bool,
    /// The environment's `BARGEE_` variables.
    pub environment: Vec<(String, String)>,
    /// Clock and patience.
    pub time: &'a dyn Time,
    /// Settles the configuration in a file, or in the default one, with environment and defaults.
    pub load_config: &'a LoadConfig<'a>,
}

/// Clock and patience, made up in tests.
pub trait Time {
    /// Milliseconds of a clock that is never set.
    fn now_ms(&self) -> u64;
    /// Unix time in milliseconds, for printing.
    fn wall_ms(&self) -> u64;
    /// Waits.
    fn pause(&self, span: Duration);
}

/// The clock of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemTime;

impl Time for SystemTime {
    fn now_ms(&self) -> u64 {
        crate::os::clock::boot_ms()
    }

    fn wall_ms(&self) -> u64 {
        crate::os::clock::wall_ms()
    }

    fn pause(&self, span: Duration) {
        // Nothing ever comes; a signal ends the process, which is the stop of a command.
        let _ = crossbeam_channel::never::<()>().recv_timeout(span);
    }
}

/// How data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// For both.
    Yaml,
}

impl Console<'_> {
    /// The value of an environment variable, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Writes `data` as JSON or YAML.
    ///
    /// # Errors
    /// Those of the output.
    pub fn data(&mut self, format: Format, data: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string(data).map_err(io::Error::from)?;
        let text = if format == Format::Yaml {
            serde_json::from_str::<Tree>(&json).map_err(io::Error::from)?.to_yaml()
        } else {
            pretty(&json) + "\n"
        };
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Asks a question that is answered with yes or no; anything but yes is no.
    ///
    /// # Errors
    /// The question could not be asked, or the answer could not be read.
    pub fn confirm(&mut self, question: &str) -> Result<bool, Failure> {
        write!(self.err, "{} [y/N] ", super::table::clean(question))?;
        self.err.flush()?;
        let mut answer = String::new();
        let input: &mut dyn Read = self.input;
        BufReader::new(input.take(limits::CLI_REPLY_BYTES))
            .read_line(&mut answer)
            .map_err(|error| Failure::failed(format!("the answer could not be read: {error}")))?;
        if !answer.ends_with('\n') {
            // Ended without a line: what is told next begins one.
            writeln!(self.err)?;
        }
        let answer = answer.trim();
        Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
    }

    /// Tells something on standard error that is no error.
    pub fn note(&mut self, text: &str) {
        // Whoever does not listen misses nothing that counts.
        let _ = writeln!(self.err, "{}", super::table::clean(text));
    }
}
