//! Reads the engine's event stream into the inbox, and finds out when the engine is back.

use std::convert::Infallible;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::Rooms;
use super::inbox::Mail;
use super::worker::guarded;
use crate::domain::event::Event;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::observed::EngineInfo;
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
            let watched = guarded("watch the engine", || Ok(watch(&rooms)));
            if rooms.published.is_stopping() {
                return;
            }
            if rooms.published.take_reopen() {
                continue;
            }
            let fault = match watched {
                Ok(Ended::Unreached(fault)) => fault,
                Ok(Ended::Stream(fault)) | Err(fault) => {
                    let _ = rooms.inbox.send(Mail::Event(Event::StreamLost));
                    tell_apart(&rooms, fault)
                }
            };
            if rooms.inbox.send(Mail::Event(Event::StreamDown(fault))).is_err() {
                return;
            }
            if stopped.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    })
}

/// How a watch came to its end.
enum Ended {
    /// The engine did not say what it is.
    Unreached(Fault),
    /// Its event stream ended or could not be opened.
    Stream(Fault),
}

/// The end of a stream says nothing about the engine: one that still answers is only polled.
fn tell_apart(rooms: &Rooms, fault: Fault) -> Fault {
    match rooms.engine.ping() {
        Ok(_) => Fault { kind: FaultKind::Trouble, ..fault },
        Err(fault) => away(fault),
    }
}

/// An engine that does not even say what it is cannot be used, whatever it said instead.
fn away(fault: Fault) -> Fault {
    Fault { kind: FaultKind::Away, ..fault }
}

/// Opens the stream and passes its events on until it ends.
fn watch(rooms: &Rooms) -> Ended {
    // A stream that is opened now need not be opened again.
    rooms.published.take_reopen();
    match rooms.engine.ping() {
        Ok(info) => match follow(rooms, info) {
            Ok(never) => match never {},
            Err(fault) => Ended::Stream(fault),
        },
        Err(fault) => Ended::Unreached(away(fault)),
    }
}

fn follow(rooms: &Rooms, info: EngineInfo) -> Result<Infallible, Fault> {
    let mut stream = rooms.engine.events()?;
    // After the stream is open, so that nothing falls between the listing that follows and it.
    let _ = rooms.inbox.send(Mail::Event(Event::StreamUp(info)));
    loop {
        let event = stream.next()?;
        let _ = rooms.inbox.send(Mail::Event(Event::Container(event)));
    }
}
