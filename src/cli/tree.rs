//! JSON as a tree that keeps the order of its keys, and the same as YAML.

use std::fmt::{self, Write};

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    /// `null`, `true`, `12`: what YAML writes just so.
    Plain(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Tree>),
    /// An object, in its order.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// As a YAML document, which both YAML 1.1 and 1.2 read as the same value.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        self.block(0, &mut out);
        out
    }

    /// Writes a value that begins on a line of its own.
    fn block(&self, indent: usize, out: &mut String) {
        match self {
            Self::List(items) if !items.is_empty() => {
                for item in items {
                    pad(indent, out);
                    out.push_str("- ");
                    item.after_dash(indent, out);
                }
            }
            Self::Map(entries) if !entries.is_empty() => {
                for (at, entry) in entries.iter().enumerate() {
                    if at > 0 || !out.ends_with("- ") {
                        pad(indent, out);
                    }
                    entry_line(entry, indent, out);
                }
            }
            _ => self.inline(out),
        }
    }

    /// Writes a value behind `- `; the first key of an object stands on the same line.
    fn after_dash(&self, indent: usize, out: &mut String) {
        match self {
            Self::List(items) if !items.is_empty() => {
                out.pop();
                out.push('\n');
                self.block(indent + 2, out);
            }
            _ => self.block(indent + 2, out),
        }
    }

    /// Writes a value that has no lines of its own, and ends the line.
    fn inline(&self, out: &mut String) {
        match self {
            Self::Plain(text) => out.push_str(text),
            Self::Text(text) => scalar(text, out),
            Self::List(_) => out.push_str("[]"),
            Self::Map(_) => out.push_str("{}"),
        }
        out.push('\n');
    }

    fn has_lines(&self) -> bool {
        match self {
            Self::List(items) => !items.is_empty(),
            Self::Map(entries) => !entries.is_empty(),
            Self::Plain(_) | Self::Text(_) => false,
        }
    }
}

fn entry_line((key, value): &(String, Tree), indent: usize, out: &mut String) {
    scalar(key, out);
    out.push(':');
    if value.has_lines() {
        out.push('\n');
        value.block(indent + 2, out);
    } else {
        out.push(' ');
        value.inline(out);
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a string, quoted unless no reader could take it for anything else.
fn scalar(text: &str, out: &mut String) {
    if is_plain(text) { out.push_str(text) } else { quote(text, out) }
}

/// Beginning with a letter or `/` rules out numbers, dates and times of YAML 1.1; the words of its
/// booleans and nulls are left.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./:@+=,()- ".contains(&b))
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => escape(c, out),
            c if c.is_control() => escape(c, out),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn escape(c: char, out: &mut String) {
    write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string cannot fail");
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Plain("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        // With a point, so that it is read as the number it is.
        Ok(Tree::Plain(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(json: &str) -> String {
        serde_json::from_str::<Tree>(json).unwrap().to_yaml()
    }

    #[test]
    fn order_and_nesting_are_kept() {
        let json = r#"{"uid":"b","items":[{"b":1,"a":[1,[2,3],[]]},{}],"empty":{},"list":["x"]}"#;
        let expected = "uid: b\nitems:\n  - b: 1\n    a:\n      - 1\n      -\n        - 2\n        \
                        - 3\n      - []\n  - {}\nempty: {}\nlist:\n  - x\n";
        assert_eq!(yaml(json), expected);
        assert_eq!(yaml("[]"), "[]\n");
        assert_eq!(yaml(r#"[{"a":{"b":null}}]"#), "- a:\n    b: null\n");
    }

    #[test]
    fn numbers_stay_what_they_are() {
        assert_eq!(yaml("[1.5, 2.0, -3, true, 1e300]"), "- 1.5\n- 2.0\n- -3\n- true\n- 1e300\n");
    }

    #[test]
    fn what_yaml_would_misread_is_quoted() {
        let quoted = [
            "",
            "no",
            "Yes",
            "OFF",
            "y",
            "null",
            "~",
            "08",
            "1e3",
            "12:30",
            "0x1f",
            "2026-11-30",
            ".inf",
            "-",
            "- a",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "*a",
            "&a",
            "!a",
            "{a",
            "[a",
            "'a'",
            "%a",
            "@a",
            "`a",
            "<<",
            "=",
            "ä",
            "a\"b",
        ];
        for text in quoted {
            assert!(!is_plain(text), "{text}");
        }
        for text in ["web", "nginx:1.27-alpine", "/srv/x", "a b", "Running(Ok)", "no-op", "SIGTERM"]
        {
            assert!(is_plain(text), "{text}");
        }
        assert_eq!(
            yaml(r#"["a\n\"b\"\\\u0007\u2028"]"#),
            "- \"a\\n\\\"b\\\"\\\\\\u0007\\u2028\"\n"
        );
    }
}
