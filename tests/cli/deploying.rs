//! `bargee deploy`: files in, one apply, and the wait for it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use bargee::api::backend::AskError;
use bargee::domain::declared::Problem;
use bargee::domain::effect::{Applied, Change};
use bargee::domain::names::{Key, Label, Uid};
use bargee::domain::view::{PullProgress, RuntimeState, State, View};
use bargee::limits;

use crate::fake::{DB, Fake, Served, WEB, serve, stopped, view};
use crate::terminal::{MadeUpTime, Ran, Terminal};

fn applied(name: &str, uid: &str, generation: u64, change: Change) -> Applied {
    let label = |text| Label::parse(text).unwrap();
    let key = Key { application: label("shop"), name: label(name) };
    Applied { key, uid: Uid::new(uid), generation, change }
}

fn answering(answer: Result<Vec<Applied>, AskError>) -> Served {
    let served = serve(Fake::new());
    served.fake.set(|inner| inner.applies.push_back(answer));
    served
}

fn write(path: &Path, bytes: &[u8]) {
    fs::File::create(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn one_line_for_each_workload() {
    let served = answering(Ok(vec![
        applied("web", WEB, 2, Change::Replaced),
        applied("db", DB, 1, Change::Unchanged),
    ]));
    let mut terminal = Terminal::of(&served);
    terminal.input = "kind: Workload";
    let ran = terminal.run("deploy -f -");
    let out = "shop/web replaced (generation 2)\nshop/db unchanged (generation 1)\n";
    assert_eq!(ran, Ran { exit: 0, out: out.to_owned(), err: String::new() });
    assert_eq!(
        terminal.run("deploy -f - --dry-run").out,
        "shop/web would be replaced (generation 2)\nshop/db would stay unchanged (generation 1)\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&terminal.run("deploy -f - -o json").out).unwrap();
    assert_eq!(json["items"][0]["change"], "replaced");
    let asked = served.fake.set(|inner| inner.applied.clone());
    assert_eq!(asked[0].0[0].name, "standard input");
    assert_eq!(asked[0].0[0].text, "kind: Workload");
    assert_eq!(
        asked.iter().map(|(_, options)| options.dry_run).collect::<Vec<_>>(),
        [false, true, false]
    );
}

#[test]
fn what_is_pruned_is_listed_before_it_is_removed() {
    let served = answering(Ok(vec![
        applied("web", WEB, 1, Change::Started),
        applied("old", DB, 3, Change::Removed),
    ]));
    let mut terminal = Terminal::of(&served);
    terminal.input = "kind: Workload";
    let ran = terminal.run("deploy -f - --prune --start");
    let out = "shop/web started (generation 1)\nshop/old is being removed (generation 3)\n";
    let err = "shop/old will be removed: it is not declared any more\n";
    assert_eq!(ran, Ran { exit: 0, out: out.to_owned(), err: err.to_owned() });
    let dry = terminal.run("deploy -f - --prune --dry-run");
    let out =
        "shop/web would be started (generation 1)\nshop/old would be removed (generation 3)\n";
    assert_eq!(dry, Ran { exit: 0, out: out.to_owned(), err: String::new() });
    let json = terminal.run("deploy -f - --prune -o json");
    assert!(json.out.contains("\"removed\"") && json.err == err, "{json:?}");
    let asked = served.fake.set(|inner| inner.applied.clone());
    let asked = asked.iter().map(|(_, asked)| (asked.dry_run, asked.prune, asked.start));
    let expected = [
        (true, true, true),
        (false, true, true),
        (true, true, false),
        (true, true, false),
        (false, true, false),
    ];
    assert_eq!(asked.collect::<Vec<_>>(), expected);
}

#[test]
fn a_directory_stands_for_its_manifests() {
    let served = answering(Ok(Vec::new()));
    let directory = tempfile::tempdir().unwrap();
    for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "a.yaml~", "notes.txt", "a.yaml.swp"]
    {
        write(&directory.path().join(name), name.as_bytes());
    }
    fs::create_dir(directory.path().join("d.yaml")).unwrap();
    let path = directory.path().display();
    let ran = Terminal::of(&served).run(&format!("deploy -f {path} -f {path}/notes.txt"));
    assert_eq!(ran.exit, 0, "{}", ran.err);
    let asked = served.fake.set(|inner| inner.applied.clone());
    let texts: Vec<&str> = asked[0].0.iter().map(|file| file.text.as_str()).collect();
    assert_eq!(texts, ["a.yaml", "b.yml", "c.json", "notes.txt"]);
    assert_eq!(asked[0].0[0].name, format!("{path}/a.yaml"));
}

#[test]
fn files_that_cannot_be_sent_are_named() {
    let served = answering(Ok(Vec::new()));
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let run =
        |name: &str| Terminal::of(&served).run(&format!("deploy -f {}", path(name).display()));
    fs::create_dir(path("empty")).unwrap();
    write(&path("binary"), b"a: 1\nb: \xff\xfe");
    write(&path("large"), &vec![b'#'; limits::BODY_BYTES + 1]);
    // Quotes double in JSON, so this one is too large only as a body.
    write(&path("quotes"), &vec![b'"'; limits::BODY_BYTES - 1]);
    let cases = [
        ("missing", "missing: No such file or directory"),
        ("empty", "empty: no *.yaml, *.yml or *.json in it"),
        ("binary", "binary:2: is not UTF-8 text"),
        ("large", "the manifests are larger than 1048576 bytes in all"),
        ("quotes", "the manifests are larger than 1048576 bytes in all"),
    ];
    for (name, message) in cases {
        let ran = run(name);
        assert_eq!((ran.exit, ran.out.as_str()), (1, ""), "{name}");
        assert!(ran.err.contains(message), "{name}: {}", ran.err);
    }
    assert!(served.fake.set(|inner| inner.applied.is_empty()), "nothing was sent");
}

#[test]
fn every_problem_is_a_line() {
    let problem = |line, field: &str| Problem {
        file: "web.yaml".into(),
        line,
        field: field.into(),
        message: "is wrong".into(),
    };
    let served = answering(Err(AskError::Invalid(vec![problem(3, "spec.image"), problem(0, "")])));
    let ran = Terminal::of(&served).run("deploy -f -");
    assert_eq!((ran.exit, ran.out.as_str()), (1, ""));
    assert_eq!(
        ran.err,
        "web.yaml:3: spec.image: is wrong\nweb.yaml: is wrong\n\
         error: nothing was applied: 2 problems\n"
    );
}

/// Waits for shop/web of generation 2 while `world` changes its views.
fn wait(words: &str, is_terminal: bool, world: impl Fn(u64) -> View) -> Ran {
    let served = answering(Ok(vec![applied("web", WEB, 2, Change::Replaced)]));
    let show = |now: u64| {
        let now = Arc::new(world(now));
        served.fake.set(|inner| inner.views = vec![now]);
    };
    show(0);
    let mut terminal = Terminal::of(&served);
    terminal.is_terminal = is_terminal;
    terminal.time = MadeUpTime::new(show);
    terminal.run(words)
}

fn new_web() -> View {
    View { generation: 2, observed_generation: 2, ..view("shop", "web", WEB) }
}

fn pulling(done_bytes: u64) -> View {
    View {
        state: State::PendingStarting,
        runtime_state: RuntimeState::Pulling,
        info: "pulling nginx:1.27".into(),
        pull: Some(PullProgress { done_bytes, total_bytes: 4 << 20 }),
        observed_generation: 1,
        ..new_web()
    }
}

#[test]
fn waiting_ends_after_five_seconds_of_running() {
    let ran = wait("deploy -f - --wait", false, |now| match now {
        0..1_000 => pulling(now << 10),
        _ => new_web(),
    });
    assert_eq!((ran.exit, ran.out.as_str()), (0, "shop/web replaced (generation 2)\n"));
    assert_eq!(
        ran.err,
        "shop/web: Pending(Starting): pulling nginx:1.27\nshop/web: Running(Ok)\n\
         shop/web: it runs\n"
    );
}

#[test]
fn on_a_terminal_progress_is_rewritten_in_place() {
    let ran = wait("deploy -f - --wait", true, |now| match now {
        0..1_000 => pulling(now << 10),
        _ => new_web(),
    });
    assert_eq!(ran.exit, 0);
    let first = "\x1b[2Kshop/web: Pending(Starting): pulling nginx:1.27, 0 B of 4.0 MiB pulled\n\
                 \x1b[2K0 of 1 settled\n\x1b[J";
    let second = "\x1b[2A\x1b[2Kshop/web: Pending(Starting): pulling nginx:1.27, 400.0 KiB of 4.0 \
                  MiB pulled\n";
    assert!(ran.err.starts_with(&format!("{first}{second}")), "{:?}", ran.err);
    assert!(ran.err.ends_with("\x1b[2A\x1b[2K1 of 1 settled\n\x1b[J"), "{:?}", ran.err);
}

#[test]
fn waiting_ends_early_where_nothing_will_heal() {
    let failed = || View {
        state: State::FailedExecFailed,
        runtime_state: RuntimeState::Failed,
        error_message: "exitCode=3".into(),
        ..new_web()
    };
    let update = || View { failed_update: Some((2, "no such image".into())), ..new_web() };
    let cases: [(&dyn Fn() -> View, &str); 2] = [
        (&failed, "error: shop/web: Failed(ExecFailed): exitCode=3\n"),
        (&update, "error: shop/web: the update to generation 2 failed: no such image\n"),
    ];
    for (world, error) in cases {
        let ran = wait("deploy -f - --wait", false, |_| world());
        assert_eq!(ran.exit, 1);
        assert!(ran.err.contains(error), "{}", ran.err);
        assert!(ran.err.ends_with("`bargee logs NAME` say more\n"), "{}", ran.err);
    }
}

#[test]
fn waiting_has_an_end() {
    let ran = wait("deploy -f - --wait=90s", false, |_| pulling(0));
    assert_eq!(ran.exit, 1);
    let error = "error: shop/web: the wait of 90s is over: Pending(Starting): pulling nginx:1.27";
    assert!(ran.err.contains(error), "{}", ran.err);
}

#[test]
fn a_wait_that_is_too_short_to_see_it_run_says_so() {
    let ran = wait("deploy -f - --wait=4s", false, |_| new_web());
    let error = "error: shop/web: the wait of 4s is over: Running(Ok), but not yet for 5s\n";
    assert!(ran.err.contains(error), "{}", ran.err);
}

#[test]
fn an_engine_that_is_away_is_named_where_a_wait_ends() {
    let served = answering(Ok(vec![applied("web", WEB, 2, Change::Replaced)]));
    served.fake.set(|inner| {
        inner.views = vec![Arc::new(pulling(0))];
        inner.status.engine_up = false;
    });
    let ran = Terminal::of(&served).run("deploy -f - --wait");
    assert_eq!(ran.exit, 1);
    let hint = "hint: the engine is away; `bargee status` says more\n";
    assert!(ran.err.ends_with(hint), "{}", ran.err);
}

#[test]
fn several_workloads_are_waited_for_together() {
    let served = answering(Ok(vec![
        applied("web", WEB, 2, Change::Replaced),
        applied("db", DB, 1, Change::Created),
    ]));
    served.fake.set(|inner| {
        inner.views = [new_web(), stopped("shop", "db", DB)].map(Arc::new).to_vec();
    });
    let ran = Terminal::of(&served).run("deploy -f - --wait");
    assert_eq!(ran.exit, 0, "{}", ran.err);
    assert_eq!(
        ran.err,
        "shop/web: Running(Ok)\nshop/db: it is stopped on purpose\nshop/web: it runs\n"
    );
}

#[test]
fn what_is_removed_meanwhile_did_not_get_there() {
    let served = answering(Ok(vec![applied("web", WEB, 2, Change::Replaced)]));
    let ran = Terminal::of(&served).run("deploy -f - --wait");
    assert_eq!(ran.exit, 1);
    assert!(ran.err.starts_with("error: shop/web: it was removed meanwhile\n"), "{}", ran.err);
}
