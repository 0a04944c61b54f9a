//! Flipped bytes and cuts anywhere: nothing that was declared is lost, and no row is wrong in
//! silence.

use std::fs;
use std::path::Path;

use super::*;

/// The files of a store, as they were when it was whole.
struct Template {
    home: Home,
    files: Vec<(String, Vec<u8>)>,
    records: Vec<Record>,
}

impl Template {
    /// A store of 50 rows, closed.
    fn closed() -> Self {
        let records: Vec<_> = (1..=50).map(full).collect();
        let home = filled(&records);
        Self { files: Self::copy(&home), home, records }
    }

    /// A store whose last commits are still in the log, as after a kill.
    fn killed() -> Self {
        let mut records: Vec<_> = (1..=30).map(full).collect();
        let home = filled(&records);
        let mut opened = home.open();
        for number in 31..=40 {
            must(&mut opened.store, true, vec![insert(&full(number))]);
            records.push(full(number));
        }
        Self { files: Self::copy(&home), home, records }
    }

    fn copy(home: &Home) -> Vec<(String, Vec<u8>)> {
        let wanted = |name: &String| !name.ends_with("-shm") && name != "reserve";
        let read = |name: String| (name.clone(), fs::read(home.file(&name)).unwrap());
        home.names().into_iter().filter(wanted).map(read).collect()
    }

    fn length(&self, file: &str) -> usize {
        self.files.iter().find(|(name, _)| name == file).map_or(0, |(_, bytes)| bytes.len())
    }

    /// Opens a copy in which `file` was damaged.
    fn open_damaged(&self, dir: &Path, file: &str, damage: &dyn Fn(&mut Vec<u8>)) -> Opened {
        fs::create_dir(dir).unwrap();
        for (name, bytes) in &self.files {
            let mut bytes = bytes.clone();
            if name == file {
                damage(&mut bytes);
            }
            put(&dir.join(name), &bytes);
        }
        // Nobody looks into it, so that one is enough for all.
        fs::hard_link(self.home.file("reserve"), dir.join("reserve")).unwrap();
        open_at(dir).unwrap()
    }

    fn check_flip(&self, file: &str, at: usize, mask: u8) {
        let what = format!("{file} at {at} with {mask:#04x}");
        self.check(file, &what, &|bytes| bytes[at] ^= mask);
    }

    fn check(&self, file: &str, what: &str, damage: &dyn Fn(&mut Vec<u8>)) {
        let root = tempfile::tempdir().unwrap();
        let opened = self.open_damaged(&root.path().join("data"), file, damage);
        let what = format!("{what}: {:?}", opened.notices);
        assert_eq!(declarations(&opened.records), declarations(&self.records), "{what}");
        for record in &opened.records {
            let original = self.records.iter().find(|r| r.uid == record.uid).unwrap();
            if record != original {
                assert_eq!(*record, rebuilt(original), "{what}");
                assert!(!opened.whole && !opened.notices.is_empty(), "{what}");
            }
        }
    }
}

#[test]
fn in_the_database() {
    let template = Template::closed();
    let length = template.length("bargee.db");
    assert!(length > 50_000);
    for (number, at) in (0..length).step_by(512).enumerate() {
        template.check_flip("bargee.db", at, if number % 2 == 0 { 0xff } else { 0x01 });
    }
}

#[test]
fn in_the_header_and_the_schema() {
    let template = Template::closed();
    for at in 0..100 {
        template.check_flip("bargee.db", at, 0x01);
    }
    for at in (100..4_096).step_by(61) {
        template.check_flip("bargee.db", at, 0x20);
    }
}

#[test]
fn in_the_log_of_a_killed_agent() {
    let template = Template::killed();
    let length = template.length("bargee.db-wal");
    assert!(length > 20_000);
    for at in (0..length).step_by(1_777) {
        template.check_flip("bargee.db-wal", at, 0x10);
    }
}

#[test]
fn in_the_files_beside_it() {
    let template = Template::closed();
    for at in (0..template.length("workloads.json")).step_by(1_013) {
        template.check_flip("workloads.json", at, 0x04);
    }
    for at in 0..template.length("store-id") {
        template.check_flip("store-id", at, 0x01);
    }
}

#[test]
fn b19_cut_anywhere() {
    for (template, file) in
        [(Template::closed(), "bargee.db"), (Template::killed(), "bargee.db-wal")]
    {
        let length = template.length(file);
        let ends = (0..length).step_by(4_099).chain([1, 99, length - 4_096, length - 1]);
        for end in ends {
            template.check(file, &format!("{file} cut to {end}"), &|bytes| bytes.truncate(end));
        }
    }
}
