//! A small Docker engine in memory, on a Unix socket, that answers as Docker 20.10 does until the
//! test says otherwise. It outlives any agent that uses it, so that a test can end one in the
//! middle of anything and look at what was left.
//!
//! ```ignore
//! let engine = ScriptedEngine::start(&directory.join("engine.sock"));
//! engine.bend(Route::List, Bend::Status(500));
//! engine.straighten();
//! engine.exit("bargee-web", 1);
//! assert_eq!(engine.count(Route::Create), 1);
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bargee::os::clock;
use parking_lot::{Condvar, Mutex, MutexGuard};

mod bend;
mod flaw;
mod http;
mod logs;
mod ports;
mod program;
mod pull;
mod refuse;
mod run;
mod serve;
mod shown;
mod trap;
mod world;

pub use bend::{Bend, Route};
pub use flaw::Flaw;
pub use trap::Side;
pub use world::Container;

use bend::Rule;
use trap::{Passage, Trap};
use world::World;

/// The image that is on the device from the beginning.
pub const IMAGE: &str = "scripted/image:1";
/// An image that a pull brings.
pub const PULLED_IMAGE: &str = "scripted/pulled:1";

/// What is left of the socket of an engine that is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Nothing, as after an ordered stop.
    Nothing,
    /// The file, as after a kill.
    File,
}

/// The engine. Dropping it ends its connections and removes its socket.
#[derive(Debug)]
pub struct ScriptedEngine {
    socket: PathBuf,
    shared: Arc<Shared>,
    door: Mutex<Option<JoinHandle<()>>>,
}

/// What connections share.
#[derive(Debug, Default)]
struct Shared {
    world: Mutex<World>,
    /// Something happened in the world.
    changed: Condvar,
    script: Mutex<Script>,
    /// The bends or the door changed.
    rescripted: Condvar,
    /// Counts openings and closings of the door.
    opening: AtomicU64,
    open: Mutex<BTreeMap<u64, UnixStream>>,
    last_connection: AtomicU64,
}

/// What the test wants.
#[derive(Debug, Default)]
struct Script {
    rules: Vec<Rule>,
    /// Counts changes of the rules and of the door.
    edition: u64,
    cut_events_after: Option<Duration>,
    counts: BTreeMap<Route, usize>,
    /// Requests that are not answered yet, and the most there ever were.
    under_way: BTreeMap<Route, usize>,
    most: BTreeMap<Route, usize>,
    /// Pulls whose client left while they dallied.
    left: usize,
    heard: Vec<(Route, String)>,
    trap: Trap,
    /// The request at which the trap sprang.
    last_request: Option<(Route, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl ScriptedEngine {
    /// An engine that listens on `socket` and has no containers.
    pub fn start(socket: &Path) -> Self {
        let shared = Arc::new(Shared::default());
        let engine = Self { socket: socket.to_owned(), shared, door: Mutex::new(None) };
        let mut world = lock(&engine.shared.world);
        world.images.insert(IMAGE.to_owned());
        world.registry.insert(PULLED_IMAGE.to_owned());
        drop(world);
        engine.come_back();
        engine
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    // --- the door ------------------------------------------------------------------------------

    /// Ends every connection and listens no more. Containers stay as they are.
    pub fn go_away(&self, leave: Leave) {
        let Some(door) = lock(&self.door).take() else { return };
        self.shared.opening.fetch_add(1, Ordering::AcqRel);
        // Wakes the thread that waits for connections, which then ends.
        let _ = UnixStream::connect(&self.socket);
        door.join().unwrap();
        if leave == Leave::Nothing {
            fs::remove_file(&self.socket).unwrap();
        }
        self.shared.rescript(|_| {});
        self.end_connections();
    }

    /// Listens again.
    pub fn come_back(&self) {
        let mut door = lock(&self.door);
        assert!(door.is_none(), "it listens already");
        let _ = fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket).unwrap();
        let shared = Arc::clone(&self.shared);
        let opening = shared.opening.fetch_add(1, Ordering::AcqRel) + 1;
        let accept = move || serve::accept(&listener, &shared, opening);
        *door = Some(thread::Builder::new().spawn(accept).unwrap());
    }

    /// Ends every connection; event streams are among them.
    pub fn end_connections(&self) {
        for stream in lock(&self.shared.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    // --- bends ---------------------------------------------------------------------------------

    /// Bends every answer of one kind.
    pub fn bend(&self, route: Route, bend: Bend) {
        self.add_rule(Rule { route: Some(route), object: String::new(), bend, left: None });
    }

    /// Bends every answer.
    pub fn bend_all(&self, bend: Bend) {
        self.add_rule(Rule { route: None, object: String::new(), bend, left: None });
    }

    /// Bends the answers of one kind about containers whose name contains `name`.
    pub fn bend_for(&self, route: Route, name: &str, bend: Bend) {
        self.add_rule(Rule { route: Some(route), object: name.to_owned(), bend, left: None });
    }

    /// Bends the next answers of one kind.
    pub fn bend_next(&self, route: Route, answers: usize, bend: Bend) {
        let rule = Rule { route: Some(route), object: String::new(), bend, left: Some(answers) };
        self.add_rule(rule);
    }

    /// Bends the answers of these kinds, and no others any more.
    pub fn bend_only(&self, bends: &[(Route, Bend)]) {
        let rules = bends.iter().map(|(route, bend)| Rule {
            route: Some(*route),
            object: String::new(),
            bend: bend.clone(),
            left: None,
        });
        self.shared.rescript(|script| script.rules = rules.collect());
    }

    fn add_rule(&self, rule: Rule) {
        self.shared.rescript(|script| script.rules.push(rule));
    }

    /// Ends all bends; event streams last again, and events show.
    pub fn straighten(&self) {
        lock(&self.shared.world).lost_actions.clear();
        self.shared.rescript(|script| {
            script.rules.clear();
            script.cut_events_after = None;
        });
    }

    /// Ends each event stream this long after it was opened.
    pub fn cut_events_after(&self, time: Duration) {
        self.shared.rescript(|script| script.cut_events_after = Some(time));
        self.end_connections();
    }

    /// Events of this action show on no stream any more.
    pub fn lose_events(&self, action: &str) {
        lock(&self.shared.world).lost_actions.insert(action.to_owned());
    }

    /// This is wrong with the engine from now on.
    pub fn break_by(&self, flaw: Flaw) {
        lock(&self.shared.world).flaw = Some(flaw);
    }

    // --- the trap ------------------------------------------------------------------------------

    /// The engine will stand still at the request after `others` more: nothing goes in or out of
    /// it until [`ScriptedEngine::release`], by when the agent should be dead.
    pub fn stand_still_at(&self, others: usize, side: Side) {
        self.shared.rescript(|script| script.trap = Trap::Set(others, side));
    }

    /// The request at which it stands still.
    pub fn stands_still(&self) -> Option<(Route, String)> {
        lock(&self.shared.script).last_request.clone()
    }

    /// Ends the connections that are held, whose requests are lost, and goes on.
    pub fn release(&self) {
        self.end_connections();
        self.shared.rescript(|script| {
            script.trap = Trap::None;
            script.last_request = None;
        });
    }

    // --- what happens by itself ----------------------------------------------------------------

    /// The process of the one container whose name begins with `name` ends.
    pub fn exit(&self, name: &str, code: i64) {
        let id = self.container(name).id;
        self.change(|world| world.exit(&id, code));
    }

    /// Somebody removes the one container whose name begins with `name`, by force.
    pub fn take_away(&self, name: &str) {
        let id = self.container(name).id;
        self.change(|world| world.remove(&id, true).unwrap());
    }

    /// The engine calls the state of the one container whose name begins with `name` so from now
    /// on; its process is left as it is.
    pub fn set_status(&self, name: &str, status: &str) {
        let id = self.container(name).id;
        self.change(|world| {
            world.containers.get_mut(&id).unwrap().status = status.to_owned();
        });
    }

    /// Somebody makes a container without labels, and starts it.
    pub fn add_foreign(&self, name: &str) -> String {
        self.change(|world| {
            let id = world.add(name, IMAGE, BTreeMap::new(), Vec::new(), "default");
            world.start(&id).unwrap();
            id
        })
    }

    /// Somebody makes a container with these labels.
    pub fn add_labelled(&self, name: &str, labels: BTreeMap<String, String>) -> String {
        self.change(|world| world.add(name, IMAGE, labels, Vec::new(), "default"))
    }

    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut lock(&self.shared.world));
        self.shared.changed.notify_all();
        changed
    }

    // --- what is there, what was asked ---------------------------------------------------------

    /// All containers, by id.
    pub fn containers(&self) -> Vec<Container> {
        lock(&self.shared.world).containers.values().cloned().collect()
    }

    /// The one container whose name begins with `name`.
    pub fn container(&self, name: &str) -> Container {
        let mut named = self.containers();
        named.retain(|made| made.name.starts_with(name));
        assert_eq!(named.len(), 1, "one container whose name begins with {name}: {named:?}");
        named.remove(0)
    }

    /// Names of all networks.
    pub fn networks(&self) -> Vec<String> {
        lock(&self.shared.world).networks.keys().cloned().collect()
    }

    /// Requests of one kind since the last [`ScriptedEngine::forget_requests`], bent ones too.
    pub fn count(&self, route: Route) -> usize {
        lock(&self.shared.script).counts.get(&route).copied().unwrap_or(0)
    }

    /// Requests of one kind that are not answered yet.
    pub fn under_way(&self, route: Route) -> usize {
        lock(&self.shared.script).under_way.get(&route).copied().unwrap_or(0)
    }

    /// The most requests of one kind that were not answered at the same time.
    pub fn most_under_way(&self, route: Route) -> usize {
        lock(&self.shared.script).most.get(&route).copied().unwrap_or(0)
    }

    /// Pulls that were ended by their client while they dallied.
    pub fn left_pulls(&self) -> usize {
        lock(&self.shared.script).left
    }

    /// A pull brings this image, too.
    pub fn publish(&self, image: &str) {
        lock(&self.shared.world).registry.insert(image.to_owned());
    }

    /// This image is on the device, and its containers run the few commands that there are.
    pub fn add_tools(&self, image: &str) {
        self.change(|world| {
            world.images.insert(image.to_owned());
            world.tools.insert(image.to_owned())
        });
    }

    /// Requests that would change something.
    pub fn count_changes(&self) -> usize {
        let changes = [Route::Create, Route::Start, Route::Kill, Route::Remove];
        changes.into_iter().map(|route| self.count(route)).sum()
    }

    /// All requests in their order, each with the name or id in it.
    pub fn heard(&self) -> Vec<(Route, String)> {
        lock(&self.shared.script).heard.clone()
    }

    /// What was asked, in a few words for a test that failed.
    pub fn told(&self) -> String {
        let script = lock(&self.shared.script);
        let first: Vec<_> = script.heard.iter().take(20).collect();
        format!("{:?}, at first {first:?}", script.counts)
    }

    /// Counts from zero.
    pub fn forget_requests(&self) {
        let mut script = lock(&self.shared.script);
        script.counts.clear();
        script.heard.clear();
    }
}

impl Drop for ScriptedEngine {
    fn drop(&mut self) {
        self.go_away(Leave::Nothing);
    }
}

impl Shared {
    fn now(&self) -> Duration {
        Duration::from_millis(clock::boot_ms())
    }

    fn rescript(&self, change: impl FnOnce(&mut Script)) {
        let mut script = lock(&self.script);
        change(&mut script);
        script.edition += 1;
        drop(script);
        self.rescripted.notify_all();
    }

    /// Notes a connection; its number is for [`Shared::leave`].
    fn enter(&self, stream: &UnixStream) -> u64 {
        let number = self.last_connection.fetch_add(1, Ordering::AcqRel);
        lock(&self.open).insert(number, stream.try_clone().unwrap());
        number
    }

    /// Ends a connection, which a clone in the list would keep open.
    fn leave(&self, number: u64) {
        if let Some(stream) = lock(&self.open).remove(&number) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Counts a request, and says how its answer is bent.
    fn bend_for(&self, route: Route, object: &str) -> Option<Bend> {
        let name = lock(&self.world).find(object).map(|made| made.name.clone());
        let name = name.unwrap_or_else(|| object.to_owned());
        let mut script = lock(&self.script);
        *script.counts.entry(route).or_insert(0) += 1;
        script.heard.push((route, object.to_owned()));
        let rule = script.rules.iter_mut().find(|rule| rule.is_for(route, &name))?;
        rule.left = rule.left.map(|left| left - 1);
        let bend = rule.bend.clone();
        drop(script);
        if bend == Bend::NameTaken {
            lock(&self.world).add(&name, IMAGE, BTreeMap::new(), Vec::new(), "default");
        }
        Some(bend)
    }

    /// A request came: what becomes of it.
    fn pass(&self, route: Route, object: &str) -> Passage {
        let mut script = lock(&self.script);
        let passage = script.trap.pass();
        if passage != Passage::Free && script.last_request.is_none() {
            script.last_request = Some((route, object.to_owned()));
        }
        passage
    }

    /// The engine stands still.
    fn is_held(&self) -> bool {
        lock(&self.script).trap == Trap::Sprung
    }

    /// Waits until the engine goes on.
    fn wait_for_release(&self) {
        let mut script = lock(&self.script);
        self.rescripted.wait_while(&mut script, |script| script.trap == Trap::Sprung);
    }

    /// Waits until the bends or the door change.
    fn wait_for_other_bends(&self) {
        let mut script = lock(&self.script);
        let edition = script.edition;
        self.rescripted.wait_while(&mut script, |script| script.edition == edition);
    }

    /// Waits for this long, or until the bends or the door change.
    fn wait_for_door(&self, time: Duration) {
        let mut script = lock(&self.script);
        let edition = script.edition;
        let until = |script: &mut Script| script.edition == edition;
        self.rescripted.wait_while_for(&mut script, until, time);
    }
}
