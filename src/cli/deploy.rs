//! `bargee deploy`.

use std::time::Duration;

use super::args::Deploy;
use super::client::{CallError, Client};
use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::progress::Progress;
use super::quiesce::held;
use super::reach::{Goal, REMOVED, Verdict};
use super::{files, table};
use crate::api::url::encode;
use crate::api::wire::{Applied, ErrorDetail, List, Problem, Status, Workload};
use crate::limits;

/// Declares what the files hold, tells what changed, and waits if that is asked for.
///
/// # Errors
/// It was refused, or a workload did not get there.
pub fn deploy(
    client: &Client,
    deploy: &Deploy,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let files = files::read(&deploy.files, console.input)?;
    let body = files::body(files)?;
    if deploy.prune && !deploy.dry_run {
        list_pruned(&apply(client, deploy, true, &body, console)?, console);
    }
    let applied = apply(client, deploy, deploy.dry_run, &body, console)?;
    if format == Format::Table {
        tell(&applied, deploy.dry_run, console)?;
    } else {
        console.data(format, &applied)?;
    }
    match deploy.wait {
        Some(limit) => wait(client, &applied, limit, console),
        None => Ok(()),
    }
}

fn apply(
    client: &Client,
    deploy: &Deploy,
    dry_run: bool,
    body: &[u8],
    console: &mut Console,
) -> Result<Applied, Failure> {
    let (prune, start) = (deploy.prune, deploy.start);
    let route = "/v1/deploy/microservices:apply";
    let path = format!("{route}?dryRun={dry_run}&prune={prune}&start={start}");
    match client.post(&path, body, console) {
        Ok(applied) => Ok(applied),
        Err(CallError::Refused(422, detail)) => Err(refused(&detail, console)?),
        Err(error) => Err(error.into()),
    }
}

/// Tells what is about to be removed, before it is.
fn list_pruned(applied: &Applied, console: &mut Console) {
    for item in applied.items.iter().filter(|item| item.change == REMOVED) {
        console.note(&format!("{} will be removed: it is not declared any more", item.key));
    }
}

fn tell(applied: &Applied, dry_run: bool, console: &mut Console) -> Result<(), Failure> {
    for item in &applied.items {
        let would = match (dry_run, item.change.as_str()) {
            (true, "unchanged") => "would stay ",
            (true, _) => "would be ",
            (false, REMOVED) => "is being ",
            (false, _) => "",
        };
        let (key, change, generation) = (&item.key, &item.change, item.generation);
        writeln!(console.out, "{key} {would}{change} (generation {generation})")?;
    }
    Ok(console.out.flush()?)
}

/// Tells every problem on a line of its own.
fn refused(detail: &ErrorDetail, console: &mut Console) -> Result<Failure, Failure> {
    let problems: Vec<Problem> = detail.read().unwrap_or_default();
    if problems.is_empty() {
        return Ok(Failure::failed(detail.message.clone()));
    }
    for Problem { file, line, field, message } in &problems {
        let line = if *line > 0 { format!(":{line}") } else { String::new() };
        let field = if field.is_empty() { String::new() } else { format!(": {field}") };
        let text = format!("{file}{line}{field}: {message}");
        writeln!(console.err, "{}", table::clean(&text))?;
    }
    let count = problems.len();
    let plural = if count == 1 { "problem" } else { "problems" };
    Ok(Failure::failed(format!("nothing was applied: {count} {plural}")))
}

fn wait(
    client: &Client,
    applied: &Applied,
    limit: Duration,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut goals: Vec<Goal> = applied.items.iter().map(Goal::new).collect();
    let mut progress = Progress::default();
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let begin = console.time.now_ms();
    loop {
        let readings = read(client, &goals, console)?;
        if let Some(one) = readings.iter().find(|one| one.held && is_awaited(&goals, one)) {
            return Err(held(&format!("{}: what is declared", one.key()), &one.state_info));
        }
        let now = console.time.now_ms();
        for goal in &mut goals {
            goal.judge(readings.iter().find(|reading| reading.uid == goal.uid), now);
            if now.saturating_sub(begin) >= limit_ms {
                goal.give_up(limit_ms);
            }
        }
        progress.show(console, &goals);
        if goals.iter().all(Goal::is_settled) {
            return outcome(client, &goals, console);
        }
        console.time.pause(Duration::from_millis(limits::DEPLOY_POLL_MS));
    }
}

fn is_awaited(goals: &[Goal], one: &Workload) -> bool {
    goals.iter().any(|goal| goal.uid == one.uid && !goal.is_settled())
}

/// Reads the workloads that are not there yet: a single one by itself, more in one list.
fn read(client: &Client, goals: &[Goal], console: &mut Console) -> Result<Vec<Workload>, Failure> {
    let open: Vec<&Goal> = goals.iter().filter(|goal| !goal.is_settled()).collect();
    match open.as_slice() {
        [] => Ok(Vec::new()),
        [goal] => match client.get(&format!("/v1/ms/{}", encode(&goal.uid)), console) {
            Ok(workload) => Ok(vec![workload]),
            Err(CallError::Refused(404, _)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        },
        _ => Ok(client.get::<List<Workload>>("/v1/ms", console)?.items),
    }
}

fn outcome(client: &Client, goals: &[Goal], console: &mut Console) -> Result<(), Failure> {
    let mut failed = 0;
    for goal in goals {
        if let Verdict::Failed(why) = goal.verdict() {
            failed += 1;
            Failure::failed(format!("{}: {why}", goal.key)).tell(console.err)?;
        }
    }
    if failed == 0 {
        return Ok(());
    }
    // What holds all of them up is not among what each says of itself.
    let hint = match client.get::<Status>("/v1/system/status", console) {
        Ok(status) if !status.engine.up => "the engine is away; `bargee status` says more",
        _ => "`bargee inspect NAME` and `bargee logs NAME` say more",
    };
    Err(Failure::told(Exit::Failed).with_hint(hint))
}
