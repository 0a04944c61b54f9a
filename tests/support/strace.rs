//! What a process asks of the system, watched and disturbed by strace from outside.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::until;

/// Calls that make writes durable.
pub const SYNCS: &str = "fsync,fdatasync";

/// Has the process die at the sync after so many others, which does not come to pass.
pub fn die_at_sync(others: usize) -> String {
    format!("inject={SYNCS}:signal=SIGKILL:when={}", others + 1)
}

/// strace at a process, all its threads included. It lets go when this is dropped.
#[derive(Debug)]
pub struct Strace {
    process: Child,
    log: PathBuf,
}

impl Strace {
    /// Attaches to a process; from when this returns on its calls are seen and counted. The log is
    /// written to `log`.
    pub fn attach(pid: u32, words: &[&str], log: &Path) -> Self {
        let said = log.with_extension("said");
        let process = Command::new("strace")
            .args(["-f", "-o"])
            .arg(log)
            .args(words)
            .args(["-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .expect("strace has to be installed");
        let mut strace = Self { process, log: log.to_owned() };
        until("strace to be attached", || {
            let said = fs::read_to_string(&said).unwrap();
            let ended = strace.process.try_wait().unwrap();
            assert!(ended.is_none(), "strace ended ({ended:?}): {said}");
            said.contains("attached").then_some(())
        });
        strace
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Calls of these names that were begun so far.
    pub fn count(&self, names: &str) -> usize {
        let begins = |line: &str| {
            let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
            names.split(',').any(|name| call.starts_with(&format!("{name}(")))
        };
        self.log().lines().filter(|line| begins(line)).count()
    }

    /// Lets go of the process; all that was seen.
    pub fn detach(self) -> String {
        let log = self.log.clone();
        drop(self);
        String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned()
    }

    /// Waits until it has ended by itself, because the process has.
    pub fn wait(mut self) -> String {
        until("strace to end", || self.process.try_wait().unwrap());
        self.log()
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // It lets go of the process in an orderly way.
        let _ = kill(Pid::from_raw(self.process.id().try_into().unwrap()), Signal::SIGTERM);
        let _ = self.process.wait();
    }
}
