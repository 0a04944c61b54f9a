//! Carries out what was decided for a workload: changes its record and sends at most one step.

use std::collections::BTreeMap;

use super::Machine;
use super::commits::Purpose;
use super::drain::Drain;
use super::journal::{Ahead, Rider};
use crate::domain::declared::{Declared, Network};
use crate::domain::effect::{AppNetwork, Effect, NewContainer, Op, Step, Write};
use crate::domain::gather::Gather;
use crate::domain::intent::Intent;
use crate::domain::lifecycle::{Context, Flight, FlightKind, Gate, Hold, Slot, Workload};
use crate::domain::names::{InstanceName, Uid};
use crate::domain::observed::{Seen, label};
use crate::domain::plan::Decision;
use crate::domain::record::{Instance, OwnStop, Record};
use crate::domain::slow::Slow;
use crate::domain::spec_hash::{is_comparable, spec_hash};
use crate::domain::view::TaskState;
use crate::limits;

/// Sent when neither the manifest nor the image names another, as engines do.
pub(super) const STOP_SIGNAL: &str = "SIGTERM";

impl Machine {
    pub(super) fn carry_out(&mut self, uid: &Uid, decision: Decision) {
        match decision {
            Decision::Nothing | Decision::Held => {}
            Decision::Inspect(slot) => self.inspect(uid, slot),
            Decision::Hold(hold) => self.hold(uid, hold),
            Decision::Pull => self.begin_pull(uid),
            Decision::Create => self.create(uid),
            Decision::Start(slot) => self.start(uid, slot),
            Decision::Stop(slot @ (Slot::Discard | Slot::Previous)) => self.stop_beside(uid, slot),
            Decision::Stop(slot) => self.stop(uid, slot),
            Decision::Kill(slot) => self.kill(uid, slot),
            Decision::OperatorKill => self.operator_kill(uid),
            Decision::Remove => self.remove(uid),
            Decision::Discard(slot) => self.change(uid, |w| {
                if slot == Slot::Current && w.needs_update() {
                    // What the old one waited for is not what the new one waits for.
                    w.record.wait = None;
                }
                w.discard_slot(slot);
                w.promote_made();
            }),
            Decision::Returned => {
                let context = Context { now: self.now, boot: &self.boot };
                if let Some(w) = self.workloads.get_mut(uid) {
                    w.take_return(context);
                }
            }
            Decision::GoBack => self.change(uid, Workload::go_back),
            Decision::Recreate => self.change(uid, |w| {
                w.record.current = None;
                w.set_seen(Slot::Current, Seen::Unknown);
                w.dirty = true;
            }),
            Decision::RestartDone => self.change(uid, |w| {
                w.record.restarts_done = w.record.restarts_asked;
                w.dirty = true;
            }),
            Decision::RemoveNetwork => self.remove_network(uid),
            Decision::Forget => self.forget(uid),
        }
    }

    fn change(&mut self, uid: &Uid, change: impl FnOnce(&mut Workload)) {
        if let Some(w) = self.workloads.get_mut(uid) {
            change(w);
        }
    }

    fn hold(&mut self, uid: &Uid, hold: Hold) {
        self.change(uid, |w| w.hold = Some(hold));
    }

    /// Sends a step, once what has to come ahead of it is durable.
    fn send(&mut self, uid: &Uid, kind: FlightKind, op: Op, ahead: Ahead) {
        let id = self.next_step();
        self.order += 1;
        let order = self.order;
        let gate = match (&ahead, kind) {
            (Ahead::Nothing, _) => Gate::Open,
            (_, FlightKind::Start(_)) => Gate::Until(self.later(limits::START_GATE_MS)),
            _ => Gate::Shut,
        };
        let Some(w) = self.workloads.get_mut(uid) else { return };
        w.step = Some(Flight { step: id, kind, gate });
        w.touched = order;
        if !matches!(w.hold, Some(Hold::HostPath(_))) {
            w.hold = None;
        }
        if w.slow != Slow::No {
            self.slow_step = Some(id);
        }
        let purpose = Purpose::Step(uid.clone(), id);
        let after = match ahead {
            Ahead::Nothing => None,
            Ahead::Row => self.persist_row(uid, purpose, None),
            Ahead::Intent(intent) => self.persist_row(uid, purpose, Some(intent)),
        };
        self.steps.insert(id, uid.clone());
        if matches!(kind, FlightKind::Start(_)) {
            self.starts.begin(id);
        }
        self.start_tasks(uid);
        self.out.push(Effect::Run(Step { id, after, op }));
    }

    fn inspect(&mut self, uid: &Uid, slot: Slot) {
        let Some(instance) = self.workloads.get(uid).and_then(|w| w.instance(slot)) else { return };
        let op = Op::Inspect(name_or_id(instance));
        let name = instance.name.clone();
        self.begin_replay(&name);
        self.send(uid, FlightKind::Inspect(slot), op, Ahead::Nothing);
    }

    fn create(&mut self, uid: &Uid) {
        let boot = self.boot.clone();
        let Some(w) = self.workloads.get_mut(uid) else { return };
        if matches!(w.hold, Some(Hold::HostPath(_))) {
            // Looked for every few seconds, maybe for weeks: nothing is written for that.
            let op = Op::CheckPaths(w.record.declared.clone());
            return self.send(uid, FlightKind::CheckPaths, op, Ahead::Nothing);
        }
        if w.record.next.is_none() {
            w.record.next = Some(Instance {
                name: self.suffixes.instance(&w.record.declared.key.name),
                container: None,
                generation: w.record.generation,
                rebuild: w.record.rebuilds_asked,
                spec_hash: w.wanted_hash.clone(),
                run: None,
                proved: false,
            });
            // Drawn just now, so nothing can be there.
            w.set_seen(Slot::Next, Seen::Absent);
            w.dirty = true;
        }
        let Some(next) = &mut w.record.next else { return };
        w.dirty |= w.record.boot.as_ref() != Some(&boot) || next.generation != w.record.generation;
        w.record.boot = Some(boot);
        next.generation = w.record.generation;
        let name = next.name.clone();
        // The name was done with, and is not any more.
        w.settled.retain(|settled| *settled != name);
        let dirty = w.dirty;
        let ports_to_check = w.ports_to_check();
        let record = w.record.clone();
        // With a store that fails, its labels alone make the container findable.
        let ahead = match (self.store_writes(), self.journal.is_about(&name)) {
            (false, _) => Ahead::Nothing,
            (true, false) => {
                Ahead::Intent(Intent::Create { uid: uid.clone(), instance: name.clone() })
            }
            (true, true) if dirty => Ahead::Row,
            (true, true) => Ahead::Nothing,
        };
        let new = NewContainer { ports_to_check, ..self.new_container(&record, name) };
        let op = Op::Create(Box::new(new));
        self.send(uid, FlightKind::Create, op, ahead);
    }

    /// A full disk must not keep a declared workload from running: what it cannot record is done
    /// all the same, unless it would end something.
    pub(super) fn store_writes(&self) -> bool {
        !self.conditions.contains_key("storeFailing")
    }

    fn start(&mut self, uid: &Uid, slot: Slot) {
        let boot = self.boot.clone();
        // One start waits for a store that stalls; those after it add nothing to its queue.
        let writes = self.store_writes() && !self.row_hangs(uid);
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some(instance) = w.instance(slot) else { return };
        let (Some(id), ran) = (instance.container.clone(), instance.run.is_some()) else { return };
        // One that an update failed to replace was made from something else.
        let hash = &instance.spec_hash;
        let other = is_comparable(hash) && *hash != w.wanted_hash;
        let made_from = (!other).then(|| w.record.declared.clone());
        if w.record.boot.as_ref() != Some(&boot) {
            w.record.boot = Some(boot);
            w.dirty = true;
        }
        w.start_shown = false;
        w.witnessed = Some(id.clone());
        // The end of its last run is recorded first, so that an agent that comes back does not take
        // the new run for that one.
        let ahead = if w.dirty && ran && writes { Ahead::Row } else { Ahead::Nothing };
        let op = Op::Start(id, made_from);
        self.send(uid, FlightKind::Start(slot), op, ahead);
    }

    /// A stop is recorded before it is sent, so that its exit is never taken for a crash.
    fn stop(&mut self, uid: &Uid, slot: Slot) {
        let now = self.now.tick;
        let drain = self.drain.as_ref();
        let context = Context { now: self.now, boot: &self.boot };
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let unhealthy = drain.is_none() && slot == Slot::Current && w.stop_is_for_health();
        if unhealthy {
            w.note_why_stopped(context);
        }
        let Some(reading) = w.seen(slot).reading() else { return };
        let id = reading.id.clone();
        let started_at_ns = reading.started_at_ns;
        let own_stop = OwnStop { container: id.clone(), started_at_ns, unhealthy };
        let declared = &w.record.declared.spec.stop;
        let signal = declared.signal.clone().or_else(|| reading.stop_signal.clone());
        let late = drain.is_some_and(Drain::is_late).then(|| "SIGKILL".to_owned());
        let signal = late.or(signal).unwrap_or_else(|| STOP_SIGNAL.to_owned());
        let grace = drain.map_or(declared.grace, |drain| drain.grace(declared.grace));
        w.stop_deadline = Some(now + grace);
        w.stop_is_repeated = w.stop_is_recorded(slot);
        w.record.own_stop = Some(own_stop);
        self.send(uid, FlightKind::Signal(slot), Op::Signal(id, signal), Ahead::Row);
    }

    /// Stops what runs beside the container that stands for the workload.
    fn stop_beside(&mut self, uid: &Uid, slot: Slot) {
        let now = self.now.tick;
        let drain = self.drain.as_ref();
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some(reading) = w.seen(slot).reading() else { return };
        let id = reading.id.clone();
        let late = drain.is_some_and(Drain::is_late).then(|| "SIGKILL".to_owned());
        let signal = late.or_else(|| reading.stop_signal.clone());
        let signal = signal.unwrap_or_else(|| STOP_SIGNAL.to_owned());
        let grace = w.record.declared.spec.stop.grace;
        let deadline = Some(now + drain.map_or(grace, |drain| drain.grace(grace)));
        match slot {
            Slot::Previous => w.previous_deadline = deadline,
            _ => w.discard_deadline = deadline,
        }
        self.send(uid, FlightKind::Signal(slot), Op::Signal(id, signal), Ahead::Nothing);
    }

    fn kill(&mut self, uid: &Uid, slot: Slot) {
        let again = self.later(limits::KILL_AGAIN_MS);
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some(id) = w.seen(slot).reading().map(|r| r.id.clone()) else { return };
        match slot {
            Slot::Previous => w.previous_deadline = Some(again),
            _ => {
                w.stop_deadline = Some(again);
                w.killed.clone_from(&w.record.own_stop);
            }
        }
        let op = Op::Signal(id, "SIGKILL".to_owned());
        self.send(uid, FlightKind::Signal(slot), op, Ahead::Nothing);
    }

    fn operator_kill(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some((task, signal)) = w.kill.take() else { return };
        let running = w.seen.reading().filter(|r| r.phase.is_live());
        match running.map(|r| r.id.clone()) {
            Some(id) => {
                let op = Op::Signal(id, signal);
                self.send(uid, FlightKind::Kill(task), op, Ahead::Nothing);
            }
            None => {
                let text = format!("{} does not run", w.record.declared.key);
                self.end_task(task, TaskState::Failed, text);
            }
        }
    }

    fn remove(&mut self, uid: &Uid) {
        let (writes, later) = (self.store_writes(), self.later(limits::ROW_WRITE_MS));
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some(instance) = w.record.discards.first().cloned() else { return };
        if !writes && !self.journal.is_about(&instance.name) {
            // Tried again without holding up what the workload needs else. Whether the store writes
            // again shows in a write.
            w.removal_rests_until = Some(later);
            w.dirty = true;
            return;
        }
        w.settled.retain(|settled| *settled != instance.name);
        let replaced_by = w.replaced_by(&instance).cloned();
        let (name, container) = (instance.name.clone(), instance.container.clone());
        let ahead = match replaced_by {
            _ if self.journal.is_about(&name) => Ahead::Nothing,
            Some(new) => {
                Ahead::Intent(Intent::Replace { uid: uid.clone(), old: name, container, new })
            }
            None => Ahead::Intent(Intent::Remove { uid: uid.clone(), instance: name, container }),
        };
        self.begin_replay(&instance.name);
        self.send(uid, FlightKind::Remove, Op::Remove(name_or_id(&instance)), ahead);
    }

    fn remove_network(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get(uid) else { return };
        let application = w.record.declared.key.application.clone();
        let name = self.network_name(application.as_str());
        self.closing.insert(application);
        let op = Op::RemoveNetwork(name);
        self.send(uid, FlightKind::RemoveNetwork, op, Ahead::Nothing);
    }

    fn forget(&mut self, uid: &Uid) {
        let mut writes = vec![Write::Delete(uid.clone())];
        let settled = self.settlements(uid, &mut writes);
        let commit = self.persist(Purpose::Forget(uid.clone()), true, writes);
        self.ride(commit, Rider::settling(settled));
        let step = self.next_step();
        self.store_state.dirty.remove(uid);
        self.change(uid, |w| {
            w.dirty = false;
            let kind = FlightKind::Forget(commit);
            w.step = Some(Flight { step, kind, gate: Gate::Open });
        });
    }

    // --- what a container is made from ---------------------------------------------------------

    fn network_name(&self, application: &str) -> String {
        let store = self.store.as_str();
        format!("bargee-{}-{application}", store.get(..8).unwrap_or(store))
    }

    fn new_container(&self, record: &Record, name: InstanceName) -> NewContainer {
        let declared = &record.declared;
        let key = &declared.key;
        let network = (declared.spec.network == Network::Bridge).then(|| AppNetwork {
            name: self.network_name(key.application.as_str()),
            labels: [
                (label::STORE.to_owned(), self.store.to_string()),
                (label::NODE.to_owned(), self.node.clone()),
                (label::APPLICATION.to_owned(), key.application.to_string()),
            ]
            .into_iter()
            .gather(),
            aliases: vec![key.name.to_string(), format!("{}.{}", key.name, key.application)],
        });
        NewContainer {
            labels: self.labels(record, &name),
            env: self.environment(record, declared),
            name,
            declared: declared.clone(),
            network,
            volume_prefix: format!("bargee-{}.", key.application),
            ports_to_check: Vec::new(),
        }
    }

    fn labels(&self, record: &Record, name: &InstanceName) -> BTreeMap<String, String> {
        let key = &record.declared.key;
        let hash = spec_hash(&record.declared);
        let mut labels = record.declared.labels.clone();
        labels.extend(
            [
                (label::UID, record.uid.to_string()),
                (label::APPLICATION, key.application.to_string()),
                (label::NAME, key.name.to_string()),
                (label::INSTANCE, name.to_string()),
                (label::GENERATION, record.generation.to_string()),
                (label::SPEC_HASH, hash.to_string()),
                (label::STORE, self.store.to_string()),
                (label::NODE, self.node.clone()),
                (label::SOURCE, record.source.as_str().to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        labels
    }

    fn environment(&self, record: &Record, declared: &Declared) -> BTreeMap<String, String> {
        let key = &declared.key;
        let mut env = declared.spec.env.clone();
        env.extend(
            [
                ("BARGEE_UID", record.uid.to_string()),
                ("BARGEE_NAME", key.name.to_string()),
                ("BARGEE_APPLICATION", key.application.to_string()),
                ("BARGEE_NODE", self.node.clone()),
                ("BARGEE_SOURCE", record.source.as_str().to_owned()),
                ("BARGEE_ENGINE", self.engine_name.to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        env
    }
}

fn name_or_id(instance: &Instance) -> String {
    instance.container.as_ref().map_or_else(|| instance.name.to_string(), ToString::to_string)
}
