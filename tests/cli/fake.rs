//! A made-up agent: what it answers is set by the test, what it was asked is kept.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bargee::api::backend::{ApplyOptions, AskError, Backend, Identity, ManifestFile, Usage};
use bargee::api::{self, Server};
use bargee::domain::declared::{Declared, Spec};
use bargee::domain::effect::Applied;
use bargee::domain::event::{Request, Verb};
use bargee::domain::fault::Fault;
use bargee::domain::intent::Entry;
use bargee::domain::names::{ContainerId, Key, Label, Source, Uid};
use bargee::domain::observed::EngineInfo;
use bargee::domain::record::Desired;
use bargee::domain::time::{Now, Tick};
use bargee::domain::view::{
    RuntimeState, State, Status, Task, TaskId, TaskState, Transition, View,
};
use crossbeam_channel::Receiver;
use parking_lot::{Condvar, Mutex};

/// Both clocks of the fake stand still.
pub const NOW: Now = Now { tick: Tick(100_000), wall_ms: 1_796_040_184_000 };

/// The made-up agent.
pub struct Fake {
    identity: Identity,
    state: Mutex<Inner>,
    news: Condvar,
}

/// What it answers, and what it was asked.
#[derive(Default)]
pub struct Inner {
    pub views: Vec<Arc<View>>,
    pub status: Status,
    /// Answers to `apply`, the next one first; none left: the last one counts on.
    pub applies: VecDeque<Result<Vec<Applied>, AskError>>,
    /// Files of every apply, and what it was to do beside.
    pub applied: Vec<(Vec<ManifestFile>, ApplyOptions)>,
    /// Set: the answer to every verb.
    pub refuse_verbs: Option<AskError>,
    /// Verbs that were accepted.
    pub verbs: Vec<(String, Verb)>,
    /// How each task stands, look by look; the last one stays.
    pub tasks: BTreeMap<u64, VecDeque<TaskState>>,
    /// Message of every task.
    pub task_message: String,
    pub transitions: Vec<Arc<Transition>>,
    pub journal: Vec<Arc<Entry>>,
    /// Set: the answer to every journal and adopt request.
    pub refuse_acts: Option<AskError>,
    /// Journal and adopt requests that were carried out.
    pub acts: Vec<Request>,
    /// The log: what is sent through it is read, until the sender is gone.
    pub log: Option<Receiver<Vec<u8>>>,
    /// Arguments of every `logs`.
    pub logs: Vec<(String, bool, Option<u64>)>,
    /// So many times `transitions` ends without any, as after a quiet time.
    pub quiet_times: usize,
    pub stopping: bool,
    /// Panic when the workloads are asked for.
    pub panics: bool,
}

impl Fake {
    pub fn new() -> Arc<Self> {
        let identity = Identity {
            node: "gate-1".into(),
            store_id: "5707e".into(),
            version: "9.9.9",
            token: TOKEN.into(),
        };
        let status = Status {
            engine_up: true,
            engine: EngineInfo {
                name: "docker".into(),
                version: "20.10.24".into(),
                api_version: "1.41".into(),
                ..EngineInfo::default()
            },
            stream_up: true,
            listed: true,
            ..Status::default()
        };
        let state = Mutex::new(Inner { status, ..Inner::default() });
        Arc::new(Self { identity, state, news: Condvar::new() })
    }

    /// Changes what it answers.
    pub fn set<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.state.lock());
        self.news.notify_all();
        changed
    }

    /// Adds workloads.
    pub fn with(self: Arc<Self>, views: impl IntoIterator<Item = View>) -> Arc<Self> {
        self.set(|inner| inner.views.extend(views.into_iter().map(Arc::new)));
        self
    }
}

impl Backend for Fake {
    fn workloads(&self) -> Vec<Arc<View>> {
        let inner = self.state.lock();
        assert!(!inner.panics, "the test wants a panic");
        inner.views.clone()
    }

    fn usage(&self, uid: &Uid) -> Option<Usage> {
        // Only the one that the tests call the first was sampled.
        let sampled = uid.as_str().starts_with("11111111");
        sampled.then_some(Usage { cpu_percent: Some(12.345_678), memory_bytes: Some(3 << 20) })
    }

    fn revision(&self) -> u64 {
        42
    }

    fn status(&self) -> Arc<Status> {
        Arc::new(self.state.lock().status.clone())
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        let mut inner = self.state.lock();
        let message = inner.task_message.clone();
        let (uid, verb) = inner.verbs.get(usize::try_from(id.0).ok()?.checked_sub(1)?)?.clone();
        let key = inner
            .views
            .iter()
            .find(|view| view.uid.as_str() == uid)
            .map_or_else(String::new, |view| view.declared.key.to_string());
        let states = inner.tasks.get_mut(&id.0)?;
        let state = if states.len() > 1 { states.pop_front()? } else { *states.front()? };
        let verb = verb.as_str();
        Some(Arc::new(Task { id, verb, uid: Uid::new(uid), key, state, message }))
    }

    fn apply(
        &self,
        files: &[ManifestFile],
        options: ApplyOptions,
    ) -> Result<(Vec<Applied>, u64), AskError> {
        let mut inner = self.state.lock();
        inner.applied.push((files.to_vec(), options));
        let last = inner.applies.len() < 2;
        let answer = if last { inner.applies.front().cloned() } else { inner.applies.pop_front() };
        answer.unwrap_or_else(|| Ok(Vec::new())).map(|applied| (applied, 43))
    }

    fn verb(&self, uid: &Uid, verb: Verb) -> Result<(TaskId, u64), AskError> {
        let mut inner = self.state.lock();
        if let Some(error) = &inner.refuse_verbs {
            return Err(error.clone());
        }
        inner.verbs.push((uid.as_str().to_owned(), verb));
        let id = inner.verbs.len() as u64;
        inner.tasks.entry(id).or_insert_with(|| [TaskState::Done].into());
        Ok((TaskId(id), 44))
    }

    fn journal(&self) -> Vec<Arc<Entry>> {
        self.state.lock().journal.clone()
    }

    fn act(&self, request: Request) -> Result<String, AskError> {
        let mut inner = self.state.lock();
        if let Some(error) = &inner.refuse_acts {
            return Err(error.clone());
        }
        inner.acts.push(request);
        Ok(format!("act {} was carried out", inner.acts.len()))
    }

    fn logs(
        &self,
        container: &ContainerId,
        follow: bool,
        tail: Option<u64>,
    ) -> Result<Box<dyn Read + Send>, Fault> {
        let mut inner = self.state.lock();
        inner.logs.push((container.to_string(), follow, tail));
        let pieces = inner.log.clone().unwrap_or_else(|| {
            let (_, closed) = crossbeam_channel::bounded(0);
            closed
        });
        Ok(Box::new(Pieces(pieces)))
    }

    fn transitions(&self, since: u64, wait: Duration) -> Vec<(u64, Arc<Transition>)> {
        let mut inner = self.state.lock();
        let news = |inner: &Inner| {
            let numbered = (1..).zip(inner.transitions.iter().cloned());
            numbered.filter(|(seq, _)| *seq > since).collect::<Vec<_>>()
        };
        if let Some(left) = inner.quiet_times.checked_sub(1) {
            inner.quiet_times = left;
            return Vec::new();
        }
        let quiet = |inner: &mut Inner| news(inner).is_empty() && !inner.stopping;
        self.news.wait_while_for(&mut inner, quiet, wait);
        if inner.stopping { Vec::new() } else { news(&inner) }
    }

    fn config(&self) -> Vec<(&'static str, String)> {
        vec![("node", "gate-1".into()), ("engine", "docker".into())]
    }

    fn now(&self) -> Now {
        NOW
    }

    fn stopping(&self) -> bool {
        self.state.lock().stopping
    }
}

/// A log that ends when its sender is dropped, and breaks off at an empty piece.
struct Pieces(Receiver<Vec<u8>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Ok(piece) = self.0.recv() else { return Ok(0) };
        if piece.is_empty() {
            return Err(io::Error::other("the engine went away"));
        }
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// The fake, served.
pub struct Served {
    pub fake: Arc<Fake>,
    pub socket: PathBuf,
    server: Option<Server>,
    /// Removed with everything in it at the end.
    _directory: tempfile::TempDir,
}

/// Serves `fake` on a socket of its own.
pub fn serve(fake: Arc<Fake>) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("bargee.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = api::serve(listener, Arc::clone(&fake) as Arc<dyn Backend>).unwrap();
    Served { fake, socket, server: Some(server), _directory: directory }
}

impl Served {
    /// Stops as the agent does: streams first.
    pub fn stop(&mut self) {
        self.fake.set(|inner| inner.stopping = true);
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A running workload.
pub fn view(application: &str, name: &str, uid: &str) -> View {
    let label = |text| Label::parse(text).unwrap();
    let key = Key { application: label(application), name: label(name) };
    let manifest = format!(r#"{{"kind":"Workload","metadata":{{"name":"{name}"}}}}"#);
    View {
        uid: Uid::new(uid),
        declared: Arc::new(Declared {
            key,
            labels: BTreeMap::new(),
            spec: Spec::new("nginx:1.27"),
            manifest: manifest.into(),
        }),
        source: Source::Local,
        desired: Desired::Running,
        generation: 1,
        observed_generation: 1,
        state: State::RunningOk,
        info: String::new(),
        next_attempt: None,
        awaits_resume: false,
        runtime_state: RuntimeState::Running,
        health: None,
        pull: None,
        container: Some(ContainerId::new(format!("c-{name}"))),
        instance: Some(format!("bargee-{name}-00000001")),
        pid: 77,
        started_at_ms: NOW.wall_ms - 61_000,
        run_seen: None,
        ip: Some("10.0.0.2".into()),
        ports: vec!["0.0.0.0:8080->80/tcp".into()],
        image_id: "sha256:abc".into(),
        created_at_ms: NOW.wall_ms - 90_000,
        exit_code: None,
        error_message: String::new(),
        last_error: String::new(),
        last_error_at_ms: 0,
        restart_count: 0,
        failure_count: 0,
        failed_update: None,
        update_retries: false,
    }
}

/// A stopped workload, never run.
pub fn stopped(application: &str, name: &str, uid: &str) -> View {
    View {
        desired: Desired::Stopped,
        state: State::StoppedOk,
        runtime_state: RuntimeState::Stopped,
        container: None,
        instance: None,
        pid: 0,
        started_at_ms: 0,
        run_seen: None,
        ip: None,
        ports: Vec::new(),
        image_id: String::new(),
        observed_generation: 0,
        ..view(application, name, uid)
    }
}

/// A change of state of shop/web.
pub fn transition(from: Option<State>, to: State, info: &str) -> Arc<Transition> {
    Arc::new(Transition {
        at_ms: NOW.wall_ms,
        at: NOW.tick,
        uid: Uid::new(WEB),
        key: "shop/web".into(),
        generation: 1,
        from,
        to,
        health: None,
        info: info.into(),
        container: None,
    })
}

/// The token of the fake's process.
pub const TOKEN: &str = "70c3";
/// Uid of the workload that most tests use.
pub const WEB: &str = "11111111-0000-4000-8000-000000000001";
/// Uid of another.
pub const DB: &str = "22222222-0000-4000-8000-000000000002";
/// Uid of a third.
pub const JOB: &str = "2222aaaa-0000-4000-8000-000000000003";
