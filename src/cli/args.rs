//! The command line: words in, one command out.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::console::Format;
use super::help::Topic;
use super::journal_args::{self, Journal};
use super::quiesce;
use super::words::{Stop, Word, Words, misuse, text, unknown};
use crate::config::Flags;
use crate::domain::time::Span;
use crate::limits;

/// A command line, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invocation {
    /// Options that every command has.
    pub global: Global,
    /// What to do.
    pub command: Command,
}

/// Options that every command has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Global {
    /// `--socket`.
    pub socket: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `-o`.
    pub format: Format,
}

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Print help.
    Help(Topic),
    /// Be the agent.
    Agent(Box<AgentFlags>),
    /// Declare workloads.
    Deploy(Deploy),
    /// List workloads.
    Ps {
        /// Stopped and succeeded ones too.
        all: bool,
    },
    /// Show everything about workloads.
    Inspect(Vec<String>),
    /// Read a log.
    Logs {
        /// Whose.
        name: String,
        /// Go on with what is written later.
        follow: bool,
        /// Only the last lines.
        tail: Option<u64>,
    },
    /// Change workloads.
    Change(Change),
    /// Read transitions.
    Events {
        /// Go on with what happens later.
        follow: bool,
    },
    /// Show the agent.
    Status,
    /// Show the journal, or handle an entry of it.
    Journal(Journal),
    /// Take over containers of another store.
    Adopt {
        /// Any name of the workload; `None`: all that wait for it.
        name: Option<String>,
    },
    /// Say that what is held because it is suspicious is as it should be.
    Confirm,
    /// Hold reconciling for so long.
    Quiesce(Span),
    /// Go on reconciling.
    Resume,
    /// Show versions.
    Version,
    /// Check the configuration.
    ConfigCheck,
    /// Show the configuration, settled.
    ConfigShow,
}

/// Flags of `bargee agent`; each stands above the environment and the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AgentFlags {
    /// The config file.
    pub config: Option<PathBuf>,
    /// Values of keys.
    pub keys: Flags,
}

/// `bargee deploy`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deploy {
    /// Files, directories and `-`.
    pub files: Vec<PathBuf>,
    /// Only say what would change.
    pub dry_run: bool,
    /// Remove what was deployed in the same applications and is not named any more.
    pub prune: bool,
    /// Want those running that are wanted stopped.
    pub start: bool,
    /// Wait until it runs, at most this long.
    pub wait: Option<Duration>,
}

/// A verb on workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The verb.
    pub verb: Verb,
    /// Any names of the workloads.
    pub names: Vec<String>,
    /// Wait for the task.
    pub wait: bool,
}

/// What can be asked of a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are the words of the command line")]
pub enum Verb {
    Start,
    Stop,
    Restart,
    Rebuild,
    /// With the signal, if one was named.
    Kill(Option<String>),
    Remove,
}

/// A command line that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misuse {
    /// What is wrong with it.
    pub message: String,
    /// Whose help to read.
    pub topic: Topic,
}

/// Verbs that are not built yet.
const LATER: [&str; 7] = ["exec", "set", "graph", "run", "node", "volume", "completion"];

/// Understands `words`, without the program's name.
///
/// # Errors
/// They make no command.
pub fn parse(words: Vec<OsString>) -> Result<Invocation, Misuse> {
    let mut words = Words::new(words);
    match command(&mut words) {
        Ok(command) => {
            check_format(&words, &command)?;
            Ok(Invocation { global: words.global, command })
        }
        Err(Stop::Help) => {
            let command = Command::Help(words.topic);
            Ok(Invocation { global: words.global, command })
        }
        Err(Stop::Misuse(message)) => Err(Misuse { message, topic: words.topic }),
    }
}

/// `-o` is refused where it would do nothing.
fn check_format(words: &Words, command: &Command) -> Result<(), Misuse> {
    let formless = matches!(
        command,
        Command::Agent(_) | Command::Logs { .. } | Command::Help(_) | Command::ConfigCheck
    );
    if words.format_given && formless {
        let message = "-o has no meaning for this command".to_owned();
        return Err(Misuse { message, topic: words.topic });
    }
    Ok(())
}

fn command(words: &mut Words) -> Result<Command, Stop> {
    let name = match words.word()? {
        None => return misuse("a command is missing"),
        Some(Word::Option(option)) if matches!(option.as_str(), "-V" | "--version") => {
            return Ok(Command::Version);
        }
        Some(Word::Option(option)) => return unknown(&option),
        Some(Word::Value(name)) => text(name)?,
    };
    if name == "ms" {
        return match words.value()? {
            Some(name) => named(&name, words),
            None => misuse("a command is missing after 'ms'"),
        };
    }
    named(&name, words)
}

fn named(name: &str, words: &mut Words) -> Result<Command, Stop> {
    if LATER.contains(&name) {
        return misuse(format!("'{name}' is not supported yet"));
    }
    match Topic::find(name) {
        Some(topic) => words.topic = topic,
        None => return misuse(format!("'{name}' is no command")),
    }
    match name {
        "help" => help(words),
        "agent" => agent(words),
        "deploy" => deploy(words),
        "ps" => ps(words),
        "inspect" => names(words).map(Command::Inspect),
        "logs" => logs(words),
        "events" => follow(words).map(|follow| Command::Events { follow }),
        "status" => words.end().map(|()| Command::Status),
        "journal" => journal_args::journal(words).map(Command::Journal),
        "adopt" => journal_args::adopt(words).map(|name| Command::Adopt { name }),
        "confirm" => words.end().map(|()| Command::Confirm),
        "quiesce" => quiesce::span(words).map(Command::Quiesce),
        "resume" => words.end().map(|()| Command::Resume),
        "version" => words.end().map(|()| Command::Version),
        "config" => config(words),
        verb => change(verb, words),
    }
}

fn help(words: &mut Words) -> Result<Command, Stop> {
    let Some(name) = words.value()? else { return Ok(Command::Help(Topic::Overview)) };
    words.end()?;
    match Topic::find(&name) {
        Some(topic) => Ok(Command::Help(topic)),
        None => misuse(format!("there is no help for '{name}'")),
    }
}

fn agent(words: &mut Words) -> Result<Command, Stop> {
    let mut keys = Flags::default();
    while let Some(word) = words.word()? {
        let slot = match &word {
            Word::Option(option) => match option.as_str() {
                "--node" => &mut keys.node,
                "--engine" => &mut keys.engine,
                "--engine-url" => &mut keys.engine_url,
                "--data-dir" => &mut keys.data_dir,
                "--manifests-dir" => &mut keys.manifests_dir,
                "--workers" => &mut keys.workers,
                "--log-level" => &mut keys.log_level,
                "--log-file" => &mut keys.log_file,
                "--log-max-size" => &mut keys.log_max_size,
                "--log-reconcile-every" => &mut keys.reconcile_every,
                other => return unknown(other),
            },
            Word::Value(value) => {
                return misuse(format!("'{}' is one word too many", value.to_string_lossy()));
            }
        };
        *slot = Some(words.text()?);
    }
    keys.api_socket = match &words.global.socket {
        Some(socket) => Some(text(socket.clone().into_os_string())?),
        None => None,
    };
    let config = words.global.config.clone();
    Ok(Command::Agent(Box::new(AgentFlags { config, keys })))
}

fn deploy(words: &mut Words) -> Result<Command, Stop> {
    let mut deploy = Deploy::default();
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) => match option.as_str() {
                "-f" | "--file" => deploy.files.push(words.os()?.into()),
                "--dry-run" => deploy.dry_run = true,
                "--prune" => deploy.prune = true,
                "--start" => deploy.start = true,
                "--wait" => deploy.wait = Some(wait(words)?),
                other => return unknown(other),
            },
            Word::Value(value) => {
                let value = value.to_string_lossy();
                if deploy.wait.is_some() && span(&value).is_some() {
                    return misuse(format!("'{value}': a time is given as --wait={value}"));
                }
                return misuse(format!("'{value}': files are named with -f"));
            }
        }
    }
    if deploy.files.is_empty() {
        return misuse("-f FILE is missing");
    }
    if deploy.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return misuse("standard input (-f -) can be read only once");
    }
    if deploy.dry_run && deploy.wait.is_some() {
        return misuse("--dry-run changes nothing, so there is nothing to --wait for");
    }
    Ok(Command::Deploy(deploy))
}

fn wait(words: &mut Words) -> Result<Duration, Stop> {
    match words.optional() {
        None => Ok(Duration::from_millis(limits::DEPLOY_WAIT_MS)),
        Some(value) => {
            let value = text(value)?;
            span(&value).map_or_else(
                || misuse(format!("--wait={value}: must be a time like 500ms, 60s, 5m or 1h")),
                Ok,
            )
        }
    }
}

/// A length of time above zero, as `60s`; a bare number is seconds.
fn span(text: &str) -> Option<Duration> {
    Span::parse(text).map(|span| Duration::from_millis(span.0))
}

fn ps(words: &mut Words) -> Result<Command, Stop> {
    let mut all = false;
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) if matches!(option.as_str(), "-a" | "--all") => all = true,
            Word::Option(option) => return unknown(&option),
            Word::Value(name) => {
                let name = name.to_string_lossy();
                return misuse(format!("'{name}': ps takes no names; see inspect"));
            }
        }
    }
    Ok(Command::Ps { all })
}

fn names(words: &mut Words) -> Result<Vec<String>, Stop> {
    let mut names = Vec::new();
    while let Some(name) = words.value()? {
        names.push(name);
    }
    if names.is_empty() { misuse("NAME is missing") } else { Ok(names) }
}

fn logs(words: &mut Words) -> Result<Command, Stop> {
    let (mut name, mut follow, mut tail) = (None, false, None);
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) => match option.as_str() {
                "-f" | "--follow" => follow = true,
                "-n" | "--tail" => tail = lines(words)?,
                other => return unknown(other),
            },
            Word::Value(value) if name.is_none() => name = Some(text(value)?),
            Word::Value(_) => return misuse("only one NAME at a time"),
        }
    }
    match name {
        Some(name) => Ok(Command::Logs { name, follow, tail }),
        None => misuse("NAME is missing"),
    }
}

fn lines(words: &mut Words) -> Result<Option<u64>, Stop> {
    let value = words.text()?;
    if value == "all" {
        return Ok(None);
    }
    match value.parse() {
        Ok(lines) => Ok(Some(lines)),
        Err(_) => misuse(format!("--tail {value}: must be a number of lines or 'all'")),
    }
}

fn follow(words: &mut Words) -> Result<bool, Stop> {
    let mut follow = false;
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) if matches!(option.as_str(), "-f" | "--follow") => follow = true,
            Word::Option(option) => return unknown(&option),
            Word::Value(_) => return misuse("events takes no names"),
        }
    }
    Ok(follow)
}

fn config(words: &mut Words) -> Result<Command, Stop> {
    let command = match words.value()?.as_deref() {
        Some("check") => Command::ConfigCheck,
        Some("show") => Command::ConfigShow,
        Some(other) => return misuse(format!("'config {other}' is no command")),
        None => return misuse("'config' needs 'check' or 'show'"),
    };
    words.end()?;
    Ok(command)
}

fn change(name: &str, words: &mut Words) -> Result<Command, Stop> {
    let verb = match name {
        "start" => Verb::Start,
        "stop" => Verb::Stop,
        "restart" => Verb::Restart,
        "rebuild" => Verb::Rebuild,
        "kill" => Verb::Kill(None),
        "rm" => Verb::Remove,
        other => return misuse(format!("'{other}' is no command")),
    };
    let mut change = Change { verb, names: Vec::new(), wait: true };
    while let Some(word) = words.word()? {
        match word {
            Word::Option(option) => match (option.as_str(), &mut change.verb) {
                ("--no-wait", _) => change.wait = false,
                ("-s" | "--signal", Verb::Kill(signal)) => *signal = Some(words.text()?),
                (other, _) => return unknown(other),
            },
            Word::Value(name) => change.names.push(text(name)?),
        }
    }
    if change.names.is_empty() { misuse("NAME is missing") } else { Ok(Command::Change(change)) }
}
