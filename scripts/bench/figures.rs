//! The figures of bargee beside their goals. `docs/benchmarks.md` says what each one means.
//!
//! Run by `scripts/bench/run`, which builds the program and starts an engine.
#![expect(clippy::print_stdout, reason = "figures go to standard output")]

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

mod agent;
mod deploy;
mod docker;
mod http;
mod process;
mod proxy;
mod report;
mod scripted;
mod simulated;
mod step;
mod stopwatch;

/// Whatever stands in the way of a figure ends the run.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What was asked for.
#[derive(Default)]
struct Options {
    /// The program as it is shipped.
    program: Option<PathBuf>,
    /// Socket of a Docker engine; without one there are no figures of it.
    engine: Option<PathBuf>,
    quick: bool,
    /// One part only: size, step, scripted, docker or deploy.
    only: Option<String>,
}

fn main() -> Result<()> {
    let options = options()?;
    let mut report = report::Report::default();
    note_load(&report, "before")?;
    let wanted = |part: &str| options.only.as_ref().is_none_or(|only| only == part);
    if wanted("step") {
        step::measure(&mut report)?;
    }
    if let Some(program) = &options.program {
        if wanted("size") {
            let mib = fs::metadata(program)?.len() as f64 / f64::from(1 << 20);
            report.figure("size of the program, static and stripped", mib, "MiB", Some(4.0));
        }
        if wanted("scripted") {
            simulated::measure(&mut report, program)?;
        }
        if let Some(engine) = &options.engine {
            if wanted("docker") {
                docker::measure(&mut report, program, engine, options.quick)?;
            }
            if wanted("deploy") {
                let rounds = if options.quick { 3 } else { 5 };
                deploy::measure(&mut report, program, engine, rounds)?;
            }
        }
    }
    note_load(&report, "after")?;
    report.end();
    Ok(())
}

fn options() -> Result<Options> {
    let mut options = Options::default();
    let mut words = Parser::from_env();
    while let Some(word) = words.next()? {
        match word {
            Arg::Long("program") => options.program = Some(words.value()?.into()),
            Arg::Long("engine") => options.engine = Some(words.value()?.into()),
            Arg::Long("quick") => options.quick = true,
            Arg::Long("only") => options.only = Some(words.value()?.string()?),
            // Cargo's own.
            Arg::Long("bench") => {}
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Figures of a busy machine are worth less.
fn note_load(report: &report::Report, when: &str) -> Result<()> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let load: Vec<&str> = load.split(' ').take(1).collect();
    let cores = std::thread::available_parallelism()?;
    report.note(&format!("{when}: {} runnable on {cores} cores (1 min)", load.concat()));
    Ok(())
}
