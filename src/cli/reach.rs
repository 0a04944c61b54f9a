//! Whether a deployed workload got where `deploy --wait` wants it. Pure: readings and times in,
//! verdicts out.

use serde_json::Value;

use crate::api::wire::{AppliedItem, PullProgress, Workload};
use crate::cli::table;
use crate::domain::time::Span;
use crate::limits;

const HEALTHY: &str = "healthy";

/// The change of a workload that is pruned, in the answer to an apply.
pub const REMOVED: &str = "removed";

/// A workload on its way to the generation that was deployed.
#[derive(Clone, Debug)]
pub struct Goal {
    /// `application/name`.
    pub key: String,
    /// Identity.
    pub uid: String,
    generation: u64,
    /// It is to be gone.
    removed: bool,
    /// The run that is watched, and since when, by the client's clock.
    run: Option<(Run, u64)>,
    /// Its check keeps it from being there.
    unwell: bool,
    /// The reading before this one was hopeless too.
    hopeless: bool,
    verdict: Verdict,
}

/// One run of one container.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    container: String,
    started_at: u64,
}

/// How it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Not there yet; this is what it does.
    Waiting {
        /// Changes only when something happened.
        stage: String,
        /// How far it is, which changes all the time.
        detail: String,
    },
    /// It got there, and this is how it stands.
    Reached(String),
    /// It will not get there by itself, and this is why.
    Failed(String),
}

impl Goal {
    /// The goal that an apply set.
    pub fn new(applied: &AppliedItem) -> Self {
        Self {
            key: applied.key.clone(),
            uid: applied.uid.clone(),
            generation: applied.generation,
            removed: applied.change == REMOVED,
            run: None,
            unwell: false,
            hopeless: false,
            verdict: Verdict::Waiting { stage: "accepted".to_owned(), detail: String::new() },
        }
    }

    /// How it stands.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// It got there, or will not.
    pub fn is_settled(&self) -> bool {
        !matches!(self.verdict, Verdict::Waiting { .. })
    }

    /// Takes a reading at `now_ms`; `None`: the workload is gone. A settled goal stays as it is.
    pub fn judge(&mut self, reading: Option<&Workload>, now_ms: u64) {
        if !self.is_settled() {
            self.verdict = match reading {
                Some(workload) if self.removed => waiting(workload),
                None if self.removed => Verdict::Reached("it is gone".to_owned()),
                Some(workload) => self.look(workload, now_ms),
                None => Verdict::Failed("it was removed meanwhile".to_owned()),
            };
        }
    }

    /// The time is up.
    pub fn give_up(&mut self, waited_ms: u64) {
        if let Verdict::Waiting { stage, .. } = &self.verdict {
            // A run that was seen for too short a time is no failure, so it is told apart.
            let short = match self.run {
                Some(_) if !self.unwell => {
                    format!(", but not yet for {}", Span(limits::DEPLOY_SETTLED_MS))
                }
                _ => String::new(),
            };
            let waited = Span(waited_ms);
            let why = format!("the wait of {waited} is over: {stage}{short}");
            self.verdict = Verdict::Failed(why);
        }
    }

    fn look(&mut self, workload: &Workload, now_ms: u64) -> Verdict {
        if let Some(failed) = &workload.failed_update
            && failed.generation >= self.generation
        {
            let (generation, cause) = (failed.generation, &failed.cause);
            // When, `ps` and `inspect` tell.
            let again = if failed.retries { " (it will be tried again)" } else { "" };
            return Verdict::Failed(format!(
                "the update to generation {generation} failed: {cause}{again}"
            ));
        }
        match workload.desired_state.as_str() {
            "stopped" => return Verdict::Reached("it is stopped on purpose".to_owned()),
            "deleted" => return Verdict::Failed("it is being removed".to_owned()),
            _ => {}
        }
        if self.is_hopeless(workload) {
            return Verdict::Failed(why(workload));
        }
        let present = workload.observed_generation >= self.generation;
        match workload.state.as_str() {
            "Running" if present => self.running(workload, now_ms),
            "Succeeded" if present => Verdict::Reached("it has succeeded".to_owned()),
            _ => {
                self.run = None;
                waiting(workload)
            }
        }
    }

    /// Two readings in a row, since the first one after an apply may still be of the time before.
    fn is_hopeless(&mut self, workload: &Workload) -> bool {
        let now = workload.state == "Failed" || workload.runtime_state == "FAILED";
        std::mem::replace(&mut self.hopeless, now) && now
    }

    fn running(&mut self, workload: &Workload, now_ms: u64) -> Verdict {
        let run = Run { container: workload.container_id.clone(), started_at: workload.started_at };
        let since = match &self.run {
            Some((known, since)) if *known == run => *since,
            _ => now_ms,
        };
        self.run = Some((run, since));
        let ran_ms = now_ms.saturating_sub(since);
        let checked = declares_check(workload);
        self.unwell = checked && workload.health != HEALTHY;
        if self.unwell {
            return Verdict::Waiting { stage: unwell(workload), detail: String::new() };
        }
        if ran_ms >= limits::DEPLOY_SETTLED_MS {
            let how = if checked { "it runs and is healthy" } else { "it runs" };
            return Verdict::Reached(how.to_owned());
        }
        Verdict::Waiting {
            stage: workload.state_and_health(),
            detail: format!("for {}", table::span(ran_ms)),
        }
    }
}

/// The manifest has a health check that is on.
fn declares_check(workload: &Workload) -> bool {
    let manifest = workload.manifest.as_ref().map(|raw| raw.get()).unwrap_or_default();
    let manifest: Value = serde_json::from_str(manifest).unwrap_or_default();
    manifest.pointer("/spec/healthCheck/test/0").is_some_and(|form| form != "NONE")
}

/// It runs, and its check does not pass, or has not yet: why, as far as is known.
fn unwell(workload: &Workload) -> String {
    let state = workload.state_and_health();
    match workload.error_message.as_str() {
        "" => format!("{state}, its health check has not passed yet"),
        // Its own complaint, or what went before.
        error => format!("{}: {error}", workload.state_words()),
    }
}

fn waiting(workload: &Workload) -> Verdict {
    let cause = first_of([&workload.error_message, &workload.state_info]);
    let words = workload.state_words();
    let stage = if cause.is_empty() { words } else { format!("{words}: {cause}") };
    let detail = match workload.pull_progress {
        Some(pull) => progress(pull),
        // The time to the next try stands in it.
        None if !workload.error_message.is_empty() => workload.state_info.clone(),
        None => String::new(),
    };
    // Without an error the line itself may count down; it is kept out of what tells changes apart.
    if workload.next_attempt_at > 0 && workload.error_message.is_empty() {
        return Verdict::Waiting { stage: workload.state_words(), detail: cause.to_owned() };
    }
    Verdict::Waiting { stage, detail }
}

fn why(workload: &Workload) -> String {
    let cause = first_of([&workload.error_message, &workload.last_error, &workload.state_info]);
    match (cause, workload.exit_code) {
        ("", Some(code)) => format!("{}: exit code {code}", workload.state_words()),
        ("", None) => workload.state_words(),
        (cause, _) => format!("{}: {cause}", workload.state_words()),
    }
}

fn first_of<const N: usize>(texts: [&String; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).map_or("", String::as_str)
}

/// How far a pull has come, in words.
pub fn progress(pull: PullProgress) -> String {
    let done = table::bytes(pull.done_bytes);
    match pull.total_bytes {
        0 => format!("{done} pulled"),
        total => format!("{done} of {} pulled", table::bytes(total)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::wire::FailedUpdate;

    fn goal() -> Goal {
        Goal::new(&AppliedItem {
            key: "shop/web".to_owned(),
            uid: "u".to_owned(),
            generation: 2,
            change: "replaced".to_owned(),
        })
    }

    fn reading(state: &str, substate: &str, observed: u64) -> Workload {
        Workload {
            desired_state: "running".to_owned(),
            state: state.to_owned(),
            substate: substate.to_owned(),
            observed_generation: observed,
            container_id: "c1".to_owned(),
            started_at: 1,
            ..Workload::default()
        }
    }

    fn reached(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Reached(_))
    }

    #[test]
    fn running_counts_after_five_seconds_of_one_run() {
        let mut goal = goal();
        let mut web = reading("Running", "Ok", 2);
        goal.judge(Some(&web), 1_000);
        goal.judge(Some(&web), 5_999);
        assert!(!goal.is_settled());
        web.started_at = 2;
        goal.judge(Some(&web), 6_000);
        goal.judge(Some(&reading("Pending", "Starting", 2)), 7_000);
        goal.judge(Some(&web), 8_000);
        goal.judge(Some(&web), 12_999);
        assert!(!goal.is_settled());
        goal.judge(Some(&web), 13_000);
        assert!(reached(goal.verdict()));
    }

    /// It runs with a check of this form.
    fn checked(form: &str, health: &str, error: &str) -> Workload {
        let text = format!(r#"{{"spec":{{"healthCheck":{{"test":["{form}"]}}}}}}"#);
        Workload {
            health: health.to_owned(),
            error_message: error.to_owned(),
            manifest: serde_json::value::RawValue::from_string(text).ok(),
            ..reading("Running", "Ok", 2)
        }
    }

    #[test]
    fn healthy_is_waited_for_where_a_check_is_declared() {
        let mut goal = goal();
        for now in [0, 5_000, 100_000] {
            goal.judge(Some(&checked("CMD", "starting", "")), now);
            goal.judge(Some(&checked("CMD", "", "")), now);
            goal.judge(Some(&checked("CMD", "unhealthy", "unhealthy: exitCode=1")), now);
        }
        let mut failed = goal.clone();
        failed.give_up(60_000);
        let why = "the wait of 60s is over: Running(Ok): unhealthy: exitCode=1";
        assert_eq!(failed.verdict(), &Verdict::Failed(why.to_owned()));
        goal.judge(Some(&checked("CMD", "healthy", "")), 100_001);
        assert_eq!(goal.verdict(), &Verdict::Reached("it runs and is healthy".to_owned()));
    }

    #[test]
    fn a_check_that_is_off_or_of_an_image_is_not_waited_for() {
        let image = Workload { health: "unhealthy".to_owned(), ..reading("Running", "Ok", 2) };
        for web in [checked("NONE", "", ""), image] {
            let mut goal = goal();
            goal.judge(Some(&web), 0);
            goal.judge(Some(&web), 5_000);
            assert_eq!(goal.verdict(), &Verdict::Reached("it runs".to_owned()));
        }
    }

    #[test]
    fn the_old_generation_does_not_count() {
        let mut goal = goal();
        for now in [0, 10_000, 20_000] {
            goal.judge(Some(&reading("Running", "Ok", 1)), now);
            goal.judge(Some(&reading("Succeeded", "Ok", 1)), now);
        }
        assert!(!goal.is_settled());
        goal.judge(Some(&reading("Succeeded", "Ok", 2)), 30_000);
        assert!(reached(goal.verdict()));
    }

    #[test]
    fn stopped_on_purpose_counts_and_removed_does_not() {
        let with = |desired: &str| {
            let mut goal = goal();
            let web = Workload { desired_state: desired.to_owned(), ..reading("Stopped", "Ok", 1) };
            goal.judge(Some(&web), 0);
            goal.verdict().clone()
        };
        assert!(reached(&with("stopped")));
        assert_eq!(with("deleted"), Verdict::Failed("it is being removed".to_owned()));
        let mut gone = goal();
        gone.judge(None, 0);
        assert!(gone.is_settled() && !reached(gone.verdict()));
    }

    #[test]
    fn what_is_pruned_is_waited_for_until_it_is_gone() {
        let mut goal = Goal::new(&AppliedItem {
            key: "shop/old".to_owned(),
            uid: "u".to_owned(),
            generation: 1,
            change: REMOVED.to_owned(),
        });
        goal.judge(Some(&reading("Stopping", "RequestedAtRuntime", 1)), 0);
        assert!(!goal.is_settled());
        goal.judge(None, 1);
        assert!(reached(goal.verdict()));
    }

    #[test]
    fn what_cannot_heal_ends_the_wait_at_the_second_look() {
        let mut failed = reading("Failed", "ExecFailed", 2);
        failed.exit_code = Some(3);
        let mut refused = reading("Pending", "StartingFailed", 1);
        refused.runtime_state = "FAILED".to_owned();
        refused.error_message = "no such command".to_owned();
        let table = [
            (failed, "Failed(ExecFailed): exit code 3"),
            (refused, "Pending(StartingFailed): no such command"),
        ];
        for (reading, why) in table {
            let mut goal = goal();
            goal.judge(Some(&reading), 0);
            assert!(!goal.is_settled());
            goal.judge(Some(&reading), 1);
            assert_eq!(goal.verdict(), &Verdict::Failed(why.to_owned()));
        }
    }

    #[test]
    fn a_first_refusal_may_heal() {
        let mut goal = goal();
        let mut web = reading("Pending", "StartingFailed", 1);
        web.runtime_state = "QUEUED".to_owned();
        for now in 0..5 {
            goal.judge(Some(&web), now);
        }
        assert!(!goal.is_settled());
        goal.give_up(60_000);
        let why = "the wait of 60s is over: Pending(StartingFailed)";
        assert_eq!(goal.verdict(), &Verdict::Failed(why.to_owned()));
    }

    #[test]
    fn a_failed_update_counts_from_this_generation_on() {
        let failed = |generation| Workload {
            failed_update: Some(FailedUpdate {
                generation,
                cause: "no image".to_owned(),
                retries: false,
            }),
            ..reading("Running", "Ok", 1)
        };
        let mut goal = goal();
        goal.judge(Some(&failed(1)), 0);
        assert!(!goal.is_settled());
        goal.judge(Some(&failed(2)), 1);
        let why = "the update to generation 2 failed: no image";
        assert_eq!(goal.verdict(), &Verdict::Failed(why.to_owned()));
    }

    #[test]
    fn a_failed_update_says_whether_it_is_tried_again() {
        let mut web = reading("Running", "Ok", 1);
        web.failed_update =
            Some(FailedUpdate { generation: 2, cause: "no image".to_owned(), retries: true });
        let mut goal = goal();
        goal.judge(Some(&web), 0);
        let why = "the update to generation 2 failed: no image (it will be tried again)";
        assert_eq!(goal.verdict(), &Verdict::Failed(why.to_owned()));
    }

    #[test]
    fn what_counts_down_is_no_change_of_stage() {
        let stage = |info: &str, error: &str| {
            let web = Workload {
                state_info: info.to_owned(),
                error_message: error.to_owned(),
                next_attempt_at: 1,
                ..reading("Pending", "Starting", 1)
            };
            match waiting(&web) {
                Verdict::Waiting { stage, .. } => stage,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(stage("restart 1 in 9 s", ""), stage("restart 1 in 8 s", ""));
        assert_eq!(stage("restart 1 in 9 s", "exitCode=1"), "Pending(Starting): exitCode=1");
    }
}
