//! The event stream, and the watcher of the agent that reads it.

use bargee::domain::event::{ContainerAction, ContainerEvent, Event};
use bargee::domain::fault::{Fault, FaultKind};
use bargee::domain::names::{ContainerId, Uid};
use bargee::domain::observed::EngineInfo;
use bargee::limits;

use super::engine::Stream;
use super::world::{Happening, World};

/// How late events are at most where that is usual.
const STUTTER_MS: u64 = 400;

impl World {
    /// The watcher tries to open the stream.
    pub fn connect(&mut self, life: u64) {
        if !self.is_life(life) || self.engine.stream.is_some() {
            return;
        }
        if !self.engine.up {
            let fault = Fault::new(FaultKind::Away, "connect", "", "refused");
            self.hears(life, 0, Event::StreamDown(fault));
            return self.after(limits::ENGINE_LOOK_MS, Happening::Connects(life));
        }
        self.engine.stream = Some(Stream { life, deaf: false, last: self.now });
        let ways = self.engine.model.ways;
        let (name, capabilities) = (ways.name.to_owned(), ways.capabilities());
        let info = EngineInfo { name, capabilities, ..EngineInfo::default() };
        self.hears(life, 0, Event::StreamUp(info));
    }

    /// The stream ends. An engine that still answers is only polled.
    pub fn lose_stream(&mut self, kind: FaultKind) {
        let Some(stream) = self.engine.stream.take() else { return };
        let fault = Fault::new(kind, "read events", "", "the stream ended");
        let soon = self.moment();
        let at = (self.now + soon).max(stream.last);
        self.at(at, Happening::Hears(stream.life, Event::StreamLost));
        self.at(at, Happening::Hears(stream.life, Event::StreamDown(fault)));
        self.at(at + limits::ENGINE_LOOK_MS, Happening::Connects(stream.life));
    }

    /// The agent closes the stream on purpose, and opens it again.
    pub fn reopen_stream(&mut self) {
        if let Some(stream) = self.engine.stream.take() {
            let soon = self.moment();
            self.after(soon, Happening::Connects(stream.life));
        }
    }

    /// Something happens to a container of somebody's: that the stream works shows in any event.
    pub fn nudge_stream(&mut self) {
        let Some(life) = self.agent.as_ref().map(|agent| agent.life) else { return };
        let (id, uid) = (ContainerId::new("somebody's"), Uid::new("nobody"));
        let event = ContainerEvent { id, uid, action: ContainerAction::Changed };
        self.after(0, Happening::Shows(life, event));
    }

    /// What the engine tells is on its way.
    pub fn show_events(&mut self) {
        for event in std::mem::take(&mut self.engine.model.told) {
            let stutters = self.engine.model.ways.stutters;
            let lags = if stutters { self.random.below(STUTTER_MS) } else { 0 };
            let twice = stutters && self.random.once_in(4);
            let soon = self.moment() + self.faults.lag_ms + lags;
            let (now, faults) = (self.now, &mut self.faults);
            let Some(stream) = self.engine.stream.as_mut().filter(|stream| !stream.deaf) else {
                continue;
            };
            if faults.lost > 0 {
                faults.lost -= 1;
                continue;
            }
            // They come in order.
            stream.last = stream.last.max(now + soon);
            let (life, at) = (stream.life, stream.last);
            if twice || faults.doubled > 0 {
                faults.doubled = faults.doubled.saturating_sub(u8::from(!twice));
                self.at(at, Happening::Shows(life, event.clone()));
            }
            self.at(at, Happening::Shows(life, event));
        }
    }
}
