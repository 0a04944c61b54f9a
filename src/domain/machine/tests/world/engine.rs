//! The made-up engine: it outlives the agent and does at once what it is told, unless a test says
//! otherwise.

use std::collections::{BTreeMap, VecDeque};

use super::fuse::{Late, LateDue};
use crate::domain::declared::Declared;
use crate::domain::effect::{NewContainer, Op};
use crate::domain::event::{ContainerAction, ContainerEvent, Event, Outcome};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::health_check::{Health, Verdict};
use crate::domain::names::{ContainerId, EngineId, Uid};
use crate::domain::observed::{Listed, Phase, Reading, Tags};

/// One container of the made-up engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub id: ContainerId,
    pub tags: Tags,
    pub image: String,
    pub phase: Phase,
    pub started_at_ns: u64,
    pub exit_code: i32,
    /// By its check, if it has one. As Docker does, it leaves the last verdict on what has ended.
    pub health: Option<Health>,
}

/// The engine.
#[derive(Debug, Default)]
pub struct Engine {
    pub containers: BTreeMap<String, Made>,
    /// How far the wall clock is ahead of the boot clock, in milliseconds.
    pub clock_ahead: i64,
    /// What it calls itself.
    pub identity: Option<EngineId>,
    /// What is on its other disk, and what it calls itself there.
    pub other: (BTreeMap<String, Made>, Option<EngineId>),
    /// Every operation that reached it, as a word.
    pub calls: Vec<String>,
    /// Faults for the next calls of this word.
    pub faults: BTreeMap<&'static str, VecDeque<FaultKind>>,
    /// Images that are not on the device.
    pub missing_images: Vec<String>,
    /// Images of which no container is made: refused as wrong.
    pub refused_images: Vec<String>,
    /// Images whose process ends with 1 before its start is looked at.
    pub crashing_images: Vec<String>,
    /// Images whose process ends by itself: after so many milliseconds, with this code.
    pub mortal_images: BTreeMap<String, (u64, i32)>,
    /// Runs that end by themselves: when, which container, which start.
    ends: Vec<(u64, ContainerId, u64)>,
    /// Ports that every running container is said to publish.
    pub publishes: Vec<String>,
    /// Ports of the host that somebody else holds.
    pub taken_ports: Vec<u16>,
    /// Host paths that are not there.
    pub missing_paths: Vec<&'static str>,
    /// Containers are gone as soon as they are made.
    pub made_is_lost: bool,
    /// Starts are answered, and nothing is started.
    pub starts_nothing: bool,
    /// Containers that it cannot remove.
    pub unremovable: Vec<ContainerId>,
    /// Workloads whose processes end by nothing but SIGKILL.
    pub stubborn: Vec<&'static str>,
    /// Listings leave every container out.
    pub short_list: bool,
    /// It does not answer listings and steps: they are dropped.
    pub gone: bool,
    /// Listings say nothing of health.
    pub list_without_health: bool,
    /// Starts do not show on the event stream.
    pub stream_silent: bool,
    /// What the event stream shows next.
    pub shown: Vec<ContainerEvent>,
    /// What it took on and has not done.
    pub late: Vec<Late>,
    /// Its answers to what it did late.
    pub answers: Vec<Event>,
    last: u64,
}

impl Engine {
    /// As it is, but nothing that a test had set up to go wrong does any more.
    pub fn recovered(self) -> Self {
        let Self { containers, clock_ahead, identity, other, .. } = self;
        let Self { unremovable, gone, late, last, ends, .. } = self;
        let kept = Self { containers, clock_ahead, identity, other, ..Self::default() };
        Self { unremovable, gone, late, last, ends, ..kept }
    }

    /// Puts the other disk under it.
    pub fn change_disks(&mut self) {
        std::mem::swap(&mut self.containers, &mut self.other.0);
        std::mem::swap(&mut self.identity, &mut self.other.1);
    }

    /// The wall clock when the boot clock says `now`.
    pub fn wall_ms(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.clock_ahead)
    }

    /// The next fault for calls of `word`.
    pub fn fault(&mut self, word: &'static str) -> Option<Fault> {
        let kind = self.faults.get_mut(word)?.pop_front()?;
        Some(Fault::new(kind, word, "x", format!("{kind:?}")))
    }

    pub fn fail_next(&mut self, word: &'static str, kinds: &[FaultKind]) {
        self.faults.entry(word).or_default().extend(kinds);
    }

    pub fn list(&mut self, now: u64) -> Result<Vec<Listed>, Fault> {
        self.calls.push("list".to_owned());
        let result = match self.fault("list") {
            Some(fault) => Err(fault),
            None if self.short_list => Ok(Vec::new()),
            None => Ok(self.containers.values().map(|made| self.listed(made)).collect()),
        };
        self.do_late(LateDue::List, now);
        result
    }

    fn listed(&self, made: &Made) -> Listed {
        let (id, phase, tags) = (made.id.clone(), made.phase.clone(), made.tags.clone());
        let shown = made.phase == Phase::Running && !self.list_without_health;
        let health = made.health.filter(|_| shown);
        Listed { id, phase, tags, misnamed: false, health }
    }

    pub fn pull(&mut self, image: &str) -> Result<(), Fault> {
        self.calls.push(format!("pull {image}"));
        let result = self.fault("pull").map_or(Ok(()), Err);
        if result.is_ok() {
            self.missing_images.retain(|missing| missing != image);
        }
        result
    }

    pub fn carry_out(&mut self, op: &Op, now: u64) -> Result<Outcome, Fault> {
        match op {
            Op::Inspect(name) => self.inspect(name, now),
            Op::CheckPaths(declared) => {
                self.calls.push("check".to_owned());
                self.check_paths(declared).map(|()| Outcome::PathsThere)
            }
            Op::Create(new) => self.create(new),
            Op::Start(id, declared) => self.start(id, declared.as_deref(), now),
            Op::Signal(id, signal) => {
                self.calls.push(signal.clone());
                if let Some(fault) = self.fault("signal") {
                    return Err(fault);
                }
                self.signal(id, signal)
            }
            Op::Remove(name) => self.remove(name),
            Op::RemoveNetwork(_) => {
                self.calls.push("remove network".to_owned());
                match self.fault("network") {
                    Some(fault) => Err(fault),
                    None => Ok(Outcome::NetworkRemoved),
                }
            }
        }
    }

    fn inspect(&mut self, name: &str, now: u64) -> Result<Outcome, Fault> {
        self.calls.push("inspect".to_owned());
        if let Some(fault) = self.fault("inspect") {
            return Err(fault);
        }
        if let Some(made) = self.find(name) {
            let mut reading = reading(made);
            if reading.phase.is_live() {
                reading.ports.clone_from(&self.publishes);
            }
            return Ok(Outcome::Found(Box::new(reading)));
        }
        self.do_late(LateDue::Miss, now);
        Ok(Outcome::NotFound)
    }

    fn create(&mut self, new: &NewContainer) -> Result<Outcome, Fault> {
        let image = &new.declared.spec.image;
        self.calls.push(format!("create {image}"));
        self.check_paths(&new.declared)?;
        let mut ports = new.ports_to_check.iter().filter_map(|port| port.host_port);
        if let Some(port) = ports.find(|port| self.taken_ports.contains(port)) {
            return Err(Fault::new(FaultKind::Trouble, "check port", port.to_string(), "taken"));
        }
        if let Some(fault) = self.fault("create") {
            return Err(fault);
        }
        if self.missing_images.contains(image) {
            return Err(Fault::new(FaultKind::NoImage, "create", image.clone(), "no such image"));
        }
        if self.refused_images.contains(image) {
            return Err(Fault::new(FaultKind::Refused, "create", image.clone(), "bad parameter"));
        }
        if self.is_taken(new.name.as_str()) {
            return Err(Fault::new(FaultKind::NameTaken, "create", new.name.as_str(), "in use"));
        }
        self.last += 1;
        let id = ContainerId::new(format!("id-{}", self.last));
        let tags = Tags::read(|label| new.labels.get(label).map(String::as_str)).unwrap();
        let made = Made {
            id: id.clone(),
            tags,
            image: image.clone(),
            phase: Phase::Created,
            started_at_ns: 0,
            exit_code: 0,
            health: new.declared.spec.check().map(|_| Health::Starting),
        };
        if !self.made_is_lost {
            self.containers.insert(new.name.to_string(), made);
        }
        Ok(Outcome::Created(id))
    }

    fn is_taken(&self, name: &str) -> bool {
        let reserved = |late: &Late| match &late.op {
            Op::Create(new) => late.holds_name && new.name.as_str() == name,
            _ => false,
        };
        self.containers.contains_key(name) || self.late.iter().any(reserved)
    }

    fn start(
        &mut self,
        id: &ContainerId,
        declared: Option<&Declared>,
        now: u64,
    ) -> Result<Outcome, Fault> {
        self.calls.push("start".to_owned());
        declared.map_or(Ok(()), |declared| self.check_paths(declared))?;
        if let Some(fault) = self.fault("start") {
            return Err(fault);
        }
        let Some(made) = self.find(id.as_str()) else {
            let kind = FaultKind::NoContainer;
            return Err(Fault::new(kind, "start", id.as_str(), "no such container"));
        };
        if self.starts_nothing || made.phase == Phase::Running {
            return Ok(Outcome::Started(Box::new(reading(made))));
        }
        let crashes = self.crashing_images.contains(&made.image);
        let life = self.mortal_images.get(&made.image).copied();
        self.last += 1;
        let (last, wall_ms) = (self.last, self.wall_ms(now));
        let made = self.find_mut(id.as_str());
        made.phase = Phase::Running;
        made.started_at_ns = wall_ms * 1_000_000 + last;
        made.health = made.health.map(|_| Health::Starting);
        let started = made.started_at_ns;
        self.ends.extend(life.map(|(ms, _)| (now + ms, id.clone(), started)));
        let made = self.find_mut(id.as_str());
        let (mut read, uid) = (reading(made), made.tags.uid.clone());
        if !self.stream_silent {
            self.show(id.clone(), uid.clone(), ContainerAction::Started);
        }
        if crashes || self.fault("dies").is_some() {
            let made = self.find_mut(id.as_str());
            made.phase = Phase::Exited;
            made.exit_code = i32::from(crashes);
            if crashes {
                read = reading(made);
            }
            // Else right after it was looked at; the event overtakes the answer.
            self.show(id.clone(), uid, ContainerAction::Died);
        }
        Ok(Outcome::Started(Box::new(read)))
    }

    /// Every process obeys at once, unless it is stubborn or the fault `deaf` is waiting.
    fn signal(&mut self, id: &ContainerId, signal: &str) -> Result<Outcome, Fault> {
        let kind = match self.find(id.as_str()).map(|made| &made.phase) {
            Some(Phase::Running | Phase::Paused) => {
                let name = self.find(id.as_str()).map(|made| made.tags.key.name.to_string());
                let stubborn = name.is_some_and(|name| self.stubborn.contains(&name.as_str()));
                let obeys = !stubborn || signal == "SIGKILL";
                if obeys && self.fault("deaf").is_none() {
                    let made = self.find_mut(id.as_str());
                    made.phase = Phase::Exited;
                    made.exit_code = 143;
                    let (id, uid) = (made.id.clone(), made.tags.uid.clone());
                    self.show(id, uid, ContainerAction::Died);
                }
                return Ok(Outcome::Signalled);
            }
            Some(_) => FaultKind::Conflict,
            None => FaultKind::NoContainer,
        };
        Err(Fault::new(kind, "signal", id.as_str(), "not running"))
    }

    fn remove(&mut self, name: &str) -> Result<Outcome, Fault> {
        self.calls.push("remove".to_owned());
        if let Some(fault) = self.fault("remove") {
            return Err(fault);
        }
        let id = self.find(name).map(|made| made.id.clone());
        if id.is_some_and(|id| self.unremovable.contains(&id)) {
            return Err(Fault::new(FaultKind::Trouble, "remove", name, "device busy"));
        }
        let key = self.key_of(name);
        key.and_then(|key| self.containers.remove(&key));
        Ok(Outcome::Removed)
    }

    fn check_paths(&self, declared: &Declared) -> Result<(), Fault> {
        let mut paths = declared.spec.host_paths().map(|(path, _)| path);
        match paths.find(|path| self.missing_paths.contains(path)) {
            Some(path) => Err(Fault::new(FaultKind::HostPath, "mount", path, "it is not there")),
            None => Ok(()),
        }
    }

    fn show(&mut self, id: ContainerId, uid: Uid, action: ContainerAction) {
        self.shown.push(ContainerEvent { id, uid, action });
    }

    // --- what comes late -----------------------------------------------------------------------

    /// Nobody waits for an answer any more, and nobody looks.
    pub fn hang_up(&mut self) {
        self.shown.clear();
        self.answers.clear();
        self.late.iter_mut().for_each(|late| late.step = None);
    }

    /// What it took on is not done any more.
    pub fn die(&mut self) {
        let away = || Fault::new(FaultKind::Away, "call", "", "connection reset");
        let steps = self.late.drain(..).filter_map(|late| late.step);
        self.answers.extend(steps.map(|step| Event::StepDone(step, Err(away()))));
    }

    /// When something is to be done that it took on.
    pub fn next_late(&self) -> Option<u64> {
        let times = self.late.iter().filter_map(|late| match late.due {
            LateDue::At(at) => Some(at),
            LateDue::List | LateDue::Miss => None,
        });
        times.chain(self.ends.iter().map(|(at, ..)| *at)).min()
    }

    /// Ends the runs whose time has come.
    pub fn end_mortals(&mut self, now: u64) {
        for (_, id, started) in self.ends.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>()
        {
            let made = self.containers.values_mut().find(|made| made.id == id);
            let Some(made) = made.filter(|m| m.started_at_ns == started && m.phase.is_live())
            else {
                continue;
            };
            made.phase = Phase::Exited;
            made.exit_code = self.mortal_images.get(&made.image).map_or(1, |(_, code)| *code);
            let uid = made.tags.uid.clone();
            self.show(id, uid, ContainerAction::Died);
        }
    }

    /// Does what waited for this, or for a time that has come.
    pub fn do_late(&mut self, due: LateDue, now: u64) {
        let is_due = |late: &Late| match late.due {
            LateDue::At(at) => at <= now,
            other => other == due,
        };
        while let Some(n) = self.late.iter().position(is_due) {
            let late = self.late.remove(n);
            let calls = self.calls.len();
            let result = self.carry_out(&late.op, now);
            self.answers.extend(late.step.map(|step| Event::StepDone(step, result)));
            for call in &mut self.calls[calls..] {
                call.insert_str(0, "late ");
            }
        }
    }

    // --- what is there -------------------------------------------------------------------------

    /// The name of a container that goes by this name or id.
    fn key_of(&self, name: &str) -> Option<String> {
        if self.containers.contains_key(name) {
            return Some(name.to_owned());
        }
        let by_id = self.containers.iter().find(|(_, made)| made.id.as_str() == name);
        by_id.map(|(key, _)| key.clone())
    }

    pub fn find(&self, name: &str) -> Option<&Made> {
        self.containers.get(&self.key_of(name)?)
    }

    pub fn find_mut(&mut self, name: &str) -> &mut Made {
        let key = self.key_of(name).unwrap();
        self.containers.get_mut(&key).unwrap()
    }

    pub fn running(&self) -> usize {
        self.containers.values().filter(|made| made.phase == Phase::Running).count()
    }

    /// Two containers of one workload, or of one key, that both live.
    pub fn twins(&self) -> Option<(&Made, &Made)> {
        let live: Vec<&Made> = self.containers.values().filter(|m| m.phase.is_live()).collect();
        let pairs =
            live.iter().enumerate().flat_map(|(n, a)| live[..n].iter().map(move |b| (*a, *b)));
        pairs.into_iter().find(|(a, b)| a.tags.key == b.tags.key || a.tags.uid == b.tags.uid)
    }
}

/// A container of somebody's that `tags` speak of.
pub fn made(id: &str, tags: Tags, phase: Phase) -> Made {
    let started_at_ns = u64::from(phase == Phase::Running);
    let image = "image:1".to_owned();
    let id = ContainerId::new(id);
    Made { id, tags, image, phase, started_at_ns, exit_code: 0, health: None }
}

pub fn reading(made: &Made) -> Reading {
    Reading {
        id: made.id.clone(),
        phase: made.phase.clone(),
        tags: Some(made.tags.clone()),
        started_at_ns: made.started_at_ns,
        exit_code: made.exit_code,
        oom_killed: false,
        error: String::new(),
        pid: u32::from(made.phase == Phase::Running),
        ip: None,
        ports: Vec::new(),
        image_id: String::new(),
        stop_signal: None,
        verdict: made.health.map(verdict),
    }
}

fn verdict(health: Health) -> Verdict {
    let failed = health == Health::Unhealthy;
    Verdict {
        health,
        words: if failed { "exitCode=1 output=bad".to_owned() } else { String::new() },
    }
}
