//! What the kernel says of a running process.

use std::collections::BTreeMap;
use std::fs;

use crate::Result;

/// Memory of a process in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident, pages shared with others included.
    pub rss: u64,
    /// Resident, shared pages by their share.
    pub pss: u64,
    /// The most that was ever resident.
    pub peak: u64,
}

/// What a process has done since it was started. Of threads, only those that still run.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// CPU time in nanoseconds by the name of the thread.
    pub cpu_ns: BTreeMap<String, u64>,
    /// Waits that ended, by the name of the thread.
    pub wakes: BTreeMap<String, u64>,
    /// Bytes sent to storage.
    pub written: u64,
}

/// Reads the memory of process `pid`.
pub fn memory(pid: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(Memory {
        rss: field(&status, "VmRSS:")?,
        pss: field(&rollup, "Pss:")?,
        peak: field(&status, "VmHWM:")?,
    })
}

/// Reads what process `pid` has done.
pub fn work(pid: u32) -> Result<Work> {
    let mut work = Work::default();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = entry?.path();
        let name = fs::read_to_string(thread.join("comm"))?.trim().to_owned();
        let status = fs::read_to_string(thread.join("status"))?;
        // Finer than utime and stime, whose ticks of 10 ms are a third of the goal.
        let schedule = fs::read_to_string(thread.join("schedstat"))?;
        let cpu: u64 = schedule.split(' ').next().unwrap_or_default().parse()?;
        *work.cpu_ns.entry(name.clone()).or_default() += cpu;
        *work.wakes.entry(name).or_default() += field(&status, "voluntary_ctxt_switches:")?;
    }
    work.written = field(&fs::read_to_string(format!("/proc/{pid}/io"))?, "write_bytes:")?;
    Ok(work)
}

impl Work {
    /// What was done since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: less(&self.cpu_ns, &before.cpu_ns),
            wakes: less(&self.wakes, &before.wakes),
            written: self.written.saturating_sub(before.written),
        }
    }
}

fn less(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let before = |name| before.get(name).copied().unwrap_or(0);
    now.iter().map(|(name, n)| (name.clone(), n.saturating_sub(before(name)))).collect()
}

/// The number behind `name` at the beginning of a line.
fn field(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    Ok(word.ok_or_else(|| format!("the kernel does not tell {name}"))?.parse()?)
}
