//! The manifests directory: what a look at it means for what is declared. The shell watches, reads
//! and parses; here it is decided what is declared, removed and kept.
//!
//! A file that is wrong keeps what it held. A directory that is suspicious keeps everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::declared::{Declared, Problem};
use super::gather::Gather;
use super::names::{Key, Source, Uid};
use super::record::Origin;
use crate::limits;

#[cfg(test)]
mod tests;

/// Where the directory is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its path.
    pub path: Arc<str>,
    /// Nobody named it: that it was never made is no wonder.
    pub is_default: bool,
}

/// One look at the directory.
#[derive(Clone, PartialEq, Debug)]
pub struct Scan {
    /// What was found.
    pub found: Found,
    /// Fresh identities, one for each workload of the good files, in their order; used where the
    /// workload is new.
    pub fresh: Vec<Uid>,
}

/// What a look at the directory found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// There is no such directory.
    Missing,
    /// It cannot be read; why.
    Unreadable(String),
    /// It is there.
    There(Listing),
}

/// What is in the directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The source of the mount that it is on, with its kind; empty: not known.
    pub mount: Arc<str>,
    /// The manifests in it, by name.
    pub files: BTreeMap<Arc<str>, Content>,
    /// What else is in it.
    pub ignored: Vec<String>,
}

/// What is in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// It is being written, or was just removed: it counts once it has settled.
    Settling,
    /// These workloads.
    Good(Arc<[Arc<Declared>]>),
    /// Something that is wrong.
    Bad(Arc<[Problem]>),
}

/// Why nothing is taken from the directory for the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Suspicion {
    /// It is missing.
    Missing,
    /// It cannot be read; why.
    Unreadable(String),
    /// It is on another file system than before.
    Moved {
        /// The mount source before.
        before: Arc<str>,
        /// The mount source now.
        now: Arc<str>,
    },
    /// It is empty, and nobody saw how it became so.
    Emptied,
}

/// The workload that has a key.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// Its identity.
    pub uid: &'a Uid,
    /// Who declared it.
    pub source: Source,
    /// The file that declares it.
    pub origin: Option<&'a Origin>,
}

/// One change of what is declared.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// Declare a workload. One that is there already may be the same.
    Declare {
        /// The workload that has the key; `None`: it is new.
        holder: Option<Uid>,
        /// Its identity if it is new.
        fresh: Uid,
        /// What is declared.
        declared: Arc<Declared>,
        /// The file that declares it.
        origin: Origin,
    },
    /// The workload stays, and its origin is this from now on.
    Move(Uid, Origin),
    /// Remove the workload.
    Remove(Uid),
}

/// What follows from a look.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verdict {
    /// The changes, one at most for each workload.
    pub changes: Vec<Change>,
    /// What is wrong with files that keep what they held.
    pub refused: BTreeMap<Arc<str>, Vec<Problem>>,
}

/// Whether the directory may be taken at its word. `filled`: files were seen in it since it was
/// last doubtful, so whoever emptied it meant it.
pub fn suspicion<'a>(
    found: &Found,
    mut origins: impl Iterator<Item = &'a Origin>,
    filled: bool,
) -> Option<Suspicion> {
    let listing = match found {
        Found::Missing => return Some(Suspicion::Missing),
        Found::Unreadable(why) => return Some(Suspicion::Unreadable(why.clone())),
        Found::There(listing) => listing,
    };
    let now = &listing.mount;
    let mut any = false;
    let moved = origins.find(|origin| {
        any = true;
        !origin.mount.is_empty() && !now.is_empty() && origin.mount != *now
    });
    if let Some(origin) = moved {
        return Some(Suspicion::Moved { before: origin.mount.clone(), now: now.clone() });
    }
    (any && !filled && listing.files.is_empty()).then_some(Suspicion::Emptied)
}

/// What `listing` means for the workloads that are there. The directory is at `path`.
pub fn decide(
    path: &str,
    listing: &Listing,
    fresh: &[Uid],
    held: &BTreeMap<&Key, Holder<'_>>,
) -> Verdict {
    let mut case = Case::new(path, listing, held);
    while case.judge_files() {}
    let mut changes = Vec::new();
    let mut kept = BTreeSet::new();
    let mut fresh = fresh.iter();
    for (file, workloads) in case.good() {
        let accepted = case.is_accepted(file);
        for declared in workloads.iter() {
            let Some(fresh) = fresh.next().filter(|_| accepted) else { continue };
            let holder = held.get(&declared.key).map(|holder| holder.uid.clone());
            kept.extend(holder.clone());
            let (fresh, declared) = (fresh.clone(), declared.clone());
            let origin = Origin { file: file.clone(), mount: listing.mount.clone() };
            changes.push(Change::Declare { holder, fresh, declared, origin });
        }
    }
    let rest = held.iter().filter(|(_, h)| h.source == Source::Directory && !kept.contains(h.uid));
    for (key, holder) in rest {
        let origin = holder.origin.cloned().unwrap_or_default();
        if case.is_gone(key, &origin) {
            changes.push(Change::Remove(holder.uid.clone()));
        } else if origin.mount != listing.mount && !listing.mount.is_empty() {
            let origin = Origin { mount: listing.mount.clone(), ..origin };
            changes.push(Change::Move(holder.uid.clone(), origin));
        }
    }
    Verdict { changes, refused: case.refused }
}

/// A look while it is judged.
struct Case<'a> {
    path: &'a str,
    listing: &'a Listing,
    held: &'a BTreeMap<&'a Key, Holder<'a>>,
    /// Good files that name a key, wrong in another way or not.
    claims: BTreeMap<&'a Key, Vec<&'a Arc<str>>>,
    refused: BTreeMap<Arc<str>, Vec<Problem>>,
    /// Files that wait for another one to settle.
    waiting: BTreeSet<&'a Arc<str>>,
    settling: bool,
}

/// Why a file is not taken in.
enum Obstacle {
    /// Another file may be about to give up the key.
    Wait,
    /// It is wrong.
    Wrong(String),
}

impl<'a> Case<'a> {
    fn new(path: &'a str, listing: &'a Listing, held: &'a BTreeMap<&'a Key, Holder<'a>>) -> Self {
        let (claims, waiting) = (BTreeMap::new(), BTreeSet::new());
        let settling = listing.files.values().any(|content| *content == Content::Settling);
        let refused = listing.files.iter().filter_map(|(file, content)| match content {
            Content::Bad(problems) => Some((file.clone(), problems.to_vec())),
            _ => None,
        });
        let refused = refused.gather();
        let mut case = Self { path, listing, held, claims, refused, waiting, settling };
        for (file, workloads) in case.good() {
            for declared in workloads.iter() {
                case.claims.entry(&declared.key).or_default().push(file);
            }
        }
        case
    }

    fn good(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<[Arc<Declared>]>)> + use<'a> {
        self.listing.files.iter().filter_map(|(file, content)| match content {
            Content::Good(workloads) => Some((file, workloads)),
            _ => None,
        })
    }

    fn is_accepted(&self, file: &Arc<str>) -> bool {
        !self.refused.contains_key(file) && !self.waiting.contains(file)
    }

    /// Judges what was not judged against before; whether anything changed. A file that is turned
    /// down keeps its keys, which may stand in the way of another one.
    fn judge_files(&mut self) -> bool {
        let mut changed = false;
        for (file, workloads) in self.good() {
            if !self.is_accepted(file) {
                continue;
            }
            for declared in workloads.iter() {
                match self.obstacle(file, &declared.key) {
                    None => continue,
                    Some(Obstacle::Wait) => drop(self.waiting.insert(file)),
                    Some(Obstacle::Wrong(message)) => {
                        let problem = self.problem(file, message);
                        self.refused.insert(file.clone(), vec![problem]);
                    }
                }
                changed = true;
                break;
            }
        }
        changed
    }

    fn problem(&self, file: &str, message: String) -> Problem {
        let (file, field) = (format!("{}/{file}", self.path), "metadata.name".to_owned());
        Problem { file, line: 0, field, message }
    }

    /// What keeps `file` from declaring `key`.
    fn obstacle(&self, file: &Arc<str>, key: &Key) -> Option<Obstacle> {
        let Some(holder) = self.held.get(key) else { return self.rival(file, key) };
        if holder.source != Source::Directory {
            let source = holder.source.as_str();
            return Some(Obstacle::Wrong(format!(
                "{key} is declared by {source} already; remove that one with `bargee rm {key}`, \
                 or take it out of this file"
            )));
        }
        let Some(owner) = holder.origin.map(|origin| &origin.file) else {
            return self.rival(file, key);
        };
        if owner == file {
            return None;
        }
        match self.listing.files.get(owner) {
            Some(Content::Settling) => Some(Obstacle::Wait),
            Some(_) if self.waiting.contains(owner) => Some(Obstacle::Wait),
            Some(_) if self.claims.get(key).is_some_and(|files| files.contains(&owner)) => {
                self.rival(file, key)
            }
            Some(_) if self.refused.contains_key(owner) => Some(Obstacle::Wrong(format!(
                "{key} was declared in {owner}, which is wrong as it is and keeps what it held"
            ))),
            // It is gone, or has given up the key.
            _ => self.rival(file, key),
        }
    }

    /// Another file that names the key.
    fn rival(&self, file: &Arc<str>, key: &Key) -> Option<Obstacle> {
        let mut others = self.claims.get(key)?.iter().filter(|other| **other != file);
        let other = others.next()?;
        let text = format!("{key} is declared in {other} too; take it out of one of the files");
        Some(Obstacle::Wrong(text))
    }

    /// No file wants the workload any more. Its key may be on its way from one file to another, so
    /// this waits until all files have settled.
    fn is_gone(&self, key: &Key, origin: &Origin) -> bool {
        let given_up = match self.listing.files.get(&origin.file) {
            None => true,
            Some(Content::Good(_)) => self.is_accepted(&origin.file),
            Some(_) => false,
        };
        given_up && !self.settling && !self.claims.contains_key(key)
    }
}

/// The part of a sentence that says what is the matter.
impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::Moved { before, now } => {
                write!(f, "is on another file system than before (on {now}, before on {before})")
            }
            Self::Emptied => f.write_str("is empty, and was not when it was last looked at"),
        }
    }
}

/// What is wrong with files, in one line: the first problem of each.
pub fn told(refused: &BTreeMap<Arc<str>, Vec<Problem>>) -> String {
    let first = |problems: &Vec<Problem>| {
        let more = match problems.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        problems.first().map(|problem| format!("{problem}{more}"))
    };
    let mut lines: Vec<String> =
        refused.values().take(limits::MANIFEST_FILES_TOLD).filter_map(first).collect();
    if refused.len() > limits::MANIFEST_FILES_TOLD {
        lines.push(format!("and {} files more", refused.len() - limits::MANIFEST_FILES_TOLD));
    }
    lines.join("; ")
}
