//! Looks at a real directory with a made-up clock.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;

use super::*;
use crate::domain::directory::Listing;
use crate::os::directory_watch::Change;
use crate::os::mount::{source, tells_changes};

const SETTLE: u64 = limits::MANIFEST_SETTLE_MS;

struct Scene {
    folder: tempfile::TempDir,
    reader: Reader,
    watch: DirectoryWatch,
    _stop: PipeWriter,
    now: u64,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("m")).unwrap();
        let (watch, stop) = DirectoryWatch::new().unwrap();
        let reader = Reader::new(&folder.path().join("m"));
        Self { folder, reader, watch, _stop: stop, now: 1_000_000 }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("m").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        File::create(self.path(name)).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn look(&mut self) -> Found {
        self.reader.look(&mut self.watch, self.now)
    }

    fn after(&mut self, ms: u64) -> Listing {
        self.now += ms;
        match self.look() {
            Found::There(listing) => listing,
            other => panic!("{other:?}"),
        }
    }

    /// Each file as `name:content` in short.
    fn shown(&mut self, ms: u64) -> String {
        let listing = self.after(ms);
        let files = listing.files.iter().map(|(name, content)| match content {
            Content::Settling => format!("{name}:..."),
            Content::Good(workloads) => {
                let names = workloads.iter().map(|one| one.key.name.to_string());
                format!("{name}:{}", names.collect::<Vec<_>>().join("+"))
            }
            Content::Bad(problems) => format!("{name}:!{}", problems[0].line),
        });
        files.collect::<Vec<_>>().join(" ")
    }
}

fn manifest(name: &str) -> String {
    format!(
        "---\napiVersion: bargee/v1\nkind: Workload\nmetadata: {{name: {name}}}\n\
         spec: {{image: i}}\n"
    )
}

#[test]
fn a_file_counts_once_it_has_settled_and_again_after_each_change() {
    let mut scene = Scene::new();
    scene.write("a.yaml", &manifest("web"));
    assert_eq!(scene.shown(0), "a.yaml:...");
    assert_eq!(scene.reader.settles_at(scene.now), Some(scene.now + SETTLE));
    assert_eq!(scene.shown(SETTLE - 1), "a.yaml:...");
    assert_eq!(scene.shown(1), "a.yaml:web");
    assert_eq!(scene.reader.settles_at(scene.now), None);
    scene.write("a.yaml", &(manifest("web") + &manifest("db")));
    assert_eq!(scene.shown(60_000), "a.yaml:...");
    assert_eq!(scene.shown(SETTLE), "a.yaml:web+db");
    scene.write("a.yaml", "kind: Workload\n--- ]\n");
    scene.after(0);
    assert_eq!(scene.shown(SETTLE), "a.yaml:!1");
}

#[test]
fn a_file_that_is_open_for_writing_has_not_settled() {
    let mut scene = Scene::new();
    scene.after(0);
    scene.write("a.yaml", &manifest("web"));
    scene.reader.note(&[Change::Written("a.yaml".to_owned())], scene.now);
    assert_eq!(scene.shown(0), "a.yaml:...");
    assert_eq!(scene.shown(limits::MANIFEST_WRITING_MS - 1), "a.yaml:...");
    scene.reader.note(&[Change::Closed("a.yaml".to_owned())], scene.now);
    assert_eq!(scene.shown(SETTLE), "a.yaml:web");
}

#[test]
fn what_is_told_dates_a_change() {
    let mut scene = Scene::new();
    scene.after(0);
    scene.write("a.yaml", &manifest("web"));
    scene.reader.note(&[Change::Closed("a.yaml".to_owned())], scene.now);
    assert_eq!(scene.shown(SETTLE), "a.yaml:web", "no second look is needed");
}

#[test]
fn a_file_that_is_gone_has_to_settle_too() {
    let mut scene = Scene::new();
    scene.write("a.yaml", &manifest("web"));
    scene.after(0);
    scene.after(SETTLE);
    fs::rename(scene.path("a.yaml"), scene.path("b.yaml")).unwrap();
    assert_eq!(scene.shown(10), "a.yaml:... b.yaml:...");
    assert_eq!(scene.shown(SETTLE), "b.yaml:web");
}

#[test]
fn b121_what_is_no_manifest_is_ignored_and_named() {
    let mut scene = Scene::new();
    let others = [".a.yaml.swp", ".hidden.yaml", "a.yaml~", "#a.yaml#", "a.yaml.bak", "4913"];
    for name in others {
        scene.write(name, &manifest("web"));
    }
    fs::create_dir(scene.path("folder.yaml")).unwrap();
    scene.write("b.yml", &manifest("b"));
    scene.write(
        "c.json",
        r#"{"apiVersion": "bargee/v1", "kind": "Workload",
        "metadata": {"name": "c"}, "spec": {"image": "i"}}"#,
    );
    symlink(scene.path("b.yml"), scene.path("link.yaml")).unwrap();
    symlink("nowhere", scene.path("loose.yaml")).unwrap();
    scene.after(0);
    assert_eq!(scene.shown(SETTLE), "b.yml:b c.json:c link.yaml:b loose.yaml:!0");
    let ignored = scene.after(0).ignored;
    let mut expected = [&others[..], &["folder.yaml"]].concat();
    expected.sort();
    assert_eq!(ignored, expected);
}

#[test]
fn a_directory_that_comes_back_is_a_new_one() {
    let mut scene = Scene::new();
    scene.write("a.yaml", &manifest("web"));
    scene.after(0);
    assert_eq!(scene.shown(SETTLE), "a.yaml:web");
    let (here, away) = (scene.path(""), scene.folder.path().join("away"));
    fs::rename(&here, &away).unwrap();
    assert_eq!(scene.look(), Found::Missing);
    File::create(here.parent().unwrap().join("m")).unwrap();
    assert!(matches!(scene.look(), Found::Unreadable(_)));
    fs::remove_file(here.parent().unwrap().join("m")).unwrap();
    fs::rename(&away, &here).unwrap();
    assert_eq!(scene.shown(0), "a.yaml:...");
    assert_eq!(scene.shown(SETTLE), "a.yaml:web");
}

#[test]
fn a_file_that_is_too_large_or_no_text_is_wrong() {
    let mut scene = Scene::new();
    scene.write("a.yaml", &"# nothing\n".repeat(200_000));
    File::create(scene.path("b.yaml")).unwrap().write_all(b"a: 1\n\xff").unwrap();
    scene.after(0);
    assert_eq!(scene.shown(SETTLE), "a.yaml:!0 b.yaml:!2");
}

#[test]
fn there_are_fresh_identities_for_all_that_might_be_new() {
    let mut scene = Scene::new();
    scene.write("a.yaml", &(manifest("web") + &manifest("db")));
    scene.write("b.yaml", &manifest("x"));
    assert_eq!(fresh(&scene.look()).unwrap(), []);
    scene.now += SETTLE;
    let mut drawn = fresh(&scene.look()).unwrap();
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 3);
}

#[test]
fn where_every_change_is_told_nobody_looks_every_ten_seconds() {
    let mut scene = Scene::new();
    let source = source_of(&scene);
    let calm = match tells_changes(&source) {
        true => limits::MANIFEST_CALM_LOOK_MS,
        false => limits::MANIFEST_LOOK_MS,
    };
    scene.write("a.yaml", &manifest("web"));
    scene.after(SETTLE);
    assert_eq!(scene.reader.period(), calm, "{source}");
    // A link may lead to where nobody watches.
    symlink(scene.path("a.yaml"), scene.path("link.yaml")).unwrap();
    scene.after(SETTLE);
    assert_eq!(scene.reader.period(), limits::MANIFEST_LOOK_MS);
    // Neither is it told when what is no directory becomes one.
    fs::remove_dir_all(scene.path("")).unwrap();
    File::create(scene.folder.path().join("m")).unwrap();
    scene.look();
    assert_eq!(scene.reader.period(), limits::MANIFEST_LOOK_MS);
}

fn source_of(scene: &Scene) -> String {
    source(&File::open(scene.folder.path()).unwrap()).unwrap()
}

#[test]
fn a_directory_that_is_not_there_is_told_when_it_comes() {
    let mut scene = Scene::new();
    let inner = scene.folder.path().join("a/b/m");
    scene.reader = Reader::new(&inner);
    for folder in ["a", "a/b", "a/b/m"] {
        assert_eq!(scene.look(), Found::Missing);
        fs::create_dir(scene.folder.path().join(folder)).unwrap();
        let by = clock::boot_ms() + 10_000;
        assert!(matches!(scene.watch.wait(by, false).unwrap(), Woken::Changed(_)), "{folder}");
    }
    assert!(matches!(scene.look(), Found::There(_)));
}
