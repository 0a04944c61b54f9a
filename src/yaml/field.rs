//! A place in a tree: reading it, naming it, saying what is wrong with it.

use std::fmt::Display;

use super::nearest::nearest;
use super::{Entry, Flaws, Node, Scalar, Value, shown};

/// A node and the way to it. The way is spelled out only when something is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The node.
    pub node: &'a Node,
    /// Line of the key it stands behind; of itself where there is none.
    key_line: usize,
    step: Step<'a>,
    parent: Option<&'a Field<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

/// Which keys a mapping may have.
#[derive(Debug)]
pub struct Shape {
    /// Path of the mapping; empty: the document.
    pub path: &'static str,
    /// Keys that are read.
    pub keys: &'static [&'static str],
    /// Keys that have a meaning which is not built yet.
    pub later: &'static [&'static str],
}

/// A mapping whose keys were checked.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    field: &'a Field<'a>,
    entries: &'a [Entry],
}

impl<'a> Field<'a> {
    /// A whole document.
    pub fn root(node: &'a Node) -> Self {
        Self { node, key_line: node.line, step: Step::Root, parent: None }
    }

    /// Line of the value, from 1.
    pub fn line(&self) -> usize {
        self.node.line
    }

    /// Path from the document, as `spec.ports[1]`.
    pub fn path(&self) -> String {
        let before = self.parent.map(Field::path).unwrap_or_default();
        match self.step {
            Step::Root => before,
            Step::Key(key) => join(before, key),
            Step::Index(index) => format!("{before}[{index}]"),
        }
    }

    /// Records that something is wrong here.
    pub fn refuse(&self, flaws: &mut Flaws, message: impl Display) {
        flaws.add(self.node.line, || self.path(), message);
    }

    /// Records that something else was expected here.
    pub fn mismatch(&self, flaws: &mut Flaws, expected: impl Display) {
        self.refuse(flaws, format_args!("must be {expected}, found {}", self.node.describe()));
    }

    /// The scalar's own text; `expected` names it for the message when there is none.
    pub fn text(&self, expected: &str, flaws: &mut Flaws) -> Option<&'a str> {
        match &self.node.value {
            Value::Scalar(scalar) if !scalar.is_null() => self.whole(scalar, flaws),
            _ => {
                self.mismatch(flaws, expected);
                None
            }
        }
    }

    fn whole(&self, scalar: &'a Scalar, flaws: &mut Flaws) -> Option<&'a str> {
        // No engine and no kernel takes a NUL within a text.
        if scalar.text.contains('\0') {
            self.refuse(flaws, "may not have a NUL character");
            return None;
        }
        Some(&scalar.text)
    }

    /// The scalar as `parse` reads it; its error is a sentence that follows the field's name.
    pub fn parse<T>(
        &self,
        expected: &str,
        flaws: &mut Flaws,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(expected, flaws)?;
        parse(text).map_err(|message| self.refuse(flaws, message)).ok()
    }

    /// The items of a list.
    pub fn items<'s>(
        &'s self,
        expected: &str,
        flaws: &mut Flaws,
    ) -> Option<impl Iterator<Item = Field<'s>> + use<'s, 'a>> {
        let Value::Sequence(items) = &self.node.value else {
            self.mismatch(flaws, expected);
            return None;
        };
        Some(items.iter().enumerate().map(|(index, node)| Field {
            node,
            key_line: node.line,
            step: Step::Index(index),
            parent: Some(self),
        }))
    }

    /// The mapping, whatever its keys are.
    pub fn mapping<'s>(&'s self, expected: &str, flaws: &mut Flaws) -> Option<Members<'s>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.mismatch(flaws, expected);
            return None;
        };
        Some(Members { field: self, entries })
    }

    /// The mapping with the keys of `shape`. A wrong key is recorded and left out, so that the rest
    /// is still looked at.
    pub fn members<'s>(&'s self, shape: &Shape, flaws: &mut Flaws) -> Option<Members<'s>> {
        let members = self.mapping(&shape.expected(), flaws)?;
        for (key, field) in members.all() {
            if shape.keys.contains(&key) {
                continue;
            }
            // The line of the key: that is what is wrong.
            flaws.add(field.key_line, || field.path(), shape.refusal(key));
        }
        Some(members)
    }
}

impl Shape {
    /// What is to stand here, with one of its keys.
    fn expected(&self) -> String {
        match self.keys {
            [first, ..] if !self.path.is_empty() => format!("a mapping as {{{first}: ...}}"),
            _ => "a mapping".to_owned(),
        }
    }

    fn refusal(&self, key: &str) -> String {
        if self.later.contains(&key) {
            return "is not supported yet".to_owned();
        }
        let known = || self.keys.iter().chain(self.later).copied();
        let allowed = self.keys.join(", ");
        match nearest(key, known()) {
            Some(meant) => format!("is unknown; did you mean {meant}? Allowed are {allowed}"),
            None if allowed.is_empty() => "is unknown; nothing is allowed here".to_owned(),
            None => format!("is unknown; allowed are {allowed}"),
        }
    }
}

impl<'a> Members<'a> {
    /// All entries in the order of the file.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> + use<'a> {
        let field = self.field;
        self.entries.iter().map(move |entry| (entry.key.as_str(), child(field, entry)))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Field<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| child(self.field, entry))
    }

    /// `Some(None)` without the key, `None` when `read` recorded a flaw.
    pub fn optional<T>(
        &self,
        key: &str,
        flaws: &mut Flaws,
        read: impl FnOnce(&Field<'_>, &mut Flaws) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(key) {
            Some(field) => read(&field, flaws).map(Some),
            None => Some(None),
        }
    }

    /// As [`Members::optional`], with a default.
    pub fn or<T>(
        &self,
        key: &str,
        default: T,
        flaws: &mut Flaws,
        read: impl FnOnce(&Field<'_>, &mut Flaws) -> Option<T>,
    ) -> Option<T> {
        Some(self.optional(key, flaws, read)?.unwrap_or(default))
    }

    /// As [`Members::optional`], where a missing key is a flaw.
    pub fn required<T>(
        &self,
        key: &str,
        flaws: &mut Flaws,
        read: impl FnOnce(&Field<'_>, &mut Flaws) -> Option<T>,
    ) -> Option<T> {
        let value = self.optional(key, flaws, read)?;
        if value.is_none() {
            flaws.add(self.field.key_line, || join(self.field.path(), key), "is missing");
        }
        value
    }
}

fn child<'a>(parent: &'a Field<'a>, entry: &'a Entry) -> Field<'a> {
    let (node, step) = (&*entry.value, Step::Key(&entry.key));
    Field { node, key_line: entry.line, step, parent: Some(parent) }
}

/// `path` and the key after it; a key that would be misread in a path is quoted.
pub(super) fn join(path: String, key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let key = if !key.is_empty() && key.len() <= 64 && key.chars().all(plain) {
        key.to_owned()
    } else {
        shown(key)
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
