//! Draws the script of a world from a seed. Which kinds of faults there are is drawn first, for
//! each world anew: a fault that is everywhere hides what others would show.

use bargee::domain::fault::FaultKind;

use super::acts::{
    Act, Failing, File, Hand, Image, Personality, Policy, Pull, Script, Side, Verb, Way, Wish,
    Word, Writing,
};
use super::random::Random;

/// Keys of workloads that are declared by asking; those after them by files.
pub const ASKED_KEYS: u8 = 4;
/// All keys.
pub const KEYS: u8 = 7;

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
const UNKNOWN: [FaultKind; 3] = [FaultKind::Away, FaultKind::Timeout, FaultKind::Garbled];
const WORDS: [Word; 8] = [
    Word::Inspect,
    Word::Create,
    Word::Begin,
    Word::Signal,
    Word::Delete,
    Word::Network,
    Word::List,
    Word::Fetch,
];
const HANDS: [Hand; 9] = [
    Hand::Removes,
    Hand::Starts,
    Hand::Stops,
    Hand::Freezes,
    Hand::Thaws,
    Hand::Twins,
    Hand::Copies,
    Hand::Squats,
    Hand::Strange,
];
const VERBS: [Verb; 6] =
    [Verb::Start, Verb::StopIt, Verb::Restart, Verb::Rebuild, Verb::Kill, Verb::Remove];
const IMAGES: [Image; 12] = [
    Image::App,
    Image::Far,
    Image::Job,
    Image::Crash,
    Image::Snap,
    Image::Brief,
    Image::Fading,
    Image::Slow,
    Image::Stubborn,
    Image::Refused,
    Image::Inert,
    Image::Ghost,
];

const ENGINES: [Personality; 5] = [
    Personality::Docker,
    Personality::Docker,
    Personality::LiveRestore,
    Personality::Podman,
    Personality::Podman,
];

/// A kind of act.
#[derive(Clone, Copy)]
enum Kind {
    Apply,
    Verb,
    Exit,
    Files,
    Journal,
    Hold,
    Deaf,
    Hand,
    Lack,
    Engine,
    NotDone,
    Lost,
    Late,
    Slow,
    Stream,
    Events,
    Lists,
    Unremovable,
    Store,
    Stall,
    Commit,
    Die,
    Fuse,
    Stop,
    Drain,
    PowerCut,
    WallJump,
}

/// Never switched off, and how often they come.
const ALWAYS: [(Kind, u64); 3] = [(Kind::Apply, 8), (Kind::Verb, 6), (Kind::Exit, 4)];
/// The rest, and how often they come where they come at all.
const SOMETIMES: [(Kind, u64); 24] = [
    (Kind::Files, 4),
    (Kind::Journal, 1),
    (Kind::Hold, 2),
    (Kind::Deaf, 2),
    (Kind::Hand, 4),
    (Kind::Lack, 2),
    (Kind::Engine, 3),
    (Kind::NotDone, 5),
    (Kind::Lost, 4),
    (Kind::Late, 4),
    (Kind::Slow, 3),
    (Kind::Stream, 3),
    (Kind::Events, 3),
    (Kind::Lists, 2),
    (Kind::Unremovable, 2),
    (Kind::Store, 2),
    (Kind::Stall, 2),
    (Kind::Commit, 3),
    (Kind::Die, 3),
    (Kind::Fuse, 5),
    (Kind::Stop, 1),
    (Kind::Drain, 1),
    (Kind::PowerCut, 2),
    (Kind::WallJump, 1),
];

/// The script of `seed`.
pub fn script(seed: u64) -> Script {
    let mut random = Random::new(seed);
    let mut kinds: Vec<(Kind, u64)> = ALWAYS.to_vec();
    for (kind, often) in SOMETIMES {
        if random.once_in(2) {
            kinds.push((kind, 1 + random.below(2 * often)));
        }
    }
    let mut drawing =
        Drawing { kinds, images: Vec::new(), tempo: random.pick(&[50, 2_000, 30_000]), random };
    for image in IMAGES {
        if drawing.random.once_in(3) {
            drawing.images.push(image);
        }
    }
    drawing.images.extend([Image::App; 3]);
    let random = &mut drawing.random;
    let engine = random.pick(&ENGINES);
    let pace_ms = random.pick(&[2, 20, 1_000]);
    let count = 20 + random.below(100);
    let acts = (0..count).map(|_| (drawing.wait(), drawing.act())).collect();
    Script { seed, engine, pace_ms, acts }
}

struct Drawing {
    random: Random,
    kinds: Vec<(Kind, u64)>,
    images: Vec<Image>,
    /// Usual time between two acts.
    tempo: u64,
}

impl Drawing {
    fn wait(&mut self) -> u64 {
        let random = &mut self.random;
        match random.below(8) {
            0 => 0,
            1 | 2 => random.below(30),
            3 => random.below(40_000),
            4 if random.once_in(10) => random.below(1_200_000),
            _ => random.below(self.tempo),
        }
    }

    fn kind(&mut self) -> Kind {
        let all: u64 = self.kinds.iter().map(|(_, often)| often).sum();
        let mut left = self.random.below(all);
        for &(kind, often) in &self.kinds {
            if left < often {
                return kind;
            }
            left -= often;
        }
        Kind::Apply
    }

    fn act(&mut self) -> Act {
        let kind = self.kind();
        let random = &mut self.random;
        match kind {
            Kind::Apply => self.apply(),
            Kind::Verb => {
                let verb = random.pick(&VERBS);
                Act::Verb(random.small(KEYS), verb)
            }
            Kind::Exit => Act::Exit(random.small(8), random.pick(&[0, 1, 1, 137])),
            Kind::Files => self.files(),
            Kind::Journal if random.once_in(2) => Act::Replay,
            Kind::Journal => Act::Drop(random.small(3)),
            Kind::Hold if random.once_in(3) => Act::Resume,
            Kind::Hold => {
                let most = random.pick(&[5_000, 60_000, 1_800_000]);
                Act::Quiesce(random.below(most))
            }
            Kind::Deaf => Act::Deaf(random.small(8), random.below(120_000)),
            Kind::Hand => Act::Hand(random.pick(&HANDS), random.small(8)),
            Kind::Lack => match random.below(4) {
                0 => Act::NetworkGone(random.small(2)),
                1 => Act::ImageGone(random.small(16)),
                n => Act::Disk(n == 2),
            },
            Kind::Engine if random.once_in(2) => Act::EngineDies,
            Kind::Engine => Act::EngineStarts,
            Kind::NotDone | Kind::Lost | Kind::Late | Kind::Slow => self.mishap(kind),
            Kind::Stream if random.once_in(2) => Act::StreamEnds,
            Kind::Stream => Act::StreamDeaf,
            Kind::Events => match random.below(3) {
                0 => Act::Lose(1 + random.small(3)),
                1 => Act::Double(1 + random.small(3)),
                _ => Act::Lag(random.pick(&[0, 200, 7_000])),
            },
            Kind::Lists => Act::ShortLists(1 + random.small(3)),
            Kind::Unremovable => Act::Stuck(random.small(8)),
            _ => self.breakdown(kind),
        }
    }

    /// Something about the store, the agent or the device.
    fn breakdown(&mut self, kind: Kind) -> Act {
        let random = &mut self.random;
        let later = random.pick(&[0, 10, 3_000, 60_000]);
        let durable = random.once_in(2);
        match kind {
            Kind::Store => Act::StoreFails(random.pick(&[
                Failing::Nothing,
                Failing::Everything,
                Failing::Rows,
            ])),
            Kind::Stall => Act::Stall(random.below(40_000)),
            Kind::Commit => {
                Act::Commit(random.small(4), random.pick(&[Writing::Fails, Writing::Unknown]))
            }
            Kind::Die => Act::Die(durable, later),
            Kind::Fuse => {
                let side = random.pick(&[Side::Before, Side::After]);
                Act::Fuse(1 + random.small(8), side, later)
            }
            Kind::Stop => Act::Stop(later),
            Kind::Drain => Act::Drain(later),
            Kind::PowerCut => Act::PowerCut(durable, later, random.pick(&[0, 20, 5_000])),
            _ => Act::WallJump(random.pick(&[-1_000_000_000, -7_200, -1, 1, 7_200, 1_000_000_000])),
        }
    }

    fn mishap(&mut self, kind: Kind) -> Act {
        let random = &mut self.random;
        let word = random.pick(&WORDS);
        let unknown = random.pick(&UNKNOWN);
        let way = match kind {
            Kind::NotDone if random.once_in(8) => Way::Hangs,
            Kind::NotDone => Way::NotDone(random.pick(&KINDS)),
            Kind::Lost => Way::Done(unknown),
            Kind::Late => {
                let most = random.pick(&[50, 1_000, 20_000, 150_000]);
                Way::Later(unknown, random.below(most))
            }
            _ => {
                let most = random.pick(&[1_000, 10_000, 110_000]);
                Way::Takes(random.below(most))
            }
        };
        Act::Mishap(word, random.small(3), way)
    }

    fn apply(&mut self) -> Act {
        if self.random.once_in(6) {
            return Act::Again(self.random.small(ASKED_KEYS));
        }
        let many = if self.random.once_in(4) { 1 + self.random.below(4) } else { 1 };
        let mut wishes: Vec<Wish> = Vec::new();
        for _ in 0..many {
            let wish = self.wish(0, ASKED_KEYS);
            if wishes.iter().all(|other| other.key != wish.key) {
                wishes.push(wish);
            }
        }
        Act::Apply(wishes, self.random.once_in(12), self.random.once_in(4))
    }

    /// What one of `count` keys from `first` on is wanted to be.
    fn wish(&mut self, first: u8, count: u8) -> Wish {
        let image = self.random.pick(&self.images);
        let random = &mut self.random;
        // A job that always runs again never comes to rest.
        let policies: &[Policy] = match image {
            Image::Job => &[Policy::OnFailure, Policy::Never],
            _ => &[Policy::Always, Policy::Always, Policy::OnFailure, Policy::Never],
        };
        Wish {
            key: first + random.small(count),
            image,
            version: random.small(3),
            policy: random.pick(policies),
            hold: random.once_in(4),
            hasty: random.once_in(3),
            label: random.small(2),
            pull: random.pick(&[Pull::Missing, Pull::Missing, Pull::EachTime, Pull::Loaded]),
            disk: random.once_in(6),
            schedule: random.small(3),
            rerun: random.once_in(3),
        }
    }

    fn files(&mut self) -> Act {
        if self.random.once_in(8) {
            return Act::NoDirectory;
        }
        if self.random.once_in(8) {
            return Act::Confirm;
        }
        let mut files = Vec::new();
        for name in 0..2 {
            let file = match self.random.below(6) {
                0 => continue,
                1 => File::Settling,
                2 => File::Wrong,
                n => {
                    // The last asked key may be named in a file, too.
                    let mut wishes = vec![self.wish(ASKED_KEYS - 1, KEYS - ASKED_KEYS + 1)];
                    let other = self.wish(ASKED_KEYS, KEYS - ASKED_KEYS);
                    if n == 3 && other.key != wishes[0].key {
                        wishes.push(other);
                    }
                    File::Holds(wishes)
                }
            };
            files.push((name, file));
        }
        Act::Files(files)
    }
}
