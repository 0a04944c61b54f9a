//! The tables of `docs/states.md` are what the machine does: each row is brought about here, and
//! the text that comes of it has to be the one on the page.

use super::*;
use crate::domain::declared::WhenStuck;
use situations::*;

mod situations;

const PAGE: &str = include_str!("../../../../../docs/states.md");

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
    (ALL, "running on probation, unhealthy by its check, and its stop was sent", |p| {
        unhealthy(p, Then::Returns)
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
