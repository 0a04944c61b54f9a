//! What the recorded answers mean to the engine's client, which an engine in memory gives them to.

use bargee::domain::effect::NewContainer;
use bargee::domain::event::ContainerAction::{Died, OutOfMemory, Removed, Started};
use bargee::domain::event::{ContainerAction, ContainerEvent};
use bargee::domain::fault::{Fault, FaultKind};
use bargee::domain::health_check::Health;
use bargee::domain::names::ContainerId;
use bargee::domain::observed::{Listed, Phase, Reading};
use bargee::domain::view::PullProgress;
use bargee::engine::LogOptions;
use bargee::engine::cancel::Cancel;

use super::fields;
use crate::kit::{container, on_network};
use crate::support::recorded::{Recorded, bend};
use crate::support::scripted_engine::Route;
use crate::tested::{Tested, memory};

const WEB: &str = "0002000200020002000200020002000200020002000200020002000200020002";

/// An engine that gives these answers from now on.
fn giving(answers: &[(Route, &str)]) -> Tested {
    let tested = memory();
    for (route, name) in answers {
        tested.memory().bend(*route, bend(name));
    }
    tested
}

/// An engine that gives this answer and no more than the fields that are listed.
fn giving_only(route: Route, name: &str) -> Tested {
    let mut answer = Recorded::read(name);
    let paths = fields::read(name, answer.status);
    answer.body = fields::only(&answer.body, paths);
    answer.lines.iter_mut().for_each(|line| *line = fields::only(line, paths));
    let tested = memory();
    tested.memory().bend(route, answer.bend());
    tested
}

fn look(tested: &Tested) -> Reading {
    tested.inspect(WEB).unwrap().unwrap()
}

fn reading(name: &str) -> Reading {
    look(&giving(&[(Route::Inspect, name)]))
}

#[test]
fn an_engine_that_says_what_it_is() {
    let info = giving(&[(Route::Ping, "ping"), (Route::Version, "version")]).ping().unwrap();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("docker", "20.10.24+dfsg1"));
    assert_eq!(info.api_version, "1.41");
    assert_eq!(giving_only(Route::Version, "version").ping().unwrap(), info);
}

#[test]
fn a_container_in_each_state() {
    let created = reading("inspect-created");
    assert_eq!((created.id.as_str(), &created.phase), (WEB, &Phase::Created));
    assert_eq!((created.started_at_ns, created.pid, created.exit_code), (0, 0, 0));
    assert_eq!(created.stop_signal.as_deref(), Some("SIGINT"));

    let running = reading("inspect-running");
    assert_eq!((&running.phase, running.pid), (&Phase::Running, 4_711));
    assert_eq!(running.ip.as_deref(), Some("10.239.0.2"));
    assert_eq!(running.ports, ["127.0.0.1:49153->8080/tcp"]);
    assert!(running.started_at_ns > 0 && running.image_id.starts_with("sha256:"));
    let tags = running.tags.unwrap();
    assert_eq!((tags.uid.as_str(), tags.node.as_str()), ("recorded-web", "node"));
    assert_eq!(tags.key.to_string(), "recorded/recorded-web");

    let exited = reading("inspect-exited");
    assert_eq!((exited.phase, exited.exit_code, exited.pid), (Phase::Exited, 7, 0));
    assert!(!exited.oom_killed && exited.started_at_ns > 0 && exited.ip.is_none());

    let killed = reading("inspect-oom-killed");
    assert_eq!((killed.phase, killed.exit_code), (Phase::Exited, 137));
    assert!(killed.oom_killed);

    let healthy = reading("inspect-healthy");
    assert_eq!(healthy.phase, Phase::Running);
    assert_eq!(healthy.verdict.unwrap().health, Health::Healthy);
}

#[test]
fn a_container_that_did_not_start() {
    let failed = reading("inspect-start-failed");
    assert_eq!((failed.phase, failed.started_at_ns), (Phase::Created, 0));
    assert!(failed.error.contains("/no/such/command"), "{}", failed.error);
    let lonely = reading("inspect-without-network");
    assert_eq!((lonely.phase, lonely.pid), (Phase::Created, 0));
    assert_eq!(lonely.error, "network bargee-recorded-gone not found");
}

#[test]
fn the_fields_that_are_listed_are_all_that_is_read() {
    for name in [
        "inspect-created",
        "inspect-running",
        "inspect-exited",
        "inspect-oom-killed",
        "inspect-start-failed",
        "inspect-without-network",
        "inspect-healthy",
    ] {
        assert_eq!(look(&giving_only(Route::Inspect, name)), reading(name), "{name}");
    }
    let listed = giving_only(Route::List, "list").list().unwrap();
    assert_eq!(listed, giving(&[(Route::List, "list")]).list().unwrap());
    let told = events(&giving_only(Route::Events, "events"));
    assert_eq!(told, events(&giving(&[(Route::Events, "events")])));
    for name in ["pull", "pull-again", "pull-cut"] {
        assert_eq!(pull(&giving_only(Route::Pull, name)), pull(&giving(&[(Route::Pull, name)])));
    }
}

#[test]
fn a_listing_of_every_state() {
    let listed = giving(&[(Route::List, "list")]).list().unwrap();
    let phase = |uid: &str| {
        let mut all = listed.iter().filter(|one| one.tags.uid.as_str() == uid);
        all.next().map(|Listed { phase, misnamed, .. }| (phase.clone(), *misnamed)).unwrap()
    };
    assert_eq!(listed.len(), 7);
    assert_eq!(phase("recorded-web"), (Phase::Running, false));
    assert_eq!(phase("recorded-healthy"), (Phase::Running, false));
    assert_eq!(phase("recorded-nothing"), (Phase::Created, false));
    assert_eq!(phase("recorded-portless"), (Phase::Created, false));
    for ended in ["recorded-exit", "recorded-greedy", "recorded-lonely"] {
        assert_eq!(phase(ended), (Phase::Exited, false), "{ended}");
    }
}

/// All events until the recorded stream ends.
fn events(tested: &Tested) -> Vec<ContainerEvent> {
    let mut stream = tested.events().unwrap();
    let events: Vec<_> = std::iter::from_fn(|| stream.next().ok()).collect();
    assert_eq!(stream.next().unwrap_err().kind, FaultKind::Away);
    events
}

#[test]
fn events_of_whole_lives() {
    let events = events(&giving(&[(Route::Events, "events")]));
    let of = |uid: &str| -> Vec<ContainerAction> {
        let mine = events.iter().filter(|event| event.uid.as_str() == uid);
        mine.map(|event| event.action).collect()
    };
    assert_eq!(of("recorded-web"), [Started, Died, Removed]);
    assert_eq!(of("recorded-exit"), [Started, Died, Removed]);
    assert_eq!(of("recorded-greedy"), [Started, OutOfMemory, Died, Removed]);
    assert_eq!(of("recorded-nothing"), [Removed]);
    assert_eq!(of("recorded-lonely"), [Started, Died, Removed]);
    let web = events.iter().find(|event| event.uid.as_str() == "recorded-web").unwrap();
    assert_eq!(web.id.as_str(), WEB);
}

/// What a call of an engine that gives these answers comes to.
fn kind<T>(
    answers: &[(Route, &str)],
    call: impl Fn(&Tested) -> Result<T, Fault>,
) -> Option<FaultKind> {
    call(&giving(answers)).err().map(|fault| fault.kind)
}

fn create(engine: &Tested) -> Result<ContainerId, Fault> {
    engine.create(&simple())
}

fn simple() -> NewContainer {
    container("recorded", &["true"])
}

#[test]
fn creates_and_why_they_are_refused() {
    let made = create(&giving(&[(Route::Create, "create")])).unwrap();
    assert_eq!(made.as_str(), WEB);
    for (name, meaning) in [
        ("create-no-image", FaultKind::NoImage),
        ("create-name-taken", FaultKind::NameTaken),
        ("create-bad-reference", FaultKind::Refused),
        ("create-missing-mount", FaultKind::Refused),
    ] {
        assert_eq!(kind(&[(Route::Create, name)], create), Some(meaning), "{name}");
    }
    for network in ["network-made", "network-taken"] {
        let answers = [(Route::MakeNetwork, network), (Route::Create, "create")];
        let on_network =
            |engine: &Tested| engine.create(&on_network(simple(), "bargee-recorded", &["web"]));
        assert_eq!(kind(&answers, on_network), None, "{network}");
    }
}

#[test]
fn starts_signals_and_removals_and_why_they_are_refused() {
    let id = &ContainerId::new(WEB);
    for (name, meaning) in [
        ("start", None),
        ("start-again", None),
        ("start-absent", Some(FaultKind::NoContainer)),
        ("start-no-command", Some(FaultKind::Refused)),
        ("start-port-taken", Some(FaultKind::Trouble)),
    ] {
        assert_eq!(kind(&[(Route::Start, name)], |engine| engine.start(id)), meaning, "{name}");
    }
    for (name, meaning) in [
        ("kill", None),
        ("kill-absent", Some(FaultKind::NoContainer)),
        ("kill-stopped", Some(FaultKind::Conflict)),
        ("kill-bad-signal", Some(FaultKind::Refused)),
    ] {
        let signal = |engine: &Tested| engine.signal(id, "SIGTERM");
        assert_eq!(kind(&[(Route::Kill, name)], signal), meaning, "{name}");
    }
    for name in ["remove", "remove-absent"] {
        assert_eq!(kind(&[(Route::Remove, name)], |engine| engine.remove(WEB)), None, "{name}");
    }
    for name in ["network-removed", "network-in-use", "network-absent"] {
        let remove = |engine: &Tested| engine.remove_network("bargee-recorded");
        assert_eq!(kind(&[(Route::RemoveNetwork, name)], remove), None, "{name}");
    }
    let absent = giving(&[(Route::Inspect, "inspect-absent")]);
    assert_eq!(absent.inspect(WEB).unwrap(), None);
    let fault = absent.logs(id, LogOptions { follow: true, tail: None }).map(drop).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoContainer);
}

#[test]
fn a_network_that_is_gone_is_made_again_and_joined() {
    let tested = giving(&[
        (Route::Inspect, "inspect-without-network"),
        (Route::MakeNetwork, "network-made"),
        (Route::JoinNetwork, "join"),
    ]);
    tested.memory().bend_next(Route::Start, 1, bend("start-without-network"));
    tested.memory().bend(Route::Start, bend("start"));
    tested.start(&ContainerId::new(WEB)).unwrap();
    assert_eq!(tested.memory().count(Route::JoinNetwork), 1);
    assert_eq!(tested.memory().count(Route::Start), 2);
}

#[test]
fn a_refused_start_is_none_of_a_network_that_there_is_once() {
    let tested = giving(&[(Route::Inspect, "inspect-running"), (Route::Start, "start-no-command")]);
    tested.memory().bend(Route::ListNetworks, bend("networks"));
    let fault = tested.start(&ContainerId::new(WEB)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    assert_eq!(tested.memory().count(Route::ListNetworks), 1);
    assert_eq!(tested.memory().count(Route::RemoveNetwork), 0);
}

/// What a pull comes to, and how far it was.
fn pull(tested: &Tested) -> (Result<bool, Fault>, Vec<PullProgress>) {
    tested.memory().bend(Route::Image, bend("image"));
    let mut told = Vec::new();
    let tell = &mut |progress| told.push(progress);
    let done = tested.pull("shop/web:1", &Cancel::default(), tell);
    (done, told)
}

#[test]
fn pulls_and_why_they_fail() {
    let (done, told) = pull(&giving(&[(Route::Pull, "pull")]));
    assert!(done.unwrap());
    let last = *told.last().unwrap();
    assert_eq!(last, PullProgress { done_bytes: 3_147_776, total_bytes: 3_147_776 });
    assert!(told.len() > 2 && told[0].done_bytes < last.done_bytes, "{told:?}");
    let (again, told) = pull(&giving(&[(Route::Pull, "pull-again")]));
    assert_eq!((again.unwrap(), told), (false, Vec::new()));

    for (name, meaning, words) in [
        ("pull-cut", FaultKind::Trouble, "unknown blob"),
        ("pull-no-tag", FaultKind::Trouble, "manifest unknown"),
        ("pull-no-registry", FaultKind::Trouble, "connection refused"),
        ("pull-bad-reference", FaultKind::Refused, "invalid reference format"),
    ] {
        let fault = pull(&giving(&[(Route::Pull, name)])).0.unwrap_err();
        assert_eq!(fault.kind, meaning, "{name}");
        assert!(fault.message.contains(words), "{fault}");
    }
    let tested = giving(&[(Route::Pull, "pull"), (Route::Image, "image-absent")]);
    let fault = tested.pull("shop/web:1", &Cancel::default(), &mut |_| {}).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trouble);
}

#[test]
fn where_the_engine_keeps_its_data() {
    let tested = giving(&[(Route::Info, "info")]);
    tested.sync_images().unwrap();
    assert_eq!(tested.memory().count(Route::Info), 1);
}
