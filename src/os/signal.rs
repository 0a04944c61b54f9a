//! SIGTERM and SIGINT as a value to wait for.

use std::io;

use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::thread;

/// A channel that gets the number of each SIGTERM and SIGINT from now on. More than one that waits
/// unread is dropped.
///
/// # Errors
/// The handlers could not be set.
pub fn stop_signals() -> io::Result<Receiver<i32>> {
    let (sender, receiver) = bounded(1);
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::spawn("signals", move || {
        for signal in signals.forever() {
            // A second signal while the first is handled changes nothing.
            let _ = sender.try_send(signal);
        }
    })?;
    Ok(receiver)
}
