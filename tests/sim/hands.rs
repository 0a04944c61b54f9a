//! Carries out the acts of a script: what people ask for, what hands do to the engine, and what
//! breaks.

use std::sync::Arc;

use bargee::domain::directory::{Found, Scan};
use bargee::domain::event::{Apply, Event, Request, Verb as Asked};
use bargee::domain::fault::FaultKind;
use bargee::domain::names::{ContainerId, InstanceName, Source, StoreId, Uid};
use bargee::domain::observed::Phase;
use bargee::domain::record::Desired;
use bargee::domain::time::Span;

use super::acts::{Act, Failing, Hand, Verb};
use super::memory_engine::Made;
use super::wishes;
use super::world::{Cause, Happening, World};

impl World {
    pub fn act(&mut self, act: &Act) {
        match act {
            Act::Apply(wishes, prune, start) => {
                let declared = wishes.iter().map(wishes::declare).collect::<Vec<_>>();
                for (wish, declared) in wishes.iter().zip(&declared) {
                    self.asked.insert(wish.key, declared.clone());
                }
                self.apply_all(declared, *prune, *start);
            }
            Act::Again(key) => {
                if let Some(declared) = self.asked.get(key).cloned() {
                    self.apply_all(vec![declared], false, false);
                }
            }
            Act::Verb(key, verb) => self.verb(*key, *verb),
            Act::Replay => self.ask(Request::Replay(None)),
            Act::Drop(n) => {
                let Some(agent) = &self.agent else { return };
                let entry = agent.entries.values().nth(usize::from(*n)).cloned();
                if let Some(entry) = entry {
                    let name = entry.intent.instance().map(|name| name.as_str().to_owned());
                    self.checkers.let_go.extend(name);
                    self.ask(Request::DropEntry(entry.seq));
                }
            }
            Act::Confirm => self.ask(Request::Confirm),
            Act::Quiesce(ms) => self.ask(Request::Quiesce(Span(*ms))),
            Act::Resume => self.ask(Request::Resume),
            Act::Files(files) => self.set_directory(wishes::directory(files)),
            Act::NoDirectory => self.set_directory(Found::Missing),
            Act::Exit(n, code) => {
                if let Some(id) = self.nth_live(*n) {
                    self.end_by(&id, *code, Cause::Itself);
                }
            }
            Act::Deaf(n, ms) => {
                if let Some(id) = self.nth_live(*n) {
                    self.faults.deaf.push((id, self.now + ms));
                }
            }
            other => self.break_down(other),
        }
    }

    fn break_down(&mut self, act: &Act) {
        match act {
            Act::Hand(hand, n) => self.hand(*hand, *n),
            Act::NetworkGone(n) => {
                let networks = &mut self.engine.model.networks;
                if let Some(name) = networks.iter().nth(usize::from(*n)).cloned() {
                    networks.remove(&name);
                }
            }
            Act::ImageGone(n) => {
                let images = &mut self.engine.model.images;
                let n = usize::from(*n) % images.len().max(1);
                if let Some(image) = images.iter().nth(n).cloned() {
                    images.remove(&image);
                }
            }
            Act::Disk(there) => self.faults.no_disk = !there,
            Act::EngineDies => self.kill_engine(),
            Act::EngineStarts => self.start_engine(),
            Act::Mishap(word, after, way) => self.faults.add(*word, *after, *way),
            Act::StreamEnds => self.lose_stream(FaultKind::Trouble),
            Act::StreamDeaf => {
                if let Some(stream) = &mut self.engine.stream {
                    stream.deaf = true;
                }
            }
            Act::Lose(n) => self.faults.lost += n,
            Act::Double(n) => self.faults.doubled += n,
            Act::Lag(ms) => self.faults.lag_ms = *ms,
            Act::ShortLists(n) => self.faults.short_lists += n,
            Act::Stuck(n) => {
                if let Some(id) = self.nth(*n, |_| true) {
                    self.faults.unremovable.push(id);
                }
            }
            other => self.break_device(other),
        }
    }

    fn break_device(&mut self, act: &Act) {
        match act {
            Act::StoreFails(failing) => self.store.fails = *failing,
            Act::Stall(ms) => self.store.stalled_until = self.now + ms,
            Act::Commit(after, writing) => self.store.fate = Some((*after, *writing)),
            Act::Die(durable, later) => {
                self.kill_agent(*durable);
                self.after(*later, Happening::AgentStarts);
            }
            Act::Fuse(left, side, later) => self.faults.fuse = Some((*left, *side, *later)),
            Act::Stop(later) => {
                self.stop_agent();
                self.after(*later, Happening::AgentStarts);
            }
            Act::Drain(later) => {
                self.drain_agent();
                self.after(*later, Happening::AgentStarts);
            }
            Act::PowerCut(durable, agent, engine) => self.cut_power(*durable, *agent, *engine),
            Act::WallJump(seconds) => self.wall_offset += seconds * 1_000,
            _ => {}
        }
    }

    // --- people --------------------------------------------------------------------------------

    pub fn fresh_uid(&mut self) -> Uid {
        self.drawn += 1;
        Uid::new(format!("uid-{}", self.drawn))
    }

    fn apply_all(
        &mut self,
        declared: Vec<Arc<bargee::domain::declared::Declared>>,
        prune: bool,
        start: bool,
    ) {
        let uids = declared.iter().map(|_| self.fresh_uid()).collect();
        let source = Source::Local;
        self.ask(Request::Apply(Apply { source, declared, uids, dry_run: false, prune, start }));
    }

    pub fn verb(&mut self, key: u8, verb: Verb) {
        let Some(agent) = &self.agent else { return };
        let key = wishes::key(key);
        let mut of_key: Vec<_> =
            agent.views.values().filter(|view| view.declared.key == key).collect();
        of_key.sort_by_key(|view| view.desired == Desired::Deleted);
        let Some(uid) = of_key.first().map(|view| view.uid.clone()) else { return };
        let verb = match verb {
            Verb::Start => Asked::Start,
            Verb::StopIt => Asked::Stop,
            Verb::Restart => Asked::Restart,
            Verb::Rebuild => Asked::Rebuild,
            Verb::Kill => Asked::Kill("SIGKILL".to_owned()),
            Verb::Remove => Asked::Remove,
        };
        self.ask(Request::Verb(verb, uid));
    }

    pub fn set_directory(&mut self, found: Found) {
        self.directory = found;
        self.checkers.directory_changed();
        if let Some(agent) = &self.agent {
            let life = agent.life;
            let soon = self.moment();
            self.after(soon, Happening::Looks(life));
        }
    }

    /// The reader tells what is there now.
    pub fn look(&mut self, life: u64) {
        if !self.is_life(life) {
            return;
        }
        let found = self.directory.clone();
        let count = match &found {
            Found::There(listing) => listing.files.len() * 4,
            _ => 0,
        };
        let fresh = (0..count).map(|_| self.fresh_uid()).collect();
        self.feed(Event::Directory(Box::new(Scan { found, fresh })));
    }

    // --- hands ---------------------------------------------------------------------------------

    /// The `n`-th container that is like this.
    pub fn nth(&self, n: u8, is: impl Fn(&Made) -> bool) -> Option<ContainerId> {
        let those: Vec<&Made> = self.engine.model.all().filter(|made| is(made)).collect();
        let n = usize::from(n).checked_rem(those.len())?;
        Some(those[n].id.clone())
    }

    fn nth_live(&self, n: u8) -> Option<ContainerId> {
        self.nth(n, |made| made.phase == Phase::Running)
    }

    /// The present run of a container ends.
    pub fn end_by(&mut self, id: &ContainerId, code: i32, cause: Cause) {
        if let Some(run) = self.engine.runs.get(id).copied() {
            self.end_run(id, run.number, code, cause);
        }
    }

    fn hand(&mut self, hand: Hand, n: u8) {
        if !self.engine.up {
            return;
        }
        let ours = |made: &Made| made.owner().is_some();
        match hand {
            Hand::Removes => {
                if let Some(id) = self.nth(n, ours) {
                    self.end_by(&id, 137, Cause::Hand);
                    self.engine.model.remove(id.as_str());
                }
            }
            Hand::Starts => {
                if let Some(id) = self.nth(n, |made| ours(made) && !made.is_live()) {
                    let _ = self.begin_run(&id, false);
                }
            }
            Hand::Stops => {
                if let Some(id) = self.nth_live(n) {
                    self.end_by(&id, 143, Cause::Hand);
                }
            }
            Hand::Freezes | Hand::Thaws => {
                let from = if hand == Hand::Freezes { Phase::Running } else { Phase::Paused };
                if let Some(id) = self.nth(n, |made| made.phase == from) {
                    self.engine.model.freeze(id.as_str(), hand == Hand::Freezes);
                    if let Some(run) = self.engine.runs.get_mut(&id) {
                        run.frozen = true;
                    }
                }
            }
            Hand::Twins | Hand::Copies | Hand::Strange => self.double(hand, n),
            Hand::Squats => self.faults.squatters += 1,
        }
        self.show_events();
    }

    /// Makes a container with the labels of one that is there.
    fn double(&mut self, hand: Hand, n: u8) {
        let Some(id) = self.nth(n, |made| made.owner().is_some()) else { return };
        let Some(made) = self.engine.model.find(id.as_str()).cloned() else { return };
        let Some(mut tags) = made.tags.clone() else { return };
        self.drawn += 1;
        let name = format!("bargee-{}-by-hand-{}", tags.key.name, self.drawn);
        match hand {
            Hand::Twins => tags.instance = InstanceName::new(name.as_str()),
            Hand::Strange => {
                // Nobody looks at a network again that was in use.
                self.checkers.network_left = true;
                tags.instance = InstanceName::new(name.as_str());
                tags.store = StoreId::new("fedcba9876543210");
                tags.uid = Uid::new("somebody-else's");
            }
            _ => {}
        }
        let made = self.engine.model.add(&name, Some(tags), made.image, made.network);
        if let Ok(id) = made {
            let _ = self.begin_run(&id, false);
        }
    }

    // --- the device ----------------------------------------------------------------------------

    /// Nothing runs, and what was under way is not done any more.
    pub fn cut_power(&mut self, durable: bool, agent: u64, engine: u64) {
        self.kill_agent(durable);
        self.take_back(|_| true);
        self.engine.up = false;
        self.engine.stream = None;
        self.end_all_runs(255, Cause::Reboot);
        self.store.stalled_until = 0;
        self.boots += 1;
        self.checkers.held.rebooted();
        self.booted_at = i64::try_from(self.now).expect("no world is that old");
        self.now += 1;
        self.after(agent, Happening::AgentStarts);
        self.after(engine, Happening::EngineStarts);
    }

    /// The faults are over, and whatever was held by one goes on.
    pub fn end_faults(&mut self) {
        self.note(|| "=== the faults are over".to_owned());
        self.faults.end();
        self.store.fails = Failing::Nothing;
        self.store.fate = None;
        self.store.stalled_until = 0;
        self.engine.model.images.extend(wishes::all_images());
        let frozen: Vec<ContainerId> = self
            .engine
            .model
            .all()
            .filter(|made| made.phase == Phase::Paused)
            .map(|made| made.id.clone())
            .collect();
        for id in frozen {
            self.engine.model.freeze(id.as_str(), false);
        }
        self.start_engine();
        if self.agent.is_none() {
            self.after(1, Happening::AgentStarts);
        }
        self.show_events();
    }
}
