//! CPU and memory of running workloads, read from their cgroups every 10 s, and whether their
//! processes live.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use parking_lot::RwLock;

use super::Rooms;
use super::census::Census;
use super::inbox::Mail;
use crate::api::backend::Usage;
use crate::domain::event::Event;
use crate::domain::names::Uid;
use crate::domain::view::View;
use crate::limits;
use crate::os::cgroup::Sampler;
use crate::os::{clock, thread};

/// The last sample of each workload.
pub type Usages = Arc<RwLock<HashMap<Uid, Usage>>>;

/// Starts the sampler. It ends when `stopped` closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(rooms: &Rooms, usages: Usages, stopped: Receiver<()>) -> io::Result<JoinHandle<()>> {
    let (published, inbox) = (rooms.published.clone(), rooms.inbox.clone());
    thread::spawn("stats", move || {
        let mut sampler = Sampler::new("/proc");
        let mut census = Census::new("/proc");
        let period = Duration::from_millis(limits::STATS_MS);
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            let views = published.workloads();
            *usages.write() = sample(&mut sampler, &views);
            let running = views.iter().filter(|view| view.pid != 0);
            let running = running.filter_map(|view| Some((view.container.as_ref()?, view.pid)));
            for (id, pid) in census.take(running) {
                // What is not taken now is found again.
                let _ = inbox.try_send(Mail::Event(Event::ProcessGone(id, pid)));
            }
        }
    })
}

/// One sample of every workload that runs.
fn sample(sampler: &mut Sampler, views: &[Arc<View>]) -> HashMap<Uid, Usage> {
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
