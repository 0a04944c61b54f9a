//! What is to be done next for one workload: wanted, seen and asked-for give at most one step.
//!
//! Nothing here changes anything. An unchanged workload gives [`Decision::Nothing`].

use super::drain;
use super::leaving::Leaving;
use super::lifecycle::{Context, Gate, Hold, Slot, Workload};
use super::observed::{Phase, Seen};
use super::record::Desired;
use super::time::Tick;

/// What the rest of the device allows this workload at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Clocks and boot.
    pub context: Context<'a>,
    /// The engine answers, and one listing was read since it came back.
    pub engine_ready: bool,
    /// The workload that held the key before is still being removed.
    pub predecessor: bool,
    /// The network of the application is being removed.
    pub network_closing: bool,
    /// A container of another store holds the key: its name.
    pub claimed_by: Option<&'a str>,
    /// No other workload needs the network of the application.
    pub last_of_application: bool,
    /// What the agent does at the moment.
    pub mode: Mode,
}

/// What the agent does at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It keeps workloads as they are declared.
    Reconciling,
    /// Reconciling is held: it looks, and does nothing.
    Quiesced,
    /// It stops its workloads before it ends. Whether it is the turn of this one.
    Draining(bool),
}

/// The next step, or a change of the record that needs no step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Nothing to do until something happens or a deadline passes.
    Nothing,
    /// Something to do, and reconciling is held.
    Held,
    /// Look at the container.
    Inspect(Slot),
    /// Wait for this, and look again when it may be over.
    Hold(Hold),
    /// Ask the registry.
    Pull,
    /// Reserve a name and create a container under it, or create under the name reserved before.
    Create,
    /// Start the container.
    Start(Slot),
    /// Send the stop signal, recorded first.
    Stop(Slot),
    /// Send SIGKILL: the grace is over.
    Kill(Slot),
    /// Send what an operator asked for.
    OperatorKill,
    /// Remove the first of the discards.
    Remove,
    /// The container in the slot is to go: superseded, half removed, or its workload is.
    Discard(Slot),
    /// The previous container is the one that is wanted now.
    GoBack,
    /// It is the one that runs: an agent that died had returned to it.
    Returned,
    /// The container is gone and is to be made again.
    Recreate,
    /// A restart that was asked for has nothing to stop.
    RestartDone,
    /// Remove the network of the application.
    RemoveNetwork,
    /// Delete the row.
    Forget,
}

/// Decides. The caller carries it out and asks again until there is nothing.
pub fn plan(w: &Workload, s: &Surroundings) -> Decision {
    let now = s.context.now.tick;
    let resting = w.retry_at.is_some_and(|at| at > now);
    if w.step.is_some() || w.held || w.unlisted || !s.engine_ready || resting {
        return Decision::Nothing;
    }
    if w.is_elsewhere() {
        // A signal reaches nothing, and is told so.
        return if w.kill.is_some() { Decision::OperatorKill } else { Decision::Nothing };
    }
    match s.mode {
        Mode::Reconciling => decide(w, s),
        Mode::Quiesced => held(w, decide(w, s)),
        Mode::Draining(turn) => drain::plan(w, turn, now),
    }
}

/// The one gate of a quiesce. Looks go on, those too that what is held would have come before.
fn held(w: &Workload, decision: Decision) -> Decision {
    if matches!(decision, Decision::Nothing | Decision::Inspect(_) | Decision::Hold(_)) {
        return decision;
    }
    let slots = [Slot::Current, Slot::Next, Slot::Previous, Slot::Discard];
    look(w, &slots).unwrap_or(Decision::Held)
}

/// The look at the first of `slots` that needs one.
pub(super) fn look(w: &Workload, slots: &[Slot]) -> Option<Decision> {
    slots.iter().find(|&&slot| w.must_look(slot)).map(|&slot| Decision::Inspect(slot))
}

fn decide(w: &Workload, s: &Surroundings) -> Decision {
    let now = s.context.now.tick;
    if w.kill.is_some() && !w.must_look(Slot::Current) {
        return Decision::OperatorKill;
    }
    // A discard that may live comes first: its successor waits for it. The rest of the discards
    // goes when there is nothing more urgent.
    let discard = plan_discard(w, now);
    if discard != Decision::Nothing && is_urgent(w) {
        return discard;
    }
    if let Some(look) = look(w, &[Slot::Current, Slot::Next, Slot::Previous]) {
        return look;
    }
    if let Some(decision) = plan_previous(w, now) {
        return decision;
    }
    let decision = match w.record.desired {
        Desired::Deleted => plan_removal(w, s),
        Desired::Stopped => plan_stopped(w, now),
        Desired::Running => plan_running(w, s),
    };
    if decision == Decision::Nothing { discard } else { decision }
}

/// A discard that may live, or whose process is gone while the engine may still hold its ports. An
/// engine that cannot even remove it holds up nobody for longer than one try.
fn is_urgent(w: &Workload) -> bool {
    let gone = w.discard_seen.reading().is_some_and(|r| r.phase == Phase::Gone);
    let has_ports = !w.record.declared.spec.ports.is_empty();
    let holds_ports = gone && has_ports && w.discards_failed == 0;
    w.must_look(Slot::Discard) || w.may_live(Slot::Discard) || holds_ports
}

pub(super) fn plan_discard(w: &Workload, now: Tick) -> Decision {
    if w.record.discards.is_empty() {
        return Decision::Nothing;
    }
    let waiting = w.discard_deadline.is_some_and(|at| at > now);
    if waiting && w.discards_failed >= w.record.discards.len() {
        return Decision::Nothing;
    }
    // Under a name that nothing of ours was seen to have by now, there may be somebody else's.
    let by_name = w.instance(Slot::Discard).is_some_and(|first| first.container.is_none());
    let unseen = by_name && w.discard_seen.reading().is_none();
    if w.must_look(Slot::Discard) || unseen {
        return Decision::Inspect(Slot::Discard);
    }
    let running = w.discard_seen.reading().is_some_and(|r| r.phase == Phase::Running);
    match w.discard_deadline {
        // A twin gets its grace before it is removed by force.
        None if running => Decision::Stop(Slot::Discard),
        Some(_) if running && waiting => Decision::Nothing,
        _ if w.removal_rests_until.is_some_and(|at| at > now) => Decision::Nothing,
        _ => Decision::Remove,
    }
}

/// The container to return to does not run beside another one. It is not judged: somebody started
/// it, or an engine did what it was told for long ago.
fn plan_previous(w: &Workload, now: Tick) -> Option<Decision> {
    if w.record.desired == Desired::Deleted || !w.may_live(Slot::Previous) {
        return None;
    }
    if w.record.desired == Desired::Running && !w.may_live(Slot::Current) {
        return Some(Decision::Returned);
    }
    Some(stop_previous(w, now))
}

pub(super) fn stop_previous(w: &Workload, now: Tick) -> Decision {
    match w.previous_deadline {
        Some(at) if at > now => Decision::Nothing,
        Some(_) => Decision::Kill(Slot::Previous),
        None => Decision::Stop(Slot::Previous),
    }
}

fn plan_removal(w: &Workload, s: &Surroundings) -> Decision {
    if w.record.previous.is_some() {
        return Decision::Discard(Slot::Previous);
    }
    for slot in [Slot::Next, Slot::Current] {
        if w.instance(slot).is_some() {
            return match stop(w, slot, s.context.now.tick) {
                Some(decision) => decision,
                None => Decision::Discard(slot),
            };
        }
    }
    if !w.record.discards.is_empty() {
        return Decision::Nothing;
    }
    if s.last_of_application && !s.network_closing && !w.network_removed {
        return Decision::RemoveNetwork;
    }
    Decision::Forget
}

fn plan_stopped(w: &Workload, now: Tick) -> Decision {
    for slot in [Slot::Next, Slot::Current] {
        if w.instance(slot).is_some() {
            if let Some(decision) = stop(w, slot, now) {
                return decision;
            }
            if slot == Slot::Next {
                return Decision::Discard(slot);
            }
        }
    }
    if w.record.restarts_asked != w.record.restarts_done {
        return Decision::RestartDone;
    }
    Decision::Nothing
}

/// What brings the container in `slot` to its end; `None`: it has come to it.
pub(super) fn stop(w: &Workload, slot: Slot, now: Tick) -> Option<Decision> {
    if !w.may_live(slot) {
        return None;
    }
    w.seen(slot).reading()?;
    let recorded = w.stop_is_recorded(slot);
    Some(match w.stop_deadline {
        Some(at) if recorded && at > now => Decision::Nothing,
        Some(_) if recorded => Decision::Kill(slot),
        // Not sent yet, or the agent died after it was recorded and nobody knows.
        _ => Decision::Stop(slot),
    })
}

fn plan_running(w: &Workload, s: &Surroundings) -> Decision {
    if let Some(hold) = holds(w, s) {
        return if w.hold.as_ref() == Some(&hold) {
            Decision::Nothing
        } else {
            Decision::Hold(hold)
        };
    }
    if w.discards_may_live() {
        // Not seen stopped: no successor yet.
        return Decision::Nothing;
    }
    if superseded(w) {
        return Decision::Discard(Slot::Next);
    }
    if w.needs_update() {
        let ran = w.record.current.as_ref().is_some_and(|c| c.run.is_some());
        if !ran && !w.may_live(Slot::Current) && !w.on_probation() {
            // It never ran: nothing to return to, so the new one is tried like a first one.
            return Decision::Discard(Slot::Current);
        }
        if !w.pulling {
            return plan_update(w, s.context.now.tick);
        }
        if w.rebuild_is_due() && w.rests_until_rebuilt && !w.may_live(Slot::Current) {
            return Decision::Nothing;
        }
        // What there is goes on until the new image is here, which may take hours.
    }
    if w.record.current.is_none() {
        return plan_first(w, s);
    }
    plan_current(w, s)
}

fn holds(w: &Workload, s: &Surroundings) -> Option<Hold> {
    if s.predecessor || s.network_closing {
        return Some(Hold::Predecessor);
    }
    match s.claimed_by {
        Some(name) if w.record.current.is_none() => Some(Hold::StoreMissing(name.to_owned())),
        _ => None,
    }
}

/// The container being made is not the one that is declared now.
fn superseded(w: &Workload) -> bool {
    let Some(next) = &w.record.next else { return false };
    next.spec_hash != w.wanted_hash
        || w.next_precedes_rebuild()
        || (w.record.current.is_some() && !w.needs_update())
}

/// Pull, create, stop the old one, start the new one; the old one goes when the new one has proved
/// itself.
fn plan_update(w: &Workload, now: Tick) -> Decision {
    let is_made = matches!(w.next_seen, Seen::Present(_));
    if !is_made && w.rebuild_is_due() && w.pulls_first() {
        // Whatever ended stays as it is if nothing comes of it.
        return Decision::Pull;
    }
    if !w.has_return() {
        // It never proved itself, and has ended: the new one is tried like a first one.
        return Decision::Discard(Slot::Current);
    }
    if w.wants_previous() {
        return stop(w, Slot::Current, now).unwrap_or(Decision::GoBack);
    }
    match &w.next_seen {
        Seen::Present(_) => match stop(w, Slot::Current, now) {
            Some(decision) => decision,
            None => Decision::Start(Slot::Next),
        },
        Seen::Absent | Seen::Unknown if w.pulls_first() => Decision::Pull,
        Seen::Absent | Seen::Unknown => Decision::Create,
    }
}

fn plan_first(w: &Workload, s: &Surroundings) -> Decision {
    if w.record.restarts_asked != w.record.restarts_done {
        // There is nothing to stop, and it is about to be started as it is.
        return Decision::RestartDone;
    }
    if w.given_up() && w.record.next.is_some() {
        // Reserved since a call that may be carried out yet. It is not tried again under this name,
        // so the journal has it looked up once more and done with.
        return Decision::Discard(Slot::Next);
    }
    if w.pulling || w.given_up() || w.waits_until(s.context).is_some() {
        return Decision::Nothing;
    }
    if w.pulls_first() { Decision::Pull } else { Decision::Create }
}

fn plan_current(w: &Workload, s: &Surroundings) -> Decision {
    let now = s.context.now.tick;
    let restart_asked = w.record.restarts_asked != w.record.restarts_done;
    // A stop that was sent is seen through, whoever wants it running by now: its process may be on
    // its way out already.
    if restart_asked || w.is_being_stopped() || w.ends_for_health() {
        return stop(w, Slot::Current, now).unwrap_or(Decision::RestartDone);
    }
    let phase = match &w.seen {
        Seen::Unknown => return Decision::Inspect(Slot::Current),
        Seen::Absent => return again(w, s, Decision::Recreate),
        Seen::Present(reading) => &reading.phase,
    };
    match phase {
        Phase::Created | Phase::Exited => again(w, s, Decision::Start(Slot::Current)),
        Phase::Dead | Phase::Gone => again(w, s, Decision::Discard(Slot::Current)),
        Phase::Removing if w.leaving == Leaving::Hangs => {
            again(w, s, Decision::Discard(Slot::Current))
        }
        Phase::Removing | Phase::Stopping => Decision::Inspect(Slot::Current),
        Phase::Running | Phase::Restarting | Phase::Paused | Phase::Unknown(_) => Decision::Nothing,
    }
}

/// `decision`, if policy, backoff and refusals let the workload run again.
fn again(w: &Workload, s: &Surroundings, decision: Decision) -> Decision {
    let left_alone = w.has_finished() || w.given_up() || w.is_held_as_stuck(s.context);
    if left_alone || w.waits_until(s.context).is_some() {
        return Decision::Nothing;
    }
    decision
}

/// When the machine has to look at the workload again if nothing else happens.
pub fn wake(w: &Workload, context: Context) -> Option<Tick> {
    let now = context.now.tick;
    let gate = w.step.as_ref().and_then(|flight| match flight.gate {
        Gate::Until(at) => Some(at),
        Gate::Open | Gate::Shut => None,
    });
    let start_expected = w.start_expected.as_ref().map(|(_, at)| *at);
    [
        w.retry_at,
        w.waits_until(context),
        w.stop_deadline,
        w.stop_in_doubt,
        w.discard_deadline,
        w.previous_deadline,
        w.update_retry_at(),
        w.removal_rests_until,
        w.stable_at(context),
        w.unstuck_at(context),
        start_expected,
        gate,
    ]
    .into_iter()
    .flatten()
    .filter(|&at| at > now)
    .min()
}
