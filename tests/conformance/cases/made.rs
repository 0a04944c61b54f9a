//! What a container is made from.

use bargee::domain::declared::{Mount, MountSource, Port, Protocol};
use bargee::domain::fault::FaultKind;
use bargee::os::unix_http;

use serde_json::json;

use crate::kit::{DEADLINE, container, log, on_network, read, run_to_end, shell, with};
use crate::support;
use crate::tested::Tested;

fn mount(source: MountSource, target: &str, read_only: bool) -> Mount {
    Mount { source, target: target.to_owned(), read_only }
}

fn host(path: &std::path::Path) -> MountSource {
    MountSource::Host { path: path.to_str().unwrap().to_owned(), mounted: false }
}

pub fn what_was_declared_is_what_runs(engine: &Tested) {
    let mut new = with(shell("declared", r#"echo "$A" "$B"; pwd; id -u"#), |spec| {
        spec.entrypoint = Some(vec!["env".into(), "B=two".into()]);
        spec.working_dir = Some("/var".into());
        spec.user = Some("1000:1000".into());
        spec.stop.signal = Some("SIGINT".into());
        spec.resources.cpus_milli = Some(500);
    });
    new.env.insert("A".into(), "one = 1 'quoted'".into());
    new.labels.insert("owner".into(), "me".into());
    let reading = run_to_end(engine, &new);
    assert_eq!(reading.exit_code, 0);
    assert_eq!(reading.stop_signal.as_deref(), Some("SIGINT"));
    assert_eq!(log(engine, &reading.id, None), "one = 1 'quoted' two\n/var\n1000\n");
}

/// What the engine gives to the kernel, as it says itself.
pub fn what_was_asked_for_is_kept(engine: &Tested) {
    let folder = tempfile::tempdir().unwrap();
    let new = on_network(container("kept", &["true"]), "bargee-kept", &["web", "web.shop"]);
    let mut new = with(new, |spec| {
        spec.mounts = vec![
            mount(host(folder.path()), "/in", true),
            mount(MountSource::Volume("kept".into()), "/data", false),
        ];
        let (host_ip, host_port) = (Some("127.0.0.1".parse().unwrap()), Some(8123));
        let protocol = Protocol::Udp;
        spec.ports = vec![Port { host_ip, host_port, container_port: 53, protocol }];
    });
    new.labels.insert("owner".into(), "me".into());
    let id = engine.create(&new).unwrap();
    let kept = engine.api().container(id.as_str()).unwrap().inspect;

    assert_eq!(kept["Config"]["Labels"]["owner"], "me");
    let aliases = &kept["NetworkSettings"]["Networks"]["bargee-kept"]["Aliases"];
    let aliases: Vec<&str> = aliases.as_array().unwrap().iter().flat_map(|a| a.as_str()).collect();
    assert!(aliases.contains(&"web") && aliases.contains(&"web.shop"), "{aliases:?}");
    let bindings = &kept["HostConfig"]["PortBindings"]["53/udp"];
    assert_eq!(*bindings, json!([{"HostIp": "127.0.0.1", "HostPort": "8123"}]));
    assert_eq!(kept["HostConfig"]["RestartPolicy"]["Name"], "no");
    let at = |target: &str| {
        let mounts = kept["Mounts"].as_array().unwrap();
        mounts.iter().find(|mount| mount["Destination"] == target).unwrap()
    };
    let (bind, volume) = (at("/in"), at("/data"));
    assert_eq!((&bind["Type"], &bind["RW"]), (&json!("bind"), &json!(false)));
    assert_eq!(bind["Source"], folder.path().to_str().unwrap());
    assert_eq!((&volume["Type"], &volume["RW"]), (&json!("volume"), &json!(true)));
    assert_eq!(volume["Name"], "bargee-conformance.kept");
}

pub fn a_host_path_is_mounted(engine: &Tested) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("greeting");
    std::io::Write::write_all(&mut std::fs::File::create(&file).unwrap(), b"hello").unwrap();
    let new = with(shell("mounted", "cat /in/greeting; touch /in/x 2>&1 || echo no"), |spec| {
        spec.mounts = vec![mount(host(folder.path()), "/in", true)];
    });
    let reading = run_to_end(engine, &new);
    assert_eq!(reading.exit_code, 0);
    let text = log(engine, &reading.id, None);
    assert!(text.starts_with("hello"), "{text}");
    assert!(text.ends_with("no\n") && text.contains("Read-only file system"), "{text}");
}

pub fn named_volumes_outlive_their_containers(engine: &Tested) {
    let data = || vec![mount(MountSource::Volume("data".into()), "/data", false)];
    let write = with(shell("writer", "echo kept > /data/file"), |spec| spec.mounts = data());
    let writer = run_to_end(engine, &write);
    engine.remove(writer.id.as_str()).unwrap();
    let read = with(shell("reader", "cat /data/file"), |spec| spec.mounts = data());
    let reader = run_to_end(engine, &read);
    assert_eq!(log(engine, &reader.id, None), "kept\n");
}

pub fn a_missing_host_path_is_not_made_up(engine: &Tested) {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("disk");
    let new = with(container("diskless", &["true"]), |spec| {
        spec.mounts = vec![mount(host(&absent), "/in", false)];
    });
    let fault = engine.create(&new).and_then(|id| engine.start(&id)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    assert!(!absent.exists());
}

/// The contract cannot ask for an anonymous volume, but an image may declare one.
pub fn anonymous_volumes_go_with_their_container(engine: &Tested) {
    let agent = unix_http::agent(&support::engine::shared().socket(), DEADLINE);
    let base = run_to_end(engine, &container("layer", &["true"]));
    let commit = format!(
        "http://engine/commit?container={}&repo=localtest/volume&tag=1&changes=VOLUME%20/v",
        base.id
    );
    assert_eq!(agent.post(commit).send_empty().unwrap().status(), 201);
    let volumes = || {
        let mut answer = agent.get("http://engine/volumes").call().unwrap();
        let body = answer.body_mut().read_to_string().unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let names = body["Volumes"].as_array().into_iter().flatten();
        names.map(|volume| volume["Name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let new = with(shell("anonymous", "grep ' /v ' /proc/self/mountinfo"), |spec| {
        spec.image = "localtest/volume:1".into();
    });
    let reading = run_to_end(engine, &new);
    assert_eq!(reading.exit_code, 0);
    let text = log(engine, &reading.id, None);
    let mine = volumes().into_iter().find(|name| text.contains(name.as_str())).unwrap();
    engine.remove(read(engine, &reading.id).id.as_str()).unwrap();
    assert!(!volumes().contains(&mine));
}
