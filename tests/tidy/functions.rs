//! Rules about functions: lines and parameters.

use crate::finding::Finding;
use crate::source::{Source, after_group, is_word};

const LINES: usize = 70;
const PARAMETERS: usize = 5;

/// A function with a body.
#[derive(PartialEq, Eq, Debug)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
    /// Without `self`.
    parameters: usize,
}

/// Functions that are too long, or take too much.
pub fn size(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Function { name, line, lines, parameters } in functions(source) {
        if lines > LINES {
            let rule = format!("`{name}` has {lines} lines; at most {LINES}");
            let why = "a function is read at one glance";
            findings.push(Finding::new(&source.file, line, rule, why));
        }
        if parameters > PARAMETERS {
            let rule = format!("`{name}` takes {parameters} parameters; at most {PARAMETERS}");
            let why = "beyond five, a struct gives them names where it is called";
            findings.push(Finding::new(&source.file, line, rule, why));
        }
    }
    findings
}

fn functions(source: &Source) -> Vec<Function> {
    source.words("fn").into_iter().filter_map(|at| function(source, at)).collect()
}

fn function(source: &Source, at: usize) -> Option<Function> {
    let code = &source.code;
    let begin = at + 2 + code[at + 2..].iter().position(|c| !c.is_whitespace())?;
    let name: String = code[begin..].iter().take_while(|c| is_word(**c)).collect();
    if name.is_empty() {
        // A type: `fn(u8) -> u8`.
        return None;
    }
    let mut open = begin + name.chars().count();
    if code.get(open) == Some(&'<') {
        open = after_angles(code, open);
    }
    let close = after_group(code, open);
    let body = body(code, close)?;
    let end = after_group(code, body);
    let line = source.line(at);
    let parameters = parameters(&code[open + 1..close - 1]);
    Some(Function { name, line, lines: source.line(end - 1) - line + 1, parameters })
}

/// Where the body begins; `None`: there is none.
fn body(code: &[char], close: usize) -> Option<usize> {
    let mut at = close;
    loop {
        match code.get(at)? {
            '{' => return Some(at),
            ';' => return None,
            '(' | '[' => at = after_group(code, at),
            _ => at += 1,
        }
    }
}

/// The position after the `>` that closes the `<` at `at`.
fn after_angles(code: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    for place in at..code.len() {
        match code[place] {
            '<' => depth += 1,
            '>' if code[place - 1] == '-' => {}
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    code.len()
}

fn parameters(list: &[char]) -> usize {
    let mut depth = 0_i32;
    let mut parts = vec![String::new()];
    for (at, &c) in list.iter().enumerate() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if at > 0 && list[at - 1] == '-' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("it begins with one").push(c);
    }
    parts.iter().filter(|part| !part.trim().is_empty() && !is_receiver(part)).count()
}

fn is_receiver(part: &str) -> bool {
    let name = part.split(':').next().unwrap_or_default();
    name.split(|c: char| !is_word(c)).next_back() == Some("self")
        || name.trim().ends_with(" self")
        || name.trim() == "self"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("src/a.rs", text, false)
    }

    #[test]
    fn lines_and_parameters_are_counted() {
        let table = [
            ("fn a() {}", 1, 0),
            ("fn a(\n  &mut self,\n  b: (u8, u8),\n) -> [u8; 2]\n{\n}", 6, 1),
            ("fn a<F: Fn(u8, u8) -> u8>(f: F, g: Vec<(u8, u8)>, h: fn(u8, u8) -> u8) {\n}", 2, 3),
            ("fn a<'a>(&'a self, b: HashMap<u8, u8>,) where X: Y<Z> { '}'; \"}\" }", 1, 1),
            ("fn a(self: Box<Self>, itself: u8) {}", 1, 1),
        ];
        for (text, lines, parameters) in table {
            let found = functions(&source(text));
            let counts: Vec<_> = found.iter().map(|f| (f.lines, f.parameters)).collect();
            assert_eq!(counts, [(lines, parameters)], "{text}");
        }
        assert!(
            functions(&source("type A = fn(u8); trait B { fn c(&self) -> [u8; 2]; }")).is_empty()
        );
    }

    #[test]
    fn long_functions_are_found() {
        let body = |lines: usize| format!("\nfn f() {{{}}}\n", "\n".repeat(lines - 1));
        assert_eq!(size(&source(&body(70))), []);
        let findings = size(&source(&body(71)));
        assert_eq!((findings.len(), findings[0].line), (1, 2));
        let inner = format!("fn a() {{ {} }}", body(71));
        assert_eq!(size(&source(&inner)).len(), 2, "both the outer and the inner one");
    }

    #[test]
    fn many_parameters_are_found() {
        let five = "a: u8, b: u8, c: u8, d: u8, e: u8";
        assert_eq!(size(&source(&format!("fn f(&self, {five}) {{}}"))), []);
        assert_eq!(size(&source(&format!("fn f({five}, g: u8) {{}}"))).len(), 1);
    }
}
