//! Programs in containers: what starts, signals and exits have to do with them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::program::{End, Program, Run};
use super::world::{Container, World};

impl World {
    /// Whether the commands of a container are carried out; if not, it runs until it is told.
    fn has_programs(&self, id: &str) -> bool {
        self.containers.get(id).is_some_and(|made| self.tools.contains(&made.image))
    }

    /// Whether a container has a command that can be started.
    pub fn can_run(&mut self, id: &str) -> bool {
        if !self.has_programs(id) {
            return true;
        }
        // What it would write to volumes, it writes when it runs.
        let mut volumes = self.volumes.clone();
        program(&self.containers[id]).start(&mut volumes).is_some()
    }

    /// Runs the program of a container that was started just now.
    pub fn run(&mut self, id: &str) {
        if self.has_programs(id) {
            let run = program(&self.containers[id]).start(&mut self.volumes).unwrap_or_default();
            self.take(id, run);
        }
    }

    /// Probes a container that was started just now, if that was asked for. All goes well.
    pub fn probe(&mut self, id: &str) {
        if self.containers.get(id).is_some_and(Container::has_check) {
            self.tell(id, "health_status: healthy", &[]);
        }
    }

    /// Lets the program of a container do what it does about a signal; `false`: it has none.
    pub fn signal_program(&mut self, id: &str, signal: &str) -> bool {
        if !self.has_programs(id) {
            return false;
        }
        let signal = signal.trim_start_matches("SIG");
        let run = program(&self.containers[id]).signal(signal, &mut self.volumes);
        self.take(id, run);
        true
    }

    fn take(&mut self, id: &str, run: Run) {
        if let Some(made) = self.containers.get_mut(id) {
            made.log.extend(run.written);
        }
        match run.end {
            Some(End::Exit(code)) => self.exit(id, code),
            Some(End::OutOfMemory) => {
                if let Some(made) = self.containers.get_mut(id) {
                    made.oom_killed = true;
                }
                self.tell(id, "oom", &[]);
                self.exit(id, 137);
            }
            None => {}
        }
    }
}

/// What was asked for when the container was made.
fn program(made: &Container) -> Program {
    let asked = &made.asked;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let pairs = list(&asked["Env"]).into_iter();
    let env: BTreeMap<_, _> = pairs
        .filter_map(|pair| pair.split_once('=').map(|(name, value)| (name.into(), value.into())))
        .collect();
    let mounts = asked["HostConfig"]["Mounts"].as_array().into_iter().flatten();
    let volumes = mounts.filter(|mount| mount["Type"] == "volume");
    Program {
        words: [list(&asked["Entrypoint"]), list(&asked["Cmd"])].concat(),
        env,
        directory: text(&asked["WorkingDir"]),
        user: text(&asked["User"]),
        is_limited: asked["HostConfig"]["Memory"].as_u64().is_some_and(|bytes| bytes > 0),
        mounts: volumes.map(|mount| (text(&mount["Target"]), text(&mount["Source"]))).collect(),
    }
}
