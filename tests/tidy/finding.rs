//! What a rule found.

use std::fmt;

/// One place that breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The file, from the top of the repository.
    pub file: String,
    /// The line, from 1; 0: the file as a whole.
    pub line: usize,
    /// What is not so, and what should be.
    pub rule: String,
    /// What the rule is for.
    pub why: &'static str,
}

impl Finding {
    /// A finding in `file` at `line`.
    pub fn new(file: &str, line: usize, rule: impl Into<String>, why: &'static str) -> Self {
        Self { file: file.to_owned(), line, rule: rule.into(), why }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} ({})", self.rule, self.why)
    }
}

/// Fails with everything that was found.
pub fn report(findings: Vec<Finding>) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} finding(s)\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn a_finding_names_file_line_rule_and_reason() {
    let finding = Finding::new("src/a.rs", 3, "is too long", "long is hard to read");
    assert_eq!(finding.to_string(), "src/a.rs:3: is too long (long is hard to read)");
}

#[test]
#[should_panic(expected = "1 finding(s)\nsrc/a.rs: is bad (so)")]
fn a_report_fails() {
    report(vec![Finding::new("src/a.rs", 0, "is bad", "so")]);
}
