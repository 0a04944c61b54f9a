//! The agent's own log in a file: its size is bounded, and no trouble with it is one of the agent.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::disk::Disk;
use crate::support::device::{Device, service, services};
use crate::support::{pause, until};

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn it_goes_to_a_file_of_bounded_size_which_may_be_removed() {
    const BYTES: u64 = 16 << 10;
    let mut device = Device::new();
    let (file, older) = (device.path("agent.log"), device.path("agent.log.1"));
    device.set("BARGEE_LOG_FILE", file.display().to_string());
    device.set("BARGEE_LOG_MAX_SIZE", "16Ki");
    device.set("BARGEE_LOG_RECONCILE_EVERY", "1");
    device.start();
    device.deploy(&service("web"));
    device.until_running(&["web"]);
    until("the engine to be told of", || read(&file).contains("the engine is there").then_some(()));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    let line = read(&file).lines().find(|line| line.contains("cause=[call 1")).map(str::to_owned);
    let line = line.unwrap_or_else(|| panic!("{}", read(&file)));
    let words = [" info  reconcile: passes=1 ", " due=", " actions=", " calls=", " ms="];
    assert!(words.iter().all(|word| line.contains(word)), "{line}");

    // Each restart is a few passes, and each of these is a line.
    for _ in 0..1_000 {
        if older.exists() && size(&file) > BYTES / 2 {
            break;
        }
        assert_eq!(device.cli(&["restart", "web"]).code, 0);
        assert!(size(&file) <= BYTES && size(&older) <= BYTES);
    }
    assert!(size(&older) > BYTES / 2, "{}", size(&older));

    fs::remove_file(&file).unwrap();
    device.cli(&["restart", "web"]);
    until("the file to be there again", || (size(&file) > 0).then_some(()));
    device.sigterm();
    assert!(read(&file).contains("signal 15: stopping"), "{}", read(&file));
    assert_eq!(device.log(), "", "nothing went to standard error");
}

#[test]
fn a_disk_that_takes_no_lines_stops_nothing_and_is_told_of() {
    let mut device = Device::new();
    let Some(disk) = Disk::mount(&device.path("logs")) else { return };
    let file = device.path("logs/agent.log");
    device.set("BARGEE_LOG_FILE", file.display().to_string());
    disk.remount("ro");
    device.start();
    device.deploy(&services(&["a", "b"]));
    device.until_running(&["a", "b"]);
    assert!(!file.exists());
    let said = device.log_lines("cannot write the log to");
    assert_eq!(said.len(), 1, "{}", device.log());
    assert!(said[0].contains("Read-only file system"), "{said:?}");
    disk.remount("rw");
    device.engine.end_connections();
    engine_trouble(&device);
    until("the log to go on", || read(&file).contains("Read-only file system").then_some(()));
    let first = read(&file).lines().next().unwrap_or_default().to_owned();
    assert!(first.contains(" lines of this log were dropped: Read-only"), "{first}");

    let before = loop {
        use_up_page(&file);
        disk.fill();
        let before = read(&file);
        engine_trouble(&device);
        // Unless another line has got in between, and left a page to write on.
        if read(&file) == before {
            break before;
        }
        disk.make_room();
    };
    let gone = device.container("a");
    device.engine.exit(&gone.name, 1);
    device.until_started_again("a", &gone);
    assert_eq!(device.get("/health/live").unwrap().0, 200);
    disk.make_room();
    engine_trouble(&device);
    let told = " of this log were dropped: No space left on device";
    until(format_args!("the log to go on after {before}"), || {
        read(&file).contains(told).then_some(())
    });
    let after = read(&file);
    assert!(after.starts_with(&before) && after.ends_with('\n'), "{before}---\n{after}");
    assert!(
        after.lines().all(|line| line.contains("info  ") || line.contains("warn  ")),
        "{after}"
    );
    device.kill9();
}

/// A file on a full disk still has the rest of its last page.
fn use_up_page(file: &Path) {
    let rest = 2 * 4_096 - read(file).len() % 4_096;
    let padding = format!("info  {}\n", "x".repeat(rest - "info  \n".len()));
    OpenOptions::new().append(true).open(file).unwrap().write_all(padding.as_bytes()).unwrap();
}

/// Has the agent log that the engine went and came back.
fn engine_trouble(device: &Device) {
    device.engine.go_away(crate::support::scripted_engine::Leave::Nothing);
    until("the engine to be missed", || device.not_ready());
    device.engine.come_back();
    device.until_ready();
    pause(Duration::from_millis(200));
}
