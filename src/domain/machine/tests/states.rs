//! The tables of `docs/states.md` are what the machine does: each row is brought about here, and
//! the text that comes of it has to be the one on the page.

use super::*;
use crate::domain::declared::{Restart, WhenStuck};
use crate::domain::health_check::{Check, Health, HealthCheck, OnUnhealthy, Test};
use crate::domain::names::EngineId;

const PAGE: &str = include_str!("../../../../docs/states.md");

const ALL: &[RestartPolicy] =
    &[RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];
const AGAIN: &[RestartPolicy] = &[RestartPolicy::Always, RestartPolicy::OnFailure];
const ALWAYS: &[RestartPolicy] = &[RestartPolicy::Always];
const ENDING: &[RestartPolicy] = &[RestartPolicy::OnFailure, RestartPolicy::Never];
const NEVER: &[RestartPolicy] = &[RestartPolicy::Never];

/// Compares a table with the section of the page that begins with its name.
fn check(name: &str, table: &str) {
    let begin = format!("<!-- table: {name} -->\n");
    let section = PAGE.split_once(&begin).and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let (section, _) = section.expect("docs/states.md has the section");
    assert!(
        section.trim() == table.trim(),
        "docs/states.md tells the table `{name}` otherwise; if the code is right, this is it:\n\n\
         {table}"
    );
}

// --- desired x policy x seen -------------------------------------------------------------------

/// One row: policies, what is seen, and how it comes about.
type Row = (&'static [RestartPolicy], &'static str, fn(RestartPolicy) -> World);

const RUNNING: &[Row] = &[
    (ALL, "accepted, and the engine is away", accepted_without_engine),
    (ALL, "recorded, and not yet looked at since the agent started", not_looked_at),
    (ALL, "a mount source is missing", mount_missing),
    (ALL, "the workload that had this name is still there", predecessor),
    (ALL, "a container of another store has its name", store_missing),
    (ALL, "its container is on another engine than the one that answers", |p| elsewhere(p, false)),
    (ALL, "the same, and it has named volumes", |p| elsewhere(p, true)),
    (
        ALL,
        "its image is to be pulled, and two pulls or one of its registry are under way",
        queued_pull,
    ),
    (ALL, "its image is pulled", pulling),
    (ALL, "its image was pulled, and is being written to the disk", syncing),
    (ALL, "a create was sent", |p| unanswered(p, "create")),
    (ALL, "it is to be started, and four starts are under way", queued_start),
    (ALL, "a start was sent", |p| unanswered(p, "start")),
    (ALL, "the pull failed, or the create, by what time may heal", pull_failed),
    (ALL, "the start failed by what time may heal", |p| start_failed(p, FaultKind::Trouble, 1)),
    (ALL, "refused as wrong, up to four times", |p| start_failed(p, FaultKind::Refused, 4)),
    (ALL, "refused as wrong five times", |p| start_failed(p, FaultKind::Refused, 5)),
    (ALL, "running", running),
    (ALL, "running, and an update is pulled or created", |p| updating(p, "create")),
    (ALL, "running, and a rebuild is pulled or created", rebuilding),
    (ALL, "running, and its stop for a restart or an update was sent", |p| updating(p, "SIGTERM")),
    (ALL, "ended for an update, and the start of the new one was sent", |p| updating(p, "start")),
    (ALL, "running, and on probation after an update", |p| updating(p, "")),
    (ALL, "running, and on probation after a rebuild", rebuilt),
    (ALL, "running, and the update to this generation failed by what time may heal", |p| {
        update_failed(p, FaultKind::Trouble)
    }),
    (ALL, "running, and the update to this generation was refused as wrong", |p| {
        update_failed(p, FaultKind::Refused)
    }),
    (AGAIN, "running, unhealthy by its check, and its stop was sent", |p| unhealthy(p, Then::Deaf)),
    (AGAIN, "ended because it was unhealthy", |p| unhealthy(p, Then::Ends)),
    (ALL, "running, and unhealthy: `onUnhealthy: none`", |p| unhealthy(p, Then::Stays)),
    (ALWAYS, "exited with 0", |p| exited(p, 0)),
    (ENDING, "exited with 0", |p| exited(p, 0)),
    (AGAIN, "exited with another code", |p| exited(p, 1)),
    (NEVER, "exited with another code", |p| exited(p, 1)),
    (AGAIN, "exited, and stuck in restarts: `stuck: retry`", |p| stuck(p, WhenStuck::Retry)),
    (AGAIN, "exited, and stuck in restarts: `stuck: hold`", |p| stuck(p, WhenStuck::Hold)),
    (AGAIN, "running, and stuck in restarts before", |p| restarted_often(p, WhenStuck::Retry)),
    (AGAIN, "vanished", vanished),
    (NEVER, "vanished", vanished),
    (AGAIN, "the engine says running, and its process is gone", process_gone),
    (NEVER, "the engine says running, and its process is gone", process_gone),
    (ALL, "cut short by the engine or the device, and its start was sent", interrupted),
    (ALL, "the engine says stopping", |p| phase(p, Phase::Stopping)),
    (ALL, "the engine says removing", |p| phase(p, Phase::Removing)),
    (ALL, "the engine says restarting", |p| phase(p, Phase::Restarting)),
    (ALL, "the engine says paused", |p| phase(p, Phase::Paused)),
    (ALL, "the engine says a word that bargee does not know", |p| {
        phase(p, Phase::Unknown("hibernating".to_owned()))
    }),
];

const STOPPED: &[Row] = &[
    (ALL, "recorded, and not yet looked at since the agent started", stopped_not_looked_at),
    (ALL, "running, and the stop cannot be sent: the engine is away", stop_without_engine),
    (ALL, "running, and the stop was sent", |p| deaf(p, Verb::Stop)),
    (ALL, "running, and SIGKILL was sent", |p| undying(p, Verb::Stop)),
    (ALL, "not running, or never made", stopped),
    (ALL, "its container is on another engine than the one that answers", stopped_elsewhere),
];

const DELETED: &[Row] = &[
    (ALL, "running, and the stop was sent", |p| deaf(p, Verb::Remove)),
    (ALL, "running, and SIGKILL was sent", |p| undying(p, Verb::Remove)),
    (ALL, "ended, and its removal was sent", |p| removal(p, true)),
    (ALL, "ended, and the engine could not remove it", |p| removal(p, false)),
];

#[test]
fn the_table_of_states_is_true() {
    let mut table = "| desired | policy | what is seen | state | runtime state | `stateInfo` |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    for (desired, rows) in [("running", RUNNING), ("stopped", STOPPED), ("deleted", DELETED)] {
        for (policies, seen, situation) in rows {
            let shown: Vec<String> = policies.iter().map(|p| shown(&situation(*p))).collect();
            assert!(shown.iter().all(|other| *other == shown[0]), "{seen}: {shown:?}");
            let policies = words(policies);
            table.push_str(&format!("| {desired} | {policies} | {seen} | {} |\n", shown[0]));
        }
    }
    check("states", &table);
}

fn words(policies: &[RestartPolicy]) -> String {
    if policies.len() == ALL.len() {
        return "any".to_owned();
    }
    let word = |policy: &RestartPolicy| match policy {
        RestartPolicy::Always => "always",
        RestartPolicy::OnFailure => "on-failure",
        RestartPolicy::Never => "never",
    };
    policies.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn state_words(state: State) -> String {
    let (state, substate) = state.words();
    format!("{state}({substate})")
}

/// How the youngest workload called `w` is shown.
fn shown(world: &World) -> String {
    let views = world.views.values().filter(|v| v.declared.key.name.as_str() == "w");
    let view = views.max_by_key(|v| v.desired == super::super::Desired::Running).expect("a view");
    let info = cause(&view.info);
    let info = match (info.is_empty(), info.contains('`')) {
        (true, _) => info,
        (false, true) => format!("`` {info} ``"),
        (false, false) => format!("`{info}`"),
    };
    format!("{} | {} | {info}", state_words(view.state), view.runtime_state.as_str())
}

/// Faults of the made-up engine stand for any cause, and a drawn name for any other.
fn cause(info: &str) -> String {
    let made_up = [
        "pull x: Trouble",
        "start x: Trouble",
        "remove x: Trouble",
        "create x: Refused",
        "create x: Trouble",
    ];
    let info = info.replace("exitCode=1 output=bad", "CAUSE");
    let mut info = info.replace("x: HostPath", "PATH: CAUSE").replace("start x: Refused", "CAUSE");
    for fault in made_up {
        info = info.replace(fault, "CAUSE");
    }
    if let Some(at) = info.find("bargee-w-") {
        let drawn = at + "bargee-w-".len();
        info.replace_range(drawn..drawn + 8, "1a2b3c4d");
    }
    info
}

// --- situations --------------------------------------------------------------------------------

fn job(policy: RestartPolicy, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    workload("w", |spec| {
        spec.restart.policy = policy;
        change(spec);
    })
}

fn newer(policy: RestartPolicy) -> Arc<Declared> {
    job(policy, |spec| spec.image = "image:2".to_owned())
}

/// Runs for five seconds.
fn running(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.apply(&[&job(policy, |_| {})]);
    world.pass(5_000);
    world
}

fn lose_engine(world: &mut World) {
    world.engine.gone = true;
    let fault = Fault::new(FaultKind::Away, "connect", "", "refused");
    world.feed(Event::StreamDown(fault));
}

fn accepted_without_engine(policy: RestartPolicy) -> World {
    let mut world = World::new();
    lose_engine(&mut world);
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn not_looked_at(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.begin_agent();
    world
}

fn mount_missing(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.fail_next("create", &[FaultKind::HostPath]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn predecessor(policy: RestartPolicy) -> World {
    let mut world = deaf(policy, Verb::Remove);
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn store_missing(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    for made in world.engine.containers.values_mut() {
        made.tags.store = StoreId::new("ffffffffffffffff");
    }
    world.store = Store::default();
    world.crash();
    world.apply(&[&newer(policy)]);
    world
}

fn elsewhere(policy: RestartPolicy, with_volumes: bool) -> World {
    let mut world = World::new();
    world.apply(&[&job(policy, |spec| {
        let source = MountSource::Volume("data".to_owned());
        let mount = Mount { source, target: "/data".to_owned(), read_only: false };
        spec.mounts.extend(with_volumes.then_some(mount));
    })]);
    replace_engine(&mut world);
    world
}

/// Another one answers, with nothing on it.
fn replace_engine(world: &mut World) {
    world.store.kept.engine = Some(EngineId::new("before"));
    world.engine.identity = Some(EngineId::new("now"));
    world.engine.containers.clear();
    world.crash();
}

fn stopped_elsewhere(policy: RestartPolicy) -> World {
    let mut world = stopped(policy);
    replace_engine(&mut world);
    world
}

fn process_gone(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    let id = world.container("w");
    world.feed(Event::ProcessGone(id, 1));
    world
}

fn pulling(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    unanswered_in(world, policy, "pull")
}

fn syncing(policy: RestartPolicy) -> World {
    let mut world = pulling(policy);
    world.feed(Event::PullSyncs(PullId(1)));
    world
}

fn queued_pull(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.unanswered.push("pull");
    for image in ["image:0", "image:1"] {
        world.engine.missing_images.push(image.to_owned());
    }
    world.apply(&[&workload("other", |spec| spec.image = "image:0".to_owned())]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn queued_start(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.unanswered.push("start");
    for name in ["a", "b", "c", "d"] {
        world.apply(&[&workload(name, |_| {})]);
    }
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn unanswered(policy: RestartPolicy, call: &'static str) -> World {
    unanswered_in(World::new(), policy, call)
}

fn unanswered_in(mut world: World, policy: RestartPolicy, call: &'static str) -> World {
    world.unanswered.push(call);
    world.apply(&[&job(policy, |_| {})]);
    world
}

fn pull_failed(policy: RestartPolicy) -> World {
    let mut world = World::new();
    world.engine.missing_images.push("image:1".to_owned());
    world.fail_next("pull", &[FaultKind::Trouble]);
    world.apply(&[&job(policy, |_| {})]);
    world
}

/// Fails `tries` times, and waits for the next try, if there is one.
fn start_failed(policy: RestartPolicy, kind: FaultKind, tries: usize) -> World {
    let mut world = World::new();
    world.fail_next("start", &vec![kind; tries]);
    world.apply(&[&job(policy, |_| {})]);
    while world.count("start") < tries {
        world.pass(10_000);
    }
    world
}

/// An update comes to a halt at this call, or not at all.
fn updating(policy: RestartPolicy, call: &'static str) -> World {
    let mut world = running(policy);
    match call {
        "" => {}
        "SIGTERM" => world.fail_next("deaf", &[FaultKind::Trouble]),
        call => world.unanswered.push(call),
    }
    world.apply(&[&newer(policy)]);
    world
}

fn rebuilding(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.unanswered.push("create");
    world.verb("w", Verb::Rebuild);
    world
}

fn rebuilt(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.verb("w", Verb::Rebuild);
    world
}

fn update_failed(policy: RestartPolicy, kind: FaultKind) -> World {
    let mut world = running(policy);
    world.fail_next("create", &[kind]);
    world.apply(&[&newer(policy)]);
    world
}

/// What becomes of one that is unhealthy.
#[derive(PartialEq)]
enum Then {
    Deaf,
    Ends,
    Stays,
}

fn unhealthy(policy: RestartPolicy, then: Then) -> World {
    let mut world = World::new();
    let mut check = Check::new(Test::Shell("probe".to_owned()));
    if then == Then::Stays {
        check.on_unhealthy = OnUnhealthy::Report;
    }
    world.apply(&[&job(policy, |spec| spec.health_check = Some(HealthCheck::On(check)))]);
    world.pass(5_000);
    if then == Then::Deaf {
        world.fail_next("deaf", &[FaultKind::Trouble]);
    }
    world.becomes("w", Health::Unhealthy);
    world
}

fn exited(policy: RestartPolicy, code: i32) -> World {
    let mut world = running(policy);
    world.exit("w", code);
    world
}

/// Restarted ten times within a minute.
fn restarted_often(policy: RestartPolicy, stuck: WhenStuck) -> World {
    let mut world = World::new();
    let (delay, max_delay) = (Span::seconds(1), Span::seconds(2));
    let restart = Restart { policy, delay, max_delay, stuck };
    world.apply(&[&workload("w", |spec| spec.restart = restart)]);
    for _ in 0..10 {
        world.exit("w", 1);
        world.pass(2_000);
    }
    world
}

fn stuck(policy: RestartPolicy, stuck: WhenStuck) -> World {
    let mut world = restarted_often(policy, stuck);
    world.exit("w", 1);
    world
}

fn vanished(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    vanish(&mut world);
    world
}

fn vanish(world: &mut World) {
    let id = world.container("w");
    world.engine.containers.retain(|_, made| made.id != id);
    tell(world, id, ContainerAction::Removed);
}

fn tell(world: &mut World, id: ContainerId, action: ContainerAction) {
    let uid = world.view("w").uid.clone();
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
}

fn interrupted(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    lose_engine(&mut world);
    world.unanswered.push("start");
    engine_comes_back(&mut world);
    world
}

/// As Docker does after a crash: nothing runs any more.
fn engine_comes_back(world: &mut World) {
    for made in world.engine.containers.values_mut().filter(|made| made.phase == Phase::Running) {
        made.phase = Phase::Exited;
        made.exit_code = 137;
    }
    world.engine.gone = false;
    world.feed(Event::StreamUp(EngineInfo::default()));
}

fn phase(policy: RestartPolicy, phase: Phase) -> World {
    let mut world = running(policy);
    let id = world.container("w");
    world.engine.find_mut(id.as_str()).phase = phase;
    tell(&mut world, id, ContainerAction::Changed);
    world
}

fn stopped(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    world.verb("w", Verb::Stop);
    world
}

fn stopped_not_looked_at(policy: RestartPolicy) -> World {
    let mut world = stopped(policy);
    world.begin_agent();
    world
}

fn stop_without_engine(policy: RestartPolicy) -> World {
    let mut world = running(policy);
    lose_engine(&mut world);
    world.verb("w", Verb::Stop);
    world
}

/// A stop was sent, and the process does not listen.
fn deaf(policy: RestartPolicy, verb: Verb) -> World {
    let mut world = running(policy);
    world.fail_next("deaf", &[FaultKind::Trouble]);
    world.verb("w", verb);
    world
}

/// The same, and SIGKILL does not end it either.
fn undying(policy: RestartPolicy, verb: Verb) -> World {
    let mut world = running(policy);
    world.fail_next("deaf", &[FaultKind::Trouble; 2]);
    world.verb("w", verb);
    world.pass(10_000);
    world
}

fn removal(policy: RestartPolicy, silent: bool) -> World {
    let mut world = running(policy);
    if silent {
        world.unanswered.push("remove");
    } else {
        world.fail_next("remove", &[FaultKind::Trouble]);
    }
    world.verb("w", Verb::Remove);
    world
}

// --- event x state -----------------------------------------------------------------------------

/// What can happen, and how; whether it did.
type Happening = (&'static str, fn(&mut World) -> bool);

const SITUATIONS: &[fn() -> World] = &[
    || running(RestartPolicy::Always),
    || exited(RestartPolicy::Always, 1),
    || start_failed(RestartPolicy::Always, FaultKind::Refused, 5),
    || stuck(RestartPolicy::Always, WhenStuck::Hold),
    || exited(RestartPolicy::OnFailure, 0),
    || stopped(RestartPolicy::Always),
];

const HAPPENINGS: &[Happening] = &[
    ("its process exits with 1", |world| end_process(world, 1)),
    ("its process exits with 0", |world| end_process(world, 0)),
    ("somebody starts it", start_by_hand),
    ("its container vanishes", |world| {
        vanish(world);
        true
    }),
    ("the delay of the backoff is over", |world| {
        let waits = world.view("w").next_attempt.is_some();
        world.pass(10_000);
        waits
    }),
    ("the engine goes away", |world| {
        lose_engine(world);
        true
    }),
    ("the engine comes back, and all had ended", |world| {
        lose_engine(world);
        engine_comes_back(world);
        true
    }),
    ("the device starts again", |world| {
        // What was seen is written within five seconds.
        world.pass(5_000);
        let fresh = World::new();
        let mut old = std::mem::replace(world, fresh);
        for made in old.engine.containers.values_mut().filter(|made| made.phase == Phase::Running) {
            made.phase = Phase::Exited;
            made.exit_code = 137;
        }
        old.now = 1_000;
        *world = old.restart_agent("boot-2");
        true
    }),
    ("another image is applied", |world| {
        world.apply(&[&workload("w", |spec| {
            spec.image = "image:2".to_owned();
            spec.restart.policy = world.view("w").declared.spec.restart.policy;
        })]);
        true
    }),
    ("`start`", |world| verb(world, Verb::Start)),
    ("`stop`", |world| verb(world, Verb::Stop)),
    ("`restart`", |world| verb(world, Verb::Restart)),
    ("`rebuild`", |world| verb(world, Verb::Rebuild)),
    ("`rm`", |world| verb(world, Verb::Remove)),
];

#[test]
fn the_table_of_events_is_true() {
    let mut table = "| |".to_owned();
    for situation in SITUATIONS {
        let world = situation();
        let view = world.view("w");
        table.push_str(&format!(" {} {} |", state_words(view.state), view.runtime_state.as_str()));
    }
    table.push_str(&format!("\n|---|{}\n", "---|".repeat(SITUATIONS.len())));
    for (name, happen) in HAPPENINGS {
        table.push_str(&format!("| {name} |"));
        for situation in SITUATIONS {
            let mut world = situation();
            world.engine.calls.clear();
            let happened = happen(&mut world);
            let cell = if happened { outcome(&world) } else { "-".to_owned() };
            table.push_str(&format!(" {cell} |"));
        }
        table.push('\n');
    }
    check("events", &table);
}

/// The state that follows, and the calls of the engine on the way, listings apart.
fn outcome(world: &World) -> String {
    let state = match world.views.values().next() {
        Some(view) => state_words(view.state),
        None => "gone".to_owned(),
    };
    let calls: Vec<&str> = world
        .engine
        .calls
        .iter()
        .map(|call| call.split(" image").next().unwrap_or(call))
        .filter(|call| *call != "list")
        .collect();
    if calls.is_empty() { state } else { format!("{state}: `{}`", calls.join(", ")) }
}

fn end_process(world: &mut World, code: i32) -> bool {
    let runs = world.running() == 1;
    if runs {
        world.exit("w", code);
    }
    runs
}

fn start_by_hand(world: &mut World) -> bool {
    let id = world.container("w");
    let now = world.now;
    let made = world.engine.find_mut(id.as_str());
    if made.phase == Phase::Running {
        return false;
    }
    made.phase = Phase::Running;
    made.started_at_ns = (now + 1) * 1_000_000;
    tell(world, id, ContainerAction::Started);
    true
}

fn verb(world: &mut World, verb: Verb) -> bool {
    world.verb("w", verb);
    true
}
