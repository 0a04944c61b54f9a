//! The thread that owns the machine. It takes everything that waits, lets the machine step, and
//! carries the effects to the other threads without ever blocking on one of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::inbox::Mail;
use super::jobs::JobQueue;
use super::puller::PullJob;
use super::reconcile_log::{self, ReconcileLog};
use super::worker::Job;
use super::{Core, Rooms, now};
use crate::domain::effect::{Answer, Commit, CommitId, Effect, Level, Op, PullId, Step, StepId};
use crate::domain::event::{AskId, Event};
use crate::domain::machine::Machine;
use crate::engine::cancel::Cancel;
use crate::limits;
use crate::os::{clock, log_thread, thread};

/// Where effects go.
#[derive(Debug)]
pub struct Outlets {
    /// To the store.
    pub batches: Sender<Vec<Commit>>,
    /// To the workers.
    pub jobs: Sender<Job>,
    /// How many of them there are.
    pub workers: usize,
    /// To the workers that carry out starts and nothing else, so that starts which hang hold up
    /// nothing else.
    pub starts: Sender<Job>,
    /// To the pullers.
    pub pulls: Sender<PullJob>,
}

struct Monitor {
    machine: Machine,
    rooms: Rooms,
    mails: Receiver<Mail>,
    out: Outlets,

    /// Commits that wait until the writer is free: they become one transaction.
    batch: Vec<Commit>,
    commits_out: usize,
    /// Steps whose commit is not durable yet.
    gated: HashMap<CommitId, Vec<Step>>,
    jobs: JobQueue,
    starts: VecDeque<Step>,
    starts_out: HashSet<StepId>,
    pulls: VecDeque<(PullId, Arc<str>)>,
    pulls_out: HashMap<PullId, Arc<Cancel>>,
    asks: HashMap<AskId, Sender<(Answer, u64)>>,
    last_ask: u64,
    reconcile_log: ReconcileLog,
    drained: Sender<()>,
    /// When the stop has to be over, on the boot clock.
    stop_by_ms: Option<u64>,
}

/// Starts the monitor.
///
/// # Errors
/// The system has no more threads.
pub fn start(core: Core, out: Outlets, rooms: &Rooms) -> io::Result<JoinHandle<()>> {
    let rooms = rooms.clone();
    thread::spawn("monitor", move || {
        let Core { machine, first, mails, drained, ended, reconcile_every } = core;
        let jobs = JobQueue::new(out.workers);
        let reconcile_log = ReconcileLog::new(reconcile_every);
        let mut monitor = Monitor {
            machine,
            rooms,
            mails,
            out,
            batch: Vec::new(),
            commits_out: 0,
            gated: HashMap::new(),
            jobs,
            starts: VecDeque::new(),
            starts_out: HashSet::new(),
            pulls: VecDeque::new(),
            pulls_out: HashMap::new(),
            asks: HashMap::new(),
            last_ask: 0,
            reconcile_log,
            drained,
            stop_by_ms: None,
        };
        monitor.apply(first);
        monitor.run();
        drop(ended);
    })
}

impl Monitor {
    fn run(&mut self) {
        while !self.is_done() {
            self.dispatch();
            if let Some(mail) = self.wait() {
                self.take(mail);
                // What waits already shares the transaction that follows.
                for _ in 0..limits::TURN_MAILS {
                    let Ok(mail) = self.mails.try_recv() else { break };
                    self.take(mail);
                }
            } else if self.stop_by_ms.is_none() {
                self.step(Event::Deadline);
            }
        }
    }

    /// The next mail, or nothing when a deadline of the machine or of the stop has come.
    fn wait(&mut self) -> Option<Mail> {
        let machine = self.machine.next_deadline().map(|tick| tick.0);
        let deadline = self.stop_by_ms.or(machine);
        let Some(deadline) = deadline else { return self.mails.recv().ok() };
        let left = deadline.saturating_sub(clock::boot_ms());
        self.mails.recv_timeout(Duration::from_millis(left)).ok()
    }

    fn take(&mut self, mail: Mail) {
        match mail {
            Mail::Event(event) => {
                self.note_end(&event);
                self.step(event);
            }
            Mail::Ask(request, answer_to) => {
                self.last_ask += 1;
                let ask = AskId(self.last_ask);
                self.asks.insert(ask, answer_to);
                self.step(Event::Ask(ask, request));
            }
            Mail::Stop => {
                self.stop_by_ms = Some(clock::boot_ms() + limits::FINISH_MS);
                self.step(Event::Stopping);
                self.drop_queues();
                self.pulls_out.values().for_each(|cancel| cancel.cancel());
            }
        }
    }

    fn step(&mut self, event: Event) {
        let began = clock::boot_us();
        let cause = reconcile_log::cause(&event);
        let effects = self.machine.step(now(), event);
        let stepped = clock::boot_us().saturating_sub(began);
        let passed = self.machine.take_passed();
        if let Some(line) = self.reconcile_log.note(cause, passed, &effects, stepped) {
            log::info!(target: log_thread::FIGURES, "{line}");
        }
        self.apply(effects);
        let took = clock::boot_us().saturating_sub(began) / 1_000;
        if took >= limits::TURN_WARN_MS {
            log::warn!("a turn of the monitor took {took} ms");
        }
    }

    /// Keeps account of what is in flight.
    fn note_end(&mut self, event: &Event) {
        match event {
            Event::StepDone(step, _) if self.starts_out.remove(step) => {}
            Event::StepDone(step, _) => self.jobs.end_step(*step),
            Event::Listing(..) => self.jobs.end_list(),
            Event::PullDone(pull, _) => drop(self.pulls_out.remove(pull)),
            Event::Committed(commit, result) => {
                self.commits_out -= 1;
                let steps = self.gated.remove(commit).unwrap_or_default();
                if result.is_ok() {
                    steps.into_iter().for_each(|step| self.queue(step));
                }
            }
            _ => {}
        }
    }

    // --- effects -------------------------------------------------------------------------------

    fn apply(&mut self, effects: Vec<Effect>) {
        let published = self.rooms.published.clone();
        for effect in effects {
            match effect {
                Effect::Persist(commit) => self.batch.push(commit),
                Effect::Run(step) => match step.after {
                    Some(commit) => self.gated.entry(commit).or_default().push(step),
                    None => self.queue(step),
                },
                Effect::Release(step) => self.release(step),
                Effect::Pull(pull, image) => self.pulls.push_back((pull, image)),
                Effect::CancelPull(pull) => self.cancel_pull(pull),
                Effect::List(id) => self.jobs.add_list(id),
                Effect::Identify => published.ask_identity(),
                Effect::ReopenStream => {
                    published.ask_reopen();
                    self.rooms.engine.close_events();
                }
                Effect::Answer(ask, answer) => self.answer(ask, answer),
                // Of one drain there is one end, and room for it.
                Effect::Drained => drop(self.drained.try_send(())),
                Effect::Log(Level::Warn, text) => log::warn!("{text}"),
                Effect::Log(Level::Info, text) => log::info!("{text}"),
                shown @ (Effect::Publish(..)
                | Effect::PublishStatus(_)
                | Effect::PublishTask(_)
                | Effect::DropTask(_)
                | Effect::PublishEntry(..)
                | Effect::Transition(_)) => drop(published.take(shown)),
            }
        }
    }

    fn queue(&mut self, step: Step) {
        match step.op {
            Op::Start(..) => self.starts.push_back(step),
            _ => self.jobs.add(step),
        }
    }

    fn cancel_pull(&mut self, pull: PullId) {
        self.pulls.retain(|(waiting, _)| *waiting != pull);
        if let Some(cancel) = self.pulls_out.get(&pull) {
            cancel.cancel();
        }
    }

    fn release(&mut self, id: StepId) {
        let gated = self.gated.values_mut();
        let released = gated.flat_map(|steps| steps.extract_if(.., |step| step.id == id));
        let released: Vec<Step> = released.collect();
        released.into_iter().for_each(|step| self.queue(step));
    }

    fn answer(&mut self, ask: AskId, answer: Answer) {
        let Some(answer_to) = self.asks.remove(&ask) else { return };
        let revision = self.rooms.published.revision();
        // Who asked may have given up; the channel has room for the one answer.
        let _ = answer_to.try_send((answer, revision));
    }

    // --- dispatch ------------------------------------------------------------------------------

    /// Hands out what the other threads have room for. The account of what is in flight keeps each
    /// channel from being full, so nothing here blocks.
    fn dispatch(&mut self) {
        if self.commits_out == 0 && !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            let commits = batch.len();
            if self.out.batches.try_send(batch).is_ok() {
                self.commits_out = commits;
            } else {
                log::error!("bug: the store's inbox is full or closed");
            }
        }
        while let Some(job) = self.jobs.next() {
            if self.out.jobs.try_send(job).is_err() {
                log::error!("bug: the workers' inbox is full or closed");
                break;
            }
        }
        while self.starts_out.len() < limits::STARTS {
            let Some(step) = self.starts.pop_front() else { break };
            let id = step.id;
            if self.out.starts.try_send(Job::Step(step)).is_err() {
                log::error!("bug: the inbox of the starts is full or closed");
                break;
            }
            self.starts_out.insert(id);
        }
        while self.pulls_out.len() < limits::PULLERS {
            let Some((pull, image)) = self.pulls.pop_front() else { break };
            let cancel = Arc::<Cancel>::default();
            let job = PullJob { pull, image, cancel: cancel.clone() };
            if self.out.pulls.try_send(job).is_err() {
                log::error!("bug: the pullers' inbox is full or closed");
                break;
            }
            self.pulls_out.insert(pull, cancel);
        }
    }

    // --- stop ----------------------------------------------------------------------------------

    fn drop_queues(&mut self) {
        self.jobs.clear();
        self.starts.clear();
        self.pulls.clear();
        self.gated.clear();
    }

    /// After a stop was asked for: steps and commits in flight have ended, or their time is over,
    /// and what the machine still had to write is on its way to the writer.
    fn is_done(&mut self) -> bool {
        let Some(by) = self.stop_by_ms else { return false };
        self.drop_queues();
        let late = clock::boot_ms() >= by;
        let steps_out = self.jobs.out() + self.starts_out.len();
        if !late && (steps_out > 0 || self.commits_out > 0) {
            return false;
        }
        let last = self.machine.flush_all();
        self.apply(last);
        // Who joins the writer waits for this last batch.
        self.dispatch();
        if !self.batch.is_empty() {
            log::warn!("the store did not take the last observations in time");
        }
        true
    }
}
