//! A create that the engine finishes when the agent that asked for it is dead, and the next one has
//! looked for it in vain.

use crate::kit::start_again_and_compare;
use crate::support::at_rest::{Outcome, Wanted, until_at_rest};
use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{side_by_side, until};

/// A device whose agent died in the middle of the create of `web`, which is not done yet, and does
/// not run again yet; the name of the instance.
pub fn cut_off_in_a_create() -> (Device, String) {
    let mut device = Device::running(&["other"]);
    device.engine.bend_next(Route::Create, 1, Bend::Postponed);
    device.engine.forget_requests();
    device.deploy(&service("web"));
    let name = until("the engine to be asked", || {
        let heard = device.engine.heard();
        heard.into_iter().find(|(route, _)| *route == Route::Create).map(|(_, name)| name)
    });
    device.kill9();
    device.engine.forget_requests();
    (device, name)
}

/// Waits until the agent has looked for the instance.
pub fn until_looked_for(device: &Device, name: &str) {
    until("the instance to be looked for", || {
        let heard = device.engine.heard();
        let looks = |(route, of): &(Route, String)| {
            of == name && matches!(route, Route::Inspect | Route::Remove | Route::Create)
        };
        heard.iter().any(looks).then_some(())
    });
}

/// Whether a container of this name is there.
pub fn is_there(device: &Device, name: &str) -> bool {
    device.engine.containers().iter().any(|made| made.name == name)
}

/// What happens before it comes, and what is wanted then.
type Meanwhile = fn(&Device) -> Vec<Wanted>;

/// Its workload is declared still.
fn wanted_still(device: &Device) -> Vec<Wanted> {
    // Nothing is held up by what may still come.
    device.deploy(&service("more"));
    device.until_running(&["other", "more", "web"]);
    let keys = ["default/other", "default/more", "default/web"];
    keys.map(|key| Wanted::exactly(key, Outcome::Running(1))).into()
}

/// Its workload is removed before it comes.
fn not_wanted_any_more(device: &Device) -> Vec<Wanted> {
    let removed = device.cli(&["rm", "web"]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    let web = Wanted::exactly("default/web", Outcome::Gone);
    vec![Wanted::exactly("default/other", Outcome::Running(1)), web]
}

#[test]
fn a_create_that_is_finished_late_leaves_nothing_beside_what_is_wanted() {
    let cases: [(&str, Meanwhile); 2] =
        [("wanted still", wanted_still), ("not wanted any more", not_wanted_any_more)];
    side_by_side(&cases, |case| {
        let (mut device, name) = cut_off_in_a_create();
        device.start();
        until_looked_for(&device, &name);
        let wanted = case(&device);
        device.engine.straighten();
        until("the late one to be made", || is_there(&device, &name).then_some(()));
        let scene = until_at_rest(&wanted, || device.scene());
        start_again_and_compare(&mut device, &wanted, &scene);
    });
}
