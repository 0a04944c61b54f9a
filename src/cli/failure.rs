//! Why a command did not do what it was asked for, and the exit code that tells it.

use std::io::{self, ErrorKind, Write};

/// The exit codes, on which scripts and service files can act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It is done.
    Done,
    /// It failed, or was refused as wrong.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The caller may not.
    NotAllowed,
    /// There is no such workload.
    NotFound,
    /// Something stands in the way: an ambiguous name, another source.
    Conflict,
    /// The agent cannot be reached.
    Unreachable,
}

impl Exit {
    /// The number of the exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotAllowed => 3,
            Self::NotFound => 4,
            Self::Conflict => 5,
            Self::Unreachable => 10,
        }
    }
}

/// Why a command ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What was wrong and where; empty: it was told already.
    pub message: String,
    /// What to do about it; empty: nothing to say.
    pub hint: String,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: String::new() }
    }

    /// Plain failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Everything was told already.
    pub fn told(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// The same with a hint.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Tells it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn tell(&self, err: &mut dyn Write) -> io::Result<()> {
        if !self.message.is_empty() {
            writeln!(err, "error: {}", super::table::clean(&self.message))?;
        }
        if !self.hint.is_empty() {
            writeln!(err, "hint: {}", super::table::clean(&self.hint))?;
        }
        Ok(())
    }
}

impl From<io::Error> for Failure {
    /// A failed write of what was asked for. Whoever reads it may stop at any time, as `head` does.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::told(Exit::Done),
            _ => Self::failed(format!("the output could not be written: {error}")),
        }
    }
}
