//! From parser events to trees, without recursion and within bounds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::{Bounds, Entry, Flaws, Node, Scalar, Value, too_long};
use crate::limits::MANIFEST_DEPTH;

/// Builds the nodes of one file.
pub(super) struct Reader<'f> {
    bounds: Bounds,
    flaws: &'f mut Flaws,
    /// The sequences and mappings that are open, outermost first.
    open: Vec<Open>,
    /// Finished nodes of this document that an alias may repeat, by the parser's number.
    anchors: BTreeMap<usize, Anchored>,
    /// The root of this document, once finished.
    root: Option<Rc<Node>>,
    /// Nodes and bytes of text so far in this file, repeats counted.
    weight: Weight,
}

/// How much a node holds, repeats counted.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
}

struct Anchored {
    node: Rc<Node>,
    weight: Weight,
    levels: usize,
}

/// A collection that has begun.
struct Open {
    line: usize,
    anchor: usize,
    /// The weight of the file before it.
    before: Weight,
    /// Levels of nesting within it, itself included.
    levels: usize,
    items: Items,
}

enum Items {
    Sequence(Vec<Rc<Node>>),
    Mapping { entries: Vec<Entry>, key: Option<(String, usize)> },
}

/// The rest of the file cannot be read; the flaw is recorded.
struct Stop;

impl<'f> Reader<'f> {
    pub(super) fn new(bounds: Bounds, flaws: &'f mut Flaws) -> Self {
        let (open, anchors) = (Vec::new(), BTreeMap::new());
        Self { bounds, flaws, open, anchors, root: None, weight: Weight::default() }
    }

    pub(super) fn documents(mut self, text: &str) -> Vec<Rc<Node>> {
        let mut documents = Vec::new();
        if self.check_text(text).is_err() {
            return documents;
        }
        for event in Parser::new_from_str(text) {
            let (event, span) = match event {
                Ok(read) => read,
                Err(error) => {
                    self.unreadable(text, &error);
                    break;
                }
            };
            if self.event(event, span.start.line()).is_err() {
                break;
            }
            documents.extend(self.root.take().filter(|root| !is_empty(root)));
        }
        documents
    }

    /// The parser's own error. For a tab in an indentation it blames the line before, so that is
    /// looked for here.
    fn unreadable(&mut self, text: &str, error: &ScanError) {
        let line = error.marker().line();
        let mut near = text.lines().enumerate().skip(line.saturating_sub(1)).take(2);
        let indentation = |line: &str| line.len() - line.trim_start().len();
        match near.find(|(_, line)| line[..indentation(line)].contains('\t')) {
            Some((index, _)) => {
                let message = "is indented with a tab; YAML is indented with spaces";
                self.flaws.add(index + 1, String::new, message);
            }
            None => {
                let message = format_args!("is not valid YAML: {}", error.info());
                self.flaws.add(line, String::new, message);
            }
        }
    }

    /// What can be refused before the parser sees it.
    fn check_text(&mut self, text: &str) -> Result<(), Stop> {
        if text.len() > self.bounds.bytes {
            return self.stop(0, too_long(self.bounds.bytes));
        }
        if let Some(at) = text.find('\0') {
            let line = text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1;
            return self.stop(line, "has a NUL character; this is not a text file");
        }
        let indicators = text.bytes().filter(|byte| b",[]{}:?&*!".contains(byte)).count();
        if indicators > self.bounds.indicators {
            let most = self.bounds.indicators;
            return self
                .stop(0, format_args!("has more than {most} of the characters ,[]{{}}:?&*!"));
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), Stop> {
        match event {
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::Alias(anchor) => self.alias(anchor, line)?,
            Event::Scalar(text, style, anchor, tag) => {
                self.tag(tag.is_some(), line);
                self.weigh(Weight { nodes: 1, bytes: text.len() }, line)?;
                let quoted = style != ScalarStyle::Plain;
                self.scalar(Scalar { text: text.into_owned(), quoted }, anchor, line)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.is_some(), line);
                self.begin(Items::Sequence(Vec::new()), anchor, line)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.is_some(), line);
                self.begin(Items::Mapping { entries: Vec::new(), key: None }, anchor, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end()?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn begin(&mut self, items: Items, anchor: usize, line: usize) -> Result<(), Stop> {
        let before = self.weight;
        self.weigh(Weight { nodes: 1, bytes: 0 }, line)?;
        if self.open.len() >= MANIFEST_DEPTH {
            return self.stop_depth(line);
        }
        self.open.push(Open { line, anchor, before, levels: 1, items });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.items {
            Items::Sequence(items) => Value::Sequence(items),
            Items::Mapping { entries, .. } => {
                self.check_keys(&entries);
                Value::Mapping(entries)
            }
        };
        let node = Rc::new(Node { line: open.line, value });
        if open.anchor != 0 {
            let nodes = self.weight.nodes - open.before.nodes;
            let bytes = self.weight.bytes - open.before.bytes;
            let weight = Weight { nodes, bytes };
            let anchored = Anchored { node: Rc::clone(&node), weight, levels: open.levels };
            self.anchors.insert(open.anchor, anchored);
        }
        self.place(node, open.levels, open.line)
    }

    fn scalar(&mut self, scalar: Scalar, anchor: usize, line: usize) -> Result<(), Stop> {
        if anchor == 0 && self.awaits_key() {
            return self.key(&scalar, line);
        }
        let weight = Weight { nodes: 1, bytes: scalar.text.len() };
        let node = Rc::new(Node { line, value: Value::Scalar(scalar) });
        if anchor != 0 {
            self.anchors.insert(anchor, Anchored { node: Rc::clone(&node), weight, levels: 0 });
        }
        self.place(node, 0, line)
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), Stop> {
        let Some(Anchored { node, weight, levels }) = self.anchors.get(&anchor) else {
            return self.stop(line, "an alias may only repeat a value that ended before it");
        };
        let (node, weight, levels) = (Rc::clone(node), *weight, *levels);
        self.weigh(weight, line)?;
        if self.open.len() + levels > MANIFEST_DEPTH {
            return self.stop_depth(line);
        }
        self.place(node, levels, line)
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Rc<Node>, levels: usize, line: usize) -> Result<(), Stop> {
        if self.awaits_key() {
            return match &node.value {
                Value::Scalar(scalar) => self.key(scalar, line),
                _ => self.stop(line, format_args!("a key must be text, found {}", node.describe())),
            };
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.levels = open.levels.max(levels + 1);
        match &mut open.items {
            Items::Sequence(items) => items.push(node),
            Items::Mapping { entries, key } => {
                if let Some((key, line)) = key.take() {
                    entries.push(Entry { key, line, value: node });
                }
            }
        }
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { items: Items::Mapping { key: None, .. }, .. }))
    }

    fn key(&mut self, scalar: &Scalar, line: usize) -> Result<(), Stop> {
        // `null` is a fine name of a variable.
        if !scalar.quoted && matches!(scalar.text.as_str(), "" | "~") {
            return self.stop(line, "a key must be text, found nothing");
        }
        if scalar.text == "<<" && !scalar.quoted {
            let message = "merge keys are not supported; write out the keys that << stands for";
            self.flaws.add(line, || path(&self.open), message);
        }
        if let Some(Open { items: Items::Mapping { key, .. }, .. }) = self.open.last_mut() {
            *key = Some((scalar.text.clone(), line));
        }
        Ok(())
    }

    fn check_keys(&mut self, entries: &[Entry]) {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        // Stable: of two equal keys the first in the file comes first.
        sorted.sort_by(|a, b| a.key.cmp(&b.key));
        for pair in sorted.windows(2) {
            if let [first, second] = pair
                && first.key == second.key
            {
                let message = format_args!("is there already in line {}", first.line);
                self.flaws.add(second.line, || join(path(&self.open), &second.key), message);
            }
        }
    }

    fn tag(&mut self, tagged: bool, line: usize) {
        if tagged {
            let message = "tags are not supported; quote a value that must be text";
            self.flaws.add(line, || path(&self.open), message);
        }
    }

    fn weigh(&mut self, more: Weight, line: usize) -> Result<(), Stop> {
        self.weight.nodes += more.nodes;
        self.weight.bytes += more.bytes;
        let Bounds { bytes, nodes, .. } = self.bounds;
        if self.weight.nodes > nodes {
            return self.stop(line, format_args!("has more than {nodes} values, repeats counted"));
        }
        if self.weight.bytes > bytes {
            return self.stop(line, format_args!("has more than {bytes} bytes, repeats counted"));
        }
        Ok(())
    }

    fn stop_depth(&mut self, line: usize) -> Result<(), Stop> {
        self.stop(line, format_args!("is nested deeper than {MANIFEST_DEPTH} levels"))
    }

    fn stop(&mut self, line: usize, message: impl ToString) -> Result<(), Stop> {
        self.flaws.add(line, || path(&self.open), message);
        Err(Stop)
    }
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if scalar.text.is_empty() && !scalar.quoted)
}

/// The path of what is read next.
fn path(open: &[Open]) -> String {
    let mut path = String::new();
    for frame in open {
        match &frame.items {
            Items::Sequence(items) => {
                // Writing to a String cannot fail.
                let _ = write!(path, "[{}]", items.len());
            }
            Items::Mapping { key: Some((key, _)), .. } => path = join(path, key),
            Items::Mapping { key: None, .. } => {}
        }
    }
    path
}

fn join(path: String, key: &str) -> String {
    super::field::join(path, key)
}
