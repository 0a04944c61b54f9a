//! The house rules as tests. A finding names file, line, rule and reason; the reasons are there to
//! be argued with, and a rule that lost its reason is taken out here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod finding;
mod functions;
mod manifest;
mod reports;
mod rooms;
mod source;
mod text;
mod tree;
mod words;

use std::sync::OnceLock;

use finding::{Finding, report};
use source::Source;

/// All Rust files, read once for all rules.
static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();

fn sources() -> &'static [Source] {
    let sources = SOURCES.get_or_init(tree::rust_sources);
    assert!(sources.len() > 100, "only {} Rust files were found", sources.len());
    sources
}

fn every_source(check: impl Fn(&Source) -> Vec<Finding>) {
    report(sources().iter().flat_map(check).collect());
}

#[test]
fn every_file_has_a_heading() {
    every_source(text::heading);
}

#[test]
fn files_and_lines_are_short() {
    every_source(text::size);
}

#[test]
fn functions_are_short() {
    every_source(functions::size);
}

#[test]
fn imports_go_one_way() {
    every_source(rooms::imports);
}

#[test]
fn packages_stay_in_their_rooms() {
    let packages = manifest::packages(&tree::read("Cargo.toml"));
    assert!(packages.len() > 10, "{packages:?}");
    every_source(|source| rooms::packages(source, &packages));
}

#[test]
fn the_domain_is_pure() {
    every_source(words::purity);
}

#[test]
fn nothing_is_left_undone() {
    every_source(words::leftovers);
}

#[test]
fn product_code_does_not_unwrap() {
    every_source(words::unwraps);
}

#[test]
fn unsafe_stays_in_one_file() {
    every_source(words::unsafety);
}

#[test]
fn every_dependency_says_why() {
    report(manifest::reasons("Cargo.toml", &tree::read("Cargo.toml")));
}

#[test]
fn reports_from_the_field_have_the_tests_that_are_listed() {
    let list = tree::read(reports::LIST);
    assert!(list.lines().filter(|line| line.starts_with("| B")).count() > 30);
    report(reports::listed(&list, sources()));
}

#[test]
fn the_top_level_is_agreed() {
    report(tree::top_level(&tree::top_entries()));
}

#[test]
fn texts_speak_of_the_project_only() {
    let texts = tree::texts();
    assert!(texts.len() > 100, "only {} texts were found", texts.len());
    let findings = texts.iter().flat_map(|(file, text)| text::foreign_words(file, text));
    report(findings.collect());
}

#[test]
fn documents_that_are_named_exist() {
    let texts = tree::texts();
    let files: Vec<&str> = texts.iter().map(|(file, _)| file.as_str()).collect();
    let findings = texts.iter().flat_map(|(file, text)| text::lost_documents(file, text, &files));
    report(findings.collect());
}
