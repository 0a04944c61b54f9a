//! A published view as the JSON of the API.

use serde_json::value::RawValue;

use super::backend::{Backend, Usage};
use super::route::Filter;
use super::wire;
use crate::domain::health_check::Health;
use crate::domain::quiesce::Quiesce;
use crate::domain::time::Now;
use crate::domain::view::{Manifests, State, Status, Task, TaskState, Transition, View};
use crate::limits;

/// What every workload of one answer has in common.
#[derive(Clone, Copy)]
pub struct Common<'a> {
    /// Name of the device.
    pub node: &'a str,
    /// How the agent and its engine are.
    pub status: &'a Status,
    /// When the answer is made.
    pub now: Now,
}

/// `view` as it is answered.
pub fn workload(view: &View, common: Common, usage: Option<Usage>) -> wire::Workload {
    let (state, substate) = view.state.words();
    let key = &view.declared.key;
    let wait_ms = wait_ms(view, common.now);
    // What waits for its time does so in vain before that of all.
    let waits = view.awaits_resume || wait_ms.is_some();
    let held = held(common.status, common.now).filter(|_| waits);
    // The last sample outlives the process that it was taken of.
    let usage = usage.filter(|_| view.pid != 0);
    wire::Workload {
        uid: view.uid.as_str().to_owned(),
        application: key.application.to_string(),
        name: key.name.to_string(),
        source: view.source.as_str().to_owned(),
        node: common.node.to_owned(),
        engine: common.status.engine.name.clone(),
        image: view.declared.spec.image.clone(),
        image_id: view.image_id.clone(),
        desired_state: view.desired.as_str().to_owned(),
        generation: view.generation,
        observed_generation: view.observed_generation,
        state: state.to_owned(),
        substate: substate.to_owned(),
        state_info: away_info(common, &view.info).unwrap_or_else(|| match &held {
            Some(held) if view.info.is_empty() => held.clone(),
            Some(held) => format!("{held}; {}", view.info),
            None => state_info(&view.info, wait_ms),
        }),
        held: held.is_some(),
        runtime_state: view.runtime_state.as_str().to_owned(),
        health: health_word(view.health),
        pull_progress: view.pull.map(|pull| wire::PullProgress {
            done_bytes: pull.done_bytes,
            total_bytes: pull.total_bytes,
        }),
        container_id: view.container.as_ref().map(ToString::to_string).unwrap_or_default(),
        pid: view.pid,
        ip_address: view.ip.clone().unwrap_or_default(),
        ports: view.ports.clone(),
        created_at: view.created_at_ms,
        started_at: started_at(view, common.now),
        cpu_usage: usage
            .and_then(|usage| usage.cpu_percent)
            .map(|percent| (percent * 100.0).round() / 100.0),
        memory_usage: usage.and_then(|usage| usage.memory_bytes),
        exit_code: view.exit_code,
        error_message: view.error_message.clone(),
        last_error: view.last_error.clone(),
        last_error_at: view.last_error_at_ms,
        restart_count: view.restart_count,
        failure_count: view.failure_count,
        next_attempt_at: wait_ms.map_or(0, |wait| common.now.wall_ms.saturating_add(wait)),
        failed_update: view.failed_update.as_ref().map(|(generation, cause)| wire::FailedUpdate {
            generation: *generation,
            cause: cause.clone(),
            retries: view.update_retries,
        }),
        labels: view.declared.labels.clone(),
        manifest: RawValue::from_string(view.declared.manifest.to_string()).ok(),
    }
}

/// When the run began, by the wall clock as it is now: a device may boot in 1970 and learn the time
/// later, and the time that passed since is none of that.
fn started_at(view: &View, now: Now) -> u64 {
    let set = view.run_seen.map_or(0, |seen| now.clock_set_since(seen));
    if set.unsigned_abs() < limits::CLOCK_SET_MS {
        return view.started_at_ms;
    }
    view.started_at_ms.saturating_add_signed(set)
}

/// Time until the next try; `None`: none is planned, or it is due.
fn wait_ms(view: &View, now: Now) -> Option<u64> {
    view.next_attempt.map(|next| next.since(now.tick).0).filter(|wait| *wait > 0)
}

/// While the engine is away the last seen state stays, and the line says since when. `None`: it is
/// not away.
fn away_info(common: Common, info: &str) -> Option<String> {
    let since = common.status.away_since.filter(|_| !common.status.engine_up)?;
    let seconds = common.now.tick.since(since).0 / 1_000;
    let away = format!("the engine has been away for {seconds} s");
    Some(if info.is_empty() { away } else { format!("{away}; {info}") })
}

/// Says that reconciling is held, and for how long; `None`: it is not.
pub fn held(status: &Status, now: Now) -> Option<String> {
    let left = status.quiesced.as_ref()?.until.since(now.tick).0.div_ceil(1_000);
    Some(format!("reconciling is held for another {left} s"))
}

/// The line of the view and the time until what it speaks of, which is told when it is read, so
/// that nothing need be published every second.
fn state_info(info: &str, wait_ms: Option<u64>) -> String {
    match wait_ms {
        Some(wait) if info.is_empty() => format!("next try in {} s", wait.div_ceil(1_000)),
        Some(wait) => format!("{info} in {} s", wait.div_ceil(1_000)),
        None => info.to_owned(),
    }
}

/// Whether `view` is wanted in a list.
pub fn passes(view: &View, filter: &Filter) -> bool {
    let is = |wanted: &Option<String>, value: &str| {
        wanted.as_ref().is_none_or(|wanted| value.eq_ignore_ascii_case(wanted))
    };
    is(&filter.source, view.source.as_str())
        && is(&filter.application, view.declared.key.application.as_str())
        && is(&filter.state, view.state.words().0)
}

/// A task as it is answered. `held` says that reconciling is held.
pub fn task(task: &Task, held: Option<String>) -> wire::Task {
    let open = matches!(task.state, TaskState::Pending | TaskState::Running);
    let held = held.filter(|_| open);
    wire::Task {
        held: held.is_some(),
        id: task.id.0,
        verb: task.verb.to_owned(),
        uid: task.uid.as_str().to_owned(),
        key: task.key.clone(),
        state: task.state.as_str().to_owned(),
        message: held.unwrap_or_else(|| task.message.clone()),
    }
}

/// A transition as one line of the event stream.
pub fn transition(seq: u64, transition: &Transition) -> wire::Transition {
    wire::Transition {
        seq,
        at: transition.at_ms,
        uid: transition.uid.as_str().to_owned(),
        key: transition.key.clone(),
        generation: transition.generation,
        from: transition.from.map(state_words).unwrap_or_default(),
        to: state_words(transition.to),
        health: health_word(transition.health),
        info: transition.info.clone(),
        container_id: transition.container.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

fn health_word(health: Option<Health>) -> String {
    health.map(Health::as_str).unwrap_or_default().to_owned()
}

/// `State(Substate)`, or the state alone where it has no substate.
fn state_words(state: State) -> String {
    match state.words() {
        (state, "") => state.to_owned(),
        (state, substate) => format!("{state}({substate})"),
    }
}

/// The agent as it is answered.
pub fn status(backend: &dyn Backend) -> wire::Status {
    let status = backend.status();
    let identity = backend.identity();
    let mut counts = std::collections::BTreeMap::new();
    for view in backend.workloads() {
        *counts.entry(view.state.words().0.to_owned()).or_insert(0) += 1;
    }
    let conditions = status.conditions.iter().map(|(kind, message)| wire::Condition {
        kind: (*kind).to_owned(),
        message: message.clone(),
    });
    wire::Status {
        node: identity.node.clone(),
        store_id: identity.store_id.clone(),
        version: identity.version.to_owned(),
        ready: not_ready(&status).is_none(),
        revision: backend.revision(),
        engine: wire::Engine {
            name: status.engine.name.clone(),
            version: status.engine.version.clone(),
            api_version: status.engine.api_version.clone(),
            up: status.engine_up,
            error: status.engine_error.clone(),
        },
        stream: if status.stream_up { "up" } else { "down" }.to_owned(),
        counts,
        queue: wire::Queue { tasks: status.tasks, limit: crate::limits::TASK_QUEUE },
        journal: wire::JournalCounts { entries: status.journal.0, failing: status.journal.1 },
        quiesced: status.quiesced.as_ref().map(|quiesced| quiesced_at(quiesced, backend.now())),
        recovering: recovering(&status).map(|progress| progress.to_string()).unwrap_or_default(),
        manifests: status.manifests.as_deref().map(manifests),
        conditions: conditions.collect(),
    }
}

/// Ticks as wall time, which may have been set since it began.
fn quiesced_at(quiesced: &Quiesce, now: Now) -> wire::Quiesced {
    let (since, until) = (now.tick.since(quiesced.since).0, quiesced.until.since(now.tick).0);
    wire::Quiesced {
        since: now.wall_ms.saturating_sub(since),
        until: now.wall_ms.saturating_add(until),
    }
}

fn manifests(seen: &Manifests) -> wire::Manifests {
    wire::Manifests {
        directory: seen.path.to_string(),
        files: seen.files,
        settling: seen.settling,
        ignored: seen.ignored.clone(),
        ignored_count: seen.ignored_count,
    }
}

/// How far the replay of the journal is, while changes wait for it.
fn recovering(status: &Status) -> Option<wire::Recovering> {
    status.recovering.map(|(done, total)| wire::Recovering { done, total })
}

/// Why the agent cannot do its work yet, or not now; `None`: it does it.
pub fn not_ready(status: &Status) -> Option<String> {
    if let Some(progress) = recovering(status) {
        return Some(format!("recovering {progress}"));
    }
    if !status.engine_up {
        let why = match status.engine_error.as_str() {
            "" => "it was not reached yet",
            error => error,
        };
        return Some(format!("the engine is away: {why}"));
    }
    (!status.listed).then(|| "the engine's containers were not listed yet".to_owned())
}
