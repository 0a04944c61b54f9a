//! The agent is killed at random moments of a random stream of commands, again and again. After
//! each round, once the next one has come to rest, everything is as it was answered.
//!
//! `BARGEE_STORM_SEED` repeats the commands of a run, `BARGEE_STORM_ROUNDS` makes it longer.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bargee::os::clock;

use crate::crashing::in_lanes;
use crate::rest::expect_rest;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::pause;
use crate::support::proxy::{Proxy, end};
use model::{APPLICATIONS, Command, Known, Model, Random};

mod model;

/// Rounds in all, unless the environment says otherwise.
const ROUNDS: u64 = 30;
/// Agents that weather the storm side by side, each with a share of the rounds: where a create was
/// cut, the journal is empty only 20 s later.
const STORMS: u64 = 5;
/// Commands of one client in one round.
const COMMANDS: usize = 8;
/// The agent dies this long after the first command, at the latest.
const LONGEST_MS: u64 = 1_500;
/// And the next one, in some rounds, this long after it was started.
const LONGEST_START_MS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// What is random in one round, so that it does not depend on how the one before went.
struct Round {
    commands: [Vec<Command>; 2],
    /// Time until the agent is killed.
    kill_after: Duration,
    /// Time until the next one is killed, too.
    kill_again: Option<Duration>,
}

impl Round {
    fn new(seed: u64, storm: u64, round: u64) -> Self {
        let mut random = Random::new(&[seed, storm, round]);
        let commands = APPLICATIONS.map(|application| {
            let one = |_| Command::random(application, &mut random);
            (0..COMMANDS).map(one).collect()
        });
        let mut within = |longest| Duration::from_millis(random.below(longest));
        let kill_after = within(LONGEST_MS);
        let again = within(LONGEST_START_MS);
        let kill_again = (random.below(3) == 0).then_some(again);
        Self { commands, kill_after, kill_again }
    }
}

/// Sends commands until the agent dies; what is known then.
fn send(agent: &Agent, commands: &[Command], dead: &AtomicBool, model: &mut Model) {
    for command in commands {
        let output = command.run(agent);
        let known = match output.code {
            0 => Known::Done(output.out),
            4 | 5 => Known::Refused,
            _ => {
                assert!(dead.load(Ordering::SeqCst), "{command:?}: {output:?}");
                Known::Nothing
            }
        };
        let goes_on = !matches!(known, Known::Nothing);
        model.take(command, known);
        if !goes_on {
            return;
        }
    }
}

struct Storm {
    proxy: Proxy,
    agent: Agent,
    models: [Model; 2],
}

impl Storm {
    fn new() -> Self {
        let proxy = Proxy::start(&shared().socket());
        let mut agent = Agent::new(shared(), &proxy.url());
        agent.start();
        Self { proxy, agent, models: APPLICATIONS.map(Model::new) }
    }

    /// Both clients send, and the agent dies meanwhile.
    fn blow(&mut self, round: &Round) {
        let dead = AtomicBool::new(false);
        let Self { agent, models, .. } = self;
        let process = agent.pid();
        thread::scope(|scope| {
            for (commands, model) in round.commands.iter().zip(models) {
                let (agent, dead) = (&*agent, &dead);
                scope.spawn(move || send(agent, commands, dead, model));
            }
            pause(round.kill_after);
            dead.store(true, Ordering::SeqCst);
            end(process);
        });
        agent.kill9();
        if let Some(time) = round.kill_again {
            agent.launch();
            pause(time);
            agent.kill9();
        }
        agent.start();
    }

    fn weather(&mut self, round: &Round) {
        self.blow(round);
        let wanted: Vec<_> = self.models.iter().flat_map(Model::wanted).collect();
        let scene = expect_rest(&mut self.agent, &self.proxy, &wanted);
        for model in &mut self.models {
            model.settle(&scene);
        }
    }

    /// All that is left goes, and leaves nothing. How many starts found something in the journal.
    fn end(self) -> usize {
        for one in self.agent.workloads() {
            self.agent.ok(&["rm", &one.key()]);
        }
        self.agent.expect_no_trace();
        let log = self.agent.log();
        let said = ["the journal is replayed", "of the journal are settled"];
        said.iter().map(|words| log.matches(words).count()).sum()
    }
}

#[test]
fn a_storm_of_kills_loses_doubles_and_leaves_nothing() {
    let seed = number("BARGEE_STORM_SEED").unwrap_or_else(clock::wall_ms);
    let rounds = number("BARGEE_STORM_ROUNDS").unwrap_or(ROUNDS);
    println!("BARGEE_STORM_SEED={seed} BARGEE_STORM_ROUNDS={rounds}");
    let storms: Vec<u64> = (0..STORMS).collect();
    in_lanes(&storms, |&number| {
        let mut storm = Storm::new();
        let share = rounds / STORMS + u64::from(number < rounds % STORMS);
        for round in 0..share {
            println!("storm {number}, round {round}");
            storm.weather(&Round::new(seed, number, round));
        }
        let replays = storm.end();
        println!("storm {number}: {replays} starts found something in the journal");
    });
}
