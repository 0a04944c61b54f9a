//! What is declared is what runs.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::support::agent::{Agent, write_file};
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::until;

/// The whole log of a workload that has ended.
fn log(agent: &Agent, name: &str) -> String {
    agent.until_state(name, "Succeeded(Ok)");
    agent.ok(&["logs", name])
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn environment_user_folder_and_entrypoint() {
    let agent = Agent::on(shared());
    let line = "env | sort; pwd; id -u; id -g; echo \"$0 $*\"";
    let job = Manifest::new("job", &["one", "two words"])
        .application("made")
        .restart("never")
        .with("entrypoint", json!(["sh", "-c", line, "program"]))
        .with("env", json!({"QUOTED": "a 'b' \"c\" $d", "NUMBER": 8, "NO": false}))
        .with("workingDir", "/var")
        .with("user", "app:nogroup");
    agent.deploy(&[job]);
    let log = log(&agent, "job");
    let uid = agent.workload("job").uid;
    let node = agent.node();
    let wanted = [
        "BARGEE_APPLICATION=made",
        "BARGEE_ENGINE=docker",
        "BARGEE_NAME=job",
        &format!("BARGEE_NODE={node}"),
        "BARGEE_SOURCE=local",
        &format!("BARGEE_UID={uid}"),
        "NO=false",
        "NUMBER=8",
        "QUOTED=a 'b' \"c\" $d",
    ];
    for line in wanted {
        assert!(log.lines().any(|one| one == line), "{line} is not in:\n{log}");
    }
    assert!(log.ends_with("/var\n1000\n65534\nprogram one two words\n"), "{log}");
}

#[test]
fn a_published_port_answers() {
    let agent = Agent::on(shared());
    let port = free_port();
    let line = "while :; do echo served | nc -l -p 8080; done";
    let ports = json!([format!("127.0.0.1:{port}:8080"), "9000/udp"]);
    agent.deploy(&[Manifest::shell("web", line).bridged().with("ports", ports)]);
    let web = agent.until_state("web", "Running(Ok)");
    assert!(web.ports.contains(&format!("127.0.0.1:{port}->8080/tcp")), "{:?}", web.ports);
    assert!(web.ports.iter().any(|one| one.ends_with("->9000/udp")), "{:?}", web.ports);
    assert!(agent.ok(&["ps"]).contains(&format!("127.0.0.1:{port}->8080/tcp")));
    until("the port to answer", || {
        let mut text = String::new();
        TcpStream::connect(("127.0.0.1", port)).ok()?.read_to_string(&mut text).ok()?;
        (text == "served\n").then_some(())
    });
}

#[test]
fn names_resolve_within_an_application() {
    let agent = Agent::on(shared());
    let server =
        Manifest::shell("server", "echo hello >/tmp/index.html; exec httpd -f -p 80 -h /tmp");
    let visit = |host: &str| format!("until wget -qO- http://{host}/; do sleep 0.1; done");
    let visitor = |name: &str, host: &str| Manifest::shell(name, &visit(host)).restart("never");
    let all = [server, visitor("short", "server"), visitor("long", "server.names")];
    agent.deploy(&all.map(|one| one.bridged().application("names").with("stop.grace", "1s")));
    for name in ["short", "long"] {
        assert!(log(&agent, name).ends_with("hello\n"), "{name}");
    }
    assert_ne!(agent.workload("server").ip_address, "");
    assert_eq!(agent.docker().networks(agent.node()).len(), 1);
}

#[test]
fn the_network_of_the_host_is_the_hosts() {
    let agent = Agent::on(shared());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("echo hello | nc 127.0.0.1 {port}");
    agent.deploy(&[Manifest::shell("job", &line).restart("never")]);
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
    agent.until_state("job", "Succeeded(Ok)");
}

#[test]
fn b29_named_volumes_stay_and_host_paths_are_waited_for() {
    let agent = Agent::on(shared());
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let mounts = json!(["data:/data", format!("{}:/disk:ro", disk.display())]);
    let line = "cat /disk/file; echo again >>/data/file; cat /data/file; \
                touch /disk/x 2>/dev/null || echo no";
    let job = Manifest::shell("job", line).application("mounts").restart("never");
    let job = job.with("volumes", mounts);
    agent.deploy(std::slice::from_ref(&job));
    let waiting = agent.until_state("job", "Pending(WaitingToStart)");
    assert!(waiting.state_info.contains(disk.to_str().unwrap()), "{}", waiting.state_info);
    // Not counted as a failure of the workload, and not made up.
    assert_eq!((waiting.failure_count, waiting.error_message.as_str()), (0, ""));
    assert!(!disk.exists());

    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    write_file(&other.join("file"), b"from the host\n");
    fs::rename(other, disk).unwrap();
    assert_eq!(log(&agent, "job"), "from the host\nagain\nno\n");

    agent.ok(&["rm", "job"]);
    let volume = "bargee-mounts.data";
    assert!(agent.docker().volumes().iter().any(|name| name == volume));
    agent.deploy(&[job]);
    assert!(log(&agent, "job").contains("again\nagain\n"), "the volume is the same");
    agent.ok(&["rm", "job"]);
    assert!(agent.docker().delete(&format!("/volumes/{volume}")));
}

#[test]
fn a_disk_that_must_be_mounted_is_waited_for() {
    let agent = Agent::on(shared());
    let with = |name: &str, mount: &str| Manifest::service(name).with("volumes", json!([mount]));
    // One folder is a file system of its own everywhere, and one is not.
    let all = [with("mounted", "/dev/shm:/disk:mounted"), with("bare", "/etc:/disk:ro,mounted")];
    agent.deploy(&all);
    agent.until_running(&["mounted"]);
    let bare = agent.until_state("bare", "Pending(WaitingToStart)");
    assert!(bare.state_info.contains("nothing is mounted there"), "{}", bare.state_info);
    assert_eq!(agent.containers().len(), 1);
}

/// The file of a control group, whatever its version is called.
fn cgroup_file(pid: u32, version_2: &str, controller: &str, version_1: &str) -> String {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let find = |prefix: &str| {
        groups.lines().find_map(|line| {
            let (_, line) = line.split_once(':')?;
            let (controllers, path) = line.split_once(':')?;
            controllers.split(',').any(|one| one == prefix).then(|| path.to_owned())
        })
    };
    let file = match find(controller) {
        Some(path) => format!("/sys/fs/cgroup/{controller}{path}/{version_1}"),
        None => format!("/sys/fs/cgroup{}/{version_2}", find("").unwrap()),
    };
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}")).trim().to_owned()
}

#[test]
fn limits_of_resources_and_log() {
    let agent = Agent::on(shared());
    let web = Manifest::service("web")
        .with("resources", json!({"cpus": 0.25, "memory": "48Mi"}))
        .with("log", json!({"maxSize": "2Mi", "maxFiles": 2}));
    agent.deploy(&[web, Manifest::service("plain")]);
    let workloads = agent.until_running(&["web", "plain"]);
    let host = |name: &str| agent.container(name).inspect["HostConfig"].clone();
    let (web, plain) = (host("web"), host("plain"));
    assert_eq!((&web["NanoCpus"], &web["Memory"]), (&json!(250_000_000), &json!(48 << 20)));
    assert_eq!((&plain["NanoCpus"], &plain["Memory"]), (&json!(0), &json!(0)));
    let limits = |size: &str, files: &str| {
        let config = json!({"max-size": size, "max-file": files});
        json!({"Type": "json-file", "Config": config})
    };
    assert_eq!(web["LogConfig"], limits("2097152", "2"));
    assert_eq!(plain["LogConfig"], limits("10485760", "3"));
    assert_eq!(web["RestartPolicy"]["Name"], "no");

    let pid = workloads[0].pid;
    let memory = cgroup_file(pid, "memory.max", "memory", "memory.limit_in_bytes");
    assert_eq!(memory, (48 << 20).to_string());
    let quota = cgroup_file(pid, "cpu.max", "cpu", "cpu.cfs_quota_us");
    let quota: u64 = quota.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(quota, 25_000);
}

/// What a container is said to be when it is read, less what differs for each one.
fn settings(agent: &Agent, name: &str) -> Value {
    let mut inspect = agent.container(name).inspect;
    let (mut config, host) = (inspect["Config"].take(), inspect["HostConfig"].take());
    config["Hostname"].take();
    config["Labels"]["bargee.instance"].take();
    json!([config, host])
}

#[test]
fn b107_a_container_is_made_again_from_its_manifest_and_not_from_the_one_before() {
    let agent = Agent::on(shared());
    let web = Manifest::service("web")
        .bridged()
        .application("again")
        .label("tier", "front")
        .with("env", json!({"COLOUR": "blue"}))
        .with("workingDir", "/var")
        .with("user", "app:nogroup")
        .with("ports", json!([format!("127.0.0.1:{}:8080", free_port())]))
        .with("volumes", json!(["data:/data", "/etc:/host:ro"]))
        .with("resources", json!({"cpus": 0.25, "memory": "48Mi"}))
        .with("log", json!({"maxSize": "2Mi", "maxFiles": 2}));
    agent.deploy(&[web]);
    let first = agent.until_state("web", "Running(Ok)");
    let before = settings(&agent, "web");
    assert_eq!(before[1]["Memory"], json!(48 << 20));
    let by_hand = json!({"Memory": 64 << 20, "MemorySwap": 128 << 20, "CpuShares": 512});
    agent.docker().post(&format!("/containers/{}/update", first.container_id), &by_hand);
    assert_ne!(settings(&agent, "web"), before);
    agent.ok(&["rebuild", "web"]);
    until("the old container to be gone", || (agent.containers().len() == 1).then_some(()));
    assert_ne!(agent.container("web").id, first.container_id);
    assert_eq!(settings(&agent, "web"), before);
    agent.ok(&["rm", "web"]);
    assert!(agent.docker().delete("/volumes/bargee-again.data"));
}

#[test]
fn what_a_busy_workload_uses_is_told() {
    let agent = Agent::on(shared());
    agent.deploy(&[Manifest::shell("busy", "while :; do :; done").with("stop.signal", "KILL")]);
    let busy = agent.until("busy", "seen to be busy", |one| {
        one.cpu_usage.is_some_and(|percent| percent > 1.0) && one.memory_usage.is_some()
    });
    assert!(busy.memory_usage.unwrap() > 0);
    assert!(agent.ok(&["ps"]).contains('%'));
    agent.ok(&["stop", "busy"]);
}
