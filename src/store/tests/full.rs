//! A full disk: the reserve is given up for what is in flight, and made again later.

use std::process::Command;

use super::*;
use crate::limits::{STORE_RESERVE_BYTES, STORE_RESERVE_LOOK_MS};

/// A disk of its own, small enough to fill.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None`: this user may not mount, which is told.
    fn mount(mib: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(dir)),
            other => {
                println!("skipped: no tmpfs can be mounted here: {other:?}");
                None
            }
        }
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Leaves no page free.
    fn fill(&self) {
        let mut file = fs::File::create(self.ballast()).unwrap();
        let block = vec![1; 4_096];
        while file.write_all(&block).is_ok() {}
    }

    fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn has_reserve(&self) -> bool {
        fs::metadata(self.dir().join("reserve")).is_ok_and(|f| f.len() == STORE_RESERVE_BYTES)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Commits that observe until one fails.
fn until_full(store: &mut Store) -> StoreError {
    for number in 1_000..2_000 {
        let large = Record { last_error: "x".repeat(20_000), ..bare(number) };
        let results = store.commit(&[commit(false, vec![insert(&large)])], 0);
        if let Some(Err(error)) = results.into_iter().next() {
            return error;
        }
    }
    panic!("the disk is never full");
}

#[test]
fn the_reserve_is_given_up_for_intents_only_and_made_again() {
    let Some(disk) = Disk::mount(8) else { return };
    let mut opened = open_at(&disk.dir()).unwrap();
    assert!(disk.has_reserve());
    must(&mut opened.store, true, vec![insert(&bare(1))]);
    disk.fill();
    let error = until_full(&mut opened.store);
    assert!(error.is_full(), "{error}");
    assert!(disk.has_reserve() && opened.store.take_notices().is_empty());

    // Of a group, what is in flight is noted, and what is declared is refused.
    let large = Record { last_error: "x".repeat(20_000), ..bare(2) };
    let group = [commit(true, vec![insert(&large)]), commit(false, vec![intend(1)])];
    let results = opened.store.commit(&group, 0);
    assert!(results[0].as_ref().is_err_and(StoreError::is_full), "{results:?}");
    assert!(results[1].is_ok(), "{results:?}");
    assert!(!disk.has_reserve());
    let notices = opened.store.take_notices();
    assert!(notices.iter().any(|notice| notice.contains("given up")), "{notices:?}");

    // Far more steps than the reserve has room for if the log only grew.
    for seq in 2..500 {
        must(&mut opened.store, false, vec![intend(seq), update(&bare(1))]);
        must(&mut opened.store, false, vec![Write::Settle(Seq(seq)), update(&bare(1))]);
    }
    disk.empty();
    let mut at = |now_ms| {
        let group = [commit(false, vec![update(&bare(1))])];
        assert!(opened.store.commit(&group, now_ms).iter().all(Result::is_ok));
        (disk.has_reserve(), opened.store.take_notices())
    };
    assert!(!at(STORE_RESERVE_LOOK_MS - 1).0, "tried at most every minute");
    let (is_there, notices) = at(STORE_RESERVE_LOOK_MS);
    assert!(is_there);
    assert!(notices.iter().any(|notice| notice.contains("made anew")), "{notices:?}");
    drop(opened);
    let opened = open_at(&disk.dir()).unwrap();
    assert_eq!(numbers(&opened.entries), [1]);
}

#[test]
fn a_full_disk_without_a_reserve_fails_the_intent_and_nothing_else() {
    let Some(disk) = Disk::mount(8) else { return };
    let mut opened = open_at(&disk.dir()).unwrap();
    must(&mut opened.store, true, vec![insert(&bare(1))]);
    fs::remove_file(disk.dir().join("reserve")).unwrap();
    disk.fill();
    until_full(&mut opened.store);
    let large: Vec<_> = (1..=200).map(intend).collect();
    let results = opened.store.commit(&[commit(false, large)], 0);
    assert!(results[0].as_ref().is_err_and(StoreError::is_full), "{results:?}");
    disk.empty();
    must(&mut opened.store, false, vec![intend(1)]);
    drop(opened);
    assert_eq!(numbers(&open_at(&disk.dir()).unwrap().entries), [1]);
}

#[test]
fn a_store_opens_on_a_full_disk() {
    let Some(disk) = Disk::mount(8) else { return };
    let mut opened = open_at(&disk.dir()).unwrap();
    must(&mut opened.store, true, vec![insert(&bare(1)), intend(1)]);
    drop(opened);
    disk.fill();
    let opened = open_at(&disk.dir()).unwrap();
    assert_eq!(opened.records, [bare(1)]);
    assert_eq!(numbers(&opened.entries), [1]);
    assert!(!disk.has_reserve());
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert!(opened.notices[0].contains("given up"), "{:?}", opened.notices);
    drop(opened);
    // The space that was given up is still there, but not enough to take it again.
    let opened = open_at(&disk.dir()).unwrap();
    assert!(!disk.has_reserve());
    assert!(opened.notices.iter().any(|n| n.contains("cannot make")), "{:?}", opened.notices);
}

#[test]
fn a_reserve_that_cannot_be_made_is_told_and_stops_nothing() {
    let home = Home::new();
    fs::create_dir_all(home.file("reserve").join("in the way")).unwrap();
    let mut opened = home.open();
    assert_eq!(opened.notices.len(), 1, "{:?}", opened.notices);
    assert!(opened.notices[0].contains("reserve"), "{:?}", opened.notices);
    must(&mut opened.store, false, vec![intend(1)]);
}
