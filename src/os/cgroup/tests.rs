//! Fixtures of the three set-ups in a temporary directory, and this machine's own.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::os::atomic_file;

const ID: &str = "4f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";

struct World {
    dir: tempfile::TempDir,
    sampler: Sampler,
}

impl World {
    /// `mounts` are `TYPE OPTIONS` by the directory they are mounted at.
    fn new(mounts: &[(&str, &str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut text = String::from("22 1 8:1 / / rw - ext4 /dev/root rw\n");
        for (at, kind, options) in mounts {
            let point = dir.path().join("sys").join(at);
            fs::create_dir_all(&point).unwrap();
            let point = point.display().to_string().replace(' ', "\\040");
            text.push_str(&format!("30 22 0:9 / {point} rw shared:7 - {kind} x {options}\n"));
        }
        let sampler = Sampler::new(dir.path().join("proc"));
        let world = Self { dir, sampler };
        world.put("proc/self/mountinfo", &text);
        world
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.exists() {
            // In place, as the kernel does: a kept descriptor sees the new value.
            let file = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
            file.write_all_at(text.as_bytes(), 0).unwrap();
        } else {
            atomic_file::replace(&path, 0o600, &mut |o| o.write_all(text.as_bytes())).unwrap();
        }
    }

    fn sample_pid(&mut self, pid: u32, tick_ms: u64) -> Option<Usage> {
        let mut usage = None;
        self.sampler.sample([(ID, pid)], tick_ms, &mut |id, told| {
            assert_eq!(id, ID);
            usage = Some(told);
        });
        usage
    }

    fn sample(&mut self, tick_ms: u64) -> Option<Usage> {
        self.sample_pid(7, tick_ms)
    }
}

fn v1() -> World {
    let world = World::new(&[
        ("cpu acct", "cgroup", "rw,cpu,cpuacct"),
        ("memory", "cgroup", "rw,memory"),
        ("systemd", "cgroup", "rw,xattr,name=systemd"),
    ]);
    let own = format!("/docker/{ID}");
    world.put("proc/7/cgroup", &format!("5:memory:{own}\n4:cpu,cpuacct:{own}\n1:name=x:/\n"));
    world.put(&format!("sys/cpu acct{own}/cpuacct.usage"), "1000000000\n");
    world.put(&format!("sys/memory{own}/memory.usage_in_bytes"), "4096\n");
    world
}

fn v2() -> World {
    let world = World::new(&[("", "cgroup2", "rw,nsdelegate")]);
    let own = format!("/system.slice/docker-{ID}.scope");
    // Process 1 of a container that runs systemd sits below the container's own cgroup.
    world.put("proc/7/cgroup", &format!("0::{own}/init.scope\n"));
    world.put(&format!("sys{own}/cpu.stat"), "usage_usec 2000000\nuser_usec 1\nsystem_usec 1\n");
    world.put(&format!("sys{own}/memory.current"), "8192\n");
    fs::create_dir_all(world.dir.path().join(format!("sys{own}/init.scope"))).unwrap();
    world
}

#[test]
fn version_1_gives_both_values() {
    let mut world = v1();
    let first = world.sample(1_000);
    assert_eq!(first, Some(Usage { cpu_percent: None, memory_bytes: Some(4096) }));
    world.put(&format!("sys/cpu acct/docker/{ID}/cpuacct.usage"), "6000000000\n");
    world.put(&format!("sys/memory/docker/{ID}/memory.usage_in_bytes"), "12288\n");
    let second = world.sample(11_000);
    assert_eq!(second, Some(Usage { cpu_percent: Some(50.0), memory_bytes: Some(12288) }));
}

#[test]
fn version_2_counts_the_whole_container() {
    let mut world = v2();
    assert_eq!(world.sample(0), Some(Usage { cpu_percent: None, memory_bytes: Some(8192) }));
    let stat = format!("sys/system.slice/docker-{ID}.scope/cpu.stat");
    world.put(&stat, "usage_usec 22000000\nuser_usec 1\n");
    assert_eq!(world.sample(10_000).unwrap().cpu_percent, Some(200.0));
}

#[test]
fn version_2_without_the_memory_controller_still_gives_cpu() {
    let mut world = v2();
    let own = format!("sys/system.slice/docker-{ID}.scope");
    fs::remove_file(world.dir.path().join(&own).join("memory.current")).unwrap();
    assert_eq!(world.sample(0), Some(Usage::default()));
    world.put(&format!("{own}/cpu.stat"), "usage_usec 2500000\n");
    assert_eq!(world.sample(1_000), Some(Usage { cpu_percent: Some(50.0), memory_bytes: None }));
}

#[test]
fn the_hybrid_set_up_reads_version_1() {
    let mut world = World::new(&[
        ("unified", "cgroup2", "rw"),
        ("cpuacct", "cgroup", "rw,cpuacct"),
        ("memory", "cgroup", "rw,memory"),
    ]);
    let own = format!("/docker/{ID}");
    world.put("proc/7/cgroup", &format!("3:memory:{own}\n2:cpuacct:{own}\n0::{own}\n"));
    world.put(&format!("sys/unified{own}/cpu.stat"), "usage_usec 9\n");
    world.put(&format!("sys/cpuacct{own}/cpuacct.usage"), "1000\n");
    world.put(&format!("sys/memory{own}/memory.usage_in_bytes"), "1\n");
    assert_eq!(world.sample(0).unwrap().memory_bytes, Some(1));
    world.put(&format!("sys/cpuacct{own}/cpuacct.usage"), "500001000\n");
    assert_eq!(world.sample(1_000).unwrap().cpu_percent, Some(50.0));
}

#[test]
fn the_hybrid_set_up_with_memory_in_version_2_reads_that() {
    let mut world = World::new(&[("unified", "cgroup2", "rw"), ("cpuset", "cgroup", "rw,cpuset")]);
    let own = format!("/docker/{ID}");
    world.put("proc/7/cgroup", &format!("3:cpuset:{own}\n0::{own}\n"));
    world.put(&format!("sys/unified{own}/cpu.stat"), "usage_usec 9\n");
    world.put(&format!("sys/unified{own}/memory.current"), "77\n");
    assert_eq!(world.sample(0).unwrap().memory_bytes, Some(77));
}

#[test]
fn a_pid_of_something_else_is_not_believed() {
    let mut world = v1();
    let other = ID.replace('4', "5");
    world.put("proc/8/cgroup", &format!("5:memory:/docker/{other}\n4:cpu,cpuacct:/x\n"));
    fs::create_dir_all(world.dir.path().join(format!("sys/memory/docker/{other}"))).unwrap();
    assert_eq!(world.sample_pid(8, 0), None);
    assert_eq!(world.sample_pid(9, 0), None, "no such process");
    assert_eq!(world.sample_pid(0, 0), None, "no process at all");
    assert!(world.sample_pid(7, 0).is_some());
}

#[test]
fn a_mount_that_shows_a_part_is_followed_and_one_outside_is_not() {
    let mut world = World::new(&[]);
    let point = world.dir.path().join("sys/part");
    let info = format!("30 22 0:9 /outer {} rw - cgroup2 x rw\n", point.display());
    world.put("proc/self/mountinfo", &info);
    world.put("proc/7/cgroup", &format!("0::/outer/docker/{ID}\n"));
    world.put(&format!("sys/part/docker/{ID}/memory.current"), "5\n");
    world.put(&format!("sys/docker/{ID}/memory.current"), "6\n");
    assert_eq!(world.sample(0).unwrap().memory_bytes, Some(5));
    world.put("proc/8/cgroup", &format!("0::/outer/../docker/{ID}\n"));
    assert_eq!(world.sample_pid(8, 0), None);
    world.put("proc/9/cgroup", &format!("0::/docker/{ID}\n"));
    assert_eq!(world.sample_pid(9, 0), None);
}

#[test]
fn a_new_process_of_the_same_container_starts_anew() {
    let mut world = v1();
    world.sample(0).unwrap();
    let own = format!("/docker/{ID}");
    world.put("proc/8/cgroup", &format!("5:memory:{own}\n4:cpu,cpuacct:{own}\n"));
    world.put(&format!("sys/cpu acct{own}/cpuacct.usage"), "7\n");
    assert_eq!(world.sample_pid(8, 1_000).unwrap().cpu_percent, None);
}

#[test]
fn descriptors_are_kept_and_dropped_with_the_wish() {
    let mut world = v1();
    world.sample(0).unwrap();
    // The kept descriptors need neither process nor path any more.
    fs::remove_dir_all(world.dir.path().join("proc/7")).unwrap();
    fs::remove_dir_all(world.dir.path().join("sys")).unwrap();
    assert!(world.sample(1_000).is_some());
    world.sampler.sample([], 2_000, &mut |_, _| panic!("nothing was wanted"));
    assert!(world.sampler.kept.is_empty());
    assert_eq!(world.sample(3_000), None);
}

#[test]
fn what_is_above_the_cap_is_opened_each_time() {
    let mut world = v1();
    for number in 0..STATS_KEPT_OPEN {
        let other = Kept { pid: 1, round: 0, cpu: None, memory: None, last: None };
        world.sampler.kept.insert(number.to_string(), other);
    }
    let kept: Vec<String> = world.sampler.kept.keys().cloned().collect();
    let wanted = std::iter::once((ID, 7)).chain(kept.iter().map(|id| (id.as_str(), 1)));
    let mut told = 0;
    world.sampler.sample(wanted, 0, &mut |_, _| told += 1);
    assert_eq!(told, 1);
    let own = &world.sampler.kept[ID];
    assert!(own.cpu.as_ref().unwrap().file.is_none());
    assert!(own.memory.as_ref().unwrap().read().is_some());
}

#[test]
fn percent_needs_time_and_a_counter_that_grows() {
    assert_eq!(percent((0, 0), (1_000_000, 1)), Some(100.0));
    assert_eq!(percent((5, 10), (5, 20)), Some(0.0));
    assert_eq!(percent((0, 10), (1, 10)), None);
    assert_eq!(percent((2, 0), (1, 10)), None);
}

#[test]
fn odd_files_are_no_numbers() {
    assert_eq!(Format::Plain.parse("12\n"), Some(12));
    assert_eq!(Format::Plain.parse("max\n"), None);
    assert_eq!(Format::Plain.parse(""), None);
    assert_eq!(Format::CpuStat.parse("user_usec 3\nusage_usec 2\n"), Some(2_000));
    assert_eq!(Format::CpuStat.parse("nr_periods 2\n"), None);
    assert_eq!(Format::CpuStat.parse("usage_usec 18446744073709551615\n"), None);
}

#[test]
fn the_hierarchies_of_this_machine_can_be_read() {
    let proc = PathBuf::from("/proc");
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mounts = layout::mounts(&proc).unwrap();
    // Nothing to compare with where no cgroup is mounted at all.
    let listed = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert_eq!(mounts.is_empty(), !listed.contains(" - cgroup"), "{own}");
    assert!(layout::find(Path::new("/proc"), &mounts, "no such id", std::process::id()).is_none());
}

#[test]
fn a_pid_is_believed_when_its_cgroup_names_the_container() {
    let proc = tempfile::tempdir().unwrap();
    let id = "ab".repeat(32);
    let write = |pid: u32, text: String| {
        let folder = proc.path().join(pid.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut file = std::fs::File::create(folder.join("cgroup")).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    write(7, format!("4:memory:/docker/{id}\n0::/docker/{id}\n"));
    write(8, "4:memory:/user.slice\n0::/\n".to_owned());
    write(9, format!("0::/system.slice/docker-{id}.scope\n"));
    for (pid, holds) in [(7, true), (8, false), (9, true), (10, false)] {
        assert_eq!(super::holds(proc.path(), pid, &id), holds, "{pid}");
    }
}
