//! Reads the engine's event stream into the inbox, and finds out when the engine is back.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
use crate::domain::event::Event;
use crate::domain::fault::{Fault, FaultKind};
use crate::limits;
use crate::os::thread;

/// Starts the watcher. It ends when `stopped` closes and the stream was ended.
///
/// # Errors
/// The system has no more threads.
pub fn start(rooms: &Rooms, stopped: Receiver<()>) -> io::Result<JoinHandle<()>> {
    let rooms = rooms.clone();
    thread::spawn("events", move || {
        let pause = Duration::from_millis(limits::ENGINE_LOOK_MS);
        loop {
            let Err(fault) = guarded("watch the engine", || watch(&rooms));
            if rooms.published.is_stopping() {
                return;
            }
            if rooms.published.take_reopen() {
                continue;
            }
            let down = Event::StreamDown(tell_apart(&rooms, fault));
            if rooms.inbox.send(Mail::Event(down)).is_err() {
                return;
            }
            if stopped.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    })
}

/// The end of a stream says nothing about the engine: one that still answers is only polled.
fn tell_apart(rooms: &Rooms, fault: Fault) -> Fault {
    match rooms.engine.ping() {
        Ok(_) => Fault { kind: FaultKind::Trouble, ..fault },
        Err(away) => away,
    }
}

/// Opens the stream and passes its events on until it ends.
fn watch(rooms: &Rooms) -> Result<std::convert::Infallible, Fault> {
    let info = rooms.engine.ping()?;
    let mut stream = rooms.engine.events()?;
    // After the stream is open, so that nothing falls between the listing that follows and it.
    let _ = rooms.inbox.send(Mail::Event(Event::StreamUp(info)));
    loop {
        let event = stream.next()?;
        let _ = rooms.inbox.send(Mail::Event(Event::Container(event)));
    }
}
