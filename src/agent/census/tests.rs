//! A made-up `/proc`.

use std::fs;

use tempfile::TempDir;

use super::*;

struct Device {
    dir: TempDir,
    census: Census,
    running: Vec<(ContainerId, u32)>,
}

impl Device {
    fn new(running: &[(&str, u32)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let census = Census::new(dir.path());
        let running = running.iter().map(|(id, pid)| (ContainerId::new(*id), *pid)).collect();
        Self { dir, census, running }
    }

    /// The process `pid` in the cgroup of `id`, in `state` and with so many threads.
    fn put(&self, pid: u32, id: &str, state: char, threads: u32) {
        let own = self.dir.path().join(pid.to_string());
        let _ = fs::remove_dir_all(&own);
        for thread in 0..threads {
            fs::create_dir_all(own.join(format!("task/{}", pid + thread))).unwrap();
        }
        let write = |name: &str, text: String| {
            let file = &mut fs::File::create(own.join(name)).unwrap();
            std::io::Write::write_all(file, text.as_bytes()).unwrap();
        };
        write("cgroup", format!("0::/docker/{id}\n"));
        write("stat", format!("{pid} (a (b) c) {state} 1 2 3\n"));
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.dir.path().join(pid.to_string())).unwrap();
    }

    fn take(&mut self) -> Vec<u32> {
        let running = self.running.iter().map(|(id, pid)| (id, *pid));
        self.census.take(running).into_iter().map(|(_, pid)| pid).collect()
    }

    /// What is found gone within two minutes, and after how many samples.
    fn watch(&mut self) -> Option<(u64, Vec<u32>)> {
        (1..=2 * limits::CENSUS_SAMPLES).find_map(|sample| {
            let gone = self.take();
            (!gone.is_empty()).then_some((sample, gone))
        })
    }
}

#[test]
fn a_process_that_is_gone_is_found_within_a_minute_and_a_look() {
    let mut device = Device::new(&[("c1", 10), ("c2", 20), ("c3", 30), ("c4", 40)]);
    for (pid, id) in [(10, "c1"), (20, "c2"), (30, "c3"), (40, "c4")] {
        device.put(pid, id, 'S', 1);
    }
    assert_eq!(device.watch(), None);
    device.end(20);
    device.put(30, "c3", 'Z', 1);
    // Its number belongs to another one by now.
    device.put(40, "c9", 'R', 1);
    let (sample, gone) = device.watch().unwrap();
    assert_eq!(gone, [20, 30, 40]);
    assert!(sample <= limits::CENSUS_SAMPLES + 1, "{sample}");
}

#[test]
fn a_process_lives_whose_first_thread_alone_has_ended() {
    let mut device = Device::new(&[("c1", 10), ("c2", 20)]);
    device.put(10, "c1", 'S', 1);
    device.put(20, "c2", 'Z', 3);
    assert_eq!(device.watch(), None);
}

#[test]
fn one_look_is_none() {
    let mut device = Device::new(&[("c1", 10), ("c2", 20)]);
    device.put(10, "c1", 'S', 1);
    assert!(device.take().is_empty());
    // It is shown again, with another process or with none, before it is looked for again.
    device.put(20, "c2", 'S', 1);
    assert!(device.take().is_empty());
    assert_eq!(device.watch(), None);
}

#[test]
fn where_no_process_of_any_container_is_seen_nothing_follows() {
    let mut device = Device::new(&[("c1", 10), ("c2", 20)]);
    assert_eq!(device.watch(), None);
    assert!(device.census.missed.is_empty(), "and they are looked for once a minute");
    // In another room of processes, with the same number.
    device.put(10, "c9", 'S', 1);
    assert_eq!(device.watch(), None);
    device.put(10, "c1", 'S', 1);
    assert_eq!(device.watch().unwrap().1, [20]);
}
