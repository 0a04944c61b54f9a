//! A thousand workloads: what is asked of the engine does not grow with what does not change.

use std::time::Duration;

use bargee::limits::{ROW_WRITE_MS, STABLE_MS};

use crate::support::device::{Device, services};
use crate::support::scripted_engine::Route;
use crate::support::{pause, until};

const MANY: usize = 1_000;

#[test]
fn a_thousand_workloads_are_made_found_again_and_removed() {
    let names: Vec<String> = (0..MANY).map(|number| format!("w{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut device = Device::started();
    device.deploy(&services(&names));
    until_all_run(&device);
    assert_eq!(device.engine.count(Route::Create), MANY);
    assert_eq!(device.engine.count(Route::Start), MANY);
    assert_eq!(device.engine.count(Route::MakeNetwork), 1);
    let before = device.fingerprint();
    println!("resident memory with {MANY} workloads: {} KiB", device.memory_kib("VmRSS"));

    restart(&mut device);
    println!("after a restart: {} KiB", device.memory_kib("VmRSS"));
    assert_eq!(device.fingerprint(), before);
    full_compare(&device);
    one_exit(&mut device);
    remove_all(&device, &names);
}

fn until_all_run(device: &Device) {
    until("all to run", || {
        let counts = device.status().counts;
        (counts.get("Running") == Some(&MANY)).then_some(())
    });
}

/// One list, and ahead of it one question who the engine is; nothing else.
fn restart(device: &mut Device) {
    // Rows of observations are written every 5 s.
    device.sigterm();
    let pids_are_believed = device.show_processes();
    device.engine.forget_requests();
    device.start();
    until_all_run(device);
    pause(Duration::from_secs(1));
    let mut heard: Vec<Route> = device.engine.heard().into_iter().map(|(route, _)| route).collect();
    if !pids_are_believed {
        heard.retain(|route| *route != Route::Inspect);
    }
    assert_eq!(heard, [Route::Ping, Route::Version, Route::Events, Route::Info, Route::List]);
}

/// One list, nothing else, and nothing is written.
fn full_compare(device: &Device) {
    // That each has proved itself is written once.
    pause(Duration::from_millis(STABLE_MS + ROW_WRITE_MS));
    device.engine.forget_requests();
    let before = (device.bytes_written(), device.files());
    until("the full compare", || (device.engine.count(Route::List) > 0).then_some(()));
    pause(Duration::from_secs(1));
    assert_eq!(device.engine.heard(), [(Route::List, String::new())]);
    assert_eq!((device.bytes_written(), device.files()), before);
}

/// One look judges the exit, one start follows, and one look reads the run that began.
fn one_exit(device: &mut Device) {
    let before = device.container("w500");
    let shown = device.workloads();
    device.engine.forget_requests();
    device.engine.exit(&before.name, 1);
    device.until_started_again("w500", &before);
    // Else it would count as gone: the others are seen.
    device.show_processes();
    device.until_state("w500", "Running(Ok)");
    pause(Duration::from_secs(1));
    let now = device.workloads();
    let text = |one| serde_json::to_string(one).unwrap();
    let changed = now.iter().zip(&shown).filter(|(now, before)| text(*now) != text(*before));
    assert_eq!(changed.map(|(now, _)| now.key()).collect::<Vec<_>>(), ["default/w500"]);
    let heard = device.engine.heard();
    let of = |route| heard.iter().filter(|one| **one == (route, before.id.clone())).count();
    assert_eq!((of(Route::Inspect), of(Route::Start)), (2, 1), "{heard:?}");
    // And one ping tells that the engine is not about to end.
    assert_eq!(device.engine.count(Route::Ping), 1, "{heard:?}");
    // A full compare may fall into this time.
    let lists = device.engine.count(Route::List);
    assert_eq!(heard.len(), 4 + lists, "{heard:?}");
}

fn remove_all(device: &Device, names: &[&str]) {
    let words = [&["rm"], names].concat();
    let removed = device.cli(&words);
    assert_eq!(removed.code, 0, "{:.2000}", removed.err);
    assert_eq!(device.workloads().len(), 0);
    assert_eq!(device.engine.containers(), []);
    assert_eq!(device.engine.networks(), [] as [String; 0]);
    assert_eq!(device.engine.count(Route::Remove), MANY);
}
