//! What the integration tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a failing test says what it saw")]

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::Duration;

use bargee::os::clock;
use serde::de::DeserializeOwned;

pub mod agent;
pub mod at_rest;
pub mod device;
pub mod docker_api;
pub mod engine;
pub mod manifest;
pub mod proxy;
pub mod recorded;
pub mod registry;
pub mod scripted_engine;
pub mod strace;

/// Nothing that a test waits for takes this long, not even under an emulator on a busy machine;
/// what does is not coming.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The agent writes its log on a thread of its own, which may be behind by this much.
const LOG_SETTLES: Duration = Duration::from_millis(200);

/// Looks again and again until there is something, and fails with `what` when it does not come.
pub fn until<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = clock::boot_ms();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = Duration::from_millis(clock::boot_ms() - begin);
        assert!(waited < DEADLINE, "waited {} s for {what}", waited.as_secs());
        // What is looked at is another process: there is nothing to wait on.
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Bytes that a process sent to storage so far.
pub fn bytes_written(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.unwrap().parse().unwrap()
}

/// Name, size and time of the last change (in ns) of each file.
pub type Files = BTreeMap<String, (u64, i64)>;

/// What the files of a folder are like.
pub fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let of = |entry: fs::DirEntry| {
        let about = entry.metadata().unwrap();
        let changed = about.mtime() * 1_000_000_000 + about.mtime_nsec();
        (entry.file_name().to_string_lossy().into_owned(), (about.size(), changed))
    };
    entries.map(of).collect()
}

/// What an agent answered to a read of `path`.
pub fn parsed<T: DeserializeOwned>(path: &str, answer: Option<(u16, String)>) -> T {
    match answer {
        Some((200, text)) => serde_json::from_str(&text).unwrap(),
        other => panic!("GET {path}: {other:?}"),
    }
}

/// Lets so much time pass that no exit so far is taken for a part of a shutdown that follows.
pub fn let_exits_stand() {
    pause(Duration::from_millis(bargee::limits::SHUTDOWN_EXIT_MS + 1_000));
}

/// Lets time pass, where nothing must happen.
pub fn pause(time: Duration) {
    let begin = clock::boot_ms();
    let passed = || Duration::from_millis(clock::boot_ms() - begin);
    while passed() < time {
        thread::park_timeout(time.saturating_sub(passed()));
    }
}

/// Runs cases that mostly wait at the same time, and fails with the names of those that failed.
pub fn side_by_side<T: Sync>(cases: &[(&str, T)], run: impl Fn(&T) + Sync) {
    let failed: Vec<&str> = thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = cases
            .iter()
            .map(|(name, case)| {
                let failed = move || catch_unwind(AssertUnwindSafe(|| run(case))).is_err();
                (name, scope.spawn(failed))
            })
            .collect();
        let ended = running.into_iter().map(|(name, thread)| (*name, thread.join().unwrap()));
        ended.filter(|(_, failed)| *failed).map(|(name, _)| name).collect()
    });
    assert!(failed.is_empty(), "failed: {failed:?}");
}
