//! `bargee ps`, `inspect`, `status` and `version`: what is only read.

use serde::Serialize;

use super::client::{CallError, Client};
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::reach;
use super::table;
use crate::api::url::encode;
use crate::api::wire::{List, Manifests, Status, Version, Workload};

/// Lists workloads; without `all` those that are stopped or have succeeded are left out.
///
/// # Errors
/// The agent's, and those of the output.
pub fn ps(
    client: &Client,
    all: bool,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut list: List<Workload> = client.get("/v1/ms", console)?;
    let count = list.items.len();
    if !all {
        list.items.retain(|one| !matches!(one.state.as_str(), "Stopped" | "Succeeded"));
    }
    if format != Format::Table {
        return console.data(format, &list);
    }
    let now = console.time.wall_ms();
    let head = ["NAME", "STATE", "UP", "RESTARTS", "CPU", "MEMORY", "IMAGE", "PORTS", "INFO"];
    let rows: Vec<Vec<String>> = list.items.iter().map(|one| row(one, now)).collect();
    table::write(console.out, &head, &rows)?;
    let hidden = count - rows.len();
    if hidden > 0 && rows.is_empty() {
        console.note(&format!("{hidden} stopped or succeeded; `bargee ps -a` lists them too"));
    }
    Ok(())
}

fn row(one: &Workload, now: u64) -> Vec<String> {
    let runs = one.state == "Running" && one.started_at > 0;
    let up = if runs { table::span(now.saturating_sub(one.started_at)) } else { String::new() };
    vec![
        one.key(),
        one.state_and_health(),
        up,
        one.restart_count.to_string(),
        one.cpu_usage.map(|percent| format!("{percent:.1}%")).unwrap_or_default(),
        one.memory_usage.map(table::bytes).unwrap_or_default(),
        one.image.clone(),
        one.ports.join(", "),
        info(one),
    ]
}

/// What somebody should know of it, in one line.
fn info(one: &Workload) -> String {
    let mut parts = Vec::new();
    if !one.state_info.is_empty() {
        parts.push(one.state_info.clone());
    }
    if let Some(pull) = one.pull_progress {
        parts.push(reach::progress(pull));
    }
    // The agent's line names a failed update where the version before it runs; where something else
    // is the matter, the update is named beside it.
    if let Some(failed) = &one.failed_update
        && !one.state_info.contains(&failed.cause)
    {
        parts.push(format!("generation {} failed: {}", failed.generation, failed.cause));
    }
    parts.join("; ")
}

/// Shows everything about workloads: one as it is, several as a list.
///
/// # Errors
/// The first failure, after all that could be read was shown.
pub fn inspect(
    client: &Client,
    names: &[String],
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let (mut found, mut first) = (Vec::new(), None);
    for name in names {
        match client.get::<Workload>(&format!("/v1/ms/{}", encode(name)), console) {
            Ok(workload) => found.push(workload),
            Err(error) => {
                let failure = Failure::from(error);
                failure.tell(console.err)?;
                first.get_or_insert(failure.exit);
            }
        }
    }
    let format = if format == Format::Table { Format::Yaml } else { format };
    match found.as_slice() {
        [] => {}
        [one] if names.len() == 1 => console.data(format, one)?,
        many => console.data(format, &many)?,
    }
    first.map_or(Ok(()), |exit| Err(Failure::told(exit)))
}

/// Shows the agent.
///
/// # Errors
/// The agent's, and those of the output.
pub fn status(client: &Client, format: Format, console: &mut Console) -> Result<(), Failure> {
    let status: Status = client.get("/v1/system/status", console)?;
    if format != Format::Table {
        return console.data(format, &status);
    }
    let engine = engine(&status);
    let rows = [
        ("node", status.node.clone()),
        ("version", status.version.clone()),
        ("store", status.store_id.clone()),
        ("ready", if status.ready { "yes" } else { "no" }.to_owned()),
        ("engine", engine),
        ("event stream", status.stream.clone()),
        ("workloads", counts(&status)),
        ("tasks", format!("{} of at most {}", status.queue.tasks, status.queue.limit)),
    ];
    for (name, value) in rows {
        writeln!(console.out, "{name:<14}{}", table::clean(&value))?;
    }
    for (name, value) in rare(&status) {
        writeln!(console.out, "{name:<14}{}", table::clean(&value))?;
    }
    Ok(console.out.flush()?)
}

/// What is told only where there is something to tell.
fn rare(status: &Status) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if status.journal.entries > 0 {
        let (entries, failing) = (status.journal.entries, status.journal.failing);
        let plural = if entries == 1 { "entry" } else { "entries" };
        rows.push(("journal", format!("{entries} {plural}, {failing} failing")));
    }
    if let Some(manifests) = &status.manifests {
        rows.push(("manifests", found(manifests)));
    }
    if let Some(quiesced) = status.quiesced {
        let (since, until) = (table::utc(quiesced.since), table::utc(quiesced.until));
        rows.push(("quiesced", format!("since {since}, until {until}: reconciling is held")));
    }
    if !status.recovering.is_empty() {
        rows.push(("recovering", status.recovering.clone()));
    }
    for condition in &status.conditions {
        rows.push(("condition", format!("{}: {}", condition.kind, condition.message)));
    }
    rows
}

/// The manifests directory in one line.
fn found(manifests: &Manifests) -> String {
    let Manifests { directory, files, settling, ignored, ignored_count } = manifests;
    let mut text = format!("{files} in {directory}");
    if *settling > 0 {
        text.push_str(&format!(", {settling} being written"));
    }
    if !ignored.is_empty() {
        text.push_str(&format!("; ignored: {}", ignored.join(", ")));
    }
    if *ignored_count > ignored.len() {
        text.push_str(&format!(" and {} more", ignored_count - ignored.len()));
    }
    text
}

fn engine(status: &Status) -> String {
    let engine = &status.engine;
    let mut text = match engine.name.as_str() {
        "" => "not reached yet".to_owned(),
        name => format!("{name} {} (API {})", engine.version, engine.api_version),
    };
    if !engine.up {
        text.push_str(", away");
    }
    if !engine.error.is_empty() {
        text.push_str(": ");
        text.push_str(&engine.error);
    }
    text
}

fn counts(status: &Status) -> String {
    let all: usize = status.counts.values().sum();
    let each: Vec<String> =
        status.counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if each.is_empty() { "none".to_owned() } else { format!("{all}: {}", each.join(", ")) }
}

/// Both versions.
#[derive(Serialize)]
struct Versions {
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

/// Shows the version of the client, and the agent's if it answers.
///
/// # Errors
/// Those of the output only.
pub fn version(client: &Client, format: Format, console: &mut Console) -> Result<(), Failure> {
    let agent = client.get::<Version>("/v1/system/version", console);
    let versions = Versions {
        client: env!("CARGO_PKG_VERSION").to_owned(),
        agent: agent.as_ref().ok().map(|agent| agent.version.clone()),
    };
    if format != Format::Table {
        return console.data(format, &versions);
    }
    writeln!(console.out, "client  {}", versions.client)?;
    match agent {
        Ok(agent) => writeln!(console.out, "agent   {}", table::clean(&agent.version))?,
        Err(error) => writeln!(console.out, "agent   {}", table::clean(&absence(error)))?,
    }
    Ok(console.out.flush()?)
}

fn absence(error: CallError) -> String {
    let failure = Failure::from(error);
    match failure.exit {
        Exit::Unreachable => "not reachable".to_owned(),
        _ => failure.message,
    }
}
