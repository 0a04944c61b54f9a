//! Waits for changes in a directory, for mounts, for a deadline, and for the word to stop,
//! whichever comes first.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use super::clock;
use crate::limits::MANIFEST_CHANGE_READS;

/// A watch over one directory at a time.
#[derive(Debug)]
pub struct DirectoryWatch {
    /// `None`: the system has none to give.
    kernel: Option<Inotify>,
    watched: Option<WatchDescriptor>,
    /// The table of mounts, which has something urgent to read when it changed.
    mounts: Option<File>,
    stop: PipeReader,
}

/// Why a wait ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The other end of the pipe is closed.
    Stopped,
    /// The deadline has come.
    Late,
    /// Something changed in the directory.
    Changed(Vec<Change>),
    /// Something was mounted or unmounted somewhere.
    Mounted,
}

/// One change in the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Somebody writes to this file.
    Written(String),
    /// Somebody has closed this file who could write to it, or another one took its place.
    Closed(String),
    /// This file is there no longer under this name.
    Gone(String),
    /// Something else about this file changed.
    Other(String),
    /// The kernel forgot changes, or the directory itself changed.
    Unknown,
}

impl DirectoryWatch {
    /// A watch, and what ends its waits when it is dropped.
    ///
    /// # Errors
    /// The system gives no pipe.
    pub fn new() -> io::Result<(Self, PipeWriter)> {
        let (stop, stopper) = io::pipe()?;
        // Without it the directory is looked at from time to time, which is slower and no less
        // certain.
        let flags = InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC;
        let kernel = Inotify::init(flags).ok();
        let mounts = File::open("/proc/self/mountinfo").ok();
        Ok((Self { kernel, watched: None, mounts, stop }, stopper))
    }

    /// Whether a directory is watched and mounts are told, so that nobody has to look for either.
    pub fn is_watching(&self) -> bool {
        self.watched.is_some() && self.mounts.is_some()
    }

    /// Watches `directory`, which is open, and nothing else. Costs one call if that is so already.
    pub fn watch(&mut self, directory: &File) {
        let all = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO;
        self.watch_for(directory, all);
    }

    /// Watches `directory` for names that come to it, and nothing else.
    pub fn watch_for_names(&mut self, directory: &File) {
        let names = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF;
        self.watch_for(directory, names);
    }

    /// Watches nothing any more but mounts.
    pub fn forget(&mut self) {
        if let Some((kernel, old)) = self.kernel.as_ref().zip(self.watched.take()) {
            // It may be gone with its directory.
            let _ = kernel.rm_watch(old);
        }
    }

    fn watch_for(&mut self, directory: &File, flags: AddWatchFlags) {
        let Some(kernel) = &self.kernel else { return };
        // Through the open file, so that it is this directory whatever became of its path.
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let watched = kernel.add_watch(Path::new(&path), flags).ok();
        if let Some(old) = self.watched.filter(|old| watched != Some(*old)) {
            // It may be gone with its directory.
            let _ = kernel.rm_watch(old);
        }
        self.watched = watched;
    }

    /// Waits until `by_ms` on the boot clock at the most, for mounts only if those count.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn wait(&self, by_ms: u64, mounts_count: bool) -> io::Result<Woken> {
        loop {
            let left = by_ms.saturating_sub(clock::boot_ms());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mounts = self.mounts.as_ref().filter(|_| mounts_count);
            let mut waited = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
            waited.extend(self.kernel.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
            waited.extend(mounts.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLPRI)));
            match poll(&mut waited, timeout) {
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let mut told = waited.iter().map(|fd| fd.any().unwrap_or(true));
            if told.next() == Some(true) {
                return Ok(Woken::Stopped);
            }
            if self.kernel.is_some() && told.next() == Some(true) {
                return Ok(Woken::Changed(self.changes()));
            }
            if told.next() == Some(true) {
                return Ok(Woken::Mounted);
            }
            if clock::boot_ms() >= by_ms {
                return Ok(Woken::Late);
            }
        }
    }

    /// What the kernel has to tell; bounded, since somebody may write all the time.
    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let Some(kernel) = &self.kernel else { return changes };
        for _ in 0..MANIFEST_CHANGE_READS {
            match kernel.read_events() {
                Ok(events) => changes.extend(events.into_iter().filter_map(|e| self.change(e))),
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        changes.dedup();
        changes
    }

    /// `None`: it is of a directory that was watched before.
    fn change(&self, event: InotifyEvent) -> Option<Change> {
        let mask = event.mask;
        if mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return Some(Change::Unknown);
        }
        if self.watched != Some(event.wd) {
            return None;
        }
        let Some(name) = event.name.and_then(|name| name.into_string().ok()) else {
            return Some(Change::Unknown);
        };
        let closed = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_MOVED_TO;
        let gone = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
        Some(if mask.intersects(gone) {
            Change::Gone(name)
        } else if mask.intersects(closed) {
            Change::Closed(name)
        } else if mask.contains(AddWatchFlags::IN_MODIFY) {
            Change::Written(name)
        } else {
            Change::Other(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    /// Everything that is told until the directory has been quiet for a while.
    fn told(watch: &DirectoryWatch) -> Vec<Change> {
        let mut all = Vec::new();
        while let Woken::Changed(changes) = watch.wait(clock::boot_ms() + 100, false).unwrap() {
            all.extend(changes);
        }
        all.dedup();
        all
    }

    #[test]
    fn writing_and_closing_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let (mut watch, _stop) = DirectoryWatch::new().unwrap();
        watch.watch(&File::open(directory.path()).unwrap());
        let a = || "a".to_owned();
        let mut file = File::create(directory.path().join("a")).unwrap();
        file.write_all(b"1").unwrap();
        assert_eq!(told(&watch), [Change::Other(a()), Change::Written(a())]);
        drop(file);
        assert_eq!(told(&watch), [Change::Closed(a())]);
        std::fs::rename(directory.path().join("a"), directory.path().join("b")).unwrap();
        assert_eq!(told(&watch), [Change::Gone(a()), Change::Closed("b".to_owned())]);
    }

    #[test]
    fn only_the_last_directory_is_watched() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut watch, _stop) = DirectoryWatch::new().unwrap();
        watch.watch(&File::open(one.path()).unwrap());
        watch.watch(&File::open(two.path()).unwrap());
        File::create(one.path().join("a")).unwrap();
        assert_eq!(told(&watch), []);
        File::create(two.path().join("b")).unwrap();
        let b = "b".to_owned();
        assert_eq!(told(&watch), [Change::Other(b.clone()), Change::Closed(b)]);
    }

    #[test]
    fn a_directory_may_be_watched_for_names_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let mut file = File::create(path("a")).unwrap();
        let (mut watch, _stop) = DirectoryWatch::new().unwrap();
        watch.watch_for_names(&File::open(directory.path()).unwrap());
        file.write_all(b"1").unwrap();
        drop(file);
        std::fs::remove_file(path("a")).unwrap();
        assert_eq!(told(&watch), []);
        std::fs::create_dir(path("b")).unwrap();
        assert_eq!(told(&watch), [Change::Other("b".to_owned())]);
        watch.forget();
        std::fs::create_dir(path("c")).unwrap();
        assert_eq!((told(&watch), watch.is_watching()), (vec![], false));
    }

    #[test]
    fn mounts_are_told_to_those_who_ask() {
        let directory = tempfile::tempdir().unwrap();
        let (watch, _stop) = DirectoryWatch::new().unwrap();
        let run = |words: &[&str]| {
            let done = Command::new(words[0]).args(&words[1..]).arg(directory.path()).output();
            done.is_ok_and(|output| output.status.success())
        };
        if !run(&["mount", "-t", "tmpfs", "none"]) {
            return println!("skipped: only root can mount");
        }
        // Others may mount something, too: what counts is that a wait ends.
        let woken = watch.wait(clock::boot_ms() + 10_000, true).unwrap();
        assert!(run(&["umount", "-l"]));
        assert_eq!(woken, Woken::Mounted);
        assert_eq!(watch.wait(clock::boot_ms(), false).unwrap(), Woken::Late);
    }

    #[test]
    fn the_stop_comes_before_everything() {
        let (watch, stop) = DirectoryWatch::new().unwrap();
        assert_eq!(watch.wait(0, true).unwrap(), Woken::Late);
        drop(stop);
        assert_eq!(watch.wait(u64::MAX, true).unwrap(), Woken::Stopped);
    }
}
