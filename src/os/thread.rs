//! Named threads, so that every tool shows what a thread is for.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::never;

use super::clock;
use crate::limits::THREAD_STACK_BYTES;

/// Starts a thread. It catches nothing: a panic ends it, and its handle tells. The kernel shows the
/// first 15 bytes of `name`.
///
/// # Errors
/// The system has no more threads or memory to give.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).stack_size(THREAD_STACK_BYTES).spawn(run)
}

/// Waits for `thread` until `by_ms` on the boot clock.
///
/// # Errors
/// The thread, if it has not ended by then.
pub fn join_until<T>(thread: JoinHandle<T>, by_ms: u64) -> Result<(), JoinHandle<T>> {
    // The standard library has no join with a deadline; this runs once, at the stop.
    while !thread.is_finished() {
        if clock::boot_ms() >= by_ms {
            return Err(thread);
        }
        let _ = never::<()>().recv_timeout(Duration::from_millis(5));
    }
    if thread.join().is_err() {
        log::error!("bug: a thread ended by a panic");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_carry_their_name() {
        let thread = spawn("api-1", || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(thread.join().unwrap().as_deref(), Some("api-1"));
    }
}
