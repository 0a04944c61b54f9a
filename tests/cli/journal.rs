//! The journal and the adoption of containers, over the API and by the commands.

use std::sync::Arc;

use bargee::api::backend::AskError;
use bargee::domain::effect::Refusal;
use bargee::domain::event::Request;
use bargee::domain::intent::{Entry, Intent, Seq};
use bargee::domain::names::{ContainerId, InstanceName, Uid};
use serde_json::json;

use crate::fake::{DB, Fake, JOB, NOW, Served, TOKEN, WEB, serve, view};
use crate::http::{call, get};
use crate::terminal::Terminal;

fn entry(seq: u64, intent: Intent) -> Entry {
    Entry {
        seq: Seq(seq),
        intent,
        token: "another".into(),
        at_ms: NOW.wall_ms - 61_000,
        tries: 0,
        error: String::new(),
    }
}

fn name(text: &str) -> InstanceName {
    InstanceName::new(text)
}

/// One entry of each kind; only shop/web is a workload.
fn entries() -> Vec<Entry> {
    let create = Intent::Create { uid: Uid::new(WEB), instance: name("bargee-web-1") };
    let remove = Intent::Remove {
        uid: Uid::new(DB),
        instance: name("bargee-db-1"),
        container: Some(ContainerId::new("c1")),
    };
    let replace = Intent::Replace {
        uid: Uid::new(WEB),
        old: name("bargee-web-1"),
        container: None,
        new: name("bargee-web-2"),
    };
    let unreadable = Intent::Unreadable { kind: "fold-space".into(), text: "{\"x\": 1".into() };
    vec![
        Entry { token: TOKEN.into(), ..entry(7, create) },
        Entry { tries: 2, error: "the engine\nis away".into(), ..entry(8, remove) },
        entry(9, replace),
        entry(u64::MAX, unreadable),
    ]
}

fn served() -> Served {
    let served = serve(Fake::new().with([view("shop", "web", WEB), view("lab", "job", JOB)]));
    served.fake.set(|inner| inner.journal = entries().into_iter().map(Arc::new).collect());
    served
}

fn acts(served: &Served) -> Vec<Request> {
    served.fake.set(|inner| inner.acts.clone())
}

#[test]
fn entries_have_these_fields() {
    let served = served();
    let at = NOW.wall_ms - 61_000;
    let items = json!([
        {
            "key": "/wal/gate-1/00000000000000000007", "seq": 7, "type": "create-workload",
            "direction": "create", "uid": WEB, "workload": "shop/web",
            "instance": "bargee-web-1", "at": at, "tries": 0, "own": true,
        },
        {
            "key": "/wal/gate-1/00000000000000000008", "seq": 8, "type": "create-workload",
            "direction": "remove", "uid": DB, "instance": "bargee-db-1", "at": at, "tries": 2,
            "error": "the engine\nis away", "own": false,
        },
        {
            "key": "/wal/gate-1/00000000000000000009", "seq": 9, "type": "replace-workload",
            "uid": WEB, "workload": "shop/web", "instance": "bargee-web-1",
            "new": "bargee-web-2", "at": at, "tries": 0, "own": false,
        },
        {
            "key": "/wal/gate-1/18446744073709551615", "seq": u64::MAX, "type": "fold-space",
            "at": at, "tries": 0, "own": false,
        },
    ]);
    assert_eq!(get(&served.socket, "/v1/journal").json(), json!({"items": items}));
    assert_eq!(get(&served.socket, "/v1/journal/8").json(), items[1]);
    let unreadable = get(&served.socket, &format!("/v1/journal/{}", u64::MAX)).json();
    assert_eq!(unreadable["text"], "{\"x\": 1");
    let settled = get(&served.socket, "/v1/journal/6");
    assert_eq!((settled.status, settled.code().as_str()), (404, "NOT_FOUND"));
}

#[test]
fn requests_reach_the_agent() {
    let served = served();
    let calls = [
        ("POST", "/v1/journal/replay", Request::Replay(None)),
        ("POST", "/v1/journal/7/replay", Request::Replay(Some(Seq(7)))),
        ("DELETE", "/v1/journal/8", Request::DropEntry(Seq(8))),
        ("POST", "/v1/system/adopt", Request::Adopt(None)),
        ("POST", "/v1/system/adopt?name=shop/web", Request::Adopt(Some(Uid::new(WEB)))),
        ("POST", "/v1/system/adopt?name=2222", Request::Adopt(Some(Uid::new(JOB)))),
        ("POST", "/v1/system/confirm", Request::Confirm),
    ];
    for (at, (method, path, _)) in calls.iter().enumerate() {
        let answer = call(&served.socket, method, path);
        let message = format!("act {} was carried out", at + 1);
        assert_eq!((answer.status, answer.json()), (200, json!({ "message": message })), "{path}");
    }
    assert_eq!(acts(&served), calls.map(|(_, _, request)| request));
    assert_eq!(call(&served.socket, "POST", "/v1/system/adopt?name=db").status, 404);
    let refused = AskError::Refused(Refusal::NotFound("there is no entry 6".into()));
    served.fake.set(|inner| inner.refuse_acts = Some(refused));
    assert_eq!(call(&served.socket, "DELETE", "/v1/journal/6").status, 404);
    assert_eq!(acts(&served).len(), 7);
}

#[test]
fn status_counts_the_journal() {
    let served = served();
    served.fake.set(|inner| inner.status.journal = (4, 2));
    let status = get(&served.socket, "/v1/system/status").json();
    assert_eq!(status["journal"], json!({"entries": 4, "failing": 2}));
    assert_eq!(status.get("recovering"), None);
    let out = Terminal::of(&served).run("status").out;
    assert!(out.ends_with("\njournal       4 entries, 2 failing\n"), "{out}");
    served.fake.set(|inner| inner.status.journal = (1, 0));
    assert!(Terminal::of(&served).run("status").out.ends_with(" 1 entry, 0 failing\n"));
}

#[test]
fn the_journal_is_a_table() {
    let served = served();
    let ran = Terminal::of(&served).run("journal ls");
    let expected = format!(
        "SEQ                   TYPE              DIRECTION  WORKLOAD{}INSTANCE      AGE  TRIES  \
         ERROR\n",
        " ".repeat(30)
    );
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    let lines: Vec<&str> = ran.out.split_inclusive('\n').collect();
    assert_eq!(lines[0], expected);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let first = ["7", "create-workload", "create", "shop/web", "bargee-web-1", "1m", "0"];
    assert_eq!(words(lines[1]), first);
    assert!(lines[2].ends_with("1m   2      the engine is away\n"), "{}", lines[2]);
    assert!(lines[2].contains(DB), "a workload that is gone is named by its uid");
    assert_eq!(words(lines[3])[1..3], ["replace-workload", "shop/web"]);
    assert_eq!(words(lines[4])[1..], ["fold-space", "1m", "0"]);

    let json: serde_json::Value =
        serde_json::from_str(&Terminal::of(&served).run("journal ls -o json").out).unwrap();
    assert_eq!(json, get(&served.socket, "/v1/journal").json());
    served.fake.set(|inner| inner.journal.clear());
    let empty = Terminal::of(&served).run("ms journal ls");
    assert_eq!((empty.exit, empty.out.lines().count()), (0, 1));
    assert!(empty.err.starts_with("the journal is empty"), "{}", empty.err);
}

#[test]
fn an_entry_is_shown_whole() {
    let served = served();
    let ran = Terminal::of(&served).run("journal show 9");
    let expected = format!(
        "key: /wal/gate-1/00000000000000000009\nseq: 9\ntype: replace-workload\n\
         uid: \"{WEB}\"\nworkload: shop/web\ninstance: bargee-web-1\nnew: bargee-web-2\nat: {}\n\
         tries: 0\nown: false\n",
        NOW.wall_ms - 61_000
    );
    assert_eq!((ran.exit, ran.out), (0, expected));
    let json = Terminal::of(&served).run(&format!("journal show {} -o json", u64::MAX)).out;
    assert!(json.contains(r#""text": "{\"x\": 1""#), "{json}");
    let gone = Terminal::of(&served).run("journal show 6");
    assert_eq!(gone.exit, 4);
    assert!(gone.err.contains("\nhint: `bargee journal ls`"), "{}", gone.err);
}

#[test]
fn commands_say_what_the_agent_did() {
    let served = served();
    let commands = [
        ("journal replay", Request::Replay(None)),
        ("journal replay 8", Request::Replay(Some(Seq(8)))),
        ("journal drop 8 --yes", Request::DropEntry(Seq(8))),
        ("journal drop -y 9", Request::DropEntry(Seq(9))),
        ("adopt web", Request::Adopt(Some(Uid::new(WEB)))),
        ("ms adopt --all", Request::Adopt(None)),
        ("confirm", Request::Confirm),
    ];
    for (at, (words, _)) in commands.iter().enumerate() {
        let ran = Terminal::of(&served).run(words);
        let out = format!("act {} was carried out\n", at + 1);
        assert_eq!((ran.exit, ran.out, ran.err.as_str()), (0, out, ""), "{words}");
    }
    assert_eq!(acts(&served), commands.map(|(_, request)| request));
    let json = Terminal::of(&served).run("adopt web -o json").out;
    assert_eq!(json, "{\n  \"message\": \"act 8 was carried out\"\n}\n");
    assert_eq!(Terminal::of(&served).run("adopt db").exit, 4);
    let refused = AskError::Refused(Refusal::Conflict("it is under way".into()));
    served.fake.set(|inner| inner.refuse_acts = Some(refused));
    let ran = Terminal::of(&served).run("journal drop 8 --yes");
    assert_eq!((ran.exit, ran.err.as_str()), (5, "error: it is under way\n"));
}

#[test]
fn dropping_says_what_is_left_undone_and_asks() {
    let served = served();
    let drop = |seq: u64, input: &'static str| {
        let mut terminal = Terminal::of(&served);
        (terminal.is_terminal, terminal.input_is_terminal) = (true, true);
        terminal.input = input;
        terminal.run(&format!("journal drop {seq}"))
    };
    let left = format!(
        "entry 8, create-workload (remove); left undone: removing container bargee-db-1 of {DB}\n\
         drop entry 8? [y/N] "
    );
    for no in ["n\n", "\n", "yellow\n"] {
        let ran = drop(8, no);
        assert_eq!((ran.exit, ran.out.as_str()), (1, ""), "{no}");
        assert_eq!(ran.err, format!("{left}error: nothing was dropped\n"));
    }
    assert_eq!(drop(8, "").err, format!("{left}\nerror: nothing was dropped\n"));
    assert!(drop(7, "no\n").err.contains("bargee-web-1, if it was made and is not the one that"));
    assert!(
        drop(9, "no\n").err.contains("bargee-web-1 (old) and bargee-web-2 (new) that shop/web")
    );
    let unreadable = drop(u64::MAX, "no\n").err;
    assert!(unreadable.contains("nobody knows, since this version cannot read"), "{unreadable}");
    assert_eq!(drop(6, "yes\n").exit, 4, "what is not there is not asked for");
    assert!(acts(&served).is_empty());
    for yes in ["y\n", "YES\n"] {
        let ran = drop(8, yes);
        assert_eq!((ran.exit, ran.err.as_str()), (0, left.as_str()), "{yes}");
    }
    assert_eq!(acts(&served), [Request::DropEntry(Seq(8)), Request::DropEntry(Seq(8))]);
}

#[test]
fn without_a_terminal_nothing_is_dropped_unless_it_is_said() {
    let served = served();
    for (is_terminal, input_is_terminal) in [(false, false), (true, false), (false, true)] {
        let mut terminal = Terminal::of(&served);
        (terminal.is_terminal, terminal.input_is_terminal) = (is_terminal, input_is_terminal);
        terminal.input = "y\n";
        let ran = terminal.run("journal drop 8");
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("`bargee journal drop 8 --yes`"), "{}", ran.err);
    }
    assert!(acts(&served).is_empty());
}
