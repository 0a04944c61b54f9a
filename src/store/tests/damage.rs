//! A damaged database is set aside and built anew from what stands beside it.

use std::fs;

use super::*;
use crate::store::database::{header_number, put_meta};
use crate::store::{Meta, migrate};

fn records() -> Vec<Record> {
    (1..=5).map(full).collect()
}

/// A damaged database: all that was declared is back, under the same id, and the old file is kept.
fn check_rebuilt(what: &str, damage: impl Fn(&Home)) {
    let home = filled(&records());
    let id = home.open().store_id;
    damage(&home);
    let is_there = home.file("bargee.db").exists();
    let opened = home.open();
    assert_eq!(opened.store_id, id, "{what}");
    assert!(!opened.whole, "{what}");
    let expected: Vec<_> = records().iter().map(rebuilt).collect();
    assert_eq!(opened.records, expected, "{what}");
    assert_eq!(opened.notices.len(), 1, "{what}: {:?}", opened.notices);
    assert!(opened.notices[0].contains("with 5 workloads"), "{what}: {:?}", opened.notices);
    assert_eq!(home.aside().len(), usize::from(is_there), "{what}: {:?}", home.aside());
    drop(opened);
    let again = home.open();
    assert_eq!((again.records, again.whole), (expected, false), "{what}");
    assert!(again.notices.is_empty(), "{what}: {:?}", again.notices);
}

#[test]
fn a_database_that_is_gone_or_cut_is_built_anew() {
    check_rebuilt("missing", |home| fs::remove_file(home.file("bargee.db")).unwrap());
    check_rebuilt("empty", |home| put(&home.file("bargee.db"), b""));
    for (what, part) in [("half", 2), ("a third", 3)] {
        check_rebuilt(what, |home| {
            let bytes = fs::read(home.file("bargee.db")).unwrap();
            put(&home.file("bargee.db"), &bytes[..bytes.len() / part]);
        });
    }
    check_rebuilt("a few bytes", |home| put(&home.file("bargee.db"), b"SQLite format 3\0"));
}

#[test]
fn what_is_no_database_of_ours_is_set_aside() {
    check_rebuilt("garbage", |home| put(&home.file("bargee.db"), &[0x5a; 10_000]));
    check_rebuilt("zeros", |home| put(&home.file("bargee.db"), &[0; 8_192]));
    check_rebuilt("another program's", |home| {
        fs::remove_file(home.file("bargee.db")).unwrap();
        home.sql("CREATE TABLE t (x); PRAGMA user_version = 1;");
    });
    check_rebuilt("no tables", |home| {
        fs::remove_file(home.file("bargee.db")).unwrap();
        home.sql("CREATE TABLE t (x); DROP TABLE t;");
    });
    check_rebuilt("a table is gone", |home| home.sql("DROP TABLE workloads"));
    check_rebuilt("another application id", |home| home.sql("PRAGMA application_id = 7"));
}

#[test]
fn a_schema_version_that_the_checksummed_copy_denies_is_damage() {
    check_rebuilt("too high", |home| home.sql("PRAGMA user_version = 16777217"));
    check_rebuilt("too low", |home| home.sql("PRAGMA user_version = 0"));
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let home = filled(&records());
    let newer = migrate::known() + 1;
    home.sql(&format!("PRAGMA user_version = {newer}; DROP TABLE meta;"));
    let before = fs::read(home.file("bargee.db")).unwrap();
    let error = home.try_open().unwrap_err();
    let known = migrate::known();
    assert!(
        matches!(error, StoreError::TooNew { found, known: k, .. } if (found, k) == (newer, known)),
        "{error}"
    );
    assert!(error.to_string().contains("install"), "{error}");
    assert_eq!(fs::read(home.file("bargee.db")).unwrap(), before);
    assert!(home.aside().is_empty());
}

#[test]
fn without_anything_beside_it_a_damaged_database_is_a_new_store() {
    let home = filled(&records());
    let id = home.open().store_id;
    fs::remove_file(home.file("store-id")).unwrap();
    fs::remove_file(home.file("workloads.json")).unwrap();
    put(&home.file("bargee.db"), b"garbage");
    let opened = home.open();
    assert_ne!(opened.store_id, id);
    assert!(opened.records.is_empty() && !opened.whole);
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert_eq!(home.aside().len(), 1);
}

#[test]
fn an_empty_database_with_nothing_beside_it_is_a_new_store() {
    let home = Home::new();
    fs::create_dir_all(home.dir()).unwrap();
    put(&home.file("bargee.db"), b"");
    let opened = home.open();
    assert!(opened.notices.is_empty() && home.aside().is_empty());
}

#[test]
fn the_id_comes_from_whatever_is_left() {
    for lost in ["store-id", "workloads.json"] {
        let home = filled(&records());
        let id = home.open().store_id;
        fs::remove_file(home.file("bargee.db")).unwrap();
        fs::remove_file(home.file(lost)).unwrap();
        let opened = home.open();
        assert_eq!(opened.store_id, id, "without {lost}");
        let expected = if lost == "store-id" { 5 } else { 0 };
        assert_eq!(opened.records.len(), expected, "without {lost}");
        assert!(!opened.whole);
    }
}

#[test]
fn a_log_that_outlived_its_database_is_set_aside_too() {
    let home = filled(&records());
    fs::remove_file(home.file("bargee.db")).unwrap();
    put(&home.file("bargee.db-wal"), &[7; 5_000]);
    let opened = home.open();
    assert_eq!(opened.records.len(), 5);
    assert!(home.aside().is_empty(), "{:?}", home.aside());
    let log = home.file("bargee.db.damaged-20240301T000000Z-1-wal");
    assert_eq!(fs::read(log).unwrap(), [7; 5_000]);
}

#[test]
fn a_build_that_was_cut_off_is_begun_again() {
    let home = filled(&records());
    // As after a kill between the rename and the commit of the new file.
    fs::rename(home.file("bargee.db"), home.file("bargee.db.damaged-20240301T000000Z-1")).unwrap();
    put(&home.file("bargee.db"), b"");
    let opened = home.open();
    assert_eq!(declarations(&opened.records), declarations(&records()));
    assert_eq!(home.aside().len(), 2);
}

#[test]
fn a_manifest_that_is_not_accepted_any_more_is_kept_and_told() {
    let home = filled(&records());
    fs::remove_file(home.file("bargee.db")).unwrap();
    let strict = |text: &str| match text.contains("\"w2\"") {
        true => Err("image: not today".to_owned()),
        false => parse(text),
    };
    let opened = open_with(&home.dir(), ADDRESS, TOKEN, &strict).unwrap();
    assert_eq!(opened.records.len(), 4);
    let told = opened.notices.iter().any(|n| n.contains("not today") && n.contains("damaged_rows"));
    assert!(told, "{:?}", opened.notices);
    drop(opened);
    assert_eq!(home.count("damaged_rows"), 1);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_no_damage() {
    use nix::unistd::{Uid as User, chown, setfsuid};
    use std::os::unix::fs::PermissionsExt;

    let home = filled(&records());
    let nobody = User::from_raw(65_534);
    // Root may write anywhere, so that this thread becomes somebody else to the file system.
    fs::set_permissions(home.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in home.names().into_iter().map(|name| home.file(&name)).chain([home.dir()]) {
        let _ = chown(&name, Some(nobody), None);
    }
    fs::set_permissions(home.dir(), fs::Permissions::from_mode(0o500)).unwrap();
    let before = setfsuid(nobody);
    let outcome = home.try_open();
    setfsuid(before);
    let error = outcome.unwrap_err();
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error}");
    fs::set_permissions(home.dir(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(home.names(), ["bargee.db", "reserve", "store-id", "workloads.json"]);
    assert_eq!(home.open().records, records());
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let home = Home::new();
    put(&home.0.path().join("data"), b"a file");
    let error = home.try_open().unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error}");
}

#[test]
fn a_full_or_failing_disk_is_no_damage() {
    use crate::store::error::is_damage;
    use rusqlite::ffi;

    let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    for code in [
        ffi::SQLITE_FULL,
        ffi::SQLITE_READONLY,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_BUSY,
        ffi::SQLITE_NOMEM,
        ffi::SQLITE_PERM,
        ffi::SQLITE_IOERR_READ,
        ffi::SQLITE_IOERR_FSYNC,
    ] {
        assert!(!is_damage(&error(code)), "{code}");
    }
    for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_IOERR_SHORT_READ] {
        assert!(is_damage(&error(code)), "{code}");
    }
}

/// Declarations of agents before the fields of today: the next declaration has words that those
/// agents refuse, and they take a workload that they cannot read for a lost one.
#[test]
fn what_an_agent_before_wrote_is_read_and_not_given_back_to_it() {
    let home = filled(&[full(1), bare(2)]);
    home.sql("PRAGMA user_version = 2");
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    put_meta(&connection, Meta::Schema, "2").unwrap();
    drop(connection);
    let opened = home.open();
    assert_eq!(opened.records, [full(1), bare(2)]);
    assert!(opened.whole && opened.notices.is_empty(), "{:?}", opened.notices);
    drop(opened);
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let version = header_number(&connection, "user_version").unwrap();
    assert!(version > 2, "an agent before would open it and lose workloads");
}
