//! What a container is made from, as the body of a create. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::health::Healthcheck;
use super::wire::HostPort;
use crate::domain::declared::{Log, Mount, MountSource, Port, Spec};
use crate::domain::effect::{AppNetwork, NewContainer};
use crate::domain::gather::Gather;
use crate::domain::observed::label;

/// Body of `POST /containers/create`.
#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Create<'a> {
    image: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entrypoint: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cmd: Option<&'a [String]>,
    env: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    working_dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    exposed_ports: BTreeMap<String, Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_signal: Option<&'a str>,
    /// Seconds; it is what the engine itself gives a container when it shuts down.
    stop_timeout: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthcheck: Option<Healthcheck<'a>>,
    host_config: HostConfig<'a>,
    networking_config: NetworkingConfig<'a>,
}

#[derive(Serialize, Debug)]
struct Empty {}

#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct HostConfig<'a> {
    port_bindings: BTreeMap<String, Vec<HostPort>>,
    mounts: Vec<WireMount<'a>>,
    network_mode: &'a str,
    restart_policy: RestartPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    nano_cpus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    log_config: LogConfig<'a>,
}

/// bargee restarts; the engine never does.
#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct RestartPolicy {
    name: &'static str,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct LogConfig<'a> {
    #[serde(rename = "Type")]
    driver: &'a str,
    config: BTreeMap<&'static str, String>,
}

/// A mount in the form that fails where the source is missing; the older form makes it.
#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct WireMount<'a> {
    #[serde(rename = "Type")]
    kind: &'static str,
    source: String,
    target: &'a str,
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_options: Option<VolumeOptions<'a>>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct VolumeOptions<'a> {
    labels: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
struct NetworkingConfig<'a> {
    endpoints_config: BTreeMap<&'a str, Endpoint<'a>>,
}

/// A container's place on a network that is asked for.
#[derive(Serialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Endpoint<'a> {
    pub aliases: &'a [String],
}

impl<'a> Create<'a> {
    /// The body that makes `new`.
    pub fn new(new: &'a NewContainer) -> Self {
        let spec = &new.declared.spec;
        Self {
            image: &spec.image,
            entrypoint: spec.entrypoint.as_deref(),
            cmd: spec.command.as_deref(),
            env: new.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            working_dir: spec.working_dir.as_deref(),
            user: spec.user.as_deref(),
            labels: &new.labels,
            exposed_ports: spec.ports.iter().map(|port| (inner(port), Empty {})).gather(),
            stop_signal: spec.stop.signal.as_deref(),
            stop_timeout: spec.stop.grace.0.div_ceil(1_000),
            healthcheck: spec.health_check.as_ref().map(Healthcheck::new),
            host_config: host_config(new, spec),
            networking_config: networking_config(new.network.as_ref()),
        }
    }
}

fn host_config<'a>(new: &'a NewContainer, spec: &'a Spec) -> HostConfig<'a> {
    HostConfig {
        port_bindings: port_bindings(&spec.ports),
        mounts: spec.mounts.iter().map(|mount| wire_mount(new, mount)).collect(),
        network_mode: new.network.as_ref().map_or("host", |network| &network.name),
        restart_policy: RestartPolicy { name: "no" },
        nano_cpus: spec.resources.cpus_milli.map(|milli| u64::from(milli) * 1_000_000),
        memory: spec.resources.memory_bytes,
        log_config: log_config(&spec.log),
    }
}

fn networking_config(network: Option<&AppNetwork>) -> NetworkingConfig<'_> {
    let endpoints = network
        .iter()
        .map(|AppNetwork { name, aliases, .. }| (name.as_str(), Endpoint { aliases }));
    NetworkingConfig { endpoints_config: endpoints.gather() }
}

fn inner(port: &Port) -> String {
    format!("{}/{}", port.container_port, port.protocol.as_str())
}

fn port_bindings(ports: &[Port]) -> BTreeMap<String, Vec<HostPort>> {
    let mut bindings: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for port in ports {
        let host = HostPort {
            host_ip: port.host_ip.map(|ip| ip.to_string()).unwrap_or_default(),
            host_port: port.host_port.map(|number| number.to_string()).unwrap_or_default(),
        };
        bindings.entry(inner(port)).or_default().push(host);
    }
    bindings
}

fn wire_mount<'a>(new: &'a NewContainer, mount: &'a Mount) -> WireMount<'a> {
    let (kind, source, volume_options) = match &mount.source {
        MountSource::Host { path, .. } => ("bind", path.clone(), None),
        MountSource::Volume(name) => {
            let labels = ownership(&new.labels);
            ("volume", format!("{}{name}", new.volume_prefix), Some(VolumeOptions { labels }))
        }
    };
    let Mount { target, read_only, .. } = mount;
    WireMount { kind, source, target, read_only: *read_only, volume_options }
}

/// Those labels of a container that also fit what it shares with others: its volumes and network.
pub(super) fn ownership(labels: &BTreeMap<String, String>) -> BTreeMap<&'static str, &str> {
    [label::STORE, label::APPLICATION, label::NODE]
        .into_iter()
        .filter_map(|name| Some((name, labels.get(name)?.as_str())))
        .gather()
}

fn log_config(log: &Log) -> LogConfig<'_> {
    let driver = if log.driver.is_empty() { "json-file" } else { &log.driver };
    let mut config = BTreeMap::new();
    // Other drivers keep nothing on the device and refuse these.
    if matches!(driver, "json-file" | "local") {
        config.insert("max-size", log.max_size_bytes.to_string());
        config.insert("max-file", log.max_files.to_string());
    }
    if driver == "local" && log.max_files == 1 {
        // It compresses what it has rotated, and refuses to start where nothing can be.
        config.insert("compress", "false".to_owned());
    }
    LogConfig { driver, config }
}
