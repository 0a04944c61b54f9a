//! A journal that no agent of this version left so: entries that cannot be read, ten thousand of
//! them, and one whose container cannot be looked at. The start is bounded, and people can see and
//! handle what is left.

use std::time::Duration;

use bargee::api::wire::Entry;
use bargee::os::clock;

use crate::database::{Row, damage, insert};
use crate::support::at_rest::{Outcome, Wanted, until_at_rest};
use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Route};
use crate::support::{side_by_side, until};

/// Above all numbers that the agent came to itself.
const SEQ: u64 = 1_000_000;
/// No workload has it.
const UID: &str = "01234567-89ab-4cde-8f01-23456789abcd";
/// At most this long an agent refuses changes, and what a slow machine adds.
const ACCEPTED: Duration = Duration::from_secs(60 + 15);

fn running(key: &str) -> Wanted {
    Wanted::exactly(key, Outcome::Running(1))
}

/// A device with `web`, whose journal has these rows besides, and whose agent was just started.
fn with_rows(rows: &[Row]) -> Device {
    let mut device = Device::running(&["web"]);
    device.kill9();
    insert(&device.data("bargee.db"), rows);
    device.engine.forget_requests();
    device.launch();
    device
}

/// Waits until a change is accepted; how long after `begin`.
fn until_accepted(device: &Device, begin: u64) -> Duration {
    until("a change to be accepted", || {
        let (status, body) = device.apply(&service("new"));
        assert!(status == 200 || body.contains("recovering"), "{status}: {body}");
        (status == 200).then_some(())
    });
    Duration::from_millis(clock::boot_ms() - begin)
}

/// What `bargee journal ls` has in the line of an entry.
fn line(device: &Device, seq: u64) -> String {
    let listed = device.cli(&["journal", "ls"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    let is_it = |line: &&str| line.split_whitespace().next() == Some(&seq.to_string());
    let line = listed.out.lines().find(is_it);
    line.unwrap_or_else(|| panic!("no {seq}: {}", listed.out)).to_owned()
}

/// Waits until so many entries are left, which all fail.
fn until_counted(device: &Device, failing: usize) {
    until(format_args!("{failing} entries to be left"), || {
        let counts = device.status().journal;
        ((counts.entries, counts.failing) == (failing, failing)).then_some(())
    });
}

fn seqs(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.seq).collect()
}

#[test]
fn what_cannot_be_read_is_kept_and_counted_until_somebody_drops_it() {
    let good = |seq| Row::create_workload(seq, "remove", UID, "bargee-gone-0123abcd");
    let unknown = Row { kind: "fold-space".to_owned(), ..good(SEQ) };
    let broken = Row { body: "{\"uid\": \"0123".to_owned(), ..good(SEQ + 1) };
    let odd = Row::create_workload(SEQ + 2, "sideways", UID, "bargee-gone-0123abcd");
    let foreign = good(SEQ + 3);
    let damaged = good(SEQ + 4);

    let mut device = Device::running(&["web"]);
    device.kill9();
    let database = device.data("bargee.db");
    insert(&database, &[unknown, broken, odd, foreign, damaged.clone()]);
    damage(&database, &damaged);
    device.start();
    // The one that only another process wrote is done with: its container is not there.
    until("the readable one to be settled", || {
        (seqs(&device.journal()) == [SEQ, SEQ + 1, SEQ + 2, SEQ + 4]).then_some(())
    });
    device.deploy(&service("new"));
    device.until_running(&["web", "new"]);
    until_counted(&device, 4);
    for (seq, kind, why) in [
        (SEQ, "fold-space", "type"),
        (SEQ + 1, "create-workload", "cannot be read"),
        (SEQ + 2, "create-workload", "sideways"),
        (SEQ + 4, "create-workload", "checksum"),
    ] {
        let line = line(&device, seq);
        assert!(line.contains(kind) && line.contains(why), "{line}");
        let number = seq.to_string();
        let replayed = device.cli(&["journal", "replay", &number]);
        assert_eq!(replayed.code, 5, "{}", replayed.err);
        assert!(replayed.err.contains("drop it"), "{}", replayed.err);
        let shown = device.cli(&["journal", "show", &number]);
        assert!(shown.out.contains(kind), "{}", shown.out);
        let dropped = device.cli(&["journal", "drop", &number, "--yes"]);
        assert_eq!(dropped.code, 0, "{}", dropped.err);
    }
    let wanted = [running("default/web"), running("default/new")];
    until_at_rest(&wanted, || device.scene());
    device.kill9();
    device.start();
    until_at_rest(&wanted, || device.scene());
}

#[test]
fn ten_thousand_entries_hold_up_changes_for_a_bounded_time() {
    let rows: Vec<Row> = (0..10_000)
        .map(|number| {
            let direction = if number % 2 == 0 { "create" } else { "remove" };
            Row::create_workload(SEQ + number, direction, UID, &format!("bargee-x-{number:08x}"))
        })
        .collect();
    let begin = clock::boot_ms();
    let device = with_rows(&rows);
    assert_eq!(device.get("/health/live").unwrap().0, 200);
    assert!(device.status().journal.entries > 0);
    let took = until_accepted(&device, begin);
    println!("10,000 entries: changes accepted after {took:?}");
    assert!(took < ACCEPTED, "{took:?}");
    let wanted = [running("default/web"), running("default/new")];
    until_at_rest(&wanted, || device.scene());
    assert_eq!(device.engine.count(Route::Remove), 0, "there was nothing to remove");
    println!("all settled after {} ms", clock::boot_ms() - begin);
}

/// A device whose agent died before it removed the container of `old`, which hangs whenever it is
/// looked at.
fn with_one_that_hangs() -> (Device, u64) {
    let mut device = Device::running(&["web", "old"]);
    device.engine.forget_requests();
    device.engine.bend(Route::Remove, Bend::Hang);
    assert_eq!(device.ask("DELETE", "/v1/ms/old", "").unwrap().0, 202);
    until("the removal", || (device.engine.count(Route::Remove) > 0).then_some(()));
    device.kill9();
    device.engine.straighten();
    for route in [Route::Inspect, Route::Remove] {
        device.engine.bend_for(route, "bargee-old-", Bend::Hang);
    }
    let begin = clock::boot_ms();
    device.launch();
    (device, begin)
}

#[test]
fn one_that_hangs_holds_up_changes_for_its_time_only() {
    let cases: [(&str, fn()); 2] = [
        ("replayed on demand", one_that_hangs_is_replayed),
        ("dropped", one_that_hangs_is_dropped),
    ];
    side_by_side(&cases, |case| case());
}

fn one_that_hangs_is_replayed() {
    let (device, begin) = with_one_that_hangs();
    assert_eq!(device.get("/health/live").unwrap().0, 200);
    assert_eq!(device.status().recovering, "0 of 1");
    let took = until_accepted(&device, begin);
    println!("one that hangs: changes accepted after {took:?}");
    assert!(took < ACCEPTED, "{took:?}");
    device.until_running(&["web", "new"]);

    until_counted(&device, 1);
    let seq = device.journal()[0].seq;
    let line = line(&device, seq);
    assert!(line.contains("remove") && line.contains("bargee-old-"), "{line}");
    println!("{line}");

    device.engine.straighten();
    let replayed = device.cli(&["journal", "replay", &seq.to_string()]);
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    let gone = Wanted::exactly("default/old", Outcome::Gone);
    until_at_rest(&[running("default/web"), running("default/new"), gone], || device.scene());
}

fn one_that_hangs_is_dropped() {
    let (mut device, begin) = with_one_that_hangs();
    let took = until_accepted(&device, begin);
    assert!(took < ACCEPTED, "{took:?}");
    let seq = device.journal()[0].seq.to_string();
    let dropped = device.cli(&["journal", "drop", &seq, "--yes"]);
    assert_eq!(dropped.code, 0, "{}", dropped.err);
    until("the entry to be gone", || {
        let left = device.journal();
        left.iter().all(|entry| entry.seq.to_string() != seq).then_some(())
    });
    device.until_running(&["web", "new"]);
    // The row still says that it goes: the next look, of whichever agent, ends it.
    device.kill9();
    device.engine.straighten();
    device.launch();
    let gone = Wanted::exactly("default/old", Outcome::Gone);
    until_at_rest(&[running("default/web"), running("default/new"), gone], || device.scene());
}
