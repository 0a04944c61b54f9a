//! The engine in this world: the model of `tests/support/memory_engine`, and around it the time
//! that calls take, what goes wrong with them, and the processes in the containers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bargee::domain::declared::{Declared, RestartPolicy};
use bargee::domain::effect::{ListId, NewContainer, Op, PullId, Step};
use bargee::domain::event::{Event, Outcome};
use bargee::domain::fault::{Fault, FaultKind};
use bargee::domain::names::{ContainerId, EngineId, Uid};
use bargee::domain::observed::Reading;
use bargee::domain::record::Record;
use bargee::domain::view::PullProgress;
use bargee::limits;

use super::acts::{Way, Word};
use super::faults::word;
use super::memory_engine::{Begun, MemoryEngine, Ways, fault};
use super::mutation::Mutation;
use super::wishes;
use super::world::{Call, Cause, Happening, World};

/// When an engine that says of a container that it is stopping ends it by force.
const STOPS_WITHIN_MS: u64 = 60_000;

/// The engine, and what is known of its containers beside what it tells.
pub struct Engine {
    pub model: MemoryEngine,
    pub up: bool,
    /// The event stream that is open.
    pub stream: Option<Stream>,
    /// The last run of each container.
    pub runs: BTreeMap<ContainerId, Run>,
    /// Whose container it is or was, of each that ever ran.
    pub owners: BTreeMap<ContainerId, Uid>,
    /// Calls that reached it, but for looks and listings.
    pub changes: u64,
    pub lists: u64,
    /// Containers that listings for the present agent have left out.
    pub left_out: BTreeSet<ContainerId>,
    /// Containers that any listing has left out.
    pub ever_left_out: BTreeSet<ContainerId>,
    /// Containers that could not be started because their network was gone.
    pub netless: BTreeSet<ContainerId>,
}

/// An event stream that is open.
#[derive(Debug)]
pub struct Stream {
    pub life: u64,
    /// It shows nothing.
    pub deaf: bool,
    /// When the last event comes that was shown.
    pub last: u64,
}

/// One run of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub number: u32,
    pub began_at: u64,
    /// By a call that somebody still waited for.
    pub wanted: bool,
    /// It ended well as a job, or a run of this container before this one has proved it.
    pub proved: bool,
    /// Somebody froze it for a while, in which it proved nothing.
    pub frozen: bool,
    /// Since when it is shown to run.
    pub shown_at: Option<u64>,
    /// When its stop was wanted, if it is not shown to run since.
    pub stop_at: Option<u64>,
    /// Why and when it ended, and with what.
    pub ended: Option<(Cause, u64, i32)>,
}

impl Run {
    /// People saw this run go on for long enough, before it was stopped.
    pub fn lasted_in_sight(&self, now: u64) -> bool {
        let end = self.stop_at.or(self.ended.map(|(_, at, _)| at)).unwrap_or(now);
        self.shown_at.is_some_and(|shown| end.saturating_sub(shown) >= limits::STABLE_MS)
    }

    /// This run was long enough for that.
    fn lasted_by(&self, now: u64) -> bool {
        let end = self.ended.map_or(now, |(_, at, _)| at);
        end.saturating_sub(self.began_at) >= limits::STABLE_MS
    }

    /// The container has proved itself, by a run that was long enough or ended well.
    pub fn proved_by(&self, now: u64) -> bool {
        self.proved || self.lasted_by(now)
    }
}

impl Engine {
    pub fn new(ways: Ways) -> Self {
        let mut model = MemoryEngine::new(ways);
        model.images.extend(wishes::first_images());
        Self {
            model,
            up: true,
            stream: None,
            runs: BTreeMap::new(),
            owners: BTreeMap::new(),
            changes: 0,
            lists: 0,
            left_out: BTreeSet::new(),
            ever_left_out: BTreeSet::new(),
            netless: BTreeSet::new(),
        }
    }
}

impl World {
    // --- calls ---------------------------------------------------------------------------------

    pub fn send_step(&mut self, life: u64, step: Step) {
        let Step { id, op, .. } = step;
        let kind = word(&op);
        self.check_step(id, &op);
        if !self.engine.up {
            let away = Fault::new(FaultKind::Away, "connect", "", "refused");
            return self.hears(life, 1, Event::StepDone(id, Err(away)));
        }
        let (way, soon) = (self.faults.befalls(kind), self.moment());
        let mishap = |kind| Fault::new(kind, "call", "x", "a mishap");
        let waits = Some((life, id));
        match way {
            None => self.after(soon, Happening::Call(Call { op, waits, instead: None })),
            Some(Way::Takes(ms)) => {
                self.after(ms, Happening::Call(Call { op, waits, instead: None }));
            }
            Some(Way::Done(kind)) => {
                self.after(soon, Happening::Call(Call { op, waits, instead: Some(kind) }));
            }
            Some(Way::NotDone(kind)) => {
                if let (Op::Start(target, _), FaultKind::NoNetwork) = (&op, kind) {
                    self.engine.netless.insert(target.clone());
                }
                self.hears(life, soon, Event::StepDone(id, Err(mishap(kind))));
            }
            Some(Way::Later(kind, ms)) => {
                self.hears(life, soon, Event::StepDone(id, Err(mishap(kind))));
                // Nobody waits for it: a look has nothing to do.
                if !matches!(op, Op::Inspect(_) | Op::CheckPaths(_)) {
                    let call = Call { op, waits: None, instead: None };
                    self.after(soon + ms, Happening::Call(call));
                }
            }
            Some(Way::Hangs) => {
                let ms = match kind {
                    Word::Inspect => limits::ENGINE_READ_MS,
                    _ => limits::ENGINE_WRITE_MS,
                };
                let timeout = mishap(FaultKind::Timeout);
                self.hears(life, ms, Event::StepDone(id, Err(timeout)));
            }
        }
    }

    pub fn carry_out(&mut self, call: Call) {
        let Call { op, waits, instead } = call;
        let wanted = waits.is_some() && instead.is_none();
        let result = self.do_op(&op, wanted);
        self.note(|| {
            format!("engine: {} {}", super::report::op(&op), super::report::result(&result))
        });
        self.show_events();
        let Some((life, id)) = waits else { return };
        let result = match instead {
            Some(kind) => Err(Fault::new(kind, "call", "x", "the answer is lost")),
            None => result,
        };
        let soon = self.moment();
        self.hears(life, soon, Event::StepDone(id, result));
    }

    fn do_op(&mut self, op: &Op, wanted: bool) -> Result<Outcome, Fault> {
        if !matches!(op, Op::Inspect(_) | Op::CheckPaths(_)) {
            self.engine.changes += 1;
        }
        match op {
            Op::Inspect(target) => Ok(match self.engine.model.find(target) {
                Some(made) => Outcome::Found(Box::new(made.reading())),
                None => Outcome::NotFound,
            }),
            Op::CheckPaths(declared) => self.check_paths(declared).map(|()| Outcome::PathsThere),
            Op::Create(new) => {
                // Its network comes with it, and nobody removes that if its workload is gone.
                self.checkers.network_left |= !wanted;
                self.create(new)
            }
            Op::Start(id, declared) => self.start(id, declared.as_deref(), wanted),
            Op::Signal(id, signal) => self.signal(id, signal, wanted),
            Op::Remove(_) if self.mutation.as_ref().is_some_and(Mutation::forgets_removals) => {
                Ok(Outcome::Removed)
            }
            Op::Remove(target) => self.remove(target),
            Op::RemoveNetwork(name) => {
                self.engine.model.remove_network(name);
                Ok(Outcome::NetworkRemoved)
            }
        }
    }

    fn check_paths(&self, declared: &Declared) -> Result<(), Fault> {
        match declared.spec.host_paths().next() {
            Some((path, _)) if self.faults.no_disk => {
                Err(fault(FaultKind::HostPath, "mount", path, "it is not there"))
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, new: &NewContainer) -> Result<Outcome, Fault> {
        self.check_paths(&new.declared)?;
        let image = new.declared.spec.image.as_str();
        if wishes::is_refused(image) {
            return Err(fault(FaultKind::Refused, "create container", image, "bad parameter"));
        }
        if self.faults.squatters > 0 {
            self.faults.squatters -= 1;
            let _ = self.engine.model.add(new.name.as_str(), None, "foreign".into(), None);
        }
        self.engine.model.create(new).map(Outcome::Created)
    }

    fn start(
        &mut self,
        id: &ContainerId,
        declared: Option<&Declared>,
        wanted: bool,
    ) -> Result<Outcome, Fault> {
        if let Some(declared) = declared {
            self.check_paths(declared)?;
        }
        self.begin_run(id, wanted)?;
        let made = self.engine.model.find(id.as_str()).map(|made| made.reading());
        let vanished = || fault(FaultKind::NoContainer, "inspect container", id.as_str(), "gone");
        made.map(|reading: Reading| Outcome::Started(Box::new(reading))).ok_or_else(vanished)
    }

    /// Starts a container, and what its process does from then on.
    pub fn begin_run(&mut self, id: &ContainerId, wanted: bool) -> Result<(), Fault> {
        let image = self.engine.model.find(id.as_str()).map(|made| made.image.clone());
        if image.as_deref().is_some_and(wishes::is_inert) {
            return Err(fault(FaultKind::Refused, "start container", id.as_str(), "no such file"));
        }
        let wall_ns = self.wall_ms() * 1_000_000;
        match self.engine.model.start(id.as_str(), wall_ns) {
            Ok(Begun::Anew) => {}
            Ok(Begun::Already) => return Ok(()),
            Err(fault) => {
                if fault.kind == FaultKind::NoNetwork {
                    self.engine.netless.insert(id.clone());
                }
                return Err(fault);
            }
        }
        let Some(made) = self.engine.model.find(id.as_str()) else { return Ok(()) };
        let (number, owner, image) = (made.runs, made.owner().cloned(), made.image.clone());
        let proved = self.engine.runs.get(id).is_some_and(|run| run.proved_by(self.now));
        let run = Run {
            number,
            began_at: self.now,
            wanted,
            proved,
            frozen: false,
            shown_at: None,
            stop_at: None,
            ended: None,
        };
        self.engine.runs.insert(id.clone(), run);
        if let Some(uid) = owner {
            self.engine.owners.insert(id.clone(), uid);
        }
        self.check_twins(id);
        let policy = self.policy_of(id);
        match wishes::lasts_ms(&image, self.faults.over, policy) {
            // Before anybody has looked.
            Some((0, code)) => self.end_run(id, number, code, Cause::Itself),
            Some((ms, code)) => {
                let ends = Happening::Ends(id.clone(), number, code, Cause::Itself);
                self.after(ms, ends);
            }
            None => {}
        }
        Ok(())
    }

    /// What follows an exit of this container, as far as people are shown.
    fn policy_of(&self, id: &ContainerId) -> Option<RestartPolicy> {
        let owner = self.engine.model.find(id.as_str())?.owner()?;
        let view = self.agent.as_ref()?.views.get(owner)?;
        Some(view.declared.spec.restart.policy)
    }

    /// A run ends, if it has not ended yet.
    pub fn end_run(&mut self, id: &ContainerId, number: u32, code: i32, cause: Cause) {
        let is_job = self.policy_of(id) != Some(RestartPolicy::Always);
        let Some(run) = self.engine.runs.get_mut(id).filter(|run| run.number == number) else {
            return;
        };
        if run.ended.is_some() {
            return;
        }
        run.ended = Some((cause, self.now, code));
        run.proved |= is_job && code == 0;
        self.note(|| format!("process of {id} ends with {code}: {cause:?}"));
        self.engine.model.exit(id.as_str(), code);
        if self.engine.up {
            self.show_events();
        } else {
            self.engine.model.told.clear();
        }
    }

    fn signal(&mut self, id: &ContainerId, signal: &str, wanted: bool) -> Result<Outcome, Fault> {
        self.engine.model.signal(id.as_str())?;
        let Some(run) = self.engine.runs.get(id).copied() else { return Ok(Outcome::Signalled) };
        let image = self.engine.model.find(id.as_str()).map(|made| made.image.clone());
        self.engine.model.begin_stop(id.as_str());
        let obeys = wishes::obeys_after_ms(image.as_deref().unwrap_or(""), signal);
        // An engine that speaks of a stop sees it through.
        let made_to = self.engine.model.ways.tells_stopping.then_some(STOPS_WITHIN_MS);
        if let Some(ms) = obeys.or(made_to) {
            let code = if signal == "SIGKILL" || obeys.is_none() { 137 } else { 143 };
            // What an operator asks for ends a process like its own fault.
            let rows = &self.store.kept.rows;
            let recorded = rows
                .values()
                .any(|row| row.own_stop.as_ref().is_some_and(|stop| stop.container == *id));
            let cause = match wanted {
                true if recorded || signal != "SIGKILL" => Cause::Signal,
                true => Cause::Itself,
                false => Cause::Hand,
            };
            let at = (self.now + ms).max(self.faults.deaf_until(id));
            self.at(at, Happening::Ends(id.clone(), run.number, code, cause));
        }
        Ok(Outcome::Signalled)
    }

    fn remove(&mut self, target: &str) -> Result<Outcome, Fault> {
        let Some(made) = self.engine.model.find(target) else { return Ok(Outcome::Removed) };
        let (id, number) = (made.id.clone(), made.runs);
        if self.faults.unremovable.contains(&id) {
            return Err(fault(FaultKind::Trouble, "remove container", target, "device busy"));
        }
        self.end_run(&id, number, 137, Cause::Signal);
        self.engine.model.remove(target);
        Ok(Outcome::Removed)
    }

    // --- listings ------------------------------------------------------------------------------

    pub fn send_list(&mut self, life: u64, id: ListId) {
        self.engine.lists += 1;
        let soon = self.moment();
        if !self.engine.up {
            return self.list(life, id, Some(FaultKind::Away));
        }
        match self.faults.befalls(Word::List) {
            None => self.after(soon, Happening::List(life, id, None)),
            Some(Way::Takes(ms)) => self.after(ms.min(14_000), Happening::List(life, id, None)),
            Some(Way::NotDone(kind) | Way::Done(kind) | Way::Later(kind, _)) => {
                self.after(soon, Happening::List(life, id, Some(kind)));
            }
            Some(Way::Hangs) => {
                let timeout = Some(FaultKind::Timeout);
                self.after(limits::ENGINE_READ_MS, Happening::List(life, id, timeout));
            }
        }
    }

    /// The engine reads its list; the answer takes a while, and is old by then.
    pub fn list(&mut self, life: u64, id: ListId, fault: Option<FaultKind>) {
        let soon = self.moment();
        let fault = if self.engine.up { fault } else { Some(FaultKind::Away) };
        if let Some(kind) = fault {
            let fault = Fault::new(kind, "list containers", "", "a mishap");
            return self.hears(life, soon, Event::Listing(id, Err(fault)));
        }
        if self.agent.as_mut().is_some_and(|agent| std::mem::take(&mut agent.identifies)) {
            self.hears(life, soon, Event::Identity(Some(EngineId::new("engine"))));
        }
        let mut lines = self.engine.model.list();
        if self.faults.short_lists > 0 && !lines.is_empty() {
            self.faults.short_lists -= 1;
            let n = self.random.below(lines.len() as u64);
            let line = lines.remove(usize::try_from(n).expect("a length"));
            self.engine.ever_left_out.insert(line.id.clone());
            self.engine.left_out.insert(line.id);
        }
        self.hears(life, soon, Event::Listing(id, Ok(lines)));
    }

    // --- pulls ---------------------------------------------------------------------------------

    pub fn send_pull(&mut self, id: PullId, image: Arc<str>) {
        let Some(life) = self.agent.as_ref().map(|agent| agent.life) else { return };
        let takes = 50 + self.random.below(4_000);
        let way = self.faults.befalls(Word::Fetch);
        let (ms, fault) = match way {
            _ if !self.engine.up => (1, Some(FaultKind::Away)),
            None if wishes::is_ghost(&image) && !self.faults.over => {
                (takes, Some(FaultKind::Trouble))
            }
            None | Some(Way::Later(..)) => (takes, None),
            Some(Way::Takes(ms)) => (ms, None),
            Some(Way::NotDone(kind) | Way::Done(kind)) => (takes, Some(kind)),
            // Nothing moves, and the call ends by itself.
            Some(Way::Hangs) => (limits::ENGINE_PULL_MS, Some(FaultKind::Timeout)),
        };
        if way != Some(Way::Hangs) {
            for part in 1..=ms / 20_000 {
                let progress = PullProgress { done_bytes: part, total_bytes: 100 };
                self.hears(life, part * 20_000, Event::PullProgress(id, progress));
            }
        }
        self.after(ms, Happening::Pulled(life, id, image, fault));
    }

    pub fn pulled(&mut self, life: u64, id: PullId, image: Arc<str>, fault: Option<FaultKind>) {
        let fault = if self.engine.up { fault } else { Some(FaultKind::Away) };
        if let Some(kind) = fault {
            let fault = Fault::new(kind, "pull image", &*image, "a mishap");
            return self.hears(life, 0, Event::PullDone(id, Err(fault)));
        }
        if self.engine.model.images.insert(image) {
            self.hears(life, 0, Event::PullSyncs(id));
        }
        let soon = self.moment();
        self.hears(life, soon, Event::PullDone(id, Ok(())));
    }

    /// The connection of a pull is closed.
    pub fn cancel_pull(&mut self, pull: PullId) {
        let Some(agent) = &mut self.agent else { return };
        let life = agent.life;
        if agent.forget_pull(pull) {
            return;
        }
        let mine =
            move |one: &Happening| matches!(one, Happening::Pulled(_, id, ..) if *id == pull);
        if !self.take_back(mine).is_empty() {
            let fault = Fault::new(FaultKind::Away, "pull image", "", "cancelled");
            self.hears(life, 1, Event::PullDone(pull, Err(fault)));
        }
    }

    // --- its own life --------------------------------------------------------------------------

    /// The engine ends. What it took on is not done any more.
    pub fn kill_engine(&mut self) {
        if !self.engine.up {
            return;
        }
        self.engine.up = false;
        if !self.engine.model.ways.containers_outlive {
            self.end_all_runs(137, Cause::Engine);
        }
        let calls = self.take_back(|one| matches!(one, Happening::Call(_)));
        for call in calls {
            let Happening::Call(Call { waits: Some((life, id)), .. }) = call else { continue };
            let away = Fault::new(FaultKind::Away, "call", "", "connection reset");
            self.hears(life, 1, Event::StepDone(id, Err(away)));
        }
        self.lose_stream(FaultKind::Away);
    }

    pub fn start_engine(&mut self) {
        self.engine.up = true;
    }

    /// Every process ends, and no event tells of it.
    pub fn end_all_runs(&mut self, code: i32, cause: Cause) {
        let rows = &self.store.kept.rows;
        for (id, run) in self.engine.runs.iter_mut().filter(|(_, run)| run.ended.is_none()) {
            // A container that no row knows may have run before any boot, for all that anybody can
            // tell later; and what a hand started was not asked to run.
            let is = |row: &Record| {
                row.current.as_ref().is_some_and(|c| c.container.as_ref() == Some(id))
            };
            let known = run.wanted && rows.values().any(|row| is(row));
            let known = known || cause != Cause::Reboot;
            let cause = if known { cause } else { Cause::Engine };
            run.ended = Some((cause, self.now, code));
        }
        self.engine.model.end_all(code);
    }
}
