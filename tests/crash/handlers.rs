//! That the journal is needed: without its entries of a type something is left on the engine. The
//! entries are taken out of the table while no agent runs, at points at which they are the only
//! trace: everywhere else the row of the workload says the same.
//!
//! There is no such point for `replace-workload`: the row names the old container among those that
//! go from the very commit on that writes the entry until the one that settles it.

use std::time::Duration;

use bargee::limits;

use crate::database::take_out;
use crate::late::{cut_off_in_a_create, is_there, until_looked_for};
use crate::support::at_rest::{Outcome, Wanted, until_at_rest};
use crate::support::device::Device;
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{pause, side_by_side, until};

const CASES: [(&str, bool); 2] = [("with its entry", true), ("without", false)];

/// Starts the agent with or without the one entry, and holds that the container of this name is
/// gone with it and left without it.
fn is_needed(device: &mut Device, words: &str, name: &str, kept: bool, wanted: &[Wanted]) {
    if !kept {
        assert_eq!(take_out(&device.data("bargee.db"), "create-workload", words), 1);
    }
    device.launch();
    if kept {
        until_at_rest(wanted, || device.scene());
        return assert!(!is_there(device, name));
    }
    let only_that_is_left = || {
        let problems = device.scene()?.problems(wanted);
        problems.iter().all(|problem| problem.contains(name)).then_some(())
    };
    until("all but that to be at rest", only_that_is_left);
    pause(Duration::from_secs(5));
    assert!(only_that_is_left().is_some() && is_there(device, name), "{:?}", device.scene());
}

/// A create that comes late: the workload is removed since, and the agent that did so dies as well.
/// Only then the engine makes the container.
#[test]
fn a_late_create_is_found_by_its_entry_only() {
    side_by_side(&CASES, |kept| {
        let (mut device, name) = cut_off_in_a_create();
        device.start();
        until_looked_for(&device, &name);
        let removed = device.cli(&["rm", "web"]);
        assert_eq!(removed.code, 0, "{}", removed.err);
        device.kill9();
        device.engine.straighten();
        until("the late one to be made", || is_there(&device, &name).then_some(()));
        let wanted = [
            Wanted::exactly("default/web", Outcome::Gone),
            Wanted::exactly("default/other", Outcome::Running(1)),
        ];
        is_needed(&mut device, "\"create\"", &name, *kept, &wanted);
    });
}

/// A container of this store that no row knows: once it was there for 2 minutes, its removal is
/// written down, and the agent dies in it. Without the entry the 2 minutes begin again.
#[test]
fn a_removal_without_a_row_is_finished_by_its_entry_only() {
    side_by_side(&CASES, |kept| {
        let mut device = Device::running(&["other"]);
        let name = "bargee-orphan-0123abcd";
        let mut labels = device.container("other").labels;
        labels.insert("bargee.name".to_owned(), "orphan".to_owned());
        labels.insert("bargee.instance".to_owned(), name.to_owned());
        labels.insert("bargee.uid".to_owned(), "01234567-89ab-4cde-8f01-23456789abcd".to_owned());
        device.engine.bend_for(Route::Remove, name, Bend::Hang);
        device.engine.add_labelled(name, labels);
        // The stream that is opened again brings a listing, at once and after the time.
        device.engine.end_connections();
        let looks = device.engine.count(Route::List);
        until("it to be seen", || (device.engine.count(Route::List) > looks).then_some(()));
        pause(Duration::from_millis(limits::ORPHAN_MS));
        device.engine.end_connections();
        until("its removal", || (device.engine.count(Route::Remove) > 0).then_some(()));
        device.kill9();
        device.engine.straighten();
        let wanted = [Wanted::exactly("default/other", Outcome::Running(1))];
        is_needed(&mut device, "\"remove\"", name, *kept, &wanted);
    });
}
