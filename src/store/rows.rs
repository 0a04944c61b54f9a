//! Records as rows and back: JSON by wire types of its own, so that no domain type promises a
//! format to a file.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::diary::Diary;
use crate::domain::health::RunHealth;
use crate::domain::health_check::Health;
use crate::domain::names::{BootId, ContainerId, InstanceName, Source, SpecHash, Uid};
use crate::domain::record::{
    BootTick, Desired, Exit, FailedUpdate, Instance, Origin, OwedStart, OwnStop, Previous, Record,
    Retry, Run,
};
use crate::domain::time::Tick;

use super::Parse;
use super::checksum::Checksum;
use super::database::RawRow;

/// What a row holds beside the uid.
#[derive(Debug)]
pub struct Encoded {
    /// The generation.
    pub generation: i64,
    /// The rest, as JSON.
    pub body: String,
    /// Checksum over uid, generation and body.
    pub sum: String,
}

/// The row of a record.
pub fn encode(record: &Record) -> Result<Encoded, String> {
    let generation = i64::try_from(record.generation)
        .map_err(|_| format!("its generation {} is too large", record.generation))?;
    let body = Body::of(record)?;
    let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
    let sum = sum(record.uid.as_str(), record.generation, &body);
    Ok(Encoded { generation, body, sum })
}

/// The record of a row.
///
/// # Errors
/// Why the row is not believed, as the rest of a sentence.
pub fn decode(row: &RawRow, parse: Parse<'_>) -> Result<Record, String> {
    let generation = row.generation.ok_or("its generation is no number")?;
    if row.sum != sum(&row.uid, generation, &row.body) {
        return Err("its checksum fails".to_owned());
    }
    let body: Body<'_> = serde_json::from_str(&row.body)
        .map_err(|error| format!("its text cannot be read: {error}"))?;
    body.record(Uid::new(row.uid.as_str()), generation, parse)
}

fn sum(uid: &str, generation: u64, body: &str) -> String {
    Checksum::of(&[uid.as_bytes(), &generation.to_be_bytes(), body.as_bytes()])
}

/// A manifest as it is embedded in other JSON, neither parsed nor escaped.
pub fn embedded(manifest: &str) -> Result<&RawValue, String> {
    serde_json::from_str(manifest).map_err(|error| format!("its manifest is no JSON: {error}"))
}

/// What was declared, from a manifest that was accepted before.
pub fn declared(
    manifest: &RawValue,
    parse: Parse<'_>,
) -> Result<Arc<crate::domain::declared::Declared>, String> {
    let parsed = parse(manifest.get());
    parsed.map(Arc::new).map_err(|error| format!("its manifest is not accepted any more: {error}"))
}

type Text<'a> = Cow<'a, str>;

/// Whether a field has its default and is left out, which keeps most rows below 1.5 KiB.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    manifest: &'a RawValue,
    #[serde(borrow)]
    source: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    origin: Option<OriginRow<'a>>,
    #[serde(borrow)]
    desired: Text<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    observed_generation: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    created_at_ms: u64,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    current: Option<InstanceRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    next: Option<InstanceRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    previous: Option<PreviousRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    discards: Vec<InstanceRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    failed_update: Option<FailedUpdateRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    own_stop: Option<OwnStopRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    last_exit: Option<ExitRow<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    owes_restart: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    restarts_asked: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    restarts_done: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    rebuilds_asked: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    rebuilds_done: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    restart_count: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    failure_count: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    streak: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    refusals: u32,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    diary: Option<DiaryRow<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    stuck: bool,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    wait: Option<BootTickRow<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    error_message: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    last_error: Text<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    last_error_at_ms: u64,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    boot: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    elsewhere: Option<BootTickRow<'a>>,
}

/// A file of the manifests directory, in rows and in `workloads.json`.
#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct OriginRow<'a> {
    #[serde(borrow)]
    file: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    mount: Text<'a>,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct InstanceRow<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    container: Option<Text<'a>>,
    generation: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    rebuild: u64,
    #[serde(borrow)]
    spec_hash: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    run: Option<RunRow<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    proved: bool,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct PreviousRow<'a> {
    #[serde(borrow)]
    instance: InstanceRow<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    last_exit: Option<ExitRow<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    observed_generation: u64,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct RunRow<'a> {
    started_at_ns: u64,
    #[serde(borrow)]
    since: BootTickRow<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    since_ms: u64,
    pid: u32,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    ip: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    ports: Vec<Text<'a>>,
    #[serde(borrow)]
    image_id: Text<'a>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    stop_signal: Option<Text<'a>>,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    health: Option<HealthRow<'a>>,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct HealthRow<'a> {
    #[serde(borrow)]
    health: Text<'a>,
    since_ms: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    proved: bool,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct BootTickRow<'a> {
    #[serde(borrow)]
    boot: Text<'a>,
    tick_ms: u64,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct DiaryRow<'a> {
    #[serde(borrow)]
    boot: Text<'a>,
    ticks_ms: Vec<u64>,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct OwnStopRow<'a> {
    #[serde(borrow)]
    container: Text<'a>,
    started_at_ns: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    unhealthy: bool,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct ExitRow<'a> {
    #[serde(borrow)]
    container: Text<'a>,
    started_at_ns: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    code: Option<i32>,
    #[serde(default, skip_serializing_if = "is_default")]
    oom_killed: bool,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    error: Text<'a>,
    #[serde(default, skip_serializing_if = "is_default")]
    interrupted: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    unhealthy: bool,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct FailedUpdateRow<'a> {
    generation: u64,
    #[serde(borrow)]
    cause: Text<'a>,
    at_ms: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    tries: u32,
    #[serde(borrow, default, skip_serializing_if = "is_default")]
    retry_at: Option<BootTickRow<'a>>,
    #[serde(default, skip_serializing_if = "is_default")]
    retries_now: bool,
}

impl<'a> Body<'a> {
    fn of(record: &'a Record) -> Result<Self, String> {
        Ok(Self {
            manifest: embedded(&record.declared.manifest)?,
            source: record.source.as_str().into(),
            origin: record.origin.as_ref().map(OriginRow::of),
            desired: record.desired.as_str().into(),
            observed_generation: record.observed_generation,
            created_at_ms: record.created_at_ms,
            current: record.current.as_ref().map(InstanceRow::of),
            next: record.next.as_ref().map(InstanceRow::of),
            previous: record.previous.as_ref().map(PreviousRow::of),
            discards: record.discards.iter().map(InstanceRow::of).collect(),
            failed_update: record.failed_update.as_ref().map(FailedUpdateRow::of),
            own_stop: record.own_stop.as_ref().map(OwnStopRow::of),
            last_exit: record.last_exit.as_ref().map(ExitRow::of),
            owes_restart: record.owed_start == OwedStart::Restart,
            restarts_asked: record.restarts_asked,
            restarts_done: record.restarts_done,
            rebuilds_asked: record.rebuilds_asked,
            rebuilds_done: record.rebuilds_done,
            restart_count: record.restart_count,
            failure_count: record.failure_count,
            streak: record.streak,
            refusals: record.refusals,
            diary: DiaryRow::of(&record.diary),
            stuck: record.stuck,
            wait: record.wait.as_ref().map(BootTickRow::of),
            error_message: record.error_message.as_str().into(),
            last_error: record.last_error.as_str().into(),
            last_error_at_ms: record.last_error_at_ms,
            boot: record.boot.as_ref().map(|boot| boot.as_str().into()),
            elsewhere: record.elsewhere.as_ref().map(BootTickRow::of),
        })
    }

    fn record(self, uid: Uid, generation: u64, parse: Parse<'_>) -> Result<Record, String> {
        Ok(Record {
            uid,
            source: source(&self.source)?,
            origin: self.origin.map(OriginRow::origin),
            declared: declared(self.manifest, parse)?,
            generation,
            observed_generation: self.observed_generation,
            desired: desired(&self.desired)?,
            created_at_ms: self.created_at_ms,
            current: self.current.map(InstanceRow::instance),
            next: self.next.map(InstanceRow::instance),
            previous: self.previous.map(PreviousRow::previous),
            discards: self.discards.into_iter().map(InstanceRow::instance).collect(),
            failed_update: self.failed_update.map(FailedUpdateRow::failed_update),
            own_stop: self.own_stop.map(OwnStopRow::own_stop),
            last_exit: self.last_exit.map(ExitRow::exit),
            owed_start: if self.owes_restart { OwedStart::Restart } else { OwedStart::Uncounted },
            restarts_asked: self.restarts_asked,
            restarts_done: self.restarts_done,
            rebuilds_asked: self.rebuilds_asked,
            rebuilds_done: self.rebuilds_done,
            restart_count: self.restart_count,
            failure_count: self.failure_count,
            streak: self.streak,
            refusals: self.refusals,
            diary: self.diary.map(DiaryRow::diary).unwrap_or_default(),
            stuck: self.stuck,
            wait: self.wait.map(BootTickRow::boot_tick),
            error_message: self.error_message.into_owned(),
            last_error: self.last_error.into_owned(),
            last_error_at_ms: self.last_error_at_ms,
            boot: self.boot.map(BootId::new),
            elsewhere: self.elsewhere.map(BootTickRow::boot_tick),
        })
    }
}

/// The source that `text` names.
pub fn source(text: &str) -> Result<Source, String> {
    Source::parse(text).ok_or_else(|| format!("its source {text:?} is not known"))
}

/// The desired state that `text` names.
pub fn desired(text: &str) -> Result<Desired, String> {
    Desired::parse(text).ok_or_else(|| format!("its desired state {text:?} is not known"))
}

impl<'a> OriginRow<'a> {
    /// `origin` as it is written.
    pub fn of(origin: &'a Origin) -> Self {
        Self { file: origin.file.as_ref().into(), mount: origin.mount.as_ref().into() }
    }

    /// The origin that was written.
    pub fn origin(self) -> Origin {
        Origin { file: self.file.into(), mount: self.mount.into() }
    }
}

impl<'a> InstanceRow<'a> {
    fn of(instance: &'a Instance) -> Self {
        Self {
            name: instance.name.as_str().into(),
            container: instance.container.as_ref().map(|id| id.as_str().into()),
            generation: instance.generation,
            rebuild: instance.rebuild,
            spec_hash: instance.spec_hash.as_str().into(),
            run: instance.run.as_ref().map(RunRow::of),
            proved: instance.proved,
        }
    }

    fn instance(self) -> Instance {
        Instance {
            name: InstanceName::new(self.name),
            container: self.container.map(ContainerId::new),
            generation: self.generation,
            rebuild: self.rebuild,
            spec_hash: SpecHash::new(self.spec_hash),
            run: self.run.map(RunRow::run),
            proved: self.proved,
        }
    }
}

impl<'a> PreviousRow<'a> {
    fn of(previous: &'a Previous) -> Self {
        Self {
            instance: InstanceRow::of(&previous.instance),
            last_exit: previous.last_exit.as_ref().map(ExitRow::of),
            observed_generation: previous.observed_generation,
        }
    }

    fn previous(self) -> Previous {
        Previous {
            instance: self.instance.instance(),
            last_exit: self.last_exit.map(ExitRow::exit),
            observed_generation: self.observed_generation,
        }
    }
}

impl<'a> RunRow<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            started_at_ns: run.started_at_ns,
            since: BootTickRow::of(&run.since),
            since_ms: run.since_ms,
            pid: run.pid,
            ip: run.ip.as_deref().map(Into::into),
            ports: run.ports.iter().map(|port| port.as_str().into()).collect(),
            image_id: run.image_id.as_str().into(),
            stop_signal: run.stop_signal.as_deref().map(Into::into),
            health: run.health.as_ref().map(HealthRow::of),
        }
    }

    fn run(self) -> Run {
        Run {
            started_at_ns: self.started_at_ns,
            since: self.since.boot_tick(),
            since_ms: self.since_ms,
            pid: self.pid,
            ip: self.ip.map(Cow::into_owned),
            ports: self.ports.into_iter().map(Cow::into_owned).collect(),
            image_id: self.image_id.into_owned(),
            stop_signal: self.stop_signal.map(Cow::into_owned),
            health: self.health.and_then(HealthRow::health),
        }
    }
}

impl<'a> HealthRow<'a> {
    fn of(run: &'a RunHealth) -> Self {
        let RunHealth { health, since, proved } = run;
        Self { health: health.as_str().into(), since_ms: since.0, proved: *proved }
    }

    /// A word that a later version wrote is no verdict: the engine is asked.
    fn health(self) -> Option<RunHealth> {
        let health = Health::parse(&self.health)?;
        Some(RunHealth { health, since: Tick(self.since_ms), proved: self.proved })
    }
}

impl<'a> BootTickRow<'a> {
    fn of(at: &'a BootTick) -> Self {
        Self { boot: at.boot.as_str().into(), tick_ms: at.tick.0 }
    }

    fn boot_tick(self) -> BootTick {
        BootTick { boot: BootId::new(self.boot), tick: Tick(self.tick_ms) }
    }
}

impl<'a> DiaryRow<'a> {
    fn of(diary: &'a Diary) -> Option<Self> {
        let (boot, ticks) = diary.written()?;
        let ticks_ms = ticks.iter().map(|tick| tick.0).collect();
        Some(Self { boot: boot.as_str().into(), ticks_ms })
    }

    fn diary(self) -> Diary {
        Diary::recall(BootId::new(self.boot), self.ticks_ms.into_iter().map(Tick).collect())
    }
}

impl<'a> OwnStopRow<'a> {
    fn of(stop: &'a OwnStop) -> Self {
        Self {
            container: stop.container.as_str().into(),
            started_at_ns: stop.started_at_ns,
            unhealthy: stop.unhealthy,
        }
    }

    fn own_stop(self) -> OwnStop {
        OwnStop {
            container: ContainerId::new(self.container),
            started_at_ns: self.started_at_ns,
            unhealthy: self.unhealthy,
        }
    }
}

impl<'a> ExitRow<'a> {
    fn of(exit: &'a Exit) -> Self {
        Self {
            container: exit.container.as_str().into(),
            started_at_ns: exit.started_at_ns,
            code: exit.code,
            oom_killed: exit.oom_killed,
            error: exit.error.as_str().into(),
            interrupted: exit.interrupted,
            unhealthy: exit.unhealthy,
        }
    }

    fn exit(self) -> Exit {
        Exit {
            container: ContainerId::new(self.container),
            started_at_ns: self.started_at_ns,
            code: self.code,
            oom_killed: self.oom_killed,
            error: self.error.into_owned(),
            interrupted: self.interrupted,
            unhealthy: self.unhealthy,
        }
    }
}

impl<'a> FailedUpdateRow<'a> {
    fn of(failed: &'a FailedUpdate) -> Self {
        Self {
            generation: failed.generation,
            cause: failed.cause.as_str().into(),
            at_ms: failed.at_ms,
            tries: failed.tries,
            retry_at: match &failed.retry {
                Retry::At(at) => Some(BootTickRow::of(at)),
                Retry::Never | Retry::Now => None,
            },
            retries_now: failed.retry == Retry::Now,
        }
    }

    fn failed_update(self) -> FailedUpdate {
        FailedUpdate {
            generation: self.generation,
            cause: self.cause.into_owned(),
            at_ms: self.at_ms,
            tries: self.tries,
            retry: match self.retry_at {
                Some(at) => Retry::At(at.boot_tick()),
                None if self.retries_now => Retry::Now,
                None => Retry::Never,
            },
        }
    }
}
