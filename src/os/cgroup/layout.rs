//! Where the files of a container's cgroup are: version 1, version 2, and both at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Format;

/// A mounted cgroup hierarchy.
#[derive(Debug)]
pub struct Mount {
    /// Which cgroup the mount point shows; paths of processes begin with it.
    root: String,
    point: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Version 1 with these controllers, separated by commas, beside other options.
    V1(String),
    V2,
}

/// The files of one container.
#[derive(Debug)]
pub struct Place {
    /// CPU time.
    pub cpu: Option<(PathBuf, Format)>,
    /// Memory.
    pub memory: Option<(PathBuf, Format)>,
}

/// All cgroup hierarchies that are mounted, by `self/mountinfo`.
pub fn mounts(proc: &Path) -> io::Result<Vec<Mount>> {
    Ok(fs::read_to_string(proc.join("self/mountinfo"))?.lines().filter_map(mount).collect())
}

/// The files of container `id`, whose process is `pid`. `None`: there is no such process, or it is
/// not in a cgroup of this container, so that the pid belongs to something else by now.
pub fn find(proc: &Path, mounts: &[Mount], id: &str, pid: u32) -> Option<Place> {
    let groups = fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok()?;
    let unified = directory(mounts, &groups, id, None);
    if let Some(directory) = unified {
        let memory = directory.join("memory.current");
        let counted = memory.exists();
        // In the hybrid set-up version 2 is mounted and lists the process, but the controllers
        // are with version 1 and the memory files are missing.
        if counted || !mounts.iter().any(|mount| mount.has("memory")) {
            let cpu = Some((directory.join("cpu.stat"), Format::CpuStat));
            return Some(Place { cpu, memory: counted.then_some((memory, Format::Plain)) });
        }
    }
    let file = |controller, name| {
        let directory = directory(mounts, &groups, id, Some(controller))?;
        Some((directory.join(name), Format::Plain))
    };
    let cpu = file("cpuacct", "cpuacct.usage");
    let memory = file("memory", "memory.usage_in_bytes");
    (cpu.is_some() || memory.is_some()).then_some(Place { cpu, memory })
}

/// Whether a cgroup of the process `pid` is the container's own or below it.
pub fn holds(proc: &Path, id: &str, pid: u32) -> bool {
    let groups = fs::read_to_string(proc.join(pid.to_string()).join("cgroup"));
    groups.is_ok_and(|groups| {
        let mut paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        paths.any(|path| container(path, id).is_some())
    })
}

/// Whether all threads of the process `pid` have ended: it is a zombie, and not one whose first
/// thread alone is.
pub fn has_ended(proc: &Path, pid: u32) -> bool {
    let own = proc.join(pid.to_string());
    let stat = fs::read_to_string(own.join("stat")).unwrap_or_default();
    // `PID (NAME) STATE ...`, and the name may hold anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let threads = || fs::read_dir(own.join("task")).map_or(0, Iterator::count);
    matches!(state, Some('Z' | 'X')) && threads() <= 1
}

/// The directory of the container under one controller of version 1, or under version 2.
fn directory(
    mounts: &[Mount],
    groups: &str,
    id: &str,
    controller: Option<&str>,
) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| group(line, controller))?;
    let own = container(path, id)?;
    mounts.iter().filter(|mount| mount.serves(controller)).find_map(|mount| mount.resolve(own))
}

/// The path in a line of `/proc/PID/cgroup`, as `4:cpu,cpuacct:/docker/<id>` or `0::/docker/<id>`.
fn group<'a>(line: &'a str, controller: Option<&str>) -> Option<&'a str> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let fits = match controller {
        Some(name) => controllers.split(',').any(|c| c == name),
        None => number == "0" && controllers.is_empty(),
    };
    fits.then_some(path)
}

/// The part of `path` up to the component that holds the container's id. What is below it is made
/// by the container itself, as by systemd in it.
fn container<'a>(path: &'a str, id: &str) -> Option<&'a str> {
    let start = path.find(id)?;
    let end = path[start..].find('/').map_or(path.len(), |length| start + length);
    // Outside our own view of the hierarchy: it cannot be reached by a path.
    (!path.split('/').any(|component| component == "..")).then_some(&path[..end])
}

/// A line of mountinfo: `35 31 0:32 ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER-OPTIONS`.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let kind = match after.next()? {
        "cgroup" => Kind::V1(after.nth(1)?.to_owned()),
        "cgroup2" => Kind::V2,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    Some(Mount { root: unescape(root), point: PathBuf::from(unescape(point)), kind })
}

/// The kernel writes space, tab, newline and backslash as three octal digits behind a backslash.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

impl Mount {
    fn has(&self, controller: &str) -> bool {
        matches!(&self.kind, Kind::V1(options) if options.split(',').any(|o| o == controller))
    }

    fn serves(&self, controller: Option<&str>) -> bool {
        match controller {
            Some(name) => self.has(name),
            None => matches!(self.kind, Kind::V2),
        }
    }

    /// The directory of the cgroup `path`; `None` if this mount does not show it.
    fn resolve(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let directory = self.point.join(below);
        directory.is_dir().then_some(directory)
    }
}
