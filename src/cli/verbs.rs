//! `bargee start`, `stop`, `restart`, `rebuild`, `kill` and `rm`: what changes one workload at a
//! time.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::args::{Change, Verb};
use super::client::{CallError, Client};
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::quiesce::held;
use super::table;
use crate::api::url::encode;
use crate::api::wire::{Accepted, List, Task, Workload};
use crate::domain::time::Span;
use crate::limits;

/// A verb that was accepted.
#[derive(Serialize)]
struct Begun {
    name: String,
    task: u64,
    revision: u64,
    /// When, by the client's clock.
    #[serde(skip)]
    at_ms: u64,
}

/// One command on its way through its workloads.
struct Round<'a> {
    client: &'a Client,
    change: &'a Change,
    format: Format,
    /// Accepted, and not settled as far as is known. The oldest comes first.
    open: VecDeque<Begun>,
    /// Settled tasks that are still to be told.
    done: Vec<Task>,
    /// The first failure.
    first: Option<Exit>,
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
    let (open, done) = (VecDeque::new(), Vec::new());
    let mut round = Round { client, change, format, open, done, first: None };
    for (at, name) in change.names.iter().enumerate() {
        // Asked for twice, the first would be superseded by the second.
        if !change.names[..at].contains(name) {
            round.begin(name, console)?;
        }
    }
    if change.wait {
        while !round.open.is_empty() {
            round.settle_oldest(console)?;
        }
        if format != Format::Table {
            console.data(format, &List { items: round.done })?;
        }
    } else {
        accepted(&change.verb, round.open.into(), format, console)?;
    }
    round.first.map_or(Ok(()), |exit| Err(Failure::told(exit)))
}

impl Round<'_> {
    /// Asks for one. An agent with too much to do is asked again when it has done some of it.
    fn begin(&mut self, name: &str, console: &mut Console) -> Result<(), Failure> {
        // The agent remembers only so many settled tasks.
        while self.change.wait && self.open.len() >= limits::TASK_QUEUE {
            self.settle_oldest(console)?;
        }
        let since = console.time.now_ms();
        loop {
            let answer = begin(self.client, &self.change.verb, name, console);
            let now = console.time.now_ms();
            match answer {
                Ok(Accepted { task, revision }) => {
                    let name = name.to_owned();
                    self.open.push_back(Begun { name, task, revision, at_ms: now });
                    return Ok(());
                }
                Err(CallError::Refused(429, _)) if now - since < limits::TASK_WAIT_MS => {}
                Err(error) => return self.tell(error.into(), console),
            }
            if self.change.wait && !self.open.is_empty() {
                self.settle_oldest(console)?;
            } else {
                console.time.pause(Duration::from_secs(limits::RETRY_AFTER_S));
            }
        }
    }

    /// Waits for the task that was asked for first, and tells what came of it.
    fn settle_oldest(&mut self, console: &mut Console) -> Result<(), Failure> {
        let Some(oldest) = self.open.pop_front() else { return Ok(()) };
        match wait(self.client, &oldest, console) {
            Ok(task) if self.format == Format::Table => {
                writeln!(console.out, "{} {}", task.key, past(&task.verb))?;
                Ok(console.out.flush()?)
            }
            Ok(task) => {
                self.done.push(task);
                Ok(())
            }
            Err(failure) => self.tell(failure, console),
        }
    }

    fn tell(&mut self, failure: Failure, console: &mut Console) -> Result<(), Failure> {
        failure.tell(console.err)?;
        self.first.get_or_insert(failure.exit);
        Ok(())
    }
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
        Verb::Rebuild => "rebuild",
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
        "rebuild" => "rebuilt",
        "kill" => "signalled",
        "rm" => "removed",
        other => other,
    }
}

/// Waits until the task of `one` is settled.
fn wait(client: &Client, one: &Begun, console: &mut Console) -> Result<Task, Failure> {
    let (mut pause_ms, mut is_told) = (limits::TASK_POLL_FIRST_MS, false);
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
            _ if task.held => {
                return Err(held(&format!("{}: {}", task.key, task.verb), &task.message));
            }
            _ => {}
        }
        let waited_ms = console.time.now_ms().saturating_sub(one.at_ms);
        if waited_ms >= limits::TASK_WAIT_MS {
            return Err(late(&task));
        }
        if waited_ms >= limits::TASK_TELL_MS && !is_told {
            tell_delay(client, &task, console);
            is_told = true;
        }
        console.time.pause(Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(limits::TASK_POLL_MS);
    }
}

/// Tells what a task is waiting for. Whoever does not listen misses nothing that counts.
fn tell_delay(client: &Client, task: &Task, console: &mut Console) {
    if let Ok(one) = client.get::<Workload>(&format!("/v1/ms/{}", encode(&task.uid)), console) {
        let info = if one.state_info.is_empty() { "" } else { ": " };
        let how = format!("{}{info}{}", one.state_words(), one.state_info);
        console.note(&format!("{}: {} is under way: {how}", task.key, task.verb));
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
    let by = if task.message.is_empty() { "its removal" } else { &task.message };
    let message = format!("{}: {} was superseded by {by}", task.key, task.verb);
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
