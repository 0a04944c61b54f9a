//! A commit whose answer was lost is looked for before it is answered.

use super::*;
use crate::store::Marks;
use crate::store::readback::Expected;

/// All kinds of writes, from a store with rows 1 to 4 and entries 1 to 3.
fn everything() -> Vec<Write> {
    let stopped = Record { desired: Desired::Stopped, ..bare(1) };
    let claimed = JournalEntry { tries: 1, error: "again".into(), ..creation(3) };
    vec![
        insert(&bare(5)),
        update(&stopped),
        Write::Delete(bare(2).uid),
        intend(4),
        Write::Claim(claimed),
        Write::Settle(Seq(1)),
        Write::DropEntry(Seq(2)),
        Write::MarkWhole,
    ]
}

fn prepared() -> (Home, Opened) {
    let home = Home::new();
    let mut opened = home.open();
    must(&mut opened.store, true, (1..=4).map(|n| insert(&bare(n))).collect());
    must(&mut opened.store, false, vec![intend(1), intend(2), intend(3)]);
    (home, opened)
}

fn check_there(home: &Home) {
    let opened = home.open();
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
    assert_eq!(numbers(&opened.entries), [3, 4]);
    assert_eq!(opened.entries[0].error, "again");
    let stopped = Record { desired: Desired::Stopped, ..bare(1) };
    assert_eq!(opened.records, [stopped, bare(3), bare(4), bare(5)]);
    assert!(opened.whole);
    assert_eq!(opened.next_seq, Seq(5));
}

fn check_not_there(home: &Home) {
    let opened = home.open();
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
    assert_eq!(numbers(&opened.entries), [1, 2, 3]);
    assert_eq!(opened.records, [bare(1), bare(2), bare(3), bare(4)]);
    assert!(!opened.whole);
}

#[test]
fn what_is_there_is_a_success() {
    let (home, mut opened) = prepared();
    fault::next(|transaction| {
        transaction.commit()?;
        Err(fault::sync_failed())
    });
    must(&mut opened.store, true, everything());
    assert!(fault::is_over());
    // It does not hang on the log any more.
    assert_eq!(frames(&home), (0, 0));
    let text = fs::read_to_string(home.file("workloads.json")).unwrap();
    assert!(text.contains(bare(5).uid.as_str()) && !text.contains(bare(2).uid.as_str()));
    // And the store goes on.
    must(&mut opened.store, false, vec![intend(5), Write::Settle(Seq(5))]);
    drop(opened);
    assert_eq!(home.open().next_seq, Seq(6));
}

#[test]
fn what_is_there_is_all_there() {
    let (home, mut opened) = prepared();
    fault::next(|transaction| {
        transaction.commit()?;
        Err(fault::sync_failed())
    });
    must(&mut opened.store, true, everything());
    drop(opened);
    check_there(&home);
}

#[test]
fn what_is_not_there_is_a_failure_and_can_be_tried_again() {
    let (home, mut opened) = prepared();
    let before = fs::read(home.file("workloads.json")).unwrap();
    fault::next(|transaction| {
        transaction.rollback()?;
        Err(fault::sync_failed())
    });
    let results = opened.store.commit(&[commit(true, everything())], 0);
    assert!(matches!(results[..], [Err(StoreError::Sqlite { .. })]), "{results:?}");
    assert_eq!(fs::read(home.file("workloads.json")).unwrap(), before);
    drop(opened);
    check_not_there(&home);
    must(&mut home.open().store, true, everything());
    check_there(&home);
}

#[test]
fn a_commit_that_fails_and_stays_open_is_not_taken_for_one_that_is_there() {
    let (home, mut opened) = prepared();
    fault::next(|mut transaction| {
        transaction.set_drop_behavior(rusqlite::DropBehavior::Ignore);
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        Err(rusqlite::Error::SqliteFailure(busy, None))
    });
    let results = opened.store.commit(&[commit(true, everything())], 0);
    assert!(matches!(results[..], [Err(StoreError::Sqlite { .. })]), "{results:?}");
    must(&mut opened.store, false, vec![update(&bare(1))]);
    drop(opened);
    check_not_there(&home);
}

/// Fails the commit of `group` while nobody can read the database; `commits`: it became durable.
fn lose(home: &Home, opened: &mut Opened, group: &[Commit], commits: bool) {
    let (dir, away) = (home.dir(), home.0.path().join("away"));
    let back = (away.clone(), dir.clone());
    fault::next(move |transaction| {
        if commits {
            transaction.commit()?
        } else {
            transaction.rollback()?
        }
        fs::rename(dir, away).unwrap();
        Err(fault::sync_failed())
    });
    let results = opened.store.commit(group, 0);
    assert_eq!(results.len(), group.len());
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("not known"), "{error}");
    }
    // The disk is still away.
    let results = opened.store.commit(&[commit(false, vec![intend(8)])], 0);
    assert!(matches!(results[..], [Err(StoreError::Sqlite { .. })]), "{results:?}");
    fs::rename(back.0, back.1).unwrap();
}

#[test]
fn what_cannot_be_read_is_unknown_and_the_store_goes_on_when_the_disk_is_back() {
    let (home, mut opened) = prepared();
    lose(&home, &mut opened, &[commit(true, everything())], false);
    must(&mut opened.store, false, vec![update(&bare(4))]);
    drop(opened);
    check_not_there(&home);
}

/// It was answered as failed, and nobody knows of it.
#[test]
fn what_an_unknown_commit_made_is_taken_back_by_the_next_one() {
    let (home, mut opened) = prepared();
    let newer = Record { generation: 2, ..bare(3) };
    let both = vec![insert(&bare(5)), update(&newer), intend(4), Write::Settle(Seq(1))];
    lose(&home, &mut opened, &[commit(true, both)], true);
    let seen = Record { restart_count: 7, ..bare(3) };
    must(&mut opened.store, false, vec![update(&seen), intend(5), Write::Settle(Seq(1))]);
    // From then on a newer generation counts again.
    must(&mut opened.store, false, vec![update(&newer)]);
    must(&mut opened.store, false, vec![update(&seen)]);
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.records, [bare(1), bare(2), newer, bare(4)]);
    assert_eq!(numbers(&opened.entries), [2, 3, 5]);
}

/// The agent died before it could be taken back: it holds, as what was not answered may.
#[test]
fn what_an_unknown_commit_made_holds_if_nothing_comes_after_it() {
    let (home, mut opened) = prepared();
    lose(&home, &mut opened, &[commit(true, vec![insert(&bare(5)), intend(4)])], true);
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.records.len(), 5);
    assert_eq!(numbers(&opened.entries), [1, 2, 3, 4]);
}

#[test]
fn of_an_unknown_group_nothing_is_tried_again() {
    let (home, mut opened) = prepared();
    let group = [commit(false, vec![intend(4)]), commit(false, vec![intend(5)])];
    lose(&home, &mut opened, &group, true);
    drop(opened);
    assert_eq!(numbers(&home.open().entries), [1, 2, 3, 4, 5]);
}

#[test]
fn a_group_that_is_not_there_is_tried_one_by_one() {
    let (home, mut opened) = prepared();
    fault::next(|transaction| {
        transaction.rollback()?;
        Err(fault::sync_failed())
    });
    let group = [commit(false, vec![intend(4)]), commit(false, vec![intend(5)])];
    assert!(opened.store.commit(&group, 0).iter().all(Result::is_ok));
    drop(opened);
    assert_eq!(numbers(&home.open().entries), [1, 2, 3, 4, 5]);
}

/// Whether `after` is found after `done` was committed to a store with rows and entries.
fn is_found(done: Vec<Write>, after: Vec<Write>) -> bool {
    let (_home, mut opened) = prepared();
    must(&mut opened.store, true, done);
    let group = [commit(true, after)];
    let marks = Marks { revision: None, last_seq: None };
    let Store { connection, journal, .. } = &opened.store;
    Expected::of(&group, marks).is_there(connection.as_ref().unwrap(), journal).unwrap()
}

#[test]
fn each_write_is_missed_when_it_alone_is_not_there() {
    for write in everything() {
        assert!(is_found(vec![write.clone()], vec![write.clone()]), "{write:?}");
        assert!(!is_found(vec![], vec![write.clone()]), "{write:?}");
    }
}

#[test]
fn writes_of_one_group_are_taken_together() {
    let newer = Record { generation: 2, ..bare(5) };
    let both = || vec![insert(&bare(5)), update(&newer)];
    assert!(is_found(both(), both()));
    assert!(!is_found(vec![], both()), "an update of a row that is gone tells nothing");
    let stale = || vec![insert(&newer), update(&bare(5))];
    assert!(is_found(stale(), stale()));
    let gone = || vec![insert(&newer), Write::Delete(newer.uid.clone()), update(&newer)];
    assert!(is_found(gone(), gone()));
    let passing = || vec![intend(4), Write::Settle(Seq(4))];
    assert!(is_found(passing(), passing()));
    // An update that changes nothing is there, whatever is in the row.
    assert!(is_found(vec![], vec![update(&bare(9))]));
}
