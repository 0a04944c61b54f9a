//! What a container is made from.

use bargee::domain::declared::{Mount, MountSource};
use bargee::domain::fault::FaultKind;
use bargee::engine::Engine;
use bargee::os::unix_http;

use crate::kit::{DEADLINE, container, log, read, run_to_end, shell, with};
use crate::support;

fn mount(source: MountSource, target: &str, read_only: bool) -> Mount {
    Mount { source, target: target.to_owned(), read_only }
}

fn host(path: &std::path::Path) -> MountSource {
    MountSource::Host { path: path.to_str().unwrap().to_owned(), mounted: false }
}

pub fn what_was_declared_is_what_runs(engine: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("greeting");
    std::io::Write::write_all(&mut std::fs::File::create(&file).unwrap(), b"hello").unwrap();
    let line = r#"echo "$A" "$B"; pwd; id -u; cat /in/greeting; touch /in/x 2>&1 || echo no"#;
    let mut new = with(shell("declared", line), |spec| {
        spec.entrypoint = Some(vec!["env".into(), "B=two".into()]);
        spec.working_dir = Some("/var".into());
        spec.user = Some("1000:1000".into());
        spec.stop.signal = Some("SIGINT".into());
        spec.resources.cpus_milli = Some(500);
        spec.mounts = vec![mount(host(folder.path()), "/in", true)];
    });
    new.env.insert("A".into(), "one = 1 'quoted'".into());
    new.labels.insert("owner".into(), "me".into());
    let reading = run_to_end(engine, &new);
    assert_eq!(reading.exit_code, 0);
    assert_eq!(reading.stop_signal.as_deref(), Some("SIGINT"));
    let text = log(engine, &reading.id, None);
    assert!(text.starts_with("one = 1 'quoted' two\n/var\n1000\nhello"), "{text}");
    assert!(text.ends_with("no\n") && text.contains("Read-only file system"), "{text}");
}

pub fn named_volumes_outlive_their_containers(engine: &Engine) {
    let data = || vec![mount(MountSource::Volume("data".into()), "/data", false)];
    let write = with(shell("writer", "echo kept > /data/file"), |spec| spec.mounts = data());
    let writer = run_to_end(engine, &write);
    engine.remove(writer.id.as_str()).unwrap();
    let read = with(shell("reader", "cat /data/file"), |spec| spec.mounts = data());
    let reader = run_to_end(engine, &read);
    assert_eq!(log(engine, &reader.id, None), "kept\n");
}

pub fn a_missing_host_path_is_not_made_up(engine: &Engine) {
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
pub fn anonymous_volumes_go_with_their_container(engine: &Engine) {
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
