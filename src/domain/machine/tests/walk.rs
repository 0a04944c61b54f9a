//! Random walks: a seed replays a world in which everything goes wrong that this small world can
//! do. After every event no workload has two live containers; once the faults stop, everything
//! declared is as declared and nothing else is there.

use super::*;

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

fn check_no_twins(world: &World, seed: u64) {
    let mut live: BTreeMap<&Uid, &Made> = BTreeMap::new();
    let running = world.engine.containers.values().filter(|made| made.phase.is_live());
    for made in running {
        if let Some(twin) = live.insert(&made.tags.uid, made) {
            panic!("seed {seed}: two live containers of one workload: {twin:?} and {made:?}");
        }
    }
}

/// One random thing.
fn happen(world: World, random: &mut Random) -> World {
    let mut world = world;
    match random.below(24) {
        0..=3 => {
            let image = format!("image:{}", random.below(3));
            let policy = *random.pick(&POLICIES);
            let name: &str = random.pick::<&str>(&NAMES);
            let declared = workload(name, |spec| {
                spec.image = image;
                spec.restart.policy = policy;
            });
            let request = world.request(&[&declared]);
            world.try_ask(request);
        }
        4..=6 => {
            let verb = random
                .pick(&[
                    Verb::Start,
                    Verb::Stop,
                    Verb::Restart,
                    Verb::Remove,
                    Verb::Kill("SIGKILL".to_owned()),
                ])
                .clone();
            let uids: Vec<Uid> = world.views.keys().cloned().collect();
            if !uids.is_empty() {
                let uid = random.pick(&uids).clone();
                world.try_ask(Request::Verb(verb, uid));
            }
        }
        7..=9 => end_one(&mut world, random),
        10 => remove_one(&mut world, random),
        11..=13 => {
            let (word, kind) = (*random.pick(&WORDS), *random.pick(&KINDS));
            world.fail_next(word, &[kind]);
        }
        14 => world.fail_next("deaf", &[FaultKind::Trouble]),
        15 if random.below(2) == 0 => world.fail_next("dies", &[FaultKind::Trouble]),
        15 => world.fail_next("late", &[*random.pick(&[FaultKind::Timeout, FaultKind::Away])]),
        16 => world.store.fails = !world.store.fails,
        17 if !world.engine.gone => super::engine::kill_engine(&mut world),
        17 => super::engine::revive_engine(&mut world),
        18 if !world.engine.gone => {
            let reboot = random.below(3) == 0;
            let boot = if reboot { format!("boot-{}", random.next()) } else { world.boot.clone() };
            if reboot {
                for made in world.engine.containers.values_mut().filter(|m| m.phase.is_live()) {
                    made.phase = Phase::Exited;
                    made.exit_code = 255;
                }
                world.now = 1_000;
            }
            world = world.restart_agent(&boot);
        }
        19 => hold_one(&mut world, random),
        20 => match random.below(3) {
            0 => world.answer_late(),
            _ => world.unanswered.push(WORDS[usize::try_from(random.below(8)).unwrap()]),
        },
        21 => freeze_one(&mut world, random),
        _ => world.pass(random.below(40_000)),
    }
    world
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
fn converge(mut world: World, seed: u64) {
    world.engine.faults.clear();
    world.store.fails = false;
    world.engine.unremovable.clear();
    world.answer_late();
    let frozen = world.engine.containers.values_mut().filter(|made| made.phase == Phase::Paused);
    frozen.for_each(|made| made.phase = Phase::Running);
    if world.engine.gone {
        super::engine::revive_engine(&mut world);
    }
    for _ in 0..40 {
        world.pass(60_000);
        check_no_twins(&world, seed);
    }
    assert!(world.machine.steps.is_empty(), "seed {seed}: steps in flight: {:?}", world.machine);
    for row in world.store.kept.rows.values() {
        let view = &world.views[&row.uid];
        let what = format!("seed {seed}: {} is {:?} ({})", row.uid, view.state, view.info);
        match view.desired {
            crate::domain::record::Desired::Running => assert!(
                matches!(
                    view.state,
                    State::RunningOk
                        | State::SucceededOk
                        | State::FailedExecFailed
                        | State::FailedLost
                ) || view.runtime_state == RuntimeState::Failed,
                "{what}"
            ),
            crate::domain::record::Desired::Stopped => {
                assert_eq!(view.state, State::StoppedOk, "{what}");
            }
            crate::domain::record::Desired::Deleted => {
                panic!("{what} {:#?}", world.machine.workloads.get(&row.uid))
            }
        }
    }
    for (name, made) in &world.engine.containers {
        let row = world.store.kept.rows.get(&made.tags.uid);
        let row = row.unwrap_or_else(|| panic!("seed {seed}: {name} belongs to nobody"));
        let current = row.current.as_ref().map(|current| current.name.as_str());
        assert_eq!(current, Some(name.as_str()), "seed {seed}: {name} is left behind");
    }
    world.engine.calls.clear();
    let rows = world.store.kept.rows.clone();
    world.pass(600_000);
    assert_eq!(world.engine.calls, ["list"; 10], "seed {seed}: an unchanged world plans nothing");
    assert_eq!(world.store.kept.rows, rows, "seed {seed}: an unchanged world writes nothing");
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
    }
}

fn walk(seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut world = World::new();
    let tell = std::env::var_os("BARGEE_WALK_SEED").is_some();
    for step in 0..steps {
        world.engine.calls.clear();
        world = happen(world, &mut random);
        if tell {
            world.tell(step);
        }
        check_no_twins(&world, seed);
    }
    converge(world, seed);
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
