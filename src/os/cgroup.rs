//! CPU time and memory of containers, read from the kernel's cgroup files without asking the
//! engine.
//!
//! A sample of a workload is two small reads through kept descriptors. Memory is what the kernel
//! charges the cgroup, page cache included: taking the inactive cache off, as `docker stats` does,
//! would cost a third and much larger read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::limits::STATS_KEPT_OPEN;

mod layout;

use layout::{Mount, Place};

/// What a container uses. What cannot be read, or is not known yet, is absent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Usage {
    /// CPU in percent of one core since the last sample; absent in the first one.
    pub cpu_percent: Option<f64>,
    /// Memory in bytes. Absent where the kernel does not count memory, as by default on some
    /// boards.
    pub memory_bytes: Option<u64>,
}

/// Samples the containers it is told of and keeps their files open in between.
#[derive(Debug)]
pub struct Sampler {
    proc: PathBuf,
    kept: HashMap<String, Kept>,
    round: u64,
}

/// One container that is sampled.
#[derive(Debug)]
struct Kept {
    pid: u32,
    /// The round in which it was last wanted.
    round: u64,
    cpu: Option<Counter>,
    memory: Option<Counter>,
    /// CPU time in nanoseconds and the tick in milliseconds of the last sample.
    last: Option<(u64, u64)>,
}

/// A file with a number in it.
#[derive(Debug)]
struct Counter {
    path: PathBuf,
    /// `None`: too many are open already.
    file: Option<File>,
    format: Format,
}

/// How a number is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// The number alone.
    Plain,
    /// `usage_usec` of a `cpu.stat`; as nanoseconds.
    CpuStat,
}

/// Whether the process `pid` runs in the container `id`, by its cgroup. A pid alone says nothing:
/// it may belong to another process by now.
pub fn holds(proc: &Path, pid: u32, id: &str) -> bool {
    layout::holds(proc, id, pid)
}

/// Whether the process `pid` of the container `id` lives. One that has ended and that nobody took
/// notice of does not, though it still has its number.
pub fn lives(proc: &Path, pid: u32, id: &str) -> bool {
    layout::holds(proc, id, pid) && !layout::has_ended(proc, pid)
}

impl Sampler {
    /// Reads through the `/proc` that is mounted at `proc`.
    pub fn new(proc: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into(), kept: HashMap::new(), round: 0 }
    }

    /// Samples every wanted container, named by its id and the pid of its process, and tells what
    /// each uses. `tick_ms` is the boot clock in milliseconds. A container whose process is gone,
    /// or whose pid now belongs to something else, is not told of; those that are wanted no longer
    /// are forgotten.
    pub fn sample<'a>(
        &mut self,
        wanted: impl IntoIterator<Item = (&'a str, u32)>,
        tick_ms: u64,
        tell: &mut dyn FnMut(&'a str, Usage),
    ) {
        self.round += 1;
        // Read once for all that are new in this round, and not at all if none is.
        let mut mounts = None;
        for (id, pid) in wanted {
            let usage = self.one(id, pid, tick_ms, &mut mounts);
            match usage {
                Some(usage) => tell(id, usage),
                None => drop(self.kept.remove(id)),
            }
        }
        let round = self.round;
        self.kept.retain(|_, kept| kept.round == round);
    }

    fn one(
        &mut self,
        id: &str,
        pid: u32,
        tick_ms: u64,
        mounts: &mut Option<Vec<Mount>>,
    ) -> Option<Usage> {
        if let Some(kept) = self.kept.get_mut(id).filter(|kept| kept.pid == pid) {
            kept.round = self.round;
            return kept.sample(tick_ms);
        }
        // 0 is no process, and an empty id would be part of any path.
        if pid == 0 || id.is_empty() {
            return None;
        }
        let mounts = mounts.get_or_insert_with(|| layout::mounts(&self.proc).unwrap_or_default());
        let place = layout::find(&self.proc, mounts, id, pid)?;
        let keep_open = self.kept.len() < STATS_KEPT_OPEN;
        let mut kept = Kept::open(place, pid, self.round, keep_open);
        let usage = kept.sample(tick_ms);
        self.kept.insert(id.to_owned(), kept);
        usage
    }
}

impl Kept {
    fn open(place: Place, pid: u32, round: u64, keep_open: bool) -> Self {
        let counter = |(path, format)| Counter::open(path, format, keep_open);
        Self {
            pid,
            round,
            cpu: place.cpu.and_then(counter),
            memory: place.memory.and_then(counter),
            last: None,
        }
    }

    /// `None`: no file can be read, so the cgroup is gone.
    fn sample(&mut self, tick_ms: u64) -> Option<Usage> {
        let cpu_ns = self.cpu.as_ref().and_then(Counter::read);
        let memory_bytes = self.memory.as_ref().and_then(Counter::read);
        if cpu_ns.is_none() && memory_bytes.is_none() {
            return None;
        }
        let now = cpu_ns.map(|ns| (ns, tick_ms));
        let cpu_percent = self.last.zip(now).and_then(|(last, now)| percent(last, now));
        self.last = now;
        Some(Usage { cpu_percent, memory_bytes })
    }
}

impl Counter {
    /// `None`: the file is not there or cannot be opened.
    fn open(path: PathBuf, format: Format, keep_open: bool) -> Option<Self> {
        let file = File::open(&path).ok()?;
        Some(Self { path, file: keep_open.then_some(file), format })
    }

    fn read(&self) -> Option<u64> {
        // Enough for a number and for the first lines of a `cpu.stat`.
        let mut buffer = [0; 128];
        let length = match &self.file {
            Some(file) => file.read_at(&mut buffer, 0),
            None => read_path(&self.path, &mut buffer),
        };
        let text = std::str::from_utf8(&buffer[..length.ok()?]).ok()?;
        self.format.parse(text)
    }
}

fn read_path(path: &Path, buffer: &mut [u8]) -> io::Result<usize> {
    File::open(path)?.read_at(buffer, 0)
}

impl Format {
    fn parse(self, text: &str) -> Option<u64> {
        match self {
            Self::Plain => text.trim_end().parse().ok(),
            Self::CpuStat => {
                let value = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                value.parse::<u64>().ok()?.checked_mul(1_000)
            }
        }
    }
}

/// Percent of one core between two `(nanoseconds, tick in milliseconds)`. `None` if no time passed
/// or the counter went back, which makes it another one.
fn percent(last: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let used_ns = now.0.checked_sub(last.0)?;
    let passed_ms = now.1.checked_sub(last.1).filter(|ms| *ms > 0)?;
    // Exact for any counter below 2^53 ns, which is 104 days of one core between two samples.
    Some(used_ns as f64 / (passed_ms as f64 * 1e6) * 100.0)
}

#[cfg(test)]
mod tests;
