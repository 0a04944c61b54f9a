//! What is committed is there, once, and costs one transaction for each group.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use proptest::prelude::*;

use super::*;
use crate::domain::names::EngineId;
use crate::domain::quiesce::Quiesce;
use crate::domain::time::Tick;
use crate::store::database::RawRow;
use crate::store::rows;

#[test]
fn records_come_back_as_they_were() {
    let records = [full(1), bare(2), Record { desired: Desired::Stopped, ..full(3) }];
    let home = filled(&records);
    let opened = home.open();
    assert_eq!(opened.records, records);
    assert!(opened.whole);
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
}

#[test]
fn what_is_held_is_kept_until_it_is_not() {
    let home = Home::new();
    assert_eq!(home.open().quiesce, None);
    let boot = BootId::new("b 1");
    let held = Quiesce { boot, since: Tick(5), until: Tick(905_000) };
    let longer = Quiesce { until: Tick(9_000_000), ..held.clone() };
    // In one transaction the last one stands.
    let writes = [&held, &longer].map(|one| Write::Quiesce(Some(one.clone())));
    let group = writes.map(|write| commit(false, vec![write]));
    assert!(home.open().store.commit(&group, 0).iter().all(Result::is_ok));
    assert_eq!(home.open().quiesce, Some(longer));
    must(&mut home.open().store, false, vec![Write::Quiesce(None)]);
    assert_eq!(home.open().quiesce, None);
}

fn random_record() -> impl Strategy<Value = Record> {
    let numbers = (any::<[u32; 4]>(), any::<[u64; 8]>());
    let texts = (any::<String>(), any::<String>(), proptest::option::of(any::<String>()));
    let parts = proptest::collection::vec(any::<bool>(), 13);
    (numbers, texts, parts).prop_map(|((small, large), texts, parts)| {
        let record = full(large[0] % 1_000);
        let mut instance = instance(large[1]);
        instance.proved = parts[10];
        let retries = [Retry::Never, Retry::Now, Retry::At(boot_tick())];
        let retry = retries[large[0] as usize % 3].clone();
        let failed = record.failed_update.map(|failed| FailedUpdate { retry, ..failed });
        instance.container = parts[0].then(|| ContainerId::new(texts.0.as_str()));
        if let Some(run) = &mut instance.run {
            run.ip = texts.2.clone();
            run.pid = small[0];
            run.ports.truncate(usize::from(parts[1]));
            run.stop_signal = texts.2.clone();
        }
        let desired = [Desired::Running, Desired::Stopped, Desired::Deleted];
        Record {
            generation: large[2] >> 1,
            observed_generation: large[3],
            desired: desired[large[4] as usize % 3],
            created_at_ms: large[5],
            current: parts[2].then(|| instance.clone()),
            next: parts[3].then(|| instance.clone()),
            previous: parts[11].then(|| Previous {
                instance: instance.clone(),
                last_exit: parts[12].then(exit),
                observed_generation: large[7],
            }),
            discards: vec![instance; usize::from(parts[4])],
            failed_update: failed.filter(|_| parts[5]),
            own_stop: record.own_stop.filter(|_| parts[6]),
            last_exit: record.last_exit.filter(|_| parts[7]),
            owed_start: if parts[8] { OwedStart::Restart } else { OwedStart::Uncounted },
            restarts_asked: large[6],
            restarts_done: large[7],
            failure_count: small[1],
            streak: small[2],
            refusals: small[3],
            wait: record.wait.filter(|_| parts[9]),
            error_message: texts.0,
            last_error: texts.1,
            boot: texts.2.map(BootId::new),
            ..record
        }
    })
}

proptest! {
    #[test]
    fn any_record_survives_its_row(record in random_record()) {
        let row = rows::encode(&record).unwrap();
        let raw = RawRow {
            id: 1,
            uid: record.uid.to_string(),
            generation: u64::try_from(row.generation).ok(),
            body: row.body,
            sum: row.sum,
        };
        prop_assert_eq!(rows::decode(&raw, &parse), Ok(record));
        let other = RawRow { uid: "another".into(), ..raw };
        prop_assert_eq!(rows::decode(&other, &parse), Err("its checksum fails".to_owned()));
    }
}

#[test]
fn a_group_is_one_transaction_and_no_change_is_none() {
    let home = filled(&[]);
    let mut opened = home.open();
    let group: Vec<_> = (1..=20).map(|n| commit(n % 2 == 0, vec![insert(&bare(n))])).collect();
    let before = frames(&home).1;
    assert!(opened.store.commit(&group, 0).iter().all(Result::is_ok));
    let after = frames(&home);
    assert_eq!(after.1, before + 1);
    let same: Vec<_> = (1..=20).map(|n| commit(true, vec![update(&bare(n))])).collect();
    assert!(opened.store.commit(&same, 0).iter().all(Result::is_ok));
    assert!(opened.store.commit(&[], 0).is_empty());
    assert_eq!(frames(&home), after);
}

#[test]
fn a_bad_commit_takes_no_other_along_and_leaves_nothing_behind() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    let results = opened.store.commit(
        &[
            commit(true, vec![insert(&bare(2))]),
            commit(true, vec![insert(&bare(3)), insert(&bare(1))]),
            commit(true, vec![insert(&bare(4))]),
        ],
        0,
    );
    assert!(results[0].is_ok() && results[2].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert!(matches!(error, StoreError::Exists(uid) if *uid == bare(1).uid), "{error}");
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.records, [bare(1), bare(2), bare(4)]);
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
}

#[test]
fn a_record_that_cannot_be_a_row_is_an_error_of_its_own() {
    let home = filled(&[]);
    let mut opened = home.open();
    let huge = Record { generation: u64::MAX, ..bare(1) };
    let results = opened.store.commit(&[commit(true, vec![insert(&huge)])], 0);
    assert!(matches!(&results[0], Err(StoreError::Row { .. })), "{results:?}");
}

#[test]
fn updates_neither_revive_nor_go_back() {
    let newer = Record { generation: 5, error_message: "new".into(), ..bare(1) };
    let home = filled(std::slice::from_ref(&newer));
    let mut opened = home.open();
    let older = Record { generation: 4, error_message: "old".into(), ..bare(1) };
    must(
        &mut opened.store,
        true,
        vec![update(&older), update(&bare(2)), Write::Delete(bare(3).uid)],
    );
    drop(opened);
    assert_eq!(home.open().records, std::slice::from_ref(&newer));
    let mut opened = home.open();
    let same = Record { error_message: "later".into(), ..newer };
    must(&mut opened.store, false, vec![update(&same)]);
    drop(opened);
    assert_eq!(home.open().records, std::slice::from_ref(&same));
    must(&mut home.open().store, true, vec![Write::Delete(same.uid)]);
    assert!(home.open().records.is_empty());
}

#[test]
fn a_new_store_is_not_whole_until_somebody_says_so() {
    let home = Home::new();
    let opened = home.open();
    assert!(!opened.whole && opened.records.is_empty() && opened.notices.is_empty());
    drop(opened);
    let mut opened = home.open();
    assert!(!opened.whole);
    must(&mut opened.store, false, vec![Write::MarkWhole]);
    drop(opened);
    assert!(home.open().whole);
}

#[test]
fn the_engine_is_known_once_it_was_told() {
    let home = Home::new();
    let mut opened = home.open();
    assert_eq!(opened.engine, None);
    for name in ["A at /a", "B at /b"] {
        let id = EngineId::new(name);
        must(&mut opened.store, false, vec![Write::KnowEngine(id.clone())]);
        drop(opened);
        opened = home.open();
        assert_eq!(opened.engine, Some(id));
    }
}

#[test]
fn the_id_stays_and_stands_in_all_three_places() {
    let home = filled(&[bare(1)]);
    let (first, second) = (home.open().store_id, home.open().store_id);
    assert_eq!(first, second);
    assert_ne!(first, Home::new().open().store_id);
    let beside = fs::read_to_string(home.file("store-id")).unwrap();
    let mirror = fs::read_to_string(home.file("workloads.json")).unwrap();
    assert!(mirror.contains(&format!("{{\"store\":\"{}\",", beside.trim_end())), "{mirror}");
    let connection = rusqlite::Connection::open(home.file("bargee.db")).unwrap();
    let sql = "SELECT value FROM meta WHERE key = 'id'";
    let inside: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(inside, beside.trim_end());
}

#[test]
fn only_the_owner_can_read_it() {
    let home = filled(&[bare(1)]);
    let _opened = home.open();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.dir()), 0o700);
    for name in home.names() {
        assert_eq!(mode(home.file(&name)), 0o600, "{name}");
    }
}

/// The file of declarations, by its inode: a replaced file has another one.
fn mirror_inode(home: &Home) -> u64 {
    fs::metadata(home.file("workloads.json")).unwrap().ino()
}

#[test]
fn declarations_reach_the_file_before_the_answer_and_nothing_else_does() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    let first = mirror_inode(&home);
    let seen = Record { observed_generation: 1, restart_count: 4, ..bare(1) };
    must(&mut opened.store, false, vec![update(&seen)]);
    must(&mut opened.store, true, vec![update(&seen)]);
    assert_eq!(mirror_inode(&home), first, "nothing was declared");
    let stopped = Record { desired: Desired::Stopped, ..seen };
    must(&mut opened.store, true, vec![update(&stopped), insert(&bare(2))]);
    let text = fs::read_to_string(home.file("workloads.json")).unwrap();
    assert_ne!(mirror_inode(&home), first);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let workloads = json["workloads"].as_array().unwrap();
    assert_eq!(workloads[0]["desiredState"], "stopped");
    assert_eq!(workloads[0]["createdAt"], 1_700_000_000_001_u64);
    assert_eq!(workloads[1]["uid"], bare(2).uid.as_str());
    assert_eq!(workloads[1]["manifest"]["name"], "w2");
    assert_eq!(text.lines().count(), 4, "a line each, and one around them: {text}");
}

#[test]
fn a_file_of_declarations_that_cannot_be_written_undoes_nothing() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    let file = home.file("workloads.json");
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("in the way")).unwrap();
    must(&mut opened.store, true, vec![insert(&bare(2))]);
    must(&mut opened.store, true, vec![insert(&bare(3))]);
    let notices = opened.store.take_notices();
    assert_eq!(notices.len(), 1, "told once: {notices:?}");
    fs::remove_dir_all(&file).unwrap();
    // The next declaration tries again, though it changes nothing itself.
    must(&mut opened.store, true, vec![update(&bare(3))]);
    assert_eq!(opened.store.take_notices().len(), 1, "and told when it is over");
    assert!(fs::read_to_string(&file).unwrap().contains(bare(2).uid.as_str()));
}

#[test]
fn opening_a_good_store_writes_nothing() {
    let home = filled(&[full(1), bare(2)]);
    let state = || -> Vec<_> {
        let stat = |name: String| {
            let metadata = fs::metadata(home.file(&name)).unwrap();
            let changed = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
            (fs::read(home.file(&name)).unwrap(), changed, name)
        };
        home.names().into_iter().map(stat).collect()
    };
    let before = state();
    assert_eq!(home.names(), ["bargee.db", "reserve", "store-id", "workloads.json"]);
    let opened = home.open();
    assert_eq!(frames(&home), (0, 0));
    drop(opened);
    assert!(before == state());
}

/// A crash loop, with its exit and its start written each time.
#[test]
fn b08_thousands_of_restarts_do_not_grow_the_files() {
    let home = Home::new();
    let mut opened = home.open();
    let store = &mut opened.store;
    store.connection.as_ref().unwrap().pragma_update(None, "synchronous", "OFF").unwrap();
    must(store, true, vec![insert(&bare(1)), insert(&bare(2))]);
    let size = |home: &Home| -> u64 {
        home.names().iter().map(|name| fs::metadata(home.file(name)).unwrap().len()).sum()
    };
    let mut most = [0; 2];
    for number in 0..10_000_u64 {
        let looping = Record {
            restart_count: number,
            current: Some(instance(number)),
            last_error: format!("exitCode={number} oomKilled=false"),
            ..bare(1)
        };
        must(store, false, vec![update(&looping)]);
        let half = usize::from(number >= 5_000);
        if number % 50 == 0 {
            most[half] = most[half].max(size(&home));
        }
    }
    assert!(most[1] <= most[0], "{most:?}");
}

#[test]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let home = filled(&[bare(1)]);
    let mut opened = home.open();
    // SQLite never goes below what is in use, so that this leaves no page free.
    limit_pages(&opened.store, 1);
    let text = "x".repeat(20_000);
    let large = Record { last_error: text, ..bare(2) };
    let group = [commit(true, vec![insert(&large)]), commit(false, vec![insert(&large)])];
    let before = fs::read(home.file("workloads.json")).unwrap();
    for result in opened.store.commit(&group, 0) {
        assert!(matches!(result, Err(StoreError::Sqlite { .. })), "{result:?}");
    }
    assert_eq!(fs::read(home.file("workloads.json")).unwrap(), before);
    limit_pages(&opened.store, 10_000);
    must(&mut opened.store, true, vec![insert(&large)]);
    drop(opened);
    let opened = home.open();
    assert_eq!(opened.records, [bare(1), large]);
    assert!(opened.notices.is_empty(), "{:?}", opened.notices);
}

#[test]
fn a_store_can_move_to_the_thread_that_writes() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Home::new().open().store);
}
