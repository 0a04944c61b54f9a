//! Arguments in, exit code out; the only place that prints and ends the process.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use bargee::agent;
use bargee::cli::args::AgentFlags;
use bargee::cli::config_cmd::Loaded;
use bargee::cli::console::{Console, SystemTime};
use bargee::cli::failure::{Exit, Failure};
use bargee::cli::{self, Outcome, table};
use bargee::config::{self, Flags, Settled};
use bargee::os::{clock, memory};
use log::LevelFilter;

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
    match settle(flags) {
        Ok((settled, warnings)) => {
            start_log(&settled);
            for warning in warnings {
                log::warn!("{warning}");
            }
            match agent::run(&settled) {
                Ok(()) => Exit::Done,
                Err(error) => {
                    log::error!("{error}");
                    Exit::Failed
                }
            }
        }
        Err(errors) => {
            for error in errors {
                // Where not even errors can be told, the exit code still can.
                let _ = Failure::failed(error).tell(&mut io::stderr());
            }
            Exit::Failed
        }
    }
}

fn settle(flags: &AgentFlags) -> Result<(Settled, Vec<String>), Vec<String>> {
    config::settle(flags.config.as_deref(), environment(), &flags.keys)
}

/// Lines on standard error: level and text, with the time in front unless the journal adds it.
fn start_log(settled: &Settled) {
    let timed = env::var_os("JOURNAL_STREAM").is_none();
    env_logger::Builder::new()
        .filter_level(settled.log_level.value)
        // The HTTP client tells of every call at debug level.
        .filter_module("ureq", LevelFilter::Warn)
        .filter_module("ureq_proto", LevelFilter::Warn)
        .format(move |out, record| {
            if timed {
                write!(out, "{} ", table::utc(clock::wall_ms()))?;
            }
            writeln!(out, "{:<5} {}", record.level().as_str().to_lowercase(), record.args())
        })
        .init();
}
