//! Power cuts: at each sync of an apply the process ends, and all that no sync had made durable by
//! then is lost. What was answered is there, and nothing is there by half.

use std::thread;

use crate::database;
use crate::durable::{Disk, LOG};
use crate::kit::{Places, expect_all_known, rest, start_again_and_compare};
use crate::support::at_rest::{Outcome, Scene, Wanted};
use crate::support::device::{Device, services};
use crate::support::strace::{SYNCS, die_at_sync};
use crate::support::{side_by_side, until};

/// Devices that are at work at the same time.
const AT_WORK: usize = 3;
const NAMES: [&str; 3] = ["a", "b", "c"];
const APPLY: &str = "/v1/deploy/microservices:apply";

fn wanted(answered: bool) -> Vec<Wanted> {
    let running = Outcome::Running(1);
    let outcomes = if answered { vec![running] } else { vec![running, Outcome::Gone] };
    let applied = NAMES.map(|name| Wanted::any_of(&format!("default/{name}"), &outcomes));
    let before = Wanted::exactly("default/before", running);
    applied.into_iter().chain([before]).collect()
}

fn is_over(device: &Device) -> Option<Scene> {
    device.scene().filter(|scene| scene.problems(&wanted(true)).is_empty())
}

/// Counts the syncs of the apply, and what came of them.
fn count_syncs() -> usize {
    let device = Device::running(&["before"]);
    let (mut disk, strace) = Disk::watch(&device, &[]);
    device.deploy(&services(&NAMES));
    until("all to run", || is_over(&device));
    let syncs = strace.count(SYNCS);
    disk.replay(&strace.detach());
    println!("an apply of {} workloads: {:?}", NAMES.len(), disk.syncs);
    let of_log = disk.syncs.iter().filter(|name| *name == LOG).count();
    // Each transaction ends after one more sync than the one before it.
    let one_each: Vec<_> = (0..disk.commits.len()).collect();
    assert_eq!(disk.commits, one_each, "one sync for each transaction");
    assert!(disk.commits.len() <= of_log + 1, "but for one that is under way");
    syncs
}

/// Cuts the power at the sync after so many others.
fn cut_at(number: usize, places: &Places) {
    let place = places.take();
    let mut device = Device::running(&["before"]);
    let (mut disk, strace) = Disk::watch(&device, &["-e", &die_at_sync(number)]);
    let answered = thread::scope(|scope| {
        let apply = scope.spawn(|| device.ask("POST", APPLY, &services(&NAMES)));
        until("the agent to die", || {
            let over = apply.is_finished() && is_over(&device).is_some();
            (device.is_dead() || over).then_some(())
        });
        device.send_sigkill();
        apply.join().unwrap()
    });
    assert!(answered.as_ref().is_none_or(|(status, _)| *status == 200), "{answered:?}");
    device.kill9();
    disk.replay(&strace.wait());
    disk.cut_power();
    expect_all_known(&device);
    // The file beside the database would make good what that has lost.
    let written = database::workloads(&device.data("bargee.db")).len();
    assert!(answered.is_none() || written == 1 + NAMES.len(), "{written} workloads are written");

    let wanted = wanted(answered.is_some());
    device.launch();
    let (scene, _place) = rest(&device, &wanted, place);
    let there = scene.workloads.len();
    assert!([1, 1 + NAMES.len()].contains(&there), "an apply holds whole or not: {there}");
    start_again_and_compare(&mut device, &wanted, &scene);
    println!("cut at sync {number}: answered {}, {there} workloads", answered.is_some());
}

#[test]
fn b22_what_was_answered_survives_a_power_cut_at_any_sync() {
    let syncs = count_syncs();
    assert!(syncs >= 4, "declarations, the file beside them, intents and settlements: {syncs}");
    let places = Places::new(AT_WORK);
    let named: Vec<_> = (0..syncs).map(|number| (format!("sync {number}"), number)).collect();
    let cases: Vec<_> = named.iter().map(|(name, number)| (name.as_str(), *number)).collect();
    side_by_side(&cases, |number| cut_at(*number, &places));
}
