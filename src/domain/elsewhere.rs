//! A workload whose containers are on another engine than the one that answers: nothing is made in
//! their place before that engine had time to come back, or somebody says that it will not.

use super::declared::MountSource;
use super::lifecycle::{Context, Slot, Workload};
use super::observed::Seen;
use super::record::{BootTick, Desired};
use super::restart;
use super::time::{Span, Tick};
use super::view::{RuntimeState, State};
use crate::limits;

impl Workload {
    /// Its containers are on another engine, and it waits for that.
    pub fn is_elsewhere(&self) -> bool {
        // What is to go need not come back first.
        self.record.elsewhere.is_some() && self.record.desired != Desired::Deleted
    }

    /// It is a job that is done, or another exit that the policy leaves at that.
    pub fn has_finished(&self) -> bool {
        let policy = self.record.declared.spec.restart.policy;
        self.record.last_exit.as_ref().is_some_and(|exit| !restart::runs_again(policy, exit))
    }

    /// From when on it need not wait for the other engine any more; `None`: not before somebody
    /// says so, since its named volumes are there too.
    pub fn elsewhere_until(&self) -> Option<Tick> {
        let since = self.record.elsewhere.as_ref()?;
        let may_begin_anew = self.named_volumes().next().is_none();
        may_begin_anew.then_some(since.tick + Span(limits::ENGINE_REPLACED_MS))
    }

    fn named_volumes(&self) -> impl Iterator<Item = &str> {
        self.record.declared.spec.mounts.iter().filter_map(|mount| match &mount.source {
            MountSource::Volume(name) => Some(name.as_str()),
            MountSource::Host { .. } => None,
        })
    }

    /// The engine is another one: what was seen before says nothing about this one.
    pub fn go_elsewhere(&mut self, context: Context) {
        let since = BootTick { boot: context.boot.clone(), tick: context.now.tick };
        self.record.elsewhere = Some(since);
        self.dirty = true;
        for slot in [Slot::Current, Slot::Next, Slot::Previous, Slot::Discard] {
            self.set_seen(slot, Seen::Unknown);
        }
        self.strays.clear();
        self.stop_deadline = None;
        self.discard_deadline = None;
        self.previous_deadline = None;
        self.retry_at = None;
        self.hold = None;
        self.start_expected = None;
    }

    /// It waits no longer. What ended in between ended with its engine: that counts as no exit of
    /// its own.
    pub fn come_back(&mut self) {
        self.record.elsewhere = None;
        self.dirty = true;
        self.gap = true;
        self.pulled = 0;
        self.retry_at = None;
    }

    /// How it is shown meanwhile: state, runtime state, the line beside them, and its end.
    pub fn shown_elsewhere(&self) -> (State, RuntimeState, String, Option<Tick>) {
        let volumes: Vec<&str> = self.named_volumes().collect();
        let mut info = "engineReplaced: its container is on another engine, which may come back";
        let volumes = match volumes.as_slice() {
            [] => String::new(),
            names => {
                info = "engineReplaced: its container and its volumes are on another engine";
                let names = names.join(", ");
                format!(" ({names}); `bargee confirm` begins anew with empty ones")
            }
        };
        if self.record.desired == Desired::Stopped {
            return (State::StoppedOk, RuntimeState::Stopped, format!("{info}{volumes}"), None);
        }
        let until = self.elsewhere_until();
        let then = if until.is_some() { "; made anew" } else { "" };
        let text = format!("{info}{volumes}{then}");
        (State::PendingWaitingToStart, RuntimeState::Unknown, text, until)
    }
}
