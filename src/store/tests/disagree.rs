//! The files of a store do not agree: which of them is believed.

use std::fs;

use super::*;

#[test]
fn a_row_that_fails_is_taken_from_the_file_and_its_text_is_kept() {
    let home = filled(&[full(1), full(2), full(3)]);
    home.sql("UPDATE workloads SET body = replace(body, 'nginx:1', 'nginx:6') WHERE id = 2");
    let opened = home.open();
    let by_number = |n: usize| opened.records.iter().find(|r| r.uid == full(n as u64).uid).unwrap();
    assert_eq!(opened.records.len(), 3);
    assert_eq!(*by_number(2), rebuilt(&full(2)));
    assert_eq!((by_number(1), by_number(3)), (&full(1), &full(3)));
    assert!(!opened.whole);
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert!(opened.notices[0].contains("shop/w2"), "{:?}", opened.notices);
    drop(opened);
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let sql = "SELECT uid, body, reason FROM damaged_rows";
    let kept: (String, String, String) =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(kept.0, full(2).uid.as_str());
    assert!(kept.1.contains("nginx:6") && kept.2.contains("checksum"));
    drop(connection);
    assert!(home.open().notices.is_empty());
}

#[test]
fn every_column_of_a_row_is_covered() {
    for change in [
        "uid = '00000000-0000-4000-8000-00000000000X'",
        "generation = generation + 1",
        "generation = 'three'",
        "body = body || ' '",
        "body = x'ff00'",
        "sum = upper(sum) || ' '",
    ] {
        let home = filled(&[full(1), full(2)]);
        home.sql(&format!("UPDATE workloads SET {change} WHERE id = 1"));
        let opened = home.open();
        assert_eq!(opened.records, [full(2), rebuilt(&full(1))], "{change}");
        assert!(!opened.notices.is_empty(), "{change}");
    }
}

#[test]
fn a_row_that_fails_and_is_nowhere_else_is_dropped_and_told() {
    let home = filled(&[full(1), full(2)]);
    home.sql("UPDATE workloads SET sum = '' WHERE id = 1");
    fs::remove_file(home.file("workloads.json")).unwrap();
    let opened = home.open();
    assert_eq!(opened.records, [full(2)]);
    let told = opened.notices.iter().any(|notice| notice.contains(full(1).uid.as_str()));
    assert!(told, "{:?}", opened.notices);
    drop(opened);
    assert_eq!(home.count("damaged_rows"), 1);
}

#[test]
fn rows_that_went_without_a_word_come_back() {
    let home = filled(&[full(1), full(2)]);
    home.sql("DELETE FROM workloads WHERE id = 1");
    let opened = home.open();
    assert_eq!(opened.records, [full(2), rebuilt(&full(1))]);
    assert!(!opened.whole);
}

#[test]
fn what_was_removed_stays_removed() {
    let home = filled(&[bare(1), bare(2)]);
    let old = fs::read(home.file("workloads.json")).unwrap();
    let mut opened = home.open();
    let going = Record { desired: Desired::Deleted, ..bare(1) };
    must(&mut opened.store, true, vec![update(&going)]);
    let told = fs::read(home.file("workloads.json")).unwrap();
    must(&mut opened.store, false, vec![Write::Delete(going.uid)]);
    drop(opened);
    // The file knows of the removal, but not that it ended; or it knows of nothing, as after a
    // kill between the commit and the replacement of the file.
    for text in [told, old] {
        put(&home.file("workloads.json"), &text);
        let opened = home.open();
        assert_eq!(opened.records, [bare(2)]);
        assert!(opened.whole && opened.notices.is_empty(), "{:?}", opened.notices);
        drop(opened);
        let now = fs::read_to_string(home.file("workloads.json")).unwrap();
        assert!(!now.contains(bare(1).uid.as_str()), "{now}");
    }
}

#[test]
fn a_row_that_was_deleted_undeclared_does_not_come_back() {
    let home = filled(&[bare(1), bare(2)]);
    must(&mut home.open().store, false, vec![Write::Delete(bare(1).uid)]);
    assert_eq!(home.open().records, [bare(2)]);
}

#[test]
fn a_database_that_lost_its_last_commits_follows_the_file() {
    let home = filled(&[full(1), full(2), full(3)]);
    let old = fs::read(home.file("bargee.db")).unwrap();
    let newer = Record { generation: 4, declared: declared("w1", "nginx:2"), ..full(1) };
    let stopped = Record { desired: Desired::Stopped, ..full(2) };
    let mut opened = home.open();
    let writes =
        vec![update(&newer), update(&stopped), Write::Delete(full(3).uid), insert(&bare(4))];
    must(&mut opened.store, true, writes);
    drop(opened);
    put(&home.file("bargee.db"), &old);
    let opened = home.open();
    assert_eq!(opened.records, [newer.clone(), stopped, bare(4)]);
    assert!(!opened.whole);
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    let records = opened.records.clone();
    drop(opened);
    let again = home.open();
    assert_eq!(declarations(&again.records), declarations(&records));
    assert!(again.notices.is_empty(), "{:?}", again.notices);
}

#[test]
fn a_missing_or_damaged_file_of_declarations_is_written_anew() {
    let home = filled(&[full(1), full(2)]);
    let good = fs::read(home.file("workloads.json")).unwrap();
    let half = &good[..good.len() / 2];
    for (text, aside) in [(None, 0), (Some(half), 1), (Some(&b""[..]), 2), (Some(b"{}\n"), 3)] {
        fs::remove_file(home.file("workloads.json")).unwrap();
        if let Some(text) = text {
            put(&home.file("workloads.json"), text);
        }
        let opened = home.open();
        assert_eq!(opened.records, [full(1), full(2)]);
        assert!(opened.whole);
        assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
        assert_eq!(fs::read(home.file("workloads.json")).unwrap(), good);
        assert_eq!(home.aside().len(), aside);
    }
}

#[test]
fn a_missing_damaged_or_foreign_store_id_is_written_anew() {
    let home = filled(&[full(1)]);
    let id = home.open().store_id;
    let good = fs::read(home.file("store-id")).unwrap();
    let foreign = "0123456789abcdef".repeat(2);
    for text in [None, Some(""), Some("garbage"), Some(&foreign)] {
        fs::remove_file(home.file("store-id")).unwrap();
        if let Some(text) = text {
            put(&home.file("store-id"), text.as_bytes());
        }
        let opened = home.open();
        assert_eq!(opened.store_id, id, "{text:?}");
        assert_eq!(opened.notices.len(), usize::from(text.is_some()), "{:?}", opened.notices);
        assert_eq!(fs::read(home.file("store-id")).unwrap(), good);
        assert_eq!(opened.records, [full(1)]);
    }
}

#[test]
fn the_declarations_of_another_store_are_not_taken_over() {
    let other = filled(&[bare(7), bare(8)]);
    let home = filled(&[full(1)]);
    fs::copy(other.file("workloads.json"), home.file("workloads.json")).unwrap();
    let opened = home.open();
    assert_eq!(opened.records, [full(1)]);
    assert_eq!(home.aside().len(), 1);
    assert!(opened.notices[0].contains("another store"), "{:?}", opened.notices);
}

#[test]
fn values_that_fail_in_the_database_are_not_believed() {
    let home = filled(&[full(1)]);
    let id = home.open().store_id;
    home.sql("UPDATE meta SET value = replace(value, '0', '1') WHERE key = 'id'");
    home.sql("UPDATE meta SET value = '999' WHERE key = 'revision'");
    let opened = home.open();
    assert_eq!(opened.store_id, id);
    assert_eq!(opened.records, [full(1)]);
    drop(opened);
    // The store is whole, but that it says so cannot be trusted any more.
    home.sql("UPDATE meta SET sum = 'x' WHERE key = 'whole'");
    assert!(!home.open().whole);
    // A revision that was believed would hide that the row is missing.
    home.sql("UPDATE meta SET value = '999' WHERE key = 'revision'");
    home.sql("DELETE FROM workloads");
    assert_eq!(home.open().records, [rebuilt(&full(1))]);
}
