//! `spec.healthCheck`: reading it, and writing it again.

use serde::Serialize;

use super::quantity::{self, SPAN};
use super::{choice, shape};
use crate::domain::declared::RestartPolicy;
use crate::domain::health_check::{Check, HealthCheck, OnUnhealthy, Test};
use crate::domain::time::Span;
use crate::limits::{HEALTH_RETRIES_MAX, HEALTH_SPAN_MIN_MS};
use crate::yaml::field::{Field, Members};
use crate::yaml::{Flaws, Value, shown};

/// The words of `onUnhealthy`.
const ON_UNHEALTHY: &[(&str, OnUnhealthy)] =
    &[("restart", OnUnhealthy::Restart), ("none", OnUnhealthy::Report)];

const TEST: &str = "a command as [CMD, /bin/probe], [CMD-SHELL, \"wget -q localhost\"] or \
                    [NONE], or one line for the shell";

/// The check of a workload with this policy; `None` for a policy that could not be read.
pub fn health_check(
    field: &Field<'_>,
    policy: Option<RestartPolicy>,
    flaws: &mut Flaws,
) -> Option<HealthCheck> {
    let members = field.members(&shape::HEALTH_CHECK, flaws)?;
    let test = members.required("test", flaws, test);
    if test == Some(None) {
        return refuse_rest(&members, flaws).then_some(HealthCheck::Off);
    }
    let default = Check::new(Test::Shell(String::new()));
    let interval = members.or("interval", default.interval, flaws, period);
    let timeout = members.or("timeout", default.timeout, flaws, period);
    let start_period = members.or("startPeriod", default.start_period, flaws, |f, flaws| {
        f.parse(SPAN, flaws, quantity::span)
    });
    let retries = members.or("retries", default.retries, flaws, |f, flaws| {
        f.parse("a number of probes", flaws, retries)
    });
    let on_unhealthy = on_unhealthy(&members, policy, flaws);
    Some(HealthCheck::On(Check {
        test: test??,
        interval: interval?,
        timeout: timeout?,
        start_period: start_period?,
        retries: retries?,
        on_unhealthy: on_unhealthy?,
    }))
}

/// A check that is off has no times. Whether none is named.
fn refuse_rest(members: &Members<'_>, flaws: &mut Flaws) -> bool {
    let mut alone = true;
    for (key, field) in members.all().filter(|(key, _)| *key != "test") {
        alone = false;
        // What is unknown was refused already.
        if shape::HEALTH_CHECK.keys.contains(&key) {
            field.refuse(flaws, "has no meaning where test is NONE; remove it");
        }
    }
    alone
}

/// What is run; `Some(None)`: nothing is.
fn test(field: &Field<'_>, flaws: &mut Flaws) -> Option<Option<Test>> {
    if !matches!(field.node.value, Value::Sequence(_)) {
        let line = field.text(TEST, flaws)?;
        // A Dockerfile has these words before the line; in a shell each check would fail.
        let word = line.split_whitespace().next().unwrap_or_default();
        if matches!(word, "NONE" | "CMD" | "CMD-SHELL") {
            let wrong = format!("has {word} in a line for the shell; write {TEST}");
            field.refuse(flaws, wrong);
            return None;
        }
        return shell(field, line, flaws).map(Some);
    }
    let (mut words, mut count) = (Vec::new(), 0);
    for item in field.items(TEST, flaws)? {
        count += 1;
        words.extend(item.text("a string", flaws).map(str::to_owned));
    }
    if words.len() != count {
        return None;
    }
    let mut words = words.into_iter();
    let form = words.next();
    let rest: Vec<String> = words.collect();
    let wrong = match (form.as_deref(), rest.as_slice()) {
        (Some("NONE"), []) => return Some(None),
        (Some("CMD"), [program, ..]) if !program.is_empty() => {
            return Some(Some(Test::Exec(rest)));
        }
        (Some("CMD-SHELL"), [line]) => return shell(field, line, flaws).map(Some),
        (Some("NONE"), _) => "has more than NONE, which stands alone".to_owned(),
        (Some("CMD"), _) => "has no program behind CMD".to_owned(),
        (Some("CMD-SHELL"), _) => {
            let found = rest.len();
            format!("must have one line behind CMD-SHELL, found {found}; CMD takes arguments")
        }
        (Some(other), _) => {
            format!("must begin with CMD, CMD-SHELL or NONE, found {}", shown(other))
        }
        (None, _) => format!("must be {TEST}, found an empty list"),
    };
    field.refuse(flaws, wrong);
    None
}

fn shell(field: &Field<'_>, line: &str, flaws: &mut Flaws) -> Option<Test> {
    if line.trim().is_empty() {
        field.refuse(flaws, "has an empty line for the shell, which always succeeds");
        return None;
    }
    Some(Test::Shell(line.to_owned()))
}

fn period(field: &Field<'_>, flaws: &mut Flaws) -> Option<Span> {
    field.parse(SPAN, flaws, |text| quantity::span_from(Span(HEALTH_SPAN_MIN_MS), text))
}

fn retries(text: &str) -> Result<u32, String> {
    let allowed = 1..=HEALTH_RETRIES_MAX;
    quantity::digits(text).filter(|number| allowed.contains(number)).ok_or_else(|| {
        format!("must be a number from 1 to {HEALTH_RETRIES_MAX}, found {}", shown(text))
    })
}

/// What is never restarted is not restarted for its health.
fn on_unhealthy(
    members: &Members<'_>,
    policy: Option<RestartPolicy>,
    flaws: &mut Flaws,
) -> Option<OnUnhealthy> {
    let never = policy == Some(RestartPolicy::Never);
    let default = if never { OnUnhealthy::Report } else { OnUnhealthy::Restart };
    members.or("onUnhealthy", default, flaws, |field, flaws| {
        let word = choice::choice(ON_UNHEALTHY, field, flaws)?;
        if never && word == OnUnhealthy::Restart {
            let message = "is restart, and restart.policy is never; use none, or another policy";
            field.refuse(flaws, message);
            return None;
        }
        Some(word)
    })
}

/// The field as it is stored and shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckJson<'a> {
    test: Vec<&'a str>,
    #[serde(flatten)]
    on: Option<OnJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OnJson {
    interval: String,
    timeout: String,
    start_period: String,
    retries: u32,
    on_unhealthy: &'static str,
}

/// `check` with its defaults filled in.
pub fn show(check: &HealthCheck) -> HealthCheckJson<'_> {
    let HealthCheck::On(check) = check else {
        return HealthCheckJson { test: vec!["NONE"], on: None };
    };
    let on = OnJson {
        interval: check.interval.to_string(),
        timeout: check.timeout.to_string(),
        start_period: check.start_period.to_string(),
        retries: check.retries,
        on_unhealthy: choice::word(ON_UNHEALTHY, &check.on_unhealthy),
    };
    HealthCheckJson { test: check.test.words(), on: Some(on) }
}
