//! While the journal is replayed: what is served, and how commands wait for the rest.

use bargee::domain::view::TaskState;
use bargee::limits;
use serde_json::json;

use crate::fake::{Fake, Served, WEB, serve, view};
use crate::http::{call, get, post};
use crate::terminal::{MadeUpTime, Terminal};

fn recovering() -> Served {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    served.fake.set(|inner| inner.status.recovering = Some((3, 12)));
    served
}

const SENTENCE: &str =
    "recovering 3 of 12: until the journal is replayed, only it and the status are served";

#[test]
fn health_status_and_journal_are_served() {
    let served = recovering();
    for path in ["/health/live", "/v1/system/version", "/v1/journal"] {
        assert_eq!(get(&served.socket, path).status, 200, "{path}");
    }
    assert_eq!(get(&served.socket, "/v1/journal/7").code(), "NOT_FOUND");
    let ready = get(&served.socket, "/health/ready");
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json(), json!({"ok": false, "cause": "recovering 3 of 12"}));
    let status = get(&served.socket, "/v1/system/status").json();
    assert_eq!((&status["recovering"], &status["ready"]), (&json!("3 of 12"), &json!(false)));
    let out = Terminal::of(&served).run("status").out;
    assert!(out.ends_with("\nrecovering    3 of 12\n"), "{out}");
}

#[test]
fn everything_else_is_refused() {
    let served = recovering();
    let refused = [
        ("GET", "/v1/ms"),
        ("GET", "/v1/ms/web"),
        ("DELETE", "/v1/ms/web"),
        ("POST", "/v1/ms/web/stop"),
        ("GET", "/v1/ms/web/logs"),
        ("GET", "/v1/tasks/1"),
        ("GET", "/v1/events"),
        ("GET", "/v1/system/config"),
        ("POST", "/v1/system/adopt"),
        ("POST", "/v1/journal/replay"),
        ("POST", "/v1/journal/7/replay"),
        ("DELETE", "/v1/journal/7"),
    ];
    for (method, path) in refused {
        let answer = call(&served.socket, method, path);
        assert_eq!((answer.status, answer.code().as_str()), (503, "UNAVAILABLE"), "{path}");
        assert_eq!(answer.message(), SENTENCE);
        assert_eq!(answer.header("Retry-After"), Some("1"), "{path}");
    }
    let apply =
        post(&served.socket, "/v1/deploy/microservices:apply", "application/yaml", b"kind: W");
    assert_eq!((apply.status, apply.message().as_str()), (503, SENTENCE));
    served.fake.set(|inner| {
        assert!(inner.applied.is_empty() && inner.verbs.is_empty() && inner.acts.is_empty());
        inner.status.recovering = None;
    });
    assert_eq!(get(&served.socket, "/v1/ms").status, 200);
}

#[test]
fn commands_wait_for_the_end_of_it() {
    for words in ["ps", "deploy -f -", "stop web db", "rm web", "logs web", "events", "adopt --all"]
    {
        let served = recovering();
        served.fake.set(|inner| inner.views.push(view("shop", "db", "x").into()));
        let mut terminal = Terminal::of(&served);
        terminal.input = "kind: Workload";
        terminal.time = MadeUpTime::new(|now| {
            let progress = if now < 5_000 { Some((4, 12)) } else { None };
            served.fake.set(|inner| inner.status.recovering = progress);
        });
        let ran = terminal.run(words);
        let note = format!("{SENTENCE}; waiting up to 60s\n");
        assert_eq!((ran.exit, ran.err), (0, note), "{words}");
    }
}

#[test]
fn commands_do_not_wait_for_ever() {
    let served = recovering();
    let waited = std::cell::Cell::new(0);
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|now| waited.set(now));
    let ran = terminal.run("stop web db");
    assert_eq!(ran.exit, 1);
    let error =
        format!("error: {SENTENCE}\nhint: `bargee journal ls` shows what is left to replay\n");
    assert_eq!(ran.err, format!("{SENTENCE}; waiting up to 60s\n{error}{error}"));
    assert_eq!(waited.get(), limits::CLI_RECOVERING_MS, "both share the time");
}

#[test]
fn other_refusals_are_not_waited_for() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    let text = "the store is full".to_owned();
    let error = bargee::api::backend::AskError::Unavailable(text);
    served.fake.set(|inner| inner.refuse_verbs = Some(error));
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|_| panic!("waited"));
    let ran = terminal.run("stop web");
    assert_eq!(ran.exit, 1);
    assert!(ran.err.starts_with("error: the store is full\n"), "{}", ran.err);
}

#[test]
fn the_next_replay_is_waited_for_anew() {
    let served = recovering();
    let states = [TaskState::Pending, TaskState::Done];
    served.fake.set(|inner| inner.tasks.insert(1, states.into()));
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|now| {
        // The agent goes down between two looks after the task.
        let replays = now < 50_000 || (50_001..100_000).contains(&now);
        let progress = replays.then_some((3, 12));
        served.fake.set(|inner| inner.status.recovering = progress);
    });
    let ran = terminal.run("stop web");
    assert_eq!((ran.exit, ran.out.as_str()), (0, "shop/web stopped\n"));
    assert_eq!(ran.err, format!("{SENTENCE}; waiting up to 60s\n"), "told once");
}
