//! What the commands print, and with which exit code they end.

use std::sync::Arc;

use bargee::api::backend::AskError;
use bargee::cli::Outcome;
use bargee::cli::failure::Exit;
use bargee::domain::effect::Refusal;
use bargee::domain::event::Verb;
use bargee::domain::health_check::Health;
use bargee::domain::time::Span;
use bargee::domain::view::{
    Manifests, PullProgress, RuntimeState, State, TaskState, Transition, View,
};

use crate::fake::{DB, Fake, JOB, NOW, Served, WEB, serve, stopped, transition, view};
use crate::terminal::{MadeUpTime, Terminal};

fn pulling() -> View {
    View {
        state: State::PendingStarting,
        runtime_state: RuntimeState::Pulling,
        info: "pulling nginx:1.27".into(),
        pull: Some(PullProgress { done_bytes: 1_536 << 10, total_bytes: 4 << 20 }),
        desired: bargee::domain::record::Desired::Running,
        restart_count: 4,
        ..stopped("shop", "job", JOB)
    }
}

fn three() -> Served {
    serve(Fake::new().with([view("shop", "web", WEB), stopped("shop", "db", DB), pulling()]))
}

#[test]
fn ps_hides_what_is_stopped() {
    let served = three();
    let head = "NAME      STATE              UP  RESTARTS  CPU    MEMORY   IMAGE       \
                PORTS                 INFO\n";
    let web = "shop/web  Running(Ok)        1m  0         12.3%  3.0 MiB  nginx:1.27  \
               0.0.0.0:8080->80/tcp\n";
    let job = "shop/job  Pending(Starting)      4                         nginx:1.27  \
               \x20                     pulling nginx:1.27; 1.5 MiB of 4.0 MiB pulled\n";
    let ran = Terminal::of(&served).run("ps");
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, format!("{head}{web}{job}"));
    let all = Terminal::of(&served).run("ms ps -a").out;
    assert_eq!(all.lines().count(), 4);
    assert!(all.contains("shop/db   Stopped(Ok)"));
}

#[test]
fn ps_shows_health_beside_the_state() {
    let healthy = View { health: Some(Health::Healthy), ..view("shop", "web", WEB) };
    let unhealthy = View {
        health: Some(Health::Unhealthy),
        info: "unhealthy: exitCode=1".into(),
        ..view("shop", "db", DB)
    };
    let served = serve(Fake::new().with([healthy, unhealthy, stopped("shop", "job", JOB)]));
    let ran = Terminal::of(&served).run("ps -a").out;
    let states: Vec<&str> =
        ran.lines().map(|line| line[10..].split("  ").next().unwrap()).collect();
    assert_eq!(states, ["STATE", "Running(Ok) healthy", "Running(Ok) unhealthy", "Stopped(Ok)"]);
    assert!(ran.contains("  unhealthy: exitCode=1\n"), "{ran}");
    assert!(Terminal::of(&served).run("inspect db").out.contains("\nhealth: unhealthy\n"));
    assert!(!Terminal::of(&served).run("inspect job").out.contains("health"));
}

#[test]
fn ps_for_programs_holds_the_same_workloads() {
    let served = three();
    let names = |words: &str| {
        let list: serde_json::Value =
            serde_json::from_str(&Terminal::of(&served).run(words).out).unwrap();
        let items = list["items"].as_array().unwrap().clone();
        items.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("ps -o json"), ["web", "job"]);
    assert_eq!(names("ps -a -o json"), ["web", "db", "job"]);
    let yaml = Terminal::of(&served).run("ps -o yaml").out;
    assert!(yaml.starts_with("items:\n  - uid: \"11111111-"), "{yaml}");
}

#[test]
fn an_empty_ps_tells_of_what_it_hides() {
    let served = serve(Fake::new().with([stopped("shop", "db", DB)]));
    let ran = Terminal::of(&served).run("ps");
    assert_eq!(ran.err, "1 stopped or succeeded; `bargee ps -a` lists them too\n");
    assert_eq!(ran.out.lines().count(), 1);
}

#[test]
fn inspect_shows_the_workload_in_the_order_of_the_api() {
    let served = serve(Fake::new().with([stopped("shop", "db", DB)]));
    let expected = format!(
        "uid: \"{DB}\"\napplication: shop\nname: db\nsource: local\nnode: gate-1\n\
         engine: docker\nimage: nginx:1.27\ndesiredState: stopped\ngeneration: 1\n\
         state: Stopped\nsubstate: Ok\nruntimeState: STOPPED\ncreatedAt: {}\n\
         errorMessage: \"\"\nmanifest:\n  kind: Workload\n  metadata:\n    name: db\n",
        NOW.wall_ms - 90_000
    );
    assert_eq!(Terminal::of(&served).run("inspect db").out, expected);
    let json = Terminal::of(&served).run("inspect db -o json").out;
    assert!(json.starts_with(&format!("{{\n  \"uid\": \"{DB}\",\n  \"application\"")), "{json}");
}

#[test]
fn inspect_shows_what_it_can() {
    let served = three();
    let ran = Terminal::of(&served).run("inspect web nobody db");
    assert_eq!(ran.exit, 4);
    assert_eq!(ran.out.matches("\n  application: shop").count(), 2, "{}", ran.out);
    assert_eq!(
        ran.err,
        "error: no workload is called 'nobody'\nhint: `bargee ps -a` lists all workloads\n"
    );
}

#[test]
fn status_is_a_sheet() {
    let served = three();
    served.fake.set(|inner| {
        inner.status.engine_up = false;
        inner.status.engine_error = "connection refused".into();
        inner.status.stream_up = false;
        inner.status.tasks = 2;
        inner.status.manifests = Some(Arc::new(Manifests {
            path: "/m".into(),
            files: 3,
            settling: 1,
            ignored: vec!["a.yaml~".into()],
            ignored_count: 2,
        }));
        inner.status.conditions.insert("storeMissing", "3 containers wait".into());
    });
    assert_eq!(
        Terminal::of(&served).run("status").out,
        "node          gate-1\n\
         version       9.9.9\n\
         store         5707e\n\
         ready         no\n\
         engine        docker 20.10.24 (API 1.41), away: connection refused\n\
         event stream  down\n\
         workloads     3: 1 Pending, 1 Running, 1 Stopped\n\
         tasks         2 of at most 100\n\
         manifests     3 in /m, 1 being written; ignored: a.yaml~ and 1 more\n\
         condition     storeMissing: 3 containers wait\n"
    );
    assert!(Terminal::of(&served).run("status -o yaml").out.contains("stream: down\n"));
}

#[test]
fn version_shows_both() {
    let served = three();
    let out = Terminal::of(&served).run("version").out;
    assert_eq!(out, format!("client  {}\nagent   9.9.9\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn verbs_wait_for_their_task() {
    let served = three();
    served.fake.set(|inner| {
        let states = [TaskState::Pending, TaskState::Running, TaskState::Done];
        inner.tasks.insert(1, states.into());
    });
    let ran = Terminal::of(&served).run("stop web");
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (0, "shop/web stopped\n", ""));
    let words = [
        ("start shop/db", "shop/db started\n"),
        ("restart shop.web", "shop/web restarted\n"),
        ("rebuild shop/web", "shop/web rebuilt\n"),
        ("kill web --signal HUP", "shop/web signalled\n"),
        ("ms rm 11111111", "shop/web removed\n"),
    ];
    for (words, out) in words {
        assert_eq!(Terminal::of(&served).run(words).out, out);
    }
    let asked: Vec<Verb> =
        served.fake.set(|inner| inner.verbs.iter().map(|(_, verb)| verb.clone()).collect());
    let kill = Verb::Kill("SIGHUP".into());
    assert_eq!(asked, [Verb::Stop, Verb::Start, Verb::Restart, Verb::Rebuild, kill, Verb::Remove]);
}

#[test]
fn verbs_for_programs_list_their_tasks() {
    let served = three();
    let out = Terminal::of(&served).run("stop web -o json").out;
    let list: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list["items"][0]["state"], "done");
    assert_eq!(list["items"][0]["key"], "shop/web");
}

#[test]
fn a_verb_that_does_not_wait_names_its_task() {
    let served = three();
    served.fake.set(|inner| inner.tasks.insert(1, [TaskState::Pending].into()));
    let ran = Terminal::of(&served).run("stop web --no-wait");
    assert_eq!((ran.exit, ran.out.as_str()), (0, "web: stop accepted (task 1)\n"));
}

#[test]
fn all_that_can_be_done_is_done_and_the_first_failure_counts() {
    let served = three();
    served.fake.set(|inner| {
        inner.tasks.insert(1, [TaskState::Failed].into());
        inner.task_message = "it is stuck".into();
    });
    let ran = Terminal::of(&served).run("stop nobody web db");
    assert_eq!(ran.exit, 4);
    assert_eq!(ran.out, "shop/db stopped\n");
    assert_eq!(
        ran.err,
        "error: no workload is called 'nobody'\n\
         hint: `bargee ps -a` lists all workloads\n\
         error: shop/web: stop failed: it is stuck\n\
         hint: `bargee inspect shop/web` says more\n"
    );
}

#[test]
fn a_superseded_verb_is_a_conflict() {
    let served = three();
    served.fake.set(|inner| {
        inner.tasks.insert(1, [TaskState::Superseded].into());
        inner.task_message = "a later start".into();
    });
    let ran = Terminal::of(&served).run("stop web");
    assert_eq!(ran.exit, 5);
    assert_eq!(ran.err, "error: shop/web: stop was superseded by a later start\n");
}

#[test]
fn a_verb_does_not_wait_for_ever() {
    let served = three();
    served.fake.set(|inner| inner.tasks.insert(1, [TaskState::Running].into()));
    let ran = Terminal::of(&served).run("rm web");
    assert_eq!(ran.exit, 1);
    assert_eq!(
        ran.err,
        "shop/web: rm is under way: Running(Ok)\n\
         error: shop/web: rm is not done after 120s; it goes on in the background\n\
         hint: `bargee inspect shop/web` shows how far it is\n"
    );
}

#[test]
fn what_takes_its_time_is_told_once() {
    let away = View { info: "the engine has been away for 5 s".into(), ..view("shop", "web", WEB) };
    let served = serve(Fake::new().with([away]));
    served.fake.set(|inner| inner.tasks.insert(1, [TaskState::Pending].into()));
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|now| {
        if now > 20_000 {
            served.fake.set(|inner| inner.tasks.insert(1, [TaskState::Done].into()));
        }
    });
    let ran = terminal.run("stop web");
    assert_eq!((ran.exit, ran.out.as_str()), (0, "shop/web stopped\n"));
    let told = "shop/web: stop is under way: Running(Ok): the engine has been away for 5 s\n";
    assert_eq!(ran.err, told);
}

#[test]
fn a_name_that_is_given_twice_is_asked_for_once() {
    let served = three();
    let ran = Terminal::of(&served).run("start web db web");
    assert_eq!((ran.exit, ran.out.as_str()), (0, "shop/web started\nshop/db started\n"));
    assert_eq!(served.fake.set(|inner| inner.verbs.len()), 2);
}

#[test]
fn a_task_that_the_agent_forgot_is_a_failure() {
    let served = three();
    served.fake.set(|inner| inner.tasks.insert(1, [TaskState::Running].into()));
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|_| served.fake.set(|inner| inner.tasks.clear()));
    let ran = terminal.run("stop web");
    assert_eq!(ran.exit, 1);
    assert!(ran.err.starts_with("error: web: what came of it is not known: "), "{}", ran.err);
}

#[test]
fn refusals_have_their_exit_codes() {
    let served = serve(Fake::new().with([view("shop", "web", WEB), view("lab", "web", DB)]));
    let ambiguous = Terminal::of(&served).run("stop web");
    assert_eq!(ambiguous.exit, 5);
    assert!(ambiguous.err.contains("could be any of shop/web"));
    assert!(ambiguous.err.ends_with("hint: name it as application/name or by its uid\n"));
    let text = || "because".to_owned();
    let refusals = [
        (AskError::Refused(Refusal::Conflict(text())), 5),
        (AskError::Refused(Refusal::Busy(text())), 1),
        (AskError::Unavailable(text()), 1),
        (AskError::Late, 1),
    ];
    for (error, exit) in refusals {
        served.fake.set(|inner| inner.refuse_verbs = Some(error));
        assert_eq!(Terminal::of(&served).run("stop lab/web").exit, exit);
    }
}

#[test]
fn words_from_elsewhere_cannot_steer_the_terminal() {
    let evil = View { info: "a\x1b[2Jb\nc".into(), ..view("shop", "web", WEB) };
    let served = serve(Fake::new().with([evil]));
    let out = Terminal::of(&served).run("ps").out;
    assert!(out.ends_with("a?[2Jb c\n"), "{out}");
}

#[test]
fn logs_are_passed_on_as_they_are() {
    let served = three();
    let (log, pieces) = crossbeam_channel::unbounded();
    served.fake.set(|inner| inner.log = Some(pieces));
    log.send(b"one\n\x1b[31mtwo".to_vec()).unwrap();
    drop(log);
    let ran = Terminal::of(&served).run("logs web -f --tail 3");
    assert_eq!((ran.exit, ran.out.as_str()), (0, "one\n\x1b[31mtwo"));
    let asked = served.fake.set(|inner| inner.logs.clone());
    assert_eq!(asked, [("c-web".to_owned(), true, Some(3))]);
}

#[test]
fn a_log_that_breaks_off_is_a_failure() {
    let served = three();
    let (log, pieces) = crossbeam_channel::unbounded();
    served.fake.set(|inner| inner.log = Some(pieces));
    log.send(b"one\n".to_vec()).unwrap();
    log.send(Vec::new()).unwrap();
    let ran = Terminal::of(&served).run("logs web -f");
    assert_eq!((ran.exit, ran.out.as_str()), (1, "one\n"));
    assert!(ran.err.starts_with("error: the log broke off: "), "{}", ran.err);
    let none = Terminal::of(&served).run("logs db");
    assert_eq!(none.exit, 5);
    assert!(none.err.contains("shop/db has no container"));
}

#[test]
fn events_are_sentences_or_data() {
    let served = three();
    served.fake.set(|inner| {
        inner.transitions.push(transition(None, State::PendingInitial, ""));
        let running = transition(Some(State::PendingInitial), State::RunningOk, "pid 7");
        inner.transitions.push(running);
        let sick = transition(Some(State::RunningOk), State::RunningOk, "unhealthy: exitCode=1");
        let sick = Transition { health: Some(Health::Unhealthy), ..(*sick).clone() };
        inner.transitions.push(Arc::new(sick));
    });
    assert_eq!(
        Terminal::of(&served).run("events").out,
        "2026-11-30T12:03:04Z  shop/web  new -> Pending(Initial)\n\
         2026-11-30T12:03:04Z  shop/web  Pending(Initial) -> Running(Ok)  pid 7\n\
         2026-11-30T12:03:04Z  shop/web  Running(Ok) -> Running(Ok) unhealthy  unhealthy: \
         exitCode=1\n"
    );
    let json = Terminal::of(&served).run("events -o json").out;
    let seqs: Vec<u64> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert!(json.lines().last().unwrap().contains(r#""health":"unhealthy""#), "{json}");
    let yaml = Terminal::of(&served).run("events -o yaml").out;
    assert!(yaml.starts_with("---\nseq: 1\nat: "), "{yaml}");
}

#[test]
fn followed_events_go_on_until_the_agent_stops() {
    let served = three();
    served.fake.set(|inner| {
        inner.quiet_times = 1;
        inner.transitions.push(transition(None, State::PendingInitial, ""));
    });
    let mut seen = StopAtFirst { fake: &served.fake, text: String::new() };
    let mut err = Vec::new();
    let outcome = Terminal::of(&served).run_into("events -f", &mut seen, &mut err);
    assert_eq!(outcome, Outcome::Ended(Exit::Done));
    assert_eq!(seen.text, "2026-11-30T12:03:04Z  shop/web  new -> Pending(Initial)\n");
}

/// Stops the agent as soon as something is printed.
struct StopAtFirst<'a> {
    fake: &'a Fake,
    text: String,
}

impl std::io::Write for StopAtFirst<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.push_str(&String::from_utf8_lossy(bytes));
        self.fake.set(|inner| inner.stopping = true);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_time_to_the_next_try_is_told_when_it_is_read() {
    let waiting = View {
        state: State::PendingStarting,
        info: "exitCode=1; restart 3".into(),
        next_attempt: Some(NOW.tick + Span::seconds(32)),
        ..view("shop", "web", WEB)
    };
    let served = serve(Fake::new().with([waiting]));
    let out = Terminal::of(&served).run("ps").out;
    assert!(out.ends_with("exitCode=1; restart 3 in 32 s\n"), "{out}");
}

#[test]
fn an_agent_with_too_much_to_do_is_asked_again() {
    let served = serve(Fake::new().with([view("shop", "web", WEB), view("shop", "db", DB)]));
    let busy = AskError::Refused(Refusal::Busy("100 tasks are under way already".to_owned()));
    served.fake.set(|inner| inner.refuse_verbs = Some(busy));
    let mut pauses = 0;
    let mut terminal = Terminal::of(&served);
    terminal.time = MadeUpTime::new(|_| {
        pauses += 1;
        served.fake.set(|inner| inner.refuse_verbs.take_if(|_| pauses == 3));
    });
    let ran = terminal.run("stop shop/web shop/db");
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, "shop/web stopped\nshop/db stopped\n");
    drop(terminal);
    assert_eq!(pauses, 3);
}
