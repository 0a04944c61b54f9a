//! What to do with a store whose files do not agree, or are not what they should be.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::domain::names::Uid;
use crate::domain::record::{Desired, Record};

use super::database::{self, Damaged, Meta};
use super::error::{StoreError, is_damage};
use super::files::{Beside, Files, length};
use super::migrate;
use super::mirror::{Entry, Mirror};
use super::{Parse, rows};

/// What a look at the database came to.
#[derive(Debug)]
pub enum Verdict {
    /// It can be worked with; it may still be blank.
    Good(Connection),
    /// There was never a store here.
    New,
    /// It must be built anew; why, as the rest of a sentence.
    Damaged(String),
}

/// Looks at the database without changing it.
///
/// # Errors
/// The disk fails, or the database is of a newer bargee.
pub fn examine(files: &Files, beside: &Beside) -> Result<Verdict, StoreError> {
    let before = beside.is_any() || files.has_log()?;
    let absent = |reason: &str| match before {
        true => Verdict::Damaged(reason.to_owned()),
        false => Verdict::New,
    };
    match length(&files.database)? {
        None => return Ok(absent("is missing")),
        Some(0) => return Ok(absent("is empty")),
        Some(_) => {}
    }
    let header = header_problem(&files.database);
    let header = header.map_err(|e| StoreError::file("read", &files.database, e))?;
    if let Some(reason) = header {
        return Ok(Verdict::Damaged(reason.to_owned()));
    }
    let connection = match database::connect(&files.database) {
        Ok(connection) => connection,
        Err(error) => return verdict_on(error, &files.database),
    };
    match problem(&connection, before) {
        Ok(Look::Fine) => Ok(Verdict::Good(connection)),
        Ok(Look::TooNew(found)) => {
            let (file, known) = (files.database.clone(), migrate::known());
            Err(StoreError::TooNew { file, found, known })
        }
        Ok(Look::Problem(reason)) => {
            leave_as_it_is(connection);
            Ok(Verdict::Damaged(reason))
        }
        Err(error) => {
            leave_as_it_is(connection);
            verdict_on(error, &files.database)
        }
    }
}

/// Closes a damaged database without copying the log into it: somebody may want to look at it.
pub fn leave_as_it_is(connection: Connection) {
    // If this fails the log is copied as ever, which is no loss worth an error.
    let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
}

fn verdict_on(error: rusqlite::Error, file: &Path) -> Result<Verdict, StoreError> {
    if is_damage(&error) {
        Ok(Verdict::Damaged(format!("cannot be read ({error})")))
    } else {
        Err(StoreError::sqlite("open", file, error))
    }
}

/// What SQLite itself would not notice, or would take as a wish: other format versions make it
/// ignore the log, or take the file as read-only.
fn header_problem(file: &Path) -> io::Result<Option<&'static str>> {
    let mut header = Vec::new();
    File::open(file)?.take(100).read_to_end(&mut header)?;
    if header.len() < 100 {
        return Ok(Some("is cut off"));
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Ok(Some("is no SQLite database"));
    }
    let versions = (header[18], header[19]);
    Ok((!matches!(versions, (1, 1) | (2, 2))).then_some("has a damaged header"))
}

enum Look {
    Fine,
    Problem(String),
    TooNew(i64),
}

fn problem(connection: &Connection, before: bool) -> rusqlite::Result<Look> {
    if let Some(problem) = database::integrity_problem(connection)? {
        return Ok(Look::Problem(format!("fails its integrity check ({problem})")));
    }
    if database::is_blank(connection)? {
        let lost = || Look::Problem("has no tables".to_owned());
        return Ok(if before { lost() } else { Look::Fine });
    }
    if database::header_number(connection, "application_id")? != migrate::APPLICATION_ID {
        return Ok(Look::Problem("is not a database of bargee".to_owned()));
    }
    let version = database::header_number(connection, "user_version")?;
    let noted = match database::meta(connection, Meta::Schema) {
        Ok(noted) => noted.and_then(|text| text.parse::<i64>().ok()),
        // A newer schema may have no such table; an older one never had.
        Err(_) if version > migrate::known() => None,
        Err(error) => return Err(error),
    };
    Ok(match noted {
        Some(noted) if noted != version => {
            Look::Problem(format!("has schema version {version} in its header, not {noted}"))
        }
        _ if version > migrate::known() => Look::TooNew(version),
        _ if version < 1 => Look::Problem("has no schema version".to_owned()),
        _ => Look::Fine,
    })
}

/// The rows of a database.
#[derive(Debug, Default)]
pub struct Rows {
    /// Those that are believed.
    pub records: Vec<Record>,
    /// Those that are not.
    pub damaged: Vec<Damaged>,
    /// How many changes of the declarations they have seen; `None`: that is not known, as in a
    /// database that was just made.
    pub revision: Option<u64>,
}

impl Rows {
    /// Reads all rows.
    pub fn read(connection: &Connection, parse: Parse<'_>) -> rusqlite::Result<Self> {
        let mut all = Self::default();
        database::scan(connection, &mut |row| match rows::decode(&row, parse) {
            Ok(record) => all.records.push(record),
            Err(reason) => {
                let (row, uid, body) = (Some(row.id), row.uid, row.body);
                all.damaged.push(Damaged { row, uid, body, reason });
            }
        })?;
        let revision = database::meta(connection, Meta::Revision)?;
        all.revision = revision.and_then(|text| text.parse().ok());
        Ok(all)
    }
}

/// What the store holds once all is put right, and what must be written for that.
#[derive(Debug, Default)]
pub struct Plan {
    /// The records.
    pub records: Vec<Record>,
    /// Text to be moved to the damaged rows.
    pub park: Vec<Damaged>,
    /// Records to be inserted or replaced.
    pub put: Vec<Record>,
    /// Rows to be deleted.
    pub delete: Vec<Uid>,
}

impl Plan {
    /// Holds the rows against what `workloads.json` says. The database is the truth, except where
    /// it lost something: a row that fails, or changes that the file has seen and it has not.
    pub fn new(rows: Rows, mirror: Option<&Mirror>, parse: Parse<'_>) -> Self {
        let Rows { records, damaged, revision } = rows;
        let mut plan = Self { records, park: damaged, ..Self::default() };
        if let Some(mirror) = mirror {
            if revision.is_some_and(|seen| seen < mirror.revision) {
                plan.follow(mirror, parse);
            }
            plan.restore(mirror, revision, parse);
        }
        plan
    }

    /// Something was lost; containers may exist that no row knows of.
    pub fn is_loss(&self) -> bool {
        !(self.park.is_empty() && self.put.is_empty() && self.delete.is_empty())
    }

    /// Takes from the file what no row stands for.
    fn restore(&mut self, mirror: &Mirror, revision: Option<u64>, parse: Parse<'_>) {
        let have: HashSet<Uid> = self.records.iter().map(|record| record.uid.clone()).collect();
        // A row that fails may be one of any uid, so that each that is missing may be that one.
        let doubt = revision.is_none() || !self.park.is_empty();
        // The file is not older than the rows, so that it knows of no workload that was removed
        // since, except one whose removal it was told of.
        let current = revision.is_some_and(|seen| seen <= mirror.revision);
        for (uid, entry) in &mirror.entries {
            let lost = doubt || (current && entry.desired != Desired::Deleted);
            if lost && !have.contains(uid) {
                self.take(uid, entry, parse);
            }
        }
    }

    fn take(&mut self, uid: &Uid, entry: &Entry, parse: Parse<'_>) {
        match entry.record(uid, parse) {
            Ok(record) => {
                self.put.push(record.clone());
                self.records.push(record);
            }
            Err(reason) => self.park(uid, entry, reason),
        }
    }

    fn park(&mut self, uid: &Uid, entry: &Entry, reason: String) {
        let (uid, body) = (uid.to_string(), entry.manifest.to_string());
        self.park.push(Damaged { row: None, uid, body, reason });
    }

    /// Brings rows that lost their last changes to what the file says.
    fn follow(&mut self, mirror: &Mirror, parse: Parse<'_>) {
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for mut record in std::mem::take(&mut self.records) {
            let Some(entry) = mirror.entries.get(&record.uid) else {
                self.delete.push(record.uid);
                continue;
            };
            match declare(&mut record, entry, parse) {
                Ok(false) => {}
                Ok(true) => self.put.push(record.clone()),
                Err(reason) => refused.push((record.uid.clone(), entry, reason)),
            }
            kept.push(record);
        }
        self.records = kept;
        for (uid, entry, reason) in refused {
            self.park(&uid, entry, reason);
        }
    }
}

/// Gives `record` the declaration of `entry`; whether that changed anything.
fn declare(record: &mut Record, entry: &Entry, parse: Parse<'_>) -> Result<bool, String> {
    if Entry::of(record) == *entry || entry.generation < record.generation {
        return Ok(false);
    }
    if record.declared.manifest != entry.manifest {
        record.declared = rows::declared(rows::embedded(&entry.manifest)?, parse)?;
    }
    record.generation = entry.generation;
    record.desired = entry.desired;
    record.origin.clone_from(&entry.origin);
    Ok(true)
}
