//! Bytes to declared workloads.
//!
//! Every error of every file is found, with file, line and field; nothing that a manifest says is
//! ignored. `docs/manifest.md` is the table of the fields.

use crate::domain::declared::{Declared, Problem};
use crate::limits::{BODY_BYTES, MANIFEST_ERRORS, MANIFEST_NODES, STORED_MANIFEST_BYTES};
use crate::yaml::{self, Bounds, Flaw, Flaws};

mod across;

mod choice;

mod decode;

mod env;

mod health;

mod ports;

mod quantity;

mod render;

mod shape;

mod signal;

mod volumes;

mod words;

#[cfg(test)]
mod tests;

/// For what bargee itself wrote: wider than for files, since defaults are filled in.
const STORED: Bounds = Bounds {
    bytes: STORED_MANIFEST_BYTES,
    nodes: 2 * MANIFEST_NODES,
    // Its text was bounded before; its braces and colons are not more than its bytes.
    indicators: STORED_MANIFEST_BYTES,
};

/// The workloads that `files`, as `(name, text)`, declare together: one apply.
///
/// # Errors
/// Every problem found, in the order of the files; beyond [`MANIFEST_ERRORS`] the last one says how
/// many there are besides.
pub fn parse(files: &[(String, String)]) -> Result<Vec<Declared>, Vec<Problem>> {
    let mut apply = across::Apply::default();
    let mut problems = Problems::default();
    let mut workloads = Vec::new();
    for (name, text) in files {
        apply.begin(name);
        let documents = yaml::read(text, Bounds::FILE, &mut apply.flaws);
        workloads.extend(documents.iter().filter_map(|node| decode::document(node, &mut apply)));
        problems.add(name, std::mem::take(&mut apply.flaws));
    }
    if workloads.is_empty() && problems.is_empty() {
        let file = files.first().map(|(name, _)| name.as_str()).unwrap_or_default();
        let message = match files.len() {
            0 | 1 => "no workload is declared here",
            _ => "no workload is declared here or in the files after it",
        };
        problems.whole(file, message);
    }
    problems.finish().map_or(Ok(workloads), Err)
}

/// The workload that [`Declared::manifest`] of an accepted one says.
///
/// # Errors
/// What is wrong with the text, as one sentence: it is not what bargee wrote.
pub fn parse_stored(text: &str) -> Result<Declared, String> {
    let mut apply = across::Apply::default();
    let documents = yaml::read(text, STORED, &mut apply.flaws);
    let declared = match documents.as_slice() {
        [node] => decode::document(node, &mut apply),
        _ => None,
    };
    match (apply.flaws.into_parts().0.into_iter().next(), declared) {
        (None, Some(declared)) => Ok(declared),
        (None, None) => Err("the stored manifest does not hold one workload".to_owned()),
        (Some(flaw), _) => Err(problem("stored manifest", flaw).to_string()),
    }
}

/// The text of a manifest file's bytes, for [`parse`].
///
/// # Errors
/// They are too many, or not UTF-8.
pub fn text(name: &str, bytes: Vec<u8>) -> Result<String, Problem> {
    yaml::text(bytes, BODY_BYTES).map_err(|flaw| problem(name, flaw))
}

fn problem(file: &str, flaw: Flaw) -> Problem {
    let Flaw { line, field, message } = flaw;
    Problem { file: file.to_owned(), line, field, message }
}

/// The problems of one apply: the first ones in full, the rest counted.
#[derive(Default)]
struct Problems {
    kept: Vec<Problem>,
    more: usize,
}

impl Problems {
    fn add(&mut self, file: &str, flaws: Flaws) {
        let (flaws, more) = flaws.into_parts();
        let room = MANIFEST_ERRORS - self.kept.len();
        self.more += more + flaws.len().saturating_sub(room);
        self.kept.extend(flaws.into_iter().take(room).map(|flaw| problem(file, flaw)));
    }

    fn whole(&mut self, file: &str, message: &str) {
        let (line, field, message) = (0, String::new(), message.to_owned());
        self.kept.push(problem(file, Flaw { line, field, message }));
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// `None` if there are none.
    fn finish(mut self) -> Option<Vec<Problem>> {
        let file = self.kept.last()?.file.clone();
        if self.more > 0 {
            self.whole(&file, &format!("and {} more", self.more));
        }
        Some(self.kept)
    }
}
