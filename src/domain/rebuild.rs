//! `rebuild`: a container made anew from a fresh pull. It goes the way of an update, so that the
//! old container is kept until the new one runs, and returns if it does not.

use super::declared::Pull;
use super::lifecycle::Workload;
use super::record::Record;

impl Workload {
    /// A rebuild was asked for and is not over.
    pub fn rebuild_is_due(&self) -> bool {
        self.record.rebuilds_asked != self.record.rebuilds_done
    }

    /// The container being made was begun before the rebuild was asked for.
    pub fn next_precedes_rebuild(&self) -> bool {
        let next = self.record.next.as_ref();
        let older = next.is_some_and(|next| next.rebuild != self.record.rebuilds_asked);
        self.rebuild_is_due() && older
    }

    /// The registry has to be asked before a container is made: once for each rebuild, and for each
    /// generation if the manifest says so. One that ran already was pulled, maybe by an agent
    /// before this one.
    pub fn pulls_first(&self) -> bool {
        let Record { declared, generation, observed_generation, rebuilds_asked, .. } = &self.record;
        let rebuild = self.rebuild_is_due() && self.pulled_for != *rebuilds_asked;
        match declared.spec.pull {
            Pull::Never => false,
            Pull::Missing => rebuild,
            Pull::Always => {
                rebuild || (self.pulled != *generation && observed_generation != generation)
            }
        }
    }

    /// The container that was made for a rebuild stands for the workload.
    pub(super) fn note_rebuilt(&mut self, rebuild: u64) {
        self.record.rebuilds_done = self.record.rebuilds_done.max(rebuild);
    }

    /// The rebuild came to nothing. It is not tried again: whoever asked for it is told.
    pub(super) fn fail_rebuild(&mut self) {
        if self.rebuild_is_due() && !self.next_precedes_rebuild() {
            self.record.rebuilds_done = self.record.rebuilds_asked;
            self.rebuild_failed = self.record.rebuilds_asked;
            self.dirty = true;
        }
    }
}
