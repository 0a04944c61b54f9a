//! What a commit of unknown outcome may have left: it was answered as failed, so the next
//! transaction makes that true.

use std::collections::BTreeSet;

use crate::domain::effect::{Commit, Write};
use crate::domain::intent::Seq;
use crate::domain::names::Uid;

use super::database::{WriteError, Writer};

/// Rows and entries that may be there, and should not be as they are.
#[derive(Debug, Default)]
pub struct Doubts {
    /// Nobody knows of them.
    inserted: BTreeSet<Uid>,
    intended: BTreeSet<Seq>,
    /// Their generation may be one that was never accepted.
    updated: BTreeSet<Uid>,
}

impl Doubts {
    /// The outcome of `group` is not known.
    pub fn note(&mut self, group: &[Commit]) {
        for write in group.iter().flat_map(|commit| &commit.writes) {
            match write {
                Write::Insert(record) => drop(self.inserted.insert(record.uid.clone())),
                Write::Update(record) => drop(self.updated.insert(record.uid.clone())),
                Write::Intend(entry) => drop(self.intended.insert(entry.seq)),
                // What these leave undone is tried again, and is as good when it is done already.
                Write::Delete(_)
                | Write::Claim(_)
                | Write::Settle(_)
                | Write::DropEntry(_)
                | Write::MarkWhole
                | Write::Quiesce(_)
                | Write::KnowEngine(_) => {}
            }
        }
    }

    /// Takes back what was made, ahead of the writes of a transaction.
    pub fn undo(&self, writer: &mut Writer<'_>) -> Result<(), WriteError> {
        for uid in &self.inserted {
            writer.delete(uid)?;
        }
        for seq in &self.intended {
            writer.write(&Write::DropEntry(*seq))?;
        }
        Ok(())
    }

    /// The generation in the row of `uid` says nothing.
    pub fn is_about(&self, uid: &Uid) -> bool {
        self.updated.contains(uid)
    }

    /// A transaction with `group` is durable.
    pub fn settle(&mut self, group: &[Commit]) {
        self.inserted.clear();
        self.intended.clear();
        for write in group.iter().flat_map(|commit| &commit.writes) {
            if let Write::Update(record) = write {
                self.updated.remove(&record.uid);
            }
        }
    }
}
