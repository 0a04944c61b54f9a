//! The manifests directory as a source: what becomes of its files, what is held back, and what
//! survives the agent.

use super::*;
use crate::domain::declared::Problem;
use crate::domain::directory::{Content, Found, Listing, Scan};
use crate::domain::effect::Refusal;
use crate::domain::event::Apply;
use crate::domain::names::Source;
use crate::limits;

pub(super) const DISK: &str = "/dev/sda1 (ext4)";

/// A look that finds these files.
fn found(mount: &str, files: &[(&str, Content)]) -> Found {
    let files = files.iter().map(|(name, content)| ((*name).into(), content.clone()));
    Found::There(Listing { mount: mount.into(), files: files.collect(), ignored: Vec::new() })
}

pub(super) fn good(workloads: &[&Arc<Declared>]) -> Content {
    Content::Good(workloads.iter().map(|one| (*one).clone()).collect())
}

pub(super) fn bad() -> Content {
    let (file, field) = ("/m/a.yaml".to_owned(), "spec.image".to_owned());
    Content::Bad([Problem { file, line: 4, field, message: "is missing".to_owned() }].into())
}

fn web(image: &str) -> Arc<Declared> {
    workload("web", |spec| spec.image = image.to_owned())
}

impl World {
    pub(super) fn look(&mut self, found: Found) {
        let count = self.next_ask().0 * 100;
        let fresh = (0..20).map(|n| Uid::new(format!("fresh-{}", count + n))).collect();
        self.feed(Event::Directory(Box::new(Scan { found, fresh })));
    }

    pub(super) fn files(&mut self, files: &[(&str, Content)]) {
        self.look(found(DISK, files));
    }

    fn condition(&self, kind: &str) -> Option<&str> {
        self.status.conditions.get(kind).map(String::as_str)
    }

    fn confirm(&mut self) -> String {
        match self.ask(Request::Confirm) {
            Answer::Done(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_is_declared_changed_and_taken_away() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.view("web").source, Source::Directory);
    assert_eq!(world.row("web").origin.as_ref().unwrap().file.as_ref(), "a.yaml");
    let commits = world.store.commits;
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    assert_eq!(world.store.commits, commits, "nothing changed");
    world.files(&[("a.yaml", good(&[&web("image:2")]))]);
    assert_eq!(world.view("web").generation, 2);
    world.files(&[("a.yaml", bad())]);
    assert_eq!(world.view("web").generation, 2);
    let told = world.condition("manifestsRefused").unwrap();
    assert!(told.starts_with("/m/a.yaml:4: spec.image: is missing"), "{told}");
    world.files(&[]);
    assert!(world.views.is_empty() && world.engine.containers.is_empty());
    assert_eq!(world.condition("manifestsRefused"), None);
}

#[test]
fn a_rename_changes_the_row_and_nothing_else() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    let (uid, container) = (world.view("web").uid.clone(), world.container("web"));
    world.files(&[("b.yaml", good(&[&web("image:1")]))]);
    assert_eq!((&world.view("web").uid, world.container("web")), (&uid, container));
    assert_eq!(world.view("web").generation, 1);
    assert_eq!(world.row("web").origin.as_ref().unwrap().file.as_ref(), "b.yaml");
}

#[test]
fn a_key_has_one_source() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    let request = world.request(&[&web("image:2")]);
    let uid = world.view("web").uid.clone();
    for request in [request, Request::Verb(Verb::Remove, uid)] {
        match world.ask(request) {
            Answer::Refused(Refusal::Conflict(text)) => {
                assert!(text.contains("directory") && text.contains("/m/a.yaml"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Other verbs are an operator's, and hold over changes of the file.
    world.verb("web", Verb::Stop);
    world.files(&[("a.yaml", good(&[&web("image:2")]))]);
    assert_eq!(world.state("web"), State::StoppedOk);
}

#[test]
fn a_file_waits_for_a_key_that_was_deployed() {
    let mut world = World::new();
    world.apply(&[&web("image:1")]);
    world.files(&[("a.yaml", good(&[&web("image:2")])), ("b.yaml", good(&[&disky("db")]))]);
    assert_eq!(world.view("web").source, Source::Local);
    assert_eq!(world.view("db").source, Source::Directory);
    assert!(world.condition("manifestsRefused").unwrap().contains("declared by local"));
    world.verb("web", Verb::Remove);
    assert_eq!(world.view("web").source, Source::Directory, "without another look");
    assert_eq!(world.state("web"), State::RunningOk);
    assert_eq!(world.condition("manifestsRefused"), None);
}

fn disky(name: &str) -> Arc<Declared> {
    workload(name, |spec| spec.mounts = vec![disk()])
}

#[test]
fn what_goes_while_the_agent_is_off_is_removed_by_the_next_one() {
    let mut world = World::new();
    let db = workload("db", |_| {});
    world.files(&[("a.yaml", good(&[&web("image:1")])), ("b.yaml", good(&[&db]))]);
    let container = world.container("web");
    let mut world = world.restart_agent(BOOT);
    assert_eq!(world.running(), 2);
    // The first look finds files that have not settled yet.
    world.files(&[("a.yaml", Content::Settling)]);
    assert_eq!(world.running(), 2);
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    assert_eq!(world.views.len(), 1);
    assert_eq!(world.container("web"), container);
}

#[test]
fn a_directory_that_is_empty_at_the_start_is_confirmed_or_filled() {
    for confirmed in [false, true] {
        let mut world = World::new();
        world.files(&[("a.yaml", good(&[&web("image:1")]))]);
        let mut world = world.restart_agent(BOOT);
        world.files(&[]);
        assert_eq!(world.state("web"), State::RunningOk);
        let told = world.condition("manifestsHeld").unwrap();
        assert!(told.contains("is empty") && told.contains("default/web"), "{told}");
        if confirmed {
            let done = world.confirm();
            assert!(done.contains("removed default/web"), "{done}");
            assert!(world.views.is_empty());
        } else {
            world.files(&[("a.yaml", good(&[&web("image:2")]))]);
            assert_eq!(world.view("web").generation, 2);
        }
        assert_eq!(world.condition("manifestsHeld"), None);
        // Emptied under the eyes of the agent it is no riddle.
        world.files(&[]);
        assert!(world.views.is_empty());
    }
}

#[test]
fn a_directory_that_went_away_and_comes_back_empty_is_no_wish_either() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    for gone in [Found::Missing, Found::Unreadable("no permission".to_owned())] {
        world.look(gone);
        assert!(world.condition("manifestsHeld").is_some());
        world.files(&[]);
        assert!(world.condition("manifestsHeld").unwrap().contains("is empty"));
        assert_eq!(world.state("web"), State::RunningOk);
        world.files(&[("a.yaml", good(&[&web("image:1")]))]);
        assert_eq!(world.condition("manifestsHeld"), None);
    }
}

#[test]
fn another_file_system_holds_everything_until_it_is_confirmed() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    let mut world = world.restart_agent(BOOT);
    let other = || found("/dev/sdb1 (ext4)", &[("b.yaml", good(&[&workload("db", |_| {})]))]);
    world.look(other());
    assert_eq!(world.views.len(), 1, "nothing is taken from it");
    let told = world.condition("manifestsHeld").unwrap();
    assert!(told.contains("/dev/sdb1") && told.contains("/dev/sda1"), "{told}");
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    assert_eq!(world.condition("manifestsHeld"), None);
    world.look(other());
    world.confirm();
    assert_eq!(world.views.len(), 1);
    assert_eq!(world.state("db"), State::RunningOk);
    assert_eq!(world.condition("manifestsHeld"), None);
    let mut world = world.restart_agent(BOOT);
    world.look(other());
    assert_eq!(world.condition("manifestsHeld"), None, "it is remembered");
}

#[test]
fn a_directory_that_nobody_made_is_no_condition() {
    let mut world = World::new();
    world.look(Found::Missing);
    assert!(world.status.conditions.is_empty());
    assert!(world.confirm().starts_with("there is nothing"));
    world.files(&[]);
    world.look(Found::Missing);
    assert!(world.condition("manifestsHeld").is_some(), "it was there");
    world.confirm();
    assert_eq!(world.condition("manifestsHeld"), None);
    world.files(&[]);
    world.look(Found::Missing);
    assert!(world.condition("manifestsHeld").is_some(), "that was said of another time");
}

#[test]
fn what_the_store_does_not_take_is_tried_again() {
    let mut world = World::new();
    world.files(&[("a.yaml", good(&[&web("image:1")]))]);
    world.store.fails = true;
    world.files(&[("a.yaml", good(&[&web("image:2")]))]);
    assert_eq!(world.view("web").generation, 1);
    world.pass(limits::ENGINE_LOOK_MS);
    world.store.fails = false;
    world.pass(limits::ENGINE_LOOK_MS);
    assert_eq!(world.view("web").generation, 2);
    // A confirmation that was not taken holds back as before.
    world.look(Found::Missing);
    world.store.fails = true;
    assert!(matches!(world.ask(Request::Confirm), Answer::Refused(Refusal::Store(_))));
    assert!(world.condition("manifestsHeld").is_some());
    assert_eq!(world.state("web"), State::RunningOk);
    world.store.fails = false;
    world.confirm();
    assert!(world.views.is_empty());
}

#[test]
fn prune_removes_what_was_deployed_in_the_same_applications() {
    let mut world = World::new();
    let other = Arc::new(Declared {
        key: Key { application: Label::parse("other").unwrap(), ..web("i").key.clone() },
        ..(*web("image:1")).clone()
    });
    world.apply(&[&web("image:1"), &workload("old", |_| {}), &other]);
    world.files(&[("a.yaml", good(&[&workload("filed", |_| {})]))]);
    let ask = |world: &mut World, dry_run| {
        let Request::Apply(apply) = world.request(&[&web("image:2")]) else { panic!() };
        match world.ask(Request::Apply(Apply { prune: true, dry_run, ..apply })) {
            Answer::Applied(applied) => applied
                .iter()
                .map(|one| format!("{} {}", one.key, one.change.as_str()))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let told = ["default/web replaced", "default/old removed"];
    assert_eq!(ask(&mut world, true), told);
    assert_eq!(world.views.len(), 4);
    assert_eq!(ask(&mut world, false), told);
    let left = world.views.values().map(|view| view.declared.key.to_string());
    let mut left: Vec<String> = left.collect();
    left.sort();
    assert_eq!(left, ["default/filed", "default/web", "other/web"]);
    assert_eq!(ask(&mut world, false), ["default/web unchanged"]);
}

#[test]
fn start_wants_stopped_ones_running_in_the_same_commit() {
    let mut world = World::new();
    world.apply(&[&web("image:1"), &workload("db", |_| {})]);
    world.verb("web", Verb::Stop);
    world.verb("db", Verb::Stop);
    let Request::Apply(apply) = world.request(&[&web("image:2"), &workload("db", |_| {})]) else {
        panic!()
    };
    let answer = world.ask(Request::Apply(Apply { start: true, ..apply }));
    let Answer::Applied(applied) = answer else { panic!("{answer:?}") };
    let changes: Vec<Change> = applied.iter().map(|one| one.change).collect();
    assert_eq!(changes, [Change::Replaced, Change::Started]);
    for (name, generation) in [("web", 2), ("db", 1)] {
        assert_eq!(world.state(name), State::RunningOk);
        assert_eq!(world.row(name).generation, generation);
    }
}
