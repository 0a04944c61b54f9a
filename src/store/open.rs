//! Opening: look, set aside what is damaged, put right what does not agree, and write nothing
//! where nothing is wrong.

use rusqlite::{Connection, TransactionBehavior};

use crate::domain::intent::{Entry, Seq};
use crate::domain::names::EngineId;
use crate::domain::quiesce::Quiesce;
use crate::domain::record::Record;

use super::database::{self, Damaged, Meta, WriteError, Writer, put_meta};
use super::doubt::Doubts;
use super::error::{StoreError, is_damage};
use super::files::{Beside, Files, FoundId};
use super::identity::RandomId;
use super::journal::Journal;
use super::mirror::{Found, Mirror};
use super::recover::{self, Plan, Rows, Verdict};
use super::reserve::Reserve;
use super::{Opened, Parse, Settings, Store, failed, migrate};

/// Names in one notice; the rest is counted.
const NAMES: usize = 8;

/// See [`super::open`].
pub fn open(settings: Settings<'_>) -> Result<Opened, StoreError> {
    let Settings { directory, address, token, wall_ms, parse, random } = settings;
    let files = Files::new(directory)?;
    let beside = Beside::read(&files)?;
    let fresh = RandomId::draw(random);
    let mut opening = Opening {
        unclean: files.has_log()?,
        reserve: Reserve::look(&files.reserve),
        journal: Journal::new(address, token),
        files,
        beside,
        wall_ms,
        parse,
        fresh,
        notices: Vec::new(),
    };
    let (connection, loaded) = opening.database_at_last()?;
    opening.finish(connection, loaded)
}

struct Opening<'a> {
    files: Files,
    beside: Beside,
    wall_ms: u64,
    parse: Parse<'a>,
    /// The id of a store that has none yet.
    fresh: RandomId,
    journal: Journal,
    reserve: Reserve,
    /// A log stands beside the database, since the agent did not end by itself.
    unclean: bool,
    notices: Vec<String>,
}

/// What is in the database once it is put right.
struct Loaded {
    id: RandomId,
    whole: bool,
    engine: Option<EngineId>,
    revision: u64,
    records: Vec<Record>,
    entries: Vec<Entry>,
    /// The highest number that an entry may ever have had.
    last_seq: u64,
    quiesce: Option<Quiesce>,
    /// What became of text that is not used, a sentence each.
    notices: Vec<String>,
    /// What was taken from `workloads.json`; of a database built anew that is everything.
    taken: Option<String>,
}

impl Opening<'_> {
    /// Opens the database, with the space of the reserve if there is no other.
    fn database_at_last(&mut self) -> Result<(Connection, Loaded), StoreError> {
        match self.database() {
            Err(error) if error.is_full() && self.reserve.give_up() => {
                self.notices.push(self.reserve.farewell());
                self.database()
            }
            other => other,
        }
    }

    fn database(&mut self) -> Result<(Connection, Loaded), StoreError> {
        let reason = match recover::examine(&self.files, &self.beside)? {
            Verdict::New => return self.make(),
            Verdict::Damaged(reason) => reason,
            Verdict::Good(mut connection) => match self.load(&mut connection) {
                Ok(loaded) => {
                    self.notices.extend(loaded.taken.clone());
                    return Ok((connection, loaded));
                }
                // The look before found nothing, but a page that it did not need may be damaged.
                Err(WriteError::Sqlite(error)) if is_damage(&error) => {
                    recover::leave_as_it_is(connection);
                    format!("cannot be put right ({error})")
                }
                Err(error) => return Err(failed("open", &self.files.database, error)),
            },
        };
        self.rebuild(&reason)
    }

    fn make(&mut self) -> Result<(Connection, Loaded), StoreError> {
        self.files.make_database()?;
        let connection = database::connect(&self.files.database);
        let mut connection = connection
            .map_err(|source| StoreError::sqlite("make", &self.files.database, source))?;
        let loaded = self.load(&mut connection);
        let loaded = loaded.map_err(|error| failed("make", &self.files.database, error))?;
        Ok((connection, loaded))
    }

    fn rebuild(&mut self, reason: &str) -> Result<(Connection, Loaded), StoreError> {
        let aside = self.files.set_database_aside(self.wall_ms)?;
        let (connection, loaded) = self.make()?;
        let from = match &self.beside.mirror {
            Found::Good(_) => "workloads.json",
            Found::Missing => "nothing, since workloads.json is missing too",
            Found::Damaged(_) => "nothing, since workloads.json is damaged too",
        };
        let (file, count) = (self.files.database.display(), loaded.records.len());
        let kept = aside.map_or(String::new(), |name| format!(" set aside as {name} and"));
        self.notices.push(format!(
            "{file} {reason}; it was{kept} built anew from {from}, with {count} workloads"
        ));
        Ok((connection, loaded))
    }

    /// Reads and repairs in one transaction; where nothing needs repair, nothing is written.
    fn load(&self, connection: &mut Connection) -> Result<Loaded, WriteError> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        migrate::run(&transaction, database::header_number(&transaction, "user_version")?)?;
        if database::meta(&transaction, Meta::Schema)?.is_none() {
            put_meta(&transaction, Meta::Schema, &migrate::known().to_string())?;
        }
        let loaded = self.put_right(&transaction)?;
        transaction.commit()?;
        Ok(loaded)
    }

    fn put_right(&self, connection: &Connection) -> Result<Loaded, WriteError> {
        let id = self.id(connection)?;
        let rows = Rows::read(connection, self.parse)?;
        let known = rows.revision;
        let mirror = self.mirror_of(&id);
        let plan = Plan::new(rows, mirror, self.parse);
        let revision = known.unwrap_or(0).max(mirror.map_or(0, |mirror| mirror.revision));
        if known != Some(revision) {
            put_meta(connection, Meta::Revision, &revision.to_string())?;
        }
        let mut whole = database::meta(connection, Meta::Whole)?.as_deref() == Some("1");
        if whole && plan.is_loss() {
            whole = false;
            put_meta(connection, Meta::Whole, "0")?;
        }
        carry_out(&plan, connection, &self.journal, self.wall_ms)?;
        let behind = mirror.filter(|mirror| known.is_none_or(|seen| seen < mirror.revision));
        let (entries, last_seq, told) = self.entries(connection, mirror, behind.is_some())?;
        let (mut notices, taken) = (unused(&plan), taken(&plan));
        notices.extend(told);
        let quiesce = database::meta(connection, Meta::Quiesce)?;
        let quiesce = quiesce.as_deref().and_then(Quiesce::parse);
        let records = plan.records;
        let engine = database::meta(connection, Meta::Engine)?.map(EngineId::new);
        let loaded = Loaded {
            id,
            whole,
            engine,
            revision,
            records,
            entries,
            last_seq,
            quiesce,
            notices,
            taken,
        };
        Ok(loaded)
    }

    /// The journal, the highest number that must not be used again, and what to tell. Where the
    /// database may have lost commits, numbers go on after those that `workloads.json` set aside.
    fn entries(
        &self,
        connection: &Connection,
        mirror: Option<&Mirror>,
        behind: bool,
    ) -> Result<(Vec<Entry>, u64, Vec<String>), WriteError> {
        let found = self.journal.read(connection)?;
        let noted = database::meta(connection, Meta::LastSeq)?.and_then(|text| text.parse().ok());
        let doubt = behind || self.unclean || noted.is_none();
        let set_aside = mirror.filter(|_| doubt).map_or(0, |mirror| mirror.last_seq);
        let last_seq = noted.unwrap_or(0).max(set_aside).max(found.last_seq());
        if noted.is_none() {
            put_meta(connection, Meta::LastSeq, &last_seq.to_string())?;
        }
        let notices = found.notices();
        Ok((found.entries, last_seq, notices))
    }

    /// The id in the database; one that lost it goes on with the one beside it.
    fn id(&self, connection: &Connection) -> Result<RandomId, WriteError> {
        let noted = database::meta(connection, Meta::Id)?;
        if let Some(id) = noted.as_deref().and_then(RandomId::parse) {
            return Ok(id);
        }
        let id = self.beside.random_id().unwrap_or(&self.fresh).clone();
        put_meta(connection, Meta::Id, id.as_str())?;
        Ok(id)
    }

    fn mirror_of(&self, id: &RandomId) -> Option<&Mirror> {
        match &self.beside.mirror {
            Found::Good(mirror) if mirror.id == *id => Some(mirror),
            _ => None,
        }
    }

    /// Brings the files beside the database to what it says, if they do not say it already.
    fn finish(mut self, connection: Connection, loaded: Loaded) -> Result<Opened, StoreError> {
        let Loaded {
            id,
            whole,
            engine,
            revision,
            records,
            entries,
            last_seq,
            quiesce,
            notices,
            ..
        } = loaded;
        self.notices.extend(notices);
        self.check_id(&id);
        let mut mirror = Mirror::of(id.clone(), revision, &records);
        mirror.last_seq = self.mirror_of(&id).map_or(0, |found| found.last_seq);
        let is_due = self.check_mirror(&mirror);
        self.check_reserve();
        let Self { files, notices, journal, reserve, .. } = self;
        let mut store = Store {
            connection: Some(connection),
            files,
            journal,
            last_seq,
            reserve,
            doubts: Doubts::default(),
            mirror,
            is_mirror_due: is_due,
            is_mirror_failing: false,
            notices,
        };
        if is_due {
            store.write_mirror(last_seq);
        }
        let (store_id, next_seq) = (id.store_id(), Seq(last_seq.saturating_add(1)));
        let notices = store.take_notices();
        let token = store.journal.token().to_owned();
        Ok(Opened {
            store,
            records,
            store_id,
            whole,
            engine,
            entries,
            next_seq,
            token,
            quiesce,
            notices,
        })
    }

    /// Makes the reserve if it is missing. The store works without.
    fn check_reserve(&mut self) {
        if !self.reserve.is_missing() {
            return;
        }
        if let Err(error) = self.reserve.make() {
            self.notices.push(format!(
                "cannot make {}, space that is kept for when the disk is full: {error}",
                self.reserve.file().display()
            ));
        }
    }

    fn check_id(&mut self, id: &RandomId) {
        let file = self.files.id.display().to_string();
        match &self.beside.id {
            FoundId::Good(found) if found == id => return,
            FoundId::Good(_) => {
                self.notices.push(format!("{file} named another store and was written anew"));
            }
            FoundId::Damaged => {
                self.notices.push(format!("{file} was damaged and was written anew"));
            }
            FoundId::Missing => {}
        }
        if let Err(error) = self.files.write_id(id) {
            // The database has it; the next start tries again.
            self.notices.push(format!("cannot write {file}: {error}"));
        }
    }

    /// Whether the file of declarations must be written. One that is not believed, or belongs to
    /// another store, is kept under another name.
    fn check_mirror(&mut self, mirror: &Mirror) -> bool {
        let problem = match &self.beside.mirror {
            Found::Good(found) if found == mirror => return false,
            Found::Good(found) if found.id == mirror.id => return true,
            Found::Missing if mirror.entries.is_empty() => return false,
            Found::Missing => {
                let file = self.files.mirror.display();
                self.notices.push(format!("{file} was missing and was written anew"));
                return true;
            }
            Found::Good(_) => "belongs to another store".to_owned(),
            Found::Damaged(reason) => reason.clone(),
        };
        let file = self.files.mirror.display();
        let notice = match self.files.set_mirror_aside(self.wall_ms) {
            Ok(aside) => {
                let aside = aside.unwrap_or_default();
                format!("{file} {problem}; it was set aside as {aside} and written anew")
            }
            Err(error) => format!("{file} {problem}, and setting it aside failed: {error}"),
        };
        self.notices.push(notice);
        true
    }
}

fn carry_out(
    plan: &Plan,
    connection: &Connection,
    journal: &Journal,
    wall_ms: u64,
) -> Result<(), WriteError> {
    for damaged in &plan.park {
        database::park(connection, damaged, wall_ms)?;
    }
    let mut writer = Writer::new(connection, journal);
    for uid in &plan.delete {
        writer.delete(uid)?;
    }
    for record in &plan.put {
        writer.put(record)?;
    }
    Ok(())
}

/// A sentence for each text that is not used and that nothing stands in for.
fn unused(plan: &Plan) -> Vec<String> {
    let is_back = |damaged: &&Damaged| plan.put.iter().any(|r| r.uid.as_str() == damaged.uid);
    let lost = plan.park.iter().filter(|damaged| !is_back(damaged));
    let sentence = |Damaged { uid, reason, .. }: &Damaged| {
        format!("workload {uid:?} is lost: {reason}; its text is kept in the table damaged_rows")
    };
    lost.map(sentence).collect()
}

fn taken(plan: &Plan) -> Option<String> {
    if plan.put.is_empty() && plan.delete.is_empty() {
        return None;
    }
    let put: Vec<String> = plan.put.iter().map(|r| r.declared.key.to_string()).collect();
    let deleted: Vec<String> = plan.delete.iter().map(ToString::to_string).collect();
    Some(format!(
        "bargee.db was damaged or behind, and was put right from workloads.json: taken over {}, \
         removed {}",
        listing(&put),
        listing(&deleted)
    ))
}

fn listing(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown = names[..names.len().min(NAMES)].join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
