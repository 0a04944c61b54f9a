//! Command groups, client, tables.
//!
//! Standard output carries data only; errors, notes and progress go to standard error. Nothing here
//! prints by itself or ends the process: `main` hands in the writers and takes the exit code.

pub mod failure;

pub mod console;

pub mod words;

pub mod args;

pub mod help;

pub mod journal_args;

pub mod patience;

pub mod client;

pub mod tree;

mod pretty;

pub mod table;

pub mod files;

pub mod reach;

pub mod progress;

pub mod deploy;

pub mod show;

pub mod verbs;

pub mod journal;

pub mod quiesce;

pub mod follow;

pub mod config_cmd;

use std::ffi::OsString;
use std::path::PathBuf;

use self::args::{AgentFlags, Command, Global, Invocation, Misuse};
use self::client::Client;
use self::config_cmd::Loaded;
use self::console::Console;
use self::failure::{Exit, Failure};

/// Where the agent listens when nothing says otherwise.
pub const DEFAULT_SOCKET: &str = "/run/bargee/bargee.sock";

/// What came of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The command ended.
    Ended(Exit),
    /// `bargee agent`: `main` goes on as the agent.
    Agent(Box<AgentFlags>),
}

/// Carries out the command line `words`, the program's name not among them.
pub fn run(words: Vec<OsString>, console: &mut Console) -> Outcome {
    let result = match args::parse(words) {
        Ok(Invocation { global, command }) => carry_out(&global, command, console),
        Err(misuse) => Err(misused(&misuse)),
    };
    result.unwrap_or_else(|failure| {
        // Where not even errors can be told, the exit code still can.
        let _ = failure.tell(console.err);
        Outcome::Ended(failure.exit)
    })
}

fn misused(misuse: &Misuse) -> Failure {
    let help = match misuse.topic.command() {
        "" => "`bargee --help` lists all commands".to_owned(),
        command => format!("`bargee {command} --help` shows how it is used"),
    };
    Failure::new(Exit::Usage, misuse.message.clone()).with_hint(help)
}

fn carry_out(global: &Global, command: Command, console: &mut Console) -> Result<Outcome, Failure> {
    let format = global.format;
    let client = |console: &mut Console| Client::new(&socket(global, console));
    match command {
        Command::Agent(flags) => return Ok(Outcome::Agent(flags)),
        Command::Help(topic) => help(topic, console),
        Command::ConfigCheck => config_cmd::check(load(global, console), console),
        Command::ConfigShow => config_cmd::show(load(global, console), format, console),
        Command::Deploy(deploy) => deploy::deploy(&client(console), &deploy, format, console),
        Command::Ps { all } => show::ps(&client(console), all, format, console),
        Command::Inspect(names) => show::inspect(&client(console), &names, format, console),
        Command::Logs { name, follow, tail } => {
            follow::logs(&client(console), &name, follow, tail, console)
        }
        Command::Change(change) => verbs::change(&client(console), &change, format, console),
        Command::Events { follow } => follow::events(&client(console), follow, format, console),
        Command::Status => show::status(&client(console), format, console),
        Command::Journal(what) => journal::journal(&client(console), what, format, console),
        Command::Adopt { name } => {
            journal::adopt(&client(console), name.as_deref(), format, console)
        }
        Command::Confirm => journal::confirm(&client(console), format, console),
        Command::Quiesce(span) => quiesce::quiesce(&client(console), span, format, console),
        Command::Resume => quiesce::resume(&client(console), format, console),
        Command::Version => show::version(&client(console), format, console),
    }?;
    Ok(Outcome::Ended(Exit::Done))
}

fn load(global: &Global, console: &Console) -> Result<Loaded, Vec<String>> {
    (console.load_config)(global.config.as_deref())
}

fn help(topic: help::Topic, console: &mut Console) -> Result<(), Failure> {
    console.out.write_all(topic.text().as_bytes())?;
    Ok(console.out.flush()?)
}

/// The agent's socket. A configuration that cannot be read does not stand in the way: whoever
/// mends it wants to see how the agent is.
fn socket(global: &Global, console: &mut Console) -> PathBuf {
    if let Some(socket) = &global.socket {
        return socket.clone();
    }
    if let Some(socket) = console.variable("BARGEE_API_SOCKET") {
        return socket.into();
    }
    match load(global, console) {
        Ok(loaded) => loaded.socket,
        Err(errors) => {
            let first = errors.first().map_or("", String::as_str);
            console.note(&format!("warning: {first}; trying {DEFAULT_SOCKET}"));
            DEFAULT_SOCKET.into()
        }
    }
}
