//! Health checks: what a manifest may declare, and what an engine says of a run.

use super::time::Span;
use crate::limits;

/// The check that a manifest declares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HealthCheck {
    /// None, not even the image's own.
    Off,
    /// This one, in place of the image's.
    On(Check),
}

/// A check that is run again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What is run in the container.
    pub test: Test,
    /// Time from the end of a probe to the next one.
    pub interval: Span,
    /// A probe that takes longer has failed, and is killed.
    pub timeout: Span,
    /// Failures within this time after a start do not count.
    pub start_period: Span,
    /// Failures in a row that make it unhealthy.
    pub retries: u32,
    /// What follows when it is unhealthy.
    pub on_unhealthy: OnUnhealthy,
}

/// What is run in the container; exit code 0 is good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test {
    /// A program and its arguments.
    Exec(Vec<String>),
    /// A line for the container's shell.
    Shell(String),
}

impl Test {
    /// As manifests and engines write it: its form, then its words.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Self::Exec(words) => {
                std::iter::once("CMD").chain(words.iter().map(String::as_str)).collect()
            }
            Self::Shell(line) => vec!["CMD-SHELL", line],
        }
    }
}

/// What follows when a workload is unhealthy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnUnhealthy {
    /// It is stopped and started again, like one that crashed.
    Restart,
    /// It is only reported.
    Report,
}

impl Check {
    /// `test` with the times that engines use where a check names none.
    pub fn new(test: Test) -> Self {
        Self {
            test,
            interval: Span(limits::HEALTH_INTERVAL_MS),
            timeout: Span(limits::HEALTH_TIMEOUT_MS),
            start_period: Span(0),
            retries: limits::HEALTH_RETRIES,
            on_unhealthy: OnUnhealthy::Restart,
        }
    }
}

/// What the check of a container came to in its present run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// No verdict yet.
    Starting,
    /// The last probes went well.
    Healthy,
    /// As many probes in a row failed as the check allows.
    Unhealthy,
}

impl Health {
    /// As it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }

    /// The inverse of [`Health::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Starting, Self::Healthy, Self::Unhealthy].into_iter().find(|h| h.as_str() == text)
    }
}

/// What an inspect says of the check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The verdict.
    pub health: Health,
    /// What the last probe that failed said, in one bounded line; empty while none counts.
    pub words: String,
}

impl Verdict {
    /// What it is called in `errorMessage` and `stateInfo`; `None`: nothing is wrong.
    pub fn complaint(&self) -> Option<String> {
        match (self.health, self.words.as_str()) {
            (Health::Starting | Health::Healthy, _) => None,
            (Health::Unhealthy, "") => Some("unhealthy".to_owned()),
            (Health::Unhealthy, words) => Some(format!("unhealthy: {words}")),
        }
    }
}
