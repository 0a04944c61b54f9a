//! The ordered stop, with a deadline for each thread.

use std::io::PipeWriter;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;

use super::inbox::Mail;
use super::stats::Usages;
use crate::engine::Engine;
use crate::os::thread;

/// All threads of the agent but the API's.
#[derive(Default)]
pub struct Threads {
    /// Ends the watcher and the sampler when dropped.
    pub stop: Option<Sender<()>>,
    /// Ends the reader of the manifests directory when dropped.
    pub stop_manifests: Option<PipeWriter>,
    /// The reader of the manifests directory.
    pub manifests: Option<JoinHandle<()>>,
    /// The owner of the machine.
    pub monitor: Option<JoinHandle<()>>,
    /// The owner of the store.
    pub writer: Option<JoinHandle<()>>,
    /// Workers and pullers.
    pub workers: Vec<JoinHandle<()>>,
    /// The reader of the event stream.
    pub watcher: Option<JoinHandle<()>>,
    /// The sampler.
    pub stats: Option<JoinHandle<()>>,
    /// What the sampler writes.
    pub usage: Usages,
}

/// Stops all threads: no new work, what is in flight may end, the rest is written, and whoever
/// still waits for the engine is cut off. It is over at `by` on the boot clock.
pub fn stop(mut threads: Threads, engine: &Engine, inbox: &Sender<Mail>, by: u64) {
    drop(threads.stop.take());
    drop(threads.stop_manifests.take());
    engine.close_events();
    let _ = inbox.send_timeout(Mail::Stop, Duration::from_millis(100));
    // The monitor closes the channels of workers, pullers and writer when it ends.
    join(threads.monitor.take(), by, "monitor");
    engine.shutdown();
    join(threads.writer.take(), by, "store");
    for worker in threads.workers {
        join(Some(worker), by, "worker");
    }
    join(threads.watcher.take(), by, "events");
    join(threads.stats.take(), by, "stats");
    join(threads.manifests.take(), by, "manifests");
}

/// Waits for a thread until `by` on the boot clock; one that misses it is named and left behind,
/// since the process ends anyway.
fn join(handle: Option<JoinHandle<()>>, by: u64, name: &str) {
    let Some(handle) = handle else { return };
    if let Err(late) = thread::join_until(handle, by) {
        drop(late);
        log::warn!("the {name} thread did not end in time");
    }
}
