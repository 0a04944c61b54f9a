//! Engines that are broken in one way, for suites that have to find it.

use serde_json::{Value, json};

use super::bend::Route;
use super::http::{Reply, Request};
use super::world::World;

/// What is wrong with an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// A start is answered before it is done: that comes after the next look at the container.
    EarlyStart,
    /// A listing leaves out the container that was made last.
    ShortListing,
    /// A removal is answered and not done.
    UndoneRemoval,
    /// A signal is answered and not sent.
    UndoneSignal,
    /// A name that is taken is given once more.
    SharedName,
    /// Every exit code is 0.
    LostExitCode,
    /// Every run began when the first one did.
    OldStartTime,
    /// Nothing was killed for memory.
    UntoldMemory,
    /// A path of the host that is not there is made up.
    MadeUpPath,
    /// A network goes although a container runs on it.
    RemovedNetwork,
    /// What a container is called on its network is forgotten.
    LostAliases,
    /// A port is published that nobody is told.
    UntoldPort,
    /// The end of a log is missing.
    ShortLog,
    /// A volume goes with its container.
    LostVolume,
}

/// Answers a request in the place of the engine.
pub fn instead(world: &mut World, route: Route, object: &str, request: &Request) -> Option<Reply> {
    let id = world.find(object).map(|made| made.id.clone());
    match (world.flaw?, route) {
        (Flaw::EarlyStart, Route::Start) => {
            world.early.push(id?);
            Some(Reply::empty(204))
        }
        (Flaw::UndoneRemoval, Route::Remove) | (Flaw::UndoneSignal, Route::Kill) => {
            id.map(|_| Reply::empty(204))
        }
        (Flaw::SharedName, Route::Create) => {
            // The other one keeps its name, too, but is not looked for by it.
            world.containers.get_mut(&id?)?.name.push(' ');
            None
        }
        (Flaw::MadeUpPath, Route::Create) => {
            let mut body: Value = serde_json::from_slice(&request.body).ok()?;
            body["HostConfig"]["Mounts"].take();
            let made = world.create(object, &body).ok()?;
            Some(Reply::json(201, &json!({"Id": made, "Warnings": []})))
        }
        (Flaw::RemovedNetwork, Route::RemoveNetwork) => {
            world.networks.remove(object).map(|_| Reply::empty(204))
        }
        (Flaw::LostVolume, Route::Remove) => {
            world.volumes.values_mut().for_each(|files| files.clear());
            None
        }
        _ => None,
    }
}

/// Spoils what the engine has answered.
pub fn spoil(world: &mut World, route: Route, reply: &mut Reply) {
    let Some(flaw) = world.flaw else { return };
    let Ok(mut body) = serde_json::from_str::<Value>(&reply.body) else { return };
    match (flaw, route) {
        (Flaw::ShortListing, Route::List) => {
            let last = world.last_made.clone();
            body.as_array_mut().into_iter().for_each(|all| all.retain(|one| one["Id"] != *last));
        }
        (Flaw::LostExitCode, Route::Inspect) => body["State"]["ExitCode"] = 0.into(),
        (Flaw::OldStartTime, Route::Inspect) => {
            body["State"]["StartedAt"] = "2026-01-01T00:00:00Z".into();
        }
        (Flaw::UntoldMemory, Route::Inspect) => body["State"]["OOMKilled"] = false.into(),
        (Flaw::UntoldPort, Route::Inspect) => body["NetworkSettings"]["Ports"] = json!({}),
        (Flaw::LostAliases, Route::Inspect) => {
            let networks = body["NetworkSettings"]["Networks"].as_object_mut();
            for (_, network) in networks.into_iter().flatten() {
                network["Aliases"] = json!([]);
            }
        }
        (Flaw::EarlyStart, Route::Inspect) => {
            for id in std::mem::take(&mut world.early) {
                let _ = world.start(&id);
            }
        }
        _ => return,
    }
    reply.body = body.to_string();
}
