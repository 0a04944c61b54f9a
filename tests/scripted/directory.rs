//! The manifests directory, as people and programs treat it: files that are written, replaced,
//! half written, wrong and gone; a directory that is unmounted, emptied or missing; an agent that
//! is killed between.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bargee::limits;
use serde_json::Value;

use crate::support::device::{Device, service, workload};
use crate::support::{pause, until};

/// More than a file takes to settle.
const SETTLED: Duration = Duration::from_millis(limits::MANIFEST_SETTLE_MS + 1_500);

fn device() -> Device {
    let device = Device::new();
    fs::create_dir_all(device.manifests("")).unwrap();
    device
}

fn write(path: &Path, text: &str) {
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Another image than that of [`service`], so that the container is replaced.
fn changed(name: &str) -> String {
    workload(name, "serve, again", "restart: {delay: 1s}")
}

fn names(device: &Device) -> Vec<String> {
    device.workloads().into_iter().map(|one| one.name).collect()
}

fn until_names(device: &Device, expected: &[&str]) {
    until(format_args!("{expected:?} to be there"), || (names(device) == expected).then_some(()));
}

fn until_there(device: &Device, expected: &[&str]) {
    until_names(device, expected);
    device.until_running(expected);
}

fn until_condition(device: &Device, kind: &str, parts: &[&str]) -> String {
    until(format_args!("{kind} with {parts:?}"), || {
        let text = device.condition(kind)?;
        parts.iter().all(|part| text.contains(part)).then_some(text)
    })
}

fn until_no_condition(device: &Device, kind: &str) {
    until(format_args!("no {kind}"), || device.condition(kind).is_none().then_some(()));
}

fn generation(device: &Device, name: &str) -> u64 {
    device.workload(name).generation
}

#[test]
fn files_are_declared_changed_renamed_over_and_removed() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    let web = device.workload("web");
    assert_eq!((web.source.as_str(), web.generation), ("directory", 1));

    write(&device.manifests("b.yml"), &service("db"));
    until_there(&device, &["db", "web"]);
    // Written in place, and renamed over as editors do.
    write(&device.manifests("a.yaml"), &changed("web"));
    device.until("web", |one| one.generation == 2 && one.observed_generation == 2);
    write(&device.manifests(".a.yaml.new"), &service("web"));
    fs::rename(device.manifests(".a.yaml.new"), device.manifests("a.yaml")).unwrap();
    device.until("web", |one| one.generation == 3 && one.observed_generation == 3);
    assert_eq!(device.workload("web").uid, web.uid);

    fs::remove_file(device.manifests("b.yml")).unwrap();
    until_names(&device, &["web"]);
    // Another name for the same file touches nothing.
    let container = device.container("web");
    fs::rename(device.manifests("a.yaml"), device.manifests("z.yaml")).unwrap();
    until("the new name", || device.cli(&["rm", "web"]).err.contains("z.yaml").then_some(()));
    assert_eq!(device.container("web").id, container.id);
    assert_eq!(device.container("web").started, container.started);
}

#[test]
fn b122_a_file_that_is_being_written_does_not_count() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &(service("web") + &service("db")));
    device.start();
    until_there(&device, &["db", "web"]);
    let before = device.fingerprint();
    // The first half is a manifest by itself, without db.
    let mut file = File::create(device.manifests("a.yaml")).unwrap();
    file.write_all(changed("web").as_bytes()).unwrap();
    pause(SETTLED);
    assert_eq!(device.fingerprint(), before);
    file.write_all(service("db").as_bytes()).unwrap();
    drop(file);
    device.until("web", |one| one.generation == 2 && one.observed_generation == 2);
    assert_eq!(generation(&device, "db"), 1);
    device.until_running(&["db"]);
}

#[test]
fn b121_a_name_in_two_files_and_a_wrong_file_keep_what_was_there() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    write(&device.manifests("b.yaml"), &(changed("web") + &service("db")));
    let told = until_condition(&device, "manifestsRefused", &["b.yaml", "default/web"]);
    assert!(told.contains("a.yaml"), "{told}");
    assert_eq!((names(&device), generation(&device, "web")), (vec!["web".to_owned()], 1));

    write(&device.manifests("b.yaml"), &service("db"));
    until_there(&device, &["db", "web"]);
    until_no_condition(&device, "manifestsRefused");

    write(&device.manifests("b.yaml"), &service("db").replace("pull: never", "pull: never, x: 1"));
    until_condition(&device, "manifestsRefused", &["b.yaml:5: spec.x: "]);
    assert_eq!(device.workload("db").state, "Running");
    // A wrong file and a dead agent: what it held is in the store.
    device.kill9();
    device.start();
    until_condition(&device, "manifestsRefused", &["b.yaml:5: spec.x: "]);
    device.until_running(&["db", "web"]);
    // Editors' leftovers are told and not read.
    write(&device.manifests("b.yaml~"), &service("old"));
    write(&device.manifests(".b.yaml.swp"), &service("old"));
    until("the leftovers", || {
        let seen = device.status().manifests?;
        (seen.ignored == [".b.yaml.swp", "b.yaml~"] && seen.files == 2).then_some(())
    });
    assert_eq!(names(&device), ["db", "web"]);
}

#[test]
fn b61_what_went_while_the_agent_was_off_is_removed() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    write(&device.manifests("b.yaml"), &service("db"));
    device.start();
    until_there(&device, &["db", "web"]);
    // What was in flight when the agent died would be made anew.
    until("all to be recorded", || device.journal().is_empty().then_some(()));
    let container = device.container("web");
    device.kill9();
    fs::remove_file(device.manifests("b.yaml")).unwrap();
    device.start();
    until_names(&device, &["web"]);
    assert_eq!(device.container("web").id, container.id);
    assert_eq!(device.container("web").started, container.started);
}

#[test]
fn an_emptied_directory_is_held_at_the_start_until_it_is_confirmed() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    device.kill9();
    fs::remove_file(device.manifests("a.yaml")).unwrap();
    device.start();
    until_condition(&device, "manifestsHeld", &["is empty", "default/web", "bargee confirm"]);
    pause(SETTLED);
    assert_eq!(device.workload("web").state, "Running");
    // It is held by the next agent as well.
    device.kill9();
    device.start();
    until_condition(&device, "manifestsHeld", &["is empty"]);
    let said = device.cli(&["confirm"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("removed default/web"), "{}", said.out);
    until_names(&device, &[]);
    until_no_condition(&device, "manifestsHeld");
    let said = device.cli(&["confirm"]);
    assert!(said.out.contains("nothing that waits"), "{}", said.out);
}

#[test]
fn a_missing_directory_holds_and_comes_back() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    fs::rename(device.manifests(""), device.path("etc/away")).unwrap();
    until_condition(&device, "manifestsHeld", &["is missing", "default/web"]);
    fs::rename(device.path("etc/away"), device.manifests("")).unwrap();
    until_no_condition(&device, "manifestsHeld");
    write(&device.manifests("a.yaml"), &changed("web"));
    device.until("web", |one| one.generation == 2);
    fs::remove_dir_all(device.manifests("")).unwrap();
    until_condition(&device, "manifestsHeld", &["is missing"]);
    assert_eq!(device.cli(&["confirm"]).code, 0);
    until_names(&device, &[]);
}

/// A file system over the manifests directory, gone when this is dropped.
struct Card(PathBuf);

impl Card {
    /// `None`: this user may not mount.
    fn insert(device: &Device, source: &str) -> Option<Self> {
        let at = device.manifests("");
        let words = ["-t", "tmpfs", "-o", "size=1m", source];
        let done = Command::new("mount").args(words).arg(&at).status();
        if !done.is_ok_and(|status| status.success()) {
            println!("skipped: a file system cannot be mounted here");
            return None;
        }
        Some(Self(at))
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_directory_that_is_unmounted_removes_nothing() {
    let mut device = device();
    device.start();
    let Some(card) = Card::insert(&device, "card-1") else { return };
    write(&device.manifests("a.yaml"), &service("web"));
    until_there(&device, &["web"]);
    let before = device.fingerprint();
    drop(card);
    until_condition(&device, "manifestsHeld", &["another file system", "card-1"]);
    // What lies beneath is not taken for what was on it.
    write(&device.manifests("b.yaml"), &service("db"));
    pause(SETTLED);
    assert_eq!((names(&device), device.fingerprint()), (vec!["web".to_owned()], before.clone()));

    let card = Card::insert(&device, "card-1").unwrap();
    write(&device.manifests("a.yaml"), &service("web"));
    until_no_condition(&device, "manifestsHeld");
    assert_eq!(device.fingerprint(), before);
    drop(card);
    until_condition(&device, "manifestsHeld", &["another file system"]);
    let said = device.cli(&["confirm"]);
    assert_eq!(said.code, 0, "{}", said.err);
    until_there(&device, &["db"]);
    until_no_condition(&device, "manifestsHeld");
}

#[test]
fn a_card_that_is_not_there_at_the_start_removes_nothing() {
    let mut device = device();
    let Some(card) = Card::insert(&device, "card-2") else { return };
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    let before = device.fingerprint();
    device.kill9();
    drop(card);
    device.start();
    until_condition(&device, "manifestsHeld", &["card-2"]);
    let _card = Card::insert(&device, "card-2").unwrap();
    write(&device.manifests("a.yaml"), &service("web"));
    until_no_condition(&device, "manifestsHeld");
    assert_eq!(device.fingerprint(), before);
}

#[test]
fn what_a_file_declares_is_refused_to_others_naming_the_file() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    let file = device.manifests("a.yaml").display().to_string();
    let said = device.cli_with(&["deploy", "-f", "-"], changed("web").as_bytes());
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains("directory") && said.err.contains(&file), "{}", said.err);
    let said = device.cli(&["rm", "web"]);
    assert_eq!(said.code, 5, "{}", said.err);
    assert!(said.err.contains(&file), "{}", said.err);
    let (status, body) = device.apply(&changed("web"));
    assert_eq!(status, 409, "{body}");
    assert_eq!(generation(&device, "web"), 1);
    assert_eq!(device.cli(&["stop", "web"]).code, 0);
    // The other way round.
    device.deploy(&service("own"));
    write(&device.manifests("b.yaml"), &service("own"));
    until_condition(&device, "manifestsRefused", &["b.yaml", "default/own", "local"]);
    assert_eq!(device.cli(&["rm", "own"]).code, 0);
    device.until("own", |one| one.source == "directory");
}

#[test]
fn an_agent_killed_at_any_moment_ends_up_with_what_the_files_say() {
    let mut device = device();
    device.start();
    for round in 0..6 {
        let name = format!("w{round}");
        write(&device.manifests(&format!("{name}.yaml")), &service(&name));
        write(
            &device.manifests("a.yaml"),
            &workload("web", "serve", &format!("user: \"{round}\"")),
        );
        if round > 1 {
            fs::remove_file(device.manifests(&format!("w{}.yaml", round - 2))).unwrap();
        }
        // Around the moment at which the files have settled.
        pause(Duration::from_millis(limits::MANIFEST_SETTLE_MS - 100 + 60 * round));
        device.kill9();
        device.start();
    }
    until_there(&device, &["w4", "w5", "web"]);
    let web = device.until("web", |one| one.observed_generation == one.generation);
    let manifest: Value = serde_json::from_str(web.manifest.unwrap().get()).unwrap();
    assert_eq!(manifest["spec"]["user"], "5");
    until("no more containers", || (device.engine.containers().len() == 3).then_some(()));
    until("an empty journal", || device.journal().is_empty().then_some(()));
}

#[test]
fn prune_removes_what_is_not_deployed_any_more() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("filed"));
    device.start();
    until_there(&device, &["filed"]);
    device.deploy(&(service("web") + &service("old")));
    device.until_running(&["web", "old"]);
    let deploy = |options: &[&str], text: &str| {
        device.cli_with(&[&["deploy", "-f", "-", "--prune"], options].concat(), text.as_bytes())
    };
    // Nothing at all is no wish to remove everything.
    let said = deploy(&[], "# nothing\n");
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    let said = deploy(&["--dry-run"], &service("web"));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("default/old would be removed"), "{}", said.out);
    assert_eq!(names(&device), ["filed", "old", "web"]);
    let said = deploy(&["-o", "json", "--wait"], &service("web"));
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("default/old will be removed"), "{}", said.err);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    let items = answer["items"].as_array().unwrap().iter();
    let changes = items.map(|one| format!("{} {}", one["key"], one["change"]));
    let expected = ["\"default/web\" \"unchanged\"", "\"default/old\" \"removed\""];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    assert_eq!(names(&device), ["filed", "web"]);
}

#[test]
fn start_with_an_apply_brings_back_what_was_stopped() {
    let device = Device::running(&["web"]);
    assert_eq!(device.cli(&["stop", "web"]).code, 0);
    device.deploy(&changed("web"));
    assert_eq!(device.workload("web").desired_state, "stopped");
    let said = device.cli_with(&["deploy", "-f", "-", "--start"], changed("web").as_bytes());
    assert_eq!((said.code, said.out.as_str()), (0, "default/web started (generation 2)\n"));
    device.until_running(&["web"]);
}

#[test]
fn a_comment_in_a_file_changes_nothing() {
    let mut device = device();
    write(&device.manifests("a.yaml"), &service("web"));
    device.start();
    until_there(&device, &["web"]);
    // What was written when it began to run.
    pause(Duration::from_millis(limits::ROW_WRITE_MS + 1_000));
    let revision = device.status().revision;
    let mut file = OpenOptions::new().append(true).open(device.manifests("a.yaml")).unwrap();
    file.write_all(b"# a comment\n").unwrap();
    drop(file);
    pause(SETTLED);
    assert_eq!((device.status().revision, generation(&device, "web")), (revision, 1));
}
