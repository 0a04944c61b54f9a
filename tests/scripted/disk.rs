//! A data directory that is full or read-only: changes are refused, workloads are kept.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::device::{Device, service, services};
use crate::support::scripted_engine::Route;
use crate::support::{pause, until};

/// A small file system in memory. It is gone when this is dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts it; `None`: this user may not.
    pub fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let words = ["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs"];
        let mounted = Command::new("mount").args(words).arg(at).status().is_ok_and(|s| s.success());
        if !mounted {
            println!("skipped: a file system cannot be mounted here");
        }
        mounted.then(|| Self(at.to_owned()))
    }

    /// Mounts it anew with an option.
    pub fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        let done = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }

    /// Leaves no byte free.
    pub fn fill(&self) {
        let mut file =
            OpenOptions::new().create(true).append(true).open(self.0.join("fill")).unwrap();
        for size in [4_096, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    /// Takes away what filled it.
    pub fn make_room(&self) {
        fs::remove_file(self.0.join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still uses it may do so until it ends.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A manifest that does not fit into what the log of the store has kept for itself.
fn large(name: &str) -> String {
    let value = "x".repeat(1_000);
    let labels: String = (0..400).map(|number| format!("l{number}: {value}, ")).collect();
    service(name)
        .replace(&format!("{{name: {name}}}"), &format!("{{name: {name}, labels: {{{labels}}}}}"))
}

#[test]
fn a_full_disk_refuses_changes_and_keeps_workloads() {
    let mut device = Device::new();
    let Some(disk) = Disk::mount(&device.path("data")) else { return };
    device.start();
    device.deploy(&services(&["a", "b"]));
    device.until_running(&["a", "b"]);
    disk.fill();

    let (status, said) = device.apply(&large("big"));
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("nothing changed") && said.contains("full"), "{said}");
    let cli = device.cli_with(&["deploy", "-f", "-"], large("big").as_bytes());
    assert_eq!(cli.code, 1, "{}{}", cli.out, cli.err);
    assert!(cli.err.contains("full"), "{}", cli.err);
    assert_eq!(device.workloads().len(), 2);
    assert!(device.condition("storeFailing").is_some());
    assert_eq!(device.not_ready(), None, "the engine is there");

    // What crashes is started again, what vanished is made again.
    let before = device.container("a");
    device.engine.exit(&before.name, 1);
    let again = device.until_started_again("a", &before);
    assert_eq!(again.id, before.id);
    let gone = device.container("b");
    device.engine.take_away(&gone.name);
    let made = until("b to be made again", || {
        let mut all = device.engine.containers().into_iter();
        all.find(|made| made.name.starts_with("bargee-b-") && made.pid != 0)
    });
    assert_ne!(made.id, gone.id);
    assert_eq!(device.engine.containers().len(), 2);
    pause(Duration::from_secs(6));
    assert_eq!(device.log_lines("the store cannot write").len(), 1, "{}", device.log());

    disk.make_room();
    until("the store to write again", || device.condition("storeFailing").is_none().then_some(()));
    assert_eq!(device.log_lines("the store writes again").len(), 1, "{}", device.log());
    device.deploy(&large("big"));
    device.until_running(&["a", "b", "big"]);
    // And what it knows now is what there is.
    let fingerprint = device.fingerprint();
    pause(Duration::from_secs(6));
    device.kill9();
    device.engine.forget_requests();
    device.start();
    device.until_running(&["a", "b", "big"]);
    assert_eq!(device.fingerprint(), fingerprint);
    assert_eq!(device.engine.count_changes(), 0);
    device.kill9();
}

#[test]
fn a_read_only_directory_at_start_is_told_and_harmless() {
    let mut device = Device::new();
    let Some(disk) = Disk::mount(&device.path("data")) else { return };
    device.start();
    device.deploy(&services(&["a"]));
    device.until_running(&["a"]);
    device.sigterm();
    let before = device.fingerprint();
    disk.remount("ro");
    device.engine.forget_requests();
    let refused = device.fail_to_start();
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("Read-only file system"), "{}", refused.err);
    assert!(refused.err.contains(&device.path("data").display().to_string()), "{}", refused.err);
    assert_eq!(device.engine.count_changes(), 0);
    disk.remount("rw");
    device.start();
    device.until_running(&["a"]);
    assert_eq!(device.fingerprint(), before);
    assert_eq!(device.engine.count(Route::Create), 0);
    device.kill9();
}

#[test]
fn a_full_disk_at_start_is_told_and_harmless() {
    let mut device = Device::new();
    let Some(disk) = Disk::mount(&device.path("data")) else { return };
    device.start();
    device.deploy(&services(&["a"]));
    device.until_running(&["a"]);
    device.kill9();
    let before = device.fingerprint();
    disk.fill();
    device.engine.forget_requests();
    device.start();
    device.until_running(&["a"]);
    let web = device.container("a");
    device.engine.exit(&web.name, 1);
    device.until_started_again("a", &web);
    disk.make_room();
    device.deploy(&services(&["b"]));
    device.until_running(&["a", "b"]);
    assert_eq!(device.engine.count(Route::Create), 1);
    assert_eq!(device.fingerprint().len(), before.len() + 1);
    device.kill9();
}
