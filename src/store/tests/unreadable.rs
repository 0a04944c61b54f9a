//! Entries that cannot be read: handed on, kept as they are, and in nobody's way.

use super::*;
use crate::domain::effect::Write;
use crate::limits::ENTRY_TEXT_BYTES;
use crate::store::checksum::Checksum;
use crate::store::error::EntryProblem;

/// A row as another bargee might have written it: its checksum is right.
fn foreign(home: &Home, seq: u64, kind: &str, body: &str) {
    let key = format!("/wal/node-1/{seq:020}");
    let (at_ms, tries) = (5_i64, 1_u32);
    let parts: [&[u8]; 7] = [
        key.as_bytes(),
        kind.as_bytes(),
        b"token",
        &at_ms.to_be_bytes(),
        &tries.to_be_bytes(),
        b"",
        body.as_bytes(),
    ];
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let sql = "INSERT INTO journal VALUES (?1, ?2, 'token', ?3, ?4, '', ?5, ?6)";
    let values = rusqlite::params![key, kind, at_ms, tries, body, Checksum::of(&parts)];
    connection.execute(sql, values).unwrap();
}

/// All of the table, byte for byte.
fn table(home: &Home) -> Vec<String> {
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let sql = "SELECT quote(key) || hex(type) || hex(token) || quote(at_ms) || quote(tries)
               || hex(error) || hex(body) || hex(sum) FROM journal ORDER BY key";
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn unreadable(entry: &JournalEntry) -> (&str, &str) {
    let Intent::Unreadable { kind, text } = &entry.intent else { panic!("{entry:?}") };
    (kind, text)
}

#[test]
fn fields_that_are_not_known_are_tolerated_and_kept_over_a_claim() {
    let home = filled(&[]);
    let text = r#"{"uid":"u","direction":"create","instance":"i","since":{"of":[1]}}"#;
    foreign(&home, 1, "create-workload", text);
    let mut opened = home.open();
    let intent = Intent::Create { uid: Uid::new("u"), instance: InstanceName::new("i") };
    assert_eq!(opened.entries[0].intent, intent);
    let claimed = JournalEntry { tries: 2, ..opened.entries[0].clone() };
    must(&mut opened.store, false, vec![Write::Claim(claimed.clone())]);
    drop(opened);
    assert_eq!(home.open().entries, [claimed]);
    assert_eq!(home.count("journal WHERE body LIKE '%since%'"), 1);
}

#[test]
fn what_cannot_be_read_is_handed_on_and_kept_over_many_opens() {
    let home = filled(&[bare(1)]);
    must(&mut home.open().store, false, vec![intend(1), intend(2), intend(3), intend(4)]);
    let long = format!("{}é", "x".repeat(ENTRY_TEXT_BYTES - 1));
    let odd = [
        ("create-lambda", r#"{"uid":"u"}"#),
        ("", ""),
        ("create-workload", r#"{"uid":"u","direction":"#),
        ("create-workload", r#"{"uid":"u","direction":"sideways","instance":"i"}"#),
        ("create-workload", r#"{"uid":"u","direction":"remove","instance":""}"#),
        ("create-workload", r#"{"uid":7,"direction":"create","instance":"i"}"#),
        ("replace-workload", r#"{"uid":"u","old":"a"}"#),
        ("replace-workload", "\u{0}{\u{0}"),
        ("no\u{0}type", long.as_str()),
    ];
    for (seq, (kind, text)) in (5..).zip(odd) {
        foreign(&home, seq, kind, text);
    }
    home.sql(
        "UPDATE journal SET body = replace(body, 'bargee', 'Bargee') WHERE key LIKE '%01';
         UPDATE journal SET tries = 'three', body = x'ff00' WHERE key LIKE '%02';
         UPDATE journal SET token = token || x'00' WHERE key LIKE '%03'",
    );
    let before = table(&home);
    for _ in 0..20 {
        let opened = home.open();
        assert!(opened.notices.is_empty(), "{:?}", opened.notices);
        assert_eq!(numbers(&opened.entries), (1..=13).collect::<Vec<_>>());
        for damaged in &opened.entries[..3] {
            assert_eq!(unreadable(damaged).0, "create-workload");
            assert!(damaged.error.contains("checksum"), "{damaged:?}");
        }
        assert_eq!(opened.entries[3], creation(4));
        for (entry, (kind, text)) in opened.entries[4..].iter().zip(odd) {
            let shown = &text[..text.len().min(ENTRY_TEXT_BYTES - 1)];
            assert_eq!(unreadable(entry), (kind, shown), "{}", entry.error);
            assert!(!entry.error.is_empty());
            assert_eq!((entry.at_ms, entry.tries, entry.token.as_str()), (5, 1, "token"));
        }
    }
    assert_eq!(table(&home), before);
}

#[test]
fn what_cannot_be_read_is_neither_claimed_nor_written_but_can_be_dropped() {
    let home = filled(&[]);
    must(&mut home.open().store, false, vec![intend(1)]);
    home.sql("UPDATE journal SET body = body || ' '");
    let before = table(&home);
    let mut opened = home.open();
    let claims = [opened.entries[0].clone(), creation(1)].map(Write::Claim);
    let intent = Intent::Unreadable { kind: "k".into(), text: "t".into() };
    for write in claims.into_iter().chain([Write::Intend(entry(1, intent))]) {
        let results = opened.store.commit(&[commit(false, vec![write])], 0);
        let [Err(StoreError::Entry { problem, .. })] = &results[..] else { panic!("{results:?}") };
        assert_eq!(*problem, EntryProblem::Unreadable);
    }
    assert_eq!(table(&home), before);
    must(&mut opened.store, false, vec![Write::DropEntry(Seq(1))]);
    drop(opened);
    assert!(home.open().entries.is_empty());
}

#[test]
fn damaged_keys_stop_nothing_and_use_up_no_numbers() {
    let home = filled(&[]);
    must(&mut home.open().store, false, (1..=7).map(intend).collect());
    home.sql(
        "UPDATE journal SET key = replace(key, '/wal', '/wAl') WHERE key LIKE '%1';
         UPDATE journal SET key = '' WHERE key LIKE '%2';
         UPDATE journal SET key = CAST(key AS BLOB) WHERE key LIKE '%3';
         UPDATE journal SET key = '/wal/node-1/99999999999999999999' WHERE key LIKE '%4';
         UPDATE journal SET key = '/wal/node-1/18446744073709551615' WHERE key LIKE '%5';
         UPDATE journal SET key = replace(key, '007', '00x') WHERE key LIKE '%7'",
    );
    let before = table(&home);
    let mut opened = home.open();
    assert_eq!(numbers(&opened.entries), [6, u64::MAX]);
    assert_eq!(unreadable(&opened.entries[1]).0, "create-workload");
    assert_eq!(opened.next_seq, Seq(8));
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert!(opened.notices[0].contains("key is damaged"), "{:?}", opened.notices);
    must(&mut opened.store, false, vec![intend(8)]);
    must(&mut opened.store, false, vec![Write::Settle(Seq(8))]);
    drop(opened);
    assert_eq!(table(&home), before);
}

#[test]
fn flipped_bytes_spoil_one_entry_and_no_other() {
    let home = filled(&[bare(1)]);
    must(&mut home.open().store, false, (1..=10).map(intend).collect());
    let good = fs::read(home.file("bargee.db")).unwrap();
    let id = home.open().store_id;
    let find = |text: &str, from: usize| {
        let part = good[from..].windows(text.len()).position(|part| part == text.as_bytes());
        from + part.unwrap()
    };
    // The fifth entry, whose key comes first and whose last name ends it.
    let key = find("/wal/node-1/00000000000000000005", 0);
    let (kind, end) = (find("create-workload", key), find("bargee-w-00000005", key) + 17);
    for at in key..end {
        let mut bytes = good.clone();
        bytes[at] ^= 0x01;
        put(&home.file("bargee.db"), &bytes);
        let opened = home.open();
        assert_eq!((opened.store_id.clone(), &opened.records[..]), (id.clone(), &[bare(1)][..]));
        assert!(opened.next_seq > Seq(10));
        let spoiled: Vec<_> =
            opened.entries.iter().filter(|entry| **entry != creation(entry.seq.0)).collect();
        if at >= kind {
            assert_eq!((opened.entries.len(), spoiled.len()), (10, 1), "byte {at}: {spoiled:?}");
            assert_eq!(spoiled[0].seq, Seq(5));
        } else {
            // A key out of order, or of another address; never a step that was not noted.
            assert!(!opened.notices.is_empty() || spoiled.len() == 1, "byte {at}");
        }
        for entry in spoiled {
            assert!(matches!(entry.intent, Intent::Unreadable { .. }), "byte {at}: {entry:?}");
        }
    }
}

#[test]
fn ten_thousand_entries_are_read_in_order() {
    let home = filled(&[]);
    let mut opened = home.open();
    let all: Vec<u64> = (1..=10_000).collect();
    for part in all.chunks(1_000) {
        must(&mut opened.store, false, part.iter().rev().map(|seq| intend(*seq)).collect());
    }
    drop(opened);
    let begin = crate::os::clock::boot_ms();
    let opened = home.open();
    println!("10,000 entries: opened in {} ms", crate::os::clock::boot_ms() - begin);
    assert_eq!(numbers(&opened.entries), all);
    assert!(opened.entries.iter().all(|entry| *entry == creation(entry.seq.0)));
    assert_eq!(opened.next_seq, Seq(10_001));
}
