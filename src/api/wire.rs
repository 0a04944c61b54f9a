//! The JSON of the API. The CLI reads it with the same types.
//!
//! Fields that are empty, zero by rule, or unknown are absent, never guessed.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A list of anything.
#[derive(Serialize, Deserialize, Debug)]
pub struct List<T> {
    /// Its items.
    pub items: Vec<T>,
}

/// One workload. Times are unix milliseconds.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "most are fields of domain::view::View, told there")]
pub struct Workload {
    pub uid: String,
    pub application: String,
    pub name: String,
    pub source: String,
    pub node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
    pub image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    pub desired_state: String,
    pub generation: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: u64,
    pub state: String,
    pub substate: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state_info: String,
    /// Something is to be done for it, and reconciling is held.
    #[serde(skip_serializing_if = "is_zero")]
    pub held: bool,
    pub runtime_state: String,
    /// `starting`, `healthy` or `unhealthy`; absent: it has no check, or does not run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub health: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_progress: Option<PullProgress>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub pid: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub created_at: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub started_at: u64,
    /// Percent of one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage: Option<f64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_usage: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Always there, `""` when there is none.
    pub error_message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub last_error_at: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub restart_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub failure_count: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub next_attempt_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_update: Option<FailedUpdate>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// As declared, defaults filled in; text that is JSON already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Box<RawValue>>,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Workload {
    /// `application/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.application, self.name)
    }

    /// `State(Substate)`.
    pub fn state_words(&self) -> String {
        format!("{}({})", self.state, self.substate)
    }

    /// `State(Substate)`, and the health of what has a check.
    pub fn state_and_health(&self) -> String {
        let state = self.state_words();
        if self.health.is_empty() { state } else { format!("{state} {}", self.health) }
    }
}

/// How far a pull has come.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct PullProgress {
    /// Bytes that arrived.
    pub done_bytes: u64,
    /// Bytes in all; 0: not known yet.
    pub total_bytes: u64,
}

/// An update that failed.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct FailedUpdate {
    /// The generation.
    pub generation: u64,
    /// Why.
    pub cause: String,
    /// It is tried again by itself; if not, only by a rebuild or with a newer generation.
    #[serde(default)]
    pub retries: bool,
}

/// A verb was accepted.
#[derive(Serialize, Deserialize, Debug)]
pub struct Accepted {
    /// The task that carries it out.
    pub task: u64,
    /// Every later read is at least this revision.
    pub revision: u64,
}

/// A verb that is carried out in the background.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the fields are those of domain::Task")]
pub struct Task {
    pub id: u64,
    pub verb: String,
    pub uid: String,
    pub key: String,
    /// `pending`, `running`, `done`, `failed` or `superseded`.
    pub state: String,
    /// It waits because reconciling is held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The body of an apply.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ApplyBody {
    /// The manifest files.
    pub files: Vec<ApplyFile>,
}

/// One manifest file.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ApplyFile {
    /// As errors are to name it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What an apply did, or would do.
#[derive(Serialize, Deserialize, Debug)]
pub struct Applied {
    /// Every later read is at least this revision.
    pub revision: u64,
    /// One for each workload, in the order of the manifests.
    pub items: Vec<AppliedItem>,
}

/// What an apply did, or would do, to one workload.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct AppliedItem {
    /// `application/name`.
    pub key: String,
    /// Identity.
    pub uid: String,
    /// Generation after it.
    pub generation: u64,
    /// `created`, `replaced`, `updated`, `unchanged`, `started` or `removed`.
    pub change: String,
}

/// What is wrong with a manifest, and where.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file as the caller named it.
    pub file: String,
    /// From 1; absent: the file as a whole.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: usize,
    /// As `spec.ports[1]`; absent: the document as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// What was found and what is allowed.
    pub message: String,
}

/// A change of state or of health: one line of `/v1/events`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// Counts up while the agent runs; `?since=` goes on after it.
    pub seq: u64,
    /// Unix milliseconds.
    pub at: u64,
    /// The workload.
    pub uid: String,
    /// `application/name`.
    pub key: String,
    /// Generation declared at that time.
    pub generation: u64,
    /// `State(Substate)` before; absent: new.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// `State(Substate)` after; `Removed` at the end.
    pub to: String,
    /// Health after; absent: it has no check, or does not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health: String,
    /// The line beside it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub info: String,
    /// Container it was about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_id: String,
}

/// The agent itself.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Name of the device.
    pub node: String,
    /// Identity of the store.
    pub store_id: String,
    /// bargee's version.
    pub version: String,
    /// `/health/ready` says yes.
    pub ready: bool,
    /// Declarations published so far.
    pub revision: u64,
    /// The engine.
    pub engine: Engine,
    /// Its event stream: `up` or `down`.
    pub stream: String,
    /// Workloads by state, under the state's first word.
    pub counts: BTreeMap<String, usize>,
    /// Tasks under way.
    pub queue: Queue,
    /// The journal.
    pub journal: JournalCounts,
    /// Reconciling is held; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiesced: Option<Quiesced>,
    /// `3 of 12`: how far the replay of the journal is; absent: changes are accepted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recovering: String,
    /// The manifests directory; absent: it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<Manifests>,
    /// What somebody should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How long reconciling is held, in unix milliseconds.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quiesced {
    /// When that began.
    pub since: u64,
    /// When it ends by itself.
    pub until: u64,
}

/// The engine, as it last answered.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// `docker`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The API version agreed upon.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// It answers.
    pub up: bool,
    /// Why it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// The manifests directory as it was last looked at.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Manifests {
    /// Its path.
    pub directory: String,
    /// Manifests in it.
    pub files: usize,
    /// Those of them that are being written or have just changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settling: usize,
    /// The first things in it that are no manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// How many of those there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ignored_count: usize,
}

/// Tasks under way.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Not settled yet.
    pub tasks: usize,
    /// One more than this is answered 429.
    pub limit: usize,
}

/// How much is in the journal.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalCounts {
    /// Entries in all.
    pub entries: usize,
    /// Those that failed or cannot be read.
    pub failing: usize,
}

/// How far the replay of the journal is: the details of a refusal that soon passes.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovering {
    /// Entries done.
    pub done: usize,
    /// Entries in all.
    pub total: usize,
}

impl fmt::Display for Recovering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.done, self.total)
    }
}

/// An entry of the journal: what was about to be done.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry {
    /// `/wal/<node>/<seq in 20 digits>`.
    pub key: String,
    /// Its number, never used twice.
    pub seq: u64,
    /// `create-workload`, `replace-workload`, or whatever is written there.
    #[serde(rename = "type")]
    pub kind: String,
    /// `create` or `remove`, where the type has a direction.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub direction: String,
    /// The workload; absent: it cannot be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// `application/name`; absent: there is no such workload any more.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The container that may be removed for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// The container that takes its place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new: String,
    /// Unix milliseconds at which it was written.
    pub at: u64,
    /// Replays so far.
    pub tries: u32,
    /// Why the last one failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// This process wrote it or took it over: the step is under way, or is tried again.
    pub own: bool,
    /// The text of an entry that cannot be read; not in lists.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// A request was carried out.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// What was done, as a sentence.
    pub message: String,
}

/// Something that somebody should know.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// A word for scripts.
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence for people.
    pub message: String,
}

/// A version.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// bargee's.
    pub version: String,
}

/// The answer of `/health/live` and `/health/ready`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// The answer is yes.
    pub ok: bool,
    /// Why it is no.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
}

/// The body of every refusal.
#[derive(Serialize, Deserialize, Debug)]
pub struct ErrorBody {
    /// The refusal.
    pub error: ErrorDetail,
}

/// A refusal.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct ErrorDetail {
    /// A word for scripts: `NOT_FOUND`.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// All problems of a manifest; all workloads that an ambiguous name could mean.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
}

impl ErrorDetail {
    /// The details, if they are of this type. By way of text, since the code that reads a type from
    /// text is in the program already, and a second copy that reads it from a value is not.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.details.to_string()).ok()
    }
}

/// A workload that an ambiguous name could mean.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Match {
    /// Identity.
    pub uid: String,
    /// `application/name`.
    pub key: String,
}

/// Settings as an object that keeps its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings(pub Vec<(String, String)>);

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Settings(entries))
    }
}
