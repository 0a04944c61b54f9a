//! Declarations and verbs: checked, made durable, then carried over into the state. Nothing is
//! changed or shown before its commit is durable. One declaration is on its way at a time, the rest
//! waits in a bounded queue, so that each is checked against what is really there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Machine;
use super::commits::Purpose;
use crate::domain::declared::Declared;
use crate::domain::effect::{Answer, Applied, Change, CommitId, Effect, Level, Refusal, Write};
use crate::domain::event::{Apply, AskId, Request, Verb};
use crate::domain::gather::Gather;
use crate::domain::lifecycle::{Slot, Workload};
use crate::domain::names::{Key, Label, Source, Uid};
use crate::domain::record::{Desired, Origin, OwedStart, Record};
use crate::domain::spec_hash::spec_hash;
use crate::limits;

/// The declaration that is on its way to the store.
#[derive(Debug)]
pub(super) struct Pending {
    commit: CommitId,
    changes: Vec<PendingChange>,
    reply: Reply,
}

/// Who hears of it once it is durable.
#[derive(Debug)]
pub(super) enum Reply {
    /// Who asked is answered with this.
    Answer(AskId, Answer),
    /// Who asked for a verb is answered with its task.
    Task(AskId),
    /// Nobody asked: a line of the log says this.
    Log(String),
}

#[derive(Debug)]
pub(super) enum PendingChange {
    Insert(Box<Record>),
    Redeclare(Uid, Arc<Declared>),
    /// Another file declares it, or the same one elsewhere.
    Move(Uid, Origin),
    Verb(Uid, Verb),
    /// It waits for another engine no longer.
    AcceptEngine(Uid),
}

impl PendingChange {
    /// The workload that changes; `None`: it is new.
    fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Insert(_) => None,
            Self::Redeclare(uid, _)
            | Self::Move(uid, _)
            | Self::Verb(uid, _)
            | Self::AcceptEngine(uid) => Some(uid),
        }
    }
}

impl Machine {
    pub(super) fn on_ask(&mut self, ask: AskId, request: Request) {
        if let Err(refusal) = self.check_not_ending() {
            return self.answer(ask, Answer::Refused(refusal));
        }
        let is_change = !matches!(
            request,
            Request::Replay(_) | Request::DropEntry(_) | Request::Quiesce(_) | Request::Resume
        );
        if is_change && !self.is_open() {
            let text =
                "the agent brings to an end what was in flight when it last ended; try again";
            return self.answer(ask, Answer::Refused(Refusal::Busy(text.to_owned())));
        }
        if self.pending.is_none() || !is_change {
            return self.begin(ask, request);
        }
        if self.waiting_asks.len() >= limits::ASK_QUEUE {
            let text = "too many changes wait for the store already; try again".to_owned();
            return self.answer(ask, Answer::Refused(Refusal::Busy(text)));
        }
        self.waiting_asks.push_back((ask, request));
    }

    pub(super) fn answer(&mut self, ask: AskId, answer: Answer) {
        self.answers.push(Effect::Answer(ask, answer));
    }

    fn begin(&mut self, ask: AskId, request: Request) {
        let begun = match request {
            Request::Apply(apply) => self.begin_apply(ask, apply),
            Request::Verb(verb, uid) => self.begin_verb(ask, verb, uid),
            Request::Replay(seq) => self.ask_replay(ask, seq),
            Request::DropEntry(seq) => self.ask_drop(ask, seq),
            Request::Adopt(uid) => self.ask_adopt(ask, uid),
            Request::Confirm => self.ask_confirm(ask),
            Request::Quiesce(span) => {
                self.ask_quiesce(ask, span);
                Ok(())
            }
            Request::Resume => {
                self.ask_resume(ask);
                Ok(())
            }
        };
        if let Err(refusal) = begun {
            self.answer(ask, Answer::Refused(refusal));
        }
    }

    // --- apply ---------------------------------------------------------------------------------

    fn begin_apply(&mut self, ask: AskId, apply: Apply) -> Result<(), Refusal> {
        let mut changes = Vec::new();
        let mut applied = Vec::new();
        let pruned = if apply.prune { self.pruned(&apply) } else { Vec::new() };
        for (declared, fresh) in apply.declared.into_iter().zip(apply.uids) {
            let key = declared.key.clone();
            let known = self.by_key.get(&key).and_then(|uid| self.workloads.get(uid));
            let Some(w) = known else {
                let record = Record::new(fresh, apply.source, declared, self.now.wall_ms);
                let uid = record.uid.clone();
                applied.push(Applied { key, uid, generation: 1, change: Change::Created });
                changes.push(PendingChange::Insert(Box::new(record)));
                continue;
            };
            let record = &w.record;
            if record.source != apply.source {
                return Err(Refusal::Conflict(self.declared_by_other(record)));
            }
            let uid = record.uid.clone();
            let (generation, mut change) = redeclared(w, &declared);
            if change != Change::Unchanged {
                changes.push(PendingChange::Redeclare(uid.clone(), declared));
            }
            if apply.start && record.desired == Desired::Stopped {
                changes.push(PendingChange::Verb(uid.clone(), Verb::Start));
                change = if change == Change::Unchanged { Change::Started } else { change };
            }
            applied.push(Applied { key, uid, generation, change });
        }
        for Applied { uid, .. } in &pruned {
            changes.push(PendingChange::Verb(uid.clone(), Verb::Remove));
        }
        applied.extend(pruned);
        self.check_room(&changes)?;
        if apply.dry_run || changes.is_empty() {
            self.answer(ask, Answer::Applied(applied));
            return Ok(());
        }
        self.declare(changes, Reply::Answer(ask, Answer::Applied(applied)));
        Ok(())
    }

    /// Workloads of the same source and the same applications that are not declared any more.
    fn pruned(&self, apply: &Apply) -> Vec<Applied> {
        let kept: BTreeSet<&Key> = apply.declared.iter().map(|one| &one.key).gather();
        let applications: BTreeSet<&Label> = kept.iter().map(|key| &key.application).gather();
        let others = self
            .by_key
            .iter()
            .filter(|(key, _)| applications.contains(&key.application) && !kept.contains(key));
        let others = others.filter_map(|(key, uid)| Some((key, &self.workloads.get(uid)?.record)));
        let own = others.filter(|(_, record)| record.source == apply.source);
        own.map(|(key, record)| Applied {
            key: key.clone(),
            uid: record.uid.clone(),
            generation: record.generation,
            change: Change::Removed,
        })
        .collect()
    }

    /// Whether the device takes so many more.
    pub(super) fn check_room(&self, changes: &[PendingChange]) -> Result<(), Refusal> {
        let added = changes.iter().filter(|c| matches!(c, PendingChange::Insert(_))).count();
        if self.workloads.len() + added > limits::WORKLOADS {
            let most = limits::WORKLOADS;
            return Err(Refusal::Conflict(format!("a device holds at most {most} workloads")));
        }
        Ok(())
    }

    /// A key has one source.
    fn declared_by_other(&self, record: &Record) -> String {
        let (key, source) = (&record.declared.key, record.source.as_str());
        match &record.origin {
            Some(Origin { file, .. }) => format!(
                "{key} is declared by {source}, in {}/{file}; change it there, or take it out of \
                 that file first",
                self.directory.path()
            ),
            None => format!("{key} is declared by {source}"),
        }
    }

    // --- verbs ---------------------------------------------------------------------------------

    fn begin_verb(&mut self, ask: AskId, verb: Verb, uid: Uid) -> Result<(), Refusal> {
        let Some(w) = self.workloads.get(&uid) else {
            return Err(Refusal::NotFound(format!("there is no workload {uid} any more")));
        };
        let key = w.record.declared.key.clone();
        if w.record.desired == Desired::Deleted && verb != Verb::Remove {
            return Err(Refusal::Conflict(format!("{key} is being removed")));
        }
        if verb == Verb::Remove && w.record.source == Source::Directory {
            return Err(Refusal::Conflict(self.declared_by_other(&w.record)));
        }
        self.check_not_held(&verb)?;
        // One that replaces an open task needs no place of its own, so that what waits for an
        // engine that is away can always be stopped or removed.
        let replaces = !matches!(verb, Verb::Kill(_)) && self.tasks.has_open(&uid);
        if self.tasks.open() >= limits::TASK_QUEUE && !replaces {
            let text = format!("{} tasks are under way already; try again", limits::TASK_QUEUE);
            return Err(Refusal::Busy(text));
        }
        if let Verb::Kill(signal) = &verb {
            if w.kill.is_some() {
                return Err(Refusal::Busy(format!("{key}: a signal is on its way already")));
            }
            let signal = signal.clone();
            let task = self.task_for(&verb, &uid);
            if let Some(w) = self.workloads.get_mut(&uid) {
                w.kill = Some((task, signal));
                w.retry_at = None;
            }
            self.mark(&uid);
            self.answer(ask, Answer::Accepted(task));
            return Ok(());
        }
        self.declare(vec![PendingChange::Verb(uid, verb)], Reply::Task(ask));
        Ok(())
    }

    fn task_for(&mut self, verb: &Verb, uid: &Uid) -> crate::domain::view::TaskId {
        let (key, failures, count) = match self.workloads.get(uid) {
            Some(w) => {
                let Record { declared, restarts_asked, rebuilds_asked, .. } = &w.record;
                let count = if *verb == Verb::Rebuild { rebuilds_asked } else { restarts_asked };
                (declared.key.to_string(), w.failures, *count)
            }
            None => (String::new(), 0, 0),
        };
        let task = self.open_task(verb, (uid, key, failures, count));
        if !self.workloads.contains_key(uid) {
            // It was removed while this was being written: nobody else ends the task.
            self.end_tasks_of_removed(uid);
        }
        task
    }

    // --- the commit ----------------------------------------------------------------------------

    /// Sends the changes to the store. Their workloads are held until that ended: a step or a write
    /// of observations in between would be of the state before.
    pub(super) fn declare(&mut self, changes: Vec<PendingChange>, reply: Reply) {
        let mut records = Vec::with_capacity(changes.len());
        let mut places: BTreeMap<&Uid, usize> = BTreeMap::new();
        for change in &changes {
            if let PendingChange::Insert(record) = change {
                records.push((true, (**record).clone()));
            }
            let Some(uid) = change.uid() else { continue };
            let Some(w) = self.workloads.get_mut(uid) else { continue };
            w.held = true;
            let place = *places.entry(uid).or_insert(records.len());
            if place == records.len() {
                records.push((false, w.record.clone()));
            }
            change_record(&mut records[place].1, change);
        }
        let write = |(new, record): (bool, Record)| match (new, Arc::new(record)) {
            (true, record) => Write::Insert(record),
            (false, record) => Write::Update(record),
        };
        let writes = records.into_iter().map(write).collect();
        let commit = self.persist(Purpose::Declare, true, writes);
        self.pending = Some(Pending { commit, changes, reply });
    }

    /// The declaration is durable, or nothing of it is.
    pub(super) fn on_declared(&mut self, commit: CommitId, result: Result<(), String>) {
        let Some(pending) = self.pending.take_if(|pending| pending.commit == commit) else {
            return;
        };
        for uid in pending.changes.iter().filter_map(PendingChange::uid) {
            if let Some(w) = self.workloads.get_mut(uid) {
                w.held = false;
            }
            self.mark(uid);
        }
        match (result, pending.reply) {
            (Ok(()), reply) => self.carry_over(pending.changes, reply),
            (Err(text), Reply::Answer(ask, _) | Reply::Task(ask)) => {
                let text = format!("the store could not write the change, nothing changed: {text}");
                self.answer(ask, Answer::Refused(Refusal::Store(text)));
            }
            (Err(_), Reply::Log(_)) => self.retry_directory(),
        }
        while self.pending.is_none() {
            let Some((ask, request)) = self.waiting_asks.pop_front() else { break };
            self.begin(ask, request);
        }
    }

    fn carry_over(&mut self, changes: Vec<PendingChange>, reply: Reply) {
        let mut task = None;
        for change in changes {
            match change {
                PendingChange::Insert(record) => self.install(Workload::new(*record)),
                PendingChange::Redeclare(ref uid, _) => {
                    let uid = uid.clone();
                    self.change_workload(&uid, &change);
                }
                PendingChange::Move(ref uid, _) => {
                    if let Some(w) = self.workloads.get_mut(uid) {
                        change_record(&mut w.record, &change);
                    }
                }
                PendingChange::AcceptEngine(uid) => self.accepted_engine(&uid),
                PendingChange::Verb(ref uid, ref verb) => {
                    let (uid, verb) = (uid.clone(), verb.clone());
                    self.change_workload(&uid, &change);
                    if verb == Verb::Remove {
                        self.leave_key(&uid);
                    }
                    if matches!(reply, Reply::Task(_)) {
                        task = Some(self.task_for(&verb, &uid));
                    } else {
                        self.supersede_tasks(&uid, "apply");
                    }
                }
            }
        }
        match (reply, task) {
            (Reply::Answer(ask, answer), _) => self.answer(ask, answer),
            (Reply::Task(ask), Some(task)) => self.answer(ask, Answer::Accepted(task)),
            (Reply::Task(_), None) => {}
            (Reply::Log(text), _) => self.log(Level::Info, text),
        }
    }

    /// New wins: whatever it was waiting for, it is decided afresh.
    fn change_workload(&mut self, uid: &Uid, change: &PendingChange) {
        let Some(w) = self.workloads.get_mut(uid) else { return };
        change_record(&mut w.record, change);
        match change {
            PendingChange::Verb(_, Verb::Rebuild) => {
                w.rests_until_rebuilt = !w.may_live(Slot::Current);
            }
            // The pull may take hours, and it is wanted now.
            PendingChange::Verb(_, Verb::Start | Verb::Restart) => w.rests_until_rebuilt = false,
            _ => {}
        }
        w.wanted_hash = spec_hash(&w.record.declared);
        w.match_generation();
        w.hold = None;
        w.retry_at = None;
        w.unknowns = 0;
        w.recent_exits.clear();
        self.acquaintance.note_change(uid);
        self.mark(uid);
    }

    /// A workload on its way out holds its key no longer.
    fn leave_key(&mut self, uid: &Uid) {
        let Some(w) = self.workloads.get(uid) else { return };
        let key = w.record.declared.key.clone();
        if self.by_key.get(&key) == Some(uid) {
            self.by_key.remove(&key);
        }
        self.removals.entry(key).or_default().insert(uid.clone());
        self.directory.key_is_free();
    }
}

/// The generation after declaring `declared`, and what that changes.
pub(super) fn redeclared(w: &Workload, declared: &Declared) -> (u64, Change) {
    if same_manifest(&w.record.declared, declared) {
        return (w.record.generation, Change::Unchanged);
    }
    let kept = spec_hash(declared) == w.wanted_hash;
    let change = if kept { Change::Kept } else { Change::Replaced };
    (next_generation(&w.record), change)
}

fn same_manifest(a: &Declared, b: &Declared) -> bool {
    a.labels == b.labels && a.spec == b.spec
}

/// Above the row's and above what the container was made from, so that it always counts as newer.
fn next_generation(record: &Record) -> u64 {
    let made = record.current.as_ref().map_or(0, |current| current.generation);
    record.generation.max(made) + 1
}

fn change_record(record: &mut Record, change: &PendingChange) {
    match change {
        PendingChange::Insert(_) => {}
        PendingChange::Move(_, origin) => record.origin = Some(origin.clone()),
        PendingChange::AcceptEngine(_) => record.elsewhere = None,
        PendingChange::Redeclare(_, declared) => {
            record.generation = next_generation(record);
            record.declared = declared.clone();
            record.failed_update = None;
            fresh_tries(record);
        }
        PendingChange::Verb(_, verb) => match verb {
            Verb::Start => want_running(record),
            Verb::Restart => {
                want_running(record);
                record.restarts_asked += 1;
            }
            Verb::Rebuild => {
                // What ended stays ended if the rebuild fails: it is no start.
                record.desired = Desired::Running;
                record.owed_start = OwedStart::Uncounted;
                fresh_tries(record);
                record.rebuilds_asked += 1;
                record.restart_count = 0;
                record.failed_update = None;
            }
            Verb::Stop => {
                record.desired = Desired::Stopped;
                record.rebuilds_done = record.rebuilds_asked;
                fresh_tries(record);
            }
            Verb::Remove => record.desired = Desired::Deleted,
            Verb::Kill(_) => {}
        },
    }
}

fn want_running(record: &mut Record) {
    record.desired = Desired::Running;
    record.owed_start = OwedStart::Uncounted;
    fresh_tries(record);
    // Whatever ended it before, the operator wants it to run now.
    if let Some(exit) = &mut record.last_exit {
        exit.interrupted = true;
    }
}

fn fresh_tries(record: &mut Record) {
    record.wait = None;
    record.streak = 0;
    record.refusals = 0;
    record.failure_count = 0;
    record.forget_restarts();
}
