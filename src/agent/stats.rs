//! CPU and memory of running workloads, read from their cgroups every 10 s.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use parking_lot::RwLock;

use super::published::Published;
use crate::api::backend::Usage;
use crate::domain::names::Uid;
use crate::limits;
use crate::os::cgroup::Sampler;
use crate::os::{clock, thread};

/// The last sample of each workload.
pub type Usages = Arc<RwLock<HashMap<Uid, Usage>>>;

/// Starts the sampler. It ends when `stopped` closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(
    published: Arc<Published>,
    usages: Usages,
    stopped: Receiver<()>,
) -> io::Result<JoinHandle<()>> {
    thread::spawn("stats", move || {
        let mut sampler = Sampler::new("/proc");
        let period = Duration::from_millis(limits::STATS_MS);
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            let sampled = sample(&mut sampler, &published);
            *usages.write() = sampled;
        }
    })
}

/// One sample of every workload that runs.
fn sample(sampler: &mut Sampler, published: &Published) -> HashMap<Uid, Usage> {
    let views = published.workloads();
    let running = views.iter().filter(|view| view.pid != 0);
    let running = running.filter_map(|view| Some((view.container.as_ref()?, view)));
    let by_container: HashMap<&str, &Uid> =
        running.clone().map(|(id, view)| (id.as_str(), &view.uid)).collect();
    let wanted = running.map(|(id, view)| (id.as_str(), view.pid));
    let mut sampled = HashMap::new();
    sampler.sample(wanted, clock::boot_ms(), &mut |id, usage| {
        if let Some(uid) = by_container.get(id) {
            let usage = Usage { cpu_percent: usage.cpu_percent, memory_bytes: usage.memory_bytes };
            sampled.insert((*uid).clone(), usage);
        }
    });
    sampled
}
