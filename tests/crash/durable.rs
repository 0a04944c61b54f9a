//! What is left of a directory after a power cut, from a log of the calls that changed it: a write
//! counts once a sync of its file has ended, a new name once a sync of the directory has.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::device::Device;
use crate::support::strace::Strace;
use crate::support::until;

/// Calls that the log has to show, each with all of its bytes.
const CALLS: &str = "openat,close,write,pwrite64,writev,pwritev,pwritev2,ftruncate,fallocate,\
                         rename,renameat,renameat2,unlink,unlinkat,link,linkat,fsync,fdatasync";

/// What strace needs besides, for files to be named and written out whole.
const WORDS: [&str; 3] = ["-y", "-s", "4194304"];

/// The directory on a disk that forgets what was not synced.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    files: Vec<Content>,
    /// What a process sees.
    names: BTreeMap<String, usize>,
    /// What a power cut leaves.
    durable: BTreeMap<String, usize>,
    /// Where the next write through a descriptor goes.
    positions: BTreeMap<u32, usize>,
    /// Syncs that ended, by the name of what was synced, in their order.
    pub syncs: Vec<String>,
    /// Writes to the log of the database that end a transaction, each with the syncs before it.
    pub commits: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// A call of the log.
struct Call<'a> {
    name: &'a str,
    arguments: &'a str,
    /// Below 0, or nothing: it failed, or the process died in it.
    result: Option<i64>,
}

impl Disk {
    /// The directory as it is, made durable.
    fn of(directory: &Path) -> Self {
        let mut disk = Self {
            directory: directory.to_owned(),
            files: Vec::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            positions: BTreeMap::new(),
            syncs: Vec::new(),
            commits: Vec::new(),
        };
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            File::open(&path).unwrap().sync_all().unwrap();
            let bytes = fs::read(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            disk.names.insert(name, disk.files.len());
            disk.files.push(Content { now: bytes.clone(), durable: bytes });
        }
        File::open(directory).unwrap().sync_all().unwrap();
        disk.durable = disk.names.clone();
        disk
    }

    /// Makes the state of a device durable, and watches its agent from then on.
    pub fn watch(device: &Device, words: &[&str]) -> (Self, Strace) {
        let directory = device.path("data");
        let calls = format!("trace={CALLS}");
        let words = [&WORDS[..], &["-e", &calls], words].concat();
        until("the store to be still", || {
            let disk = Self::of(&directory);
            let strace = Strace::attach(device.pid(), &words, &device.path("strace"));
            // What was seen is written within 5 s, which may be now.
            disk.is_still().then_some((disk, strace))
        })
    }

    /// The directory has not changed since.
    fn is_still(&self) -> bool {
        self.names.iter().filter(|(name, _)| is_kept(name)).all(|(name, file)| {
            let found = fs::read(self.directory.join(name));
            found.is_ok_and(|found| found == self.files[*file].now)
        })
    }

    /// Takes in a log that strace wrote.
    pub fn replay(&mut self, log: &str) {
        let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
        for line in log.lines() {
            let Some((thread, rest)) = line.split_once(' ') else { continue };
            let rest = rest.trim_start();
            let whole = if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
                begun.insert(thread, first);
                continue;
            } else if let Some((_, last)) = rest.split_once(" resumed>") {
                assert!(rest.starts_with("<... "), "{line:.200}");
                let Some(first) = begun.remove(thread) else { continue };
                format!("{first}{last}")
            } else {
                rest.to_owned()
            };
            if let Some(call) = Call::read(&whole) {
                self.apply(&call);
            }
        }
    }

    fn apply(&mut self, call: &Call<'_>) {
        let Some(result) = call.result.filter(|result| *result >= 0) else { return };
        match call.name {
            "openat" => self.open(call, result),
            "write" => {
                let Some((descriptor, file)) = self.descriptor(call.arguments) else { return };
                let at = self.positions.get(&descriptor).copied();
                let at = at.unwrap_or_else(|| panic!("where does it write: {:.200}", call.name));
                let bytes = self.write(file, at, call);
                self.positions.insert(descriptor, at + bytes);
            }
            "pwrite64" => {
                let Some((_, file)) = self.descriptor(call.arguments) else { return };
                let at = call.arguments.rsplit_once(", ").unwrap().1.parse().unwrap();
                self.write(file, at, call);
            }
            "ftruncate" => {
                let Some((_, file)) = self.descriptor(call.arguments) else { return };
                let length = call.arguments.rsplit_once(", ").unwrap().1.parse().unwrap();
                self.files[file].now.resize(length, 0);
            }
            "fsync" | "fdatasync" => self.sync(call),
            "rename" => {
                let names = quoted(call.arguments);
                let names: Vec<_> = names.iter().filter_map(|path| self.name_of(path)).collect();
                let [from, to] = names.as_slice() else { return };
                let file = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), file);
            }
            "unlink" | "unlinkat" => {
                let Some(name) = quoted(call.arguments).first().and_then(|path| self.name_of(path))
                else {
                    return;
                };
                self.names.remove(&name);
            }
            "close" => {}
            other => {
                let about = call.arguments.contains(self.directory.to_str().unwrap());
                assert!(!about, "{other} is not understood: {:.200}", call.arguments);
            }
        }
    }

    fn open(&mut self, call: &Call<'_>, descriptor: i64) {
        let path = quoted(call.arguments).remove(0);
        let Some(name) = self.name_of(&path) else { return };
        self.positions.insert(descriptor.try_into().unwrap(), 0);
        let file = *self.names.entry(name).or_insert_with(|| {
            self.files.push(Content::default());
            self.files.len() - 1
        });
        if call.arguments.contains("O_TRUNC") {
            self.files[file].now.clear();
        }
        assert!(!call.arguments.contains("O_APPEND"), "not understood: {}", call.arguments);
    }

    /// How many bytes were written.
    fn write(&mut self, file: usize, at: usize, call: &Call<'_>) -> usize {
        let bytes = unescape(call.arguments);
        assert_eq!(bytes.len(), usize::try_from(call.result.unwrap()).unwrap(), "written whole");
        let now = &mut self.files[file].now;
        now.resize(now.len().max(at + bytes.len()), 0);
        now[at..at + bytes.len()].copy_from_slice(&bytes);
        if self.names.get(LOG) == Some(&file) && ends_transaction(&bytes) {
            let synced = self.syncs.iter().filter(|name| *name == LOG).count();
            self.commits.push(synced);
        }
        bytes.len()
    }

    fn sync(&mut self, call: &Call<'_>) {
        let Some(path) = described(call.arguments).map(|(_, path)| path) else { return };
        if Path::new(path) == self.directory {
            self.durable = self.names.clone();
            self.syncs.push(String::new());
            return;
        }
        let Some((_, file)) = self.descriptor(call.arguments) else { return };
        self.files[file].durable = self.files[file].now.clone();
        self.syncs.push(self.name_of(path).unwrap());
    }

    /// Descriptor and file of a call; `None`: it is about something else.
    fn descriptor(&self, arguments: &str) -> Option<(u32, usize)> {
        let (descriptor, path) = described(arguments)?;
        let name = self.name_of(path)?;
        let file = self.names.get(&name);
        Some((descriptor, *file.unwrap_or_else(|| panic!("{name} was never made"))))
    }

    /// The name of what lies in the directory.
    fn name_of(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        (path.parent() == Some(&self.directory))
            .then(|| path.file_name().unwrap().to_str().unwrap().to_owned())
    }

    /// Puts what is durable in the place of the directory.
    pub fn cut_power(&self) {
        fs::remove_dir_all(&self.directory).unwrap();
        fs::create_dir(&self.directory).unwrap();
        for (name, file) in self.durable.iter().filter(|(name, _)| is_kept(name)) {
            let mut out = File::create(self.directory.join(name)).unwrap();
            out.write_all(&self.files[*file].durable).unwrap();
        }
    }
}

/// The log of the database.
pub const LOG: &str = "bargee.db-wal";

/// The index of the database's log is memory that processes share, and is made anew.
fn is_kept(name: &str) -> bool {
    !name.ends_with("-shm")
}

/// A frame of the log begins with 24 bytes of which the second four are zero, unless it is the last
/// of a transaction.
fn ends_transaction(bytes: &[u8]) -> bool {
    bytes.len() == 24 && bytes[4..8] != [0; 4]
}

impl<'a> Call<'a> {
    /// Reads `name(arguments) = result`.
    fn read(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        // What the system says of a failure stands behind the result.
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let arguments = arguments.trim_end().strip_suffix(')')?;
        let digits = result.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(result.len());
        Some(Self { name, arguments, result: result[..digits].parse().ok() })
    }
}

/// Descriptor and path of `7</path>, ...`.
fn described(arguments: &str) -> Option<(u32, &str)> {
    let (descriptor, rest) = arguments.split_once('<')?;
    Some((descriptor.parse().ok()?, rest.split_once('>')?.0))
}

/// All texts in quotes, of paths without anything that is escaped.
fn quoted(arguments: &str) -> Vec<String> {
    arguments.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The bytes of the first text in quotes.
fn unescape(arguments: &str) -> Vec<u8> {
    let mut rest = arguments.split_once('"').unwrap().1.bytes().peekable();
    let mut bytes = Vec::new();
    loop {
        match rest.next().expect("a quote ends it") {
            b'"' => return bytes,
            b'\\' => bytes.push(match rest.next().unwrap() {
                b'n' => b'\n',
                b't' => b'\t',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                digit @ b'0'..=b'7' => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        let Some(next) = rest.next_if(|byte| matches!(byte, b'0'..=b'7')) else {
                            break;
                        };
                        value = value * 8 + u32::from(next - b'0');
                    }
                    u8::try_from(value).unwrap()
                }
                other => other,
            }),
            byte => bytes.push(byte),
        }
    }
}

#[test]
fn what_was_not_synced_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    File::create(folder.path().join("a")).unwrap().write_all(b"old").unwrap();
    let mut disk = Disk::of(folder.path());
    disk.replay(&format!(
        "1 pwrite64(5<{at}/a>, \"N\\\"\\1232\\n\", 5, 1) = 5\n\
         1 openat(AT_FDCWD</>, \"{at}/.b.tmp\", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 6<{at}/.b.tmp>\n\
         1 write(6<{at}/.b.tmp>, \"new\", 3) = 3\n\
         2 fsync(6<{at}/.b.tmp> <unfinished ...>\n\
         1 write(9<socket:[1]>, \"x\", 1) = 1\n\
         2 <... fsync resumed>) = 0\n\
         1 rename(\"{at}/.b.tmp\", \"{at}/b\") = 0\n\
         1 fdatasync(5<{at}/a>) = ?\n"
    ));
    let mut later = Disk { syncs: Vec::new(), ..disk };
    assert_eq!(later.durable.keys().collect::<Vec<_>>(), ["a"]);
    later.cut_power();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"old");
    later.replay(&format!("1 fsync(5<{at}/a>) = 0\n1 fsync(7<{at}>) = 0\n"));
    later.cut_power();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"oN\"S2\n");
    assert_eq!(fs::read(folder.path().join("b")).unwrap(), b"new");
    assert_eq!(later.syncs, ["a", ""]);
}
