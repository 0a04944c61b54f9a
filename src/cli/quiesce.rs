//! `bargee quiesce` and `bargee resume`: reconciling is held, and goes on.

use super::client::Client;
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::journal::tell;
use super::words::{Stop, Word, Words, misuse, unknown};
use crate::domain::time::Span;
use crate::limits;

/// Understands what follows `quiesce`: for how long.
///
/// # Errors
/// It is no time, or a longer one than is held.
pub fn span(words: &mut Words) -> Result<Span, Stop> {
    let mut span = Span(limits::QUIESCE_MS);
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) if option == "--for" => span = time(&words.text()?)?,
            Word::Option(option) => return unknown(&option),
            Word::Value(value) => {
                let value = value.to_string_lossy();
                return misuse(format!("'{value}': quiesce takes no names; it holds all"));
            }
        }
    }
    Ok(span)
}

fn time(text: &str) -> Result<Span, Stop> {
    let most = Span(limits::QUIESCE_MAX_MS);
    match Span::parse(text) {
        Some(span) if span <= most => Ok(span),
        Some(_) => misuse(format!("--for {text}: is longer than {}", most.words())),
        None => misuse(format!("--for {text}: must be a time like 90s, 15m or 1h")),
    }
}

/// Holds reconciling.
///
/// # Errors
/// The agent's, and those of the output.
pub fn quiesce(
    client: &Client,
    span: Span,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let done = client.post(&format!("/v1/system/quiesce?for={span}"), b"", console)?;
    tell(&done, format, console)
}

/// Goes on reconciling.
///
/// # Errors
/// The agent's, and those of the output.
pub fn resume(client: &Client, format: Format, console: &mut Console) -> Result<(), Failure> {
    let done = client.post("/v1/system/resume", b"", console)?;
    tell(&done, format, console)
}

/// What was asked for is kept, and nothing is done about it as long as reconciling is held.
pub fn held(what: &str, why: &str) -> Failure {
    let message = format!("{what} was accepted and is kept, but {why}");
    let hint = "it is carried out when that is over; `bargee resume` ends it now";
    Failure::new(Exit::Conflict, message).with_hint(hint)
}
