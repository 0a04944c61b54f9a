//! Every route and every refusal, as a client sees them.

use std::sync::Arc;

use bargee::api::backend::AskError;
use bargee::domain::declared::Problem;
use bargee::domain::effect::{Applied, Change, Refusal};
use bargee::domain::event::Verb;
use bargee::domain::names::{Key, Label, Uid};
use bargee::domain::time::{Now, Tick};
use bargee::domain::view::{PullProgress, RuntimeState, State, TaskState, View};
use bargee::limits;
use serde_json::json;

use crate::fake::{DB, Fake, NOW, WEB, serve, stopped, view};
use crate::http::{Connection, call, get, post};

const APPLY: &str = "/v1/deploy/microservices:apply";

#[test]
fn health_names_the_cause() {
    let served = serve(Fake::new());
    let ready = || get(&served.socket, "/health/ready");
    assert_eq!(get(&served.socket, "/health/live").json(), json!({"ok": true}));
    assert_eq!(ready().status, 200);
    served.fake.set(|inner| inner.status.listed = false);
    assert_eq!(ready().status, 503);
    assert!(ready().json()["cause"].as_str().unwrap().contains("not listed yet"));
    served.fake.set(|inner| {
        inner.status.engine_up = false;
        inner.status.engine_error = "no socket".into();
    });
    assert_eq!(ready().json(), json!({"ok": false, "cause": "the engine is away: no socket"}));
    assert_eq!(get(&served.socket, "/health/live").status, 200);
}

#[test]
fn a_running_workload_has_these_fields() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    let answer = get(&served.socket, "/v1/ms/web");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({
            "uid": WEB, "application": "shop", "name": "web", "source": "local",
            "node": "gate-1", "engine": "docker", "image": "nginx:1.27",
            "imageId": "sha256:abc", "desiredState": "running", "generation": 1,
            "observedGeneration": 1, "state": "Running", "substate": "Ok",
            "runtimeState": "RUNNING", "containerId": "c-web", "pid": 77,
            "ipAddress": "10.0.0.2", "ports": ["0.0.0.0:8080->80/tcp"],
            "createdAt": NOW.wall_ms - 90_000, "startedAt": NOW.wall_ms - 61_000,
            "cpuUsage": 12.35, "memoryUsage": 3 << 20, "errorMessage": "",
            "manifest": {"kind": "Workload", "metadata": {"name": "web"}},
        })
    );
}

#[test]
fn b76_a_run_that_began_in_1970_is_as_old_as_it_is() {
    let seen = Now { tick: Tick(NOW.tick.0 - 61_000), wall_ms: 6_000 };
    let old = View { started_at_ms: 5_000, run_seen: Some(seen), ..view("shop", "web", WEB) };
    let served = serve(Fake::new().with([old]));
    let started = || get(&served.socket, "/v1/ms/web").json()["startedAt"].as_u64().unwrap();
    assert_eq!(started(), NOW.wall_ms - 61_000 - 1_000);
    // A clock that is only slewed moves nothing.
    let seen = Now { wall_ms: NOW.wall_ms - 61_000 + 29_000, ..seen };
    let view = View { run_seen: Some(seen), ..view("shop", "web", WEB) };
    served.fake.set(|inner| inner.views = vec![Arc::new(view)]);
    assert_eq!(started(), NOW.wall_ms - 61_000);
}

#[test]
fn while_the_engine_is_away_the_line_says_since_when() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    served.fake.set(|inner| {
        inner.status.engine_up = false;
        inner.status.away_since = Some(Tick(NOW.tick.0 - 32_000));
    });
    let workload = get(&served.socket, "/v1/ms/web").json();
    assert_eq!(workload["stateInfo"], "the engine has been away for 32 s");
    assert_eq!(workload["state"], "Running", "the last seen state stays");
}

#[test]
fn a_workload_in_trouble_has_these_fields_too() {
    let trouble = View {
        state: State::PendingStarting,
        runtime_state: RuntimeState::Exiting,
        info: "exitCode=1; restart 3".into(),
        next_attempt: Some(NOW.tick + bargee::domain::time::Span(31_001)),
        pull: Some(PullProgress { done_bytes: 1, total_bytes: 2 }),
        exit_code: Some(0),
        error_message: "boom".into(),
        last_error: "boom".into(),
        last_error_at_ms: 5,
        restart_count: 2,
        failure_count: 3,
        failed_update: Some((4, "no image".into())),
        update_retries: true,
        ..stopped("shop", "db", DB)
    };
    let served = serve(Fake::new().with([trouble]));
    let workload = get(&served.socket, "/v1/ms/db").json();
    let expected = json!({
        "stateInfo": "exitCode=1; restart 3 in 32 s", "nextAttemptAt": NOW.wall_ms + 31_001,
        "pullProgress": {"doneBytes": 1, "totalBytes": 2}, "exitCode": 0,
        "errorMessage": "boom", "lastError": "boom", "lastErrorAt": 5, "restartCount": 2,
        "failureCount": 3, "failedUpdate": {"generation": 4, "cause": "no image", "retries": true},
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&workload[field], value, "{field}");
    }
    for absent in ["observedGeneration", "containerId", "pid", "startedAt", "cpuUsage", "ports"] {
        assert!(workload.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn a_sample_does_not_outlive_the_process() {
    let served = serve(Fake::new().with([stopped("shop", "web", WEB)]));
    let workload = get(&served.socket, "/v1/ms/web").json();
    for absent in ["cpuUsage", "memoryUsage"] {
        assert!(workload.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn a_try_that_is_due_is_not_announced() {
    let due = View { info: "restart 3".into(), next_attempt: Some(Tick(1)), ..view("a", "b", DB) };
    let served = serve(Fake::new().with([due]));
    let workload = get(&served.socket, "/v1/ms/b").json();
    assert_eq!(workload["stateInfo"], "restart 3");
    assert!(workload.get("nextAttemptAt").is_none());
}

#[test]
fn lists_are_filtered() {
    let served = serve(Fake::new().with([view("shop", "web", WEB), stopped("shop", "db", DB)]));
    let names = |query: &str| {
        let list = get(&served.socket, &format!("/v1/ms{query}")).json();
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["web", "db"]);
    assert_eq!(names("?state=stopped"), ["db"]);
    assert_eq!(names("?source=local&application=shop"), ["web", "db"]);
    assert!(names("?application=other").is_empty());
    assert!(names("?source=managed").is_empty());
}

#[test]
fn verbs_are_accepted_as_tasks() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    let calls = [
        ("POST", "/v1/ms/web/start", Verb::Start),
        ("POST", "/v1/ms/shop.web/stop", Verb::Stop),
        ("POST", "/v1/ms/shop%2Fweb/restart", Verb::Restart),
        ("POST", "/v1/ms/web/rebuild", Verb::Rebuild),
        ("POST", "/v1/ms/1111/kill?signal=HUP", Verb::Kill("SIGHUP".into())),
        ("DELETE", "/v1/ms/web", Verb::Remove),
    ];
    for (at, (method, path, _)) in calls.iter().enumerate() {
        let answer = call(&served.socket, method, path);
        assert_eq!(answer.status, 202, "{path}");
        assert_eq!(answer.json(), json!({"task": at + 1, "revision": 44}), "{path}");
    }
    let asked = served.fake.set(|inner| inner.verbs.clone());
    let wanted: Vec<_> = calls.into_iter().map(|(_, _, verb)| (WEB.to_owned(), verb)).collect();
    assert_eq!(asked, wanted);
}

#[test]
fn tasks_tell_how_they_stand() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    served.fake.set(|inner| {
        inner.tasks.insert(1, [TaskState::Failed].into());
        inner.task_message = "too bad".into();
    });
    call(&served.socket, "POST", "/v1/ms/web/stop");
    let expected = json!({
        "id": 1, "verb": "stop", "uid": WEB, "key": "shop/web", "state": "failed",
        "message": "too bad",
    });
    assert_eq!(get(&served.socket, "/v1/tasks/1").json(), expected);
    let unknown = get(&served.socket, "/v1/tasks/2");
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "NOT_FOUND"));
}

#[test]
fn an_apply_takes_files_or_one_raw_body() {
    let served = serve(Fake::new());
    let key =
        Key { application: Label::parse("shop").unwrap(), name: Label::parse("web").unwrap() };
    let applied = Applied { key, uid: Uid::new(WEB), generation: 3, change: Change::Replaced };
    served.fake.set(|inner| inner.applies.push_back(Ok(vec![applied])));
    let files = br#"{"files":[{"name":"a.yaml","text":"x"},{"name":"b.yaml","text":"y"}]}"#;
    let answer = post(&served.socket, APPLY, "application/json", files);
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({"revision": 43, "items": [
            {"key": "shop/web", "uid": WEB, "generation": 3, "change": "replaced"},
        ]})
    );
    post(&served.socket, &format!("{APPLY}?dryRun=true"), "application/yaml", b"kind: W");
    let asked = served.fake.set(|inner| inner.applied.clone());
    let names: Vec<Vec<&str>> = asked
        .iter()
        .map(|(files, _)| files.iter().map(|file| file.name.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["a.yaml", "b.yaml"], vec!["request body"]]);
    assert_eq!([asked[0].1.dry_run, asked[1].1.dry_run], [false, true]);
    assert_eq!(asked[1].0[0].text, "kind: W");
}

#[test]
fn refusals_of_the_agent_reach_the_client() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    let problem = Problem {
        file: "a.yaml".into(),
        line: 2,
        field: "spec.image".into(),
        message: "is missing".into(),
    };
    let text = "because".to_owned();
    let refusals = [
        (AskError::Invalid(vec![problem]), 422, "INVALID_ARGUMENT"),
        (AskError::Refused(Refusal::Conflict(text.clone())), 409, "CONFLICT"),
        (AskError::Refused(Refusal::Busy(text.clone())), 429, "BUSY"),
        (AskError::Refused(Refusal::Store(text.clone())), 503, "UNAVAILABLE"),
        (AskError::Refused(Refusal::NotFound(text.clone())), 404, "NOT_FOUND"),
        (AskError::Late, 504, "LATE"),
        (AskError::Unavailable(text), 503, "UNAVAILABLE"),
    ];
    for (error, status, code) in refusals {
        served.fake.set(|inner| {
            inner.applies = [Err(error.clone())].into();
            inner.refuse_verbs = Some(error);
        });
        let answers = [
            post(&served.socket, APPLY, "application/yaml", b"x"),
            call(&served.socket, "POST", "/v1/ms/web/stop"),
        ];
        for answer in answers {
            assert_eq!((answer.status, answer.code().as_str()), (status, code));
            assert_eq!(answer.header("Retry-After"), (status == 429).then_some("1"));
        }
    }
}

#[test]
fn wrong_requests_are_refused_in_one_shape() {
    let served = serve(Fake::new());
    let cases = [
        ("GET", "/v1/nothing", 404, "NOT_FOUND"),
        ("GET", "/v1/ms/nobody", 404, "NOT_FOUND"),
        ("POST", "/v1/ms/nobody/stop", 404, "NOT_FOUND"),
        ("GET", "/v1/ms/nobody/logs", 404, "NOT_FOUND"),
        ("PUT", "/v1/ms", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/v1/ms?sort=name", 400, "INVALID_ARGUMENT"),
    ];
    for (method, path, status, code) in cases {
        let answer = call(&served.socket, method, path);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{method} {path}");
    }
    assert_eq!(call(&served.socket, "PUT", "/v1/ms").header("Allow"), Some("GET"));
}

#[test]
fn an_ambiguous_name_lists_what_it_could_mean() {
    let served = serve(Fake::new().with([view("shop", "web", WEB), view("lab", "web", DB)]));
    let answer = get(&served.socket, "/v1/ms/web");
    assert_eq!((answer.status, answer.code().as_str()), (409, "CONFLICT"));
    assert_eq!(
        answer.json()["error"]["details"],
        json!([{"uid": WEB, "key": "shop/web"}, {"uid": DB, "key": "lab/web"}])
    );
}

#[test]
fn the_agent_describes_itself() {
    let fake = Fake::new().with([view("shop", "web", WEB), stopped("shop", "db", DB)]);
    fake.set(|inner| {
        inner.status.tasks = 3;
        inner.status.conditions.insert("storeMissing", "another store".into());
    });
    let served = serve(fake);
    assert_eq!(
        get(&served.socket, "/v1/system/status").json(),
        json!({
            "node": "gate-1", "storeId": "5707e", "version": "9.9.9", "ready": true,
            "revision": 42,
            "engine": {
                "name": "docker", "version": "20.10.24", "apiVersion": "1.41", "up": true,
            },
            "stream": "up", "counts": {"Running": 1, "Stopped": 1},
            "queue": {"tasks": 3, "limit": limits::TASK_QUEUE},
            "journal": {"entries": 0, "failing": 0},
            "conditions": [{"type": "storeMissing", "message": "another store"}],
        })
    );
    let version = get(&served.socket, "/v1/system/version").json();
    assert_eq!(version, json!({"version": "9.9.9"}));
    let config = get(&served.socket, "/v1/system/config");
    assert_eq!(config.body, r#"{"node":"gate-1","engine":"docker"}"#);
}

#[test]
fn large_bodies_are_refused_whatever_their_length_is_said_to_be() {
    let served = serve(Fake::new());
    let over = vec![b'x'; limits::BODY_BYTES + 1];
    let declared = post(&served.socket, APPLY, "application/yaml", &over);
    assert_eq!((declared.status, declared.code().as_str()), (413, "TOO_LARGE"));

    let mut pieces = Connection::open(&served.socket);
    let head = format!("POST {APPLY} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    pieces.send(head.as_bytes());
    pieces.send(format!("{:x}\r\n", over.len()).as_bytes());
    pieces.send(&over);
    pieces.send(b"\r\n0\r\n\r\n");
    assert_eq!(pieces.answer().status, 413);

    let full = &over[1..];
    assert_eq!(post(&served.socket, APPLY, "application/yaml", full).status, 200);
    let taken = served.fake.set(|inner| inner.applied.len());
    assert_eq!(taken, 1, "only the one within the bound reached the agent");
}

#[test]
fn a_length_beyond_memory_does_not_end_the_agent() {
    let served = serve(Fake::new());
    let mut liar = Connection::open(&served.socket);
    let head =
        format!("POST {APPLY} HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000000000\r\n\r\n");
    liar.send(head.as_bytes());
    liar.send(b"kind");
    assert_eq!(liar.head().status, 100);
    assert_eq!(liar.answer().status, 413);
    drop(liar);
    let mut leaver = Connection::open(&served.socket);
    let length = limits::BODY_DRAIN_BYTES;
    leaver.send(format!("GET /v1/ms HTTP/1.1\r\nContent-Length: {length}\r\n\r\n").as_bytes());
    drop(leaver);
    for _ in 0..limits::API_THREADS + 1 {
        assert_eq!(get(&served.socket, "/health/live").status, 200);
    }
}

#[test]
fn a_body_that_breaks_off_is_not_applied() {
    let served = serve(Fake::new());
    let mut short = Connection::open(&served.socket);
    let head = format!("POST {APPLY} HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\nkind");
    short.send(head.as_bytes());
    drop(short);
    // Were it taken for a whole body, it would be applied before the next one is.
    assert_eq!(post(&served.socket, APPLY, "application/yaml", b"whole").status, 200);
    served.fake.set(|inner| {
        assert!(inner.applied.iter().all(|(files, _)| files[0].text == "whole"));
    });
}

#[test]
fn a_bug_costs_one_answer_and_no_thread() {
    let served = serve(Fake::new().with([view("shop", "web", WEB)]));
    served.fake.set(|inner| inner.panics = true);
    for _ in 0..2 * limits::API_THREADS {
        let answer = get(&served.socket, "/v1/ms");
        assert_eq!((answer.status, answer.code().as_str()), (500, "INTERNAL"));
        assert!(answer.message().contains("GET /v1/ms"));
    }
    served.fake.set(|inner| inner.panics = false);
    assert_eq!(get(&served.socket, "/v1/ms").status, 200);
}

#[test]
fn a_connection_is_used_again() {
    let served = serve(Fake::new());
    let mut connection = Connection::open(&served.socket);
    for _ in 0..3 {
        connection.request("GET", "/v1/nothing", "", b"");
        assert_eq!(connection.answer().status, 404);
    }
}
