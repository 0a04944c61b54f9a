//! The engines that the cases run on.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bargee::engine::Engine;
use bargee::engine::docker::Docker;
use tempfile::TempDir;

use crate::support::DEADLINE;
use crate::support::docker_api::DockerApi;
use crate::support::engine::{IMAGE, shared};
use crate::support::registry::{LAYER_BYTES, Registry};
use crate::support::scripted_engine::ScriptedEngine;

/// An engine, and a client of its own for each case, because a client has one event stream.
#[derive(Debug)]
pub struct Tested {
    client: Engine,
    socket: PathBuf,
    /// How long an event may take.
    pub patience: Duration,
    memory: Option<ScriptedEngine>,
    _folder: Option<TempDir>,
}

/// An image that a pull brings.
#[derive(Debug)]
pub struct Pullable {
    /// Its reference.
    pub image: String,
    /// A tag of it that there is not.
    pub absent: String,
    registry: Option<Registry>,
}

impl Pullable {
    /// Another one, whose layers its registry has lost; `None`: it cannot lose any.
    pub fn without_layers(&self) -> Option<String> {
        let registry = self.registry.as_ref()?;
        registry.publish("cut");
        registry.lose_layers();
        Some(registry.image("cut"))
    }
}

/// The Docker that all cases share.
pub fn docker() -> Tested {
    Tested::new(shared().socket(), DEADLINE)
}

/// An engine in memory for one case.
pub fn memory() -> Tested {
    let folder = tempfile::Builder::new().prefix("bargee-memory-").tempdir().unwrap();
    let engine = ScriptedEngine::start(&folder.path().join("engine.sock"));
    engine.add_tools(IMAGE);
    let tested = Tested::new(folder.path().join("engine.sock"), DEADLINE);
    Tested { memory: Some(engine), _folder: Some(folder), ..tested }
}

/// An engine in memory that `bend` bends. What it loses is not waited for.
pub fn bent(bend: impl Fn(&ScriptedEngine)) -> Tested {
    let tested = memory();
    bend(tested.memory());
    Tested { patience: Duration::from_secs(2), ..tested }
}

impl Tested {
    fn new(socket: PathBuf, patience: Duration) -> Self {
        let docker = Docker::new(&format!("unix://{}", socket.display())).unwrap();
        let client = Engine::Docker(docker);
        Self { client, socket, patience, memory: None, _folder: None }
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The engine, read past the client.
    pub fn api(&self) -> DockerApi {
        DockerApi::new(&self.socket)
    }

    /// The engine in memory that this is.
    pub fn memory(&self) -> &ScriptedEngine {
        self.memory.as_ref().unwrap()
    }

    /// An image of at least [`LAYER_BYTES`] that is not on the device yet.
    pub fn pullable(&self) -> Pullable {
        const { assert!(LAYER_BYTES <= 4 << 20, "an image in memory is smaller than this") };
        let Some(engine) = &self.memory else {
            let registry = Registry::start();
            let (image, absent) = (registry.image("1"), registry.image("none"));
            return Pullable { image, absent, registry: Some(registry) };
        };
        let (image, absent) = ("registry.test/shop/web:1", "registry.test/shop/web:none");
        engine.publish(image);
        Pullable { image: image.into(), absent: absent.into(), registry: None }
    }
}

impl Deref for Tested {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.client
    }
}
