//! Health checks as the engine is told them, and as it tells of them. Pure.

use serde::Serialize;

use super::wire;
use crate::domain::health_check::{Health, HealthCheck, Verdict};
use crate::domain::time::Span;
use crate::limits::HEALTH_WORDS_BYTES;

/// `Healthcheck` of a create. Times in nanoseconds.
#[derive(Serialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Healthcheck<'a> {
    test: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_period: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
}

impl<'a> Healthcheck<'a> {
    /// What makes the engine run `check`.
    pub fn new(check: &'a HealthCheck) -> Self {
        let HealthCheck::On(check) = check else {
            return Self { test: vec!["NONE"], ..Self::default() };
        };
        Self {
            test: check.test.words(),
            interval: Some(nanoseconds(check.interval)),
            timeout: Some(nanoseconds(check.timeout)),
            start_period: Some(nanoseconds(check.start_period)),
            retries: Some(check.retries),
        }
    }
}

fn nanoseconds(span: Span) -> u64 {
    span.0 * 1_000_000
}

/// What an inspect says; `None`: there is no check, or it cannot be read.
pub(super) fn verdict(told: &wire::Health) -> Option<Verdict> {
    let health = Health::parse(&told.status)?;
    let failed = || told.log.iter().rev().find(|probe| probe.exit_code != 0);
    let words = match health {
        Health::Starting | Health::Healthy => String::new(),
        Health::Unhealthy => failed().map_or_else(|| "its check failed".to_owned(), words),
    };
    Some(Verdict { health, words })
}

/// `exitCode=1 output=connection refused`. A probe that took too long has -1 and the engine's
/// words.
fn words(probe: &wire::Probe) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let output: String = probe.output.chars().map(printable).collect();
    match wire::at_most(output.trim(), HEALTH_WORDS_BYTES).trim_end() {
        "" => format!("exitCode={}", probe.exit_code),
        output => format!("exitCode={} output={output}", probe.exit_code),
    }
}

/// What the words for people in a listing hint at: `Up 5 minutes (unhealthy)`.
pub(super) fn hint(status: &str) -> Option<Health> {
    let (_, told) = status.strip_suffix(')')?.rsplit_once('(')?;
    Health::parse(told.strip_prefix("health: ").unwrap_or(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::health_check::{Check, Test};

    fn told(json: &str) -> Option<Verdict> {
        verdict(&serde_json::from_str(json).unwrap())
    }

    fn sent(check: &HealthCheck) -> String {
        serde_json::to_string(&Healthcheck::new(check)).unwrap()
    }

    #[test]
    fn a_check_is_sent_in_nanoseconds() {
        let words = ["/bin/probe", "--quick"].map(str::to_owned).to_vec();
        let mut check = Check::new(Test::Exec(words));
        (check.interval, check.start_period) = (Span(1_500), Span::seconds(5));
        assert_eq!(
            sent(&HealthCheck::On(check)),
            r#"{"Test":["CMD","/bin/probe","--quick"],"Interval":1500000000,"Timeout":30000000000,"#
                .to_owned() + r#""StartPeriod":5000000000,"Retries":3}"#
        );
        let shell = Check::new(Test::Shell("exit 0".to_owned()));
        assert!(sent(&HealthCheck::On(shell)).starts_with(r#"{"Test":["CMD-SHELL","exit 0"],"#));
        assert_eq!(sent(&HealthCheck::Off), r#"{"Test":["NONE"]}"#);
    }

    #[test]
    fn a_verdict_has_the_words_of_the_last_failure() {
        let json = r#"{"Status":"unhealthy","FailingStreak":3,"Log":[
            {"Start":"x","ExitCode":2,"Output":"older"},
            {"ExitCode":1,"Output":" bad\tthing\u001b[0m\n"}, {"ExitCode":0,"Output":"fine"}]}"#;
        let unhealthy = told(json).unwrap();
        assert_eq!(unhealthy.health, Health::Unhealthy);
        assert_eq!(unhealthy.words, "exitCode=1 output=bad thing [0m");
        let hung = r#"{"Status":"unhealthy","Log":[{"ExitCode":-1,
            "Output":"Health check exceeded timeout (1s)"}]}"#;
        let words = "exitCode=-1 output=Health check exceeded timeout (1s)";
        assert_eq!(told(hung).unwrap().words, words);
        for (json, words) in [
            (r#"{"Status":"unhealthy","Log":[{"ExitCode":7,"Output":"\n"}]}"#, "exitCode=7"),
            (r#"{"Status":"unhealthy","Log":null}"#, "its check failed"),
            (r#"{"Status":"starting","Log":[{"ExitCode":1,"Output":"a"}]}"#, ""),
            (r#"{"Status":"healthy","Log":[{"ExitCode":1,"Output":"a"}]}"#, ""),
        ] {
            assert_eq!(told(json).unwrap().words, words, "{json}");
        }
        for none in [r#"{"Status":"none"}"#, r#"{"Status":""}"#, r#"{"Status":7}"#, "{}"] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn words_are_bounded() {
        let long = "\u{20ac}".repeat(4_096);
        let json =
            format!(r#"{{"Status":"unhealthy","Log":[{{"ExitCode":1,"Output":"{long}"}}]}}"#);
        let words = told(&json).unwrap().words;
        assert!(words.len() <= HEALTH_WORDS_BYTES + "exitCode=1 output=".len(), "{}", words.len());
    }

    #[test]
    fn a_listing_hints() {
        for (status, health) in [
            ("Up 3 seconds (unhealthy)", Some(Health::Unhealthy)),
            ("Up 2 hours (healthy)", Some(Health::Healthy)),
            ("Up Less than a second (health: starting)", Some(Health::Starting)),
            ("Up Less than a second (Paused)", None),
            ("Exited (0) Less than a second ago", None),
            ("Exited (137)", None),
            ("Up 5 minutes", None),
            ("", None),
        ] {
            assert_eq!(hint(status), health, "{status}");
        }
    }
}
