//! What has to hold at rest, whenever and however often the agent died.

use super::super::*;
use super::scenario::{Model, Wanted};
use crate::domain::record::{Desired, Record};

/// What does not hold, given how it may stand.
pub fn faults_at_rest(world: &World, may_be: &[Model]) -> Vec<String> {
    let mut faults = Vec::new();
    let unfit: Vec<Vec<String>> = may_be.iter().map(|model| misfits(world, model)).collect();
    if unfit.iter().all(|misfits| !misfits.is_empty()) {
        faults.push(format!("fits none of {may_be:?}: {unfit:?}"));
    }
    faults.extend(leftovers(world));
    faults.extend(inconsistencies(world));
    faults
}

/// In what the world differs from the model.
fn misfits(world: &World, model: &Model) -> Vec<String> {
    let rows = &world.store.kept.rows;
    let Some(wanted) = &model.wanted else {
        return if rows.is_empty() { Vec::new() } else { vec![format!("rows: {:?}", rows.keys())] };
    };
    let row = match rows.get(&wanted.uid) {
        Some(row) if rows.len() == 1 => row,
        _ => return vec![format!("rows: {:?}", rows.keys())],
    };
    let mut misfits = Vec::new();
    if row.declared.spec.image != wanted.declared || row.desired != wanted.desired {
        misfits.push(format!("declares {} {:?}", row.declared.spec.image, row.desired));
    }
    let state = world.view("web").state;
    let expected = match wanted.desired {
        Desired::Running => State::RunningOk,
        Desired::Stopped => State::StoppedOk,
        Desired::Deleted => State::Removed,
    };
    if state != expected {
        misfits.push(format!("is {state:?}: {}", world.view("web").info));
    }
    misfits.extend(container_misfits(world, wanted));
    misfits
}

fn container_misfits(world: &World, wanted: &Wanted) -> Vec<String> {
    let of_it = world.engine.containers.values().filter(|made| made.tags.uid == wanted.uid);
    let running: Vec<&Made> = of_it.filter(|made| made.phase == Phase::Running).collect();
    match (&running[..], wanted.desired) {
        ([one], Desired::Running) => {
            let mut misfits = Vec::new();
            if one.image != wanted.runs {
                misfits.push(format!("runs {}", one.image));
            }
            let same_boot = world.boot == world::BOOT;
            if same_boot && one.started_at_ns / 1_000_000 < wanted.started_after_ms {
                misfits.push("was not started again".to_owned());
            }
            misfits
        }
        ([], Desired::Stopped) => Vec::new(),
        _ => vec![format!("containers that run: {running:?}")],
    }
}

/// What is beside the containers of the rows.
pub fn leftovers(world: &World) -> Vec<String> {
    let rows = &world.store.kept.rows;
    let beside = world.engine.containers.iter().filter(|(name, made)| {
        let row = rows.get(&made.tags.uid);
        let current = row.and_then(|row| row.current.as_ref());
        // What was stopped on probation goes on with that at its next start.
        let stopped = row.filter(|row| row.desired == Desired::Stopped);
        let previous = stopped.and_then(|row| row.previous.as_ref()).map(|kept| &kept.instance);
        !current
            .into_iter()
            .chain(previous)
            .any(|kept| kept.name.as_str() == *name && kept.container.as_ref() == Some(&made.id))
    });
    beside.map(|(name, made)| format!("{name} is left behind: {made:?}")).collect()
}

/// What is not settled, and what is not durable.
fn inconsistencies(world: &World) -> Vec<String> {
    let mut faults = Vec::new();
    let kept = &world.store.kept;
    if !kept.entries.is_empty() {
        faults.push(format!("entries are left: {:?}", kept.entries));
    }
    if !kept.whole {
        faults.push("the store is not whole".to_owned());
    }
    for (uid, row) in &kept.rows {
        let on_probation = row.previous.is_some() && row.desired != Desired::Stopped;
        if row.next.is_some() || !row.discards.is_empty() || on_probation {
            let Record { next, discards, previous, .. } = row;
            faults.push(format!("{uid} has next {next:?}, discards {discards:?}, {previous:?}"));
        }
        let held = world.machine.workloads.get(uid).map(|w| &w.record);
        if held != Some(row) {
            faults.push(format!("{row:?} is durable of {held:?}"));
        }
    }
    if !world.machine.steps.is_empty() {
        faults.push(format!("steps are under way: {:?}", world.machine.steps));
    }
    faults.extend(world.twins.iter().map(|twins| format!("lived together: {twins}")));
    faults.extend(world.logs.iter().filter(|line| line.contains("bug")).cloned());
    faults
}
