//! Named threads, so that every tool shows what a thread is for.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. It catches nothing: a panic ends it, and its handle tells. The kernel shows the
/// first 15 bytes of `name`.
///
/// # Errors
/// The system has no more threads or memory to give.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(run)
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
