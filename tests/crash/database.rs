//! The database of an agent that does not run, read and written past it: see `docs/recovery.md`.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::json;
use sha2::{Digest, Sha256};

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    pub seq: u64,
    pub kind: String,
    pub body: String,
}

impl Row {
    /// `create-workload` in one of its directions.
    pub fn create_workload(seq: u64, direction: &str, uid: &str, instance: &str) -> Self {
        let body = json!({"uid": uid, "direction": direction, "instance": instance});
        Self { seq, kind: "create-workload".to_owned(), body: body.to_string() }
    }

    fn key(&self) -> String {
        format!("/wal/device/{:020}", self.seq)
    }
}

/// What the rows carry: no agent of the tests has this token.
const TOKEN: &str = "anotherprocess";
const AT_MS: i64 = 1_767_225_600_000;

/// Inserts rows as another process would have.
pub fn insert(database: &Path, rows: &[Row]) {
    let mut connection = Connection::open(database).unwrap();
    let transaction = connection.transaction().unwrap();
    for row in rows {
        let sql = "INSERT INTO journal (key, type, token, at_ms, tries, error, body, sum)
                   VALUES (?1, ?2, ?3, ?4, 0, '', ?5, ?6)";
        let values = params![row.key(), row.kind, TOKEN, AT_MS, row.body, sum(row)];
        transaction.execute(sql, values).unwrap();
    }
    transaction.commit().unwrap();
}

/// Flips a byte of a row, so that its checksum fails.
pub fn damage(database: &Path, row: &Row) {
    let connection = Connection::open(database).unwrap();
    let sql = "UPDATE journal SET at_ms = at_ms + 1 WHERE key = ?1";
    assert_eq!(connection.execute(sql, [row.key()]).unwrap(), 1);
}

/// Takes out the rows of a type whose text has `words`; how many there were.
pub fn take_out(database: &Path, kind: &str, words: &str) -> usize {
    let connection = Connection::open(database).unwrap();
    let sql = "DELETE FROM journal WHERE type = ?1 AND instr(body, ?2) > 0";
    connection.execute(sql, [kind, words]).unwrap()
}

/// Type and text of all entries of the journal.
pub fn entries(database: &Path) -> Vec<(String, String)> {
    read(database, "SELECT type, body FROM journal ORDER BY key")
}

/// Uid and text of all workloads.
pub fn workloads(database: &Path) -> Vec<(String, String)> {
    read(database, "SELECT uid, body FROM workloads ORDER BY id")
}

/// Reads a copy, so that the files stay as they are.
fn read(database: &Path, sql: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("bargee.db");
    for end in ["", "-wal"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        // Without a log there is only the database.
        let _ = fs::copy(name(database), name(&copy));
    }
    let connection = Connection::open(&copy).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The first 128 bits of a SHA-256 over all columns, each behind its length.
fn sum(row: &Row) -> String {
    let mut sum = Sha256::new();
    let (at, tries) = (AT_MS.to_be_bytes(), 0_u32.to_be_bytes());
    let key = row.key();
    let texts = [key.as_bytes(), row.kind.as_bytes(), TOKEN.as_bytes()];
    let rest = [&at[..], &tries[..], b"", row.body.as_bytes()];
    for part in texts.into_iter().chain(rest) {
        sum.update((part.len() as u64).to_be_bytes());
        sum.update(part);
    }
    sum.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
