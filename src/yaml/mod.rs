//! YAML as trees of nodes that know their lines, read within bounds. Knows nothing of what the
//! files mean.
//!
//! Scalars keep their own text: what is a number, a boolean or a size is for the reader of a field
//! to say, so `no` stays "no", `08` stays "08", and `8080:80` is not a number in base 60.

use std::rc::Rc;

use crate::limits::{BODY_BYTES, MANIFEST_ERRORS, MANIFEST_INDICATORS, MANIFEST_NODES};

pub mod field;

pub mod nearest;

pub mod size;

mod json;

mod read;

#[cfg(test)]
mod tests;

/// A value and where it begins.
#[derive(Debug, PartialEq)]
pub struct Node {
    /// Line, from 1. A value that an alias repeats has the line of its anchor.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// What a node holds.
#[derive(Debug, PartialEq)]
pub enum Value {
    /// One piece of text.
    Scalar(Scalar),
    /// A list. Nodes are shared, since an alias repeats one without copying it.
    Sequence(Vec<Rc<Node>>),
    /// Keys and values in the order of the file.
    Mapping(Vec<Entry>),
}

/// A piece of text.
#[derive(Debug, PartialEq)]
pub struct Scalar {
    /// The text, escapes and folding resolved.
    pub text: String,
    /// It was quoted or a block, so it is text and never null.
    pub quoted: bool,
}

/// One line of a mapping.
#[derive(Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Line of the key, from 1.
    pub line: usize,
    /// The value.
    pub value: Rc<Node>,
}

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// Line, from 1; 0: the file as a whole.
    pub line: usize,
    /// Path of the field; empty: the document as a whole.
    pub field: String,
    /// What was found and what is allowed, as one sentence.
    pub message: String,
}

/// The flaws of one file: the first ones in full, the rest counted.
#[derive(Debug, Default)]
pub struct Flaws {
    kept: Vec<Flaw>,
    more: usize,
}

/// What a file may have.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Size in bytes, of the file and of all its values together.
    pub bytes: usize,
    /// Nodes, those that an alias repeats counted each time.
    pub nodes: usize,
    /// Characters that YAML may take for a token of their own.
    pub indicators: usize,
}

impl Bounds {
    /// For files that people write.
    pub const FILE: Self =
        Self { bytes: BODY_BYTES, nodes: MANIFEST_NODES, indicators: MANIFEST_INDICATORS };
}

impl Flaws {
    /// Adds one. Beyond [`MANIFEST_ERRORS`] it is only counted.
    pub fn add(&mut self, line: usize, field: impl FnOnce() -> String, message: impl ToString) {
        if self.kept.len() < MANIFEST_ERRORS {
            self.kept.push(Flaw { line, field: field(), message: message.to_string() });
        } else {
            self.more += 1;
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The flaws kept, in the order of the file, and the number of those left out.
    pub fn into_parts(mut self) -> (Vec<Flaw>, usize) {
        self.kept.sort_by_key(|flaw| flaw.line);
        (self.kept, self.more)
    }
}

impl Flaw {
    /// The flaw as one line that begins with `file`.
    pub fn located(&self, file: &impl std::fmt::Display) -> String {
        let line = if self.line > 0 { format!(":{}", self.line) } else { String::new() };
        let field = if self.field.is_empty() { "" } else { ": " };
        format!("{file}{line}{field}{}: {}", self.field, self.message)
    }
}

impl Scalar {
    /// Whether it stands for nothing: left empty, `~` or `null`.
    pub fn is_null(&self) -> bool {
        !self.quoted && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// The node in words, for "found ...".
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Scalar(scalar) if scalar.is_null() => "nothing".to_owned(),
            Value::Scalar(scalar) => shown(&scalar.text),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// `text` in quotes for a message: escaped, and cut when it is long.
pub fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The documents of a file; those without content are left out. What is wrong is added to `flaws`;
/// after a flaw that ends the reading, the documents before it are still given.
pub fn read(text: &str, bounds: Bounds, flaws: &mut Flaws) -> Vec<Rc<Node>> {
    // Beyond the bound a text is refused unseen.
    let text = if text.len() > bounds.bytes { text.into() } else { json::joined(text) };
    read::Reader::new(bounds, flaws).documents(&text)
}

/// The text of a file's bytes.
///
/// # Errors
/// The bytes are more than `bytes_max`, or not UTF-8.
pub fn text(bytes: Vec<u8>, bytes_max: usize) -> Result<String, Flaw> {
    let whole = |message| Flaw { line: 0, field: String::new(), message };
    if bytes.len() > bytes_max {
        return Err(whole(too_long(bytes_max)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let breaks = error.as_bytes().iter().take(end).filter(|byte| **byte == b'\n').count();
        Flaw { line: breaks + 1, ..whole("is not UTF-8 text".to_owned()) }
    })
}

fn too_long(bytes_max: usize) -> String {
    format!("has more than {bytes_max} bytes")
}
