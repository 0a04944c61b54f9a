//! Entries: what is written comes back, numbers are never used twice, and only its own process
//! settles one.

use proptest::prelude::*;

use super::*;
use crate::limits::SEQ_BLOCK;
use crate::store::error::EntryProblem;

fn all_kinds() -> Vec<JournalEntry> {
    let (uid, container) = (bare(1).uid, Some(ContainerId::new("c1")));
    let name = |text: &str| InstanceName::new(text);
    let remove =
        |container| Intent::Remove { uid: bare(1).uid, instance: name("bargee-w-1"), container };
    let replace = |container| Intent::Replace {
        uid: bare(1).uid,
        old: name("bargee-w-1"),
        container,
        new: name("bargee-w-2"),
    };
    let tried = JournalEntry { tries: 3, error: "engine \u{0} away".into(), ..creation(1) };
    vec![
        tried,
        entry(2, Intent::Create { uid, instance: name("näme \"quoted\" \\ \u{0}") }),
        entry(3, remove(None)),
        entry(4, remove(container.clone())),
        entry(5, replace(None)),
        entry(6, replace(container)),
        JournalEntry { token: "another".into(), at_ms: 0, ..creation(u64::MAX / 4) },
    ]
}

#[test]
fn entries_of_all_kinds_come_back_as_they_were_and_in_order() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    assert!(opened.entries.is_empty());
    let backwards = all_kinds().into_iter().rev().map(Write::Intend).collect();
    must(&mut opened.store, false, backwards);
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.entries, all_kinds());
    assert_eq!(opened.next_seq, Seq(u64::MAX / 4 + 1));
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_entry_comes_back(
        texts in proptest::collection::vec(".{1,40}", 4),
        numbers in any::<(u32, u32, u32)>(),
    ) {
        let home = Home::new();
        let mut opened = home.open();
        let intent = Intent::Replace {
            uid: Uid::new(texts[0].as_str()),
            old: InstanceName::new(texts[1].as_str()),
            container: Some(ContainerId::new(texts[2].as_str())),
            new: InstanceName::new(texts[3].as_str()),
        };
        let entry = JournalEntry {
            seq: Seq(numbers.0.into()),
            intent,
            token: texts[0].clone(),
            at_ms: numbers.1.into(),
            tries: numbers.2,
            error: texts[1].clone(),
        };
        must(&mut opened.store, false, vec![Write::Intend(entry.clone())]);
        drop(opened);
        prop_assert_eq!(home.open().entries, [entry]);
    }
}

#[test]
fn a_key_tells_address_and_number_as_text_in_order() {
    let home = filled(&[]);
    must(&mut home.open().store, false, vec![intend(10), intend(9)]);
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let mut statement = connection.prepare("SELECT key, body FROM journal ORDER BY key").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let rows: Vec<(String, String)> = rows.map(Result::unwrap).collect();
    assert_eq!(rows[0].0, "/wal/node-1/00000000000000000009");
    assert_eq!(rows[1].0, "/wal/node-1/00000000000000000010");
    let expected = serde_json::json!({
        "uid": bare(9).uid.as_str(),
        "direction": "create",
        "instance": "bargee-w-00000009",
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&rows[0].1).unwrap(), expected);
}

#[test]
fn numbers_go_on_after_entries_that_were_settled() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    assert_eq!(opened.next_seq, Seq(1));
    must(&mut opened.store, false, vec![intend(1), intend(2)]);
    must(&mut opened.store, false, vec![Write::Settle(Seq(1)), Write::Settle(Seq(2))]);
    drop(opened);
    for _ in 0..3 {
        let opened = home.open();
        assert!(opened.entries.is_empty());
        assert_eq!(opened.next_seq, Seq(3));
    }
}

#[test]
fn numbers_go_on_in_a_database_that_was_built_anew() {
    let home = filled(&[bare(1)]);
    let mut highest = 0;
    for round in 1..=3 {
        let mut opened = home.open();
        // More than are set aside at a time, without any declaration.
        for step in 0..SEQ_BLOCK * 2 / 100 {
            let from = opened.next_seq.0 + step * 100;
            let writes = (from..from + 100).map(intend).collect();
            must(&mut opened.store, false, writes);
            highest = from + 99;
        }
        drop(opened);
        fs::remove_file(home.file("bargee.db")).unwrap();
        let opened = home.open();
        assert!(opened.next_seq.0 > highest, "round {round}: {:?} {highest}", opened.next_seq);
        assert!(opened.next_seq.0 <= highest + SEQ_BLOCK + 1);
    }
}

#[test]
fn numbers_go_on_where_commits_were_lost_or_the_mark_was() {
    let home = filled(&[bare(1)]);
    let old = fs::read(home.file("bargee.db")).unwrap();
    let mut opened = home.open();
    must(&mut opened.store, false, vec![intend(1), intend(2)]);
    must(&mut opened.store, true, vec![insert(&bare(2))]);
    drop(opened);
    let newest = fs::read(home.file("bargee.db")).unwrap();
    put(&home.file("bargee.db"), &old);
    assert!(home.open().next_seq > Seq(2));
    put(&home.file("bargee.db"), &newest);
    home.sql("UPDATE meta SET value = '0' WHERE key = 'lastSeq'; DELETE FROM journal");
    assert!(home.open().next_seq > Seq(2));
}

#[test]
fn numbers_go_on_after_those_of_a_log_whose_end_was_lost() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    must(&mut opened.store, false, vec![intend(1)]);
    must(&mut opened.store, false, vec![intend(2), Write::Settle(Seq(1))]);
    // As after a kill, with the last transaction cut off.
    let other = Home::new();
    fs::create_dir(other.dir()).unwrap();
    for name in ["bargee.db", "bargee.db-wal", "store-id", "workloads.json"] {
        let bytes = fs::read(home.file(name)).unwrap();
        let end = bytes.len() - if name.ends_with("-wal") { 100 } else { 0 };
        put(&other.file(name), &bytes[..end]);
    }
    let opened = other.open();
    assert_eq!(numbers(&opened.entries), [1]);
    assert!(opened.next_seq > Seq(2));
}

#[test]
fn the_file_of_declarations_is_not_replaced_for_each_entry() {
    use std::os::unix::fs::MetadataExt;

    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    let inode = || fs::metadata(home.file("workloads.json")).unwrap().ino();
    let (mut replaced, mut last) = (0, inode());
    for seq in 1..=SEQ_BLOCK {
        must(&mut opened.store, false, vec![intend(seq)]);
        let now = inode();
        replaced += u32::from(std::mem::replace(&mut last, now) != now);
    }
    assert_eq!(replaced, 1);
}

#[test]
fn a_number_that_is_there_is_refused() {
    let home = filled(&[]);
    let mut opened = home.open();
    must(&mut opened.store, false, vec![intend(1)]);
    let other = JournalEntry { token: "another".into(), ..creation(1) };
    let writes = vec![insert(&bare(1)), Write::Intend(other)];
    refused(&mut opened.store, writes, Seq(1), EntryProblem::Exists);
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.entries, [creation(1)]);
    assert!(opened.records.is_empty());
}

/// Commits and expects that it fails because of an entry.
fn refused(store: &mut Store, writes: Vec<Write>, expected: Seq, why: EntryProblem) {
    let results = store.commit(&[commit(true, writes)], 0);
    let [Err(StoreError::Entry { seq, problem })] = &results[..] else { panic!("{results:?}") };
    assert_eq!((*seq, *problem), (expected, why));
}

#[test]
fn a_claim_replaces_token_tries_and_error_of_an_entry_that_is_there() {
    let home = filled(&[]);
    must(&mut home.open().store, false, vec![intend(1), intend(2)]);
    let mut opened = home.open_as(ADDRESS, "later");
    let claimed =
        JournalEntry { token: "later".into(), tries: 2, error: "no\nanswer".into(), ..creation(1) };
    must(&mut opened.store, false, vec![Write::Claim(claimed.clone())]);
    let gone = vec![Write::Claim(creation(3)), insert(&bare(1))];
    refused(&mut opened.store, gone, Seq(3), EntryProblem::Gone);
    drop(opened);
    let mut opened = home.open_as(ADDRESS, "later");
    assert_eq!(opened.entries, [claimed, creation(2)]);
    assert!(opened.records.is_empty());
    must(&mut opened.store, false, vec![Write::Settle(Seq(1))]);
    let foreign = vec![Write::Settle(Seq(2))];
    refused(&mut opened.store, foreign, Seq(2), EntryProblem::Foreign);
}

#[test]
fn an_entry_of_another_process_is_not_settled_and_nothing_is_written() {
    let home = filled(&[bare(1)]);
    must(&mut home.open().store, false, vec![intend(1)]);
    let mut opened = home.open_as(ADDRESS, "later");
    let seen = Record { observed_generation: 1, ..bare(1) };
    let writes = vec![update(&seen), intend(2), Write::Settle(Seq(1))];
    refused(&mut opened.store, writes, Seq(1), EntryProblem::Foreign);
    drop(opened);
    let mut opened = home.open_as(ADDRESS, "later");
    assert_eq!((numbers(&opened.entries), &opened.records[..]), (vec![1], &[bare(1)][..]));
    // One that is gone is settled.
    must(&mut opened.store, false, vec![update(&seen), Write::Settle(Seq(7))]);
    // An operator may, and twice is as good as once.
    must(&mut opened.store, false, vec![Write::DropEntry(Seq(1)), Write::DropEntry(Seq(1))]);
    drop(opened);
    assert!(home.open().entries.is_empty());
}

#[test]
fn one_bad_settlement_takes_no_other_commit_of_its_group_along() {
    let home = filled(&[]);
    must(&mut home.open().store, false, vec![intend(1), intend(2), intend(3)]);
    let mut opened = home.open_as(ADDRESS, "later");
    let claim = |seq| Write::Claim(JournalEntry { token: "later".into(), ..creation(seq) });
    must(&mut opened.store, false, vec![claim(1), claim(3)]);
    let settle = |seq| commit(false, vec![Write::Settle(Seq(seq))]);
    let results = opened.store.commit(&[settle(1), settle(2), settle(3)], 0);
    assert!(results[0].is_ok() && results[1].is_err() && results[2].is_ok());
    drop(opened);
    assert_eq!(numbers(&home.open().entries), [2]);
}

#[test]
fn entries_of_another_address_are_left_alone_and_counted() {
    let home = filled(&[]);
    must(&mut home.open().store, false, vec![intend(1), intend(2)]);
    let mut opened = home.open_as("node-2", TOKEN);
    assert!(opened.entries.is_empty());
    assert_eq!(opened.next_seq, Seq(3), "numbers are those of the store");
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert!(opened.notices[0].contains("2 entries of another address"), "{:?}", opened.notices);
    must(&mut opened.store, false, vec![Write::Settle(Seq(1))]);
    must(&mut opened.store, false, vec![intend(3)]);
    drop(opened);
    assert_eq!(home.open().entries, [creation(1), creation(2)]);
    assert_eq!(home.open_as("node-2", TOKEN).entries, [creation(3)]);
}

#[test]
fn a_database_without_a_journal_gets_one() {
    let home = filled(&[full(1)]);
    let before = "DROP TABLE journal; DELETE FROM meta WHERE key = 'lastSeq';
                  PRAGMA user_version = 1;";
    home.sql(before);
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    crate::store::database::put_meta(&connection, crate::store::Meta::Schema, "1").unwrap();
    drop(connection);
    let mut opened = home.open();
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
    assert_eq!(opened.records, [full(1)]);
    assert!(opened.whole && opened.entries.is_empty());
    must(&mut opened.store, false, vec![intend(opened.next_seq.0)]);
    drop(opened);
    assert_eq!(home.open().entries.len(), 1);
}

#[test]
fn an_intent_is_one_transaction_of_few_pages() {
    let home = filled(&(1..=100).map(full).collect::<Vec<_>>());
    let mut opened = home.open();
    must(&mut opened.store, false, vec![intend(1)]);
    let seen = |n| update(&Record { observed_generation: n, ..full(50) });
    let mut cost = |writes| {
        let before = frames(&home);
        must(&mut opened.store, false, writes);
        let after = frames(&home);
        assert_eq!(after.1, before.1 + 1, "one transaction");
        after.0 - before.0
    };
    let begun = cost(vec![intend(2), seen(1)]);
    let settled = cost(vec![Write::Settle(Seq(2)), seen(2)]);
    println!("pages: {begun} to intend, {settled} to settle, 4120 bytes each");
    assert!(begun <= 3 && settled <= 2, "{begun} {settled}");
    let group: Vec<_> = (3..=22).map(|n| commit(false, vec![intend(n)])).collect();
    let before = frames(&home).1;
    assert!(opened.store.commit(&group, 0).iter().all(Result::is_ok));
    assert_eq!(frames(&home).1, before + 1);
}
