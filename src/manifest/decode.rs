//! A document to a declared workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::across::Apply;
use super::quantity::{self, CPUS, SIZE, SPAN};
use super::{choice, env, health, ports, render, shape, signal, volumes, words};
use crate::domain::declared::{
    Declared, Log, Network, Port, Pull, Rerun, Resources, Restart, RestartPolicy, Spec, Stop,
};
use crate::domain::names::{Key, Label};
use crate::domain::time::Span;
use crate::limits::{RESTART_DELAY_MIN_MS, SCHEDULE};
use crate::yaml::field::{Field, Members};
use crate::yaml::{Flaws, Node, shown};

const API_VERSION: &str = "bargee/v1";
const KIND: &str = "Workload";

/// The workload of a document; `None` when a flaw was recorded.
pub fn document(node: &Node, apply: &mut Apply<'_>) -> Option<Declared> {
    apply.begin_document();
    let root = Field::root(node);
    // First of all the kind: the keys of another one would all be wrong.
    root.mapping("a mapping with apiVersion, kind, metadata and spec", &mut apply.flaws)?
        .required("kind", &mut apply.flaws, kind)?;
    let document = root.members(&shape::DOCUMENT, &mut apply.flaws)?;
    let version = document.required("apiVersion", &mut apply.flaws, api_version);
    let metadata = sub(&document, "metadata", apply, metadata);
    let spec = sub(&document, "spec", apply, spec);
    version?;
    let ((key, labels), spec) = (metadata?, spec?);
    let manifest = Arc::from(render::manifest(&key, &labels, &spec));
    Some(Declared { key, labels, spec, manifest })
}

/// A mapping that must be there.
fn sub<T>(
    members: &Members<'_>,
    key: &str,
    apply: &mut Apply<'_>,
    read: impl FnOnce(&Field<'_>, &mut Apply<'_>) -> Option<T>,
) -> Option<T> {
    match members.get(key) {
        Some(field) => read(&field, apply),
        None => members.required(key, &mut apply.flaws, |_, _| None),
    }
}

fn kind(field: &Field<'_>, flaws: &mut Flaws) -> Option<()> {
    field.parse(KIND, flaws, |text| match text {
        KIND => Ok(()),
        "Registry" => Err("Registry is not supported yet".to_owned()),
        _ => Err(format!("must be {KIND}, found {}", shown(text))),
    })
}

fn api_version(field: &Field<'_>, flaws: &mut Flaws) -> Option<()> {
    field.parse(API_VERSION, flaws, |text| {
        let wrong = || format!("must be {API_VERSION}, found {}", shown(text));
        (text == API_VERSION).then_some(()).ok_or_else(wrong)
    })
}

fn metadata(field: &Field<'_>, apply: &mut Apply<'_>) -> Option<(Key, BTreeMap<String, String>)> {
    let flaws = &mut apply.flaws;
    let members = field.members(&shape::METADATA, flaws)?;
    let name = members.required("name", flaws, label);
    let application = match members.get("application") {
        Some(field) => label(&field, flaws),
        None => Label::parse("default").ok(),
    };
    let labels = members.or("labels", BTreeMap::new(), flaws, words::labels);
    let key = Key { application: application?, name: name? };
    let is_first = apply.claim_name(&members.get("name")?, &key);
    Some((key, labels.filter(|_| is_first)?))
}

fn label(field: &Field<'_>, flaws: &mut Flaws) -> Option<Label> {
    field.parse("a DNS label as web-1", flaws, |text| {
        Label::parse(text).map_err(|rule| format!("{rule}, found {}", shown(text)))
    })
}

fn spec(field: &Field<'_>, apply: &mut Apply<'_>) -> Option<Spec> {
    let members = field.members(&shape::SPEC, &mut apply.flaws)?;
    let flaws = &mut apply.flaws;
    let image = members.required("image", flaws, words::image);
    let pull =
        members.or("pull", Pull::Missing, flaws, |f, flaws| choice::choice(choice::PULL, f, flaws));
    let entrypoint = members.optional("entrypoint", flaws, words::entrypoint);
    let command = members.optional("command", flaws, words::arguments);
    let working_dir = members.optional("workingDir", flaws, words::working_dir);
    let user = members.optional("user", flaws, words::user);
    let env = members.or("env", BTreeMap::new(), flaws, env::env);
    let mounts = members.or("volumes", Vec::new(), flaws, volumes::mounts);
    let restart = members.or("restart", Restart::default(), flaws, restart);
    let rerun = rerun(&members, restart, flaws);
    let stop = members.or("stop", Stop::default(), flaws, stop);
    let policy = restart.map(|restart| restart.policy);
    let health_check =
        members.optional("healthCheck", flaws, |f, flaws| health::health_check(f, policy, flaws));
    let resources = members.or("resources", Resources::default(), flaws, resources);
    let schedule = members
        .or("schedule", SCHEDULE, flaws, |f, flaws| f.parse("a number", flaws, quantity::schedule));
    let log = members.or("log", Log::default(), flaws, log);
    let (network, ports) = network_and_ports(&members, apply);
    Some(Spec {
        image: image?,
        pull: pull?,
        entrypoint: entrypoint?,
        command: command?,
        working_dir: working_dir?,
        user: user?,
        env: env?,
        ports: ports?,
        mounts: mounts?,
        network: network?,
        restart: restart?,
        rerun: rerun?,
        stop: stop?,
        health_check: health_check?,
        resources: resources?,
        schedule: schedule?,
        log: log?,
    })
}

/// Ports mean something on a network of our own only: on the host's they would be ignored.
fn network_and_ports(
    members: &Members<'_>,
    apply: &mut Apply<'_>,
) -> (Option<Network>, Option<Vec<Port>>) {
    let network = members.or("network", Network::Bridge, &mut apply.flaws, choice::network);
    let Some(field) = members.get("ports") else { return (network, Some(Vec::new())) };
    if network == Some(Network::Host) {
        let message = "has no meaning on network host, where every port is the host's; remove it";
        field.refuse(&mut apply.flaws, message);
        return (network, None);
    }
    (network, ports::ports(&field, apply))
}

fn restart(field: &Field<'_>, flaws: &mut Flaws) -> Option<Restart> {
    let members = field.members(&shape::RESTART, flaws)?;
    let default = Restart::default();
    let policy = members.or("policy", default.policy, flaws, |f, flaws| {
        choice::choice(choice::RESTART_POLICY, f, flaws)
    });
    let delay = members.or("delay", default.delay, flaws, delay);
    let max_delay = members.or("maxDelay", default.max_delay, flaws, span);
    let stuck = members
        .or("stuck", default.stuck, flaws, |f, flaws| choice::choice(choice::STUCK, f, flaws));
    let (policy, delay, max_delay) = (policy?, delay?, max_delay?);
    let restart = Restart { policy, delay, max_delay, stuck: stuck? };
    if restart.delay > restart.max_delay {
        let (delay, max_delay) = (restart.delay, restart.max_delay);
        let message =
            format_args!("delay, {delay}, is longer than maxDelay, {max_delay}; set both");
        field.refuse(flaws, message);
        return None;
    }
    Some(restart)
}

/// What never comes to its end by itself cannot be a job.
fn rerun(members: &Members<'_>, restart: Option<Restart>, flaws: &mut Flaws) -> Option<Rerun> {
    let choose = |f: &Field<'_>, flaws: &mut Flaws| choice::choice(choice::RERUN, f, flaws);
    let rerun = members.or("rerun", Rerun::default(), flaws, choose)?;
    let always = restart.is_some_and(|restart| restart.policy == RestartPolicy::Always);
    if let Some(field) = members.get("rerun").filter(|_| always && rerun == Rerun::Boot) {
        let message = "is for jobs, and restart.policy always restarts every end; \
                       set it to on-failure or never";
        field.refuse(flaws, message);
        return None;
    }
    Some(rerun)
}

fn delay(field: &Field<'_>, flaws: &mut Flaws) -> Option<Span> {
    field.parse(SPAN, flaws, |text| quantity::span_from(Span(RESTART_DELAY_MIN_MS), text))
}

fn span(field: &Field<'_>, flaws: &mut Flaws) -> Option<Span> {
    field.parse(SPAN, flaws, quantity::span)
}

fn stop(field: &Field<'_>, flaws: &mut Flaws) -> Option<Stop> {
    let members = field.members(&shape::STOP, flaws)?;
    let signal = members
        .optional("signal", flaws, |f, flaws| f.parse(signal::SIGNAL, flaws, signal::signal));
    let grace = members.or("grace", Stop::default().grace, flaws, span);
    Some(Stop { signal: signal?, grace: grace? })
}

fn resources(field: &Field<'_>, flaws: &mut Flaws) -> Option<Resources> {
    let members = field.members(&shape::RESOURCES, flaws)?;
    let cpus = members.optional("cpus", flaws, |f, flaws| f.parse(CPUS, flaws, quantity::cpus));
    let memory = members.optional("memory", flaws, size);
    Some(Resources { cpus_milli: cpus?, memory_bytes: memory? })
}

fn size(field: &Field<'_>, flaws: &mut Flaws) -> Option<u64> {
    field.parse(SIZE, flaws, quantity::size)
}

fn log(field: &Field<'_>, flaws: &mut Flaws) -> Option<Log> {
    let members = field.members(&shape::LOG, flaws)?;
    let default = Log::default();
    let driver = members.or("driver", default.driver, flaws, choice::log_driver);
    let max_size = members.or("maxSize", default.max_size_bytes, flaws, size);
    let max_files = members.or("maxFiles", default.max_files, flaws, |f, flaws| {
        f.parse("a number of files", flaws, quantity::log_files)
    });
    Some(Log { driver: driver?, max_size_bytes: max_size?, max_files: max_files? })
}
