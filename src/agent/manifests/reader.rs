//! One look after another at the directory. A file is read once it has settled, and parsed again
//! only when it is another one than before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::declared::Problem;
use crate::domain::directory::{Content, Found, Listing};
use crate::domain::gather::Gather;
use crate::limits::{
    BODY_BYTES, MANIFEST_CALM_LOOK_MS, MANIFEST_FILES, MANIFEST_LOOK_MS, MANIFEST_SETTLE_MS,
    MANIFEST_WRITING_MS,
};
use crate::manifest;
use crate::os::directory_watch::{Change, DirectoryWatch};
use crate::os::{mount, open};

/// What is known of the directory from looks before.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// The directory by inode, device and mount; another one is a new acquaintance.
    directory: Option<(u64, u64, Arc<str>)>,
    files: BTreeMap<String, Known>,
    /// When each name was last told to change, since the last look.
    changed: BTreeMap<String, u64>,
    /// When each file that is open for writing was last written to.
    writing: BTreeMap<String, u64>,
    /// Every change is told, as of the last look.
    is_told: bool,
}

/// What is known of one file.
#[derive(Debug)]
struct Known {
    print: Print,
    /// It is so since then, on the boot clock.
    since: u64,
    /// What is in it, once it was read.
    content: Option<Content>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Print {
    /// Device, inode, size; times of change and of modification, to the nanosecond.
    File([u64; 3], [i64; 4]),
    /// It cannot be looked at.
    Unknown(ErrorKind),
    /// It is gone.
    Gone,
}

impl Print {
    fn of(meta: &Metadata) -> Self {
        let times = [meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.mtime_nsec()];
        Self::File([meta.dev(), meta.ino(), meta.size()], times)
    }
}

/// What a name in the directory stands for.
enum Kind {
    Manifest(Print),
    Other,
}

impl Reader {
    /// A reader that has not looked yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            directory: None,
            files: BTreeMap::new(),
            changed: BTreeMap::new(),
            writing: BTreeMap::new(),
            is_told: false,
        }
    }

    /// Takes in what the kernel told at `now`, in milliseconds of the boot clock.
    pub fn note(&mut self, changes: &[Change], now: u64) {
        for change in changes {
            match change {
                Change::Written(name) => drop(self.writing.insert(name.clone(), now)),
                Change::Closed(name) | Change::Gone(name) => drop(self.writing.remove(name)),
                Change::Other(_) => {}
                Change::Unknown => self.writing.clear(),
            }
            match change {
                Change::Written(name)
                | Change::Closed(name)
                | Change::Gone(name)
                | Change::Other(name) => drop(self.changed.insert(name.clone(), now)),
                Change::Unknown => {
                    self.files.values_mut().for_each(|known| known.since = now);
                }
            }
        }
    }

    /// When the next file may have settled, if there is one that has not.
    pub fn settles_at(&self, now: u64) -> Option<u64> {
        let open = self.files.iter().filter(|(_, known)| known.content.is_none());
        let times = open.map(|(name, known)| match self.writing.get(name) {
            Some(written) => written + MANIFEST_WRITING_MS,
            None => known.since + MANIFEST_SETTLE_MS,
        });
        times.min().map(|at| at.max(now + 1))
    }

    /// How long nobody need look when nothing is told.
    pub fn period(&self) -> u64 {
        if self.is_told { MANIFEST_CALM_LOOK_MS } else { MANIFEST_LOOK_MS }
    }

    /// Looks at the directory, and has `watch` watch it; or, while it is not there, what it would
    /// be in.
    pub fn look(&mut self, watch: &mut DirectoryWatch, now: u64) -> Found {
        let mut opened = open::directory(&self.path);
        if opened.is_err() {
            self.await_directory(watch);
            // It may have come just before that.
            opened = open::directory(&self.path);
        }
        let found = opened.and_then(|directory| {
            // Before it is listed, so that nothing falls between the two.
            watch.watch(&directory);
            let source = mount::source(&directory).unwrap_or_default();
            self.is_told = watch.is_watching() && mount::tells_changes(&source);
            self.list(&directory, source.into(), now)
        });
        let found = match found {
            Ok(listing) => return Found::There(listing),
            Err(error) if error.kind() == ErrorKind::NotFound => Found::Missing,
            Err(error) => {
                self.is_told = false;
                Found::Unreadable(error.to_string())
            }
        };
        self.forget();
        found
    }

    /// Watches the innermost folder on the way to the directory that is there.
    fn await_directory(&mut self, watch: &mut DirectoryWatch) {
        self.is_told = false;
        let innermost = || self.path.ancestors().skip(1).find(|path| path.is_dir());
        // Again if the next one came before the first one was watched.
        for _ in self.path.ancestors() {
            let found = innermost();
            let Some(outer) = found.and_then(|path| open::directory(path).ok()) else {
                return watch.forget();
            };
            watch.watch_for_names(&outer);
            if found == innermost() {
                let source = mount::source(&outer).unwrap_or_default();
                // One that is there and cannot be opened may be readable at any moment.
                let is_missing = fs::symlink_metadata(&self.path).is_err();
                self.is_told = is_missing && watch.is_watching() && mount::tells_changes(&source);
                return;
            }
        }
    }

    fn forget(&mut self) {
        self.directory = None;
        self.files.clear();
        self.changed.clear();
        self.writing.clear();
    }

    fn list(&mut self, directory: &File, mount: Arc<str>, now: u64) -> io::Result<Listing> {
        let meta = directory.metadata()?;
        let identity = (meta.ino(), meta.dev(), mount.clone());
        if self.directory.as_ref() != Some(&identity) {
            self.forget();
            self.directory = Some(identity);
        }
        // Through the open directory, so that all of this is of one and the same.
        let inside = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let mut ignored = Vec::new();
        let mut prints = BTreeMap::new();
        for entry in fs::read_dir(&inside)? {
            let entry = entry?;
            let name = entry.file_name();
            // What a link leads to changes without a word.
            self.is_told &= !entry.file_type()?.is_symlink();
            match kind(&inside, &name) {
                Kind::Manifest(print) => {
                    let name = name.to_string_lossy().into_owned();
                    prints.insert(name, print);
                }
                Kind::Other => ignored.push(name.to_string_lossy().into_owned()),
            }
            if prints.len() > MANIFEST_FILES {
                let text = format!("it holds more than {MANIFEST_FILES} manifests");
                return Err(io::Error::other(text));
            }
        }
        ignored.sort();
        self.follow(prints, now);
        self.read_settled(&inside, now);
        let files = self.files.iter().map(|(name, known)| {
            let content = known.content.clone().unwrap_or(Content::Settling);
            (name.as_str().into(), content)
        });
        Ok(Listing { mount, files: files.gather(), ignored })
    }

    /// Takes in how the files look now. One that is gone has to settle too: it may be about to come
    /// back, or to come back under another name.
    fn follow(&mut self, mut prints: BTreeMap<String, Print>, now: u64) {
        for name in self.files.keys() {
            prints.entry(name.clone()).or_insert(Print::Gone);
        }
        for (name, print) in prints {
            let told = self.changed.get(&name).copied();
            match self.files.get_mut(&name) {
                Some(known) if known.print == print => {
                    if let Some(at) = told {
                        known.since = known.since.max(at);
                    }
                }
                _ => {
                    let since = told.unwrap_or(now);
                    self.files.insert(name, Known { print, since, content: None });
                }
            }
        }
        self.changed.clear();
        let gone_for_good =
            |known: &Known| known.print == Print::Gone && known.since + MANIFEST_SETTLE_MS <= now;
        self.files.retain(|_, known| !gone_for_good(known));
    }

    fn read_settled(&mut self, inside: &Path, now: u64) {
        self.writing.retain(|name, written| {
            *written + MANIFEST_WRITING_MS > now && self.files.contains_key(name)
        });
        for (name, known) in &mut self.files {
            let quiet = known.since + MANIFEST_SETTLE_MS <= now;
            if known.content.is_some() || !quiet || self.writing.contains_key(name) {
                continue;
            }
            let shown = self.path.join(name).display().to_string();
            match read(&inside.join(name), known.print) {
                Ok(Some(bytes)) => known.content = Some(parse(shown, bytes)),
                // It changed while it was read.
                Ok(None) => known.since = now,
                Err(error) => known.content = Some(bad(shown, &error)),
            }
        }
    }
}

/// A manifest is a file, or a link to one, that is called like one.
fn kind(inside: &Path, name: &OsString) -> Kind {
    let Some(text) = name.to_str() else { return Kind::Other };
    let ends = [".yaml", ".yml", ".json"];
    if text.starts_with('.') || !ends.iter().any(|end| text.ends_with(end)) {
        return Kind::Other;
    }
    match fs::metadata(inside.join(name)) {
        Ok(meta) if meta.is_file() => Kind::Manifest(Print::of(&meta)),
        Ok(_) => Kind::Other,
        Err(error) => Kind::Manifest(Print::Unknown(error.kind())),
    }
}

/// The bytes of a file, one more than it may have at most; `None`: it is not the one that `print`
/// was taken of, or not any more.
fn read(path: &Path, print: Print) -> io::Result<Option<Vec<u8>>> {
    let mut file = open::file(path)?;
    if Print::of(&file.metadata()?) != print {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    (&mut file).take(BODY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok((Print::of(&file.metadata()?) == print).then_some(bytes))
}

fn parse(name: String, bytes: Vec<u8>) -> Content {
    let parsed = match manifest::text(&name, bytes) {
        Ok(text) => manifest::parse(&[(name, text)]),
        Err(problem) => Err(vec![problem]),
    };
    match parsed {
        Ok(workloads) => Content::Good(workloads.into_iter().map(Arc::new).collect()),
        Err(problems) => Content::Bad(problems.into()),
    }
}

fn bad(file: String, error: &io::Error) -> Content {
    let message = format!("cannot be read: {error}");
    let problem = Problem { file, line: 0, field: String::new(), message };
    Content::Bad([problem].into())
}
