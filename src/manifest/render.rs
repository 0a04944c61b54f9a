//! A declared workload to the manifest that is stored and shown: defaults filled in, in the order
//! of the documentation.

use std::collections::BTreeMap;

use serde::Serialize;

use super::quantity::show_size;
use super::{choice, health, ports, volumes};
use crate::domain::declared::{Log, Resources, Restart, Spec, Stop};
use crate::domain::names::Key;

/// The manifest as one line of JSON. Read again it gives the same workload.
pub fn manifest(key: &Key, labels: &BTreeMap<String, String>, spec: &Spec) -> String {
    let document = DocumentJson {
        api_version: "bargee/v1",
        kind: "Workload",
        metadata: MetadataJson {
            name: key.name.as_str(),
            application: key.application.as_str(),
            labels,
        },
        spec: spec_json(spec),
    };
    serde_json::to_string(&document).expect("text keys and plain values always serialise")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentJson<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: MetadataJson<'a>,
    spec: SpecJson<'a>,
}

#[derive(Serialize)]
struct MetadataJson<'a> {
    name: &'a str,
    application: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpecJson<'a> {
    image: &'a str,
    pull: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entrypoint: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<String>,
    network: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<ResourcesJson>,
    restart: RestartJson,
    rerun: &'static str,
    stop: StopJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_check: Option<health::HealthCheckJson<'a>>,
    schedule: u32,
    log: LogJson<'a>,
}

#[derive(Serialize)]
struct ResourcesJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestartJson {
    policy: &'static str,
    delay: String,
    max_delay: String,
    stuck: &'static str,
}

#[derive(Serialize)]
struct StopJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<&'a str>,
    grace: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogJson<'a> {
    driver: &'a str,
    max_size: String,
    max_files: u32,
}

fn spec_json(spec: &Spec) -> SpecJson<'_> {
    SpecJson {
        image: &spec.image,
        pull: choice::word(choice::PULL, &spec.pull),
        entrypoint: spec.entrypoint.as_deref(),
        command: spec.command.as_deref(),
        working_dir: spec.working_dir.as_deref(),
        user: spec.user.as_deref(),
        env: &spec.env,
        ports: spec.ports.iter().map(ports::show).collect(),
        volumes: spec.mounts.iter().map(volumes::show).collect(),
        network: choice::network_word(spec.network),
        resources: resources_json(&spec.resources),
        restart: restart_json(&spec.restart),
        rerun: choice::word(choice::RERUN, &spec.rerun),
        stop: stop_json(&spec.stop),
        health_check: spec.health_check.as_ref().map(health::show),
        schedule: spec.schedule,
        log: log_json(&spec.log),
    }
}

fn resources_json(resources: &Resources) -> Option<ResourcesJson> {
    let Resources { cpus_milli, memory_bytes } = resources;
    // Thousandths as a float print as they are: a float has 15 digits, and these have 10.
    let cpus = cpus_milli.map(|milli| f64::from(milli) / 1_000.0);
    let memory = memory_bytes.map(show_size);
    (cpus.is_some() || memory.is_some()).then_some(ResourcesJson { cpus, memory })
}

fn restart_json(restart: &Restart) -> RestartJson {
    RestartJson {
        policy: choice::word(choice::RESTART_POLICY, &restart.policy),
        delay: restart.delay.to_string(),
        max_delay: restart.max_delay.to_string(),
        stuck: choice::word(choice::STUCK, &restart.stuck),
    }
}

fn stop_json(stop: &Stop) -> StopJson<'_> {
    StopJson { signal: stop.signal.as_deref(), grace: stop.grace.to_string() }
}

fn log_json(log: &Log) -> LogJson<'_> {
    LogJson {
        driver: &log.driver,
        max_size: show_size(log.max_size_bytes),
        max_files: log.max_files,
    }
}
