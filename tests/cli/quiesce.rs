//! Reconciling is held: how it is asked for, and what commands say that would wait.

use std::sync::Arc;

use bargee::api::backend::AskError;
use bargee::domain::effect::{Applied, Change, Refusal};
use bargee::domain::event::Request;
use bargee::domain::names::{BootId, Uid};
use bargee::domain::quiesce::Quiesce;
use bargee::domain::time::{Span, Tick};
use bargee::domain::view::{RuntimeState, State, TaskState, View};
use serde_json::json;

use crate::fake::{DB, Fake, NOW, Served, WEB, serve, view};
use crate::http::get;
use crate::terminal::Terminal;

/// A crashed workload that is not started again, and one that runs; 14 minutes are left.
fn held() -> Served {
    let crashed = View {
        state: State::PendingStarting,
        runtime_state: RuntimeState::Exiting,
        info: "exitCode=1; restart 1".into(),
        awaits_resume: true,
        ..view("shop", "web", WEB)
    };
    let served = serve(Fake::new().with([crashed, view("shop", "db", DB)]));
    served.fake.set(|inner| {
        let (since, until) = (NOW.tick - Span(60_000), NOW.tick + Span(840_000));
        inner.status.quiesced = Some(Quiesce { boot: BootId::new("b"), since, until });
        inner.tasks.insert(1, [TaskState::Pending].into());
    });
    served
}

#[test]
fn it_is_asked_for_with_a_time_or_without() {
    let served = serve(Fake::new());
    for words in ["quiesce", "quiesce --for 90s", "quiesce --for=24h", "resume"] {
        assert_eq!(Terminal::of(&served).run(words).exit, 0, "{words}");
    }
    let asked = served.fake.set(|inner| inner.acts.clone());
    let times = [900_000, 90_000, 86_400_000].map(|ms| Request::Quiesce(Span(ms)));
    assert_eq!(asked, [&times[..], &[Request::Resume]].concat());
    for (words, message) in [
        ("quiesce --for soon", "--for soon: must be a time like 90s, 15m or 1h"),
        ("quiesce --for 25h", "--for 25h: is longer than 24h"),
        ("quiesce web", "'web': quiesce takes no names; it holds all"),
        ("resume web", "'web' is one word too many"),
    ] {
        let ran = Terminal::of(&served).run(words);
        assert_eq!(ran.exit, 2, "{words}");
        assert!(ran.err.contains(message), "{words}: {}", ran.err);
    }
}

#[test]
fn a_verb_that_would_wait_says_so_at_once() {
    let served = held();
    let ran = Terminal::of(&served).run("stop web db");
    assert_eq!((ran.exit, ran.out.as_str()), (5, "shop/db stopped\n"));
    assert_eq!(
        ran.err,
        "error: shop/web: stop was accepted and is kept, but reconciling is held for another 840 \
         s\nhint: it is carried out when that is over; `bargee resume` ends it now\n"
    );
    let task = get(&served.socket, "/v1/tasks/1").json();
    assert_eq!((&task["state"], &task["held"]), (&json!("pending"), &json!(true)));
    assert_eq!(task["message"], "reconciling is held for another 840 s");
    let done = get(&served.socket, "/v1/tasks/2").json();
    assert_eq!(
        (&done["state"], done.get("held"), done.get("message")),
        (&json!("done"), None, None)
    );
    // Whoever does not wait is not held up.
    assert_eq!(Terminal::of(&served).run("stop web --no-wait").exit, 0);
}

#[test]
fn a_deploy_that_would_wait_says_so_at_once() {
    let served = held();
    let key = served.fake.set(|inner| inner.views[0].declared.key.clone());
    let applied = Applied { key, uid: Uid::new(WEB), generation: 2, change: Change::Replaced };
    served.fake.set(|inner| inner.applies.push_back(Ok(vec![applied])));
    let mut terminal = Terminal::of(&served);
    terminal.input = "kind: Workload";
    let ran = terminal.run("deploy -f - --wait");
    assert_eq!((ran.exit, ran.out.as_str()), (5, "shop/web replaced (generation 2)\n"));
    assert!(ran.err.starts_with("error: shop/web: what is declared was accepted"), "{}", ran.err);
}

#[test]
fn workloads_and_status_say_so() {
    let served = held();
    let web = get(&served.socket, "/v1/ms/web").json();
    assert_eq!(web["held"], true);
    assert_eq!(web["stateInfo"], "reconciling is held for another 840 s; exitCode=1; restart 1");
    let db = get(&served.socket, "/v1/ms/db").json();
    assert_eq!((db.get("held"), db.get("stateInfo")), (None, None));
    let status = get(&served.socket, "/v1/system/status").json();
    let (since, until) = (NOW.wall_ms - 60_000, NOW.wall_ms + 840_000);
    assert_eq!(status["quiesced"], json!({"since": since, "until": until}));
    assert_eq!(status["ready"], true);
    let sheet = Terminal::of(&served).run("status").out;
    let line = "quiesced      since 2026-11-30T12:02:04Z, until 2026-11-30T12:17:04Z: reconciling";
    assert!(sheet.contains(line), "{sheet}");
    served.fake.set(|inner| inner.status.quiesced = None);
    assert_eq!(get(&served.socket, "/v1/system/status").json().get("quiesced"), None);
}

/// What waits for its own time waits in vain, too.
#[test]
fn a_backoff_is_held_as_well() {
    let served = held();
    served.fake.set(|inner| {
        let web = Arc::make_mut(&mut inner.views[0]);
        web.awaits_resume = false;
        web.next_attempt = Some(Tick(NOW.tick.0 + 5_000));
    });
    let web = get(&served.socket, "/v1/ms/web").json();
    assert_eq!(web["stateInfo"], "reconciling is held for another 840 s; exitCode=1; restart 1");
}

#[test]
fn an_agent_that_ends_refuses_changes() {
    let served = held();
    let text = "the agent ends, and stops its workloads before that";
    let ending = AskError::Refused(Refusal::Ending(text.into()));
    served.fake.set(|inner| inner.refuse_verbs = Some(ending));
    let ran = Terminal::of(&served).run("stop web");
    assert_eq!(ran.exit, 1);
    assert!(ran.err.starts_with(&format!("error: {text}\n")), "{}", ran.err);
}
