//! A store in a directory of its own, and workloads to put into it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::StoreError;
use super::mirror::Entry;
use super::{Opened, Settings, Store};
use crate::domain::declared::{Declared, Spec};
use crate::domain::diary::Diary;
use crate::domain::effect::{Commit, CommitId, Write};
use crate::domain::health::RunHealth;
use crate::domain::health_check::Health;
use crate::domain::intent::{Entry as JournalEntry, Intent, Seq};
use crate::domain::names::{BootId, ContainerId, InstanceName, Key, Label, Source, SpecHash, Uid};
use crate::domain::record::{
    BootTick, Desired, Exit, FailedUpdate, Instance, Origin, OwedStart, OwnStop, Previous, Record,
    Retry, Run,
};
use crate::domain::time::Tick;

mod commit;

mod damage;

mod disagree;

pub(super) mod fault;

mod flips;

mod full;

mod journal;

mod readback;

mod unreadable;

/// A wall clock for the names of files.
const WALL_MS: u64 = 1_709_251_200_000;
/// The node's name.
const ADDRESS: &str = "node-1";
/// The token of most processes.
const TOKEN: &str = "0123456789abcdef";

/// A directory for a store.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The data directory; the store makes it.
    fn dir(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    fn try_open(&self) -> Result<Opened, StoreError> {
        open_at(&self.dir())
    }

    fn open(&self) -> Opened {
        self.try_open().unwrap()
    }

    /// Opens it as another process, or as a node of another name.
    fn open_as(&self, address: &str, token: &str) -> Opened {
        open_with(&self.dir(), address, token, &parse).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Names of files that were set aside, without what belongs to a database.
    fn aside(&self) -> Vec<String> {
        let is_own = |name: &String| !name.ends_with("-wal") && !name.ends_with("-shm");
        let names = self.names().into_iter().filter(|name| name.contains(".damaged-"));
        names.filter(is_own).collect()
    }

    /// A second connection, to do to the database what bargee never would.
    fn sql(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.file("bargee.db")).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn count(&self, table: &str) -> i64 {
        let connection = rusqlite::Connection::open(self.file("bargee.db")).unwrap();
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    }
}

fn open_at(dir: &Path) -> Result<Opened, StoreError> {
    open_with(dir, ADDRESS, TOKEN, &parse)
}

fn open_with(
    directory: &Path,
    address: &str,
    token: &str,
    parse: super::Parse<'_>,
) -> Result<Opened, StoreError> {
    // Another id for each store, as with real random numbers.
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    let random = &mut |bytes: &mut [u8]| {
        bytes[..8].copy_from_slice(&DRAWN.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    };
    let token = token.to_owned();
    super::open(Settings { directory, address, token, wall_ms: WALL_MS, parse, random })
}

/// Frames in the log, and how many of them end a transaction.
fn frames(home: &Home) -> (usize, usize) {
    let log = fs::read(home.file("bargee.db-wal")).unwrap_or_default();
    let frames: Vec<_> = log.get(32..).unwrap_or_default().chunks(24 + 4096).collect();
    let commits = frames.iter().filter(|frame| frame[4..8] != [0; 4]).count();
    (frames.len(), commits)
}

/// Lets the database have no more than so many pages; SQLite never goes below what is in use.
fn limit_pages(store: &Store, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    let connection = store.connection.as_ref().unwrap();
    connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap();
}

/// Overwrites a file, as damage does; no sync, since many tests do this very often.
fn put(path: &Path, bytes: &[u8]) {
    fs::File::create(path).unwrap().write_all(bytes).unwrap();
}

/// The manifest room as far as the store needs it.
fn parse(text: &str) -> Result<Declared, String> {
    let json: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let field = |name: &str| json[name].as_str().ok_or(format!("has no {name}"));
    let label = |name: &str| Label::parse(field(name)?).map_err(str::to_owned);
    Ok(Declared {
        key: Key { application: label("application")?, name: label("name")? },
        labels: BTreeMap::new(),
        spec: Spec::new(field("image")?),
        manifest: text.into(),
    })
}

fn declared(name: &str, image: &str) -> Arc<Declared> {
    let text = serde_json::json!({
        "application": "shop",
        "name": name,
        "image": image,
        "text": "two\nlines, a \"quote\", a \\ and ünïcode",
    });
    Arc::new(parse(&text.to_string()).unwrap())
}

/// A workload that was just accepted.
fn bare(number: u64) -> Record {
    let uid = format!("00000000-0000-4000-8000-{number:012}");
    let entry = Entry {
        manifest: declared(&format!("w{number}"), "nginx:1").manifest.clone(),
        generation: 1,
        desired: Desired::Running,
        source: Source::Local,
        origin: None,
        created_at_ms: 1_700_000_000_000 + number,
    };
    entry.record(&Uid::new(uid), &parse).unwrap()
}

/// A workload with every field set.
fn full(number: u64) -> Record {
    Record {
        source: Source::Directory,
        origin: Some(Origin { file: "ünï.yaml".into(), mount: "/dev/sda1 (ext4)".into() }),
        generation: 3,
        observed_generation: 2,
        current: Some(instance(number)),
        next: Some(Instance { container: None, run: None, ..instance(number + 1) }),
        previous: Some(Previous {
            instance: instance(number + 4),
            last_exit: Some(exit()),
            observed_generation: 1,
        }),
        discards: vec![instance(number + 2), instance(number + 3)],
        failed_update: Some(FailedUpdate {
            generation: 3,
            cause: "no image".into(),
            at_ms: 12,
            tries: 2,
            retry: Retry::At(boot_tick()),
        }),
        own_stop: Some(OwnStop {
            container: ContainerId::new("c1"),
            started_at_ns: 5,
            unhealthy: true,
        }),
        last_exit: Some(exit()),
        owed_start: OwedStart::Restart,
        restarts_asked: 7,
        restarts_done: 8,
        rebuilds_asked: 9,
        rebuilds_done: 10,
        restart_count: u64::MAX,
        failure_count: 9,
        streak: 10,
        refusals: 11,
        diary: Diary::recall(BootId::new("boot-1"), vec![Tick(1), Tick(2)]),
        stuck: true,
        wait: Some(boot_tick()),
        error_message: "exitCode=1 \u{0}\u{7f} \"end\"".into(),
        last_error: "läst".into(),
        last_error_at_ms: 13,
        boot: Some(BootId::new("boot-1")),
        elsewhere: Some(boot_tick()),
        ..bare(number)
    }
}

fn exit() -> Exit {
    Exit {
        container: ContainerId::new("c2"),
        started_at_ns: 6,
        code: Some(-137),
        oom_killed: true,
        error: "killed".into(),
        interrupted: true,
        unhealthy: true,
    }
}

fn instance(number: u64) -> Instance {
    Instance {
        name: InstanceName::new(format!("bargee-w-{number:08x}")),
        container: Some(ContainerId::new(format!("{number:064x}"))),
        generation: 2,
        rebuild: 3,
        spec_hash: SpecHash::new("1-00112233445566778899aabbccddeeff"),
        run: Some(Run {
            started_at_ns: 1_700_000_000_123_456_789,
            since: boot_tick(),
            since_ms: 1_700_000_000_124,
            pid: 4_321,
            ip: Some("172.18.0.2".into()),
            ports: vec!["0.0.0.0:8080->80/tcp".into(), "[::]:8080->80/tcp".into()],
            image_id: "sha256:0123".into(),
            stop_signal: Some("SIGQUIT".into()),
            health: Some(RunHealth { health: Health::Unhealthy, since: Tick(7), proved: true }),
        }),
        proved: true,
    }
}

fn boot_tick() -> BootTick {
    BootTick { boot: BootId::new("boot-1"), tick: Tick(123_456) }
}

fn commit(declares: bool, writes: Vec<Write>) -> Commit {
    Commit { id: CommitId(1), declares, writes }
}

fn insert(record: &Record) -> Write {
    Write::Insert(Arc::new(record.clone()))
}

fn update(record: &Record) -> Write {
    Write::Update(Arc::new(record.clone()))
}

/// Commits and expects that it holds.
fn must(store: &mut Store, declares: bool, writes: Vec<Write>) {
    let results = store.commit(&[commit(declares, writes)], 0);
    assert_eq!(results.len(), 1);
    results.into_iter().for_each(|result| result.unwrap());
}

/// An entry that this process writes.
fn entry(seq: u64, intent: Intent) -> JournalEntry {
    JournalEntry {
        seq: Seq(seq),
        intent,
        token: TOKEN.into(),
        at_ms: WALL_MS + seq,
        tries: 0,
        error: String::new(),
    }
}

/// An entry for the creation of a workload's instance.
fn creation(seq: u64) -> JournalEntry {
    let instance = InstanceName::new(format!("bargee-w-{seq:08x}"));
    entry(seq, Intent::Create { uid: bare(seq).uid, instance })
}

fn intend(seq: u64) -> Write {
    Write::Intend(creation(seq))
}

/// The numbers of entries.
fn numbers(entries: &[JournalEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.seq.0).collect()
}

/// A store with these records, whole and closed.
fn filled(records: &[Record]) -> Home {
    let home = Home::new();
    let mut opened = home.open();
    let writes = records.iter().map(insert).chain([Write::MarkWhole]).collect();
    must(&mut opened.store, true, writes);
    home
}

/// What was declared, by uid.
fn declarations(records: &[Record]) -> BTreeMap<Uid, Entry> {
    records.iter().map(|record| (record.uid.clone(), Entry::of(record))).collect()
}

/// What is left of a record when only its declaration was kept.
fn rebuilt(record: &Record) -> Record {
    Entry::of(record).record(&record.uid, &parse).unwrap()
}
