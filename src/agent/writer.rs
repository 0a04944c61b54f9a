//! The store's thread: everything that waits becomes one transaction and one sync.

use std::io;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
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
    rooms: &Rooms,
) -> io::Result<JoinHandle<()>> {
    let Rooms { published, inbox, .. } = rooms.clone();
    thread::spawn("store", move || {
        for batch in batches {
            let results = commit(&mut store, &batch);
            for notice in store.take_notices() {
                log::warn!("{notice}");
            }
            published.set_revision(store.revision());
            for (commit, result) in batch.iter().zip(results) {
                if inbox.send(Mail::Event(Event::Committed(commit.id, result))).is_err() {
                    return;
                }
            }
        }
    })
}

/// One result for each commit, also when the code that writes them panics: the monitor gives out no
/// further batch before it has them all.
fn commit(store: &mut Store, batch: &[Commit]) -> Vec<Result<(), String>> {
    let written = guarded("write the store", || Ok(store.commit(batch, clock::boot_ms())));
    match written {
        Ok(results) => results.into_iter().map(|r| r.map_err(|e| e.to_string())).collect(),
        Err(fault) => batch.iter().map(|_| Err(fault.message.clone())).collect(),
    }
}
