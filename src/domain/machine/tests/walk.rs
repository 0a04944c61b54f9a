//! Random walks: a seed replays a world in which everything goes wrong that this small world can
//! do, the death of the agent at any moment included. No agent ever makes two live containers of
//! one workload; once the faults stop, everything that was acknowledged is as it was declared,
//! nothing else is there, and the journal is empty.

use super::directory::{DISK, bad, good};
use super::*;
use crate::domain::declared::{Restart, WhenStuck};
use crate::domain::directory::{Content, Found};
use crate::domain::health_check::{Check, Health, HealthCheck, OnUnhealthy, Test};
use crate::domain::names::{EngineId, Source};
use crate::domain::record::{Desired, Origin};
use world::{Due, Fuse, Mishap, Pace, Side, Way};

/// SplitMix64, so that a seed replays the same walk everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let n = usize::try_from(self.below(from.len() as u64)).unwrap();
        &from[n]
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const WORDS: [&str; 8] =
    ["create", "start", "inspect", "signal", "remove", "list", "pull", "network"];
const KINDS: [FaultKind; 11] = [
    FaultKind::Away,
    FaultKind::Timeout,
    FaultKind::Garbled,
    FaultKind::Refused,
    FaultKind::Trouble,
    FaultKind::Conflict,
    FaultKind::Panicked,
    FaultKind::NameTaken,
    FaultKind::NoContainer,
    FaultKind::NoNetwork,
    FaultKind::HostPath,
];
const POLICIES: [RestartPolicy; 3] =
    [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];

/// When something that is late or slow is done.
const DUES: [Due; 5] = [Due::List, Due::Miss, Due::In(1_000), Due::In(15_000), Due::In(100_000)];
const PACES: [Pace; 3] = [Pace::InOrder, Pace::SlowStore, Pace::SlowEngine];

/// What was acknowledged last for each workload: its generation and how it is wanted. `None`:
/// something later was not, and may hold or not.
type Promises = BTreeMap<Uid, (Option<u64>, Option<Desired>)>;

fn check_no_twins(world: &World, seed: u64) {
    assert!(world.twins.is_empty(), "seed {seed}: {:?}", world.twins);
}

/// Applies, and remembers what was acknowledged.
fn apply(world: &mut World, promises: &mut Promises, declared: &Arc<Declared>) {
    let request = world.request(&[declared]);
    if let Some(Answer::Applied(applied)) = world.try_ask(request) {
        let new = (applied[0].change == Change::Created).then_some(Desired::Running);
        let promised = promises.entry(applied[0].uid.clone()).or_insert((None, new));
        promised.0 = Some(applied[0].generation);
    } else {
        let rows = world.store.kept.rows.values();
        for row in rows.filter(|row| row.declared.key == declared.key) {
            promises.entry(row.uid.clone()).or_default().0 = None;
        }
    }
}

/// Somebody works in the manifests directory, or it comes and goes.
fn look(world: &mut World, random: &mut Random) {
    let mut files = Vec::new();
    for file in ["x.yaml", "y.yaml"] {
        let image = format!("image:{}", random.below(3));
        let name: &str = random.pick::<&str>(&["c", "d", "e"]);
        let declared = workload(name, |spec| spec.image = image);
        files.push(match random.below(5) {
            0 => continue,
            1 => (file, Content::Settling),
            2 => (file, bad()),
            _ => (file, good(&[&declared])),
        });
    }
    match random.below(8) {
        0 => world.look(Found::Missing),
        1 => drop(world.try_ask(Request::Confirm)),
        _ => world.files(&files),
    }
}

/// Asks for a verb, and remembers what was acknowledged.
fn ask(world: &mut World, promises: &mut Promises, verb: Verb, uid: Uid) {
    if world.views.get(&uid).is_some_and(|view| view.source == Source::Directory) {
        // What becomes of it later is not for the operator alone to say.
        return drop(world.try_ask(Request::Verb(verb, uid)));
    }
    let desired = match verb {
        Verb::Start | Verb::Restart | Verb::Rebuild => Desired::Running,
        Verb::Stop => Desired::Stopped,
        Verb::Remove => Desired::Deleted,
        Verb::Kill(_) => return drop(world.try_ask(Request::Verb(verb, uid))),
    };
    let promised = promises.entry(uid.clone()).or_default();
    match world.try_ask(Request::Verb(verb, uid)) {
        Some(Answer::Accepted(_)) => promised.1 = Some(desired),
        Some(_) => {}
        None => promised.1 = None,
    }
}

fn check_promises(world: &World, promises: &Promises, seed: u64) {
    for (uid, (generation, desired)) in promises {
        let row = world.store.kept.rows.get(uid);
        let holds = match (row, desired) {
            (None, desired) => desired.is_none_or(|desired| desired == Desired::Deleted),
            (Some(row), desired) => {
                generation.is_none_or(|generation| row.generation == generation)
                    && desired.is_none_or(|desired| row.desired == desired)
            }
        };
        assert!(holds, "seed {seed}: {uid} was to be {generation:?} {desired:?}: {row:?}");
    }
}

/// The agent dies soon, and something else befalls what leaves it, at a moment that is drawn.
fn light_fuse(world: &mut World, random: &mut Random) {
    let at = world.left + 1 + usize::try_from(random.below(8)).unwrap();
    let side = match random.below(3) {
        0 => Side::Before,
        1 => Side::After,
        _ => Side::Late(*random.pick(&DUES)),
    };
    world.holds_names = random.below(2) == 0;
    world.fuse = Some(Fuse { at, side });
}

fn draw_mishap(world: &mut World, random: &mut Random) {
    let at = world.left + 1 + usize::try_from(random.below(8)).unwrap();
    let (kind, due) = (*random.pick(&KINDS), *random.pick(&DUES));
    let unknown = *random.pick(&[FaultKind::Timeout, FaultKind::Away, FaultKind::Garbled]);
    let way = match random.below(6) {
        0 => Way::NotDone(kind),
        1 => Way::Done(unknown),
        2 => Way::DoneLater(unknown, due),
        3 => Way::Slow(Due::In(random.below(100_000))),
        4 => Way::Fails,
        _ => Way::Stalls(20_000),
    };
    world.mishap = Some(Mishap { at, way });
}

/// The next agent begins, at once or after a while; after a reboot nothing runs.
fn begin_again(world: &mut World, random: &mut Random) {
    world.fuse = None;
    world.mishap = None;
    world.unanswered.clear();
    if random.below(4) == 0 {
        world.now += random.below(60_000);
    }
    if random.below(6) == 0 {
        world.cut_power();
    }
    world.crash();
}

/// An operator has reconciling held, or go on.
fn hold_still(world: &mut World, random: &mut Random) {
    let request = match random.below(3) {
        0 => Request::Resume,
        _ => Request::Quiesce(Span(1 + random.below(600_000))),
    };
    drop(world.try_ask(request));
}

/// The agent stops its workloads and ends, in an orderly way or not.
fn drain(world: &mut World, random: &mut Random) {
    let most = (random.below(2) == 0).then(|| Span(1 + random.below(30_000)));
    world.feed(Event::Drain(most));
    world.pass(random.below(200_000));
    if world.died.is_none() && random.below(2) == 0 {
        world.tell_to_stop();
    }
    begin_again(world, random);
}

/// What follows an exit; some are stuck in restarts soon.
fn draw_restart(random: &mut Random) -> Restart {
    let policy = *random.pick(&POLICIES);
    let stuck = *random.pick(&[WhenStuck::Retry, WhenStuck::Hold]);
    match random.below(2) {
        0 => Restart { policy, stuck, ..Restart::default() },
        _ => Restart { policy, delay: Span(100), max_delay: Span(200), stuck },
    }
}

fn draw_check(random: &mut Random) -> Option<HealthCheck> {
    let mut check = Check::new(Test::Shell("probe".to_owned()));
    check.on_unhealthy = *random.pick(&[OnUnhealthy::Restart, OnUnhealthy::Report]);
    random.pick(&[None, Some(HealthCheck::Off), Some(HealthCheck::On(check))]).clone()
}

/// A check comes to another verdict, with or without an event that tells of it, or of an old one.
fn turn_one(world: &mut World, random: &mut Random) {
    let verdicts = [Health::Starting, Health::Healthy, Health::Unhealthy, Health::Unhealthy];
    let checked = world.engine.containers.iter().filter(|(_, made)| made.health.is_some());
    let checked: Vec<String> = checked.map(|(name, _)| name.clone()).collect();
    if checked.is_empty() || world.engine.gone {
        return;
    }
    let made = world.engine.containers.get_mut(random.pick(&checked)).unwrap();
    if random.below(4) > 0 {
        made.health = Some(*random.pick(&verdicts));
    }
    let (id, uid) = (made.id.clone(), made.tags.uid.clone());
    if random.below(3) > 0 {
        let action = ContainerAction::Changed;
        world.feed(Event::Container(ContainerEvent { id, uid, action }));
    }
}

/// One random thing.
fn happen(world: &mut World, promises: &mut Promises, random: &mut Random) {
    match random.below(36) {
        0..=3 => {
            let image = format!("image:{}", random.below(3));
            let restart = draw_restart(random);
            let health_check = draw_check(random);
            let name: &str = random.pick::<&str>(&NAMES);
            let declared = workload(name, |spec| {
                spec.image = image;
                spec.restart = restart;
                spec.health_check = health_check;
            });
            apply(world, promises, &declared);
        }
        4..=6 => {
            let verb = random
                .pick(&[
                    Verb::Start,
                    Verb::Stop,
                    Verb::Restart,
                    Verb::Rebuild,
                    Verb::Remove,
                    Verb::Kill("SIGKILL".to_owned()),
                ])
                .clone();
            let uids: Vec<Uid> = world.views.keys().cloned().collect();
            if !uids.is_empty() {
                let uid = random.pick(&uids).clone();
                ask(world, promises, verb, uid);
            }
        }
        7..=9 => end_one(world, random),
        10 => remove_one(world, random),
        11..=13 => {
            let (word, kind) = (*random.pick(&WORDS), *random.pick(&KINDS));
            world.fail_next(word, &[kind]);
        }
        14 => world.fail_next("deaf", &[FaultKind::Trouble]),
        15 if random.below(2) == 0 => world.fail_next("dies", &[FaultKind::Trouble]),
        15 => world.fail_next("late", &[*random.pick(&[FaultKind::Timeout, FaultKind::Away])]),
        16 if random.below(2) == 0 => world.store.fails = !world.store.fails,
        16 => world.store.rows_fail = !world.store.rows_fail,
        17 if !world.engine.gone => super::engine::kill_engine(world),
        17 => super::engine::revive_engine(world),
        18 => begin_again(world, random),
        19 => hold_one(world, random),
        20 => match random.below(3) {
            0 => world.answer_late(),
            _ => world.unanswered.push(WORDS[usize::try_from(random.below(8)).unwrap()]),
        },
        21 => freeze_one(world, random),
        22..=23 => light_fuse(world, random),
        24 => draw_mishap(world, random),
        25..=26 => look(world, random),
        27..=28 => draw_lives(world, random),
        29 => turn_one(world, random),
        30 => hold_still(world, random),
        31 if random.below(3) == 0 => drain(world, random),
        32 => change_engines(world, random),
        33 => world.engine.clock_ahead = i64::try_from(random.below(1 << 40)).unwrap(),
        _ => world.pass(random.below(40_000)),
    }
    if world.died.is_some() {
        begin_again(world, random);
    }
}

/// The engine is another one, or the one before again.
fn change_engines(world: &mut World, random: &mut Random) {
    if !world.engine.gone {
        super::engine::kill_engine(world);
    }
    if world.died.is_some() {
        return;
    }
    let name = |n| Some(EngineId::new(format!("engine {n}")));
    // At times it does not say, or says the same.
    if world.engine.other.1.is_none() {
        world.engine.identity = random.pick(&[None, Some(0)]).and_then(name);
        world.engine.other.1 = random.pick(&[None, Some(0), Some(1)]).and_then(name);
    }
    world.engine.change_disks();
    super::engine::revive_engine(world);
}

fn running_names(world: &World) -> Vec<String> {
    let running = world.engine.containers.iter().filter(|(_, made)| made.phase == Phase::Running);
    running.map(|(name, _)| name.clone()).collect()
}

/// A process ends, with or without an event that tells of it.
fn end_one(world: &mut World, random: &mut Random) {
    let running = running_names(world);
    if running.is_empty() {
        return;
    }
    let made = world.engine.containers.get_mut(random.pick(&running)).unwrap();
    made.phase = Phase::Exited;
    made.exit_code = i32::try_from(random.below(3)).unwrap();
    let (id, uid) = (made.id.clone(), made.tags.uid.clone());
    if !world.engine.gone && random.below(4) > 0 {
        let action = ContainerAction::Died;
        world.feed(Event::Container(ContainerEvent { id, uid, action }));
    }
}

/// How long each version lives from now on: for ever, or so that it may or may not prove itself.
fn draw_lives(world: &mut World, random: &mut Random) {
    for tag in 0..3 {
        let image = format!("image:{tag}");
        let code = i32::try_from(random.below(3)).unwrap();
        match random.below(2) {
            0 => drop(world.engine.mortal_images.remove(&image)),
            _ => drop(world.engine.mortal_images.insert(image, (random.below(40_000), code))),
        }
    }
}

/// The engine cannot remove a container, or can again.
fn hold_one(world: &mut World, random: &mut Random) {
    let made: Vec<ContainerId> =
        world.engine.containers.values().map(|made| made.id.clone()).collect();
    if random.below(2) == 0 || made.is_empty() {
        world.engine.unremovable.clear();
    } else {
        world.engine.unremovable.push(random.pick(&made).clone());
    }
}

/// Somebody pauses a container and goes on with it later; the events come twice.
fn freeze_one(world: &mut World, random: &mut Random) {
    if world.engine.gone {
        return;
    }
    let freeze = random.below(2) == 0;
    let (from, to) = if freeze { (Phase::Running, Phase::Paused) } else { PAUSED_RUNS };
    let mut those = world.engine.containers.values_mut().filter(|made| made.phase == from);
    let Some(made) = those.next() else { return };
    made.phase = to;
    let (id, uid) = (made.id.clone(), made.tags.uid.clone());
    for _ in 0..2 {
        let action = ContainerAction::Changed;
        world.feed(Event::Container(ContainerEvent { id: id.clone(), uid: uid.clone(), action }));
    }
}

const PAUSED_RUNS: (Phase, Phase) = (Phase::Paused, Phase::Running);

/// Somebody removes a container by force, with or without an event that tells of it.
fn remove_one(world: &mut World, random: &mut Random) {
    let names: Vec<String> = world.engine.containers.keys().cloned().collect();
    if names.is_empty() || world.engine.gone {
        return;
    }
    let made = world.engine.containers.remove(random.pick(&names)).unwrap();
    if random.below(2) == 0 {
        let action = ContainerAction::Removed;
        let (id, uid) = (made.id, made.tags.uid);
        world.feed(Event::Container(ContainerEvent { id, uid, action }));
    }
}

/// The faults stop; long after, the world is as declared.
fn converge(mut world: World, promises: &Promises, seed: u64) {
    world.engine.faults.clear();
    world.fuse = None;
    world.mishap = None;
    world.store.fails = false;
    world.store.rows_fail = false;
    world.engine.unremovable.clear();
    world.engine.mortal_images.clear();
    world.answer_late();
    // What waits for a look that finds nothing may wait for ever.
    world.engine.late.retain(|late| late.due != Due::Miss.from(0));
    let frozen = world.engine.containers.values_mut().filter(|made| made.phase == Phase::Paused);
    frozen.for_each(|made| made.phase = Phase::Running);
    if world.engine.gone {
        super::engine::revive_engine(&mut world);
    }
    // In the end the files say this, whatever they said before.
    let last = workload("d", |spec| spec.image = "image:last".to_owned());
    world.files(&[("z.yaml", good(&[&last]))]);
    // Every update that failed is tried once more.
    for _ in 0..100 {
        world.pass(60_000);
        // What was started meanwhile has to be healthy to prove itself.
        let checked = world.engine.containers.values_mut().filter(|made| made.health.is_some());
        checked.for_each(|made| made.health = Some(Health::Healthy));
        check_no_twins(&world, seed);
    }
    // A start of what somebody unpaused does not show. That the stream works shows in any event.
    let (id, uid) = (ContainerId::new("somebody's"), Uid::new("nobody"));
    let action = ContainerAction::Changed;
    world.feed(Event::Container(ContainerEvent { id, uid, action }));
    world.pass(60_000);
    assert!(world.machine.steps.is_empty(), "seed {seed}: steps in flight: {:?}", world.machine);
    check_promises(&world, promises, seed);
    let filed = world.store.kept.rows.values().filter(|row| row.source == Source::Directory);
    let filed: Vec<_> = filed.map(|row| (&row.declared, row.origin.as_ref())).collect();
    let origin = Origin { file: "z.yaml".into(), mount: DISK.into() };
    assert_eq!(filed, [(&last, Some(&origin))], "seed {seed}: {:?}", world.status.conditions);
    let entries = (&world.store.kept.entries, &world.entries);
    assert!(entries.0.is_empty() && entries.1.is_empty(), "seed {seed}: {entries:?}");
    assert_eq!((world.status.recovering, world.status.journal), (None, (0, 0)), "seed {seed}");
    check_states(&world, seed);
    check_nothing_is_left(&world, seed);
    world.engine.calls.clear();
    let rows = world.store.kept.rows.clone();
    world.pass(600_000);
    assert_eq!(world.engine.calls, ["list"; 10], "seed {seed}: an unchanged world plans nothing");
    assert_eq!(world.store.kept.rows, rows, "seed {seed}: an unchanged world writes nothing");
}

fn check_states(world: &World, seed: u64) {
    for row in world.store.kept.rows.values() {
        let view = &world.views[&row.uid];
        let what = format!("seed {seed}: {} is {:?} ({})", row.uid, view.state, view.info);
        match view.desired {
            Desired::Running => assert!(
                matches!(
                    view.state,
                    State::RunningOk
                        | State::SucceededOk
                        | State::FailedExecFailed
                        | State::FailedLost
                ) || view.runtime_state == RuntimeState::Failed,
                "{what}"
            ),
            Desired::Stopped => {
                assert_eq!(view.state, State::StoppedOk, "{what}");
            }
            Desired::Deleted => {
                panic!("{what} {:#?}", world.machine.workloads.get(&row.uid))
            }
        }
    }
}

fn check_nothing_is_left(world: &World, seed: u64) {
    for (name, made) in &world.engine.containers {
        let row = world.store.kept.rows.get(&made.tags.uid);
        let row = row.unwrap_or_else(|| panic!("seed {seed}: {name} belongs to nobody"));
        // What was stopped on probation goes on with that at its next start.
        let previous = row.previous.iter().filter(|_| row.desired == Desired::Stopped);
        let mut kept = row.current.iter().chain(previous.map(|previous| &previous.instance));
        let is_kept = kept.any(|instance| instance.name.as_str() == name);
        assert!(is_kept, "seed {seed}: {name} is left behind");
    }
}

impl World {
    /// Prints what a step led to; with `BARGEE_WALK_SEED` set to a failing seed.
    fn tell(&self, step: usize) {
        println!("{step} at {}: {:?}", self.now, self.engine.calls);
        for (name, made) in &self.engine.containers {
            let Made { tags, phase, started_at_ns, exit_code, .. } = made;
            println!("    {name} {} {phase:?} {started_at_ns} exit {exit_code}", tags.uid);
        }
        for view in self.views.values() {
            let key = &view.declared.key;
            println!("    {} {key} {:?} {:?} {}", view.uid, view.desired, view.state, view.info);
        }
        for entry in self.store.kept.entries.values() {
            println!("    {} {} {:?} {}", entry.seq.0, entry.token, entry.intent, entry.error);
        }
        println!("    {:?} {:?} {:?}", self.fuse, self.mishap, self.died);
    }
}

fn walk(seed: u64, steps: usize) {
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut world = World::new();
    world.pace = *random.pick(&PACES);
    let mut promises = Promises::new();
    let tell = std::env::var_os("BARGEE_WALK_SEED").is_some();
    for step in 0..steps {
        world.engine.calls.clear();
        happen(&mut world, &mut promises, &mut random);
        if tell {
            world.tell(step);
        }
        check_no_twins(&world, seed);
    }
    converge(world, &promises, seed);
}

#[test]
fn random_walks_end_as_declared() {
    let set = |name: &str| std::env::var(name).ok().and_then(|seed| seed.parse::<u64>().ok());
    let (from, to) = match (set("BARGEE_WALK_SEED"), set("BARGEE_WALKS")) {
        (Some(seed), _) => (seed, seed + 1),
        (None, walks) => (0, walks.unwrap_or(400)),
    };
    for seed in from..to {
        walk(seed, 120);
    }
}
