//! What is accepted is stored as a manifest that means the same.

use proptest::prelude::*;

use super::*;
use crate::domain::declared::{
    Log, Mount, MountSource, Network, Port, Protocol, Pull, Rerun, Resources, Restart,
    RestartPolicy, Spec, Stop, WhenStuck,
};
use crate::domain::health_check::{Check, HealthCheck, OnUnhealthy, Test};
use crate::domain::names::{Key, Label};
use crate::domain::time::Span;

fn label() -> impl Strategy<Value = Label> {
    "[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?".prop_map(|text| Label::parse(&text).unwrap())
}

/// Any text without NUL, rich in what a reader could stumble over.
fn value() -> impl Strategy<Value = String> {
    let odd = "([ \t\n\r:#'\"\\\\{}\\[\\],&*!|>%@`-]|---|null|~|a\
               |\u{85}|\u{2028}|\u{feff}|\u{fffe}|\u{7f}|\u{1}){0,8}";
    prop_oneof![odd, any::<String>().prop_map(|text| text.replace('\0', "")), "[a-z0-9./]{0,12}"]
}

fn name() -> impl Strategy<Value = String> {
    "[^=\\p{Cc}]{1,20}".prop_filter("names", |name| {
        !name.starts_with("BARGEE_") && !name.starts_with("bargee.") && name.len() <= 128
    })
}

fn arguments() -> impl Strategy<Value = Option<Vec<String>>> {
    proptest::option::of((("[a-z/]{1,9}"), proptest::collection::vec(value(), 0..4)).prop_map(
        |(first, mut rest)| {
            rest.insert(0, first);
            rest
        },
    ))
}

fn ports() -> impl Strategy<Value = Vec<Port>> {
    let port = (any::<Option<std::net::IpAddr>>(), any::<bool>(), 1_u16.., any::<bool>());
    proptest::collection::vec(port, 0..4).prop_map(|ports| {
        let port = |(index, (host_ip, fixed, container_port, udp))| Port {
            host_ip,
            // Each its own, so that none meets another.
            host_port: if fixed { u16::try_from(index + 1).ok() } else { None },
            container_port,
            protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
        };
        ports.into_iter().enumerate().map(port).collect()
    })
}

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let host = ("/[^:\\x00]{0,9}", any::<bool>())
        .prop_map(|(path, mounted)| MountSource::Host { path, mounted });
    let volume = "[a-zA-Z0-9][a-zA-Z0-9_.-]{0,9}".prop_map(MountSource::Volume);
    let mount = (prop_oneof![host, volume], "[^:\\x00]{0,9}", any::<bool>());
    proptest::collection::vec(mount, 0..4).prop_map(|mounts| {
        let mount = |(index, (source, end, read_only))| Mount {
            source,
            target: format!("/{index}{end}"),
            read_only,
        };
        mounts.into_iter().enumerate().map(mount).collect()
    })
}

fn resources() -> impl Strategy<Value = Resources> {
    let memory = prop_oneof![1..=u64::MAX >> 1, (1_u64..4_096).prop_map(|n| n << 20)];
    (proptest::option::of(10_u32..), proptest::option::of(memory))
        .prop_map(|(cpus_milli, memory_bytes)| Resources { cpus_milli, memory_bytes })
}

fn behaviour() -> impl Strategy<Value = ((Restart, Rerun), Stop, Log, u32)> {
    let policy = proptest::sample::select(vec![
        RestartPolicy::Always,
        RestartPolicy::OnFailure,
        RestartPolicy::Never,
    ]);
    let signal = proptest::sample::select(vec![None, Some("SIGTERM"), Some("SIGRTMIN+3")]);
    let driver = proptest::sample::select(vec!["", "json-file", "local"]);
    let day = 86_400_000_u64;
    let stuck = proptest::sample::select(vec![WhenStuck::Retry, WhenStuck::Hold]);
    let restart = (policy, stuck, any::<bool>());
    let numbers = (100..=day, 0..=day, 0..=day, 1..1_u64 << 62, 1..=100_u32);
    let all = (restart, signal, driver, numbers, 0..=1_000_000_u32);
    all.prop_map(|(restart, signal, driver, numbers, schedule)| {
        let (policy, stuck, boot) = restart;
        let is_job = policy != RestartPolicy::Always;
        let rerun = if boot && is_job { Rerun::Boot } else { Rerun::Never };
        let (delay, more, grace, max_size_bytes, max_files) = numbers;
        let max_delay = Span((delay + more).min(86_400_000));
        let signal = signal.map(str::to_owned);
        (
            (Restart { policy, delay: Span(delay), max_delay, stuck }, rerun),
            Stop { signal, grace: Span(grace) },
            Log { driver: driver.to_owned(), max_size_bytes, max_files },
            schedule,
        )
    })
}

/// Checks of a workload that is restarted.
fn health_check() -> impl Strategy<Value = Option<HealthCheck>> {
    let day = 86_400_000_u64;
    let exec = arguments().prop_map(|words| Test::Exec(words.unwrap_or(vec!["/probe".to_owned()])));
    let shell = value().prop_map(|line| Test::Shell(format!("{line}x")));
    let numbers = (100..=day, 100..=day, 0..=day, 1..=100_u32, any::<bool>());
    let on = (prop_oneof![exec, shell], numbers).prop_map(|(test, numbers)| {
        let (interval, timeout, start_period, retries, restart) = numbers;
        HealthCheck::On(Check {
            test,
            interval: Span(interval),
            timeout: Span(timeout),
            start_period: Span(start_period),
            retries,
            on_unhealthy: if restart { OnUnhealthy::Restart } else { OnUnhealthy::Report },
        })
    });
    proptest::option::of(prop_oneof![Just(HealthCheck::Off), on])
}

fn spec() -> impl Strategy<Value = Spec> {
    let texts = (
        arguments(),
        arguments(),
        proptest::option::of("/[^\\x00]{0,9}"),
        proptest::option::of("[a-z0-9]{1,5}(:[a-z0-9]{1,5})?"),
        proptest::collection::btree_map(name(), value(), 0..5),
    );
    let pull = proptest::sample::select(vec![Pull::Missing, Pull::Always, Pull::Never]);
    let behaviour = (behaviour(), health_check());
    (texts, pull, ports(), mounts(), any::<bool>(), resources(), behaviour).prop_map(
        |(texts, pull, ports, mounts, host, resources, (behaviour, mut health_check))| {
            let (restart, stop, log, schedule) = behaviour;
            if let (Some(HealthCheck::On(check)), RestartPolicy::Never) =
                (&mut health_check, restart.0.policy)
            {
                check.on_unhealthy = OnUnhealthy::Report;
            }
            let (entrypoint, command, working_dir, user, env) = texts;
            let (restart, rerun) = restart;
            let (network, ports) =
                if host { (Network::Host, Vec::new()) } else { (Network::Bridge, ports) };
            let image = "example.org/a:1".to_owned();
            Spec {
                image,
                pull,
                entrypoint,
                command,
                working_dir,
                user,
                env,
                ports,
                mounts,
                network,
                restart,
                rerun,
                stop,
                health_check,
                resources,
                schedule,
                log,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn stored_manifests_mean_the_same(
        application in label(),
        name in label(),
        labels in proptest::collection::btree_map(name(), value(), 0..4),
        spec in spec(),
    ) {
        let key = Key { application, name };
        let text = render::manifest(&key, &labels, &spec);
        let declared = Declared { key, labels, spec, manifest: text.as_str().into() };
        prop_assert_eq!(parse_stored(&text), Ok(declared.clone()));
        let files = [("f.json".to_owned(), text)];
        prop_assert_eq!(parse(&files), Ok(vec![declared]));
    }

    #[test]
    fn arbitrary_manifests_never_panic(
        lines in proptest::collection::vec(
            ("  {0,2}", "[a-zA-Z]{1,12}|image|ports|env|restart|stop|log|resources|volumes",
                value(),
            ),
            0..8,
        )
    ) {
        let spec: String =
            lines.iter().map(|(indent, key, value)| format!("{indent}{key}: {value}\n")).collect();
        let _ = parse(&[("f.yaml".to_owned(), workload(&spec))]);
        let _ = parse_stored(&spec);
    }
}

#[test]
fn the_greatest_manifest_can_be_stored() {
    // Each control character becomes six bytes.
    let text = workload(&format!("  env: {{A: \"{}\"}}\n", "\u{1}".repeat(1_000_000)));
    let declared = accepted(&text);
    assert!(declared.manifest.len() > 6_000_000);
    assert_eq!(parse_stored(&declared.manifest), Ok(declared));
}

#[test]
fn what_bargee_did_not_write_is_refused() {
    assert_eq!(parse_stored(""), Err("the stored manifest does not hold one workload".to_owned()));
    assert_eq!(
        parse_stored("kind: Pod"),
        Err("stored manifest:1: kind: must be Workload, found \"Pod\"".to_owned())
    );
}
