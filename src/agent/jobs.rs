//! Jobs that wait for a worker, and those that have one.
//!
//! A signal or a removal may hang for as long as the process that it should end, and there may be
//! hundreds of those: such calls never take all workers. A stop comes before all that is forced,
//! so that a container that obeys does not wait behind those that do not.

use std::collections::{HashSet, VecDeque};

use super::worker::Job;
use crate::domain::effect::{ListId, Op, Step, StepId};
use crate::limits::WORKERS_SPARED;

/// The queue, and the account of what the workers have.
#[derive(Debug)]
pub struct JobQueue {
    workers: usize,
    /// Listings and steps that end nothing.
    plain: VecDeque<Job>,
    /// Signals that are obeyed or not, and are answered at once.
    stops: VecDeque<Step>,
    /// SIGKILL and removals, which the engine answers when they have come to something.
    forced: VecDeque<Step>,
    out: usize,
    /// Of `out`, steps that end something.
    ends_out: HashSet<StepId>,
}

impl JobQueue {
    /// An empty queue for so many workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            plain: VecDeque::new(),
            stops: VecDeque::new(),
            forced: VecDeque::new(),
            out: 0,
            ends_out: HashSet::new(),
        }
    }

    /// Takes in a listing. It comes ahead of the steps: what they wait for may be in it.
    pub fn add_list(&mut self, id: ListId) {
        self.plain.push_front(Job::List(id));
    }

    /// Takes in a step.
    pub fn add(&mut self, step: Step) {
        match &step.op {
            Op::Signal(_, signal) if signal != "SIGKILL" => self.stops.push_back(step),
            Op::Signal(..) | Op::Remove(_) => self.forced.push_back(step),
            _ => self.plain.push_back(Job::Step(step)),
        }
    }

    /// The next job for which there is a worker. It counts as handed out.
    pub fn next(&mut self) -> Option<Job> {
        if self.out >= self.workers {
            return None;
        }
        let may_end = self.ends_out.len() < self.workers.saturating_sub(WORKERS_SPARED).max(1);
        let stop = if may_end { self.stops.pop_front() } else { None };
        let job = stop.map(Job::Step).or_else(|| self.plain.pop_front());
        let forced = if may_end && job.is_none() { self.forced.pop_front() } else { None };
        let job = job.or(forced.map(Job::Step))?;
        if let Job::Step(Step { id, op: Op::Signal(..) | Op::Remove(_), .. }) = &job {
            self.ends_out.insert(*id);
        }
        self.out += 1;
        Some(job)
    }

    /// A step that was handed out has ended.
    pub fn end_step(&mut self, step: StepId) {
        self.ends_out.remove(&step);
        self.out -= 1;
    }

    /// A listing that was handed out has ended.
    pub fn end_list(&mut self) {
        self.out -= 1;
    }

    /// Jobs that workers have.
    pub fn out(&self) -> usize {
        self.out
    }

    /// Forgets what waits.
    pub fn clear(&mut self) {
        self.plain.clear();
        self.stops.clear();
        self.forced.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::ContainerId;

    fn step(id: u64, op: Op) -> Step {
        Step { id: StepId(id), after: None, op }
    }

    fn signal(id: u64, signal: &str) -> Step {
        step(id, Op::Signal(ContainerId::new("c"), signal.to_owned()))
    }

    fn look(id: u64) -> Step {
        step(id, Op::Inspect("c".to_owned()))
    }

    /// Numbers of the steps that are handed out now; a listing is 0.
    fn handed_out(queue: &mut JobQueue) -> Vec<u64> {
        let number = |job| match job {
            Job::Step(step) => step.id.0,
            Job::List(_) => 0,
        };
        std::iter::from_fn(|| queue.next()).map(number).collect()
    }

    #[test]
    fn what_ends_something_never_takes_all_workers() {
        let mut queue = JobQueue::new(4);
        for id in 1..=3 {
            queue.add(signal(id, "SIGKILL"));
            queue.add(step(id + 10, Op::Remove("c".to_owned())));
            queue.add(signal(id + 20, "SIGTERM"));
        }
        assert_eq!(handed_out(&mut queue), [21, 22, 23]);
        queue.add(look(31));
        queue.add(look(32));
        assert_eq!(handed_out(&mut queue), [31]);
        queue.end_step(StepId(31));
        assert_eq!(handed_out(&mut queue), [32]);
        queue.end_step(StepId(32));
        assert_eq!(handed_out(&mut queue), [0; 0], "one is spared");
        for id in [21, 22, 23] {
            queue.end_step(StepId(id));
        }
        assert_eq!(handed_out(&mut queue), [1, 11, 2]);
    }

    #[test]
    fn a_stop_comes_before_what_is_forced_and_a_listing_before_other_steps() {
        let mut queue = JobQueue::new(4);
        queue.add(signal(1, "SIGKILL"));
        queue.add(look(2));
        queue.add_list(ListId(1));
        queue.add(signal(3, "SIGINT"));
        assert_eq!(handed_out(&mut queue), [3, 0, 2, 1]);
        assert_eq!(queue.out(), 4);
        queue.end_list();
        assert_eq!(queue.out(), 3);
    }

    #[test]
    fn one_worker_does_everything() {
        let mut queue = JobQueue::new(1);
        queue.add(signal(1, "SIGKILL"));
        assert_eq!(handed_out(&mut queue), [1]);
        queue.add(look(2));
        assert_eq!(handed_out(&mut queue), [0; 0]);
        queue.end_step(StepId(1));
        assert_eq!(handed_out(&mut queue), [2]);
    }
}
