//! Workers: one step on one engine, one event back. A panic becomes an event.

use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use super::inbox::Mail;
use super::{Rooms, host};
use crate::domain::effect::{ListId, Op, Step};
use crate::domain::event::{Event, Outcome};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::gather::Gather;
use crate::domain::names::StoreId;
use crate::domain::observed::Listed;
use crate::engine::Engine;
use crate::os::{presence, thread};

/// What a worker does next.
#[derive(Debug)]
pub enum Job {
    /// A step for one workload.
    Step(Step),
    /// A listing.
    List(ListId),
}

/// Starts a worker, whose thread is called `name`. It ends when the channel of its jobs closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(name: &str, rooms: &Rooms, jobs: Receiver<Job>) -> io::Result<JoinHandle<()>> {
    let rooms = rooms.clone();
    thread::spawn(name, move || {
        for job in jobs {
            let event = match job {
                Job::Step(step) => {
                    let result = guarded("carry out a step", || carry_out(&rooms.engine, &step.op));
                    Event::StepDone(step.id, result)
                }
                Job::List(id) => Event::Listing(id, list(&rooms)),
            };
            if rooms.inbox.send(Mail::Event(event)).is_err() {
                return;
            }
        }
    })
}

/// A listing, and ahead of it what it is to be held against. If that cannot be told, the listing
/// is worth nothing either.
fn list(rooms: &Rooms) -> Result<Vec<Listed>, Fault> {
    let tell = |event| drop(rooms.inbox.send(Mail::Event(event)));
    if rooms.published.take_identity() {
        tell(Event::Identity(guarded("identify the engine", || rooms.engine.identity())?));
    }
    let items = guarded("list containers", || rooms.engine.list())?;
    if let Some(neighbours) = neighbours(&items, &rooms.store) {
        tell(Event::Neighbours(neighbours));
    }
    Ok(items)
}

/// Which other stores in a listing have an agent that runs on this device; `None`: there is no
/// other store.
fn neighbours(items: &[Listed], own: &StoreId) -> Option<BTreeSet<StoreId>> {
    let others = items.iter().map(|line| &line.tags.store).filter(|store| *store != own);
    let others: BTreeSet<&StoreId> = others.gather();
    let is_kept = |store: &&StoreId| presence::is_present(&presence_name(store));
    (!others.is_empty()).then(|| others.into_iter().filter(is_kept).cloned().gather())
}

/// The sign that the agent of a store runs.
pub fn presence_name(store: &StoreId) -> String {
    format!("bargee/{store}")
}

/// Runs `call`; a panic in it is a fault like any other.
pub fn guarded<T>(what: &'static str, call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        log::error!("bug: panic while trying to {what}: {text}");
        Err(Fault::new(FaultKind::Panicked, what, "", format!("bug: {text}")))
    })
}

fn carry_out(engine: &Engine, op: &Op) -> Result<Outcome, Fault> {
    match op {
        Op::Inspect(name_or_id) => Ok(match engine.inspect(name_or_id)? {
            Some(reading) => Outcome::Found(Box::new(reading)),
            None => Outcome::NotFound,
        }),
        Op::CheckPaths(declared) => host::check(&declared.spec).map(|()| Outcome::PathsThere),
        Op::Create(new) => {
            host::check(&new.declared.spec)?;
            host::check_ports(&new.ports_to_check)?;
            engine.create(new).map(Outcome::Created)
        }
        Op::Start(id, declared) => {
            if let Some(declared) = declared {
                host::check(&declared.spec)?;
            }
            engine.start(id)?;
            match engine.inspect(id.as_str())? {
                Some(reading) => Ok(Outcome::Started(Box::new(reading))),
                None => Err(Fault::new(
                    FaultKind::NoContainer,
                    "inspect container",
                    id.as_str(),
                    "it vanished right after its start",
                )),
            }
        }
        Op::Signal(id, signal) => engine.signal(id, signal).map(|()| Outcome::Signalled),
        Op::Remove(name_or_id) => engine.remove(name_or_id).map(|()| Outcome::Removed),
        Op::RemoveNetwork(name) => engine.remove_network(name).map(|()| Outcome::NetworkRemoved),
    }
}
