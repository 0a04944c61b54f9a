//! What happens in a world: a list of acts, each a while after the one before. Everything that was
//! drawn for a world is in its script, so that a script can be made smaller, and pasted into a
//! test.

use std::fmt;

use bargee::domain::fault::FaultKind;

/// A whole world.
#[derive(Clone, Debug)]
pub struct Script {
    /// Draws how long things take.
    pub seed: u64,
    pub engine: Personality,
    /// Longest time that a call, a commit or an event takes, in milliseconds.
    pub pace_ms: u64,
    pub acts: Vec<(u64, Act)>,
}

/// Which engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Personality {
    Docker,
    LiveRestore,
    Podman,
}

/// One thing that happens.
#[derive(Clone, PartialEq, Debug)]
pub enum Act {
    // --- people ---
    /// Declares these, prunes, starts.
    Apply(Vec<Wish>, bool, bool),
    /// Declares what was declared last under this key.
    Again(u8),
    Verb(u8, Verb),
    Replay,
    /// Drops the entry with this place in the journal.
    Drop(u8),
    Confirm,
    /// Reconciling is held for so many milliseconds from now on.
    Quiesce(u64),
    Resume,
    /// What is in the manifests directory from now on.
    Files(Vec<(u8, File)>),
    /// It is not there.
    NoDirectory,

    // --- processes ---
    /// One that runs ends by itself.
    Exit(u8, i32),
    /// One that runs hears no signal, not even SIGKILL, for so many milliseconds.
    Deaf(u8, u64),

    // --- other hands on the engine ---
    Hand(Hand, u8),
    /// The network of an application is removed.
    NetworkGone(u8),
    /// An image is removed from the device.
    ImageGone(u8),
    /// The disk that some are made with goes, or comes.
    Disk(bool),

    // --- the engine ---
    EngineDies,
    EngineStarts,
    /// The next call of this kind, after so many, goes this way.
    Mishap(Word, u8, Way),
    StreamEnds,
    /// It shows nothing any more, and does not end.
    StreamDeaf,
    /// So many events are lost, told twice, or come so many milliseconds late.
    Lose(u8),
    Double(u8),
    Lag(u64),
    /// Listings leave out a container, so many times.
    ShortLists(u8),
    /// A container that cannot be removed.
    Stuck(u8),

    // --- the store ---
    StoreFails(Failing),
    Stall(u64),
    /// The next commit, after so many, goes this way.
    Commit(u8, Writing),

    // --- the agent and the device ---
    /// The agent is killed; a write that is under way is durable; another one starts so many
    /// milliseconds later.
    Die(bool, u64),
    /// The same when so much has left it from now on.
    Fuse(u8, Side, u64),
    /// The agent is told to stop.
    Stop(u64),
    /// The same, and it stops its workloads before that.
    Drain(u64),
    /// The power fails; a write that is under way is durable; the agent starts so many milliseconds
    /// after the device, and the engine so many.
    PowerCut(bool, u64, u64),
    /// The wall clock jumps by so many seconds.
    WallJump(i64),
}

/// What a workload is wanted to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    pub key: u8,
    pub image: Image,
    pub version: u8,
    pub policy: Policy,
    /// Left alone when stuck.
    pub hold: bool,
    /// Delays of tenths of a second.
    pub hasty: bool,
    /// Only in the row.
    pub label: u8,
    pub pull: Pull,
    /// Made with a disk that must be there.
    pub disk: bool,
    pub schedule: u8,
    /// A job that runs again at each boot.
    pub rerun: bool,
}

/// What a wish is where nothing else is said.
pub const PLAIN: Wish = Wish {
    key: 0,
    image: Image::App,
    version: 0,
    policy: Policy::Always,
    hold: false,
    hasty: false,
    label: 0,
    pull: Pull::Missing,
    disk: false,
    schedule: 0,
    rerun: false,
};

/// As it can be pasted: only what differs from [`PLAIN`].
impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wish { key, image, version, policy, hold, hasty, label, pull, disk, schedule, rerun } =
            *self;
        write!(f, "Wish {{ key: {key}, ")?;
        let mut tell = |differs: bool, field: String| match differs {
            true => write!(f, "{field}, "),
            false => Ok(()),
        };
        tell(image != PLAIN.image, format!("image: {image:?}"))?;
        tell(version != PLAIN.version, format!("version: {version}"))?;
        tell(policy != PLAIN.policy, format!("policy: {policy:?}"))?;
        tell(hold != PLAIN.hold, format!("hold: {hold}"))?;
        tell(hasty != PLAIN.hasty, format!("hasty: {hasty}"))?;
        tell(label != PLAIN.label, format!("label: {label}"))?;
        tell(pull != PLAIN.pull, format!("pull: {pull:?}"))?;
        tell(disk != PLAIN.disk, format!("disk: {disk}"))?;
        tell(schedule != PLAIN.schedule, format!("schedule: {schedule}"))?;
        tell(rerun != PLAIN.rerun, format!("rerun: {rerun}"))?;
        f.write_str("..PLAIN }")
    }
}

/// What its process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Image {
    /// Runs.
    App,
    /// Runs, and comes from another registry.
    Far,
    /// Ends with 0 after a while.
    Job,
    /// Ends with 1 after a while.
    Crash,
    /// Ends with 1 before anybody has looked.
    Snap,
    /// Ends with 1 three seconds after each start.
    Brief,
    /// Ends with 1 a second before a run would have lasted.
    Fading,
    /// Takes five seconds to stop.
    Slow,
    /// Is stopped by SIGKILL alone.
    Stubborn,
    /// Cannot be made.
    Refused,
    /// Cannot be started.
    Inert,
    /// Is in no registry.
    Ghost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pull {
    Missing,
    EachTime,
    /// It is on the device, or waited for.
    Loaded,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Start,
    StopIt,
    Restart,
    Rebuild,
    Kill,
    Remove,
}

/// A file of the manifests directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum File {
    Settling,
    Wrong,
    Holds(Vec<Wish>),
}

/// What somebody does to a container by hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hand {
    Removes,
    Starts,
    Stops,
    Freezes,
    Thaws,
    /// Makes and starts one with the same labels, under the name that they say.
    Twins,
    /// The same under another name.
    Copies,
    /// Takes the name that the next container is to have.
    Squats,
    /// Makes one for another store, under the same key.
    Strange,
}

/// A kind of call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Inspect,
    Create,
    Begin,
    Signal,
    Delete,
    Network,
    List,
    Fetch,
}

/// How a call goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Not done, and answered with this.
    NotDone(FaultKind),
    /// Done, and answered with this.
    Done(FaultKind),
    /// Answered with this, and done so many milliseconds later.
    Later(FaultKind, u64),
    /// Done and answered after so many milliseconds.
    Takes(u64),
    /// Not done, and not answered before its time is over.
    Hangs,
}

/// What the store cannot do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failing {
    Nothing,
    Everything,
    /// All but declarations.
    Rows,
}

/// How a commit goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    Fails,
    /// Answered as failed, and durable.
    Unknown,
}

/// On which side of what leaves it the agent dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Before,
    After,
}
