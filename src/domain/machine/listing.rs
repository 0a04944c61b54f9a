//! The full compare: every workload is held against one listing of the engine's containers.

use std::iter::successors;

use super::Machine;
use super::commits::Purpose;
use super::starts::Turn;
use crate::domain::effect::{Level, ListId, Write};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::gather::Gather;
use crate::domain::health_check::{Health, Verdict};
use crate::domain::id_map::IdMap;
use crate::domain::lifecycle::{Context, Slot, Workload};
use crate::domain::names::{BootId, ContainerId, InstanceName, SpecHash, Uid};
use crate::domain::observed::{Listed, Phase, Reading, Seen, Tags};
use crate::domain::record::{Desired, Instance, Run};
use crate::domain::spec_hash::is_comparable;
use crate::domain::time::Span;
use crate::limits;

/// The lines of a listing, by the workload of this store that each belongs to. Nothing is copied:
/// this is done for every workload once a minute.
struct Mine<'a> {
    items: &'a [Listed],
    /// The first line of each workload.
    first: IdMap<&'a Uid, usize>,
    /// For each line the next one of the same workload.
    next: Vec<Option<usize>>,
    /// Lines that no record knows.
    nobodys: Vec<&'a Listed>,
}

impl<'a> Mine<'a> {
    /// Assigns each line to its workload; `is_ours` is asked about containers that are not known.
    fn sort_out(
        items: &'a [Listed],
        by_container: &'a IdMap<ContainerId, Uid>,
        is_ours: impl Fn(&Tags) -> bool,
    ) -> Self {
        let first = IdMap::with_capacity_and_hasher(items.len(), Default::default());
        let mut mine = Self { items, first, next: vec![None; items.len()], nobodys: Vec::new() };
        // From the end, so that the lines of each workload keep their order.
        for (n, item) in items.iter().enumerate().rev() {
            // Labels count only on a container that has the name they say: images that are taken
            // from containers carry them along.
            let by_label = || is_ours(&item.tags).then_some(&item.tags.uid);
            match by_container.get(&item.id).or_else(|| by_label().filter(|_| !item.misnamed)) {
                Some(uid) => mine.next[n] = mine.first.insert(uid, n),
                None if item.misnamed => {}
                None => mine.nobodys.push(item),
            }
        }
        mine.nobodys.reverse();
        mine
    }

    fn of(&self, uid: &Uid) -> impl Iterator<Item = &'a Listed> {
        let numbers = successors(self.first.get(uid).copied(), |&n| self.next[n]);
        numbers.map(|n| &self.items[n])
    }
}

/// What holding a workload against its lines came to.
#[derive(PartialEq, Eq)]
enum Compared {
    Same,
    Changed,
    /// There are lines that its record does not know.
    Strays,
}

impl Machine {
    pub(super) fn on_listing(&mut self, list: ListId, result: Result<Vec<Listed>, Fault>) {
        let Some((id, sent_at)) = self.engine.listing else { return };
        if id != list {
            return;
        }
        self.engine.listing = None;
        let items = match result {
            Ok(items) => items,
            Err(fault) => return self.on_listing_failed(&fault),
        };
        self.engine.next_list = self.next_list_after(false);
        // A stream that comes and goes is one trouble and one line, until it holds.
        let held = self.now.tick.since(self.engine.stream_since) >= Span(limits::STABLE_MS);
        let trusted = self.engine.stream_up && !self.engine.stream_doubted;
        if trusted && held && self.conditions.remove("eventStream").is_some() {
            self.log(Level::Info, "the event stream holds: the engine is not polled any more");
        }
        self.engine.listed = true;
        self.meet(&items);
        let gap = std::mem::take(&mut self.engine.gap);
        self.compare_all(&items, sent_at, gap);
        self.engine_back();
        self.settle_wholeness();
    }

    /// A failed listing says nothing about any container.
    fn on_listing_failed(&mut self, fault: &Fault) {
        self.engine.next_list = self.next_list_after(true);
        if !self.engine.stream_up && fault.kind == FaultKind::Away {
            self.engine.next_list = None;
        }
        self.engine_away(fault);
    }

    fn compare_all(&mut self, items: &[Listed], sent_at: u64, gap: bool) {
        let is_ours = |t: &Tags| t.store == self.store && self.workloads.contains_key(&t.uid);
        let mine = Mine::sort_out(items, &self.by_container, is_ours);
        // What another living agent keeps is no business of this one.
        let neighbours = &self.engine.neighbours;
        let is_left = |t: &Tags| t.node == self.node && !neighbours.contains(&t.store);
        let unclaimed = mine.nobodys.iter().filter(|line| is_left(&line.tags));
        let unclaimed = unclaimed.map(|&line| (line.tags.key.clone(), line.clone())).gather();
        let context = Context { now: self.now, boot: &self.boot };
        let mut lines = Vec::new();
        let mut with_strays: Vec<Uid> = Vec::new();
        for (uid, w) in &mut self.workloads {
            lines.clear();
            lines.extend(mine.of(uid));
            let compared = compare(w, &lines, sent_at, gap, context);
            if w.unlisted {
                self.engine.next_list = Some(self.now.tick);
            }
            if compared != Compared::Same {
                self.due.insert(Turn::of(w));
            }
            if compared == Compared::Strays {
                with_strays.push(uid.clone());
            }
        }
        // One of another node is that of an agent with a copy of this store.
        let is_own = |t: &Tags| t.store == self.store && t.node == self.node;
        let orphans = mine.nobodys.iter().filter(|line| is_own(&line.tags));
        let orphans: Vec<Listed> = orphans.map(|&line| line.clone()).collect();
        // In an order of their own, since each may be a line of the log.
        with_strays.sort();
        for uid in with_strays {
            self.note_strays(&uid);
        }
        let before = std::mem::replace(&mut self.engine.unclaimed, unclaimed);
        for key in before.keys() {
            // A workload may wait for it to be out of the way.
            if let Some(uid) = self.by_key.get(key).cloned() {
                self.mark(&uid);
            }
        }
        self.leftovers.set_orphans(orphans);
    }

    /// A new store is whole once no container of another store is left for its node.
    fn settle_wholeness(&mut self) {
        if self.store_state.whole || !self.engine.unclaimed.is_empty() {
            return;
        }
        self.store_state.whole = true;
        self.persist(Purpose::Whole, false, vec![Write::MarkWhole]);
    }

    /// Containers of a workload that its record does not know were listed. While the current one is
    /// in doubt, they may be its twins or all there is.
    fn note_strays(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get(uid) else { return };
        for stray in &w.strays {
            self.by_container.insert(stray.id.clone(), uid.clone());
        }
        if !w.must_look(Slot::Current) {
            self.take_strays(uid);
        }
    }

    /// The current container is in doubt no longer.
    pub(super) fn sort_out_twins(&mut self, uid: &Uid, slot: Slot) {
        if slot == Slot::Current && self.workloads.get(uid).is_some_and(|w| !w.strays.is_empty()) {
            self.take_strays(uid);
        }
    }

    /// Of twins the one that matches is kept: the best of them stands for the workload if nothing
    /// better does (a rebuilt store, or one that could not write). The rest goes.
    fn take_strays(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let mut strays = std::mem::take(&mut w.strays);
        strays.retain(|line| !self.is_loose(&line.tags.instance));
        let Some(w) = self.workloads.get_mut(uid) else { return };
        strays.sort_by_key(|line| {
            (is_wanted(w, &line.tags.spec_hash), line.phase == Phase::Running, line.tags.generation)
        });
        // A name that was only reserved stands for nothing: what runs is not given up for it.
        let is_made = |next: &Instance| next.container.is_some();
        let usable =
            !w.record.next.as_ref().is_some_and(is_made) && w.record.desired != Desired::Deleted;
        if let Some(best) = strays.pop_if(|best| usable && is_better(w, best)) {
            if w.needs_update() && w.seen != Seen::Absent {
                // The successor in an update that was not recorded: it has to prove itself first.
                w.discard_slot(Slot::Next);
                w.record.next = Some(instance_of(&best));
                w.set_seen(Slot::Next, Seen::Unknown);
            } else {
                // Where the one it had ended with its engine, this one did so too.
                let exit = w.record.last_exit.as_ref();
                w.gap |= exit.is_some_and(|exit| exit.interrupted && exit.code.is_none());
                w.discard_slot(Slot::Current);
                w.record.current = Some(instance_of(&best));
                w.record.last_exit = None;
            }
            w.dirty = true;
        }
        let names: Vec<String> = strays.iter().map(|l| l.tags.instance.to_string()).collect();
        for twin in strays {
            w.discard(instance_of(&twin), Seen::Unknown);
        }
        if !names.is_empty() {
            let key = w.record.declared.key.clone();
            let text = format!("{key}: removing containers beside the one it has: {names:?}");
            self.log(Level::Warn, text);
        }
    }

    /// How many containers of another store wait for the workload that takes them over.
    pub(super) fn waiting_for_owner(&self) -> usize {
        if self.store_state.whole { 0 } else { self.engine.unclaimed.len() }
    }

    /// With a new store, a workload of the same key and content takes over what another store made;
    /// of `any` content when an operator says so. What it took over.
    pub(super) fn adopt(&mut self, uid: &Uid, any: bool) -> Option<InstanceName> {
        if self.store_state.whole || self.engine.unclaimed.is_empty() {
            return None;
        }
        let w = self.workloads.get_mut(uid)?;
        let free = w.record.current.is_none() && w.record.next.is_none();
        if !free || w.record.desired == Desired::Deleted || w.held {
            return None;
        }
        let key = &w.record.declared.key;
        let found = self.engine.unclaimed.get(key)?;
        let hash = &found.tags.spec_hash;
        if !any && (*hash != w.wanted_hash || !is_comparable(hash)) {
            return None;
        }
        let (key, mut instance) = (key.clone(), instance_of(found));
        if any {
            // Whoever says so wants what is declared here, whatever the other store counted.
            instance.generation = instance.generation.min(w.record.generation);
        }
        let name = instance.name.clone();
        self.by_container.insert(found.id.clone(), uid.clone());
        self.engine.unclaimed.remove(&key);
        let text = format!("{key}: adopting {} of another store", instance.name);
        w.record.current = Some(instance);
        w.set_seen(Slot::Current, Seen::Unknown);
        w.hold = None;
        w.dirty = true;
        self.log(Level::Info, text);
        Some(name)
    }
}

/// Holds a workload against its lines.
fn compare(
    w: &mut Workload,
    lines: &[&Listed],
    sent_at: u64,
    gap: bool,
    context: Context,
) -> Compared {
    if w.is_elsewhere() {
        // Its containers are on another engine.
        return Compared::Same;
    }
    if w.touched > sent_at || w.step.is_some() {
        // The listing may be older than what happened since; a look will be younger. Where no
        // container is recorded to look at, only another listing is.
        let is_made = |instance: &Instance| instance.container.is_some();
        w.unlisted = w.step.is_none() && !w.record.instances().any(is_made);
        w.gap |= gap;
        for slot in [Slot::Current, Slot::Next, Slot::Previous] {
            if w.step.is_none() && w.instance(slot).is_some() {
                w.mark_stale(slot);
            }
        }
        return Compared::Changed;
    }
    let mut changed = std::mem::take(&mut w.unlisted);
    for slot in [Slot::Current, Slot::Next, Slot::Previous, Slot::Discard] {
        let Some(instance) = w.instance(slot) else { continue };
        let line = lines.iter().copied().find(|line| is_line_of(line, instance));
        changed |= compare_slot(w, slot, line, gap, context);
    }
    w.strays = lines.iter().filter(|line| !is_known(w, line)).copied().cloned().collect();
    if !w.strays.is_empty() {
        Compared::Strays
    } else if changed {
        Compared::Changed
    } else {
        Compared::Same
    }
}

pub(super) fn is_line_of(line: &Listed, instance: &Instance) -> bool {
    match &instance.container {
        Some(id) => *id == line.id,
        None => line.tags.instance == instance.name,
    }
}

fn is_known(w: &Workload, line: &Listed) -> bool {
    w.record.instances().any(|instance| is_line_of(line, instance))
}

/// Made from what is declared. What an update failed with is not wanted, declared or not.
fn is_wanted(w: &Workload, hash: &SpecHash) -> bool {
    *hash == w.wanted_hash && !w.update_rests()
}

/// Whether `stray` rather than the current container should stand for the workload.
fn is_better(w: &Workload, stray: &Listed) -> bool {
    let Some(current) = &w.record.current else { return true };
    if w.seen == Seen::Absent {
        return true;
    }
    let runs = w.seen.reading().is_some_and(|reading| reading.phase == Phase::Running);
    let stray_is = (is_wanted(w, &stray.tags.spec_hash), stray.phase == Phase::Running);
    stray_is > (is_wanted(w, &current.spec_hash), runs)
}

fn instance_of(line: &Listed) -> Instance {
    Instance {
        name: line.tags.instance.clone(),
        container: Some(line.id.clone()),
        generation: line.tags.generation,
        rebuild: 0,
        spec_hash: line.tags.spec_hash.clone(),
        run: None,
        proved: false,
    }
}

/// Holds one container against its line. Whether something has to be decided.
fn compare_slot(
    w: &mut Workload,
    slot: Slot,
    line: Option<&Listed>,
    gap: bool,
    context: Context,
) -> bool {
    let Some(line) = line else {
        if *w.seen(slot) == Seen::Absent {
            return false;
        }
        // Not in the listing is not absent yet: an entry that cannot be read is left out of it. A
        // look is the engine's word for it.
        w.gap |= gap && slot.may_run();
        w.mark_stale(slot);
        return true;
    };
    let seen_running = w.seen(slot).reading().map(|r| r.phase == Phase::Running);
    let run = || w.instance(slot).and_then(|i| i.run.as_ref());
    match (seen_running, line.phase == Phase::Running) {
        (Some(true), true) => look_for_verdict(w, slot, line),
        (Some(false), false) => {
            let same = w.seen(slot).reading().is_some_and(|r| r.phase == line.phase);
            if !same {
                w.mark_stale(slot);
            }
            !same
        }
        (None, true) if slot == Slot::Current && is_recorded(run(), context.boot) => {
            // It runs as recorded: believed without a look, so that a restarted agent asks nothing
            // about what did not change.
            let reading = run().map(|run| reading_of(line, run));
            if let Some(reading) = reading {
                w.read(slot, reading, context);
                look_for_verdict(w, slot, line);
            }
            true
        }
        (_, runs) => {
            w.gap |= gap && !runs && slot.may_run();
            w.mark_stale(slot);
            true
        }
    }
}

/// A listing that hints at another health than was seen last is reason to look: an event was lost,
/// or came while no agent was there. Whether it is.
fn look_for_verdict(w: &mut Workload, slot: Slot, line: &Listed) -> bool {
    let verdict = w.seen(slot).reading().and_then(|reading| reading.verdict.as_ref());
    // One that is unhealthy by its row has said more than the row keeps.
    let known = verdict.filter(|v| v.health != Health::Unhealthy || !v.words.is_empty());
    let differs = known.map(|verdict| verdict.health) != line.health && slot.may_run();
    if differs {
        w.mark_stale(slot);
    }
    differs
}

/// A run that was last seen running, in this boot. One that was seen ended is over: what runs now
/// is another one, of which nothing is known.
fn is_recorded(run: Option<&Run>, boot: &BootId) -> bool {
    run.is_some_and(|run| run.since.boot == *boot && run.pid != 0)
}

fn reading_of(line: &Listed, run: &Run) -> Reading {
    let verdict = run.health.as_ref();
    Reading {
        id: line.id.clone(),
        phase: line.phase.clone(),
        tags: Some(line.tags.clone()),
        started_at_ns: run.started_at_ns,
        exit_code: 0,
        oom_killed: false,
        error: String::new(),
        pid: run.pid,
        ip: run.ip.clone(),
        ports: run.ports.clone(),
        image_id: run.image_id.clone(),
        stop_signal: run.stop_signal.clone(),
        verdict: verdict.map(|health| Verdict { health: health.health, words: String::new() }),
    }
}
