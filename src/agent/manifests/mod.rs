//! Watches the manifests directory, and tells the monitor what is in it whenever that changed. What
//! follows from it is decided there.

use std::io::{self, PipeWriter};
use std::path::Path;
use std::thread::JoinHandle;

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
use crate::domain::directory::{Content, Found, Scan};
use crate::domain::event::Event;
use crate::domain::names::Uid;
use crate::limits;
use crate::os::directory_watch::{DirectoryWatch, Woken};
use crate::os::{clock, random, thread};

use reader::Reader;

mod reader;

#[cfg(test)]
mod tests;

/// Starts the thread that watches the directory at `path`. It ends when what is returned beside it
/// is dropped.
///
/// # Errors
/// The system has no more threads or pipes.
pub fn start(rooms: &Rooms, path: &Path) -> io::Result<(JoinHandle<()>, PipeWriter)> {
    let rooms = rooms.clone();
    let mut reader = Reader::new(path);
    let (mut watch, stop) = DirectoryWatch::new()?;
    let thread = thread::spawn("manifests", move || {
        let mut told = None;
        loop {
            let look = guarded("read the manifests directory", || {
                Ok(reader.look(&mut watch, clock::boot_ms()))
            });
            let found = look.unwrap_or_else(|fault| Found::Unreadable(fault.message));
            if told.as_ref() != Some(&found) {
                if !tell(&rooms, &found) {
                    return;
                }
                told = Some(found);
            }
            if !rest(&mut reader, &watch) {
                return;
            }
        }
    })?;
    Ok((thread, stop))
}

/// Whether the agent still listens.
fn tell(rooms: &Rooms, found: &Found) -> bool {
    let fresh = match fresh(found) {
        Ok(fresh) => fresh,
        Err(error) => {
            log::error!("no random numbers for the manifests directory: {error}");
            return true;
        }
    };
    let scan = Box::new(Scan { found: found.clone(), fresh });
    rooms.inbox.send(Mail::Event(Event::Directory(scan))).is_ok()
}

/// An identity for each workload that might be new.
fn fresh(found: &Found) -> io::Result<Vec<Uid>> {
    let Found::There(listing) = found else { return Ok(Vec::new()) };
    let count = listing.files.values().map(|content| match content {
        Content::Good(workloads) => workloads.len(),
        _ => 0,
    });
    let mut fresh = Vec::new();
    for _ in 0..count.sum() {
        let mut bytes = [0; 16];
        random::fill(&mut bytes)?;
        fresh.push(Uid::from_random(bytes));
    }
    Ok(fresh)
}

/// Waits until it is worth looking again: what is told meanwhile is noted, and looked at once it
/// may have settled, so that somebody who writes or mounts all the time costs one look a second.
/// Whether to go on.
fn rest(reader: &mut Reader, watch: &DirectoryWatch) -> bool {
    let now = clock::boot_ms();
    let next = now + reader.period();
    let mut by = reader.settles_at(now).map_or(next, |at| at.min(next));
    let mut mounts_count = true;
    loop {
        match watch.wait(by, mounts_count) {
            Ok(Woken::Late) => return true,
            Ok(Woken::Stopped) => return false,
            Ok(Woken::Changed(changes)) => {
                let now = clock::boot_ms();
                reader.note(&changes, now);
                by = by.min(now + limits::MANIFEST_SETTLE_MS);
            }
            Ok(Woken::Mounted) => {
                mounts_count = false;
                by = by.min(clock::boot_ms() + limits::MANIFEST_SETTLE_MS);
            }
            Err(error) => {
                log::error!("the manifests directory is not watched any more: {error}");
                return false;
            }
        }
    }
}
