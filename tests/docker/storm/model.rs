//! What the clients of a storm know: random commands, and what each answer means for what has to be
//! there at rest.

use std::collections::{BTreeMap, BTreeSet};

use bargee::api::wire::Applied;
use serde_json::json;

use crate::support::agent::{Agent, Output};
use crate::support::at_rest::Outcome::{Gone, Returned, Running, Stopped, Waiting};
use crate::support::at_rest::{Outcome, Scene, Wanted};
use crate::support::manifest::Manifest;

/// One for each client.
pub const APPLICATIONS: [&str; 2] = ["left", "right"];
/// Workloads of each application.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Numbers that follow from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// Numbers of their own for each list of seeds.
    pub fn new(seeds: &[u64]) -> Self {
        let mut random = Self(0);
        for seed in seeds {
            random.0 = random.next() ^ seed;
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }
}

/// A manifest for one workload.
#[derive(Clone, Copy, Debug)]
struct Change {
    name: &'static str,
    /// Makes its content another one than any before.
    mark: u64,
    /// Its image does not exist.
    is_bad: bool,
}

impl Change {
    fn random(name: &'static str, random: &mut Random) -> Self {
        Self { name, mark: random.next(), is_bad: random.below(5) == 0 }
    }

    fn manifest(&self, application: &str) -> Manifest {
        let manifest = Manifest::service(self.name).application(application).bridged().hasty();
        let manifest = manifest.with("env", json!({"MARK": self.mark.to_string()}));
        let manifest = manifest.with("stop.grace", "1s");
        if self.is_bad { manifest.with("image", "localtest/none:1") } else { manifest }
    }
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub struct Command {
    application: &'static str,
    act: Act,
}

#[derive(Clone, Debug)]
enum Act {
    Apply(Vec<Change>),
    Verb(&'static str, &'static str),
}

impl Command {
    /// Any command for `application`.
    pub fn random(application: &'static str, random: &mut Random) -> Self {
        let name = random.one_of(&NAMES);
        let act = match random.below(20) {
            0..10 => {
                let names = NAMES.iter().filter(|one| **one == name || random.below(3) == 0);
                let names: Vec<_> = names.collect();
                Act::Apply(names.into_iter().map(|name| Change::random(name, random)).collect())
            }
            10..13 => Act::Verb("stop", name),
            13..16 => Act::Verb("start", name),
            16 => Act::Verb("restart", name),
            17 => Act::Verb("rebuild", name),
            _ => Act::Verb("rm", name),
        };
        Self { application, act }
    }

    /// Sends it, and waits for the answer only.
    pub fn run(&self, agent: &Agent) -> Output {
        match &self.act {
            Act::Apply(changes) => {
                let manifests = changes.iter().map(|change| change.manifest(self.application));
                agent.deploy_with(&["-o", "json"], &manifests.collect::<Vec<_>>())
            }
            Act::Verb(verb, name) => {
                agent.run(&[verb, &format!("{}/{name}", self.application), "--no-wait"])
            }
        }
    }
}

/// What is known of a command.
#[derive(Debug)]
pub enum Known {
    /// It was answered with this.
    Done(String),
    /// There is no such workload, or it is on its way out.
    Refused,
    /// Nobody answered.
    Nothing,
}

/// A workload that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Life {
    is_wanted: bool,
    generation: u64,
    is_bad: bool,
    /// Generations of which a container may be there that has run; 0: maybe there is none.
    made: BTreeSet<u64>,
}

impl Life {
    fn outcomes(&self) -> Vec<Outcome> {
        match self {
            Self { is_wanted: false, generation, .. } => vec![Stopped(*generation)],
            Self { is_bad: false, generation, .. } => vec![Running(*generation)],
            Self { generation: declared, made, .. } => {
                let of = |&running: &u64| match running {
                    0 => Waiting(*declared),
                    running => Returned { running, declared: *declared },
                };
                made.iter().map(of).collect()
            }
        }
    }
}

/// All workloads of an application.
type Lives = BTreeMap<&'static str, Life>;

/// What is known of an application.
pub struct Model {
    application: &'static str,
    /// What it is if the command that was not answered was not carried out.
    lives: Lives,
    /// What it is if it was; `None`: all were answered.
    otherwise: Option<Lives>,
}

impl Model {
    /// An application without workloads.
    pub fn new(application: &'static str) -> Self {
        Self { application, lives: Lives::new(), otherwise: None }
    }

    /// Takes in what is known of a command.
    pub fn take(&mut self, command: &Command, known: Known) {
        match known {
            Known::Refused => {
                let Act::Verb(_, name) = command.act else { panic!("{command:?} was refused") };
                assert!(
                    !self.lives.contains_key(name),
                    "{command:?} was refused: {:?}",
                    self.lives
                );
            }
            Known::Done(answer) => {
                self.lives = carried_out(&self.lives, command);
                if let Act::Apply(_) = command.act {
                    self.expect_answer(command, &answer);
                }
            }
            Known::Nothing => self.otherwise = Some(carried_out(&self.lives, command)),
        }
    }

    /// The generations of an answer are those that follow from the answers before.
    fn expect_answer(&self, command: &Command, answer: &str) {
        let applied: Applied = serde_json::from_str(answer).unwrap();
        for item in applied.items {
            let name = item.key.split_once('/').unwrap().1;
            let known = &self.lives[name];
            assert_eq!(item.generation, known.generation, "{command:?}: {answer} {known:?}");
        }
    }

    /// What has to be there at rest.
    pub fn wanted(&self) -> Vec<Wanted> {
        let of = |lives: &Lives, name| lives.get(name).map_or(vec![Gone], Life::outcomes);
        let wanted = |name| {
            let mut outcomes = of(&self.lives, name);
            if let Some(otherwise) = &self.otherwise {
                outcomes.extend(of(otherwise, name));
            }
            outcomes.dedup();
            Wanted::any_of(&format!("{}/{name}", self.application), &outcomes)
        };
        NAMES.map(wanted).to_vec()
    }

    /// Takes in what was found at rest: a command was carried out as a whole or not at all.
    pub fn settle(&mut self, scene: &Scene) {
        let found = |name: &str| {
            let key = format!("{}/{name}", self.application);
            let one = scene.workloads.iter().find(|one| one.key() == key)?;
            Some((one.desired_state == "running", one.generation))
        };
        let fits = |lives: &&Lives| {
            NAMES.iter().all(|name| {
                lives.get(name).map(|life| (life.is_wanted, life.generation)) == found(name)
            })
        };
        let known = [Some(&self.lives), self.otherwise.as_ref()];
        let Some(lives) = known.into_iter().flatten().find(fits).cloned() else {
            let both = (&self.lives, &self.otherwise);
            panic!("carried out in part: {:?} is none of {both:?}", NAMES.map(found));
        };
        self.lives = lives;
        self.otherwise = None;
        for (name, life) in &mut self.lives {
            life.made = made(scene, self.application, name);
        }
    }
}

/// What `lives` become by a command.
fn carried_out(lives: &Lives, command: &Command) -> Lives {
    let mut lives = lives.clone();
    match &command.act {
        Act::Apply(changes) => {
            for change in changes {
                let new = Life {
                    is_wanted: true,
                    generation: 0,
                    is_bad: false,
                    made: BTreeSet::from([0]),
                };
                let life = lives.entry(change.name).or_insert(new);
                life.generation += 1;
                life.is_bad = change.is_bad;
                if !change.is_bad {
                    life.made.insert(life.generation);
                }
            }
        }
        Act::Verb("rm", name) => drop(lives.remove(name)),
        Act::Verb(verb, name) => {
            if let Some(life) = lives.get_mut(name) {
                life.is_wanted = *verb != "stop";
            }
        }
    }
    lives
}

/// Generations of which a container may have run, as far as the engine tells.
fn made(scene: &Scene, application: &str, name: &str) -> BTreeSet<u64> {
    let is = |labels: &BTreeMap<String, String>| {
        labels["bargee.application"] == application && labels["bargee.name"] == name
    };
    let Some(held) = scene.containers.iter().find(|held| is(&held.labels)) else {
        return BTreeSet::from([0]);
    };
    let generation = held.labels["bargee.generation"].parse().unwrap();
    if held.status == "created" {
        return BTreeSet::from([0, generation]);
    }
    BTreeSet::from([generation])
}
