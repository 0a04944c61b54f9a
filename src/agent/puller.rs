//! Pulls, apart from the workers so that a slow link cannot delay a stop.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
use crate::domain::event::Event;
use crate::domain::view::PullProgress;
use crate::limits;
use crate::os::{clock, thread};

/// Starts puller `number`. It ends when the channel of its images closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(
    number: usize,
    rooms: &Rooms,
    images: Receiver<Arc<str>>,
) -> io::Result<JoinHandle<()>> {
    let rooms = rooms.clone();
    thread::spawn(&format!("pull-{number}"), move || {
        for image in images {
            let mut last_told = 0;
            let mut tell = |progress: PullProgress| {
                let now = clock::boot_ms();
                if now.saturating_sub(last_told) < limits::PULL_PROGRESS_MS {
                    return;
                }
                last_told = now;
                let event = Event::PullProgress(image.clone(), progress);
                // Progress is only shown: a full inbox may drop it.
                let _ = rooms.inbox.try_send(Mail::Event(event));
            };
            let result = guarded("pull an image", || rooms.engine.pull(&image, &mut tell));
            let event = Event::PullDone(image.clone(), result);
            if rooms.inbox.send(Mail::Event(event)).is_err() {
                return;
            }
        }
    })
}
