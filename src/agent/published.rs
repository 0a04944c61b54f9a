//! What readers see: replaced piece by piece by the monitor, shared with everybody, never waiting
//! for the monitor's work.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};

use crate::domain::effect::Effect;
use crate::domain::intent::{Entry, Seq};
use crate::domain::names::Uid;
use crate::domain::view::{Status, Task, TaskId, Transition, View};
use crate::limits;

/// The published state of the agent.
#[derive(Debug)]
pub struct Published {
    views: RwLock<BTreeMap<Uid, Arc<View>>>,
    status: RwLock<Arc<Status>>,
    tasks: RwLock<BTreeMap<TaskId, Arc<Task>>>,
    entries: RwLock<BTreeMap<Seq, Arc<Entry>>>,
    revision: AtomicU64,
    transitions: Mutex<Ring>,
    transition_came: Condvar,
    /// Streams end and waits return.
    pub stopping: AtomicBool,
    /// The event stream is closed on purpose, to be opened again.
    reopening: AtomicBool,
    /// The engine is to say what it calls itself ahead of the next listing.
    identifying: AtomicBool,
}

#[derive(Debug, Default)]
struct Ring {
    last: u64,
    items: VecDeque<(u64, Arc<Transition>)>,
}

impl Published {
    /// Nothing yet, at the revision that the store reached.
    pub fn new(revision: u64) -> Self {
        Self {
            views: RwLock::default(),
            status: RwLock::default(),
            tasks: RwLock::default(),
            entries: RwLock::default(),
            revision: AtomicU64::new(revision),
            transitions: Mutex::default(),
            transition_came: Condvar::new(),
            stopping: AtomicBool::new(false),
            reopening: AtomicBool::new(false),
            identifying: AtomicBool::new(false),
        }
    }

    // --- the monitor's side --------------------------------------------------------------------

    /// Carries out an effect that is about what is shown; hands any other back.
    pub fn take(&self, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Publish(uid, view) => self.show(uid, view),
            Effect::PublishStatus(status) => self.show_status(status),
            Effect::PublishTask(task) => self.show_task(task),
            Effect::DropTask(id) => self.drop_task(id),
            Effect::PublishEntry(seq, entry) => self.show_entry(seq, entry),
            Effect::Transition(transition) => self.add_transition(transition),
            other => return Some(other),
        }
        None
    }

    /// Shows a workload, or that it is gone.
    pub fn show(&self, uid: Uid, view: Option<Arc<View>>) {
        let mut views = self.views.write();
        match view {
            Some(view) => views.insert(uid, view),
            None => views.remove(&uid),
        };
    }

    /// Shows the agent's status.
    pub fn show_status(&self, status: Arc<Status>) {
        *self.status.write() = status;
    }

    /// Shows a task.
    pub fn show_task(&self, task: Arc<Task>) {
        self.tasks.write().insert(task.id, task);
    }

    /// Forgets a task.
    pub fn drop_task(&self, id: TaskId) {
        self.tasks.write().remove(&id);
    }

    /// What the store counts. It comes before what was declared is shown, and that before the
    /// answer, so a read after the answer is of this revision at least.
    pub fn set_revision(&self, revision: u64) {
        self.revision.store(revision, Ordering::Release);
    }

    /// Shows a journal entry, or that it is settled.
    pub fn show_entry(&self, seq: Seq, entry: Option<Arc<Entry>>) {
        let mut entries = self.entries.write();
        match entry {
            Some(entry) => entries.insert(seq, entry),
            None => entries.remove(&seq),
        };
    }

    /// Adds a transition and wakes who waits for one.
    pub fn add_transition(&self, transition: Transition) {
        let mut ring = self.transitions.lock();
        ring.last += 1;
        let number = ring.last;
        ring.items.push_back((number, Arc::new(transition)));
        if ring.items.len() > limits::TRANSITIONS_KEPT {
            ring.items.pop_front();
        }
        drop(ring);
        self.transition_came.notify_all();
    }

    /// The event stream is about to be closed on purpose.
    pub fn ask_reopen(&self) {
        self.reopening.store(true, Ordering::Release);
    }

    /// Whether the stream that just ended was closed on purpose; said once.
    pub fn take_reopen(&self) -> bool {
        self.reopening.swap(false, Ordering::AcqRel)
    }

    /// The engine is to say what it calls itself ahead of the next listing.
    pub fn ask_identity(&self) {
        self.identifying.store(true, Ordering::Release);
    }

    /// Whether the engine is to say what it calls itself; said once.
    pub fn take_identity(&self) -> bool {
        self.identifying.swap(false, Ordering::AcqRel)
    }

    /// Wakes who waits, so that it sees that the agent stops.
    pub fn wake_readers(&self) {
        // Under the lock, so that nobody is between its check and its wait.
        let _ring = self.transitions.lock();
        self.transition_came.notify_all();
    }

    // --- the readers' side ---------------------------------------------------------------------

    /// All workloads, by key.
    pub fn workloads(&self) -> Vec<Arc<View>> {
        let mut views: Vec<Arc<View>> = self.views.read().values().cloned().collect();
        views.sort_by(|a, b| a.declared.key.cmp(&b.declared.key));
        views
    }

    /// The agent's status.
    pub fn status(&self) -> Arc<Status> {
        self.status.read().clone()
    }

    /// A task.
    pub fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        self.tasks.read().get(&id).cloned()
    }

    /// The journal, in order.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.read().values().cloned().collect()
    }

    /// The number of declarations shown.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// The agent is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Transitions after `since`; waits up to `wait` for the first.
    pub fn transitions(&self, since: u64, wait: Duration) -> Vec<(u64, Arc<Transition>)> {
        let mut ring = self.transitions.lock();
        if ring.last <= since && !self.is_stopping() {
            let _ = self.transition_came.wait_for(&mut ring, wait);
        }
        ring.items.iter().filter(|(number, _)| *number > since).cloned().collect()
    }
}
