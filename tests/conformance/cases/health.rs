//! Health checks that the engine runs.

use bargee::domain::event::ContainerAction::Changed;
use bargee::domain::health_check::{Check, Health, HealthCheck, Test};
use bargee::domain::names::ContainerId;
use bargee::domain::observed::Phase;
use bargee::domain::time::Span;

use crate::kit::{Watch, container, read, run, with};
use crate::tested::Tested;

/// A container whose check is this line of shell, run ten times a second.
fn checked(name: &str, line: &str) -> bargee::domain::effect::NewContainer {
    let mut check = Check::new(Test::Shell(line.to_owned()));
    (check.interval, check.retries) = (Span(100), 2);
    with(container(name, &["sleep", "1000"]), |spec| {
        spec.health_check = Some(HealthCheck::On(check));
    })
}

fn health(engine: &Tested, id: &ContainerId) -> Option<Health> {
    read(engine, id).verdict.map(|verdict| verdict.health)
}

fn hint(engine: &Tested, id: &ContainerId) -> Option<Health> {
    engine.list().unwrap().into_iter().find(|listed| listed.id == *id).unwrap().health
}

pub fn a_good_verdict_is_told_and_read_back(engine: &Tested) {
    let watch = Watch::new(engine);
    let good = run(engine, &checked("healthy", "exit 0"));
    watch.until(&good, Changed);
    assert_eq!(health(engine, &good), Some(Health::Healthy));
    assert_eq!(hint(engine, &good), Some(Health::Healthy));
}

pub fn a_bad_verdict_is_told_with_what_the_check_said(engine: &Tested) {
    let watch = Watch::new(engine);
    let bad = run(engine, &checked("unhealthy", "echo broken; exit 5"));
    watch.until(&bad, Changed);
    let verdict = read(engine, &bad).verdict.unwrap();
    assert_eq!(verdict.health, Health::Unhealthy);
    assert_eq!(verdict.words, "exitCode=5 output=broken");
    assert_eq!(hint(engine, &bad), Some(Health::Unhealthy));
}

pub fn a_verdict_is_of_one_run(engine: &Tested) {
    let watch = Watch::new(engine);
    let mut new = checked("restarted", "exit 1");
    let spec = &mut std::sync::Arc::make_mut(&mut new.declared).spec;
    let Some(HealthCheck::On(check)) = &mut spec.health_check else { panic!("{spec:?}") };
    // Long enough that the second run has none for a while.
    (check.interval, check.retries) = (Span::seconds(3), 1);
    let id = run(engine, &new);
    assert_eq!(health(engine, &id), Some(Health::Starting));
    watch.until(&id, Changed);
    let first = read(engine, &id);
    assert_eq!(first.verdict.unwrap().health, Health::Unhealthy);
    engine.signal(&id, "SIGKILL").unwrap();
    watch.until(&id, bargee::domain::event::ContainerAction::Died);
    assert_eq!(hint(engine, &id), None);
    engine.start(&id).unwrap();
    let second = read(engine, &id);
    assert_eq!(second.phase, Phase::Running);
    assert!(second.started_at_ns > first.started_at_ns);
    assert_eq!(second.verdict.unwrap().health, Health::Starting);
}

pub fn a_check_that_is_off_says_nothing(engine: &Tested) {
    let new = with(container("unchecked", &["sleep", "1000"]), |spec| {
        spec.health_check = Some(HealthCheck::Off);
    });
    let id = run(engine, &new);
    assert_eq!((health(engine, &id), hint(engine, &id)), (None, None));
}
