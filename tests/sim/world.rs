//! A world with a made-up clock: an agent that may die at any moment, and a store, an engine and
//! processes that outlive it. One thread, and everything that is under way is in one agenda.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bargee::domain::declared::Declared;
use bargee::domain::effect::{ListId, Op, PullId, StepId};
use bargee::domain::event::{ContainerEvent, Event};
use bargee::domain::fault::FaultKind;
use bargee::domain::names::{BootId, ContainerId};
use bargee::domain::time::{Now, Tick};

use super::acts::{Act, Personality, Script};
use super::agent::Agent;
use super::checkers::{Checkers, Violation};
use super::engine::Engine;
use super::faults::Faults;
use super::mutation::Mutation;
use super::random::Random;
use super::store::Store;

/// The wall clock when the world begins.
const WALL_MS: u64 = 1_800_000_000_000;
/// The boot clock when the world begins.
const BOOTED_MS: u64 = 1_000_000;
/// Lines of the trace that are kept.
const TRACE: usize = 400;

/// Something that is under way.
#[derive(Debug)]
pub enum Happening {
    /// An agent hears of this, if it is still that one.
    Hears(u64, Event),
    /// The engine carries out a call.
    Call(Call),
    /// The engine reads its list.
    List(u64, ListId, Option<FaultKind>),
    /// A pull has brought all of it, or has failed.
    Pulled(u64, PullId, Arc<str>, Option<FaultKind>),
    /// The store takes what it was given.
    Write(u64),
    /// The process of this run ends.
    Ends(ContainerId, u32, i32, Cause),
    /// The watcher of an agent tries to open the event stream.
    Connects(u64),
    /// An event shows on the stream of an agent.
    Shows(u64, ContainerEvent),
    /// The reader of the manifests directory tells what is there.
    Looks(u64),
    AgentStarts,
    EngineStarts,
}

/// A call on its way to the engine.
#[derive(Debug)]
pub struct Call {
    pub op: Op,
    /// Who waits for the answer; `None`: nobody (any more).
    pub waits: Option<(u64, StepId)>,
    /// What the answer is instead of what came of it.
    pub instead: Option<FaultKind>,
}

/// Why a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// By itself.
    Itself,
    /// A signal of the agent.
    Signal,
    /// Somebody's hand, or a signal that came after everybody had given it up.
    Hand,
    /// With its engine.
    Engine,
    /// With the device.
    Reboot,
}

/// Everything.
pub struct World {
    /// Milliseconds since the world began.
    pub now: u64,
    pub booted_at: i64,
    pub boots: u32,
    pub wall_offset: i64,
    pub random: Random,
    pub pace_ms: u64,
    agenda: BTreeMap<(u64, u64), Happening>,
    last: u64,

    pub engine: Engine,
    pub store: Store,
    pub agent: Option<Agent>,
    pub lives: u64,
    pub faults: Faults,
    /// What the files hold.
    pub directory: bargee::domain::directory::Found,
    /// What was last asked for under each key.
    pub asked: BTreeMap<u8, Arc<Declared>>,
    pub drawn: u64,
    /// Somewhere in the script a call is refused as wrong.
    pub was_refused: bool,

    pub checkers: Checkers,
    pub mutation: Option<Mutation>,
    /// Steps of the machine.
    pub steps: u64,
    pub violation: Option<Violation>,
    trace: Option<VecDeque<String>>,
}

impl World {
    /// A world in which an agent is about to start.
    pub fn new(script: &Script, mutation: Option<Mutation>, traced: bool) -> Self {
        let mut world = Self {
            now: 0,
            booted_at: -i64::try_from(BOOTED_MS).expect("small"),
            boots: 1,
            wall_offset: 0,
            random: Random::new(script.seed ^ 0x5eed),
            pace_ms: script.pace_ms.max(1),
            agenda: BTreeMap::new(),
            last: 0,
            engine: Engine::new(match script.engine {
                Personality::Docker => super::memory_engine::Ways::DOCKER,
                Personality::LiveRestore => super::memory_engine::Ways::DOCKER_LIVE_RESTORE,
                Personality::Podman => super::memory_engine::Ways::PODMAN,
            }),
            store: Store::new(),
            agent: None,
            lives: 0,
            faults: Faults::default(),
            directory: super::wishes::directory(&[]),
            asked: BTreeMap::new(),
            drawn: 0,
            was_refused: false,
            checkers: Checkers::default(),
            mutation,
            steps: 0,
            violation: None,
            trace: traced.then(VecDeque::new),
        };
        world.start_agent();
        world
    }

    // --- time ----------------------------------------------------------------------------------

    /// Both clocks.
    pub fn clocks(&self) -> Now {
        let now = i64::try_from(self.now).expect("no world is that old");
        let tick = u64::try_from(now - self.booted_at).expect("after the boot");
        Now { tick: Tick(tick), wall_ms: self.wall_ms() }
    }

    pub fn wall_ms(&self) -> u64 {
        let wall = i64::try_from(WALL_MS + self.now).expect("no world is that old");
        u64::try_from((wall + self.wall_offset).max(1)).expect("positive")
    }

    pub fn boot(&self) -> BootId {
        BootId::new(format!("boot-{}", self.boots))
    }

    /// How long something takes: mostly a moment, and at most the pace of this world.
    pub fn moment(&mut self) -> u64 {
        let most = if self.random.once_in(4) { self.pace_ms } else { 2 };
        1 + self.random.below(most)
    }

    pub fn after(&mut self, ms: u64, happening: Happening) {
        self.at(self.now + ms, happening);
    }

    pub fn at(&mut self, at: u64, happening: Happening) {
        self.last += 1;
        self.agenda.insert((at.max(self.now), self.last), happening);
    }

    /// Takes back what is under way and fits.
    pub fn take_back(&mut self, fits: impl Fn(&Happening) -> bool) -> Vec<Happening> {
        let those = self.agenda.iter().filter(|(_, happening)| fits(happening));
        let those: Vec<(u64, u64)> = those.map(|(at, _)| *at).collect();
        those.iter().filter_map(|at| self.agenda.remove(at)).collect()
    }

    /// What is under way.
    pub fn under_way(&mut self) -> impl Iterator<Item = &mut Happening> {
        self.agenda.values_mut()
    }

    /// Lets time pass with everything that happens meanwhile.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.violation.is_none() {
            let agenda = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.next_deadline();
            let next = agenda.into_iter().chain(deadline).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if agenda == Some(next) {
                let Some((_, happening)) = self.agenda.pop_first() else { break };
                self.happen(happening);
            } else {
                self.feed(Event::Deadline);
            }
        }
        self.now = self.now.max(end);
    }

    fn next_deadline(&self) -> Option<u64> {
        let agent = self.agent.as_ref().filter(|agent| !agent.stopping)?;
        let tick = agent.machine.next_deadline()?;
        let at = i64::try_from(tick.0).unwrap_or(i64::MAX).saturating_add(self.booted_at);
        Some(u64::try_from(at).unwrap_or(0))
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Hears(life, event) => {
                if self.is_life(life) {
                    self.feed(event);
                }
            }
            Happening::Call(call) => self.carry_out(call),
            Happening::List(life, id, fault) => self.list(life, id, fault),
            Happening::Pulled(life, id, image, fault) => self.pulled(life, id, image, fault),
            Happening::Write(life) => self.write(life),
            Happening::Ends(id, run, code, cause) => self.end_run(&id, run, code, cause),
            Happening::Connects(life) => self.connect(life),
            Happening::Shows(life, event) => self.hears(life, 0, Event::Container(event)),
            Happening::Looks(life) => self.look(life),
            Happening::AgentStarts => self.start_agent(),
            Happening::EngineStarts => self.start_engine(),
        }
    }

    pub fn is_life(&self, life: u64) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.life == life)
    }

    /// The agent of this life hears of `event` so many milliseconds from now.
    pub fn hears(&mut self, life: u64, ms: u64, event: Event) {
        self.after(ms, Happening::Hears(life, event));
    }

    // --- what goes wrong with the world itself -------------------------------------------------

    /// Notes the first thing that is wrong.
    pub fn blame(&mut self, checker: &'static str, text: impl Into<String>) {
        if self.violation.is_none() {
            let violation = Violation { checker, text: text.into() };
            self.note(|| format!("VIOLATION {violation}"));
            self.violation = Some(violation);
        }
    }

    /// Writes a line of the trace, if there is one.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            if trace.len() >= TRACE {
                trace.pop_front();
            }
            trace.push_back(format!("{:>9}.{:03}  {}", now / 1_000, now % 1_000, line()));
        }
    }

    /// Somebody will read the trace.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// The trace.
    pub fn trace(&self) -> Vec<String> {
        self.trace.iter().flatten().cloned().collect()
    }

    /// Carries out one act of the script.
    pub fn play(&mut self, wait: u64, act: &Act) {
        self.pass(wait);
        if self.violation.is_none() {
            self.note(|| format!("--- {act:?}"));
            self.act(act);
        }
    }
}
