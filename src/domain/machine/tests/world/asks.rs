//! What tests do with the world, and what they ask it.

use std::sync::Arc;

use super::World;
use crate::domain::declared::Declared;
use crate::domain::effect::{Answer, Change};
use crate::domain::event::{Apply, AskId, ContainerAction, ContainerEvent, Event, Request, Verb};
use crate::domain::fault::FaultKind;
use crate::domain::health_check::Health;
use crate::domain::names::{ContainerId, Source, Uid};
use crate::domain::observed::Phase;
use crate::domain::record::Record;
use crate::domain::view::{State, TaskId, TaskState, View};

impl World {
    /// Asks; `None`: the agent died over it.
    pub fn try_ask(&mut self, request: Request) -> Option<Answer> {
        let ask = self.next_ask();
        self.feed(Event::Ask(ask, request));
        self.answers.remove(&ask)
    }

    /// The number of the next ask.
    pub fn next_ask(&mut self) -> AskId {
        self.last += 1;
        AskId(self.last)
    }

    pub fn ask(&mut self, request: Request) -> Answer {
        self.try_ask(request).expect("an answer")
    }

    /// What asks for these declarations.
    pub fn request(&mut self, declared: &[&Arc<Declared>]) -> Request {
        let uids = declared.iter().map(|_| {
            self.last += 1;
            Uid::new(format!("uid-{}", self.last))
        });
        let uids = uids.collect();
        let declared = declared.iter().map(|d| (*d).clone()).collect();
        Request::Apply(Apply {
            source: Source::Local,
            declared,
            uids,
            dry_run: false,
            prune: false,
            start: false,
        })
    }

    pub fn apply(&mut self, declared: &[&Arc<Declared>]) -> Vec<(u64, Change)> {
        let request = self.request(declared);
        match self.ask(request) {
            Answer::Applied(applied) => applied.iter().map(|a| (a.generation, a.change)).collect(),
            other => panic!("{other:?}"),
        }
    }

    pub fn verb(&mut self, name: &str, verb: Verb) -> TaskId {
        let uid = self.view(name).uid.clone();
        match self.ask(Request::Verb(verb, uid)) {
            Answer::Accepted(task) => task,
            other => panic!("{other:?}"),
        }
    }

    pub fn task(&self, id: TaskId) -> TaskState {
        self.tasks[&id].state
    }

    pub fn view(&self, name: &str) -> &View {
        let mut views = self.views.values();
        views.find(|v| v.declared.key.name.as_str() == name).expect("a view")
    }

    pub fn state(&self, name: &str) -> State {
        self.view(name).state
    }

    pub fn row(&self, name: &str) -> &Record {
        let mut rows = self.store.kept.rows.values();
        rows.find(|r| r.declared.key.name.as_str() == name).expect("a row")
    }

    /// The live container of a workload.
    pub fn container(&self, name: &str) -> ContainerId {
        self.view(name).container.clone().expect("a container")
    }

    /// The process of a workload ends by itself.
    pub fn exit(&mut self, name: &str, code: i32) {
        let id = self.container(name);
        let made = self.engine.find_mut(id.as_str());
        assert_eq!(made.phase, Phase::Running, "{name} does not run");
        made.phase = Phase::Exited;
        made.exit_code = code;
        let uid = made.tags.uid.clone();
        self.feed(Event::Container(ContainerEvent { id, uid, action: ContainerAction::Died }));
    }

    /// What the check of a workload comes to, without an event that tells of it.
    pub fn turn(&mut self, name: &str, health: Health) -> ContainerEvent {
        let id = self.container(name);
        let made = self.engine.find_mut(id.as_str());
        assert!(made.health.is_some(), "{name} has no check");
        made.health = Some(health);
        let uid = made.tags.uid.clone();
        ContainerEvent { id, uid, action: ContainerAction::Changed }
    }

    /// The check of a workload comes to another verdict.
    pub fn becomes(&mut self, name: &str, health: Health) {
        let event = self.turn(name, health);
        self.feed(Event::Container(event));
    }

    pub fn fail_next(&mut self, word: &'static str, kinds: &[FaultKind]) {
        self.engine.fail_next(word, kinds);
    }

    pub fn count(&self, word: &str) -> usize {
        self.engine.calls.iter().filter(|call| call.starts_with(word)).count()
    }

    pub fn running(&self) -> usize {
        self.engine.running()
    }
}
