//! What workloads are declared, and what the processes of their images do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bargee::domain::declared::{
    self, Declared, Mount, MountSource, RestartPolicy, Spec, WhenStuck,
};
use bargee::domain::directory::{Content, Found, Listing};
use bargee::domain::names::{Key, Label};
use bargee::domain::time::Span;

use super::acts::{File, Image, Policy, Pull, Wish};
use super::draw::KEYS;

/// The key with this number. The third is of an application of its own.
pub fn key(number: u8) -> Key {
    let label = |text: &str| Label::parse(text).expect("a label");
    let name = char::from(b'a' + number % KEYS).to_string();
    let application = if number % KEYS == 2 { "other" } else { "default" };
    Key { application: label(application), name: label(&name) }
}

/// What is declared for a wish.
pub fn declare(wish: &Wish) -> Arc<Declared> {
    let mut spec = Spec::new(image(wish.image, wish.version));
    spec.pull = match wish.pull {
        Pull::Missing => declared::Pull::Missing,
        Pull::EachTime => declared::Pull::Always,
        Pull::Loaded => declared::Pull::Never,
    };
    spec.restart.policy = match wish.policy {
        Policy::Always => RestartPolicy::Always,
        Policy::OnFailure => RestartPolicy::OnFailure,
        Policy::Never => RestartPolicy::Never,
    };
    spec.restart.stuck = if wish.hold { WhenStuck::Hold } else { WhenStuck::Retry };
    if wish.hasty {
        (spec.restart.delay, spec.restart.max_delay) = (Span(100), Span(400));
    }
    if wish.disk {
        spec.mounts.push(Mount {
            source: MountSource::Host { path: "/mnt/disk".to_owned(), mounted: true },
            target: "/data".to_owned(),
            read_only: false,
        });
    }
    if wish.rerun {
        spec.rerun = declared::Rerun::Boot;
    }
    spec.schedule = u32::from(wish.schedule);
    let labels = BTreeMap::from([("label".to_owned(), wish.label.to_string())]);
    Arc::new(Declared { key: key(wish.key), labels, spec, manifest: "{}".into() })
}

/// The manifests directory with these files in it.
pub fn directory(files: &[(u8, File)]) -> Found {
    let content = |file: &File| match file {
        File::Settling => Content::Settling,
        File::Wrong => Content::Bad(Arc::from(Vec::new())),
        File::Holds(wishes) => Content::Good(wishes.iter().map(declare).collect()),
    };
    let files = files.iter().map(|(n, file)| (format!("{n}.yaml").into(), content(file)));
    let mount = "disk".into();
    Found::There(Listing { mount, files: files.collect(), ignored: Vec::new() })
}

// --- images ------------------------------------------------------------------------------------

const WORDS: [(Image, &str); 12] = [
    (Image::App, "app"),
    (Image::Far, "far.example/app"),
    (Image::Job, "job"),
    (Image::Crash, "crash"),
    (Image::Snap, "snap"),
    (Image::Brief, "brief"),
    (Image::Fading, "fading"),
    (Image::Slow, "slow"),
    (Image::Stubborn, "stubborn"),
    (Image::Refused, "refused"),
    (Image::Inert, "inert"),
    (Image::Ghost, "ghost"),
];

fn image(image: Image, version: u8) -> String {
    let word = WORDS.iter().find(|(of, _)| *of == image).map_or("", |(_, word)| word);
    format!("{word}:{version}")
}

fn kind(image: &str) -> Image {
    let word = image.split(':').next().unwrap_or("");
    WORDS.iter().find(|(_, of)| *of == word).map_or(Image::App, |(kind, _)| *kind)
}

/// All images.
pub fn all_images() -> Vec<Arc<str>> {
    let all = WORDS.iter().flat_map(|(kind, _)| (0..3).map(|version| image(*kind, version).into()));
    all.collect()
}

/// Images that are on the device from the beginning.
pub fn first_images() -> Vec<Arc<str>> {
    let all = all_images().into_iter();
    all.filter(|image| image.ends_with(":0") && !is_ghost(image)).collect()
}

/// No container is made of it.
pub fn is_refused(image: &str) -> bool {
    kind(image) == Image::Refused
}

/// No container of it is started.
pub fn is_inert(image: &str) -> bool {
    kind(image) == Image::Inert
}

/// No registry has it.
pub fn is_ghost(image: &str) -> bool {
    kind(image) == Image::Ghost
}

/// How long its process lasts, and with what it ends. Once the faults are over, it has no faults,
/// and a job that an update left in the place of something that always runs is none.
pub fn lasts_ms(image: &str, over: bool, policy: Option<RestartPolicy>) -> Option<(u64, i32)> {
    match kind(image) {
        Image::Job if over && policy == Some(RestartPolicy::Always) => None,
        Image::Job => Some((2_500, 0)),
        Image::Crash if !over => Some((700, 1)),
        Image::Snap if !over => Some((0, 1)),
        Image::Brief if !over => Some((3_000, 1)),
        Image::Fading if !over => Some((29_000, 1)),
        _ => None,
    }
}

/// How long its process takes to end by this signal; `None`: it does not.
pub fn obeys_after_ms(image: &str, signal: &str) -> Option<u64> {
    match kind(image) {
        _ if signal == "SIGKILL" => Some(2),
        Image::Slow => Some(5_000),
        Image::Stubborn => None,
        _ => Some(3),
    }
}
