//! The store's thread: everything that waits becomes one transaction and one sync.

use std::io;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};

use super::inbox::Mail;
use crate::domain::effect::Commit;
use crate::domain::event::Event;
use crate::os::{clock, thread};
use crate::store::Store;

/// Starts the writer. It ends, and closes the store, when the channel of its batches closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(
    mut store: Store,
    batches: Receiver<Vec<Commit>>,
    inbox: Sender<Mail>,
) -> io::Result<JoinHandle<()>> {
    thread::spawn("store", move || {
        for batch in batches {
            let results = store.commit(&batch, clock::boot_ms());
            for notice in store.take_notices() {
                log::warn!("{notice}");
            }
            for (commit, result) in batch.iter().zip(results) {
                let result = result.map_err(|error| error.to_string());
                if inbox.send(Mail::Event(Event::Committed(commit.id, result))).is_err() {
                    return;
                }
            }
        }
    })
}
