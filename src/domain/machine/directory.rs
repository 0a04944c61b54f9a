//! The manifests directory as a source of declarations. What a look at it means is decided in
//! `domain::directory`; here that becomes one transaction like that of an apply.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Machine;
use super::asks::{PendingChange, Reply, redeclared};
use crate::domain::directory::{
    self, Change, Content, Found, Holder, Listing, Place, Scan, Suspicion,
};
use crate::domain::effect::{self, Answer, Level, Refusal};
use crate::domain::event::{AskId, Verb};
use crate::domain::gather::Gather;
use crate::domain::names::{Key, Source, Uid};
use crate::domain::record::Record;
use crate::domain::time::Tick;
use crate::domain::view::Manifests;
use crate::limits;

/// The directory holds back what it would change.
const HELD: &str = "manifestsHeld";
/// Files of the directory are wrong.
const REFUSED: &str = "manifestsRefused";

/// What is known of the directory.
#[derive(Debug)]
pub(super) struct Directory {
    place: Place,
    /// The last look.
    scan: Option<Scan>,
    /// The last look is to be judged, for the first time or again.
    due: bool,
    /// But not before this.
    retry_at: Option<Tick>,
    /// Files were seen in it since it was last doubtful.
    filled: bool,
    /// It was seen there.
    was_there: bool,
    /// That it is not there, or cannot be read, is as it should be.
    confirmed: bool,
    /// Files were refused, which a key that is given up may change.
    refused: bool,
    shown: Option<Arc<Manifests>>,
}

impl Directory {
    /// A directory at `place` that nobody has looked at.
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            scan: None,
            due: false,
            retry_at: None,
            filled: false,
            was_there: false,
            confirmed: false,
            refused: false,
            shown: None,
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &str {
        &self.place.path
    }

    /// As people see it.
    pub(super) fn shown(&self) -> Option<Arc<Manifests>> {
        self.shown.clone()
    }

    /// A key was given up, which a file may have waited for.
    pub(super) fn key_is_free(&mut self) {
        self.due |= self.refused;
    }

    fn show(&self, listing: &Listing) -> Arc<Manifests> {
        let settling = listing.files.values().filter(|content| **content == Content::Settling);
        let first = listing.ignored.iter().take(limits::MANIFEST_NAMES_TOLD);
        Arc::new(Manifests {
            path: self.place.path.clone(),
            files: listing.files.len(),
            settling: settling.count(),
            ignored: first.cloned().collect(),
            ignored_count: listing.ignored.len(),
        })
    }

    /// Nobody is told of a directory that was never wanted.
    fn is_worth_telling(&self, suspicion: &Suspicion, workloads: usize) -> bool {
        match suspicion {
            _ if workloads > 0 => true,
            _ if self.confirmed => false,
            Suspicion::Missing => self.was_there || !self.place.is_default,
            _ => true,
        }
    }
}

impl Machine {
    pub(super) fn on_directory(&mut self, scan: Scan) {
        self.directory.shown = None;
        if let Found::There(listing) = &scan.found {
            self.directory.was_there = true;
            self.directory.confirmed = false;
            self.directory.shown = Some(self.directory.show(listing));
        }
        self.directory.scan = Some(scan);
        self.directory.due = true;
    }

    /// When the directory is to be judged again if nothing else happens before.
    pub(super) fn directory_deadline(&self) -> Option<Tick> {
        let free = self.pending.is_none() && self.drain.is_none();
        let waits = self.directory.due && free && self.is_open();
        self.directory.retry_at.filter(|_| waits)
    }

    /// Declares what the last look says, once nothing else is being declared.
    pub(super) fn tend_directory(&mut self) {
        let resting = self.directory.retry_at.is_some_and(|at| at > self.now.tick);
        let waits = self.pending.is_some() || self.drain.is_some();
        if !self.directory.due || resting || waits || !self.is_open() {
            return;
        }
        self.directory.due = false;
        self.directory.retry_at = None;
        let Some(scan) = self.directory.scan.take() else { return };
        let suspicion = self.suspicion(&scan);
        self.note_suspicion(&scan, suspicion.as_ref());
        if suspicion.is_none()
            && let Found::There(listing) = &scan.found
        {
            let changes = self.judge(listing, &scan.fresh);
            if !changes.is_empty() {
                let text = format!("manifests directory: {}", self.summary(&changes));
                self.declare(changes, Reply::Log(text));
            }
        }
        self.directory.scan = Some(scan);
    }

    /// The store did not take what was declared; it is tried again.
    pub(super) fn retry_directory(&mut self) {
        self.directory.due = true;
        self.directory.retry_at = Some(self.later(limits::ENGINE_LOOK_MS));
    }

    /// What is suspicious is as it should be: what it means is carried out.
    pub(super) fn ask_confirm(&mut self, ask: AskId) -> Result<(), Refusal> {
        let confirmed = [self.confirm_engine(), self.confirm_directory()];
        let (mut texts, mut changes) = (Vec::new(), Vec::new());
        for (text, some) in confirmed.into_iter().flatten() {
            texts.push(text);
            changes.extend(some);
        }
        if texts.is_empty() {
            texts.push("there is nothing that waits to be confirmed".to_owned());
        }
        let answer = Answer::Done(texts.join("\n"));
        if changes.is_empty() {
            self.answer(ask, answer);
        } else {
            self.declare(changes, Reply::Answer(ask, answer));
        }
        Ok(())
    }

    /// What it means that the directory is as it should be; `None`: nobody doubts that.
    fn confirm_directory(&mut self) -> Option<(String, Vec<PendingChange>)> {
        let scan = self.directory.scan.take();
        let suspicion = scan.as_ref().and_then(|scan| self.suspicion(scan));
        let count = self.declared_by_directory().count();
        let told = suspicion.filter(|found| self.directory.is_worth_telling(found, count));
        let (Some(scan), Some(suspicion)) = (&scan, told) else {
            self.directory.scan = scan;
            return None;
        };
        let empty = Listing::default();
        let listing = if let Found::There(listing) = &scan.found { listing } else { &empty };
        let changes = self.judge(listing, &scan.fresh);
        let path = &self.directory.place.path;
        let text = format!("{path} {suspicion}: confirmed; {}", self.summary(&changes));
        // Not before the store has taken it; until then it is held, as ever.
        self.directory.confirmed = true;
        self.directory.due = true;
        self.directory.scan = Some(scan.clone());
        Some((text, changes))
    }

    fn declared_by_directory(&self) -> impl Iterator<Item = &Record> {
        let records = self.by_key.values().filter_map(|uid| self.workloads.get(uid));
        records.map(|w| &w.record).filter(|record| record.source == Source::Directory)
    }

    fn suspicion(&mut self, scan: &Scan) -> Option<Suspicion> {
        let origins = self.declared_by_directory().filter_map(|record| record.origin.as_ref());
        let suspicion = directory::suspicion(&scan.found, origins, self.directory.filled);
        match (&suspicion, &scan.found) {
            (None, Found::There(listing)) => self.directory.filled |= !listing.files.is_empty(),
            _ => self.directory.filled = false,
        }
        suspicion
    }

    /// The changes that follow from a listing that is believed.
    fn judge(&mut self, listing: &Listing, fresh: &[Uid]) -> Vec<PendingChange> {
        let held = self.by_key.iter().filter_map(|(key, uid)| {
            let record = &self.workloads.get(uid)?.record;
            let origin = record.origin.as_ref();
            Some((key, Holder { uid, source: record.source, origin }))
        });
        let held: BTreeMap<&Key, Holder> = held.gather();
        let verdict = directory::decide(&self.directory.place.path, listing, fresh, &held);
        let mut changes = Vec::new();
        for change in verdict.changes {
            self.add_changes(change, &mut changes);
        }
        self.directory.refused = !verdict.refused.is_empty();
        let mut told = directory::told(&verdict.refused);
        if let Err(Refusal::Conflict(text)) = self.check_room(&changes) {
            changes.clear();
            told = format!("{}: {text}; nothing of it is taken in", self.directory.place.path);
        }
        if !told.is_empty() {
            told.push_str("; what these files held before stays as it was");
        }
        self.note(REFUSED, told);
        changes
    }

    fn add_changes(&self, change: Change, changes: &mut Vec<PendingChange>) {
        match change {
            Change::Move(uid, origin) => changes.push(PendingChange::Move(uid, origin)),
            Change::Remove(uid) => changes.push(PendingChange::Verb(uid, Verb::Remove)),
            Change::Declare { holder, fresh, declared, origin } => {
                let Some(w) = holder.and_then(|uid| self.workloads.get(&uid)) else {
                    let wall_ms = self.now.wall_ms;
                    let record = Record::new(fresh, Source::Directory, declared, wall_ms);
                    let record = Record { origin: Some(origin), ..record };
                    return changes.push(PendingChange::Insert(Box::new(record)));
                };
                let uid = &w.record.uid;
                if redeclared(w, &declared).1 != effect::Change::Unchanged {
                    changes.push(PendingChange::Redeclare(uid.clone(), declared));
                }
                if w.record.origin.as_ref() != Some(&origin) {
                    changes.push(PendingChange::Move(uid.clone(), origin));
                }
            }
        }
    }

    // --- what people are told ------------------------------------------------------------------

    fn note_suspicion(&mut self, scan: &Scan, suspicion: Option<&Suspicion>) {
        let keys: Vec<String> =
            self.declared_by_directory().map(|record| record.declared.key.to_string()).collect();
        let path = &self.directory.place.path;
        let told = suspicion.filter(|found| self.directory.is_worth_telling(found, keys.len()));
        let until = match &scan.found {
            Found::There(_) => "it is as before",
            _ => "it is there again",
        };
        let text = match told {
            None => String::new(),
            Some(found) if keys.is_empty() => {
                format!("{path} {found}; nothing is taken from it until {until}")
            }
            Some(found) => format!(
                "{path} {found}; what was declared in it ({}) is kept as it is until {until}, or \
                 until `bargee confirm` says that this is as it should be",
                names(&keys)
            ),
        };
        self.note(HELD, text);
        if suspicion.is_some() {
            self.conditions.remove(REFUSED);
        }
    }

    /// Shows a condition, or that it is over, with one line of the log for each change.
    fn note(&mut self, kind: &'static str, text: String) {
        let before = self.conditions.get(kind);
        if text.is_empty() {
            if self.conditions.remove(kind).is_some() {
                let over = match kind {
                    HELD => "manifests directory: nothing is held back any more",
                    _ => "manifests directory: its files are good again",
                };
                self.log(Level::Info, over);
            }
        } else if before != Some(&text) {
            self.log(Level::Warn, text.clone());
            self.conditions.insert(kind, text);
        }
    }

    /// What changes do, in words.
    fn summary(&self, changes: &[PendingChange]) -> String {
        let key = |uid: &Uid| self.workloads.get(uid).map(|w| w.record.declared.key.to_string());
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for change in changes {
            let (word, key) = match change {
                PendingChange::Insert(record) => ("created", Some(record.declared.key.to_string())),
                PendingChange::Redeclare(uid, _) => ("changed", key(uid)),
                PendingChange::Move(uid, _) => ("in another place now:", key(uid)),
                PendingChange::Verb(uid, _) => ("removed", key(uid)),
                PendingChange::AcceptEngine(uid) => ("made anew", key(uid)),
            };
            groups.entry(word).or_default().extend(key);
        }
        if groups.is_empty() {
            return "no workload changes".to_owned();
        }
        let groups = groups.iter().map(|(word, keys)| format!("{word} {}", names(keys)));
        groups.collect::<Vec<_>>().join("; ")
    }
}

/// The first of many names, and how many more there are.
pub(super) fn names(keys: &[String]) -> String {
    let told = keys.len().min(limits::MANIFEST_NAMES_TOLD);
    let mut text = keys[..told].join(", ");
    if keys.len() > told {
        text.push_str(&format!(" and {} more", keys.len() - told));
    }
    text
}
