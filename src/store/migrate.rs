//! The schema as a list of steps that only grows. The number of steps done is the schema version.

use rusqlite::Connection;

use super::database::{Meta, put_meta};

/// Marks the file as bargee's, for us and for `file(1)`: "brge".
pub const APPLICATION_ID: i64 = 0x6272_6765;

/// Append only: a step that was ever released is never changed. A word in manifests or rows that
/// agents before do not know is a step too, if only an empty one: they take a workload that they
/// cannot read for a lost one, so that they have to refuse the whole.
const STEPS: &[&str] = &[
    // A row is found by its uid and replaced whole. Bodies are large for an index tree, hence the
    // rowid; it also names a row whose uid cannot be read.
    "CREATE TABLE workloads (
         id INTEGER PRIMARY KEY,
         uid TEXT NOT NULL UNIQUE,
         generation INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum TEXT NOT NULL
     );
     CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, sum TEXT NOT NULL)
         WITHOUT ROWID;
     CREATE TABLE damaged_rows (
         id INTEGER PRIMARY KEY,
         uid TEXT,
         body TEXT,
         reason TEXT NOT NULL,
         found_at_ms INTEGER NOT NULL
     );",
    // Keys are text whose order is the order of the numbers. One tree, so that an entry that comes
    // or goes changes one page.
    "CREATE TABLE journal (
         key TEXT NOT NULL PRIMARY KEY,
         type TEXT NOT NULL,
         token TEXT NOT NULL,
         at_ms INTEGER NOT NULL,
         tries INTEGER NOT NULL,
         error TEXT NOT NULL,
         body TEXT NOT NULL,
         sum TEXT NOT NULL
     ) WITHOUT ROWID;",
    // Manifests say `rerun` and `healthCheck`, rows which container an update returns to.
    "",
];

/// The newest schema version known here.
pub fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Brings the schema from `version` up to date; nothing is written if it is. The caller holds the
/// transaction that all steps and their count become durable in.
pub fn run(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    if version == known() {
        return Ok(());
    }
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", known())?;
    // The header has no checksum. This copy has one, and tells a newer schema from a flipped bit.
    put_meta(connection, Meta::Schema, &known().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(connection: &Connection) -> Vec<String> {
        let mut statement =
            connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY 1").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn twice_is_as_good_as_once() {
        let connection = Connection::open_in_memory().unwrap();
        run(&connection, 0).unwrap();
        let (once, changes) = (schema(&connection), connection.total_changes());
        let version: i64 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, known());
        run(&connection, version).unwrap();
        assert_eq!(schema(&connection), once);
        assert_eq!(connection.total_changes(), changes);
    }

    #[test]
    fn a_step_at_a_time_ends_where_all_at_once_does() {
        let (whole, stepped) =
            (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        run(&whole, 0).unwrap();
        for step in STEPS {
            stepped.execute_batch(step).unwrap();
        }
        assert_eq!(schema(&whole), schema(&stepped));
    }
}
