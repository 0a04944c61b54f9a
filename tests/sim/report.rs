//! How things are told in a trace.

use bargee::domain::effect::{Effect, Op, Write};
use bargee::domain::event::{Event, Outcome};
use bargee::domain::fault::Fault;

use super::acts::Script;

/// A script as it can be pasted into a test.
pub fn script(script: &Script) -> String {
    let acts = script.acts.iter().map(|(wait, act)| {
        let act = format!("{act:?}").replace("([", "(vec![").replace("Holds([", "Holds(vec![");
        format!("    ({wait}, {act}),\n")
    });
    let acts: String = acts.collect();
    let Script { seed, engine, pace_ms, .. } = script;
    format!(
        "Script {{ seed: {seed}, engine: {engine:?}, pace_ms: {pace_ms}, acts: vec![\n{acts}]}}"
    )
}

pub fn event(event: &Event) -> String {
    match event {
        Event::StepDone(id, answer) => format!("step {} done: {}", id.0, result(answer)),
        Event::Listing(id, Ok(lines)) => {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| format!("{} {} {:?}", line.tags.instance, line.id, line.phase))
                .collect();
            format!("listing {}: {lines:?}", id.0)
        }
        Event::Directory(scan) => format!("directory {:?}", scan.found),
        other => format!("{other:?}"),
    }
}

pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Persist(commit) => {
            let writes: Vec<String> = commit.writes.iter().map(write).collect();
            format!("persist {} {}", commit.id.0, writes.join(", "))
        }
        Effect::Run(step) => {
            let after = step.after.map_or(String::new(), |commit| format!(" after {}", commit.0));
            format!("step {}{after}: {}", step.id.0, op(&step.op))
        }
        Effect::Publish(uid, Some(view)) => format!(
            "show {uid} {} g{} (runs g{}) {:?}: {:?} {:?} restarts {} {}",
            view.declared.key,
            view.generation,
            view.observed_generation,
            view.desired,
            view.state,
            view.runtime_state,
            view.restart_count,
            view.info
        ),
        Effect::PublishStatus(status) => format!(
            "status up {} stream {} journal {:?} tasks {} {:?}",
            status.engine_up, status.stream_up, status.journal, status.tasks, status.conditions
        ),
        Effect::Transition(change) => format!("transition {} {:?}", change.key, change.to),
        other => format!("{other:?}"),
    }
}

fn write(write: &Write) -> String {
    match write {
        Write::Insert(row) | Write::Update(row) => {
            let name = |instance: &bargee::domain::record::Instance| instance.name.to_string();
            format!(
                "row {} g{} {:?} current {:?} next {:?} discards {:?}",
                row.uid,
                row.generation,
                row.desired,
                row.current.as_ref().map(name),
                row.next.as_ref().map(name),
                row.discards.iter().map(name).collect::<Vec<_>>()
            )
        }
        Write::Intend(entry) => format!("intend {} {:?}", entry.seq.0, entry.intent),
        Write::Claim(entry) => format!("claim {}", entry.seq.0),
        other => format!("{other:?}"),
    }
}

pub fn op(op: &Op) -> String {
    match op {
        Op::Create(new) => format!("create {} of {}", new.name, new.declared.spec.image),
        Op::Start(id, _) => format!("start {id}"),
        Op::CheckPaths(declared) => format!("check paths of {}", declared.key),
        other => format!("{other:?}"),
    }
}

pub fn result(result: &Result<Outcome, Fault>) -> String {
    match result {
        Ok(Outcome::Found(reading) | Outcome::Started(reading)) => format!(
            "{} is {:?} since {} exit {}",
            reading.id, reading.phase, reading.started_at_ns, reading.exit_code
        ),
        Ok(other) => format!("{other:?}"),
        Err(fault) => format!("{:?} {fault}", fault.kind),
    }
}
