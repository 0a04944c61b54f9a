//! Exits of the last few seconds, which a stop of the agent makes interruptions: at a shutdown the
//! containers get their signal too, and an agent that is told a moment later would take their ends
//! for crashes, or for the success of a job.

use super::diary::Diary;
use super::lifecycle::{Context, Workload};
use super::record::{FailedUpdate, OwedStart};
use super::time::{Span, Tick};
use crate::limits;

/// What an exit changed, as it was before.
#[derive(Clone, PartialEq, Debug)]
pub struct Before {
    at: Tick,
    restart_count: u64,
    streak: u32,
    error_message: String,
    last_error: String,
    last_error_at_ms: u64,
    failed_update: Option<FailedUpdate>,
    diary: Diary,
    stuck: bool,
}

impl Workload {
    /// An exit that is no interruption is about to be judged.
    pub(super) fn remember_before_exit(&mut self, context: Context) {
        let record = &self.record;
        let before = Before {
            at: context.now.tick,
            restart_count: record.restart_count,
            streak: record.streak,
            error_message: record.error_message.clone(),
            last_error: record.last_error.clone(),
            last_error_at_ms: record.last_error_at_ms,
            failed_update: record.failed_update.clone(),
            diary: record.diary.clone(),
            stuck: record.stuck,
        };
        self.recent_exits.retain(|before| is_recent(before.at, context));
        self.recent_exits.push(before);
    }

    /// The agent is told to stop: what ended just before was interrupted, counts nothing and runs
    /// again. Whether there was such an exit.
    pub(super) fn forgive_recent_exits(&mut self, context: Context) -> bool {
        let mut recent = std::mem::take(&mut self.recent_exits).into_iter();
        let Some(before) = recent.find(|before| is_recent(before.at, context)) else {
            return false;
        };
        let record = &mut self.record;
        record.restart_count = before.restart_count;
        record.streak = before.streak;
        record.error_message = before.error_message;
        record.last_error = before.last_error;
        record.last_error_at_ms = before.last_error_at_ms;
        record.failed_update = before.failed_update;
        record.diary = before.diary;
        record.stuck = before.stuck;
        record.wait = None;
        record.owed_start = OwedStart::Uncounted;
        if let Some(exit) = &mut record.last_exit {
            exit.interrupted = true;
        }
        self.dirty = true;
        true
    }
}

fn is_recent(at: Tick, context: Context) -> bool {
    context.now.tick.since(at) <= Span(limits::SHUTDOWN_EXIT_MS)
}
