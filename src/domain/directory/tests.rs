//! Looks at the directory, and what follows from them.

use super::*;
use crate::domain::declared::Spec;
use crate::domain::names::Label;

const DISK: &str = "/dev/sda1 (ext4)";

fn key(name: &str) -> Key {
    let label = |text| Label::parse(text).unwrap();
    Key { application: label("shop"), name: label(name) }
}

fn workload(name: &str) -> Arc<Declared> {
    let (labels, spec) = (BTreeMap::new(), Spec::new("image:1"));
    Arc::new(Declared { key: key(name), labels, spec, manifest: "{}".into() })
}

fn good(names: &[&str]) -> Content {
    Content::Good(names.iter().map(|name| workload(name)).collect())
}

fn bad() -> Content {
    let (file, field) = ("/m/x".to_owned(), "spec.image".to_owned());
    Content::Bad([Problem { file, line: 3, field, message: "is missing".to_owned() }].into())
}

fn listing(files: &[(&str, Content)]) -> Listing {
    let files = files.iter().map(|(name, content)| ((*name).into(), content.clone()));
    Listing { mount: DISK.into(), files: files.collect(), ignored: Vec::new() }
}

/// A row: its name, which is its uid too, and its file; without a file it is of `bargee deploy`.
type Row = (&'static str, Option<&'static str>);

fn origin(file: &str) -> Origin {
    Origin { file: file.into(), mount: DISK.into() }
}

/// What a look means, in words: `+web<a.yaml` declares, `-web` removes, `!a.yaml` is refused.
fn judged(rows: &[Row], files: &[(&str, Content)]) -> String {
    let rows: Vec<_> =
        rows.iter().map(|(name, file)| (key(name), Uid::new(*name), file.map(origin))).collect();
    let held = rows.iter().map(|(key, uid, origin)| {
        let source = if origin.is_some() { Source::Directory } else { Source::Local };
        (key, Holder { uid, source, origin: origin.as_ref() })
    });
    let fresh: Vec<Uid> = (0..20).map(|n| Uid::new(format!("fresh-{n}"))).collect();
    let verdict = decide("/m", &listing(files), &fresh, &held.collect());
    let changes = verdict.changes.iter().map(|change| match change {
        Change::Declare { holder, declared, origin, .. } => {
            let new = if holder.is_none() { "+" } else { "=" };
            format!("{new}{}<{}", declared.key.name, origin.file)
        }
        Change::Move(uid, origin) => format!("~{uid}<{}", origin.file),
        Change::Remove(uid) => format!("-{uid}"),
    });
    let refused = verdict.refused.keys().map(|file| format!("!{file}"));
    changes.chain(refused).collect::<Vec<_>>().join(" ")
}

#[test]
fn files_declare_what_they_hold_and_keep_it_while_they_are_wrong() {
    let a = Some("a.yaml");
    assert_eq!(judged(&[], &[("a.yaml", good(&["web", "db"]))]), "+web<a.yaml +db<a.yaml");
    assert_eq!(judged(&[("web", a)], &[("a.yaml", good(&["web"]))]), "=web<a.yaml");
    assert_eq!(judged(&[("web", a)], &[("a.yaml", bad())]), "!a.yaml");
    assert_eq!(judged(&[("web", a)], &[("a.yaml", Content::Settling)]), "");
    assert_eq!(judged(&[("web", a), ("db", a)], &[("a.yaml", good(&["db"]))]), "=db<a.yaml -web");
}

#[test]
fn a_file_that_is_gone_removes_its_workloads_and_no_other_ones() {
    let rows = [("web", Some("a.yaml")), ("db", Some("b.yaml")), ("own", None)];
    assert_eq!(judged(&rows, &[("b.yaml", good(&["db"]))]), "=db<b.yaml -web");
    assert_eq!(judged(&rows, &[]), "-db -web");
    assert_eq!(judged(&rows, &[("b.yaml", bad())]), "-web !b.yaml");
}

#[test]
fn nothing_is_removed_before_all_files_have_settled() {
    let rows = [("web", Some("a.yaml")), ("db", Some("b.yaml"))];
    assert_eq!(judged(&rows, &[("c.yaml", Content::Settling)]), "");
    let files = [("a.yaml", good(&["new"])), ("c.yaml", Content::Settling)];
    assert_eq!(judged(&rows, &files), "+new<a.yaml");
}

#[test]
fn a_workload_goes_over_to_another_file_without_being_removed() {
    let rows = [("web", Some("a.yaml")), ("db", Some("b.yaml"))];
    // Renamed.
    let renamed = [("b.yaml", good(&["db"])), ("c.yaml", good(&["web"]))];
    assert_eq!(judged(&rows, &renamed), "=db<b.yaml =web<c.yaml");
    // Swapped.
    let swapped = [("a.yaml", good(&["db"])), ("b.yaml", good(&["web"]))];
    assert_eq!(judged(&rows, &swapped), "=db<a.yaml =web<b.yaml");
    // The one it leaves has not settled yet, so that the other one waits.
    let halfway = [("a.yaml", Content::Settling), ("b.yaml", good(&["db", "web"]))];
    assert_eq!(judged(&rows, &halfway), "");
}

#[test]
fn a_name_in_two_files_stays_with_the_one_that_had_it() {
    let both = [("a.yaml", good(&["web", "x"])), ("b.yaml", good(&["web", "y"]))];
    assert_eq!(judged(&[("web", Some("b.yaml"))], &both), "=web<b.yaml +y<b.yaml !a.yaml");
    assert_eq!(judged(&[("web", Some("a.yaml"))], &both), "=web<a.yaml +x<a.yaml !b.yaml");
    // Nobody had it: neither is guessed at.
    assert_eq!(judged(&[], &both), "!a.yaml !b.yaml");
    // The file that had it is gone: it stays for as long as somebody names it.
    assert_eq!(judged(&[("web", Some("c.yaml"))], &both), "!a.yaml !b.yaml");
}

#[test]
fn a_file_that_is_turned_down_keeps_what_it_held_from_others() {
    // a.yaml gives up db, but is turned down for web, so that it still holds db.
    let rows = [("web", Some("c.yaml")), ("db", Some("a.yaml"))];
    let files =
        [("a.yaml", good(&["web"])), ("b.yaml", good(&["db", "z"])), ("c.yaml", good(&["web"]))];
    assert_eq!(judged(&rows, &files), "=web<c.yaml !a.yaml !b.yaml");
    // What a file that does not parse held is still its own.
    let files = [("a.yaml", bad()), ("b.yaml", good(&["db"])), ("c.yaml", good(&["web"]))];
    assert_eq!(judged(&rows, &files), "=web<c.yaml !a.yaml !b.yaml");
}

#[test]
fn a_key_of_another_source_is_refused() {
    let files = [("a.yaml", good(&["own"])), ("b.yaml", good(&["web"]))];
    assert_eq!(judged(&[("own", None)], &files), "+web<b.yaml !a.yaml");
}

#[test]
fn fresh_identities_belong_to_workloads_and_not_to_their_number() {
    let rows = key("own");
    let uid = Uid::new("own");
    let holder = Holder { uid: &uid, source: Source::Local, origin: None };
    let held = BTreeMap::from([(&rows, holder)]);
    let files = listing(&[("a.yaml", good(&["own", "x"])), ("b.yaml", good(&["web"]))]);
    let fresh: Vec<Uid> = (0..3).map(|n| Uid::new(format!("fresh-{n}"))).collect();
    let verdict = decide("/m", &files, &fresh, &held);
    let Change::Declare { fresh, .. } = &verdict.changes[0] else { panic!("{verdict:?}") };
    assert_eq!(fresh.as_str(), "fresh-2");
}

#[test]
fn what_was_confirmed_on_another_file_system_is_at_home_there() {
    let (web, uid) = (key("web"), Uid::new("web"));
    let before = Origin { file: "a.yaml".into(), mount: "/dev/sdb1 (ext4)".into() };
    let holder = Holder { uid: &uid, source: Source::Directory, origin: Some(&before) };
    let held = BTreeMap::from([(&web, holder)]);
    let verdict = decide("/m", &listing(&[("a.yaml", Content::Settling)]), &[], &held);
    assert_eq!(verdict.changes, [Change::Move(uid.clone(), origin("a.yaml"))]);
}

#[test]
fn a_directory_is_suspicious_only_where_something_could_be_lost() {
    let there = |files: &[(&str, Content)]| Found::There(listing(files));
    let (known, other) = (origin("a.yaml"), Origin { mount: "x (tmpfs)".into(), ..origin("a") });
    let unknown = Origin { mount: "".into(), ..origin("a.yaml") };
    let full = there(&[("a.yaml", bad())]);
    let empty = there(&[]);
    let moved = Some(Suspicion::Moved { before: other.mount.clone(), now: DISK.into() });
    let table = [
        (&full, vec![], false, None),
        (&empty, vec![], false, None),
        (&full, vec![&known], false, None),
        (&full, vec![&unknown], false, None),
        (&full, vec![&known, &other], true, moved),
        (&empty, vec![&known], false, Some(Suspicion::Emptied)),
        (&empty, vec![&known], true, None),
        (&Found::Missing, vec![&known], true, Some(Suspicion::Missing)),
        (&Found::Missing, vec![], true, Some(Suspicion::Missing)),
    ];
    for (found, origins, filled, expected) in table {
        let judged = suspicion(found, origins.iter().copied(), filled);
        assert_eq!(judged, expected, "{found:?} {origins:?} {filled}");
    }
}

#[test]
fn each_file_is_told_with_its_first_problem() {
    let problem = |line| Problem {
        file: "/m/a.yaml".to_owned(),
        line,
        field: "spec.image".to_owned(),
        message: "is missing".to_owned(),
    };
    let mut refused = BTreeMap::from([("a.yaml".into(), vec![problem(3), problem(4)])]);
    assert_eq!(told(&refused), "/m/a.yaml:3: spec.image: is missing (and 1 more)");
    refused.extend((0..20).map(|n| (format!("b{n}").into(), vec![problem(n)])));
    assert!(told(&refused).ends_with("; and 11 files more"));
}
