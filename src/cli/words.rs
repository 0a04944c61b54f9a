//! The words of a command line, global options taken out on the way.

use std::ffi::OsString;

use lexopt::{Arg, Parser};

use super::args::Global;
use super::console::Format;
use super::help::Topic;

/// Whether `option` of a command is not built yet.
fn is_later(topic: Topic, option: &str) -> bool {
    match topic {
        Topic::Logs => matches!(option, "--since" | "-t" | "--timestamps"),
        _ => false,
    }
}

/// Why the reading of words ends early.
pub enum Stop {
    /// Help is asked for.
    Help,
    /// This is wrong.
    Misuse(String),
}

/// Ends the reading: this is wrong.
///
/// # Errors
/// Always.
pub fn misuse<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Misuse(message.into()))
}

impl From<lexopt::Error> for Stop {
    fn from(error: lexopt::Error) -> Self {
        Self::Misuse(error.to_string())
    }
}

/// The words, global options taken out on the way.
pub struct Words {
    parser: Parser,
    /// The global options so far.
    pub global: Global,
    /// `-o` was among them.
    pub format_given: bool,
    /// The command whose words these are.
    pub topic: Topic,
}

/// One word.
pub enum Word {
    /// With its dashes.
    Option(String),
    /// Anything else.
    Value(OsString),
}

impl Words {
    /// All of them, without the program's name.
    pub fn new(words: Vec<OsString>) -> Self {
        Self {
            parser: Parser::from_args(words),
            global: Global::default(),
            format_given: false,
            topic: Topic::Overview,
        }
    }

    /// The next word that is no global option.
    ///
    /// # Errors
    /// Help is asked for, or a global option is wrong.
    pub fn word(&mut self) -> Result<Option<Word>, Stop> {
        loop {
            let option = match self.parser.next()? {
                None => return Ok(None),
                Some(Arg::Value(value)) => return Ok(Some(Word::Value(value))),
                Some(Arg::Short(letter)) => format!("-{letter}"),
                Some(Arg::Long(name)) => format!("--{name}"),
            };
            match option.as_str() {
                "-h" | "--help" => return Err(Stop::Help),
                "--socket" => self.global.socket = Some(self.parser.value()?.into()),
                "--config" => self.global.config = Some(self.parser.value()?.into()),
                "-o" | "--output" => self.format()?,
                other if is_later(self.topic, other) => {
                    return misuse(format!("{other} is not supported yet"));
                }
                _ => return Ok(Some(Word::Option(option))),
            }
        }
    }

    fn format(&mut self) -> Result<(), Stop> {
        self.format_given = true;
        self.global.format = match self.text()?.as_str() {
            "table" => Format::Table,
            "json" => Format::Json,
            "yaml" => Format::Yaml,
            other => return misuse(format!("-o {other}: allowed are table, json, yaml")),
        };
        Ok(())
    }

    /// The value of the option just read, of any bytes.
    ///
    /// # Errors
    /// There is none.
    pub fn os(&mut self) -> Result<OsString, Stop> {
        Ok(self.parser.value()?)
    }

    /// The value of the option just read, if one stands behind `=`.
    pub fn optional(&mut self) -> Option<OsString> {
        self.parser.optional_value()
    }

    /// The value of the option just read.
    ///
    /// # Errors
    /// There is none, or it is not text.
    pub fn text(&mut self) -> Result<String, Stop> {
        text(self.parser.value()?)
    }

    /// The next word, which may only be a value.
    ///
    /// # Errors
    /// It is an option, or not text.
    pub fn value(&mut self) -> Result<Option<String>, Stop> {
        match self.word()? {
            None => Ok(None),
            Some(Word::Value(value)) => text(value).map(Some),
            Some(Word::Option(option)) => unknown(&option),
        }
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// Something does.
    pub fn end(&mut self) -> Result<(), Stop> {
        match self.value()? {
            None => Ok(()),
            Some(value) => misuse(format!("'{value}' is one word too many")),
        }
    }
}

/// `word` as text.
///
/// # Errors
/// It is none.
pub fn text(word: OsString) -> Result<String, Stop> {
    word.into_string()
        .or_else(|word| misuse(format!("'{}' is not UTF-8 text", word.to_string_lossy())))
}

/// Ends the reading: nobody knows this option.
///
/// # Errors
/// Always.
pub fn unknown<T>(option: &str) -> Result<T, Stop> {
    misuse(format!("unknown option {option}"))
}
