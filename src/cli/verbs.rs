//! `bargee start`, `stop`, `restart`, `kill` and `rm`: what changes one workload at a time.

use std::time::Duration;

use serde::Serialize;

use super::args::{Change, Verb};
use super::client::{CallError, Client};
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::table;
use crate::api::url::encode;
use crate::api::wire::{Accepted, List, Task};
use crate::domain::time::Span;
use crate::limits;

/// A verb that was accepted.
#[derive(Serialize)]
struct Begun {
    name: String,
    task: u64,
    revision: u64,
}

/// Asks for all, then waits for all. Each failure is told; the first one is the exit code.
///
/// # Errors
/// The first failure.
pub fn change(
    client: &Client,
    change: &Change,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut first = None;
    let mut begun = Vec::new();
    for name in &change.names {
        match begin(client, &change.verb, name, console) {
            Ok(accepted) => begun.push(Begun {
                name: name.clone(),
                task: accepted.task,
                revision: accepted.revision,
            }),
            Err(error) => tell(error.into(), &mut first, console)?,
        }
    }
    if change.wait {
        wait_all(client, &begun, format, &mut first, console)?;
    } else {
        accepted(&change.verb, begun, format, console)?;
    }
    first.map_or(Ok(()), |exit| Err(Failure::told(exit)))
}

fn tell(failure: Failure, first: &mut Option<Exit>, console: &mut Console) -> Result<(), Failure> {
    failure.tell(console.err)?;
    first.get_or_insert(failure.exit);
    Ok(())
}

fn begin(
    client: &Client,
    verb: &Verb,
    name: &str,
    console: &mut Console,
) -> Result<Accepted, CallError> {
    let path = format!("/v1/ms/{}", encode(name));
    match verb {
        Verb::Remove => client.delete(&path, console),
        Verb::Kill(Some(signal)) => {
            client.post(&format!("{path}/kill?signal={}", encode(signal)), b"", console)
        }
        verb => client.post(&format!("{path}/{}", word(verb)), b"", console),
    }
}

fn word(verb: &Verb) -> &'static str {
    match verb {
        Verb::Start => "start",
        Verb::Stop => "stop",
        Verb::Restart => "restart",
        Verb::Kill(_) => "kill",
        Verb::Remove => "rm",
    }
}

fn accepted(
    verb: &Verb,
    begun: Vec<Begun>,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    if format != Format::Table {
        return console.data(format, &List { items: begun });
    }
    for one in begun {
        let (name, word, task) = (table::clean(&one.name), word(verb), one.task);
        writeln!(console.out, "{name}: {word} accepted (task {task})")?;
    }
    Ok(console.out.flush()?)
}

fn wait_all(
    client: &Client,
    begun: &[Begun],
    format: Format,
    first: &mut Option<Exit>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut done = Vec::new();
    let begin = console.time.now_ms();
    for one in begun {
        match wait(client, one, begin, console) {
            Ok(task) if format == Format::Table => {
                writeln!(console.out, "{} {}", task.key, past(&task.verb))?;
                console.out.flush()?;
            }
            Ok(task) => done.push(task),
            Err(failure) => tell(failure, first, console)?,
        }
    }
    if format == Format::Table {
        return Ok(());
    }
    console.data(format, &List { items: done })
}

fn past(verb: &str) -> &str {
    match verb {
        "start" => "started",
        "stop" => "stopped",
        "restart" => "restarted",
        "kill" => "signalled",
        "rm" => "removed",
        other => other,
    }
}

/// Waits until the task of `one` is settled. All tasks run side by side, so they share the time
/// that began at `begin`.
fn wait(client: &Client, one: &Begun, begin: u64, console: &mut Console) -> Result<Task, Failure> {
    let mut pause_ms = limits::TASK_POLL_FIRST_MS;
    loop {
        let task: Task = match client.get(&format!("/v1/tasks/{}", one.task), console) {
            Ok(task) => task,
            Err(CallError::Refused(404, detail)) => return Err(forgotten(one, &detail.message)),
            Err(error) => return Err(error.into()),
        };
        match task.state.as_str() {
            "done" => return Ok(task),
            "failed" => return Err(failed(&task)),
            "superseded" => return Err(superseded(&task)),
            _ => {}
        }
        if console.time.now_ms().saturating_sub(begin) >= limits::TASK_WAIT_MS {
            return Err(late(&task));
        }
        console.time.pause(Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(limits::TASK_POLL_MS);
    }
}

fn failed(task: &Task) -> Failure {
    Failure::failed(format!("{}: {} failed: {}", task.key, task.verb, task.message))
        .with_hint(format!("`bargee inspect {}` says more", task.key))
}

fn forgotten(one: &Begun, message: &str) -> Failure {
    Failure::failed(format!("{}: what came of it is not known: {message}", one.name))
        .with_hint("`bargee ps -a` shows how it stands")
}

fn superseded(task: &Task) -> Failure {
    let message = format!("{}: {} was superseded: {}", task.key, task.verb, task.message);
    Failure::new(Exit::Conflict, message)
}

fn late(task: &Task) -> Failure {
    let waited = Span(limits::TASK_WAIT_MS);
    let message = format!(
        "{}: {} is not done after {waited}; it goes on in the background",
        task.key, task.verb
    );
    Failure::failed(message).with_hint(format!("`bargee inspect {}` shows how far it is", task.key))
}
