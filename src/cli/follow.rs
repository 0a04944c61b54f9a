//! `bargee logs` and `events`: what is read as it comes.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::client::Client;
use super::console::{Console, Format};
use super::failure::Failure;
use super::table;
use super::tree::Tree;
use crate::api::url::encode;
use crate::api::wire::Transition;
use crate::limits;

/// Writes the log of a workload, byte by byte as it was written.
///
/// # Errors
/// The agent's, and those of the output.
pub fn logs(
    client: &Client,
    name: &str,
    follow: bool,
    tail: Option<u64>,
    console: &mut Console,
) -> Result<(), Failure> {
    let tail = tail.map(|lines| format!("&tail={lines}")).unwrap_or_default();
    let path = format!("/v1/ms/{}/logs?follow={follow}{tail}", encode(name));
    let mut log = client.stream(&path, console)?;
    let mut piece = vec![0; limits::LOG_CHUNK_BYTES];
    loop {
        match log.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                console.out.write_all(&piece[..length])?;
                console.out.flush()?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(broke_off("log", &error)),
        }
    }
}

fn broke_off(what: &str, error: &io::Error) -> Failure {
    Failure::failed(format!("the {what} broke off: {error}"))
        .with_hint("`bargee status` says whether the agent and its engine are well")
}

/// Writes transitions, one a line.
///
/// # Errors
/// The agent's, and those of the output.
pub fn events(
    client: &Client,
    follow: bool,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let stream = client.stream(&format!("/v1/events?follow={follow}"), console)?;
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| broke_off("event stream", &error))?;
        // A sign of life.
        if line.is_empty() {
            continue;
        }
        let text = event(&line, format).map_err(|error| broke_off("event stream", &error))?;
        console.out.write_all(text.as_bytes())?;
        console.out.flush()?;
    }
    Ok(())
}

fn event(line: &str, format: Format) -> io::Result<String> {
    match format {
        Format::Json => Ok(format!("{line}\n")),
        Format::Yaml => Ok(format!("---\n{}", serde_json::from_str::<Tree>(line)?.to_yaml())),
        Format::Table => Ok(sentence(&serde_json::from_str(line)?)),
    }
}

fn sentence(event: &Transition) -> String {
    let from = if event.from.is_empty() { "new" } else { &event.from };
    let info = if event.info.is_empty() { String::new() } else { format!("  {}", event.info) };
    let health = if event.health.is_empty() { String::new() } else { format!(" {}", event.health) };
    let (at, key, to) = (table::utc(event.at), &event.key, &event.to);
    format!("{}\n", table::clean(&format!("{at}  {key}  {from} -> {to}{health}{info}")))
}
