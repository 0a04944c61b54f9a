//! Verbs that were accepted and are carried out in the background.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::Machine;
use crate::domain::effect::Effect;
use crate::domain::event::Verb;
use crate::domain::lifecycle::Workload;
use crate::domain::names::Uid;
use crate::domain::view::{State, Task, TaskId, TaskState, View};
use crate::limits;

/// All tasks, open and lately settled.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    last: u64,
    open: BTreeMap<TaskId, Open>,
    settled: VecDeque<TaskId>,
}

/// A task that is not settled.
#[derive(Debug)]
struct Open {
    task: Task,
    /// Failures of the workload when it was asked.
    failures: u64,
    /// For a restart or a rebuild: the count that has to be reached.
    count: u64,
}

impl Tasks {
    /// Tasks that are not settled.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// A task of the workload is not settled.
    pub(super) fn has_open(&self, uid: &Uid) -> bool {
        self.open.values().any(|open| open.task.uid == *uid)
    }

    fn of(&self, uid: &Uid) -> Vec<TaskId> {
        self.open.iter().filter(|(_, o)| o.task.uid == *uid).map(|(id, _)| *id).collect()
    }

    /// Settles a task: what to publish, and the old one that is forgotten for it.
    pub(super) fn end(
        &mut self,
        id: TaskId,
        state: TaskState,
        message: String,
    ) -> (Option<Arc<Task>>, Option<TaskId>) {
        let Some(open) = self.open.remove(&id) else { return (None, None) };
        self.settled.push_back(id);
        let full = self.settled.len() > limits::TASKS_KEPT;
        let dropped = if full { self.settled.pop_front() } else { None };
        (Some(Arc::new(Task { state, message, ..open.task })), dropped)
    }
}

impl Machine {
    /// Opens a task; an earlier one of the workload that wants another state is superseded.
    pub(super) fn open_task(&mut self, verb: &Verb, w: (&Uid, String, u64, u64)) -> TaskId {
        let (uid, key, failures, count) = w;
        if !matches!(verb, Verb::Kill(_)) {
            self.supersede_tasks(uid, verb.as_str());
        }
        self.tasks.last += 1;
        let id = TaskId(self.tasks.last);
        let task = Task {
            id,
            verb: verb.as_str(),
            uid: uid.clone(),
            key,
            state: TaskState::Pending,
            message: String::new(),
        };
        self.out.push(Effect::PublishTask(Arc::new(task.clone())));
        self.tasks.open.insert(id, Open { task, failures, count });
        id
    }

    /// Something else is wanted of the workload than its tasks are for.
    pub(super) fn supersede_tasks(&mut self, uid: &Uid, by: &str) {
        for earlier in self.tasks.of(uid) {
            self.end_task(earlier, TaskState::Superseded, format!("a later {by}"));
        }
    }

    /// A step for the workload was sent: its tasks are under way.
    pub(super) fn start_tasks(&mut self, uid: &Uid) {
        if self.holds_still() {
            // It is a look.
            return;
        }
        for open in self.tasks.open.values_mut() {
            if open.task.uid == *uid && open.task.state == TaskState::Pending {
                open.task.state = TaskState::Running;
                self.out.push(Effect::PublishTask(Arc::new(open.task.clone())));
            }
        }
    }

    /// The tasks that are settled by how the workload stands now.
    pub(super) fn tasks_settled_by(&self, uid: &Uid) -> Vec<(TaskId, TaskState, String)> {
        if self.tasks.open.is_empty() {
            return Vec::new();
        }
        let Some(w) = self.workloads.get(uid) else { return Vec::new() };
        let Some(view) = &w.view else { return Vec::new() };
        let mine = self.tasks.open.values().filter(|open| open.task.uid == *uid);
        mine.filter_map(|open| {
            let (state, message) = verdict(open, w, view)?;
            Some((open.task.id, state, message))
        })
        .collect()
    }

    /// The workload is gone: its removal is done.
    pub(super) fn end_tasks_of_removed(&mut self, uid: &Uid) {
        for id in self.tasks.of(uid) {
            let removal = self.tasks.open.get(&id).is_some_and(|o| o.task.verb == "rm");
            let state = if removal { TaskState::Done } else { TaskState::Superseded };
            self.end_task(id, state, String::new());
        }
    }

    pub(super) fn settle_tasks(&mut self, uid: &Uid) {
        let settled = self.tasks_settled_by(uid);
        for (id, state, message) in settled {
            self.end_task(id, state, message);
        }
    }

    pub(super) fn end_task(&mut self, id: TaskId, state: TaskState, message: String) {
        let (task, dropped) = self.tasks.end(id, state, message);
        if let Some(task) = task {
            self.out.push(Effect::PublishTask(task));
        }
        if let Some(dropped) = dropped {
            self.out.push(Effect::DropTask(dropped));
        }
    }
}

fn verdict(open: &Open, w: &Workload, view: &View) -> Option<(TaskState, String)> {
    let done = Some((TaskState::Done, String::new()));
    match open.task.verb {
        "stop" if view.state == State::StoppedOk => done,
        "restart" if w.record.restarts_done < open.count => None,
        "rebuild" if w.rebuild_failed >= open.count => {
            Some((TaskState::Failed, view.last_error.clone()))
        }
        "rebuild" if w.record.rebuilds_done < open.count => None,
        "start" | "restart" | "rebuild" => match view.state {
            State::RunningOk | State::SucceededOk => done,
            State::FailedExecFailed | State::FailedLost | State::FailedUnknown => {
                Some((TaskState::Failed, view.info.clone()))
            }
            // It was tried, and that failed: the rest goes on in the background.
            _ if w.failures > open.failures => {
                Some((TaskState::Failed, view.error_message.clone()))
            }
            _ => None,
        },
        _ => None,
    }
}
