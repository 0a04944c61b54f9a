//! `spec.healthCheck`: its forms, its defaults, what is refused, and what is hashed.

use super::*;
use crate::domain::health_check::{Check, HealthCheck, OnUnhealthy, Test};
use crate::domain::spec_hash::spec_hash;
use crate::domain::time::Span;

/// The check of a workload with this line.
#[track_caller]
fn check(line: &str) -> Check {
    match accepted(&workload(&format!("  healthCheck: {line}\n"))).spec.health_check {
        Some(HealthCheck::On(check)) => check,
        other => panic!("{other:?}"),
    }
}

/// How it is stored and shown.
fn rendered(spec: &str) -> String {
    let manifest = accepted(&workload(spec)).manifest;
    let (_, check) = manifest.split_once("\"healthCheck\":").expect("a check");
    check.split_once(",\"schedule\"").expect("more fields").0.to_owned()
}

#[test]
fn defaults_are_those_of_docker() {
    let words = vec!["/bin/probe".to_owned()];
    let probe = check("{test: [CMD, /bin/probe]}");
    assert_eq!(probe, Check::new(Test::Exec(words)));
    assert_eq!((probe.interval, probe.timeout), (Span(30_000), Span(30_000)));
    assert_eq!((probe.start_period, probe.retries), (Span(0), 3));
    assert_eq!(probe.on_unhealthy, OnUnhealthy::Restart);
    assert_eq!(accepted(&workload("")).spec.health_check, None);
}

#[test]
fn every_form_of_a_test_is_read_and_shown() {
    let shell = Test::Shell("wget -q localhost || exit 1".to_owned());
    assert_eq!(check("{test: wget -q localhost || exit 1}").test, shell);
    assert_eq!(check("{test: [CMD-SHELL, wget -q localhost || exit 1]}").test, shell);
    let words = ["/p", "8080", "", "no"].map(str::to_owned).to_vec();
    assert_eq!(check("{test: [CMD, /p, 8080, \"\", no]}").test, Test::Exec(words));
    let off = accepted(&workload("  healthCheck: {test: [NONE]}\n"));
    assert_eq!(off.spec.health_check, Some(HealthCheck::Off));
    // One word is a line for the shell, whatever it is.

    assert_eq!(
        rendered("  healthCheck: {test: exit 0}\n"),
        "{\"test\":[\"CMD-SHELL\",\"exit 0\"],\"interval\":\"30s\",\"timeout\":\"30s\",\
         \"startPeriod\":\"0s\",\"retries\":3,\"onUnhealthy\":\"restart\"}"
    );
    assert_eq!(
        rendered(
            "  healthCheck: {test: [CMD, /p, -q], interval: 1m, timeout: 500ms, startPeriod: 5s, \
             retries: 100, onUnhealthy: none}\n"
        ),
        "{\"test\":[\"CMD\",\"/p\",\"-q\"],\"interval\":\"60s\",\"timeout\":\"500ms\",\
         \"startPeriod\":\"5s\",\"retries\":100,\"onUnhealthy\":\"none\"}"
    );
    assert_eq!(rendered("  healthCheck: {test: [NONE]}\n"), "{\"test\":[\"NONE\"]}");
}

#[test]
fn what_is_never_restarted_is_not_restarted_for_its_health() {
    let never = "  restart: {policy: never}\n";
    let with = |more: &str| format!("  healthCheck: {{test: exit 0{more}}}\n{never}");
    assert!(rendered(&with("")).ends_with("\"onUnhealthy\":\"none\"}"));
    assert!(rendered(&with(", onUnhealthy: none")).ends_with("\"onUnhealthy\":\"none\"}"));
    each_refused(&[(
        &with(", onUnhealthy: restart"),
        "7: spec.healthCheck.onUnhealthy: is restart, and restart.policy is never; use none, or \
         another policy",
    )]);
}

/// A Dockerfile has these words before the line; in a shell each check would fail.
#[test]
fn the_words_of_a_dockerfile_are_no_line_for_the_shell() {
    for (line, word) in [("NONE", "NONE"), ("CMD wget -q localhost", "CMD")] {
        let problem = format!(
            "f.yaml:7: spec.healthCheck.test: has {word} in a line for the shell; write \
             a command as [CMD, /bin/probe], [CMD-SHELL, \"wget -q localhost\"] or [NONE], or one \
             line for the shell"
        );
        refused(&workload(&format!("  healthCheck: {{test: {line}}}\n")), &[&problem]);
    }
}

#[test]
fn checks_are_checked() {
    let test = "a command as [CMD, /bin/probe], [CMD-SHELL, \"wget -q localhost\"] or [NONE], or \
                one line for the shell";
    let keys = "test, interval, timeout, startPeriod, retries, onUnhealthy";
    let with = |field: &str| format!("  healthCheck:\n    test: [CMD, /p]\n    {field}\n");
    for (line, problem) in [
        ("{}", "spec.healthCheck.test: is missing".to_owned()),
        ("[CMD, a]", "spec.healthCheck: must be a mapping as {test: ...}, found a list".to_owned()),
        ("{test: }", format!("spec.healthCheck.test: must be {test}, found nothing")),
        ("{test: {a: b}}", format!("spec.healthCheck.test: must be {test}, found a mapping")),
        ("{test: []}", format!("spec.healthCheck.test: must be {test}, found an empty list")),
        (
            "{test: [curl, localhost]}",
            "spec.healthCheck.test: must begin with CMD, CMD-SHELL or NONE, found \"curl\"".into(),
        ),
        ("{test: [CMD]}", "spec.healthCheck.test: has no program behind CMD".into()),
        ("{test: [CMD, \"\", x]}", "spec.healthCheck.test: has no program behind CMD".into()),
        (
            "{test: [CMD-SHELL, a, b]}",
            "spec.healthCheck.test: must have one line behind CMD-SHELL, found 2; CMD takes \
             arguments"
                .into(),
        ),
        (
            "{test: [CMD-SHELL]}",
            "spec.healthCheck.test: must have one line behind CMD-SHELL, found 0; CMD takes \
             arguments"
                .into(),
        ),
        (
            "{test: \" \"}",
            "spec.healthCheck.test: has an empty line for the shell, which always succeeds".into(),
        ),
        (
            "{test: [NONE, x]}",
            "spec.healthCheck.test: has more than NONE, which stands alone".into(),
        ),
        ("{test: [CMD, [a]]}", "spec.healthCheck.test[1]: must be a string, found a list".into()),
        (
            "{test: [NONE], retries: 3}",
            "spec.healthCheck.retries: has no meaning where test is NONE; remove it".into(),
        ),
        (
            "{test: a, intervall: 3s}",
            format!(
                "spec.healthCheck.intervall: is unknown; did you mean interval? Allowed are {keys}"
            ),
        ),
    ] {
        refused(&workload(&format!("  healthCheck: {line}\n")), &[&format!("f.yaml:7: {problem}")]);
    }
    let duration = "must be a duration as 500ms, 10s, 2m or 1h30m";
    for (field, problem) in [
        ("interval: 99ms", "interval: must be at least 100ms, found \"99ms\"".to_owned()),
        ("timeout: 0s", "timeout: must be at least 100ms, found \"0s\"".to_owned()),
        ("interval: 30", format!("interval: {duration}, found \"30\"")),
        ("startPeriod: soon", format!("startPeriod: {duration}, found \"soon\"")),
        ("timeout: 25h", "timeout: \"25h\" is longer than 24h".to_owned()),
        ("retries: 0", "retries: must be a number from 1 to 100, found \"0\"".to_owned()),
        ("retries: 101", "retries: must be a number from 1 to 100, found \"101\"".to_owned()),
        ("retries: +3", "retries: must be a number from 1 to 100, found \"+3\"".to_owned()),
        ("onUnhealthy: stop", "onUnhealthy: must be restart or none, found \"stop\"".to_owned()),
    ] {
        let problem = format!("9: spec.healthCheck.{problem}");
        each_refused(&[(&with(field), &problem)]);
    }
    assert_eq!(check("{test: a, startPeriod: 0s, interval: 100ms}").interval, Span(100));
}

#[test]
fn all_but_what_follows_is_hashed() {
    let hash = |line: &str| spec_hash(&accepted(&workload(line)));
    let with = |fields: &str| hash(&format!("  healthCheck: {{{fields}}}\n"));
    // As it was before there were health checks.
    assert_eq!(hash("").as_str(), "1-d2fb003724d3cb0bb63476cbdf39815f");
    let plain = with("test: [CMD, a, b]");
    assert_eq!(with("test: [CMD, a, b], onUnhealthy: none"), plain);
    assert_eq!(with("test: [CMD, a, b], interval: 30s, retries: 3"), plain);
    let mut all = vec![hash(""), plain];
    for fields in [
        "test: [NONE]",
        "test: a",
        "test: a b",
        "test: [CMD, a b]",
        "test: [CMD, a, b], interval: 31s",
        "test: [CMD, a, b], timeout: 31s",
        "test: [CMD, a, b], startPeriod: 1s",
        "test: [CMD, a, b], retries: 4",
    ] {
        let hash = with(fields);
        assert!(!all.contains(&hash), "{fields}");
        all.push(hash);
    }
}
