//! A flash that takes 20 s for each sync: what crashes is started again all the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bargee::os::clock;
use serde_json::Value;

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::strace::{SYNCS, Strace};
use crate::support::{let_exits_stand, pause, until};

const NAMES: [&str; 3] = ["a", "b", "c"];
const CRASHES: u64 = 3;
/// Below what STUCK_IN_RESTART takes, and far below the time of a sync.
const ANSWERED: Duration = Duration::from_secs(10);

/// Reads what the API has, again and again until `over`; the longest that one took.
fn read_all_the_time(agent: &Agent, over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::SeqCst) {
        for path in ["/health/live", "/v1/ms", "/v1/ms/a", "/v1/system/status", "/v1/journal"] {
            let begin = clock::boot_ms();
            let (status, body) = agent.get(path).unwrap();
            assert_eq!(status, 200, "{path}: {body}");
            longest = longest.max(Duration::from_millis(clock::boot_ms() - begin));
        }
        pause(Duration::from_millis(200));
    }
    longest
}

/// Ends the process of each workload, and waits until the engine says that it runs again.
fn crash_all(agent: &Agent) {
    let before = NAMES.map(|name| agent.container(name));
    for one in &before {
        agent.docker().post(&format!("/containers/{}/kill", one.id), &Value::Null);
    }
    for one in &before {
        until(format_args!("{} to be started again", one.workload), || {
            let now = agent.docker().container(&one.id)?;
            (now.is_running() && now.started_at != one.started_at).then_some(())
        });
    }
}

#[test]
fn b158_crashes_are_made_good_and_counted_while_each_sync_takes_20_s() {
    let mut agent = Agent::on(shared());
    let service =
        |name| Manifest::service(name).restart("always").hasty().with("restart.maxDelay", "1s");
    agent.deploy(&NAMES.map(service));
    agent.until_running(&NAMES);
    let folder = tempfile::tempdir().unwrap();
    let inject = format!("inject={SYNCS}:delay_enter=20000000");
    let words = ["-e", &format!("trace={SYNCS}"), "-e", &inject];
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let strace = Strace::attach(agent.pid(), &words, &folder.path().join("log"));
        let reads = scope.spawn(|| read_all_the_time(&agent, &over));
        let begin = clock::boot_ms();
        (0..CRASHES).for_each(|_| crash_all(&agent));
        let took = Duration::from_millis(clock::boot_ms() - begin);
        let syncs = strace.count(SYNCS);
        let most = usize::try_from(took.as_secs() / 20).unwrap() + 1;
        assert!((1..=most).contains(&syncs), "{syncs} syncs in {took:?}: {}", strace.log());
        drop(strace);
        for name in NAMES {
            let one = agent.until(name, "counted", |one| one.restart_count == CRASHES);
            assert_eq!(one.last_error, "exitCode=137 oomKilled=false");
        }
        over.store(true, Ordering::SeqCst);
        let longest = reads.join().unwrap();
        assert!(longest < ANSWERED, "a read took {longest:?}");
    });
    let before = runs(&agent);
    let_exits_stand();
    agent.restart();
    for one in agent.until_running(&NAMES) {
        assert_eq!(one.restart_count, CRASHES, "{}", one.name);
    }
    assert_eq!(runs(&agent), before);
}
