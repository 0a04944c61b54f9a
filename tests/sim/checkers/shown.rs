//! What is published: a generation that was shown never goes back, not over a power cut either; a
//! transition follows the state that it speaks of; a task that is settled stays so.

use std::collections::BTreeMap;

use bargee::domain::names::Uid;
use bargee::domain::view::{State, Task, TaskId, TaskState, Transition, View};

/// What was shown so far.
#[derive(Debug, Default)]
pub struct Shown {
    generations: BTreeMap<Uid, u64>,
    states: BTreeMap<Uid, State>,
    tasks: BTreeMap<TaskId, TaskState>,
}

type Found = Option<(&'static str, String)>;

impl Shown {
    pub fn published(&mut self, uid: &Uid, view: Option<&View>) -> Found {
        let Some(view) = view else {
            self.states.remove(uid);
            return None;
        };
        self.states.insert(uid.clone(), view.state);
        let before = self.generations.insert(uid.clone(), view.generation).unwrap_or(0);
        if view.generation < before {
            let text = format!("{uid} goes from generation {before} to {}", view.generation);
            return Some(("shown", text));
        }
        (view.observed_generation > view.generation)
            .then(|| ("shown", format!("{uid} runs generation {}", view.observed_generation)))
    }

    pub fn changed(&mut self, change: &Transition) -> Found {
        let shown = self.states.get(&change.uid).copied().unwrap_or(State::Removed);
        (shown != change.to)
            .then(|| ("shown", format!("{} becomes {:?} and is {shown:?}", change.key, change.to)))
    }

    pub fn task(&mut self, task: &Task) -> Found {
        let before = self.tasks.insert(task.id, task.state);
        let was_settled = before.is_some_and(is_settled);
        was_settled
            .then(|| ("tasks", format!("{:?} was {before:?}, and is {:?}", task.id, task.state)))
    }

    pub fn dropped(&mut self, id: TaskId) -> Found {
        let last = self.tasks.remove(&id);
        (!last.is_some_and(is_settled)).then(|| ("tasks", format!("{id:?} is dropped as {last:?}")))
    }

    /// Tasks that are not settled.
    pub fn open_tasks(&self) -> Vec<TaskId> {
        self.tasks.iter().filter(|(_, state)| !is_settled(**state)).map(|(id, _)| *id).collect()
    }

    pub fn died(&mut self) {
        self.states.clear();
        self.tasks.clear();
    }
}

fn is_settled(state: TaskState) -> bool {
    matches!(state, TaskState::Done | TaskState::Failed | TaskState::Superseded)
}
