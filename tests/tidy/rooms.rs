//! Which room may know which, and where each package is at home. The tables are the architecture:
//! `docs/architecture.md` explains them.

use crate::finding::Finding;
use crate::source::{Source, is_word};

/// A folder or file under `src`, and what it may use.
struct Room {
    name: &'static str,
    /// Rooms, as `room`, or as `room::module` where only that module is meant.
    rooms: &'static [&'static str],
    /// Packages.
    packages: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room { name: "lib", rooms: &[], packages: &[] },
    Room {
        name: "main",
        rooms: &["agent", "cli", "config", "os"],
        packages: &["env_logger", "log"],
    },
    Room {
        name: "agent",
        rooms: &["api", "config", "domain", "engine", "limits", "manifest", "os", "store"],
        packages: &["crossbeam_channel", "log", "parking_lot", "thiserror"],
    },
    Room {
        name: "cli",
        rooms: &["api::url", "api::wire", "config", "domain::time", "limits", "os"],
        packages: &["crossbeam_channel", "lexopt", "serde", "serde_json", "ureq"],
    },
    Room {
        name: "api",
        rooms: &["domain", "limits", "os"],
        packages: &["crossbeam_channel", "log", "nix", "serde", "serde_json", "tiny_http"],
    },
    Room {
        name: "engine",
        rooms: &["domain", "limits", "os"],
        packages: &["parking_lot", "serde", "serde_json", "ureq"],
    },
    Room {
        name: "store",
        rooms: &["domain", "limits", "os"],
        packages: &["nix", "rusqlite", "serde", "serde_json", "sha2", "thiserror"],
    },
    Room {
        name: "manifest",
        rooms: &["domain", "limits", "yaml"],
        packages: &["serde", "serde_json"],
    },
    Room { name: "config", rooms: &["limits", "os", "yaml"], packages: &["log", "nix"] },
    Room { name: "yaml", rooms: &["limits"], packages: &["saphyr_parser"] },
    Room {
        name: "os",
        rooms: &["limits"],
        packages: &["crossbeam_channel", "libc", "log", "nix", "signal_hook", "thiserror", "ureq"],
    },
    Room { name: "domain", rooms: &["limits"], packages: &["sha2"] },
    Room { name: "limits", rooms: &[], packages: &[] },
];

/// The room that a file is in; `None`: it is not in `src`.
pub fn room(file: &str) -> Option<&str> {
    let inner = file.strip_prefix("src/")?;
    let name = inner.split('/').next()?;
    Some(name.strip_suffix(".rs").unwrap_or(name))
}

/// Imports that go another way than the table says, as `use` or in the middle of a line.
pub fn imports(source: &Source) -> Vec<Finding> {
    let Some(name) = room(&source.file) else { return Vec::new() };
    let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
        let why = "every room has its place in the order";
        return vec![Finding::new(&source.file, 0, "is in no room of tests/tidy/rooms.rs", why)];
    };
    let why = "main -> agent, cli -> manifest, engine, store, api -> domain -> limits: one way, \
               so that each room can be read and tested without those above it";
    let roots = ["crate", "bargee"].into_iter();
    let mut paths: Vec<_> = roots.flat_map(|root| paths(source, root)).collect();
    paths.extend(beyond_the_root(source));
    let mut findings = Vec::new();
    for (at, path) in paths {
        let other = path.first().map_or("", String::as_str);
        let module = path.get(1).map_or_else(String::new, |module| format!("{other}::{module}"));
        let allowed = other == name || room.rooms.iter().any(|r| *r == other || *r == module);
        if !allowed {
            let rule = format!("`{name}` may not know `{}`", path.join("::"));
            findings.push(Finding::new(&source.file, source.line(at), rule, why));
        }
    }
    findings
}

/// Packages outside the rooms where they are at home; tests may use what they like.
pub fn packages(source: &Source, packages: &[String]) -> Vec<Finding> {
    let known = ROOMS.iter().find(|known| Some(known.name) == room(&source.file));
    let Some(room) = known else { return Vec::new() };
    let why = "a package that stays in its room can be replaced there";
    let mut findings = Vec::new();
    for package in packages.iter().filter(|package| !room.packages.contains(&package.as_str())) {
        for at in source.words(package) {
            let line = source.line(at);
            let after = source.after(at + package.len(), 2);
            let used = after == "::" || source.before(at, 3) == "use" && after.starts_with(';');
            if used && source.before(at, 2) != "::" && !source.tests_at(line) {
                let rule = format!("`{}` may not use the package `{package}`", room.name);
                findings.push(Finding::new(&source.file, line, rule, why));
            }
        }
    }
    findings
}

/// Every path that begins with `root::`, taken apart: where it ends, and its parts after `root`.
pub fn paths(source: &Source, root: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for at in source.words(root) {
        let after = at + root.chars().count();
        if source.after(after, 2) == "::" && source.before(at, 2) != "::" {
            walk(&source.code, after, &[], &mut found);
        }
    }
    found
}

/// Takes in what follows a part of a path, and returns where that ends.
fn walk(
    code: &[char],
    after: usize,
    path: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let colons = skip_blanks(code, after);
    if code.get(colons..colons + 2) != Some(&[':', ':']) {
        found.push((after - 1, path.to_vec()));
        return after;
    }
    let at = skip_blanks(code, colons + 2);
    match code.get(at) {
        Some('{') => walk_group(code, at + 1, path, found),
        Some('*') => {
            found.push((at, [path, &["*".to_owned()]].concat()));
            at + 1
        }
        Some(c) if is_word(*c) => walk_name(code, at, path, found),
        _ => {
            found.push((after - 1, path.to_vec()));
            at
        }
    }
}

fn walk_name(
    code: &[char],
    at: usize,
    path: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let name: String = code[at..].iter().take_while(|c| is_word(**c)).collect();
    let after = at + name.chars().count();
    walk(code, after, &[path, &[name]].concat(), found)
}

fn walk_group(
    code: &[char],
    begin: usize,
    path: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut at = begin;
    loop {
        at = skip_blanks(code, at);
        match code.get(at) {
            Some(c) if is_word(*c) => at = walk_name(code, at, path, found),
            Some('*') => {
                found.push((at, [path, &["*".to_owned()]].concat()));
                at += 1;
            }
            Some(',') => at += 1,
            Some('}') => return at + 1,
            _ => return at,
        }
    }
}

fn skip_blanks(code: &[char], at: usize) -> usize {
    at + code[at.min(code.len())..].iter().take_while(|c| c.is_whitespace()).count()
}

/// Chains of `super` that leave the room, as paths from the top.
fn beyond_the_root(source: &Source) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for at in source.words("super") {
        if source.before(at, 7) == "super::" {
            continue;
        }
        let chain = source.after(at, 200);
        let ups = chain.split("::").take_while(|part| *part == "super").count();
        if ups >= depth(source, at) {
            found.push((at, vec![format!("super, {ups} times")]));
        }
    }
    found
}

/// How deep a place is below the top module.
fn depth(source: &Source, at: usize) -> usize {
    let path = source.file.trim_start_matches("src/").trim_end_matches(".rs");
    let names = path.split('/').filter(|name| !matches!(*name, "mod" | "lib" | "main")).count();
    let around = source.words("mod").into_iter().filter(|place| {
        let open = source.code[*place..].iter().position(|c| matches!(c, '{' | ';'));
        let open = open.map(|open| place + open).filter(|open| source.code[*open] == '{');
        open.is_some_and(|o| o < at && crate::source::after_group(&source.code, o) > at)
    });
    names + around.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(file: &str, text: &str) -> Vec<String> {
        imports(&Source::new(file, text, false)).into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn paths_are_taken_apart() {
        let text = "use crate::{a, b::{self, c}, d::*};\nfn f() { crate::e::f::<u8>() }\n\
                    pub(crate) fn g(x: $crate::h) {}";
        let source = Source::new("src/x.rs", text, false);
        let found: Vec<String> =
            paths(&source, "crate").into_iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(found, ["a", "b::self", "b::c", "d::*", "e::f", "h"]);
    }

    #[test]
    fn imports_the_wrong_way_are_found() {
        for (file, text) in [
            ("src/domain/a.rs", "use crate::os::clock;"),
            ("src/domain/a.rs", "fn f() { crate::engine::x() }"),
            ("src/domain/a.rs", "use crate::{limits, store};"),
            ("src/domain/a.rs", "use crate::*;"),
            ("src/engine/a.rs", "use crate::store::rows;"),
            ("src/api/a.rs", "use crate::agent::run;"),
            ("src/os/a.rs", "use crate::domain::time;"),
            ("src/manifest/a.rs", "use crate::config;"),
            ("src/agent/a.rs", "use crate::cli;"),
            ("src/agent/a.rs", "use crate::yaml;"),
            ("src/cli/a.rs", "use crate::api::route;"),
            ("src/cli/a.rs", "use crate::domain::record;"),
            ("src/cli/a.rs", "use crate::agent;"),
            ("src/main.rs", "use bargee::store;"),
            ("src/limits.rs", "use crate::domain;"),
            ("src/config.rs", "use super::domain;"),
            ("src/engine/docker/a.rs", "use super::super::super::store;"),
        ] {
            assert_eq!(rules(file, text).len(), 1, "{file}: {text}");
        }
        assert!(rules("src/attic/a.rs", "")[0].contains("no room"));
    }

    #[test]
    fn imports_the_right_way_are_not() {
        for (file, text) in [
            ("src/domain/a.rs", "use crate::{domain::time, limits}; use super::x;"),
            ("src/engine/docker/a.rs", "use super::super::error; use crate::os::clock;"),
            ("src/config.rs", "mod tests { use super::*; }"),
            ("src/cli/a.rs", "use crate::api::wire::{Task, Workload};"),
            (
                "src/api/a.rs",
                "// crate::agent\nconst A: &str = \"crate::agent\"; pub(crate) fn f() {}",
            ),
            ("tests/a.rs", "use bargee::store;"),
        ] {
            assert_eq!(rules(file, text), [""; 0], "{file}: {text}");
        }
    }

    #[test]
    fn packages_elsewhere_are_found() {
        let names = ["serde".to_owned(), "ureq".to_owned()];
        let find = |file: &str, text: &str| packages(&Source::new(file, text, false), &names).len();
        assert_eq!(find("src/domain/a.rs", "use serde::Serialize;"), 1);
        assert_eq!(find("src/agent/a.rs", "fn f() { ureq::get(1) }"), 1);
        assert_eq!(find("src/agent/a.rs", "use ureq;"), 1);
        assert_eq!(find("src/engine/a.rs", "use serde::Serialize;\nuse ureq::Agent;"), 0);
        assert_eq!(find("src/domain/a.rs", "#[cfg(test)]\nmod t { use serde::Serialize; }"), 0);
    }
}
