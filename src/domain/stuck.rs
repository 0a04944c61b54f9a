//! STUCK_IN_RESTART: many restarts in a short time are a warning and a pace, or are left alone, as
//! the manifest says.

use super::declared::WhenStuck;
use super::diary::Diary;
use super::lifecycle::{Context, Workload};
use super::record::Record;
use super::time::{Span, Tick};
use crate::limits;

impl Workload {
    /// A run of the workload is a restart after an exit.
    pub(super) fn count_restart(&mut self, context: Context) {
        self.record.restart_count += 1;
        self.record.stuck |= self.record.diary.note(context.boot, context.now.tick);
    }

    /// Too many restarts, and the manifest says that it is left alone then. A reboot lets it run
    /// once more, and so does whatever interrupts it; a start that failed to is tried again.
    pub fn is_held_as_stuck(&self, context: Context) -> bool {
        let Record { declared, stuck, last_exit, boot, failure_count, .. } = &self.record;
        let ended = last_exit.as_ref().is_some_and(|exit| !exit.interrupted);
        let this_boot = boot.as_ref() == Some(context.boot);
        let starts = *failure_count > 0;
        *stuck && ended && this_boot && !starts && declared.spec.restart.stuck == WhenStuck::Hold
    }

    /// When the present run will have lasted long enough to be stuck no longer.
    pub fn unstuck_at(&self, context: Context) -> Option<Tick> {
        let since = self.runs_since(context).filter(|_| self.record.stuck);
        since.map(|since| since + Span(limits::STUCK_MS))
    }

    /// It has run for long enough.
    pub(super) fn end_stuck(&mut self, context: Context) {
        if self.unstuck_at(context).is_some_and(|at| at <= context.now.tick) {
            self.record.forget_restarts();
            self.dirty = true;
        }
    }

    /// The line for the log when it has become stuck, or is stuck no longer.
    pub fn take_stuck_news(&mut self) -> Option<String> {
        let stuck = self.record.stuck;
        if std::mem::replace(&mut self.told_stuck, stuck) == stuck {
            return None;
        }
        let key = &self.record.declared.key;
        if !stuck {
            return Some(format!("{key}: not STUCK_IN_RESTART any more"));
        }
        let restart = self.record.declared.spec.restart;
        let next = match restart.stuck {
            WhenStuck::Retry => format!("further tries wait {}", restart.max_delay),
            WhenStuck::Hold => "left alone when it ends again".to_owned(),
        };
        Some(format!("{key}: STUCK_IN_RESTART, {}; {next}", how_many()))
    }
}

impl Record {
    /// Restarts so far do not make it stuck any more.
    pub fn forget_restarts(&mut self) {
        self.stuck = false;
        self.diary = Diary::default();
    }
}

/// What makes a workload stuck, in words.
pub fn how_many() -> String {
    let minutes = limits::STUCK_MS / 60_000;
    format!("restarted {} times in {minutes} minutes", limits::STUCK_RESTARTS)
}
