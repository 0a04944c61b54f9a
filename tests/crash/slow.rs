//! A flash that takes 20 s for each sync: supervision goes on, and everybody who reads is answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bargee::os::clock;

use crate::support::at_rest::{Outcome, Wanted, until_at_rest};
use crate::support::device::{Device, service};
use crate::support::pause;
use crate::support::strace::{SYNCS, Strace};

/// No read may come near the time of a sync.
const ANSWERED: Duration = Duration::from_secs(10);

/// Reads what the API has, again and again until `over`; the longest that one took.
fn read_all_the_time(device: &Device, over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Acquire) {
        for path in ["/health/live", "/health/ready", "/v1/ms", "/v1/system/status", "/v1/journal"]
        {
            let begin = clock::boot_ms();
            let (status, body) = device.get(path).unwrap();
            assert_eq!(status, 200, "{path}: {body}");
            longest = longest.max(Duration::from_millis(clock::boot_ms() - begin));
        }
        pause(Duration::from_millis(200));
    }
    longest
}

/// Ends the reads, also when the test fails.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn supervision_goes_on_while_a_commit_hangs() {
    let device = Device::running(&["a", "b"]);
    let over = AtomicBool::new(false);
    let words = ["-e", &format!("inject={SYNCS}:delay_enter=20000000")];
    let strace = Strace::attach(device.pid(), &words, &device.path("strace"));
    thread::scope(|scope| {
        let reads = scope.spawn(|| read_all_the_time(&device, &over));
        let until_over = Until(&over);
        let deploy = scope.spawn(|| device.apply(&service("c")));
        // Crashes go on being restarted while the commit takes its time.
        let (mut crashes, mut meanwhile) = (0, 0);
        while strace.count(SYNCS) < 2 {
            let before = ["a", "b"].map(|name| device.container(name));
            for made in &before {
                device.engine.exit(&made.name, 3);
            }
            crashes += 1;
            for made in &before {
                let name = made.label("bargee.name");
                assert_eq!(device.until_started_again(name, made).id, made.id);
                device.until(name, |shown| shown.restart_count == crashes);
            }
            meanwhile += u32::from(!deploy.is_finished());
        }
        println!("restarts of each while a commit took its time: {meanwhile}");
        assert!(meanwhile >= 2, "{meanwhile}");
        drop(strace);
        let (status, body) = deploy.join().unwrap();
        // Who asked may have been told that it takes too long.
        assert!(matches!(status, 200 | 504), "{status}: {body}");
        let wanted = ["default/a", "default/b", "default/c"];
        let wanted = wanted.map(|key| Wanted::exactly(key, Outcome::Running(1)));
        until_at_rest(&wanted, || device.scene());
        drop(until_over);
        let longest = reads.join().unwrap();
        assert!(longest < ANSWERED, "a read took {longest:?}");
    });
}
