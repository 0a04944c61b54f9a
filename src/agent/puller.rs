//! Pulls, apart from the workers so that a slow link cannot delay a stop.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
use crate::domain::effect::PullId;
use crate::domain::event::Event;
use crate::domain::fault::Fault;
use crate::domain::view::PullProgress;
use crate::engine::cancel::Cancel;
use crate::limits;
use crate::os::{clock, thread};

/// What a puller does next.
#[derive(Debug)]
pub struct PullJob {
    /// Its number.
    pub pull: PullId,
    /// What is pulled.
    pub image: Arc<str>,
    /// Ends it.
    pub cancel: Arc<Cancel>,
}

/// Starts puller `number`. It ends when the channel of its jobs closes.
///
/// # Errors
/// The system has no more threads.
pub fn start(number: usize, rooms: &Rooms, jobs: Receiver<PullJob>) -> io::Result<JoinHandle<()>> {
    let rooms = rooms.clone();
    thread::spawn(&format!("pull-{number}"), move || {
        for job in jobs {
            let result = guarded("pull an image", || carry_out(&rooms, &job));
            let event = Event::PullDone(job.pull, result);
            if rooms.inbox.send(Mail::Event(event)).is_err() {
                return;
            }
        }
    })
}

fn carry_out(rooms: &Rooms, job: &PullJob) -> Result<(), Fault> {
    let mut last_told = 0;
    let mut tell = |progress: PullProgress| {
        let now = clock::boot_ms();
        if now.saturating_sub(last_told) < limits::PULL_PROGRESS_MS {
            return;
        }
        last_told = now;
        let event = Event::PullProgress(job.pull, progress);
        // A full inbox may drop it: there is more to come, or the pull has come to its end.
        let _ = rooms.inbox.try_send(Mail::Event(event));
    };
    let brought = rooms.engine.pull(&job.image, &job.cancel, &mut tell)?;
    if !brought || job.cancel.is_cancelled() {
        return Ok(());
    }
    // Before anything is made from it, and so before the old container of an update goes.
    let _ = rooms.inbox.send(Mail::Event(Event::PullSyncs(job.pull)));
    let began = clock::boot_ms();
    rooms.engine.sync_images()?;
    let took = clock::boot_ms().saturating_sub(began);
    log::debug!("{} was pulled; the disk had it after {took} ms", job.image);
    Ok(())
}
