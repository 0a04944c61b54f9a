//! 50 workloads to RUNNING beside the bare engine calls, in turns.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::scope;

use bargee::domain::declared::{
    Declared, Log, Network, Pull, Rerun, Resources, Restart, RestartPolicy, Spec, Stop,
};
use bargee::domain::effect::{AppNetwork, NewContainer};
use bargee::domain::fault::Fault;
use bargee::domain::names::{ContainerId, InstanceName, Key, Label};
use bargee::domain::time::Span;
use bargee::engine::Engine;
use bargee::limits;
use crossbeam_channel::unbounded;

use crate::Result;
use crate::agent::{Agent, IMAGE, Place, manifests};
use crate::docker;
use crate::report::{Report, median};
use crate::stopwatch::{now, seconds};

const WORKLOADS: usize = 50;
const NETWORK: &str = "bench-bare";

/// How 50 containers come to run.
#[derive(Clone, Copy)]
enum Way {
    /// By the agent.
    Agent,
    /// By create and start.
    Bare,
    /// By create, start and the inspect without which nobody knows what runs.
    Looked,
}

/// Prints the figures.
pub fn measure(report: &mut Report, program: &Path, socket: &Path, rounds: usize) -> Result<()> {
    let engine = docker::engine(socket)?;
    let place = Place::new(program, socket)?;
    let agent = place.start()?;
    // The first containers of an engine are slower than those that follow.
    bare(&engine, false)?;
    let mut ways = [Way::Agent, Way::Bare, Way::Looked];
    let mut taken = [Vec::new(), Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for way in ways {
            taken[way as usize].push(match way {
                Way::Agent => deploy(&agent)?,
                Way::Bare => bare(&engine, false)?,
                Way::Looked => bare(&engine, true)?,
            });
        }
        // In turns, so that none always comes first.
        ways.rotate_left(1);
        let last = taken.each_ref().map(|all| all[round - 1]);
        let [ours, bare, looked] = last;
        report.note(&format!(
            "50 to RUNNING, round {round}: {ours:.2} s, bare {bare:.2} s, looked at {looked:.2} s"
        ));
    }
    tell(report, &taken);
    Ok(())
}

fn tell(report: &mut Report, taken: &[Vec<f64>; 3]) {
    let [ours, bare, looked] = taken;
    let name = |what: &str| format!("50 workloads to RUNNING, {what}");
    report.figure(&name("agent"), median(ours), "s", None);
    report.figure(&name("bare calls"), median(bare), "s", None);
    report.figure(&name("bare calls and inspects"), median(looked), "s", None);
    let ratios = |other: &[f64]| {
        let each: Vec<f64> = ours.iter().zip(other).map(|(our, other)| our / other).collect();
        median(&each)
    };
    report.figure(&name("agent to bare calls"), ratios(bare), "x", Some(1.05));
    report.figure(&name("agent to calls and inspects"), ratios(looked), "x", None);
}

/// Seconds from the request to all of them Running in the API.
fn deploy(agent: &Agent) -> Result<f64> {
    let mut transitions = agent.transitions()?;
    let manifests = manifests("deploy", WORKLOADS);
    let begin = now();
    agent.apply(&manifests)?;
    let took = transitions.running(WORKLOADS)? - begin;
    agent.remove_all()?;
    Ok(took.as_secs_f64())
}

/// Seconds that the engine calls alone take: the network once, then create and start for each, by
/// as many threads as the agent has workers; with `look` an inspect too.
fn bare(engine: &Engine, look: bool) -> Result<f64> {
    let containers = (0..WORKLOADS).map(container).collect::<Result<Vec<_>>>()?;
    let begin = now();
    let made = at_once(containers, &|new| {
        let id = engine.create(&new)?;
        engine.start(&id)?;
        if look {
            engine.inspect(id.as_str())?;
        }
        Ok(id)
    })?;
    let took = seconds(begin);
    at_once(made, &|id: ContainerId| engine.remove(id.as_str()))?;
    engine.remove_network(NETWORK).map_err(|fault| fault.to_string())?;
    Ok(took)
}

fn at_once<T: Send, R: Send>(
    items: Vec<T>,
    call: &(dyn Fn(T) -> std::result::Result<R, Fault> + Sync),
) -> Result<Vec<R>> {
    let (give, jobs) = unbounded();
    let (tell, results) = unbounded();
    items.into_iter().try_for_each(|item| give.send(item)).map_err(|_| "nobody takes jobs")?;
    drop(give);
    scope(|threads| {
        for _ in 0..limits::WORKERS {
            let (jobs, tell) = (jobs.clone(), tell.clone());
            threads.spawn(move || jobs.iter().for_each(|item| drop(tell.send(call(item)))));
        }
    });
    drop(tell);
    let all: std::result::Result<Vec<R>, Fault> = results.iter().collect();
    Ok(all.map_err(|fault| fault.to_string())?)
}

/// What the agent makes of the same manifest, but under labels that it does not look for.
fn container(n: usize) -> Result<NewContainer> {
    let name = format!("w-{n:04}");
    let label = |what: &str, value: &str| (format!("bench.{what}"), value.to_owned());
    let labels = BTreeMap::from([
        label("uid", "00000000-0000-4000-8000-000000000000"),
        label("application", "deploy"),
        label("name", &name),
        label("instance", "bench-w-0000-01234567"),
        label("generation", "1"),
        label("spec-hash", "1-0123456789abcdef0123456789abcdef"),
        label("store", "0123456789abcdef"),
        label("node", "bench"),
        label("source", "local"),
    ]);
    let variable = |what: &str| (format!("BENCH_{what}"), "0123456789abcdef".to_owned());
    let env = ["UID", "NAME", "APPLICATION", "NODE", "SOURCE", "ENGINE", "TZ"].map(variable);
    let network_labels = ["store", "node", "application"].map(|what| label(what, "deploy"));
    let key = Key { application: Label::parse("deploy")?, name: Label::parse(&name)? };
    let declared = Declared { key, labels: BTreeMap::new(), spec: spec(), manifest: "{}".into() };
    Ok(NewContainer {
        name: InstanceName::new(format!("bench-{name}-01234567")),
        declared: Arc::new(declared),
        labels,
        env: env.into(),
        network: Some(AppNetwork {
            name: NETWORK.to_owned(),
            labels: network_labels.into(),
            aliases: vec![name.clone(), format!("{name}.deploy")],
        }),
        volume_prefix: "bench-deploy.".to_owned(),
        ports_to_check: Vec::new(),
    })
}

fn spec() -> Spec {
    Spec {
        image: IMAGE.to_owned(),
        pull: Pull::Never,
        entrypoint: None,
        command: Some(vec!["sleep".to_owned(), "86400".to_owned()]),
        working_dir: None,
        user: None,
        env: BTreeMap::new(),
        ports: Vec::new(),
        mounts: Vec::new(),
        network: Network::Bridge,
        restart: Restart { policy: RestartPolicy::Never, ..Restart::default() },
        rerun: Rerun::Never,
        stop: Stop { signal: Some("SIGKILL".to_owned()), grace: Span::seconds(1) },
        health_check: None,
        resources: Resources::default(),
        schedule: 100,
        log: Log { driver: String::new(), max_size_bytes: 10 << 20, max_files: 3 },
    }
}
