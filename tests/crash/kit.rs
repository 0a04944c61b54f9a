//! What the tests of crashes share.

use std::time::Duration;

use bargee::api::wire::Workload;
use parking_lot::{Condvar, Mutex};

use crate::database;
use crate::support::at_rest::{Scene, Wanted, until_at_rest};
use crate::support::device::Device;
use crate::support::scripted_engine::Route;
use crate::support::{pause, until};

/// A bound on what is done at the same time. Who only waits gives up its place.
#[derive(Debug)]
pub struct Places {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Places {
    /// So many.
    pub fn new(places: usize) -> Self {
        Self { free: Mutex::new(places), freed: Condvar::new() }
    }

    /// Waits for a place.
    pub fn take(&self) -> Place<'_> {
        let mut free = self.free.lock();
        self.freed.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Place(self)
    }
}

/// It is free again when this is dropped.
#[derive(Debug)]
pub struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

/// Waits until everything is at rest. What may still be made late is looked for 20 s later: for
/// that time the place is given up.
pub fn rest<'a>(device: &Device, wanted: &[Wanted], place: Place<'a>) -> (Scene, Place<'a>) {
    let places = place.0;
    let look = |scene: &Scene| Scene { journal: Vec::new(), ..scene.clone() };
    let mut place = Some(place);
    until_at_rest(wanted, || {
        let scene = device.scene()?;
        if place.is_some() && scene.workloads.iter().any(is_on_probation) {
            // For 30 s nothing happens.
            place = None;
        }
        Some(look(&scene))
    });
    drop(place);
    until("the journal to be empty", || {
        let body = device.get("/v1/journal")?.1;
        if body.contains("\"items\":[]") {
            return Some(());
        }
        // Many wait at the same time.
        pause(Duration::from_millis(250));
        None
    });
    let place = places.take();
    (until_at_rest(wanted, || device.scene()), place)
}

fn is_on_probation(workload: &Workload) -> bool {
    workload.state_info.contains("has to run for")
}

/// Starts the agent once more, which must not change anything.
pub fn start_again_and_compare(device: &mut Device, wanted: &[Wanted], before: &Scene) {
    device.kill9();
    device.engine.forget_requests();
    device.launch();
    let after = until_at_rest(wanted, || device.scene());
    assert_eq!(after.still(), before.still());
    assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());
    assert_eq!(device.engine.count(Route::MakeNetwork), 0);
    assert_eq!(device.engine.count(Route::RemoveNetwork), 0);
}

/// Whatever was lost, the database knows of every container: by its workload, or by an entry.
pub fn expect_all_known(device: &Device) {
    let database = device.data("bargee.db");
    let known = [database::workloads(&database), database::entries(&database)].concat();
    for made in device.engine.containers() {
        let is_known = known.iter().any(|(_, text)| text.contains(&made.name));
        assert!(is_known, "nothing is written about {}: {known:?}", made.name);
    }
}
