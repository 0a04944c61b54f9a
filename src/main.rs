//! Arguments in, exit code out; the only place that prints and ends the process.

use std::env;
use std::io::{self, IsTerminal};
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use bargee::agent;
use bargee::cli::args::AgentFlags;
use bargee::cli::config_cmd::Loaded;
use bargee::cli::console::{Console, SystemTime};
use bargee::cli::failure::{Exit, Failure};
use bargee::cli::{self, Outcome, table};
use bargee::config::{self, Flags, Settled};
use bargee::os::log_file::LogFile;
use bargee::os::log_thread::{self, Log, Sink, Stderr};
use bargee::os::memory;
use log::{LevelFilter, Metadata, Record};

fn main() -> ExitCode {
    memory::use_one_arena();
    memory::use_small_stacks();
    let exit = match run_command() {
        Outcome::Ended(exit) => exit,
        Outcome::Agent(flags) => run_agent(&flags),
    };
    ExitCode::from(exit.code())
}

/// Runs everything but the agent.
fn run_command() -> Outcome {
    let words = env::args_os().skip(1).collect();
    let mut console = Console {
        // Not locked: the locks would outlive the console, and the agent's threads log to the last.
        input: &mut io::stdin(),
        out: &mut io::stdout(),
        err: &mut io::stderr(),
        terminal: io::stderr().is_terminal(),
        input_terminal: io::stdin().is_terminal(),
        environment: environment().collect(),
        time: &SystemTime,
        load_config: &load_config,
    };
    cli::run(words, &mut console)
}

/// The `BARGEE_` variables. What is not UTF-8 is read as far as it is, and refused where it counts.
fn environment() -> impl Iterator<Item = (String, String)> {
    env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| name.starts_with("BARGEE_"))
}

fn load_config(file: Option<&Path>) -> Result<Loaded, Vec<String>> {
    let (settled, warnings) = config::settle(file, environment(), &Flags::default())?;
    Ok(Loaded {
        socket: settled.api_socket.value.clone(),
        settings: settled
            .entries()
            .into_iter()
            .map(|(key, value, origin)| (key.to_owned(), value, origin))
            .collect(),
        warnings,
    })
}

fn run_agent(flags: &AgentFlags) -> Exit {
    let (settled, warnings) = match settle(flags) {
        Ok(settled) => settled,
        Err(errors) => return fail(errors),
    };
    let log = match start_log(&settled) {
        Ok(log) => log,
        Err(error) => return fail(vec![format!("the log cannot be started: {error}")]),
    };
    for warning in warnings {
        log::warn!("{warning}");
    }
    let exit = match agent::run(&settled) {
        Ok(()) => Exit::Done,
        Err(error) => {
            log::error!("{error}");
            // Whoever started it by hand looks here, not into a file.
            if settled.log_file.value.is_some() {
                fail(vec![error.to_string()])
            } else {
                Exit::Failed
            }
        }
    };
    log.stop();
    exit
}

fn fail(errors: Vec<String>) -> Exit {
    for error in errors {
        // Where not even errors can be told, the exit code still can.
        let _ = Failure::failed(error).tell(&mut io::stderr());
    }
    Exit::Failed
}

fn settle(flags: &AgentFlags) -> Result<(Settled, Vec<String>), Vec<String>> {
    config::settle(flags.config.as_deref(), environment(), &flags.keys)
}

/// Lines on standard error or in a file: level and text, with the time in front unless the journal
/// adds it.
fn start_log(settled: &Settled) -> io::Result<Log> {
    let mut time: Option<fn(u64) -> String> = Some(table::utc);
    let sink: Box<dyn Sink> = match settled.log_file.value.clone() {
        Some(path) => {
            tell_panics();
            Box::new(LogFile::new(path, settled.log_max_bytes.value))
        }
        None => {
            time = time.filter(|_| env::var_os("JOURNAL_STREAM").is_none());
            Box::new(Stderr)
        }
    };
    let log = log_thread::start(sink, time)?;
    let filter = env_logger::Builder::new()
        .filter_level(settled.log_level.value)
        // The HTTP client tells of every call at debug level.
        .filter_module("ureq", LevelFilter::Warn)
        .filter_module("ureq_proto", LevelFilter::Warn)
        .build();
    log::set_max_level(filter.filter());
    log::set_boxed_logger(Box::new(Front { filter, log: log.clone() }))
        .map_err(io::Error::other)?;
    Ok(log)
}

/// A panic is a bug, and who looks for it looks into the log, not at standard error.
fn tell_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        log::error!("bug: {panic}");
        usual(panic);
    }));
}

/// Hands what is logged to the thread that writes it.
struct Front {
    filter: env_logger::Logger,
    log: Log,
}

impl log::Log for Front {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.filter.matches(record) {
            self.log.say(record.level(), record.target(), record.args().to_string());
        }
    }

    fn flush(&self) {}
}
