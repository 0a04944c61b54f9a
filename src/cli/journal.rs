//! `bargee journal`, `bargee adopt` and `bargee confirm`: what a crash left, or what looks wrong,
//! and what to do about it.

use super::client::{CallError, Client};
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::journal_args::Journal;
use super::table;
use crate::api::url::encode;
use crate::api::wire::{Done, Entry, List};

/// Shows the journal, or handles an entry of it.
///
/// # Errors
/// The agent's, those of the output, and that an entry is not dropped unasked.
pub fn journal(
    client: &Client,
    what: Journal,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    match what {
        Journal::List => list(client, format, console),
        Journal::Show(seq) => {
            let entry = read(client, seq, console)?;
            let format = if format == Format::Table { Format::Yaml } else { format };
            console.data(format, &entry)
        }
        Journal::Replay(seq) => {
            let seq = seq.map(|seq| format!("/{seq}")).unwrap_or_default();
            let done = client.post(&format!("/v1/journal{seq}/replay"), b"", console);
            tell(&done.map_err(failure)?, format, console)
        }
        Journal::Drop { seq, yes } => {
            if !yes {
                ask(client, seq, console)?;
            }
            let done = client.delete(&format!("/v1/journal/{seq}"), console);
            tell(&done.map_err(failure)?, format, console)
        }
    }
}

/// Takes over containers of another store: those of `name`, or all that wait.
///
/// # Errors
/// The agent's, and those of the output.
pub fn adopt(
    client: &Client,
    name: Option<&str>,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let query = name.map(|name| format!("?name={}", encode(name))).unwrap_or_default();
    let done = client.post(&format!("/v1/system/adopt{query}"), b"", console)?;
    tell(&done, format, console)
}

/// Says that what the agent holds because it is suspicious is as it should be.
///
/// # Errors
/// The agent's, and those of the output.
pub fn confirm(client: &Client, format: Format, console: &mut Console) -> Result<(), Failure> {
    let done = client.post("/v1/system/confirm", b"", console)?;
    tell(&done, format, console)
}

fn list(client: &Client, format: Format, console: &mut Console) -> Result<(), Failure> {
    let list: List<Entry> = client.get("/v1/journal", console)?;
    if format != Format::Table {
        return console.data(format, &list);
    }
    let now = console.time.wall_ms();
    let head = ["SEQ", "TYPE", "DIRECTION", "WORKLOAD", "INSTANCE", "AGE", "TRIES", "ERROR"];
    let rows: Vec<Vec<String>> = list.items.iter().map(|entry| row(entry, now)).collect();
    table::write(console.out, &head, &rows)?;
    if rows.is_empty() {
        console.note("the journal is empty: nothing is in flight, and nothing was left");
    }
    Ok(())
}

fn row(entry: &Entry, now: u64) -> Vec<String> {
    vec![
        entry.seq.to_string(),
        entry.kind.clone(),
        entry.direction.clone(),
        workload(entry).to_owned(),
        entry.instance.clone(),
        table::span(now.saturating_sub(entry.at)),
        entry.tries.to_string(),
        entry.error.clone(),
    ]
}

/// The workload by its name, or by its uid where it has none any more.
fn workload(entry: &Entry) -> &str {
    if entry.workload.is_empty() { &entry.uid } else { &entry.workload }
}

fn read(client: &Client, seq: u64, console: &mut Console) -> Result<Entry, Failure> {
    client.get(&format!("/v1/journal/{seq}"), console).map_err(failure)
}

fn failure(error: CallError) -> Failure {
    match error {
        CallError::Refused(404, detail) => Failure::new(Exit::NotFound, detail.message)
            .with_hint("`bargee journal ls` lists what is in the journal"),
        error => error.into(),
    }
}

/// Tells what the agent said that it did.
///
/// # Errors
/// Those of the output.
pub fn tell(done: &Done, format: Format, console: &mut Console) -> Result<(), Failure> {
    if format != Format::Table {
        return console.data(format, done);
    }
    writeln!(console.out, "{}", table::clean(&done.message))?;
    Ok(console.out.flush()?)
}

/// Says what will be left undone, and asks.
fn ask(client: &Client, seq: u64, console: &mut Console) -> Result<(), Failure> {
    if !(console.terminal && console.input_terminal) {
        let message = "there is no terminal to ask on, so nothing was dropped";
        let hint = format!(
            "`bargee journal show {seq}` shows the entry; `bargee journal drop {seq} --yes` \
             drops it without asking"
        );
        return Err(Failure::new(Exit::Usage, message).with_hint(hint));
    }
    let entry = read(client, seq, console)?;
    console.note(&format!("entry {seq}, {}; left undone: {}", what(&entry), undone(&entry)));
    if console.confirm(&format!("drop entry {seq}?"))? {
        return Ok(());
    }
    Err(Failure::failed("nothing was dropped"))
}

fn what(entry: &Entry) -> String {
    match entry.direction.as_str() {
        "" => entry.kind.clone(),
        direction => format!("{} ({direction})", entry.kind),
    }
}

/// What replay would have done.
fn undone(entry: &Entry) -> String {
    let (workload, instance) = (workload(entry), &entry.instance);
    match (entry.direction.as_str(), entry.new.as_str()) {
        // Without an instance nothing can be said of it.
        _ if instance.is_empty() => {
            let show = format!("`bargee journal show {}` shows its text", entry.seq);
            format!("nobody knows, since this version cannot read it; {show}")
        }
        ("create", _) => format!(
            "removing container {instance}, if it was made and is not the one that \
             {workload} keeps"
        ),
        ("remove", _) => format!("removing container {instance} of {workload}"),
        (_, new) => format!(
            "keeping only the one of the containers {instance} (old) and {new} (new) that \
             {workload} runs in"
        ),
    }
}
