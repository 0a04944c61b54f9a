//! Every point of every scenario: the agent dies there, and everything comes to rest all the same.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::database;
use crate::durable::Disk;
use crate::kit::{Places, expect_all_known, rest, start_again_and_compare};
use crate::scenarios::{SCENARIOS, Scenario, prepared};
use crate::support::at_rest::{Held, Scene};
use crate::support::device::Device;
use crate::support::scripted_engine::{Route, Side};
use crate::support::strace::{SYNCS, Strace, die_at_sync};
use crate::support::{side_by_side, until};

/// Devices that are at work at the same time.
const AT_WORK: usize = 3;

/// Where the agent dies, counted from when it is asked.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// On this side of this request to the engine.
    Request(usize, Side),
    /// When the store calls for this sync, which does not come to pass.
    Sync(usize),
    /// There, and with it goes all that no sync made durable.
    PowerCut(usize),
}

/// How many points a scenario has.
struct Length {
    requests: usize,
    syncs: usize,
}

fn trace(device: &Device, words: &[&str]) -> Strace {
    let traced = format!("trace={SYNCS}");
    let words = [&["-e", &*traced], words].concat();
    Strace::attach(device.pid(), &words, &device.path("strace"))
}

/// Counts the points.
fn measure(scenario: &Scenario) -> Length {
    let device = prepared(scenario);
    let strace = trace(&device, &[]);
    let answered = (scenario.act)(&device);
    let wanted = scenario.wanted(answered);
    until("the scenario to end", || {
        let scene = device.scene()?;
        let is_done = !device.engine.heard().is_empty() && scene.problems(&wanted).is_empty();
        is_done.then_some(())
    });
    let (requests, syncs) = (device.engine.heard().len(), strace.count(SYNCS));
    println!("{}: {requests} requests, {syncs} syncs", scenario.name);
    assert!(requests > 0 && syncs > 0, "{}: nothing to die at", scenario.name);
    Length { requests, syncs }
}

/// Runs the scenario until the agent is dead. Whether it was answered, and whether it came to the
/// point; if not, the agent dies at rest.
fn die_at(device: &mut Device, scenario: &Scenario, point: Point) -> (bool, bool) {
    let watch = match point {
        Point::Request(number, side) => {
            device.engine.stand_still_at(number, side);
            None
        }
        Point::Sync(number) => Some((None, trace(device, &["-e", &die_at_sync(number)]))),
        Point::PowerCut(number) => {
            let (disk, strace) = Disk::watch(device, &["-e", &die_at_sync(number)]);
            Some((Some(disk), strace))
        }
    };
    let ended = thread::scope(|scope| {
        let alive = &*device;
        let act = scope.spawn(|| (scenario.act)(alive));
        let came = until("the agent to come to the point", || {
            if alive.engine.stands_still().is_some() || alive.is_dead() {
                return Some(true);
            }
            let is_over = act.is_finished() && {
                let wanted = scenario.wanted(true);
                alive.scene().is_some_and(|scene| scene.problems(&wanted).is_empty())
            };
            is_over.then_some(false)
        });
        alive.send_sigkill();
        (act.join().unwrap(), came)
    });
    device.kill9();
    expect_intent(device);
    if let Some((Some(mut disk), strace)) = watch {
        disk.replay(&strace.wait());
        disk.cut_power();
        expect_all_known(device);
    }
    device.engine.release();
    ended
}

/// No container is made or removed without an entry that was durable before.
fn expect_intent(device: &Device) {
    let (kinds, object): (&[&str], _) = match device.engine.stands_still() {
        Some((Route::Create, object)) => (&["create-workload"], object),
        Some((Route::Remove, object)) => (&["create-workload", "replace-workload"], object),
        _ => return,
    };
    let entries = database::entries(&device.data("bargee.db"));
    let is_about =
        |(kind, body): &(String, String)| kinds.contains(&&**kind) && body.contains(&object);
    assert!(entries.iter().any(is_about), "no intent about {object}: {entries:?}");
}

/// The containers of a workload.
fn of(name: &str, scene: &Scene) -> Vec<Held> {
    let prefix = format!("bargee-{name}-");
    let held = scene.containers.iter().filter(|held| held.name.starts_with(&prefix));
    held.cloned().collect()
}

/// Whether the agent came to the point.
fn survives(scenario: &Scenario, point: Point, places: &Places) -> bool {
    let place = places.take();
    let mut device = prepared(scenario);
    let before = device.scene().unwrap();
    let (answered, came) = die_at(&mut device, scenario, point);
    let wanted = scenario.wanted(answered);
    device.launch();
    let (scene, _place) = rest(&device, &wanted, place);
    assert_eq!(of("other", &scene), of("other", &before));
    if scenario.runs_anew && answered {
        assert_ne!(of("web", &scene), of("web", &before));
    }
    start_again_and_compare(&mut device, &wanted, &scene);
    came
}

#[test]
fn every_point_of_every_scenario() {
    let places = Places::new(AT_WORK);
    let lengths: Vec<Length> = thread::scope(|scope| {
        let measure = |scenario| {
            let _place = places.take();
            measure(scenario)
        };
        let all: Vec<_> = SCENARIOS.iter().map(|one| scope.spawn(move || measure(one))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut points = Vec::new();
    for (scenario, Length { requests, syncs }) in SCENARIOS.iter().zip(lengths) {
        let sides = [Side::Before, Side::After];
        let requests = (0..requests).flat_map(|n| sides.map(|side| Point::Request(n, side)));
        let cuts = (0..syncs).flat_map(|n| [Point::Sync(n), Point::PowerCut(n)]);
        let all = requests.chain(cuts);
        points.extend(all.map(|point| (scenario, point)));
    }
    let named: Vec<(String, (&Scenario, Point))> = points
        .into_iter()
        .map(|(scenario, point)| (format!("{} {point:?}", scenario.name), (scenario, point)))
        .collect();
    let cases: Vec<_> = named.iter().map(|(name, case)| (name.as_str(), *case)).collect();
    let missed = AtomicUsize::new(0);
    side_by_side(&cases, |(scenario, point)| {
        if !survives(scenario, *point, &places) {
            println!("{}: it was over before {point:?}", scenario.name);
            missed.fetch_add(1, Ordering::Relaxed);
        }
    });
    // What is looked at or written by the clock may come in between, or not.
    let (missed, all) = (missed.into_inner(), cases.len());
    assert!(missed * 10 < all, "{missed} of {all} points were not come to");
}
