//! Answers of a real Docker, written down in `tests/recorded`.
//!
//! `BARGEE_RECORD=1 cargo test --test conformance recorded::docker` writes them anew.

mod asker;
mod clean;
mod fields;
mod means;
mod requests;

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::Write;

use serde_json::Value;

use crate::support::engine::shared;
use crate::support::recorded::{Recorded, folder};
use crate::tested::{docker, memory};

/// Other versions have other words and statuses.
const VERSION: &str = "20.10";

/// Answers that no engine in memory gives, and why.
const NOT_IN_MEMORY: &[(&str, &str)] =
    &[("pull-cut", "what it serves has all its layers; a test says this in its place")];

/// The lines of a pull of which bargee reads more than that they came.
const PULL_STATUSES: &[&str] =
    &["Downloading", "Download complete", "Extracting", "Pull complete", "Verifying Checksum"];
/// An engine does not send all the others to a client that is slow.
const ALWAYS_SENT: &str = "Pull complete";

#[test]
#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
fn docker_answers_as_it_was_recorded() {
    let tested = docker();
    let version = tested.ping().unwrap().version;
    if !version.starts_with(VERSION) {
        println!("skipped: this is Docker {version}, and what was recorded is of {VERSION}");
        return;
    }
    let answers = requests::record(&tested);
    if env::var_os("BARGEE_RECORD").is_some() {
        write_down(&answers);
    }
    for (name, answer) in &answers {
        has_the_same_fields(name, answer);
    }
    let names: BTreeSet<String> = answers.iter().map(|(name, _)| format!("{name}.json")).collect();
    let files = fs::read_dir(folder()).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, files);
}

#[test]
fn memory_answers_as_docker_does() {
    let answers = requests::record(&memory());
    for (name, answer) in &answers {
        has_the_same_fields(name, answer);
    }
    let names: BTreeSet<&str> = answers.iter().map(|(name, _)| *name).collect();
    for file in fs::read_dir(folder()).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = file.trim_end_matches(".json");
        let is_out = NOT_IN_MEMORY.iter().any(|(out, why)| *out == name && !why.is_empty());
        assert_ne!(names.contains(name), is_out, "{name}");
    }
}

fn write_down(answers: &[(&str, Recorded)]) {
    let mut cleaner = clean::Cleaner::new(shared().directory());
    for (name, answer) in answers {
        let text = serde_json::to_string_pretty(&cleaner.clean(name, answer).to_json()).unwrap();
        let mut file = File::create(folder().join(format!("{name}.json"))).unwrap();
        writeln!(file, "{text}").unwrap();
    }
}

/// Fails unless an answer has what bargee reads of the recorded one, in the same types.
fn has_the_same_fields(name: &str, answer: &Recorded) {
    let recorded = Recorded::read(name);
    assert_eq!(answer.status, recorded.status, "{name}: {answer:?}");
    let paths = fields::read(name, answer.status);
    if recorded.lines.is_empty() {
        same_types(name, &answer.body, &recorded.body, paths);
        return;
    }
    let is_vital = |kind: &String| !PULL_STATUSES[..].contains(&&**kind) || kind == ALWAYS_SENT;
    let vital = |lines: &[Value]| -> BTreeSet<String> {
        lines.iter().filter_map(kind).filter(is_vital).collect()
    };
    assert_eq!(vital(&answer.lines), vital(&recorded.lines), "{name}");
    for line in &answer.lines {
        let Some(kind) = kind(line) else { continue };
        let mut same =
            recorded.lines.iter().filter(|other| self::kind(other).as_ref() == Some(&kind));
        if let Some(same) = same.next() {
            same_types(&format!("{name}, {kind}"), line, same, paths);
        }
    }
}

/// What a line is about; `None`: bargee skips it.
fn kind(line: &Value) -> Option<String> {
    let word = line["Action"].as_str().or(line["status"].as_str()).or(line["error"].as_str())?;
    let is_event = line["Type"] == "container" && word != "create" && word != "kill";
    (is_event || PULL_STATUSES.contains(&word) || line["error"].is_string())
        .then(|| word.to_owned())
}

fn same_types(name: &str, answer: &Value, recorded: &Value, paths: &[&str]) {
    for path in paths {
        let (found, wanted) = (fields::types(answer, path), fields::types(recorded, path));
        let is_there = found.is_empty() == wanted.is_empty() || *path == fields::DRIVER_STATUS;
        let fits = found.is_subset(&wanted) && is_there;
        assert!(fits, "{name}: {path} is {found:?}, recorded {wanted:?}: {answer}");
    }
}
