//! How a workload is shown: desired, policy and what was seen give State(Substate), the runtime
//! state and one line. `docs/states.md` has the same as a table.

use super::health_check::Verdict;
use super::lifecycle::{Context, FlightKind, Hold, PullPhase, Slot, Workload};
use super::observed::{Phase, Seen};
use super::record::{Desired, Exit, Retry, Run};
use super::time::{Now, Span, Tick};
use super::view::{PullProgress, RuntimeState, State, View};
use super::{restart, stuck};
use crate::limits;

/// State, runtime state, the line beside them, and the moment the line speaks of.
struct Shown {
    state: State,
    runtime: RuntimeState,
    info: String,
    at: Option<Tick>,
}

/// The workload as people see it. `pull` is the progress of the pull it waits for.
pub fn view(w: &Workload, context: Context, pull: Option<PullProgress>) -> View {
    let shown = match w.record.desired {
        // Nothing of a job that is done is awaited: it stays so.
        Desired::Running if w.is_elsewhere() && w.has_finished() && !w.needs_update() => {
            not_running(w, context)
        }
        _ if w.is_elsewhere() => {
            let (state, runtime, info, at) = w.shown_elsewhere();
            Shown { state, runtime, info, at }
        }
        Desired::Deleted => shown_deleted(w),
        Desired::Stopped => shown_stopped(w),
        Desired::Running => shown_running(w, context),
    };
    let record = &w.record;
    let reading = w.seen.reading();
    let live = reading.filter(|r| r.phase.is_live());
    let run = record.current.as_ref().and_then(|c| c.run.as_ref());
    View {
        uid: record.uid.clone(),
        declared: record.declared.clone(),
        source: record.source,
        desired: record.desired,
        generation: record.generation,
        observed_generation: record.observed_generation,
        state: shown.state,
        info: shown.info,
        next_attempt: shown.at,
        awaits_resume: w.awaits_resume,
        runtime_state: shown.runtime,
        health: w.verdict().map(|verdict| verdict.health),
        pull: pull.filter(|_| w.pulling),
        container: record.current.as_ref().and_then(|c| c.container.clone()),
        instance: record.current.as_ref().map(|c| c.name.to_string()),
        pid: live.map_or(0, |r| r.pid),
        started_at_ms: run.map_or(0, |run| run.started_at_ns / 1_000_000),
        run_seen: run
            .filter(|run| live.is_some() && run.since.boot == *context.boot)
            .and_then(seen),
        ip: live.and_then(|r| r.ip.clone()),
        ports: live.map(|r| r.ports.clone()).unwrap_or_default(),
        image_id: run.map(|r| r.image_id.clone()).unwrap_or_default(),
        created_at_ms: record.created_at_ms,
        exit_code: record.last_exit.as_ref().and_then(|e| e.code).filter(|_| live.is_none()),
        error_message: record.error_message.clone(),
        last_error: record.last_error.clone(),
        last_error_at_ms: record.last_error_at_ms,
        restart_count: record.restart_count,
        failure_count: record.failure_count,
        failed_update: w.failed_update().map(|f| (f.generation, f.cause.clone())),
        update_retries: w.failed_update().is_some_and(|f| f.retry != Retry::Never),
    }
}

fn seen(run: &Run) -> Option<Now> {
    (run.since_ms > 0).then_some(Now { tick: run.since.tick, wall_ms: run.since_ms })
}

fn shown(state: State, runtime: RuntimeState, info: impl Into<String>) -> Shown {
    Shown { state, runtime, info: info.into(), at: None }
}

fn shown_deleted(w: &Workload) -> Shown {
    if !w.discard_error.is_empty() {
        let info = format!("could not be removed: {}", w.discard_error);
        let at = w.discard_deadline;
        return Shown { at, ..shown(State::StoppingDeleteFailed, RuntimeState::Deleting, info) };
    }
    let stopping = w.may_live(Slot::Current) || w.may_live(Slot::Next);
    if stopping && w.stop_deadline.is_some() {
        let info = format!("removal: {}", w.stop_info());
        let shown = shown(State::StoppingRequestedAtRuntime, RuntimeState::Stopping, info);
        return Shown { at: w.stop_deadline, ..shown };
    }
    shown(State::StoppingRequestedAtRuntime, RuntimeState::Deleting, "being removed")
}

fn shown_stopped(w: &Workload) -> Shown {
    let known = !w.must_look(Slot::Current) || w.seen.reading().is_some();
    if w.may_live(Slot::Current) && known {
        let shown =
            shown(State::StoppingRequestedAtRuntime, RuntimeState::Stopping, "being stopped");
        return match w.stop_deadline {
            Some(_) => Shown { info: w.stop_info().to_owned(), at: w.stop_deadline, ..shown },
            None => shown,
        };
    }
    if known {
        return shown(State::StoppedOk, RuntimeState::Stopped, "");
    }
    shown(State::PendingInitial, RuntimeState::Unknown, "not yet looked at")
}

fn shown_running(w: &Workload, context: Context) -> Shown {
    match &w.seen {
        Seen::Present(reading) => by_phase(w, &reading.phase, context),
        Seen::Unknown if w.record.current.is_some() => {
            shown(State::PendingInitial, RuntimeState::Unknown, "not yet looked at")
        }
        Seen::Unknown | Seen::Absent => not_running(w, context),
    }
}

fn by_phase(w: &Workload, phase: &Phase, context: Context) -> Shown {
    match phase {
        Phase::Running => running(w),
        Phase::Created | Phase::Removing | Phase::Exited | Phase::Dead | Phase::Gone => {
            not_running(w, context)
        }
        Phase::Stopping => {
            shown(State::StoppingStopping, RuntimeState::Stopping, "the engine is stopping it")
        }
        Phase::Restarting => {
            let info = "the engine restarts it by itself, which bargee never asks for";
            shown(State::FailedUnknown, RuntimeState::Restarting, info)
        }
        Phase::Paused => {
            let info = "paused by somebody; unpause it, or restart it with `bargee restart`";
            shown(State::FailedUnknown, RuntimeState::Unknown, info)
        }
        Phase::Unknown(word) => {
            let info = format!("the engine reports a state that bargee does not manage: {word}");
            shown(State::FailedUnknown, RuntimeState::Unknown, info)
        }
    }
}

fn running(w: &Workload) -> Shown {
    if w.is_being_stopped() {
        let info = match complaint(w).filter(|_| w.stop_is_for_health()) {
            Some(complaint) => {
                let what = if w.may_go_back() { "the version before it" } else { "a restart" };
                format!("{complaint}; for {what}: {}", w.stop_info())
            }
            None if w.ending => format!("the agent ends: {}", w.stop_info()),
            None => format!("for a restart or an update: {}", w.stop_info()),
        };
        let state = State::StoppingRequestedAtRuntime;
        return Shown { at: w.stop_deadline, ..shown(state, RuntimeState::Stopping, info) };
    }
    let generation = w.record.generation;
    if let Some(failed) = w.failed_update().filter(|_| w.update_rests()) {
        let next = match failed.retry {
            Retry::Never => "not tried again before a new generation or a rebuild".to_owned(),
            Retry::At(_) | Retry::Now => format!("try {}", failed.tries + 1),
        };
        let info = format!(
            "generation {generation} failed and the version before it runs: {}; {next}",
            failed.cause
        );
        let shown = shown(State::RunningOk, RuntimeState::Running, info);
        return Shown { at: w.update_retry_at(), ..shown };
    }
    if w.needs_update() {
        let info = format!("{}: {}", purpose(w), doing(w));
        return shown(State::RunningOk, RuntimeState::Updating, info);
    }
    if w.on_probation() {
        let info = format!(
            "{} has to {} for {}, until then the container before it is kept",
            on_trial(w),
            if w.record.declared.spec.check().is_some() { "be healthy" } else { "run" },
            Span(limits::STABLE_MS)
        );
        return shown(State::RunningOk, RuntimeState::Running, info);
    }
    let stuck = w.record.stuck.then(|| {
        format!(
            "{}; that counts until it has run for {} minutes",
            stuck::how_many(),
            limits::STUCK_MS / 60_000
        )
    });
    let info: Vec<String> = complaint(w).into_iter().chain(stuck).collect();
    shown(State::RunningOk, RuntimeState::Running, info.join("; "))
}

/// What the check of what runs complains of.
fn complaint(w: &Workload) -> Option<String> {
    w.verdict().and_then(Verdict::complaint)
}

fn not_running(w: &Workload, context: Context) -> Shown {
    if let Some(hold) = &w.hold {
        let runtime = at_rest(w);
        return match hold {
            Hold::HostPath(text) => shown(State::PendingWaitingToStart, runtime, text.clone()),
            Hold::Predecessor => {
                let info = "the workload that had this name is still being removed";
                shown(State::PendingWaitingToStart, runtime, info)
            }
            Hold::StoreMissing(name) => {
                let info = format!(
                    "storeMissing: container {name} was made from another store; \
                     bring that store back, or take the container over with `bargee adopt`"
                );
                shown(State::PendingWaitingToStart, runtime, info)
            }
        };
    }
    if let Some(kind) = w.step.as_ref().map(|flight| flight.kind) {
        match kind {
            FlightKind::Create => {
                return shown(State::PendingStarting, RuntimeState::Creating, "being created");
            }
            FlightKind::Start(_) => {
                return shown(State::PendingStarting, RuntimeState::Starting, "being started");
            }
            _ => {}
        }
    }
    if w.start_waits {
        return shown(State::PendingStarting, at_rest(w), start_wait());
    }
    if w.pulling {
        let waits = w.pull_phase == PullPhase::Queued;
        let runtime = if waits { at_rest(w) } else { RuntimeState::Pulling };
        return shown(State::PendingStarting, runtime, pull_info(w));
    }
    if w.needs_update() && w.record.current.is_some() {
        let info = format!("{}: {}", purpose(w), doing(w));
        return shown(State::PendingStarting, RuntimeState::Updating, info);
    }
    between_tries(w, context)
}

/// What the container is while nothing is done with it.
fn at_rest(w: &Workload) -> RuntimeState {
    match w.seen.reading().map(|r| &r.phase) {
        Some(Phase::Created) => RuntimeState::Created,
        Some(Phase::Removing) => RuntimeState::Deleting,
        Some(_) => RuntimeState::Exiting,
        None => RuntimeState::Queued,
    }
}

fn between_tries(w: &Workload, context: Context) -> Shown {
    let record = &w.record;
    if w.given_up() {
        let info = format!(
            "refused {} times and left alone until a new generation, a restart or a rebuild: {}",
            record.refusals, record.error_message
        );
        return shown(State::PendingStartingFailed, RuntimeState::Failed, info);
    }
    let at = w.waits_until(context);
    if record.refusals > 0 || record.failure_count > 0 {
        let refused = record.refusals > 0;
        let state = if refused { State::PendingStartingFailed } else { State::PendingStarting };
        let info = format!("{}; try {}", record.error_message, record.failure_count + 1);
        return Shown { at, ..shown(state, at_rest(w), info) };
    }
    let Some(exit) = &record.last_exit else {
        return match record.boot {
            None => shown(State::PendingInitial, at_rest(w), "accepted"),
            Some(_) => shown(State::PendingStarting, at_rest(w), "about to start"),
        };
    };
    if restart::runs_again(record.declared.spec.restart.policy, exit) {
        if record.stuck && !exit.interrupted {
            return shown_stuck(w, exit, context);
        }
        return Shown { at, ..shown(State::PendingStarting, at_rest(w), exit_info(w, exit)) };
    }
    match exit.code {
        Some(0) if !exit.unhealthy => shown(State::SucceededOk, RuntimeState::Stopped, ""),
        Some(_) => {
            let text = restart::crash_text(exit).unwrap_or_default();
            shown(State::FailedExecFailed, RuntimeState::Failed, text)
        }
        None if exit.error.is_empty() => {
            shown(State::FailedLost, RuntimeState::Failed, "its container vanished")
        }
        None => shown(State::FailedLost, RuntimeState::Failed, exit.error.clone()),
    }
}

/// Restarted too often; the next try waits, or there is none.
fn shown_stuck(w: &Workload, exit: &Exit, context: Context) -> Shown {
    let what = format!("{}, and {}", exit_words(exit), stuck::how_many());
    let (state, runtime) = (State::FailedExecFailed, RuntimeState::StuckInRestart);
    if w.is_held_as_stuck(context) {
        let until = "left alone until a start, restart, rebuild or new generation";
        return shown(state, runtime, format!("{what}; {until}"));
    }
    let info = format!("{what}; restart {}", w.record.restart_count + 1);
    Shown { at: w.waits_until(context), ..shown(state, runtime, info) }
}

fn exit_info(w: &Workload, exit: &Exit) -> String {
    if exit.interrupted {
        return "interrupted; about to start again".to_owned();
    }
    format!("{}; restart {}", exit_words(exit), w.record.restart_count + 1)
}

fn exit_words(exit: &Exit) -> String {
    match exit.code {
        _ if exit.unhealthy => "unhealthy".to_owned(),
        Some(code) => format!("exitCode={code}"),
        None if exit.error.is_empty() => "vanished".to_owned(),
        None => exit.error.clone(),
    }
}

/// What runs on probation.
fn on_trial(w: &Workload) -> String {
    match w.is_remade() {
        true => "what was made anew".to_owned(),
        false => format!("generation {}", w.record.observed_generation),
    }
}

/// What a new container is made for.
fn purpose(w: &Workload) -> String {
    let same = w.record.current.as_ref().is_some_and(|c| c.spec_hash == w.wanted_hash);
    match same {
        true => "rebuild".to_owned(),
        false => format!("update to generation {}", w.record.generation),
    }
}

fn pull_info(w: &Workload) -> String {
    let image = &w.record.declared.spec.image;
    match w.pull_phase {
        PullPhase::Queued => format!("waits for other pulls before that of {image}"),
        PullPhase::Moving => format!("pulling {image}"),
        PullPhase::Syncing => format!("pulled {image}, waits for the disk"),
    }
}

fn start_wait() -> String {
    format!("waits for other starts, {} at a time", limits::STARTS)
}

/// What is being done about an update.
fn doing(w: &Workload) -> String {
    match w.step.as_ref().map(|flight| flight.kind) {
        _ if w.pulling => pull_info(w),
        _ if w.start_waits => start_wait(),
        _ if w.awaits_resume => "not gone on with".to_owned(),
        Some(FlightKind::Create) => "creating the new container".to_owned(),
        Some(FlightKind::Start(Slot::Next)) => "starting the new container".to_owned(),
        Some(FlightKind::Signal(_)) => "stopping the old container".to_owned(),
        _ => "under way".to_owned(),
    }
}
