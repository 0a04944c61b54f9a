//! The wall clock is only printed. That it was set is told, and gives another try to what may have
//! failed because it was wrong.

use super::Machine;
use crate::domain::effect::Level;
use crate::domain::names::Uid;
use crate::domain::time::Now;
use crate::limits;

impl Machine {
    /// Both clocks as they are now.
    pub(super) fn note_clock(&mut self, now: Now) {
        let set = now.clock_set_since(self.now);
        self.now = now;
        if set.unsigned_abs() < limits::CLOCK_SET_MS {
            return;
        }
        let (way, by) = (if set > 0 { "forward" } else { "back" }, in_words(set.unsigned_abs()));
        let text = format!(
            "the wall clock was set {way} by {by}: times in what was written before are of the old \
             one, and no wait is longer or shorter for it"
        );
        self.log(Level::Info, text);
        if set > 0 {
            self.retry_what_never_ran();
        }
    }

    /// In 1970 no certificate of a registry is valid yet.
    fn retry_what_never_ran(&mut self) {
        let mut due: Vec<Uid> = Vec::new();
        for (uid, w) in &mut self.workloads {
            let waits = w.record.failure_count > 0 && w.record.refusals == 0;
            if waits && w.record.wait.take().is_some() {
                w.dirty = true;
                due.push(uid.clone());
            }
        }
        for uid in due {
            self.mark(&uid);
        }
    }
}

fn in_words(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=599 => format!("{seconds} s"),
        600..=172_799 => format!("{} min", seconds / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}
