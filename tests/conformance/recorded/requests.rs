//! The fixed list of requests whose answers are recorded. It can be asked of any engine.

use std::net::TcpListener;
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use super::asker::Asker;
use crate::kit::DEADLINE;
use crate::support::engine::IMAGE;
use crate::support::recorded::Recorded;
use crate::support::until;
use crate::tested::Tested;

/// `{"label":["bargee.uid"]}`, as bargee asks for its listing.
const OURS: &str = "%7B%22label%22%3A%5B%22bargee.uid%22%5D%7D";
/// `{"type":["container"],"label":["bargee.uid"]}`.
const OUR_EVENTS: &str =
    "%7B%22type%22%3A%5B%22container%22%5D%2C%22label%22%3A%5B%22bargee.uid%22%5D%7D";
/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
const NETWORK: &str = "bargee-recorded";

/// Asks for everything, and leaves nothing behind but the image that was pulled.
pub fn record(tested: &Tested) -> Vec<(&'static str, Recorded)> {
    let mut asker = Asker::new(tested);
    let events = asker.events(OUR_EVENTS);
    engine(&mut asker);
    let web = web(&mut asker);
    refused_creates(&mut asker);
    let others = [
        exited(&mut asker),
        out_of_memory(&mut asker),
        without_command(&mut asker),
        without_port(&mut asker),
        without_network(&mut asker),
        healthy(&mut asker),
    ];
    let mine = [&[web.clone()][..], &others].concat();
    listings(&mut asker, &mine);
    absent(&mut asker);
    pulls(&mut asker);
    asker.keep("remove", &format!("DELETE /containers/{web}?force=1&v=1"), &Value::Null);
    for id in &others {
        asker.ask(&format!("DELETE /containers/{id}?force=1&v=1"), &Value::Null);
    }
    asker.keep("network-removed", &format!("DELETE /networks/{NETWORK}"), &Value::Null);
    let lines = events_until_gone(&events, &mine);
    let request = "GET /events?filters=".to_owned() + OUR_EVENTS;
    asker.answers.push(("events", Recorded { request, status: 200, body: Value::Null, lines }));
    asker.answers
}

fn engine(asker: &mut Asker) {
    for (name, request) in
        [("ping", "GET /_ping"), ("version", "GET /version"), ("info", "GET /info")]
    {
        asker.keep(name, request, &Value::Null);
    }
}

/// A create as bargee asks for it.
fn body(name: &str, command: &[&str]) -> Value {
    json!({
        "Image": IMAGE, "Cmd": command, "Env": ["A=1"], "ExposedPorts": {}, "StopTimeout": 1,
        "Labels": {
            "bargee.uid": name, "bargee.application": "recorded", "bargee.name": name,
            "bargee.instance": instance(name), "bargee.generation": "1",
            "bargee.spec-hash": "1-abc", "bargee.store": "recorded", "bargee.node": "node",
            "bargee.source": "local"
        },
        "HostConfig": {
            "PortBindings": {}, "Mounts": [], "NetworkMode": "host",
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1048576", "max-file": "2"}}
        },
        "NetworkingConfig": {"EndpointsConfig": {}}
    })
}

fn on_network(mut body: Value, network: &str, alias: &str) -> Value {
    body["HostConfig"]["NetworkMode"] = network.into();
    body["NetworkingConfig"]["EndpointsConfig"][network] = json!({"Aliases": [alias]});
    body
}

fn with_port(mut body: Value, host_port: &str) -> Value {
    body["ExposedPorts"]["8080/tcp"] = json!({});
    let binding = json!([{"HostIp": "127.0.0.1", "HostPort": host_port}]);
    body["HostConfig"]["PortBindings"]["8080/tcp"] = binding;
    body
}

fn instance(name: &str) -> String {
    format!("bargee-{name}-00000001")
}

fn create(name: &str) -> String {
    format!("POST /containers/create?name={}", instance(name))
}

fn make(asker: &Asker, name: &str, body: &Value) -> String {
    let made = asker.ask(&create(name), body);
    made.body["Id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

fn inspect(id: &str) -> String {
    format!("GET /containers/{id}/json")
}

fn start(id: &str) -> String {
    format!("POST /containers/{id}/start")
}

/// A container that runs on a network of its own.
fn web(asker: &mut Asker) -> String {
    let network = json!({
        "Name": NETWORK, "CheckDuplicate": true, "Labels": {"bargee.store": "recorded"}
    });
    asker.keep("network-made", "POST /networks/create", &network);
    asker.keep("network-taken", "POST /networks/create", &network);
    let sleeps = body("recorded-web", &["sleep", "1000"]);
    let mut web = on_network(with_port(sleeps, ""), NETWORK, "web");
    web["StopSignal"] = "SIGINT".into();
    let made = asker.keep("create", &create("recorded-web"), &web);
    let id = made["Id"].as_str().unwrap().to_owned();
    asker.keep("create-name-taken", &create("recorded-web"), &web);
    asker.keep("inspect-created", &inspect(&id), &Value::Null);
    asker.keep("start", &start(&id), &Value::Null);
    asker.keep("start-again", &start(&id), &Value::Null);
    asker.keep("inspect-running", &inspect(&id), &Value::Null);
    let kill = format!("POST /containers/{id}/kill?signal=");
    asker.keep("kill", &(kill.clone() + "SIGUSR1"), &Value::Null);
    asker.keep("kill-bad-signal", &(kill + "SIGNOPE"), &Value::Null);
    asker.keep("network-in-use", &format!("DELETE /networks/{NETWORK}"), &Value::Null);
    id
}

fn refused_creates(asker: &mut Asker) {
    let refused = create("recorded-refused");
    let mut absent = body("recorded-refused", &["true"]);
    absent["Image"] = "localtest/absent:1".into();
    asker.keep("create-no-image", &refused, &absent);
    absent["Image"] = "No Image//".into();
    asker.keep("create-bad-reference", &refused, &absent);
    let mut diskless = body("recorded-refused", &["true"]);
    diskless["HostConfig"]["Mounts"] =
        json!([{"Type": "bind", "Source": "/srv/absent", "Target": "/in", "ReadOnly": false}]);
    asker.keep("create-missing-mount", &refused, &diskless);
}

/// Makes, starts and waits for the end.
fn run(asker: &Asker, name: &str, body: &Value) -> String {
    let id = make(asker, name, body);
    assert_eq!(asker.ask(&start(&id), &Value::Null).status, 204);
    until_state(asker, &id, |state| state["Status"] == "exited");
    id
}

fn until_state(asker: &Asker, id: &str, is: impl Fn(&Value) -> bool) {
    until("the container to be as it should be", || {
        is(&asker.ask(&inspect(id), &Value::Null).body["State"]).then_some(())
    });
}

fn exited(asker: &mut Asker) -> String {
    let id = run(asker, "recorded-exit", &body("recorded-exit", &["sh", "-c", "exit 7"]));
    asker.keep("inspect-exited", &inspect(&id), &Value::Null);
    let kill = format!("POST /containers/{id}/kill?signal=SIGTERM");
    asker.keep("kill-stopped", &kill, &Value::Null);
    id
}

fn out_of_memory(asker: &mut Asker) -> String {
    let mut greedy = body("recorded-greedy", &["tail", "/dev/zero"]);
    greedy["HostConfig"]["Memory"] = (16 << 20).into();
    let id = run(asker, "recorded-greedy", &greedy);
    asker.keep("inspect-oom-killed", &inspect(&id), &Value::Null);
    id
}

fn without_command(asker: &mut Asker) -> String {
    let id = make(asker, "recorded-nothing", &body("recorded-nothing", &["/no/such/command"]));
    asker.keep("start-no-command", &start(&id), &Value::Null);
    asker.keep("inspect-start-failed", &inspect(&id), &Value::Null);
    id
}

fn without_port(asker: &mut Asker) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = listener.local_addr().unwrap().port().to_string();
    let sleeps = body("recorded-portless", &["sleep", "1000"]);
    let portless = on_network(with_port(sleeps, &number), NETWORK, "portless");
    let id = make(asker, "recorded-portless", &portless);
    asker.keep("start-port-taken", &start(&id), &Value::Null);
    id
}

fn without_network(asker: &mut Asker) -> String {
    const GONE: &str = "bargee-recorded-gone";
    let sleeps = body("recorded-lonely", &["sleep", "1000"]);
    let id = make(asker, "recorded-lonely", &on_network(sleeps, GONE, "lonely"));
    asker.keep("start-without-network", &start(&id), &Value::Null);
    asker.keep("inspect-without-network", &inspect(&id), &Value::Null);
    let join = format!("POST /networks/{GONE}/connect");
    let names = json!({"Container": id, "EndpointConfig": {"Aliases": ["lonely"]}});
    asker.keep("join-absent", &join, &names);
    let network = json!({"Name": GONE, "CheckDuplicate": true, "Labels": {}});
    asker.ask("POST /networks/create", &network);
    asker.keep("join", &join, &names);
    assert_eq!(asker.ask(&start(&id), &Value::Null).status, 204);
    // No container is on it any more when the next one asks for it.
    asker.ask(&format!("POST /containers/{id}/kill?signal=SIGKILL"), &Value::Null);
    until_state(asker, &id, |state| state["Status"] == "exited");
    asker.ask(&format!("DELETE /networks/{GONE}"), &Value::Null);
    id
}

fn healthy(asker: &mut Asker) -> String {
    let mut healthy = body("recorded-healthy", &["sleep", "1000"]);
    healthy["Healthcheck"] = json!({
        "Test": ["CMD", "true"], "Interval": SECOND, "Timeout": 60 * SECOND, "Retries": 100
    });
    let id = make(asker, "recorded-healthy", &healthy);
    asker.ask(&start(&id), &Value::Null);
    until_state(asker, &id, |state| state["Health"]["Status"] == "healthy");
    asker.keep("inspect-healthy", &inspect(&id), &Value::Null);
    id
}

/// Other containers and networks of the engine are left out.
fn listings(asker: &mut Asker, mine: &[String]) {
    let is_mine = |one: &Value| mine.iter().any(|id| one["Id"] == id.as_str());
    let request = format!("GET /containers/json?all=1&filters={OURS}");
    let mut list = asker.ask(&request, &Value::Null);
    list.body.as_array_mut().unwrap().retain(is_mine);
    asker.answers.push(("list", list));
    let mut networks = asker.ask("GET /networks", &Value::Null);
    networks.body.as_array_mut().unwrap().retain(|one| one["Name"] == NETWORK);
    asker.answers.push(("networks", networks));
}

fn absent(asker: &mut Asker) {
    for (name, request) in [
        ("inspect-absent", "GET /containers/recorded-absent/json"),
        ("start-absent", "POST /containers/recorded-absent/start"),
        ("kill-absent", "POST /containers/recorded-absent/kill?signal=SIGTERM"),
        ("remove-absent", "DELETE /containers/recorded-absent?force=1&v=1"),
        ("network-absent", "DELETE /networks/recorded-absent"),
        ("image-absent", "GET /images/localtest%2Fabsent:1/json"),
    ] {
        asker.keep(name, request, &Value::Null);
    }
    let image = format!("GET /images/{}/json", IMAGE.replace('/', "%2F"));
    asker.keep("image", &image, &Value::Null);
}

fn pulls(asker: &mut Asker) {
    let pullable = asker.tested.pullable();
    let pull = |image: &str| {
        let (name, tag) = image.rsplit_once(':').unwrap();
        format!("POST /images/create?fromImage={}&tag={tag}", name.replace(' ', "%20"))
    };
    asker.keep_lines("pull", &pull(&pullable.image));
    asker.keep_lines("pull-again", &pull(&pullable.image));
    asker.keep("pull-no-tag", &pull(&pullable.absent), &Value::Null);
    asker.keep("pull-no-registry", &pull("127.0.0.1:1/nobody/listens:1"), &Value::Null);
    asker.keep("pull-bad-reference", &pull("Not An Image//:1"), &Value::Null);
    if let Some(cut) = pullable.without_layers() {
        asker.keep_lines("pull-cut", &pull(&cut));
    }
}

/// The events of `mine` until all of them were removed.
fn events_until_gone(events: &Receiver<Value>, mine: &[String]) -> Vec<Value> {
    let is = |line: &Value, id: &String| line["Actor"]["ID"] == id.as_str();
    let mut lines: Vec<Value> = Vec::new();
    let is_gone =
        |lines: &[Value], id| lines.iter().any(|line| is(line, id) && line["Action"] == "destroy");
    while !mine.iter().all(|id| is_gone(&lines, id)) {
        let line = events.recv_timeout(DEADLINE).unwrap();
        if mine.iter().any(|id| is(&line, id)) {
            lines.push(line);
        }
    }
    // How often a probe ran depends on how long all this took.
    lines.retain(|line| !line["Action"].as_str().unwrap().starts_with("exec_"));
    lines
}
