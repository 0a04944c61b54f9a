//! What a boot of the device changes for a workload.

use super::declared::Rerun;
use super::lifecycle::{Context, Workload};
use super::record::OwedStart;
use super::restart;

impl Workload {
    /// The first look at the row. Once after a boot what was given up gets a fresh set of tries,
    /// and a job that Succeeded is done, or runs again if its owner wants that.
    pub fn wake_up(&mut self, context: Context) {
        let record = &mut self.record;
        if record.boot.as_ref().is_none_or(|boot| boot == context.boot) {
            return;
        }
        record.refusals = 0;
        let run = record.current.as_ref().and_then(|current| current.run.as_ref());
        let began = run.map(|run| run.started_at_ns);
        let Some(exit) = &mut record.last_exit else { return };
        if began.is_some_and(|began| began != exit.started_at_ns) {
            // It has run again since: how that ended is yet to be seen.
            return;
        }
        if exit.code != Some(0) || restart::runs_again(record.declared.spec.restart.policy, exit) {
            return;
        }
        match record.declared.spec.rerun {
            Rerun::Boot => {
                // As long as it was not asked to run, the next agent of this boot does the same.
                exit.interrupted = true;
                record.owed_start = OwedStart::Uncounted;
            }
            Rerun::Never => {
                // That it is done holds for this boot too, whatever is declared later.
                record.boot = Some(context.boot.clone());
                self.dirty = true;
            }
        }
    }
}
