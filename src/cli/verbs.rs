//! `bargee start`, `stop`, `restart`, `kill` and `rm`: what changes one workload at a time.

use std::collections::VecDeque;
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
    #[serde(skip)]
    at_ms: u64,
}

/// Asks for all and waits for all; each failure is told, and the first one is the exit code. Only so
/// many are under way at a time: the agent takes no more tasks than it has room for, and does not
/// remember for ever how each one ended.
///
/// # Errors
/// The first failure.
pub fn change(
    client: &Client,
    change: &Change,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut ends = Ends { client, format, done: Vec::new(), first: None };
    let mut begun = VecDeque::new();
    for name in &change.names {
        if change.wait && begun.len() >= limits::TASKS_ASKED {
            ends.wait_for_oldest(&mut begun, console)?;
        }
        loop {
            match begin(client, &change.verb, name, console) {
                Ok(one) => begun.push_back(one),
                Err(error) if change.wait && is_busy(&error) && !begun.is_empty() => {
                    ends.wait_for_oldest(&mut begun, console)?;
                    continue;
                }
                Err(error) => ends.tell(error.into(), console)?,
            }
            break;
        }
    }
    if !change.wait {
        accepted(&change.verb, begun.into(), format, console)?;
        return ends.outcome();
    }
    while !begun.is_empty() {
        ends.wait_for_oldest(&mut begun, console)?;
    }
    if format != Format::Table {
        console.data(format, &List { items: std::mem::take(&mut ends.done) })?;
    }
    ends.outcome()
}

fn is_busy(error: &CallError) -> bool {
    matches!(error, CallError::Refused(429, _))
}

/// How the tasks ended.
struct Ends<'a> {
    client: &'a Client,
    format: Format,
    done: Vec<Task>,
    first: Option<Exit>,
}

impl Ends<'_> {
    /// Waits for the task that was begun first, and tells what came of it.
    fn wait_for_oldest(
        &mut self,
        begun: &mut VecDeque<Begun>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Some(one) = begun.pop_front() else { return Ok(()) };
        match wait(self.client, &one, console) {
            Ok(task) if self.format == Format::Table => {
                writeln!(console.out, "{} {}", task.key, past(&task.verb))?;
                console.out.flush()?;
            }
            Ok(task) => self.done.push(task),
            Err(failure) => self.tell(failure, console)?,
        }
        Ok(())
    }

    fn tell(&mut self, failure: Failure, console: &mut Console) -> Result<(), Failure> {
        failure.tell(console.err)?;
        self.first.get_or_insert(failure.exit);
        Ok(())
    }

    fn outcome(self) -> Result<(), Failure> {
        self.first.map_or(Ok(()), |exit| Err(Failure::told(exit)))
    }
}

fn begin(client: &Client, verb: &Verb, name: &str, console: &Console) -> Result<Begun, CallError> {
    let path = format!("/v1/ms/{}", encode(name));
    let accepted: Accepted = match verb {
        Verb::Remove => client.delete(&path)?,
        Verb::Kill(Some(signal)) => {
            client.post(&format!("{path}/kill?signal={}", encode(signal)), b"")?
        }
        verb => client.post(&format!("{path}/{}", word(verb)), b"")?,
    };
    Ok(Begun {
        name: name.to_owned(),
        task: accepted.task,
        revision: accepted.revision,
        at_ms: console.time.now_ms(),
    })
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

/// Waits until the task of `one` is settled. Tasks run side by side, so the time of each began when
/// it was accepted.
fn wait(client: &Client, one: &Begun, console: &Console) -> Result<Task, Failure> {
    let mut pause_ms = limits::TASK_POLL_FIRST_MS;
    loop {
        let task: Task = match client.get(&format!("/v1/tasks/{}", one.task)) {
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
        if console.time.now_ms().saturating_sub(one.at_ms) >= limits::TASK_WAIT_MS {
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
