//! A damaged store: the agent starts and says so; no container is removed, doubled or restarted.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use crate::support::device::{Device, Fingerprint, service, services};
use crate::support::{pause, side_by_side, until};

/// Positions of bytes that are flipped, spread over the file.
const FLIPS: u64 = 20;

/// What is done to the files of a store.
type Damage = fn(&Device);

fn write(path: &Path, bytes: &[u8]) {
    File::create(path).unwrap().write_all(bytes).unwrap();
}

fn cut(path: &Path, to: impl FnOnce(u64) -> u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(to(length)).unwrap();
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x55], at).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

/// Damage that `workloads.json` makes good.
const MADE_GOOD: [(&str, Damage); 7] = [
    ("empty", |device| write(&device.data("bargee.db"), b"")),
    ("garbage", |device| write(&device.data("bargee.db"), &[0xa5; 20_000])),
    ("text", |device| write(&device.data("bargee.db"), b"not a database at all\n")),
    ("no database", |device| remove(&device.data("bargee.db"))),
    ("empty log", |device| {
        write(&device.data("bargee.db"), b"");
        write(&device.data("bargee.db-wal"), b"");
    }),
    ("garbage as log", |device| {
        write(&device.data("bargee.db"), b"");
        write(&device.data("bargee.db-wal"), &[0x5a; 9_000]);
    }),
    ("no database, no id", |device| {
        remove(&device.data("bargee.db"));
        remove(&device.data("store-id"));
    }),
];

/// Damage that the log makes good after a kill, and that may hit what is not needed.
const MADE_GOOD_SOMEHOW: [(&str, Damage); 3] = [
    ("half", |device| cut(&device.data("bargee.db"), |length| length / 2)),
    ("a page", |device| cut(&device.data("bargee.db"), |_| 4_096)),
    ("all but one byte", |device| cut(&device.data("bargee.db"), |length| length - 1)),
];

/// Three workloads; the last one is stopped.
fn device() -> Device {
    let device = Device::running(&["a", "b", "idle"]);
    let stopped = device.cli(&["stop", "idle"]);
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    device
}

fn stop(device: &mut Device, by_kill: bool) {
    if by_kill {
        device.kill9();
        return;
    }
    device.sigterm();
}

/// Starts the agent after `what`, and holds that everything is as it was.
fn start_and_compare(device: &mut Device, before: &Fingerprint, what: &str) {
    device.engine.forget_requests();
    let logged = device.log().len();
    device.start();
    device.until_running(&["a", "b"]);
    device.until_state("idle", "Stopped(Ok)");
    pause(Duration::from_millis(300));
    assert_eq!(device.engine.count_changes(), 0, "{what}: {}", device.engine.told());
    assert_eq!(device.fingerprint(), *before, "{what}");
    assert_eq!(device.workloads().len(), 3, "{what}");
    let log = device.log()[logged..].to_owned();
    let told = log.lines().any(|line| line.contains("warn"));
    assert_eq!(told, device.condition("storeNotice").is_some(), "{what}: {log}");
}

fn still_managed(device: &Device) {
    let before = device.container("a");
    device.engine.exit(&before.name, 1);
    assert_eq!(device.until_started_again("a", &before).id, before.id);
}

#[test]
fn a_damaged_database_is_rebuilt_and_says_so() {
    side_by_side(&[("sigterm", false), ("kill", true)], |by_kill| {
        let mut device = device();
        let before = device.fingerprint();
        for (what, damage) in &MADE_GOOD_SOMEHOW {
            stop(&mut device, *by_kill);
            damage(&device);
            start_and_compare(&mut device, &before, what);
        }
        for (what, damage) in &MADE_GOOD {
            stop(&mut device, *by_kill);
            damage(&device);
            start_and_compare(&mut device, &before, what);
            let said = device.condition("storeNotice").unwrap_or_else(|| panic!("{what}"));
            assert!(said.contains("bargee.db"), "{what}: {said}");
            assert!(said.contains("workloads.json"), "{what}: {said}");
        }
        still_managed(&device);
        // The damage is over with the next start.
        stop(&mut device, false);
        device.start();
        assert_eq!(device.condition("storeNotice"), None);
    });
}

#[test]
fn b19_flipped_bytes_are_found_or_harmless() {
    side_by_side(&[("sigterm", false), ("kill", true)], |by_kill| {
        let mut device = device();
        let before = device.fingerprint();
        for number in 0..FLIPS {
            stop(&mut device, *by_kill);
            let file = device.data("bargee.db");
            // After a kill most of the store is in the log.
            let log = device.data("bargee.db-wal");
            let file = if *by_kill && number % 2 == 1 && log.exists() { log } else { file };
            let length = fs::metadata(&file).unwrap().len();
            if length > 0 {
                flip(&file, (length - 1) * number / (FLIPS - 1));
            }
            device.engine.forget_requests();
            device.start();
            device.until_running(&["a", "b"]);
            device.until_state("idle", "Stopped(Ok)");
            assert_eq!(device.engine.count_changes(), 0, "{number}: {}", device.engine.told());
            assert_eq!(device.fingerprint(), before, "{number}");
            assert_eq!(device.workloads().len(), 3, "{number}");
        }
        still_managed(&device);
    });
}

#[test]
fn files_beside_a_good_database_are_written_anew() {
    let mut device = device();
    let before = device.fingerprint();
    let store = device.status().store_id;
    let damages: [(&str, Damage); 3] = [
        ("workloads.json missing", |device| remove(&device.data("workloads.json"))),
        ("workloads.json damaged", |device| {
            cut(&device.data("workloads.json"), |length| length / 2);
        }),
        ("store-id damaged", |device| write(&device.data("store-id"), b"\xff\xff\xff")),
    ];
    for (what, damage) in damages {
        device.sigterm();
        damage(&device);
        start_and_compare(&mut device, &before, what);
        assert!(device.condition("storeNotice").is_some(), "{what}");
        assert_eq!(device.status().store_id, store, "{what}");
    }
    device.sigterm();
    remove(&device.data("store-id"));
    device.start();
    assert_eq!(device.status().store_id, store);
    assert!(device.data("store-id").exists());
    assert_eq!(device.fingerprint(), before);
    still_managed(&device);
}

/// Without the declarations nothing is managed, so nothing is touched, and what is declared again
/// takes over what is there.
#[test]
fn a_store_that_knows_nothing_any_more_touches_nothing() {
    let damages: [(&str, Damage); 3] = [
        ("directory emptied", |device| {
            fs::remove_dir_all(device.path("data")).unwrap();
            fs::create_dir(device.path("data")).unwrap();
        }),
        ("database empty, declarations missing", |device| {
            write(&device.data("bargee.db"), b"");
            remove(&device.data("workloads.json"));
        }),
        ("both missing", |device| {
            remove(&device.data("bargee.db"));
            remove(&device.data("workloads.json"));
        }),
    ];
    side_by_side(&damages, |damage| {
        let mut device = Device::running(&["a", "b"]);
        let before = device.fingerprint();
        device.sigterm();
        damage(&device);
        device.engine.forget_requests();
        device.start();
        let said = until("it to be told", || device.condition("storeMissing"));
        assert!(said.contains("bargee-a-") && said.contains("bargee-b-"), "{said}");
        assert_eq!(device.workloads().len(), 0);
        pause(Duration::from_secs(1));
        assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());

        // The same adopts, another one waits, a third one is not held up.
        let other = service("b").replace("[serve]", "[serve, else]");
        device.deploy(&(service("a") + &other + &service("c")));
        device.until_running(&["a", "c"]);
        let waits = device.until_state("b", "Pending(WaitingToStart)");
        assert!(waits.state_info.contains("storeMissing"), "{}", waits.state_info);
        let after = device.fingerprint();
        assert!(before.iter().all(|one| after.contains(one)), "{before:?} {after:?}");
        assert_eq!(after.len(), 3);
        still_managed(&device);
        assert_eq!(device.engine.count(crate::support::scripted_engine::Route::Remove), 0);
    });
}

#[test]
fn two_agents_cannot_share_a_directory() {
    let device = Device::running(&["a"]);
    let second = device.fail_to_start();
    assert_eq!(second.code, 1);
    assert!(second.err.contains("is locked by process"), "{}", second.err);
    device.deploy(&services(&["a", "b"]));
    device.until_running(&["a", "b"]);
}
