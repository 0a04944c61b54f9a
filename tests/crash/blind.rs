//! An engine whose listing fails, hangs, or is empty while it does not even answer a ping: what was
//! in flight stays as it is until there is a listing that can be believed.

use std::time::Duration;

use bargee::api::wire::Entry;

use crate::kit::start_again_and_compare;
use crate::support::at_rest::{Outcome, Scene, Wanted, until_at_rest};
use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{pause, side_by_side, until};

/// Each trouble lasts as long as two looks at the engine and more.
const LASTS: Duration = Duration::from_secs(12);

/// A device whose agent died while it created `web` and removed `old`; `other` runs.
fn cut_off() -> Device {
    let mut device = Device::running(&["other", "old"]);
    device.engine.forget_requests();
    device.engine.bend_for(Route::Create, "bargee-web-", Bend::Lost);
    device.engine.bend_for(Route::Inspect, "bargee-web-", Bend::Hang);
    device.engine.bend_for(Route::Remove, "bargee-old-", Bend::Hang);
    device.deploy(&service("web"));
    assert_eq!(device.ask("DELETE", "/v1/ms/old", "").unwrap().0, 202);
    until("both to be asked for", || {
        let count = |route| device.engine.count(route);
        (count(Route::Create) == 1 && count(Route::Remove) == 1).then_some(())
    });
    device.kill9();
    device.engine.straighten();
    device.engine.forget_requests();
    device
}

/// Troubles one after another, without a moment in between in which all is well.
fn troubles(device: &Device, check: impl Fn(&str)) {
    let troubles: [(&str, &[(Route, Bend)]); 3] = [
        ("500", &[(Route::List, Bend::Status(500))]),
        ("hangs", &[(Route::List, Bend::Hang)]),
        (
            "empty, and no ping",
            &[(Route::List, Bend::Body("[]".to_owned())), (Route::Ping, Bend::Status(500))],
        ),
    ];
    for (trouble, bends) in troubles {
        device.engine.bend_only(bends);
        device.engine.end_connections();
        check(trouble);
    }
    device.engine.straighten();
}

const WANTED: [(&str, Outcome); 3] = [
    ("default/other", Outcome::Running(1)),
    ("default/web", Outcome::Running(1)),
    ("default/old", Outcome::Gone),
];

/// Troubles of a device, and what they ended in.
type Part = fn(&mut Device) -> Scene;

/// From the start on.
fn in_the_dark(device: &mut Device) -> Scene {
    let fingerprint = device.fingerprint();
    device.engine.bend(Route::List, Bend::Status(500));
    device.launch();
    let entries = device.journal();
    assert_eq!(entries.len(), 2, "{entries:?}");
    troubles(device, |trouble| {
        pause(LASTS);
        assert_eq!(device.engine.count_changes(), 0, "{trouble}: {}", device.engine.told());
        assert_eq!(device.fingerprint(), fingerprint, "{trouble}");
        assert_eq!(names(&device.journal()), names(&entries), "{trouble}");
    });
    until_at_rest(&WANTED.map(Wanted::from), || device.scene())
}

/// While it runs.
fn going_dark(device: &mut Device) -> Scene {
    device.launch();
    let wanted = WANTED.map(Wanted::from);
    let before = until_at_rest(&wanted, || device.scene());
    device.engine.forget_requests();
    troubles(device, |trouble| {
        pause(LASTS);
        assert_eq!(device.engine.count_changes(), 0, "{trouble}: {}", device.engine.told());
    });
    let after = until_at_rest(&wanted, || device.scene());
    assert_eq!(after.still(), before.still());
    after
}

#[test]
fn nothing_is_done_while_no_listing_can_be_believed() {
    let cases: [(&str, Part); 2] = [("from the start", in_the_dark), ("while it runs", going_dark)];
    side_by_side(&cases, |case| {
        let mut device = cut_off();
        let scene = case(&mut device);
        start_again_and_compare(&mut device, &WANTED.map(Wanted::from), &scene);
    });
}

/// Number, direction and instance of every entry.
fn names(entries: &[Entry]) -> Vec<(u64, &str, &str)> {
    entries.iter().map(|one| (one.seq, &*one.direction, &*one.instance)).collect()
}
