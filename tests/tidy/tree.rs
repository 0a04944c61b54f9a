//! The repository: what is in it, and what may be.

use std::fs;
use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::source::Source;

/// What may stand at the top.
const TOP: &[&str] = &[
    ".cargo",
    ".ci",
    ".clippy.toml",
    ".gitignore",
    ".rustfmt.toml",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "README.md",
    "cross.toml",
    "docs",
    "examples",
    "scripts",
    "src",
    "tests",
];
/// What tools put there, and no repository holds.
const NOT_OURS: &[&str] = &[".git", "target"];

fn top() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file, from the top.
pub fn read(file: &str) -> String {
    fs::read_to_string(top().join(file)).unwrap()
}

/// Entries at the top.
pub fn top_entries() -> Vec<String> {
    let entries = fs::read_dir(top()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Entries that nobody agreed on, and agreed ones that are missing.
pub fn top_level(entries: &[String]) -> Vec<Finding> {
    let why = "the top is the first thing that people see; see TOP in tests/tidy/tree.rs";
    let known = |entry: &&String| !TOP.contains(&entry.as_str());
    let strange = entries.iter().filter(known).filter(|e| !NOT_OURS.contains(&e.as_str()));
    let strange = strange.map(|entry| Finding::new(entry, 0, "is not to stand at the top", why));
    let missing = TOP.iter().filter(|name| !entries.iter().any(|entry| entry == *name));
    let missing = missing.map(|name| Finding::new(name, 0, "is missing", why));
    strange.chain(missing).collect()
}

/// Every file that is text, with its text.
pub fn texts() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in top_entries() {
        if !NOT_OURS.contains(&entry.as_str()) {
            collect(&top().join(entry), &mut files);
        }
    }
    files.sort();
    let name = |path: &Path| path.strip_prefix(top()).unwrap().to_str().unwrap().to_owned();
    files.iter().filter_map(|path| Some((name(path), fs::read_to_string(path).ok()?))).collect()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), files);
        }
    } else {
        files.push(path.to_owned());
    }
}

/// Every Rust file, taken apart.
pub fn rust_sources() -> Vec<Source> {
    let texts = texts();
    sources(texts.iter().filter(|(file, _)| file.ends_with(".rs")))
}

fn sources<'a>(texts: impl Iterator<Item = &'a (String, String)>) -> Vec<Source> {
    let mut sources: Vec<Source> =
        texts.map(|(file, text)| Source::new(file, text, file.starts_with("tests/"))).collect();
    let tests: Vec<String> = sources.iter().flat_map(test_places).collect();
    for source in &mut sources {
        let place = source.file.trim_end_matches(".rs");
        source.is_test |= tests.iter().any(|test| {
            place
                .strip_prefix(test.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    }
    sources
}

/// Where the modules are that a file declares for tests, without `.rs`.
fn test_places(source: &Source) -> Vec<String> {
    let place = source.file.trim_end_matches(".rs");
    let folder = match place.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder,
        _ => place,
    };
    source.test_modules().into_iter().map(|name| format!("{folder}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_and_missing_entries_are_found() {
        let mut entries: Vec<String> = TOP.iter().map(|name| (*name).to_owned()).collect();
        entries.push(".git".to_owned());
        assert_eq!(top_level(&entries), []);
        entries.push("notes.txt".to_owned());
        entries.retain(|entry| entry != "README.md");
        let files: Vec<String> = top_level(&entries).into_iter().map(|f| f.file).collect();
        assert_eq!(files, ["notes.txt", "README.md"]);
    }

    #[test]
    fn files_of_tests_are_known() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let texts = [
            file("src/a/mod.rs", "mod b;\n#[cfg(test)]\nmod tests;"),
            file("src/a/b.rs", "#[cfg(test)]\nmod tests;"),
            file("src/a/b/tests.rs", ""),
            file("src/a/tests/mod.rs", "mod more;"),
            file("src/a/tests/more.rs", ""),
            file("src/a/tests_not.rs", ""),
            file("tests/x.rs", ""),
        ];
        let found = sources(texts.iter());
        let of_tests: Vec<&str> =
            found.iter().filter(|s| s.is_test).map(|s| s.file.as_str()).collect();
        let expected =
            ["src/a/b/tests.rs", "src/a/tests/mod.rs", "src/a/tests/more.rs", "tests/x.rs"];
        assert_eq!(of_tests, expected);
    }
}
