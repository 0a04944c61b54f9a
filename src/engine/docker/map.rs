//! What the engine replied, as what was observed. Pure.

use serde_json::value::RawValue;

use super::{health, rfc3339, wire};
use crate::domain::names::ContainerId;
use crate::domain::observed::{Listed, Phase, Reading, Tags};

/// Reads a listing. An entry that is odd, or not bargee's, is left out; a listing that is no list
/// is an error, never an empty one.
pub(super) fn list(body: Option<Vec<&RawValue>>) -> Vec<Listed> {
    body.unwrap_or_default().into_iter().filter_map(listed).collect()
}

fn listed(entry: &RawValue) -> Option<Listed> {
    let entry: wire::ListedContainer = serde_json::from_str(entry.get()).ok()?;
    let tags = Tags::read(|name| entry.labels.get(name).map(String::as_str))?;
    let is_named = |name: &String| name.trim_start_matches('/') == tags.instance.as_str();
    Some(Listed {
        // One that is half removed may have no name any more.
        misnamed: !entry.names.is_empty() && !entry.names.iter().any(is_named),
        tags,
        id: ContainerId::new(entry.id),
        phase: phase(&entry.state),
        health: health::hint(&entry.status),
    })
}

fn phase(state: &str) -> Phase {
    match state {
        "created" => Phase::Created,
        "running" => Phase::Running,
        "restarting" => Phase::Restarting,
        "paused" => Phase::Paused,
        "stopping" => Phase::Stopping,
        "removing" => Phase::Removing,
        "exited" => Phase::Exited,
        "dead" => Phase::Dead,
        other => Phase::Unknown(other.to_owned()),
    }
}

/// Reads an inspect.
///
/// # Errors
/// What cannot be read of the values that decisions are taken on.
pub(super) fn reading(container: wire::Container) -> Result<Reading, String> {
    let state = container.state;
    let config = container.config.unwrap_or_default();
    Ok(Reading {
        tags: Tags::read(|name| config.labels.get(name).map(String::as_str)),
        id: ContainerId::new(container.id),
        phase: phase(&state.status),
        started_at_ns: time(&state.started_at)?,
        exit_code: i32::try_from(state.exit_code).unwrap_or(i32::MAX),
        oom_killed: state.oom_killed,
        error: wire::clip(&state.error),
        pid: state.pid,
        ip: address(&container.network_settings),
        ports: ports(&container.network_settings),
        image_id: container.image,
        stop_signal: config.stop_signal.filter(|signal| !signal.is_empty()),
        verdict: state.health.as_ref().and_then(health::verdict),
    })
}

fn time(text: &str) -> Result<u64, String> {
    rfc3339::unix_ns(text).ok_or_else(|| format!("the engine's time {text:?} is none"))
}

/// The address on the first network that has one; IPv4 is preferred there.
fn address(settings: &wire::NetworkSettings) -> Option<String> {
    let addresses = settings.networks.values().flat_map(|at| [&at.ip_address, &at.ipv6_address]);
    addresses.into_iter().find(|address| !address.is_empty()).cloned()
}

/// Published ports as `0.0.0.0:8080->80/tcp`, by port in the container, then by host.
fn ports(settings: &wire::NetworkSettings) -> Vec<String> {
    let mut ports: Vec<_> = settings
        .ports
        .iter()
        .flat_map(|(inner, hosts)| hosts.iter().flatten().map(move |host| (inner, host)))
        .map(|(inner, host)| {
            let (number, protocol) = inner.split_once('/').unwrap_or((inner, "tcp"));
            let number = number.parse::<u16>().unwrap_or_default();
            (number, protocol, inner.as_str(), host)
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports.into_iter().map(|(_, _, inner, host)| published(inner, host)).collect()
}

fn published(inner: &str, host: &wire::HostPort) -> String {
    let wire::HostPort { host_ip, host_port } = host;
    if host_ip.contains(':') {
        format!("[{host_ip}]:{host_port}->{inner}")
    } else {
        format!("{host_ip}:{host_port}->{inner}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Vec<Listed>, serde_json::Error> {
        serde_json::from_str(body).map(list)
    }

    fn inspect(body: &str) -> Reading {
        reading(serde_json::from_str(body).unwrap()).unwrap()
    }

    #[test]
    fn a_listing_of_docker_20_10() {
        let listed = parse(include_str!("fixtures/list.json")).unwrap();
        assert_eq!(listed.len(), 1, "the second container has no labels");
        assert_eq!(listed[0].phase, Phase::Running);
        assert_eq!(listed[0].tags.key.to_string(), "shop/web");
        assert_eq!(listed[0].tags.generation, 3);
        assert!(listed[0].id.as_str().starts_with("ce9e3fda6528"));
    }

    #[test]
    fn b16_each_state_of_docker_is_known_and_any_other_keeps_its_word() {
        let known = [
            ("created", Phase::Created),
            ("running", Phase::Running),
            ("restarting", Phase::Restarting),
            ("paused", Phase::Paused),
            ("stopping", Phase::Stopping),
            ("removing", Phase::Removing),
            ("exited", Phase::Exited),
            ("dead", Phase::Dead),
        ];
        for (word, expected) in known {
            assert_eq!(phase(word), expected);
        }
        for word in ["", "Running", "configured", "initialized", "flurb"] {
            assert_eq!(phase(word), Phase::Unknown(word.to_owned()));
        }
    }

    #[test]
    fn odd_entries_do_not_spoil_a_listing() {
        let good = include_str!("fixtures/list.json").trim();
        let (first, _) = good.split_once("\n },").unwrap();
        let body = format!("{first}}}, 7, null, {{}}, {{\"Id\":5}}, [\"x\"]]");
        assert_eq!(parse(&body).unwrap().len(), 1);
        assert_eq!(parse("null").unwrap().len(), 0);
        assert_eq!(parse("[]").unwrap().len(), 0);
    }

    #[test]
    fn half_a_listing_is_an_error() {
        let good = include_str!("fixtures/list.json").trim();
        for bad in ["", "{}", "7", "[{}", &good[..good.len() / 2], &good[..good.len() - 1]] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_container_that_runs() {
        let reading = inspect(include_str!("fixtures/running.json"));
        assert_eq!(reading.phase, Phase::Running);
        assert_eq!(reading.started_at_ns, 1_796_040_982_037_599_756);
        assert!(reading.pid > 0);
        assert_eq!(reading.ip.as_deref(), Some("10.239.0.2"));
        assert_eq!(
            reading.ports,
            ["0.0.0.0:18080->80/tcp", "[::]:18080->80/tcp", "[::]:18081->80/tcp"]
        );
        assert_eq!(reading.stop_signal.as_deref(), Some("SIGINT"));
        assert!(reading.image_id.starts_with("sha256:"));
        assert_eq!(reading.tags.unwrap().instance.as_str(), "bargee-web-1a2b3c4d");
    }

    #[test]
    fn a_container_that_was_killed() {
        let reading = inspect(include_str!("fixtures/exited.json"));
        assert_eq!((reading.phase, reading.exit_code, reading.pid), (Phase::Exited, 137, 0));
        assert_eq!(reading.ip, None);
        assert!(reading.ports.is_empty());
    }

    #[test]
    fn what_is_not_vital_may_be_odd() {
        let reading = inspect(
            r#"{"Id":"c1","State":{"Status":"melting","ExitCode":0,"StartedAt":
            "0001-01-01T00:00:00Z","FinishedAt":"0001-01-01T00:00:00Z","Pid":"x"},"Image":null,
            "NetworkSettings":{"Ports":null,"Networks":{"host":{"IPAddress":""}}},"HostConfig":3}"#,
        );
        assert_eq!(reading.phase, Phase::Unknown("melting".into()));
        assert_eq!((reading.pid, reading.ip, reading.tags), (0, None, None));
    }

    #[test]
    fn what_is_vital_may_not() {
        for bad in [
            r#"{"Id":"c1"}"#,
            r#"{"Id":"c1","State":{"Status":"exited","StartedAt":"","FinishedAt":""}}"#,
            r#"{"State":{"Status":"exited","ExitCode":0,"StartedAt":"","FinishedAt":""}}"#,
        ] {
            assert!(serde_json::from_str::<wire::Container>(bad).is_err(), "{bad}");
        }
        let bad_time = r#"{"Id":"c1","State":{"Status":"running","ExitCode":0,
            "StartedAt":"yesterday","FinishedAt":"0001-01-01T00:00:00Z"}}"#;
        assert!(reading(serde_json::from_str(bad_time).unwrap()).is_err());
    }

    #[test]
    fn ports_are_ordered_by_number() {
        let settings = serde_json::from_str(
            r#"{"Ports":{"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"},
            {"HostIp":"0.0.0.0","HostPort":"8080"}],"9/udp":[{"HostIp":"127.0.0.1","HostPort":"9"}],
            "443/tcp":null}}"#,
        )
        .unwrap();
        assert_eq!(ports(&settings), ["127.0.0.1:9->9/udp", "0.0.0.0:8080->80/tcp"]);
    }
}
