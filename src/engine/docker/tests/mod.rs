//! The client against a scripted engine: broken answers, and what becomes of each.

mod broken;
mod calls;
mod streams;

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use super::{Docker, Timeouts};
use crate::domain::declared::{
    Declared, Log, Mount, MountSource, Network, Port, Protocol, Pull, Rerun, Resources, Restart,
    RestartPolicy, Spec, Stop, WhenStuck,
};
use crate::domain::effect::{AppNetwork, NewContainer};
use crate::domain::health_check::{Check, HealthCheck, Test};
use crate::domain::names::{InstanceName, Key, Label};
use crate::domain::time::Span;
use crate::os::scripted::{Heard, Scripted, Then, answer};

/// Long enough never to pass in a test that expects an answer.
const PATIENT: Duration = Duration::from_secs(60);
/// Passes in a test that expects silence.
const HASTY: Duration = Duration::from_millis(100);

const HASTY_TIMEOUTS: Timeouts =
    Timeouts { connect: PATIENT, read: HASTY, write: HASTY, stall: HASTY };
/// Time enough for an answer, and short enough to outlast in a test.
const BRIEF: Duration = Duration::from_secs(1);
const BRIEF_TIMEOUTS: Timeouts =
    Timeouts { connect: PATIENT, read: BRIEF, write: PATIENT, stall: Duration::from_millis(1_500) };
const PATIENT_TIMEOUTS: Timeouts =
    Timeouts { connect: PATIENT, read: PATIENT, write: PATIENT, stall: PATIENT };

/// An engine that speaks API 1.41, and answers what else it is asked by `serve`.
fn engine(
    timeouts: Timeouts,
    serve: impl Fn(&Heard, &mut UnixStream) -> Then + Send + Sync + 'static,
) -> (Scripted, Docker) {
    let server = Scripted::new(move |heard, stream| {
        if versions(heard, stream, "1.41", "1.12") { Then::Keep } else { serve(heard, stream) }
    });
    let docker = client(&server, timeouts);
    (server, docker)
}

fn client(server: &Scripted, timeouts: Timeouts) -> Docker {
    Docker::with_timeouts(&format!("unix://{}", server.socket().display()), timeouts).unwrap()
}

/// Answers the questions after the version; `false`: it was another question.
fn versions(heard: &Heard, stream: &mut UnixStream, newest: &str, oldest: &str) -> bool {
    match heard.line.as_str() {
        "GET /_ping" => {
            let head = format!("HTTP/1.1 200 OK\r\nApi-Version: {newest}\r\nContent-Length: 2");
            std::io::Write::write_all(stream, format!("{head}\r\n\r\nOK").as_bytes()).unwrap();
        }
        "GET /version" => {
            let body = format!(r#"{{"Version":"20.10","MinAPIVersion":"{oldest}"}}"#);
            answer(stream, 200, &body);
        }
        _ => return false,
    }
    true
}

/// What the engine says of a container on this network.
fn inspected(network: &str) -> String {
    let never = "0001-01-01T00:00:00Z";
    format!(
        r#"{{"Id":"0123456789abcdef","State":{{"Status":"exited","ExitCode":3,
        "StartedAt":"{never}","FinishedAt":"{never}"}},"HostConfig":{{"NetworkMode":"{network}"}},
        "Config":{{"Labels":{{"bargee.store":"s1","bargee.uid":"u1"}}}},"NetworkSettings":
        {{"Networks":{{"{network}":{{"Aliases":["web","0123456789ab"]}}}}}}}}"#
    )
}

/// Requests without those after the version.
fn asked(server: &Scripted) -> Vec<String> {
    let mut lines = server.heard();
    lines.retain(|line| line != "GET /_ping" && line != "GET /version");
    lines
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A spec that uses every field.
fn full_spec() -> Spec {
    let text = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    let volume =
        |source, target: &str, read_only| Mount { source, target: target.into(), read_only };
    Spec {
        image: "nginx:1".into(),
        pull: Pull::Missing,
        entrypoint: text(&["/init"]),
        command: text(&["serve", "-v"]),
        working_dir: Some("/srv".into()),
        user: Some("101:101".into()),
        env: BTreeMap::new(),
        ports: vec![
            Port {
                host_ip: None,
                host_port: Some(8080),
                container_port: 80,
                protocol: Protocol::Tcp,
            },
            Port {
                host_ip: Some("127.0.0.1".parse().unwrap()),
                host_port: None,
                container_port: 80,
                protocol: Protocol::Tcp,
            },
            Port {
                host_ip: None,
                host_port: Some(53),
                container_port: 53,
                protocol: Protocol::Udp,
            },
        ],
        mounts: vec![
            volume(MountSource::Volume("data".into()), "/data", false),
            volume(
                MountSource::Host { path: "/etc/shop".into(), mounted: false },
                "/etc/shop",
                true,
            ),
        ],
        network: Network::Bridge,
        restart: Restart {
            policy: RestartPolicy::Always,
            delay: Span::seconds(10),
            max_delay: Span::seconds(300),
            stuck: WhenStuck::Retry,
        },
        rerun: Rerun::Never,
        stop: Stop { signal: Some("SIGINT".into()), grace: Span(2_500) },
        health_check: Some(HealthCheck::On(Check::new(Test::Shell("probe".into())))),
        resources: Resources { cpus_milli: Some(250), memory_bytes: Some(64 << 20) },
        schedule: 100,
        log: Log { driver: String::new(), max_size_bytes: 10 << 20, max_files: 3 },
    }
}

/// A container that uses every field.
fn full_container() -> NewContainer {
    NewContainer {
        name: InstanceName::new("bargee-web-1a2b3c4d"),
        declared: Arc::new(Declared {
            key: Key {
                application: Label::parse("shop").unwrap(),
                name: Label::parse("web").unwrap(),
            },
            labels: BTreeMap::new(),
            spec: full_spec(),
            manifest: "{}".into(),
        }),
        labels: labels(&[
            ("bargee.application", "shop"),
            ("bargee.node", "boat"),
            ("bargee.store", "s1"),
            ("bargee.uid", "u1"),
        ]),
        env: labels(&[("A", "1"), ("B", "x=y z")]),
        network: Some(AppNetwork {
            name: "bargee-s1-shop".into(),
            labels: labels(&[("bargee.store", "s1")]),
            aliases: vec!["web".into(), "web.shop".into()],
        }),
        volume_prefix: "bargee-shop.".into(),
        ports_to_check: Vec::new(),
    }
}
