//! What holds once everything has come to rest, whatever died before: one container for each
//! workload that is to run, of a generation that was declared as a whole; nothing of ours beside
//! them; an empty journal.
//!
//! The check is pure: a test takes a [`Scene`] from its engine and its agent, and says what it
//! wants of each workload.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use bargee::api::wire::{Entry, List, Status, Workload};

use super::until;

/// Engine, records, journal and log at one time.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Identity of the store.
    pub store: String,
    /// All containers with this node's label.
    pub containers: Vec<Held>,
    /// Names of all networks with this node's label.
    pub networks: Vec<String>,
    /// `GET /v1/ms`.
    pub workloads: Vec<Workload>,
    /// `GET /v1/journal`.
    pub journal: Vec<Entry>,
    /// Why the agent has still something to do; empty: it has not.
    pub unrest: String,
    /// What the agent logged.
    pub log: String,
}

/// A container that an engine holds for a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Held {
    /// The engine's id.
    pub id: String,
    /// Without the slash.
    pub name: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The engine's word for its state.
    pub status: String,
    /// The engine's word for its last start: another one after each.
    pub started: String,
    /// Network it is on, as it was asked for.
    pub network: String,
}

/// What is wanted of a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    key: String,
    /// One of these, whole. More than one: what asked for the last one was not answered.
    any_of: Vec<Outcome>,
}

/// How a workload may be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It runs, in this generation.
    Running(u64),
    /// It runs, in the older of these generations, because the newer one could not be made.
    Returned {
        /// The one that runs.
        running: u64,
        /// The one that is declared.
        declared: u64,
    },
    /// It is to run, in this generation, cannot be made, and nothing older is there.
    Waiting(u64),
    /// It is stopped, in this generation, and its container does not run if there is one.
    Stopped(u64),
    /// There is no such workload.
    Gone,
}

impl Wanted {
    /// This, because it was answered.
    pub fn exactly(key: &str, outcome: Outcome) -> Self {
        Self::any_of(key, &[outcome])
    }

    /// One of these, because nobody knows whether the last one was accepted.
    pub fn any_of(key: &str, outcomes: &[Outcome]) -> Self {
        Self { key: key.to_owned(), any_of: outcomes.to_vec() }
    }
}

impl From<(&str, Outcome)> for Wanted {
    fn from((key, outcome): (&str, Outcome)) -> Self {
        Self::exactly(key, outcome)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, id, status, started, .. } = self;
        write!(f, "{name} ({id:.12}, {status}, started {started})")
    }
}

impl Held {
    fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn is_running(&self) -> bool {
        self.status == "running"
    }

    /// Its process does not exist, for sure.
    fn is_down(&self) -> bool {
        matches!(self.status.as_str(), "created" | "exited")
    }
}

impl Scene {
    /// What the API says, asked by `get`; `None`: nobody answered, or it is replaying still.
    /// Containers, networks and log are for the caller to add.
    pub fn read(get: impl Fn(&str) -> Option<(u16, String)>) -> Option<Self> {
        let body = |path| get(path).filter(|(status, _)| *status == 200).map(|(_, body)| body);
        let status: Status = serde_json::from_str(&body("/v1/system/status")?).unwrap();
        let journal: List<Entry> = serde_json::from_str(&body("/v1/journal")?).unwrap();
        let workloads: List<Workload> = serde_json::from_str(&body("/v1/ms")?).unwrap();
        Some(Self {
            unrest: unrest(&status),
            store: status.store_id,
            workloads: workloads.items,
            journal: journal.items,
            ..Self::default()
        })
    }

    /// Everything that is not as it has to be, a sentence each. `wanted` names every workload.
    pub fn problems(&self, wanted: &[Wanted]) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.unrest.is_empty() {
            problems.push(self.unrest.clone());
        }
        let entries = self.journal.iter().map(|entry| format!("left in the journal: {entry:?}"));
        problems.extend(entries);
        problems.extend(wanted.iter().filter_map(|wanted| self.missed(wanted)));
        problems.extend(self.leftovers(wanted));
        let bugs = self.log.lines().filter(|line| line.contains("bug:") || line.contains("panick"));
        problems.extend(bugs.map(|line| format!("in the log: {line}")));
        problems
    }

    /// Why none of the outcomes is there.
    fn missed(&self, wanted: &Wanted) -> Option<String> {
        let tried: Vec<String> = wanted
            .any_of
            .iter()
            .map(|outcome| self.differs(&wanted.key, *outcome))
            .collect::<Option<_>>()?;
        let tried = tried.iter().zip(&wanted.any_of);
        let tried: Vec<_> = tried.map(|(why, outcome)| format!("{outcome:?}: {why}")).collect();
        Some(format!("{} is none of what it may be: {}", wanted.key, tried.join("; ")))
    }

    /// Why a workload is not as `outcome` says; `None`: it is.
    fn differs(&self, key: &str, outcome: Outcome) -> Option<String> {
        let workload = self.workloads.iter().find(|one| one.key() == key);
        let held = self.held_for(key);
        let held_words = || held.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let (desired, state, generation) = match outcome {
            Outcome::Gone => {
                let left = workload.map(|one| format!("there it is, {}", one.state_words()));
                let held = (!held.is_empty()).then(|| format!("it has {}", held_words()));
                return left.or(held);
            }
            Outcome::Running(generation) => ("running", "Running(Ok)", generation),
            Outcome::Returned { declared, .. } => ("running", "Running(Ok)", declared),
            Outcome::Waiting(generation) => ("running", "Pending(Starting)", generation),
            Outcome::Stopped(generation) => ("stopped", "Stopped(Ok)", generation),
        };
        let Some(workload) = workload else { return Some("there is none".to_owned()) };
        let found = (&*workload.desired_state, &*workload.state_words(), workload.generation);
        if found != (desired, state, generation) {
            return Some(format!("it is {found:?}"));
        }
        // One that was stopped before it proved itself keeps the container to return to, ended.
        let stopped = matches!(outcome, Outcome::Stopped(_));
        let kept = stopped && held.iter().all(|one| !one.is_running());
        if held.len() > 1 + usize::from(kept) {
            return Some(format!("it has {} containers: {}", held.len(), held_words()));
        }
        match (outcome, held.first()) {
            (Outcome::Running(_) | Outcome::Returned { .. }, None) => {
                Some("it has no container".to_owned())
            }
            (Outcome::Running(generation), Some(held)) => {
                self.runs_otherwise(workload, held, generation)
            }
            (Outcome::Returned { running, declared }, Some(held)) => {
                let failed = workload.failed_update.as_ref().map(|failed| failed.generation);
                let told = (failed != Some(declared)).then(|| format!("it tells of {failed:?}"));
                told.or_else(|| self.runs_otherwise(workload, held, running))
            }
            (Outcome::Waiting(_), Some(held)) => Some(format!("it has {held}")),
            (_, Some(held)) if !held.is_down() => Some(format!("{held} is not down")),
            _ => None,
        }
    }

    /// Why `held` is not the workload's own container, of that generation; `None`: it is.
    fn runs_otherwise(&self, workload: &Workload, held: &Held, generation: u64) -> Option<String> {
        let wanted = generation.to_string();
        let mut observed = workload.observed_generation.to_string();
        if generation < workload.generation {
            // It may have come to run only after the newer one was declared.
            observed.clone_from(&wanted);
        }
        let same = [
            ("container", &*workload.container_id, &*held.id),
            ("uid", &*workload.uid, held.label("bargee.uid")),
            ("generation", &*wanted, held.label("bargee.generation")),
            ("observed generation", &*wanted, &*observed),
            ("name", held.label("bargee.instance"), &*held.name),
            ("store", &*self.store, held.label("bargee.store")),
        ]
        .into_iter()
        .find(|(_, wanted, found)| wanted != found)
        .map(|(what, wanted, found)| format!("{what} {wanted:?} and {found:?}: {held}"));
        same.or_else(|| (!held.is_running()).then(|| format!("{held} does not run")))
    }

    fn held_for(&self, key: &str) -> Vec<&Held> {
        let of = |held: &&Held| {
            key == format!("{}/{}", held.label("bargee.application"), held.label("bargee.name"))
        };
        self.containers.iter().filter(of).collect()
    }

    /// Workloads, containers and networks that nobody wants.
    fn leftovers(&self, wanted: &[Wanted]) -> Vec<String> {
        let is_wanted = |key: &str| wanted.iter().any(|wanted| wanted.key == key);
        let workloads = self.workloads.iter().map(Workload::key).filter(|key| !is_wanted(key));
        let workloads = workloads.map(|key| format!("nobody declared {key}"));
        let of_any = |held: &&Held| wanted.iter().any(|one| self.held_for(&one.key).contains(held));
        let containers = self.containers.iter().filter(|held| !of_any(held));
        let containers = containers.map(|held| format!("left on the engine: {held}"));
        let networks = self.networks.iter().filter(|name| !self.is_used(name));
        let networks = networks.map(|name| format!("left on the engine: network {name}"));
        workloads.chain(containers).chain(networks).collect()
    }

    /// A container is on the network, or a workload that has none yet will be.
    fn is_used(&self, network: &str) -> bool {
        let suffix = |one: &Workload| format!("-{}", one.application);
        let bare = self.workloads.iter().filter(|one| one.container_id.is_empty());
        self.containers.iter().any(|held| held.network == *network)
            || bare.map(suffix).any(|suffix| network.ends_with(&suffix))
    }

    /// What must not change at all while nothing is asked for.
    pub fn still(&self) -> Still {
        let mut containers = self.containers.clone();
        containers.sort();
        let workloads = self.workloads.iter();
        let workloads = workloads.map(|one| (one.uid.clone(), one.generation, one.restart_count));
        Still { containers, workloads: workloads.collect(), networks: self.networks.clone() }
    }
}

/// Why an agent with this status has still something to do; empty: it has not.
fn unrest(status: &Status) -> String {
    if !status.ready || !status.recovering.is_empty() {
        return format!("not ready; recovering {:?}", status.recovering);
    }
    match status.queue.tasks {
        0 => String::new(),
        tasks => format!("{tasks} tasks are under way"),
    }
}

/// What an agent that starts at rest leaves as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Still {
    containers: Vec<Held>,
    networks: Vec<String>,
    workloads: Vec<(String, u64, u64)>,
}

/// Looks until everything is at rest; what was seen then. `look` gives nothing while nobody
/// answers.
pub fn until_at_rest(wanted: &[Wanted], mut look: impl FnMut() -> Option<Scene>) -> Scene {
    let last = RefCell::new(vec!["nobody answered".to_owned()]);
    until(Unrest(&last), || {
        let scene = look()?;
        let problems = scene.problems(wanted);
        let is_at_rest = problems.is_empty();
        last.replace(problems);
        is_at_rest.then_some(scene)
    })
}

/// What was wrong at the last look.
struct Unrest<'a>(&'a RefCell<Vec<String>>);

impl fmt::Display for Unrest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "everything to be at rest: {:#?}", self.0.borrow())
    }
}
