//! An engine that is away, or answers nonsense: unknown is never absent, one line tells when it
//! begins and one when it is over, and everybody who asks gets an answer all along.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::device::{Device, service};
use crate::support::scripted_engine::{Bend, Leave, Route, ScriptedEngine};
use crate::support::{pause, side_by_side, until};

/// A trouble.
struct Trouble {
    begin: fn(&ScriptedEngine),
    /// What `/health/ready` says of it.
    cause: &'static str,
    /// Only listings suffer: the event stream, which the test cuts, is a trouble of its own.
    only_lists: bool,
}

const fn whole(begin: fn(&ScriptedEngine), cause: &'static str) -> Trouble {
    Trouble { begin, cause, only_lists: false }
}

const fn list(begin: fn(&ScriptedEngine), cause: &'static str) -> Trouble {
    Trouble { begin, cause, only_lists: true }
}

const TROUBLES: [(&str, Trouble); 11] = [
    ("absent", whole(|engine| engine.go_away(Leave::Nothing), "no engine socket at")),
    ("deserted", whole(|engine| engine.go_away(Leave::File), "left its socket")),
    ("silent", whole(|engine| engine.bend_all(Bend::Hang), "did not answer within")),
    ("half", whole(|engine| engine.bend_all(Bend::Half), "is cut")),
    ("garbage", whole(|engine| engine.bend_all(Bend::Garbage), "is no engine")),
    ("500", whole(|engine| engine.bend_all(Bend::Status(500)), "the script says 500")),
    ("silent list", list(|engine| engine.bend(Route::List, Bend::Hang), "did not answer within")),
    ("half a list", list(|engine| engine.bend(Route::List, Bend::Half), "is cut")),
    ("lost list", list(|engine| engine.bend(Route::List, Bend::Lost), "connection")),
    ("list of nonsense", list(|engine| nonsense(engine, "{\"a\": 1}"), "makes no sense")),
    ("list broken off", list(|engine| nonsense(engine, "[{\"Id\": \"x\"}, "), "makes no sense")),
];

fn nonsense(engine: &ScriptedEngine, body: &str) {
    engine.bend(Route::List, Bend::Body(body.to_owned()));
}

fn end(engine: &ScriptedEngine, trouble: &Trouble) {
    if trouble.cause.contains("socket") {
        engine.come_back();
    }
    engine.straighten();
}

#[test]
fn b62_troubles_come_and_go() {
    side_by_side(&TROUBLES, comes_and_goes);
}

fn comes_and_goes(trouble: &Trouble) {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let device = Device::running(&NAMES);
    let before = device.fingerprint();
    let logged = device.log().len();
    device.engine.forget_requests();
    (trouble.begin)(&device.engine);
    // An idle agent asks nothing: the end of its stream makes it look.
    device.engine.end_connections();
    // What was under way when it began may have ended in another way.
    let is_it = |said: &String| said.contains(trouble.cause);
    until(format!("{} to be told", trouble.cause), || device.not_ready().filter(is_it));

    device.deploy(&service("later"));
    // Two looks at the engine and more.
    pause(Duration::from_secs(12));
    everybody_is_answered(&device, &NAMES);
    assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());
    assert_eq!(device.fingerprint(), before);
    assert_eq!(device.workload("later").state, "Pending");
    let lines = lines_since(&device, logged, trouble);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("the engine is away"), "{lines:?}");

    let logged = device.log().len();
    end(&device.engine, trouble);
    device.until_ready();
    device.until_running(&["a", "b", "c", "later"]);
    device.container("later");
    let after = device.fingerprint();
    assert!(before.iter().all(|one| after.contains(one)), "{before:?} {after:?}");
    assert_eq!(device.engine.count(Route::Create), 1);
    let lines = lines_since(&device, logged, trouble);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("the engine is there"), "{lines:?}");
}

/// What was logged since. The stream is a line of its own where the engine goes on answering
/// without it: with listings that suffer alone, and where it was cut while it was being opened
/// again, a moment before the engine was gone.
fn lines_since(device: &Device, logged: usize, trouble: &Trouble) -> Vec<String> {
    let log = device.log()[logged..].to_owned();
    let was_cut = |line: &str| line.contains("the connection was lost");
    let is_apart =
        |line: &&str| line.contains("event stream") && (trouble.only_lists || was_cut(line));
    log.lines().filter(|line| !is_apart(line)).map(str::to_owned).collect()
}

fn everybody_is_answered(device: &Device, names: &[&str]) {
    assert_eq!(device.get("/health/live").unwrap().0, 200);
    assert!(device.not_ready().is_some());
    let ps = device.cli(&["ps"]);
    assert_eq!(ps.code, 0, "{}", ps.err);
    for name in names {
        assert!(ps.out.contains(&format!("default/{name} ")), "{}", ps.out);
        assert_eq!(device.workload(name).state, "Running", "the last seen state stays");
    }
    let inspect = device.cli(&["inspect", names[0], "-o", "json"]);
    assert_eq!(inspect.code, 0, "{}", inspect.err);
    assert_eq!(device.cli(&["status"]).code, 0);
}

#[test]
fn b62_an_agent_that_starts_into_trouble_carries_out_later() {
    side_by_side(&TROUBLES[..6], |trouble| {
        let mut device = Device::new();
        (trouble.begin)(&device.engine);
        device.launch();
        device.deploy(&service("early"));
        let said = until("the trouble to be named", || {
            device.not_ready().filter(|said| said.contains(trouble.cause))
        });
        assert!(said.contains("the engine is away"), "{said}");
        pause(Duration::from_secs(6));
        assert_eq!(device.log_lines("the engine is away").len(), 1, "{}", device.log());
        assert_eq!(device.engine.containers(), []);
        end(&device.engine, trouble);
        device.until_running(&["early"]);
        assert_eq!(device.log_lines("the engine is there").len(), 1);
        assert_eq!(device.engine.containers().len(), 1);
    });
}

#[test]
fn b62_an_agent_without_permission_says_so_and_waits_for_it() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can start an agent as another user");
        return;
    }
    let mut device = Device::unprivileged();
    let set = |name: &str, mode| {
        fs::set_permissions(device.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("engine/engine.sock", 0o600);
    device.launch();
    let set = |name: &str, mode| {
        fs::set_permissions(device.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    device.deploy(&service("web"));
    let said = until("the trouble to be named", || {
        device.not_ready().filter(|said| said.contains("no permission on"))
    });
    assert!(said.contains("add its user to the group"), "{said}");
    pause(Duration::from_secs(6));
    assert_eq!(device.log_lines("the engine is away").len(), 1, "{}", device.log());
    set("engine/engine.sock", 0o666);
    device.until_running(&["web"]);
    let before = device.fingerprint();

    // Taken away while it runs: never an empty list.
    set("engine", 0o700);
    device.engine.end_connections();
    until("the trouble to be seen", || device.not_ready());
    pause(Duration::from_secs(6));
    assert_eq!(device.workload("web").state, "Running");
    assert_eq!(device.log_lines("the engine is away").len(), 2, "{}", device.log());
    set("engine", 0o755);
    device.until_ready();
    assert_eq!(device.fingerprint(), before);
}

#[test]
fn a_dead_engine_takes_its_containers_along_and_counts_nothing() {
    let device = Device::running(&["a", "b"]);
    let before: Vec<_> = ["a", "b"].map(|name| device.container(name)).into();
    device.engine.go_away(Leave::File);
    until("the engine to be missed", || device.not_ready());
    for made in &before {
        device.engine.exit(&made.name, 137);
    }
    device.engine.come_back();
    for (name, before) in ["a", "b"].iter().zip(&before) {
        let again = device.until_started_again(name, before);
        assert_eq!(again.id, before.id);
        let workload = device.until_state(name, "Running(Ok)");
        assert_eq!((workload.restart_count, workload.last_error.as_str()), (0, ""));
    }
    assert_eq!(device.engine.containers().len(), 2);
}
