//! Rules about texts: headings, sizes, and words that do not belong here.

use crate::finding::Finding;
use crate::source::Source;

const FILE_LINES: usize = 600;
const LINE_COLUMNS: usize = 100;
const INNER_TEST_LINES: usize = 300;

/// Paths of one developer's machine, papers that are not here, and how somebody worked. Each in two
/// parts, so that this file is not its own first finding.
const FOREIGN: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("the br", "ief"),
    ("this sess", "ion"),
    ("the integr", "ator"),
];

/// The first line is a heading.
pub fn heading(source: &Source) -> Vec<Finding> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    let why = "the first line says what a file is for";
    vec![Finding::new(&source.file, 1, "a Rust file begins with `//! `", why)]
}

/// Lines of a file, columns of a line, and tests that crowd out the code.
pub fn size(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line, rule: String, why| {
        findings.push(Finding::new(&source.file, line, rule, why));
    };
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        let rule = format!("the file has {lines} lines; at most {FILE_LINES}");
        found(0, rule, "a file is read as a whole, so it is one subject");
    }
    for (number, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS {
            let rule = format!("the line has {columns} columns; at most {LINE_COLUMNS}");
            found(number + 1, rule, "two files fit side by side on a screen");
        }
    }
    for (from, to) in &source.test_lines {
        let lines = to - from;
        if lines > INNER_TEST_LINES && !source.is_test {
            let rule = format!(
                "{lines} lines of tests in the file; above {INNER_TEST_LINES} they get their own"
            );
            found(from + 1, rule, "the code is what somebody opens the file for");
        }
    }
    findings
}

/// Words that mean nothing to whoever reads the project.
pub fn foreign_words(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.to_lowercase();
        for (begin, end) in FOREIGN {
            let word = format!("{begin}{end}");
            if line.contains(&word) {
                let rule = format!("`{word}` is no word of the project");
                let why = "the project speaks of itself, not of how or where it was made";
                findings.push(Finding::new(file, number + 1, rule, why));
            }
        }
    }
    findings
}

/// Documents that are named but not there. `files` are all there are.
pub fn lost_documents(file: &str, text: &str, files: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let is_name = |c: char| c.is_alphanumeric() || "._-/".contains(c);
        for name in line.split(|c| !is_name(c)) {
            let name = name.trim_end_matches('.').trim_start_matches("../");
            let stem = name.strip_suffix(".md").filter(|stem| !stem.is_empty());
            let there = |known: &&str| **known == *name || known.ends_with(&format!("/{name}"));
            if stem.is_some() && !files.iter().any(there) {
                let rule = format!("the document `{name}` is not there");
                let why = "a reader goes and looks for it";
                findings.push(Finding::new(file, number + 1, rule, why));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("src/a.rs", text, false)
    }

    #[test]
    fn a_file_without_a_heading_is_found() {
        assert_eq!(heading(&source("//! Good.\n")), []);
        assert_eq!(heading(&source("// Bad.\n//! Late.\n")).len(), 1);
        assert_eq!(heading(&source("")).len(), 1);
    }

    #[test]
    fn long_files_lines_and_tests_are_found() {
        assert_eq!(size(&source(&"\n".repeat(600))), []);
        assert_eq!(size(&source(&"\n".repeat(601)))[0].line, 0);
        assert_eq!(size(&source(&format!("a\n{}\n", "ä".repeat(100)))), []);
        assert_eq!(size(&source(&format!("a\n{}\n", "ä".repeat(101))))[0].line, 2);
        let tests = format!("fn a() {{}}\n#[cfg(test)]\nmod t {{{}}}\n", "\n".repeat(299));
        assert_eq!(size(&source(&tests))[0].line, 2);
        assert_eq!(size(&source(&tests.replacen('\n', "", 3))), []);
    }

    #[test]
    fn words_of_elsewhere_are_found() {
        let (begin, end) = FOREIGN[0];
        let text = format!("good\nsee {begin}{end}notes\n");
        assert_eq!(foreign_words("a.sh", &text)[0].line, 2);
        assert_eq!(foreign_words("a.sh", "a working homely root"), []);
    }

    #[test]
    fn lost_documents_are_found() {
        let files = ["docs/states.md", "README.md"];
        let find = |text: &str| lost_documents("src/a.rs", text, &files).len();
        assert_eq!(find("see `docs/states.md`, ../../docs/states.md and (states.md)."), 0);
        // In two parts, since this file is read by the rule too.
        assert_eq!(find(concat!("see docs/plans", ".md")), 1);
        assert_eq!(find("`*.md` are documents"), 0);
    }
}
