//! Rules about words of the code: purity, leftovers, unwraps, unsafe.

use crate::finding::Finding;
use crate::rooms::{paths, room};
use crate::source::Source;

/// Parts of `std` that touch the world.
const WORLD: &[&str] = &["env", "fs", "io", "net", "os", "process", "thread"];
/// What is a mere value there.
const VALUES: &[&str] = &["IpAddr", "Ipv4Addr", "Ipv6Addr"];
/// Clocks, shared state and output, wherever they come from.
const IMPURE: &[&str] = &[
    "Cell",
    "Condvar",
    "Instant",
    "LazyCell",
    "LazyLock",
    "Mutex",
    "OnceCell",
    "OnceLock",
    "RefCell",
    "RwLock",
    "SystemTime",
    "UnsafeCell",
    "dbg",
    "eprint",
    "eprintln",
    "mpsc",
    "print",
    "println",
    "thread_local",
];
/// What tests of the domain may use all the same: how they are called, and what they tell.
const TESTS_MAY: &[&str] = &["env", "eprint", "eprintln", "print", "println"];
/// The one file with `unsafe`.
const UNSAFE_FILE: &str = "src/os/memory.rs";

/// The domain takes values and gives values.
pub fn purity(source: &Source) -> Vec<Finding> {
    if room(&source.file) != Some("domain") {
        return Vec::new();
    }
    let why = "decisions are tested with a made-up clock and no device; the world comes in by \
               events and goes out by effects";
    let mut findings = Vec::new();
    let mut found = |at, what: &str| {
        let line = source.line(at);
        let word = what.trim_start_matches("std::");
        if TESTS_MAY.contains(&word) && source.tests_at(line) {
            return;
        }
        let rule = format!("`{what}` in the domain, which is pure");
        findings.push(Finding::new(&source.file, line, rule, why));
    };
    for (at, path) in paths(source, "std") {
        let part = |number: usize| path.get(number).map_or("", String::as_str);
        if WORLD.contains(&part(0)) && !VALUES.contains(&part(1)) {
            found(at, &format!("std::{}", part(0)));
        }
    }
    for word in IMPURE {
        source.words(word).into_iter().for_each(|at| found(at, word));
    }
    for at in source.words("static") {
        if source.after(at + 6, 3) == "mut" {
            found(at, "static mut");
        }
    }
    for (at, c) in source.code.iter().enumerate() {
        let begins = at == 0 || !crate::source::is_word(source.code[at - 1]);
        if begins && *c == 'A' && source.after(at, 6) == "Atomic" {
            found(at, "Atomic");
        }
    }
    findings
}

/// What was to be done later, or was used to find a bug.
pub fn leftovers(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, what: &str, why| {
        let rule = format!("`{what}` is left over");
        findings.push(Finding::new(&source.file, line, rule, why));
    };
    for word in ["todo", "unimplemented", "dbg"] {
        for at in source.words(word) {
            if source.after(at + word.len(), 1) == "!" {
                found(source.line(at), word, "what is not built is refused, not stubbed");
            }
        }
    }
    for at in source.words("ignore") {
        if source.before(at, 2) == "#[" {
            let why = "a test that nobody runs proves nothing";
            found(source.line(at), "#[ignore]", why);
        }
    }
    for (number, line) in source.comments.lines().enumerate() {
        for word in ["FIXME", "TODO", "XXX"] {
            if line.contains(word) {
                found(number + 1, word, "it is done, or it is an issue");
            }
        }
    }
    findings
}

/// Product code says why it cannot fail, or hands the failure on.
pub fn unwraps(source: &Source) -> Vec<Finding> {
    if room(&source.file).is_none() {
        return Vec::new();
    }
    let why = "`expect` says why it cannot happen; everything else is an error with a sentence";
    let mut findings = Vec::new();
    for word in ["unwrap", "unwrap_err"] {
        for at in source.words(word) {
            let line = source.line(at);
            let called = source.after(at + word.len(), 2) == "()";
            if called && !source.tests_at(line) {
                let rule = format!("`{word}()` outside tests");
                findings.push(Finding::new(&source.file, line, rule, why));
            }
        }
    }
    findings
}

/// `unsafe` and what allows it.
pub fn unsafety(source: &Source) -> Vec<Finding> {
    if source.file == UNSAFE_FILE {
        return Vec::new();
    }
    let why = "one file has to be read with other eyes, not all of them";
    let words = ["unsafe", "unsafe_code"].into_iter();
    let places = words.flat_map(|word| source.words(word).into_iter().map(move |at| (word, at)));
    let finding = |(word, at)| {
        let rule = format!("`{word}` outside {UNSAFE_FILE}");
        Finding::new(&source.file, source.line(at), rule, why)
    };
    places.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> Vec<Finding> {
        purity(&Source::new("src/domain/a.rs", text, false))
    }

    #[test]
    fn every_impurity_is_found() {
        for part in WORLD {
            assert_eq!(domain(&format!("\nuse std::{part}::x;"))[0].line, 2, "{part}");
            assert_eq!(domain(&format!("use std::{{fmt, {part}}};")).len(), 1, "{part}");
            assert_eq!(domain(&format!("fn f() {{ std::{part}::x() }}")).len(), 1, "{part}");
        }
        for word in IMPURE {
            assert_eq!(domain(&format!("fn f() {{ {word}!() }}")).len(), 1, "{word}");
        }
        assert_eq!(domain("static mut A: u8 = 0;").len(), 1);
        assert_eq!(domain("use std::sync::atomic::AtomicU8;").len(), 1);
        assert_eq!(domain("use std::net::{IpAddr, TcpStream};").len(), 1);
        assert_eq!(domain("// println!\nuse std::sync::Arc; const A: &str = \"Mutex\";"), []);
        let tests = |text| purity(&Source::new("src/domain/tests.rs", text, true)).len();
        assert_eq!(tests("fn f() { println!(\"{:?}\", std::env::var(\"X\")) }"), 0);
        assert_eq!(tests("fn f() { std::thread::yield_now(); Instant::now(); }"), 2);
        let elsewhere = Source::new("src/agent/a.rs", "use std::fs;", false);
        assert_eq!(purity(&elsewhere), []);
    }

    #[test]
    fn leftovers_are_found() {
        let find = |text: &str| leftovers(&Source::new("src/a.rs", text, false)).len();
        for text in [
            "fn f() { todo!() }",
            "fn f() { unimplemented!(\"later\") }",
            "fn f() { dbg!(1); }",
            "#[test]\n#[ignore]\nfn f() {}",
            "#[ignore = \"slow\"]",
            "// FIXME: later",
            "/* TODO */",
        ] {
            assert_eq!(find(text), 1, "{text}");
        }
        assert_eq!(find("fn todo() { ignore() } // ignore it\nconst A: &str = \"FIXME\";"), 0);
    }

    #[test]
    fn unwraps_outside_tests_are_found() {
        let text = "fn f() { x.unwrap(); y.unwrap_or(1); }\n#[cfg(test)]\nmod t { fn g() { \
                    x.unwrap(); } }";
        let product = unwraps(&Source::new("src/os/a.rs", text, false));
        assert_eq!(product.iter().map(|f| f.line).collect::<Vec<_>>(), [1]);
        assert_eq!(unwraps(&Source::new("src/os/tests.rs", text, true)), []);
        assert_eq!(unwraps(&Source::new("tests/a.rs", text, false)), []);
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        let text = "#![allow(unsafe_code)]\nfn f() { unsafe { g() } }";
        assert_eq!(unsafety(&Source::new("src/os/a.rs", text, false)).len(), 2);
        assert_eq!(unsafety(&Source::new(UNSAFE_FILE, text, false)), []);
    }
}
