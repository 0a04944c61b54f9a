//! Which requests are made, and what each status means.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::domain::fault::FaultKind;
use crate::domain::names::ContainerId;
use crate::engine::cancel::Cancel;

#[test]
fn the_version_is_asked_once_and_again_at_every_ping() {
    let (server, docker) = engine(PATIENT_TIMEOUTS, |_, stream| answer(stream, 404, "{}"));
    assert_eq!(docker.inspect("c1").unwrap(), None);
    assert_eq!(docker.inspect("a b").unwrap(), None);
    let info = docker.ping().unwrap();
    assert_eq!((info.version.as_str(), info.api_version.as_str()), ("20.10", "1.41"));
    assert_eq!(
        server.heard(),
        [
            "GET /_ping",
            "GET /version",
            "GET /v1.41/containers/c1/json",
            "GET /v1.41/containers/a%20b/json",
            "GET /_ping",
            "GET /version",
        ]
    );
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_engine_that_gave_up_old_versions_is_spoken_to_in_its_oldest() {
    let server = Scripted::new(|heard, stream| {
        if !versions(heard, stream, "1.52", "1.44") {
            answer(stream, 200, "[]");
        }
        Then::Keep
    });
    assert!(client(&server, PATIENT_TIMEOUTS).list().unwrap().is_empty());
    assert_eq!(
        asked(&server),
        ["GET /v1.44/containers/json?all=1&filters=%7B%22label%22%3A%5B%22bargee.uid%22%5D%7D"]
    );
}

/// The kinds of fault that a call makes of these statuses; `None`: good.
fn kinds(
    statuses: &'static [u16],
    call: impl Fn(&Docker) -> Result<(), crate::domain::fault::Fault>,
) -> Vec<Option<FaultKind>> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (_server, docker) = engine(PATIENT_TIMEOUTS, move |heard, stream| {
        if heard.line.starts_with("GET") {
            // A look at what may have been the cause.
            return answer(stream, 500, r#"{"message":"words"}"#);
        }
        let turn = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let status = statuses[turn];
        let body = if matches!(status, 204 | 304) { "" } else { r#"{"message":"words"}"# };
        answer(stream, status, body)
    });
    statuses.iter().map(|_| call(&docker).err().map(|fault| fault.kind)).collect()
}

#[test]
fn statuses_mean_what_docker_says() {
    use FaultKind::{Conflict, NameTaken, NoContainer, NoImage, Refused, Trouble};
    let id = ContainerId::new("c1");
    assert_eq!(
        kinds(&[204, 400, 404, 409, 500], |docker| docker.signal(&id, "SIGTERM")),
        [None, Some(Refused), Some(NoContainer), Some(Conflict), Some(Trouble)]
    );
    assert_eq!(
        kinds(&[204, 404, 409, 500], |docker| docker.remove("c1")),
        [None, None, Some(Conflict), Some(Trouble)]
    );
    assert_eq!(
        kinds(&[204, 404, 403, 409, 500], |docker| docker.remove_network("n1")),
        [None, None, None, None, Some(Trouble)]
    );
    assert_eq!(
        kinds(&[204, 304, 400, 403, 409, 500], |docker| docker.start(&id)),
        [None, None, Some(Refused), Some(Refused), Some(Conflict), Some(Trouble)]
    );
    let mut new = full_container();
    new.network = None;
    assert_eq!(
        kinds(&[400, 404, 409, 500, 503], |docker| docker.create(&new).map(drop)),
        [Some(Refused), Some(NoImage), Some(NameTaken), Some(Trouble), Some(Trouble)]
    );
    assert_eq!(
        kinds(&[400, 401, 404, 500], |docker| docker
            .pull("nginx", &Cancel::default(), &mut |_| {})
            .map(drop)),
        [Some(Refused), Some(Trouble), Some(Trouble), Some(Trouble)]
    );
}

fn made(heard: &Heard, stream: &mut UnixStream) -> Then {
    if heard.line.contains("/networks/create") {
        answer(stream, 409, r#"{"message":"network exists already"}"#)
    } else if heard.line.starts_with("DELETE") {
        answer(stream, 204, "")
    } else {
        answer(stream, 201, r#"{"Id":"c1","Warnings":null}"#)
    }
}

#[test]
fn workers_make_a_network_once() {
    let (server, docker) = engine(PATIENT_TIMEOUTS, made);
    docker.ping().unwrap();
    let create = || docker.create(&full_container()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(create);
        }
    });
    let made = |asked: &[String]| asked.iter().filter(|line| line.contains("/networks/")).count();
    assert_eq!(made(&asked(&server)), 1);
    // Once removed it is made again.
    docker.remove_network("bargee-s1-shop").unwrap();
    create();
    assert_eq!(made(&asked(&server)), 3);
}

#[test]
fn b107_a_container_is_made_from_all_that_was_declared() {
    let bodies: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&bodies);
    let (server, docker) = engine(PATIENT_TIMEOUTS, move |heard, stream| {
        log.lock().push(heard.body.clone());
        made(heard, stream)
    });
    assert_eq!(docker.create(&full_container()).unwrap().as_str(), "c1");
    assert_eq!(
        asked(&server),
        ["POST /v1.41/networks/create", "POST /v1.41/containers/create?name=bargee-web-1a2b3c4d",]
    );
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(
        json(&bodies.lock()[0]),
        json(r#"{"Name":"bargee-s1-shop","CheckDuplicate":true,"Labels":{"bargee.store":"s1"}}"#)
    );
    assert_eq!(
        json(&bodies.lock()[1]),
        json(
            r#"{
            "Image":"nginx:1","Entrypoint":["/init"],"Cmd":["serve","-v"],"Env":["A=1","B=x=y z"],
            "WorkingDir":"/srv","User":"101:101","StopSignal":"SIGINT","StopTimeout":3,
            "Healthcheck":{"Test":["CMD-SHELL","probe"],"Interval":30000000000,
            "Timeout":30000000000,"StartPeriod":0,"Retries":3},
            "Labels":{"bargee.application":"shop","bargee.node":"boat","bargee.store":"s1",
                "bargee.uid":"u1"},
            "ExposedPorts":{"80/tcp":{},"53/udp":{}},
            "HostConfig":{
                "PortBindings":{
                    "80/tcp":[{"HostIp":"","HostPort":"8080"},{"HostIp":"127.0.0.1","HostPort":""}],
                    "53/udp":[{"HostIp":"","HostPort":"53"}]},
                "Mounts":[
                    {"Type":"volume","Source":"bargee-shop.data","Target":"/data",
                        "ReadOnly":false,"VolumeOptions":{"Labels":{"bargee.application":"shop",
                        "bargee.node":"boat","bargee.store":"s1"}}},
                    {"Type":"bind","Source":"/etc/shop","Target":"/etc/shop","ReadOnly":true}],
                "NetworkMode":"bargee-s1-shop","RestartPolicy":{"Name":"no"},
                "NanoCpus":250000000,"Memory":67108864,
                "LogConfig":{"Type":"json-file",
                    "Config":{"max-size":"10485760","max-file":"3"}}},
            "NetworkingConfig":{"EndpointsConfig":{
                "bargee-s1-shop":{"Aliases":["web","web.shop"]}}}}"#
        )
    );
}

#[test]
fn what_was_not_declared_is_left_to_image_and_engine() {
    let mut new = full_container();
    new.network = None;
    let declared = Arc::make_mut(&mut new.declared);
    let spec = &mut declared.spec;
    (spec.entrypoint, spec.command, spec.working_dir, spec.user) = (None, None, None, None);
    spec.resources = Resources::default();
    spec.stop.signal = None;
    spec.log = Log { driver: "local".into(), max_files: 1, max_size_bytes: 1 << 20 };
    let body = serde_json::to_value(super::super::create::Create::new(&new)).unwrap();
    for absent in ["Entrypoint", "Cmd", "WorkingDir", "User", "StopSignal"] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
    let host = &body["HostConfig"];
    assert!(host.get("NanoCpus").is_none() && host.get("Memory").is_none());
    assert_eq!(host["NetworkMode"], "host");
    assert_eq!(body["NetworkingConfig"]["EndpointsConfig"], serde_json::json!({}));
    assert_eq!(host["LogConfig"]["Config"]["compress"], "false");

    Arc::make_mut(&mut new.declared).spec.log.driver = "journald".into();
    let body = serde_json::to_value(super::super::create::Create::new(&new)).unwrap();
    assert_eq!(
        body["HostConfig"]["LogConfig"],
        serde_json::json!({"Type": "journald", "Config": {}})
    );
}

#[test]
fn a_network_that_was_pruned_is_made_again_at_the_start() {
    let bodies: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&bodies);
    let (server, docker) = engine(PATIENT_TIMEOUTS, move |heard, stream| {
        let joined = log.lock().len() == 2;
        if heard.line.ends_with("/start") {
            return match joined {
                true => answer(stream, 204, ""),
                false => answer(stream, 404, r#"{"message":"network 17 not found"}"#),
            };
        }
        if heard.line.starts_with("GET") {
            return answer(stream, 200, &inspected("bargee-s1-shop"));
        }
        log.lock().push(heard.body.clone());
        answer(stream, if joined || log.lock().len() == 2 { 200 } else { 201 }, "{}")
    });
    docker.start(&ContainerId::new("c1")).unwrap();
    assert_eq!(
        asked(&server),
        [
            "POST /v1.41/containers/c1/start",
            "GET /v1.41/containers/c1/json",
            "POST /v1.41/networks/create",
            "POST /v1.41/networks/bargee-s1-shop/connect",
            "POST /v1.41/containers/c1/start",
        ]
    );
    let connect: serde_json::Value = serde_json::from_str(&bodies.lock()[1]).unwrap();
    assert_eq!(connect["EndpointConfig"]["Aliases"], serde_json::json!(["web"]));
}

/// An engine with two networks of one name, of which the first is in use, and a third one.
fn with_twin_networks() -> (Scripted, Docker) {
    let ambiguous = AtomicBool::new(true);
    engine(PATIENT_TIMEOUTS, move |heard, stream| {
        let list = r#"[{"Name":"bargee-s1-shop-2","Id":"n0"},{"Name":"bargee-s1-shop","Id":"n1"},
            {"Name":"bargee-s1-shop","Id":"n2"}]"#;
        let (method, path) = heard.line.split_once(' ').unwrap();
        match (method, path.trim_start_matches("/v1.41/")) {
            ("GET", "containers/c1/json") => answer(stream, 200, &inspected("bargee-s1-shop")),
            ("GET", _) => answer(stream, 200, list),
            ("DELETE", "networks/n1") => answer(stream, 403, r#"{"message":"in use"}"#),
            ("DELETE", "networks/n2") => {
                ambiguous.store(false, Ordering::SeqCst);
                answer(stream, 204, "")
            }
            _ if ambiguous.load(Ordering::SeqCst) => {
                answer(stream, 400, r#"{"message":"network is ambiguous"}"#)
            }
            _ => answer(stream, 204, ""),
        }
    })
}

#[test]
fn of_two_networks_of_one_name_the_one_that_is_not_used_goes() {
    let list = "GET /v1.41/networks?filters=%7B%22name%22%3A%5B%22bargee-s1-shop%22%5D%2C\
                %22label%22%3A%5B%22bargee.store%22%5D%7D";
    let unite = [list, "DELETE /v1.41/networks/n1", "DELETE /v1.41/networks/n2"];
    let (server, docker) = with_twin_networks();
    docker.start(&ContainerId::new("c1")).unwrap();
    let start = "POST /v1.41/containers/c1/start";
    let around = [start, "GET /v1.41/containers/c1/json"];
    assert_eq!(asked(&server), [&around[..], &unite, &[start]].concat());

    let (server, docker) = with_twin_networks();
    docker.remove_network("bargee-s1-shop").unwrap();
    let remove = "DELETE /v1.41/networks/bargee-s1-shop";
    assert_eq!(asked(&server), [&[remove], &unite[..], &[remove]].concat());
}

#[test]
fn a_start_tells_a_missing_container_from_other_things_missing() {
    let kind = |status| {
        let (_server, docker) = engine(PATIENT_TIMEOUTS, move |heard, stream| {
            if heard.line.starts_with("GET") {
                answer(stream, status, &inspected("host"))
            } else {
                answer(stream, 404, r#"{"message":"not found"}"#)
            }
        });
        docker.start(&ContainerId::new("c1")).unwrap_err().kind
    };
    assert_eq!(kind(404), FaultKind::NoContainer);
    assert_eq!(kind(500), FaultKind::Trouble);
    // It is there, and on no network of ours: something else is missing.
    assert_eq!(kind(200), FaultKind::Trouble);
}

/// An engine that is told to end answers on old connections to the last, and takes no new ones.
#[test]
fn an_exit_is_believed_of_an_engine_that_takes_new_connections_only() {
    let (server, docker) =
        engine(PATIENT_TIMEOUTS, |_, stream| answer(stream, 200, &inspected("host")));
    assert_eq!(docker.inspect("c1").unwrap().unwrap().exit_code, 3);
    assert_eq!(server.connections(), 2);
    std::fs::remove_file(server.socket()).unwrap();
    assert_eq!(docker.inspect("c1").unwrap_err().kind, FaultKind::Away);
    assert_eq!(server.connections(), 2);
}

/// Who it is only tells a known engine from another one. Everything waits for the answer, which may
/// never come from an engine that does all the rest.
#[test]
fn an_engine_that_cannot_say_who_it_is_is_used_all_the_same() {
    let (_server, docker) = engine(HASTY_TIMEOUTS, |heard, stream| {
        if heard.line.contains("/info") { Then::Keep } else { answer(stream, 200, "[]") }
    });
    assert_eq!(docker.identity().unwrap(), None);
    assert!(docker.list().unwrap().is_empty());
    for (status, body) in [(200, "<html>"), (200, "[]"), (500, "{}")] {
        let (_server, docker) =
            engine(PATIENT_TIMEOUTS, move |_, stream| answer(stream, status, body));
        assert_eq!(docker.identity().unwrap(), None, "{status} {body}");
    }
    let (_server, docker) = engine(PATIENT_TIMEOUTS, |_, _| Then::Close);
    assert_eq!(docker.identity().unwrap_err().kind, FaultKind::Away);
}
