//! Tests that answer a report from the field carry its id, and `tests/field_reports.md` lists them.

use crate::finding::Finding;
use crate::source::Source;

/// The list.
pub const LIST: &str = "tests/field_reports.md";

/// A test that a line of the list names.
#[derive(Debug, PartialEq)]
struct Named<'a> {
    line: usize,
    id: &'a str,
    test: &'a str,
    file: &'a str,
}

/// Tests that are listed and not there, or there and not listed, or under another report.
pub fn listed(list: &str, sources: &[Source]) -> Vec<Finding> {
    let named: Vec<Named<'_>> = list.lines().enumerate().flat_map(|(n, l)| names(n, l)).collect();
    let there: Vec<(&str, usize, String)> = sources.iter().flat_map(tests).collect();
    let mut findings = Vec::new();
    for name in &named {
        let is_it =
            |(file, _, test): &(&str, usize, String)| *file == name.file && test == name.test;
        if !there.iter().any(is_it) {
            let rule = format!("there is no test `{}` in {}", name.test, name.file);
            findings.push(Finding::new(LIST, name.line, rule, "who looks for it finds nothing"));
        }
        if !ids(name.test).any(|id| id == name.id.to_ascii_lowercase()) {
            let rule = format!("`{}` does not begin with {}", name.test, name.id.to_lowercase());
            findings.push(Finding::new(LIST, name.line, rule, "a test is found by its id"));
        }
    }
    for (file, line, test) in there {
        let ids = ids(&test).filter(|id| {
            let is_it = |name: &&Named<'_>| {
                name.file == file && name.test == test && name.id.to_ascii_lowercase() == **id
            };
            !named.iter().any(|name| is_it(&name))
        });
        for id in ids {
            let rule = format!("`{test}` is not listed under {}", id.to_uppercase());
            let why = "tests/field_reports.md says what has a test and what has none";
            findings.push(Finding::new(file, line, rule, why));
        }
    }
    findings
}

/// The ids that the name of a test begins with: `b13` and `b28` of `b13_b28_after_a_boot`.
fn ids(test: &str) -> impl Iterator<Item = &str> {
    test.split('_').take_while(|word| {
        let digits = word.strip_prefix('b').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What a row names: `test` in `file`, any number of times.
fn names(number: usize, line: &str) -> Vec<Named<'_>> {
    let Some(id) = line.strip_prefix("| ").and_then(|row| row.split(' ').next()) else {
        return Vec::new();
    };
    let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    let is_test = |word: &str| ids(word).next().is_some();
    let pairs = quoted.windows(2).filter(|pair| is_test(pair[0]));
    pairs.map(|pair| Named { line: number + 1, id, test: pair[0], file: pair[1] }).collect()
}

/// The functions of a file that are named after reports, with their lines.
fn tests(source: &Source) -> Vec<(&str, usize, String)> {
    let found = source.words("fn").into_iter().filter_map(|at| {
        let name: String = source.code[at + 2..]
            .iter()
            .skip_while(|c| c.is_whitespace())
            .take_while(|c| c.is_alphanumeric() || **c == '_')
            .collect();
        let is_one = ids(&name).next().is_some();
        is_one.then(|| (source.file.as_str(), source.line(at), name))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "| B13 | x 1 | right, not `wrong` | `b13_b28_a` in `tests/a.rs`; \
                       `b13_b` in `tests/b.rs` | |";

    fn source(file: &str, names: &[&str]) -> Source {
        let text: String =
            names.iter().map(|name| format!("#[test]\nfn {name}() {{}}\n")).collect();
        Source::new(file, &text, false)
    }

    #[test]
    fn rows_name_tests_and_files() {
        let named = |test, file| Named { line: 3, id: "B13", test, file };
        let expected = [named("b13_b28_a", "tests/a.rs"), named("b13_b", "tests/b.rs")];
        assert_eq!(names(2, ROW), expected);
        assert_eq!(names(0, "`b13_b` in `tests/b.rs`"), []);
        assert_eq!(ids("b13_b28_after_b1").collect::<Vec<_>>(), ["b13", "b28"]);
        assert_eq!(ids("b_side").count() + ids("begin").count() + ids("b1x_a").count(), 0);
    }

    #[test]
    fn what_is_missing_on_either_side_is_found() {
        let rows = format!("{ROW}\n{}\n", "| B28 | x 2 | so | `b13_b28_a` in `tests/a.rs` | |");
        let mut sources =
            vec![source("tests/a.rs", &["b13_b28_a"]), source("tests/b.rs", &["b13_b"])];
        assert_eq!(listed(&rows, &sources), []);
        assert_eq!(listed(ROW, &sources).len(), 1, "not under B28");
        assert_eq!(listed(&rows, &sources[..1]).len(), 1, "not there");
        let wrong = rows.replace("| B28 |", "| B29 |");
        assert_eq!(listed(&wrong, &sources).len(), 2, "under another report");
        sources.push(source("tests/c.rs", &["b7_x", "other"]));
        assert_eq!(listed(&rows, &sources).len(), 1, "not listed");
    }
}
