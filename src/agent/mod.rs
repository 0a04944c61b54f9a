//! The shell that runs the machine: threads and channels around `step(now, event) -> effects`.
//!
//! `run` starts the rooms in order and stops them in order. Workloads are left running.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::api;
use crate::config::{EngineKind, Origin, Settled};
use crate::domain::directory::Place;
use crate::domain::effect::Effect;
use crate::domain::machine::{Machine, Start};
use crate::domain::names::{BootId, StoreId};
use crate::domain::record::Record;
use crate::domain::time::{Now, Tick};
use crate::engine::Engine;
use crate::engine::docker::Docker;
use crate::limits;
use crate::manifest;
use crate::os::lock_file::LockFile;
use crate::os::presence::Presence;
use crate::os::{boot, cgroup, clock, descriptors, random, signal};
use crate::store::{self, Opened};

use backend::AgentBackend;
use ending::Ends;
use inbox::Mail;
use published::Published;
use stop::Threads;

mod backend;

mod census;
mod ending;

mod host;

mod inbox;

mod jobs;

mod manifests;

mod monitor;

mod published;

mod puller;

mod reconcile_log;

mod stats;

mod stop;

mod watcher;

mod worker;

mod writer;

/// Why the agent could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Another agent works in the data directory, or it cannot be written.
    #[error("{0}")]
    DataDir(String),
    /// The store could not be opened.
    #[error("{0}")]
    Store(#[from] store::error::StoreError),
    /// The configuration names something that cannot be used.
    #[error("{0}")]
    Config(String),
    /// The socket of the API could not be made.
    #[error("cannot listen on {path}: {cause}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The system has no more threads, or no `/proc` or `/dev`.
    #[error("the system refused something basic: {0}")]
    System(#[from] io::Error),
    /// A bug: the thread that owns the state ended.
    #[error("the monitor thread ended by itself; see the log above, and please report it")]
    MonitorEnded,
}

/// Both clocks, read together.
pub fn now() -> Now {
    Now { tick: Tick(clock::boot_ms()), wall_ms: clock::wall_ms() }
}

/// Runs the agent until SIGTERM or SIGINT.
///
/// # Errors
/// It could not start, or a bug ended it.
pub fn run(config: &Settled) -> Result<(), AgentError> {
    descriptors::raise_limit(limits::OPEN_FILES);
    let signals = signal::stop_signals()?;
    let engine = make_engine(config)?;
    let data_dir = &config.data_dir.value;
    prepare_data_dir(data_dir)?;
    let _lock = LockFile::take(&data_dir.join("lock"), "bargee agent")
        .map_err(|error| AgentError::DataDir(error.to_string()))?;
    let opened = open_store(config)?;
    let socket = &config.api_socket.value;
    let listener = listen(socket)?;
    let outcome = run_rooms(config, engine, opened, listener, &signals);
    let _ = fs::remove_file(socket);
    outcome
}

fn make_engine(config: &Settled) -> Result<Arc<Engine>, AgentError> {
    match config.engine.value {
        EngineKind::Docker => {
            let url = format!("unix://{}", config.engine_socket.value.display());
            let docker = Docker::new(&url).map_err(AgentError::Config)?;
            Ok(Arc::new(Engine::Docker(docker)))
        }
    }
}

fn open_store(config: &Settled) -> Result<Opened, AgentError> {
    // Asked for before the store is opened, so that it cannot fail in the middle.
    let mut seed = [0; 32];
    random::fill(&mut seed)?;
    let mut fill = |bytes: &mut [u8]| {
        for (byte, random) in bytes.iter_mut().zip(seed.iter().cycle()) {
            *byte = *random;
        }
    };
    let settings = store::Settings {
        directory: &config.data_dir.value,
        address: &config.node.value,
        token: format!("{:016x}", random::number()?),
        wall_ms: clock::wall_ms(),
        parse: &manifest::parse_stored,
        random: &mut fill,
    };
    Ok(store::open(settings)?)
}

fn run_rooms(
    config: &Settled,
    engine: Arc<Engine>,
    mut opened: Opened,
    listener: UnixListener,
    signals: &Receiver<i32>,
) -> Result<(), AgentError> {
    for notice in &opened.notices {
        log::warn!("{notice}");
    }
    let published = Arc::new(Published::new(opened.store.revision()));
    let (machine, first) = make_machine(config, &mut opened)?;
    // Nobody is served before it is known what there is, and what is being replayed.
    let first = first.into_iter().filter_map(|effect| published.take(effect)).collect();
    let (inbox, mails) = bounded(limits::INBOX);
    let (ended, monitor_ended) = bounded(0);
    let (drained, drain_ended) = bounded(1);
    let identity = api::backend::Identity {
        node: config.node.value.clone(),
        store_id: opened.store_id.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        token: opened.token.clone(),
    };
    let store = opened.store_id.clone();
    let _presence = announce(&store);
    let rooms =
        Rooms { engine: engine.clone(), published: published.clone(), inbox: inbox.clone(), store };
    let reconcile_every = config.reconcile_every.value;
    let core = Core { machine, first, mails, drained, ended, reconcile_every };
    let threads = start_threads(&rooms, config, opened, core)?;
    let settings = config.entries().into_iter().map(|(key, value, _)| (key, value)).collect();
    let backend = AgentBackend::new(identity, settings, rooms, threads.usage.clone());
    let server = api::serve(listener, Arc::new(backend))?;
    log::info!(
        "bargee {} listens on {}",
        env!("CARGO_PKG_VERSION"),
        config.api_socket.value.display()
    );
    let ends = Ends { signals, monitor: &monitor_ended, drained: &drain_ended };
    let outcome = ends.wait(config, &inbox);
    // The API's part of the stop counts too.
    let by = clock::boot_ms() + limits::STOP_MS;
    published.stopping.store(true, Ordering::Release);
    published.wake_readers();
    server.stop();
    stop::stop(threads, &engine, &inbox, by);
    outcome
}

/// What most threads share.
#[derive(Clone)]
struct Rooms {
    engine: Arc<Engine>,
    published: Arc<Published>,
    inbox: Sender<Mail>,
    store: StoreId,
}

/// Shows other agents on this device that this store is in use: they leave its containers alone.
fn announce(store: &StoreId) -> Option<Presence> {
    let told = |error: io::Error| {
        log::warn!(
            "cannot show that store {store} is in use: {error}; if another agent runs with a copy \
             of this data directory, stop it, because both will change the same containers"
        );
    };
    Presence::announce(&worker::presence_name(store)).map_err(told).ok()
}

/// What only the monitor has.
struct Core {
    machine: Machine,
    first: Vec<Effect>,
    mails: Receiver<Mail>,
    /// Told when a drain is over.
    drained: Sender<()>,
    /// Dropped when the monitor ends, however it ends.
    ended: Sender<()>,
    /// Passes that are told in one line; 0: none.
    reconcile_every: u64,
}

/// Forgets the pids that do not run in their container any more: what was recorded of those runs is
/// looked up again, and the rest is believed without a call. Where not one can be seen, the agent
/// looks at another `/proc` than the engine, and nothing follows from it.
fn forget_gone(records: &mut [Record]) {
    let proc = Path::new("/proc");
    let mut seen = false;
    let mut gone = Vec::new();
    for current in records.iter_mut().filter_map(|record| record.current.as_mut()) {
        let (Some(id), Some(run)) = (&current.container, &mut current.run) else { continue };
        if run.pid != 0 && !cgroup::holds(proc, run.pid, id.as_str()) {
            gone.push(&mut run.pid);
        } else {
            seen |= run.pid != 0;
        }
    }
    if seen {
        gone.into_iter().for_each(|pid| *pid = 0);
    }
}

fn make_machine(
    config: &Settled,
    opened: &mut Opened,
) -> Result<(Machine, Vec<Effect>), AgentError> {
    forget_gone(&mut opened.records);
    let start = Start {
        node: config.node.value.clone(),
        engine: config.engine.value.as_str(),
        store: opened.store_id.clone(),
        whole: opened.whole,
        known_engine: opened.engine.clone(),
        boot: BootId::new(boot::boot_id()?),
        token: opened.token.clone(),
        entries: std::mem::take(&mut opened.entries),
        next_seq: opened.next_seq,
        seed: random::number()?,
        records: std::mem::take(&mut opened.records),
        notices: std::mem::take(&mut opened.notices),
        manifests: Place {
            path: manifests_path(config).display().to_string().into(),
            is_default: config.manifests_dir.origin == Origin::Default,
        },
        quiesce: opened.quiesce.take(),
    };
    Ok(Machine::new(start, now()))
}

/// The manifests directory, without a slash at its end: files are named after it.
fn manifests_path(config: &Settled) -> PathBuf {
    config.manifests_dir.value.components().collect()
}

fn start_threads(
    rooms: &Rooms,
    config: &Settled,
    opened: Opened,
    core: Core,
) -> Result<Threads, AgentError> {
    let mut threads = Threads::default();
    let workers = config.workers.value;
    let (batches, batches_in) = bounded(1);
    threads.writer = Some(writer::start(opened.store, batches_in, rooms)?);
    let (jobs, jobs_in) = bounded(workers);
    for number in 1..=workers {
        threads.workers.push(worker::start(&format!("worker-{number}"), rooms, jobs_in.clone())?);
    }
    let (starts, starts_in) = bounded(limits::STARTS);
    for number in 1..=limits::STARTS {
        threads.workers.push(worker::start(&format!("start-{number}"), rooms, starts_in.clone())?);
    }
    let (pulls, pulls_in) = bounded(limits::PULLERS);
    for number in 1..=limits::PULLERS {
        threads.workers.push(puller::start(number, rooms, pulls_in.clone())?);
    }
    let out = monitor::Outlets { batches, jobs, workers, starts, pulls };
    threads.monitor = Some(monitor::start(core, out, rooms)?);
    let (stop, stopped) = bounded(0);
    threads.watcher = Some(watcher::start(rooms, stopped.clone())?);
    threads.stats = Some(stats::start(rooms, threads.usage.clone(), stopped)?);
    threads.stop = Some(stop);
    let (reader, stop_reader) = manifests::start(rooms, &manifests_path(config))?;
    threads.manifests = Some(reader);
    threads.stop_manifests = Some(stop_reader);
    Ok(threads)
}

fn prepare_data_dir(dir: &Path) -> Result<(), AgentError> {
    let made = fs::create_dir_all(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o700)));
    made.map_err(|cause| {
        let dir = dir.display();
        let text = "it has to be a directory that this user may write to, or another `dataDir`";
        AgentError::DataDir(format!("cannot use the data directory {dir}: {cause}; {text}"))
    })
}

/// Binds the API's socket for owner and group. A socket left by a dead agent is replaced; that no
/// living one holds it is what the lock on the data directory says, and a connect tells the rest.
fn listen(path: &Path) -> Result<UnixListener, AgentError> {
    let failed = |cause| AgentError::Socket { path: path.to_owned(), cause };
    let hinted = |cause: io::Error| {
        failed(io::Error::other(format!("{cause}; is the directory there and writable?")))
    };
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(hinted)?;
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(failed(io::Error::other(
            "another agent answers there already; stop it, or name another `api.socket`",
        )));
    }
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(hinted)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(hinted)?;
    Ok(listener)
}
