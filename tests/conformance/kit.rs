//! What the cases are made of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bargee::domain::declared::{
    Declared, Log, Network, Pull, Rerun, Resources, Restart, RestartPolicy, Spec, Stop, WhenStuck,
};
use bargee::domain::effect::{AppNetwork, NewContainer};
use bargee::domain::event::{ContainerAction, ContainerEvent};
use bargee::domain::names::{ContainerId, InstanceName, Key, Label};
use bargee::domain::observed::{Reading, label};
use bargee::domain::time::Span;

use crate::support::engine::IMAGE;
use crate::tested::Tested;

/// Nothing here takes this long; what does is not coming.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// A container that runs `command` on the host's network. `name` is unique among all cases.
pub fn container(name: &str, command: &[&str]) -> NewContainer {
    let key = Key {
        application: Label::parse("conformance").unwrap(),
        name: Label::parse(name).unwrap(),
    };
    let instance = format!("bargee-{name}-00000001");
    let pairs = [
        (label::UID, name),
        (label::APPLICATION, "conformance"),
        (label::NAME, name),
        (label::INSTANCE, &instance),
        (label::GENERATION, "1"),
        (label::SPEC_HASH, "1-abc"),
        (label::STORE, "store"),
        (label::NODE, "node"),
        (label::SOURCE, "local"),
    ];
    let labels = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let spec = spec(command);
    let declared = Declared { key, labels: BTreeMap::new(), spec, manifest: "{}".into() };
    NewContainer {
        name: InstanceName::new(instance),
        declared: Arc::new(declared),
        labels,
        env: BTreeMap::new(),
        network: None,
        volume_prefix: "bargee-conformance.".into(),
        ports_to_check: Vec::new(),
    }
}

fn spec(command: &[&str]) -> Spec {
    Spec {
        image: IMAGE.into(),
        pull: Pull::Never,
        entrypoint: None,
        command: Some(command.iter().map(|word| (*word).to_owned()).collect()),
        working_dir: None,
        user: None,
        env: BTreeMap::new(),
        ports: Vec::new(),
        mounts: Vec::new(),
        network: Network::Host,
        restart: Restart {
            policy: RestartPolicy::Never,
            delay: Span::seconds(10),
            max_delay: Span::seconds(300),
            stuck: WhenStuck::Retry,
        },
        rerun: Rerun::Never,
        stop: Stop { signal: None, grace: Span::seconds(1) },
        health_check: None,
        resources: Resources::default(),
        schedule: 100,
        log: Log { driver: String::new(), max_size_bytes: 1 << 20, max_files: 2 },
    }
}

/// A container that runs a line of shell.
pub fn shell(name: &str, line: &str) -> NewContainer {
    container(name, &["sh", "-c", line])
}

/// The same with another declaration.
pub fn with(mut new: NewContainer, change: impl FnOnce(&mut Spec)) -> NewContainer {
    change(&mut Arc::make_mut(&mut new.declared).spec);
    new
}

/// The same on a network of bargee's own.
pub fn on_network(new: NewContainer, network: &str, aliases: &[&str]) -> NewContainer {
    let network = AppNetwork {
        name: network.to_owned(),
        labels: BTreeMap::from([(label::STORE.to_owned(), "store".to_owned())]),
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
    };
    let new = NewContainer { network: Some(network), ..new };
    with(new, |spec| spec.network = Network::Bridge)
}

/// Makes and starts.
pub fn run(engine: &Tested, new: &NewContainer) -> ContainerId {
    let id = engine.create(new).unwrap();
    engine.start(&id).unwrap();
    id
}

/// Makes, starts, and waits for the end.
pub fn run_to_end(engine: &Tested, new: &NewContainer) -> Reading {
    let watch = Watch::new(engine);
    let id = run(engine, new);
    watch.until(&id, ContainerAction::Died);
    read(engine, &id)
}

/// A container that must be there.
pub fn read(engine: &Tested, id: &ContainerId) -> Reading {
    engine.inspect(id.as_str()).unwrap().unwrap()
}

/// The whole log as it is now.
pub fn log(engine: &Tested, id: &ContainerId, tail: Option<u64>) -> String {
    let options = bargee::engine::LogOptions { follow: false, tail };
    let mut text = String::new();
    engine.logs(id, options).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// The event stream of an engine, read on a thread so that a lost event fails a test and does not
/// hang it.
pub struct Watch<'a> {
    engine: &'a Tested,
    events: Receiver<ContainerEvent>,
}

impl<'a> Watch<'a> {
    /// Opens the stream.
    pub fn new(engine: &'a Tested) -> Self {
        let mut stream = engine.events().unwrap();
        let (sender, events) = channel();
        let forward = move || {
            while let Ok(event) = stream.next() {
                // The watch may be gone.
                let _ = sender.send(event);
            }
        };
        thread::Builder::new().spawn(forward).unwrap();
        Self { engine, events }
    }

    /// Waits for `action` of `id`; what else happened to it before is told.
    pub fn until(&self, id: &ContainerId, action: ContainerAction) -> Vec<ContainerAction> {
        let mut before = Vec::new();
        loop {
            let event = self.events.recv_timeout(self.engine.patience).unwrap();
            if event.id != *id {
                continue;
            }
            if event.action == action {
                return before;
            }
            before.push(event.action);
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.engine.close_events();
    }
}

/// Runs `wait` on a thread and fails if it does not end in time.
pub fn ends<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> Ending<T> {
    let (sender, receiver) = channel();
    thread::Builder::new().spawn(move || sender.send(wait())).unwrap();
    Ending(receiver)
}

/// Something that is to end.
pub struct Ending<T>(Receiver<T>);

impl<T> Ending<T> {
    /// What it came to.
    pub fn get(self) -> T {
        self.0.recv_timeout(DEADLINE).unwrap()
    }
}
