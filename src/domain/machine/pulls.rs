//! Pulls: one for each image, a few at a time, and never all places for one registry, so that one
//! that hangs holds up nobody else. A pull that nobody waits for any more is cancelled, and one in
//! which nothing moves gives up its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Machine;
use crate::domain::effect::{Effect, PullId};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::lifecycle::{PullPhase, Slot};
use crate::domain::names::Uid;
use crate::domain::time::{Span, Tick};
use crate::domain::view::PullProgress;
use crate::limits;

/// All pulls that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    last: u64,
    /// In the order in which they were asked for.
    all: BTreeMap<PullId, Pull>,
    by_image: BTreeMap<Arc<str>, PullId>,
    by_workload: BTreeMap<Uid, PullId>,
}

/// One image.
#[derive(Debug)]
struct Pull {
    image: Arc<str>,
    waiting: BTreeSet<Uid>,
    phase: PullPhase,
    progress: PullProgress,
    /// When it was begun, or something moved last.
    moved_at: Tick,
}

impl Pulls {
    /// `uid` waits for `image`, and for no other.
    fn join(&mut self, uid: &Uid, image: &str) {
        let known = self.by_image.get(image).copied();
        let id = known.unwrap_or_else(|| {
            self.last += 1;
            let (id, image) = (PullId(self.last), Arc::<str>::from(image));
            let pull = Pull {
                image: image.clone(),
                waiting: BTreeSet::new(),
                phase: PullPhase::Queued,
                progress: PullProgress::default(),
                moved_at: Tick(0),
            };
            self.all.insert(id, pull);
            self.by_image.insert(image, id);
            id
        });
        if let Some(pull) = self.all.get_mut(&id) {
            pull.waiting.insert(uid.clone());
        }
        self.by_workload.insert(uid.clone(), id);
    }

    /// `uid` waits no longer; the pull that is to be cancelled for that.
    fn leave(&mut self, uid: &Uid) -> Option<PullId> {
        let id = self.by_workload.remove(uid)?;
        let pull = self.all.get_mut(&id)?;
        pull.waiting.remove(uid);
        if !pull.waiting.is_empty() {
            return None;
        }
        let pull = self.end(id)?;
        (pull.phase != PullPhase::Queued).then_some(id)
    }

    /// Its place is free.
    fn end(&mut self, id: PullId) -> Option<Pull> {
        let pull = self.all.remove(&id)?;
        self.by_image.remove(&pull.image);
        for uid in &pull.waiting {
            self.by_workload.remove(uid);
        }
        Some(pull)
    }

    fn of(&self, uid: &Uid) -> Option<&Pull> {
        self.all.get(self.by_workload.get(uid)?)
    }

    /// The next one that gets a place, if there is one for it.
    fn next(&self) -> Option<PullId> {
        let busy = |pull: &&Pull| pull.phase != PullPhase::Queued;
        if self.all.values().filter(busy).count() >= limits::PULLERS {
            return None;
        }
        let has_room = |wanted: &Pull| {
            let registry = registry(&wanted.image);
            let same =
                self.all.values().filter(busy).filter(|p| self::registry(&p.image) == registry);
            same.count() < limits::PULLS_OF_REGISTRY
        };
        let mut queued = self.all.iter().filter(|(_, pull)| pull.phase == PullPhase::Queued);
        queued.find(|(_, pull)| has_room(pull)).map(|(id, _)| *id)
    }

    fn moving(&self) -> impl Iterator<Item = (PullId, Tick)> {
        let moving = self.all.iter().filter(|(_, pull)| pull.phase == PullPhase::Moving);
        moving.map(|(id, pull)| (*id, pull.moved_at + Span(limits::PULL_STALL_MS)))
    }

    /// When the next one has stalled, if nothing moves before.
    pub(super) fn next_deadline(&self) -> Option<Tick> {
        self.moving().map(|(_, at)| at).min()
    }

    /// How far the pull has come that `uid` waits for.
    pub(super) fn progress(&self, uid: &Uid) -> Option<PullProgress> {
        self.of(uid).map(|pull| pull.progress)
    }
}

/// The registry that an image reference names; without one it is Docker's.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => "docker.io",
    }
}

impl Machine {
    /// One pull per image: later ones wait for the first.
    pub(super) fn begin_pull(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let image = w.record.declared.spec.image.clone();
        self.leave_pull(uid);
        self.pulls.join(uid, &image);
        let phase = self.pulls.of(uid).map(|pull| pull.phase);
        self.with(uid, |w, _| {
            w.pulling = true;
            w.pull_phase = phase.unwrap_or_default();
        });
        self.grant_pulls();
        self.start_tasks(uid);
    }

    /// A pull that the workload has no use for any more is not waited for.
    pub(super) fn tend_pull(&mut self, uid: &Uid) {
        let Some(pull) = self.pulls.of(uid) else { return };
        let Some(w) = self.workloads.get(uid) else { return };
        let is_same = *pull.image == *w.record.declared.spec.image;
        if is_same && w.wants_pull() {
            return;
        }
        self.with(uid, |w, _| w.pulling = false);
        self.leave_pull(uid);
    }

    /// The workload waits for no pull any more.
    pub(super) fn leave_pull(&mut self, uid: &Uid) {
        if let Some(id) = self.pulls.leave(uid) {
            self.out.push(Effect::CancelPull(id));
        }
        self.grant_pulls();
    }

    /// Nobody waits for any pull any more.
    pub(super) fn leave_all_pulls(&mut self) {
        let waiting: Vec<Uid> = self.pulls.by_workload.keys().cloned().collect();
        for uid in waiting {
            self.with(&uid, |w, _| w.pulling = false);
            self.leave_pull(&uid);
        }
    }

    /// Gives free places to pulls that wait for one.
    pub(super) fn grant_pulls(&mut self) {
        if self.holds_still() {
            return;
        }
        while let Some(id) = self.pulls.next() {
            self.move_pull(id, PullPhase::Moving);
            if let Some(pull) = self.pulls.all.get(&id) {
                self.out.push(Effect::Pull(id, pull.image.clone()));
            }
        }
    }

    fn move_pull(&mut self, id: PullId, phase: PullPhase) {
        let Some(pull) = self.pulls.all.get_mut(&id) else { return };
        pull.phase = phase;
        pull.moved_at = self.now.tick;
        for uid in pull.waiting.clone() {
            self.with(&uid, |w, _| w.pull_phase = phase);
            self.mark(&uid);
        }
    }

    pub(super) fn on_pull_progress(&mut self, id: PullId, progress: PullProgress) {
        let Some(pull) = self.pulls.all.get_mut(&id) else { return };
        pull.moved_at = self.now.tick;
        if std::mem::replace(&mut pull.progress, progress) != progress {
            for uid in pull.waiting.clone() {
                self.mark(&uid);
            }
        }
    }

    /// All of it is there, and is being made durable, which takes as long as the disk needs.
    pub(super) fn on_pull_syncs(&mut self, id: PullId) {
        self.move_pull(id, PullPhase::Syncing);
    }

    pub(super) fn on_pull_done(&mut self, id: PullId, result: &Result<(), Fault>) {
        let Some(pull) = self.pulls.end(id) else { return };
        for uid in pull.waiting {
            self.mark(&uid);
            self.with(&uid, |w, context| {
                if !std::mem::take(&mut w.pulling) {
                    return;
                }
                match result {
                    Ok(()) => {
                        w.pulled = w.record.generation;
                        w.pulled_for = w.record.rebuilds_asked;
                    }
                    Err(fault) if fault.kind == FaultKind::Away => w.note_unknown(context),
                    Err(fault) => {
                        w.unreserve();
                        w.fail_try(Slot::Next, fault, context);
                    }
                }
            });
        }
        self.grant_pulls();
    }

    /// Ends pulls in which nothing moved for too long.
    pub(super) fn end_stalled_pulls(&mut self) {
        let now = self.now.tick;
        let stalled: Vec<PullId> =
            self.pulls.moving().filter(|(_, at)| *at <= now).map(|(id, _)| id).collect();
        for id in stalled {
            let Some(pull) = self.pulls.all.get(&id) else { continue };
            let text = format!("stalled: nothing came for {} s", limits::PULL_STALL_MS / 1_000);
            let fault = Fault::new(FaultKind::Trouble, "pull", &*pull.image, text);
            self.out.push(Effect::CancelPull(id));
            self.on_pull_done(id, &Err(fault));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::registry;

    #[test]
    fn the_registry_is_what_stands_before_the_first_slash_and_looks_like_a_host() {
        for (image, host) in [
            ("nginx", "docker.io"),
            ("nginx:1.27", "docker.io"),
            ("team/app:2", "docker.io"),
            ("localhost/app", "localhost"),
            ("registry:5000/web:1", "registry:5000"),
            ("registry.example/team/app@sha256:00", "registry.example"),
            ("[::1]:5000/web", "[::1]:5000"),
        ] {
            assert_eq!(registry(image), host);
        }
    }
}
