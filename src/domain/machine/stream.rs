//! The engine's event stream: a hint for every workload, and a word about the engine itself.

use super::Machine;
use crate::domain::effect::{Effect, Level, ListId};
use crate::domain::event::{ContainerAction, ContainerEvent};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::lifecycle::Slot;
use crate::domain::names::{ContainerId, Uid};
use crate::domain::observed::EngineInfo;
use crate::domain::record::Instance;
use crate::domain::slow::Slow;
use crate::domain::time::{Span, Tick};
use crate::limits;

impl Machine {
    pub(super) fn on_stream_up(&mut self, info: EngineInfo) {
        self.acquaintance.forget();
        self.engine.stream_up = true;
        self.engine.stream_since = self.now.tick;
        // It was not known yet what kind of engine was away.
        self.engine.gap &= !info.capabilities.containers_outlive;
        self.engine.info = info;
        // What happened before the stream was open shows in a listing only.
        self.engine.next_list = Some(self.now.tick);
        self.engine.listing = None;
    }

    pub(super) fn on_stream_down(&mut self, fault: &Fault) {
        let away = matches!(fault.kind, FaultKind::Away | FaultKind::Timeout);
        // An engine that is away may have ended its containers, if they end with it, whether this
        // agent saw it go or finds it so. One that only lost the stream answers still, and an exit
        // under it is an exit: with a stream that comes and goes, a finished job would else run
        // again and again.
        self.engine.gap |= away && !self.engine.info.capabilities.containers_outlive;
        self.engine.stream_up = false;
        // What was asked before shows nothing of what happened with the stream.
        self.engine.listing = None;
        if away {
            self.engine_away(fault);
            // The stream's own tries to connect are the looks at the engine.
            self.engine.next_list = None;
        } else {
            let text = format!("the event stream is down, the engine is polled: {fault}");
            self.set_condition("eventStream", text);
            if self.acquaintance.is_met() {
                self.look_soon();
            } else {
                self.engine.next_list = Some(self.now.tick);
            }
        }
    }

    /// One line, then silence until it is back.
    pub(super) fn engine_away(&mut self, fault: &Fault) {
        if self.engine.up || !self.engine.listed && self.engine.error != fault.message {
            self.log(Level::Warn, format!("the engine is away: {fault}"));
        }
        self.acquaintance.forget();
        self.engine.up = false;
        self.engine.error.clone_from(&fault.message);
        self.engine.away_since.get_or_insert(self.now.tick);
    }

    pub(super) fn engine_back(&mut self) {
        if self.engine.up {
            return;
        }
        let info = &self.engine.info;
        let text = format!(
            "the engine is there: {} {} (API {})",
            info.name, info.version, info.api_version
        );
        self.log(Level::Info, text);
        self.engine.up = true;
        self.engine.error.clear();
        self.engine.away_since = None;
        // Whatever waited for the engine need not wait any longer.
        for w in self.workloads.values_mut() {
            w.retry_at = None;
            w.unknowns = 0;
            w.slow = Slow::No;
        }
        self.mark_all();
    }

    /// One line when a condition begins.
    pub(super) fn set_condition(&mut self, name: &'static str, text: String) {
        if self.conditions.insert(name, text.clone()).is_none() {
            self.log(Level::Warn, text);
        }
    }

    // --- container events ----------------------------------------------------------------------

    pub(super) fn on_container(&mut self, event: &ContainerEvent) {
        if std::mem::take(&mut self.engine.stream_doubted) {
            // It tells something again. What it did not tell shows in one more listing.
            self.engine.next_list = Some(self.now.tick);
        }
        let known = self.by_container.get(&event.id).or_else(|| {
            // A container whose create is not answered yet.
            self.workloads.contains_key(&event.uid).then_some(&event.uid)
        });
        let Some(uid) = known.cloned() else { return };
        let order = self.order;
        let Some(w) = self.workloads.get_mut(&uid) else { return };
        w.touched = order;
        if event.action == ContainerAction::Started && w.took_own_start(&event.id) {
            return;
        }
        if w.step.is_some() && !w.heard.contains(&event.id) {
            w.heard.push(event.id.clone());
        }
        let is = |i: &Instance| i.container.as_ref() == Some(&event.id);
        let matters = match event.action {
            ContainerAction::Died | ContainerAction::Removed => !w.live_discards.is_empty(),
            // Nothing is started beside it.
            ContainerAction::Started => true,
            ContainerAction::OutOfMemory | ContainerAction::Changed => false,
        };
        if matters && w.record.discards.iter().any(is) {
            w.retry_discards();
            return self.mark(&uid);
        }
        let Some(slot) = w.slot_of(&event.id) else { return };
        if slot == Slot::Discard && event.action == ContainerAction::Removed {
            w.drop_discard_if_idle();
            self.by_container.remove(&event.id);
        } else {
            w.mark_stale(slot);
        }
        w.retry_at = None;
        self.mark(&uid);
    }

    /// Our own start must show on the stream; one that does not makes the stream doubtful.
    pub(super) fn expect_start(&mut self, uid: &Uid, id: &ContainerId) {
        let by = self.later(limits::START_EVENT_MS);
        let stream_up = self.engine.stream_up;
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let shown = std::mem::take(&mut w.start_shown);
        w.start_expected = (stream_up && !shown).then(|| (id.clone(), by));
    }

    pub(super) fn check_start_shown(&mut self, uid: &Uid) {
        let now = self.now.tick;
        let Some(w) = self.workloads.get_mut(uid) else { return };
        let Some((_, by)) = w.start_expected.take_if(|(_, by)| *by <= now) else { return };
        // One that was opened after the start had nothing to show.
        let was_open = self.engine.stream_since + Span(limits::START_EVENT_MS) <= by;
        if self.engine.stream_up && was_open && !self.engine.stream_doubted {
            self.engine.stream_doubted = true;
            let text = "a start did not show on the event stream within 5 s: the engine is polled";
            self.set_condition("eventStream", text.to_owned());
            self.engine.next_list = Some(now);
            self.out.push(Effect::ReopenStream);
        }
    }

    // --- listings ------------------------------------------------------------------------------

    /// Sends a listing when one is due: once a minute, or every 5 s while the stream is no help.
    pub(super) fn check_list_deadline(&mut self) {
        let due = self.engine.next_list.is_some_and(|at| at <= self.now.tick);
        if !due || self.engine.listing.is_some() {
            return;
        }
        self.engine.last_list += 1;
        let id = ListId(self.engine.last_list);
        self.engine.listing = Some((id, self.order));
        if !self.acquaintance.is_met() {
            self.out.push(Effect::Identify);
        }
        self.out.push(Effect::List(id));
    }

    pub(super) fn next_list_after(&self, failed: bool) -> Option<Tick> {
        let helpless = failed || !self.engine.stream_up || self.engine.stream_doubted;
        let ms = if helpless { limits::ENGINE_LOOK_MS } else { limits::FULL_COMPARE_MS };
        Some(self.later(ms))
    }
}
