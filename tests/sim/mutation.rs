//! Breaks what the machine says, on purpose: each checker has to see it. The machine itself is as
//! it is; what it wants is bent on its way.

use std::sync::Arc;

use bargee::domain::effect::{Answer, Commit, CommitId, Effect, Level, Op, Step, StepId};
use bargee::domain::names::{ContainerId, Source};
use bargee::domain::view::{State, TaskState, View};

use super::acts::Script;
use super::checkers::containers::is_ours;
use super::draw;
use super::memory_engine::MemoryEngine;
use super::run;
use super::shrink;

/// What is broken, and what the bending has to remember.
#[derive(Clone, Debug)]
pub struct Mutation {
    breach: Breach,
    last: u64,
    drains: u64,
}

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Breach {
    /// With a container every other one of its workload is started.
    StartsAll,
    /// What is stopped is started again.
    StartsStopped,
    /// What has run is not started again.
    GivesUp,
    /// The old container of an update goes before the new one is made.
    RemovesFirst,
    /// The old container of an update goes once the new one has been seen.
    RemovesSoon,
    /// Something is started right after reconciling is said to be held.
    HoldsNothing,
    /// What ended well is not started again.
    RerunsNothing,
    /// Something is started once all was stopped for a drain.
    StartsDrained,
    /// A drain counts.
    CountsDrained,
    /// Removals are answered and not done.
    ForgetsRemovals,
    /// Creates do not wait for their intent.
    SkipsIntents,
    /// Signals go to what is not bargee's, too.
    IsCareless,
    /// Declarations are said to be durable and are not.
    LosesDeclarations,
    /// A generation is shown that there is not.
    ShowsTooMuch,
    /// The answer leaves before what it speaks of is shown.
    ShowsTooLate,
    /// Asks are not answered.
    SwallowsAnswers,
    /// Asks are answered twice.
    AnswersTwice,
    /// Tasks are never said to be done.
    KeepsTasks,
    /// Journal entries are never said to be settled.
    KeepsEntries,
    /// What files declare is not shown.
    HidesFiles,
    /// Something is written with each listing.
    IsRestless,
    /// Restarts are counted twice.
    CountsTwice,
    /// It says itself that it is wrong.
    Stumbles,
}

impl Mutation {
    pub fn new(breach: Breach) -> Self {
        Self { breach, last: 1_000_000_000, drains: 0 }
    }

    /// What comes of these effects.
    pub fn bend(&mut self, effects: Vec<Effect>, engine: &MemoryEngine) -> Vec<Effect> {
        let answers = effects.iter().any(|effect| matches!(effect, Effect::Answer(..)));
        if self.breach == Breach::ShowsTooLate && answers {
            // A change of state that is told without its view is another checker's.
            let hides = |effect: &Effect| {
                matches!(effect, Effect::Publish(_, Some(_)) | Effect::Transition(_))
            };
            return effects.into_iter().filter(|effect| !hides(effect)).collect();
        }
        let mut bent = Vec::new();
        for effect in effects {
            self.bend_one(effect, engine, &mut bent);
        }
        bent
    }

    /// The store loses these.
    pub fn loses(&self, group: &[Commit]) -> bool {
        self.breach == Breach::LosesDeclarations && group.iter().any(|commit| commit.declares)
    }

    /// Removals are not done.
    pub fn forgets_removals(&self) -> bool {
        self.breach == Breach::ForgetsRemovals
    }

    fn bend_one(&mut self, effect: Effect, engine: &MemoryEngine, bent: &mut Vec<Effect>) {
        match (self.breach, &effect) {
            (Breach::SwallowsAnswers, Effect::Answer(_, Answer::Accepted(_))) => return,
            (Breach::KeepsEntries, Effect::PublishEntry(_, None)) => return,
            (Breach::AnswersTwice, Effect::Answer(..)) => bent.push(effect.clone()),
            (Breach::KeepsTasks, Effect::PublishTask(task)) if task.state == TaskState::Done => {
                return;
            }
            (Breach::HidesFiles, Effect::Publish(_, Some(view)))
                if view.source == Source::Directory =>
            {
                return;
            }
            (Breach::HidesFiles, Effect::Transition(_)) => return,
            (Breach::Stumbles, Effect::List(_)) => {
                bent.push(Effect::Log(Level::Warn, "bug: a stumble".to_owned()));
            }
            (Breach::IsRestless, Effect::List(_)) => {
                self.last += 1;
                let id = CommitId(self.last);
                bent.push(Effect::Persist(Commit { id, declares: false, writes: Vec::new() }));
            }
            (Breach::HoldsNothing, Effect::Answer(_, Answer::Done(text)))
                if text.contains("is held") =>
            {
                let any = engine.all().find(|made| is_ours(made));
                let op = any.map(|made| Op::Start(made.id.clone(), None));
                bent.push(effect);
                return bent.extend(op.map(|op| self.extra(op)));
            }
            (Breach::StartsDrained, Effect::Drained) => {
                let any = engine.all().find(|made| is_ours(made));
                let op = any.map(|made| Op::Start(made.id.clone(), None));
                bent.extend(op.map(|op| self.extra(op)));
            }
            (Breach::CountsDrained, Effect::Drained) => self.drains += 1,
            (_, Effect::Run(step)) => return self.bend_step(step, engine, bent),
            (_, Effect::Publish(_, Some(view))) => return self.bend_view(view, bent),
            _ => {}
        }
        bent.push(effect);
    }

    fn bend_step(&mut self, step: &Step, engine: &MemoryEngine, bent: &mut Vec<Effect>) {
        let step = step.clone();
        let find = |id: &ContainerId| engine.find(id.as_str());
        match (self.breach, &step.op) {
            (Breach::GivesUp, Op::Start(id, _)) if find(id).is_some_and(|m| m.runs > 0) => return,
            (Breach::RerunsNothing, Op::Start(id, _))
                if find(id).is_some_and(|made| made.runs > 0 && made.exit_code == 0) =>
            {
                return;
            }
            (Breach::SkipsIntents, Op::Create(_)) => {
                return bent.push(Effect::Run(Step { after: None, ..step }));
            }
            (Breach::StartsAll, Op::Start(id, _)) => {
                let owner = find(id).and_then(|made| made.owner().cloned());
                let siblings = engine.all().filter(|made| made.owner() == owner.as_ref());
                for sibling in siblings.filter(|made| made.id != *id && owner.is_some()) {
                    bent.push(self.extra(Op::Start(sibling.id.clone(), None)));
                }
            }
            (Breach::RemovesFirst, Op::Create(new)) => {
                let uid = new.labels.get("bargee.uid").map(String::as_str);
                let old = engine.all().find(|m| m.owner().map(|uid| uid.as_str()) == uid);
                bent.extend(old.map(|old| self.extra(Op::Remove(old.id.to_string()))));
            }
            (Breach::RemovesSoon, Op::Inspect(target)) => {
                let owner = engine.find(target).filter(|m| m.is_live()).and_then(|m| m.owner());
                let siblings = engine.all().filter(|m| owner.is_some() && m.owner() == owner);
                for sibling in siblings.filter(|made| !made.is_live()) {
                    bent.push(self.extra(Op::Remove(sibling.id.to_string())));
                }
            }
            (Breach::IsCareless, Op::Signal(..)) => {
                let foreign = engine.all().find(|made| !is_ours(made) && !made.is_misnamed());
                let op = foreign.map(|made| Op::Signal(made.id.clone(), "SIGKILL".to_owned()));
                bent.extend(op.map(|op| self.extra(op)));
            }
            _ => {}
        }
        bent.push(Effect::Run(step));
    }

    fn bend_view(&mut self, view: &Arc<View>, bent: &mut Vec<Effect>) {
        let mut view = View::clone(view);
        let stopped = view.state == State::StoppedOk;
        let again = view.container.clone().filter(|_| stopped);
        match self.breach {
            Breach::CountsDrained => view.restart_count += self.drains,
            Breach::CountsTwice => view.restart_count *= 2,
            Breach::ShowsTooMuch => {
                self.last += 1;
                view.generation += self.last % 2;
            }
            _ => {}
        }
        bent.push(Effect::Publish(view.uid.clone(), Some(Arc::new(view))));
        if self.breach == Breach::StartsStopped {
            bent.extend(again.map(|id| self.extra(Op::Start(id, None))));
        }
    }

    /// A step that the machine knows nothing of.
    fn extra(&mut self, op: Op) -> Effect {
        self.last += 1;
        Effect::Run(Step { id: StepId(self.last), after: None, op })
    }
}

// --- each checker bites ------------------------------------------------------------------------

/// Seeds in which a breach has to be found.
const SEEDS: u64 = 300;

/// The first world in which this checker finds this breach. Without the breach it finds nothing.
fn caught(breach: Breach, checker: &str) -> (Script, &'static str) {
    for seed in 0..SEEDS {
        let script = draw::script(seed);
        let outcome = run::run(&script, Some(Mutation::new(breach)), false);
        let Some(violation) = outcome.violation.filter(|found| found.checker == checker) else {
            continue;
        };
        let sound = run::run(&script, None, false);
        assert_eq!(sound.violation, None, "seed {seed}");
        return (script, violation.checker);
    }
    panic!("{breach:?} is not found by {checker} in {SEEDS} worlds");
}

macro_rules! bites {
    ($($test:ident: $breach:ident, $checker:literal;)*) => {
        $(
            #[test]
            fn $test() {
                caught(Breach::$breach, $checker);
            }
        )*
    };
}

bites! {
    two_containers_of_a_workload_are_seen: StartsAll, "twins";
    a_start_against_the_desired_state_is_seen: StartsStopped, "desired";
    a_workload_that_is_given_up_is_seen: GivesUp, "converge";
    a_working_container_that_goes_first_is_seen: RemovesFirst, "working";
    a_working_container_that_goes_too_soon_is_seen: RemovesSoon, "working";
    what_is_done_while_all_is_held_is_seen: HoldsNothing, "held";
    a_start_in_a_drain_is_seen: StartsDrained, "drain";
    a_drain_that_counts_is_seen: CountsDrained, "drain";
    a_job_that_a_boot_forgets_is_seen: RerunsNothing, "boot";
    what_is_left_behind_is_seen: ForgetsRemovals, "leftovers";
    a_step_without_an_intent_is_seen: SkipsIntents, "intents";
    what_is_done_to_others_is_seen: IsCareless, "careless";
    a_lost_change_is_seen: LosesDeclarations, "promises";
    a_generation_that_goes_back_is_seen: ShowsTooMuch, "shown";
    an_answer_before_its_view_is_seen: ShowsTooLate, "answers";
    a_missing_answer_is_seen: SwallowsAnswers, "asks";
    a_second_answer_is_seen: AnswersTwice, "asks";
    a_task_that_never_ends_is_seen: KeepsTasks, "tasks";
    an_entry_that_never_ends_is_seen: KeepsEntries, "journal";
    a_file_without_effect_is_seen: HidesFiles, "directory";
    a_world_that_never_rests_is_seen: IsRestless, "idle";
    a_wrong_count_is_seen: CountsTwice, "counts";
    a_bug_in_its_own_words_is_seen: Stumbles, "bug";
}

#[test]
fn a_failing_world_shrinks_to_what_it_takes() {
    let mutation = Mutation::new(Breach::StartsStopped);
    let (script, checker) = caught(Breach::StartsStopped, "desired");
    let small = shrink::shrink(&script, checker, Some(&mutation));
    let violation = run::run(&small, Some(mutation), false).violation;
    assert_eq!(violation.map(|found| found.checker), Some(checker));
    // It takes one that is declared, and one that is stopped.
    assert!(small.acts.len() <= 3, "{small:?}");
}
