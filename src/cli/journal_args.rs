//! The words of `bargee journal` and `bargee adopt`.

use super::words::{Stop, Word, Words, misuse, text, unknown};

/// What to do with the journal. Entries are named by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Journal {
    /// List it.
    List,
    /// Show everything about an entry.
    Show(u64),
    /// Replay an entry now; `None`: all that failed.
    Replay(Option<u64>),
    /// Drop an entry.
    Drop {
        /// Which one.
        seq: u64,
        /// Without asking.
        yes: bool,
    },
}

/// Understands what follows `journal`.
///
/// # Errors
/// It makes no command.
pub fn journal(words: &mut Words) -> Result<Journal, Stop> {
    let journal = match words.value()?.as_deref() {
        Some("ls") => Journal::List,
        Some("show") => Journal::Show(needed(optional(words)?)?),
        Some("replay") => Journal::Replay(optional(words)?),
        Some("drop") => return dropped(words),
        Some(other) => return misuse(format!("'journal {other}' is no command")),
        None => return misuse("'journal' needs 'ls', 'show', 'replay' or 'drop'"),
    };
    words.end()?;
    Ok(journal)
}

fn optional(words: &mut Words) -> Result<Option<u64>, Stop> {
    match words.value()? {
        Some(text) => number(&text).map(Some),
        None => Ok(None),
    }
}

fn number(text: &str) -> Result<u64, Stop> {
    text.parse().or_else(|_| {
        misuse(format!("SEQ '{text}': must be a whole number, as `bargee journal ls` shows it"))
    })
}

fn needed(seq: Option<u64>) -> Result<u64, Stop> {
    seq.map_or_else(|| misuse("SEQ is missing"), Ok)
}

fn dropped(words: &mut Words) -> Result<Journal, Stop> {
    let (mut seq, mut yes) = (None, false);
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) if matches!(option.as_str(), "-y" | "--yes") => yes = true,
            Word::Option(option) => return unknown(&option),
            Word::Value(value) if seq.is_none() => seq = Some(number(&text(value)?)?),
            Word::Value(_) => return misuse("only one SEQ at a time"),
        }
    }
    Ok(Journal::Drop { seq: needed(seq)?, yes })
}

/// Understands what follows `adopt`: any name of a workload; `None`: all.
///
/// # Errors
/// It names neither one workload nor all of them, or both.
pub fn adopt(words: &mut Words) -> Result<Option<String>, Stop> {
    let (mut name, mut all) = (None, false);
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) if option == "--all" => all = true,
            Word::Option(option) => return unknown(&option),
            Word::Value(value) if name.is_none() => name = Some(text(value)?),
            Word::Value(_) => return misuse("only one NAME at a time"),
        }
    }
    match name.as_deref() {
        Some(_) if all => misuse("NAME and --all exclude each other"),
        // To the agent an empty name is none, and none is all.
        Some("") => misuse("NAME is empty"),
        None if !all => misuse("NAME or --all is missing"),
        _ => Ok(name),
    }
}
