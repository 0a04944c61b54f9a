//! Networks, names and ports.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};

use bargee::domain::declared::{Port, Protocol};
use bargee::domain::event::ContainerAction;
use bargee::domain::fault::FaultKind;
use bargee::domain::names::ContainerId;
use bargee::domain::observed::Phase;

use crate::kit::{Watch, container, log, on_network, read, run, run_to_end, shell, with};
use crate::tested::Tested;

fn server(name: &str) -> bargee::domain::effect::NewContainer {
    container(name, &["httpd", "-f", "-p", "8080", "-h", "/etc"])
}

/// Fetches a file from a server that may not listen yet.
fn visitor(name: &str, host: &str) -> bargee::domain::effect::NewContainer {
    let line = format!(
        "for n in $(seq 200); do wget -qO- http://{host}:8080/group && exit; sleep 0.1; done; \
         exit 9"
    );
    shell(name, &line)
}

fn port(host_port: Option<u16>) -> Port {
    let host_ip = Some("127.0.0.1".parse().unwrap());
    Port { host_ip, host_port, container_port: 8080, protocol: Protocol::Tcp }
}

pub fn names_resolve_on_the_network_of_an_application(engine: &Tested) {
    let id = run(engine, &on_network(server("named"), "bargee-names", &["web", "web.shop"]));
    assert!(read(engine, &id).ip.is_some());
    for (visit, host) in [("short", "web"), ("long", "web.shop")] {
        let new = on_network(visitor(visit, host), "bargee-names", &[visit]);
        let reading = run_to_end(engine, &new);
        assert_eq!(reading.exit_code, 0, "{host}");
        assert!(log(engine, &reading.id, None).starts_with("root:x:0:"));
    }
}

/// As `docker network prune` does to a server between two runs.
pub fn names_resolve_on_a_network_that_was_made_again(engine: &Tested) {
    let fresh = on_network(server("unstarted"), "bargee-pruned", &["web"]);
    let fresh = engine.create(&fresh).unwrap();
    let ran = on_network(visitor("ran", "web"), "bargee-pruned", &["ran"]);
    let ran = run(engine, &ran);
    kill(engine, &ran);

    engine.remove_network("bargee-pruned").unwrap();
    let watch = Watch::new(engine);
    engine.start(&ran).unwrap();
    engine.start(&fresh).unwrap();
    watch.until(&ran, ContainerAction::Died);
    assert_eq!(read(engine, &ran).exit_code, 0);
}

fn kill(engine: &Tested, id: &ContainerId) {
    engine.signal(id, "SIGKILL").unwrap();
    while read(engine, id).phase == Phase::Running {}
}

/// Makes and starts what publishes a port; the port, and where it is reached.
fn publish(engine: &Tested, name: &str, line: &str) -> String {
    let new = on_network(shell(name, line), "bargee-published", &[name]);
    let id = run(engine, &with(new, |spec| spec.ports = vec![port(None)]));
    let ports = read(engine, &id).ports;
    let [published] = &ports[..] else { panic!("{ports:?}") };
    published.strip_suffix("->8080/tcp").unwrap().to_owned()
}

pub fn a_published_port_is_told(engine: &Tested) {
    let address: SocketAddr = publish(engine, "told", "sleep 1000").parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() > 0, "{address}");
}

pub fn a_published_port_answers(engine: &Tested) {
    let address = publish(engine, "published", "while :; do echo served | nc -l -p 8080; done");
    // The engine listens at once, and drops a connection while the process behind does not.
    let answer = (0..10_000).find_map(|_| {
        let mut text = String::new();
        TcpStream::connect(&address).unwrap().read_to_string(&mut text).ok()?;
        (!text.is_empty()).then_some(text)
    });
    assert_eq!(answer.as_deref(), Some("served\n"));
}

pub fn a_taken_port_is_trouble_that_time_heals(engine: &Tested) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let number = listener.local_addr().unwrap().port();
    let new = on_network(server("portless"), "bargee-portless", &["portless"]);
    let new = with(new, |spec| spec.ports = vec![port(Some(number))]);
    let id = engine.create(&new).unwrap();
    assert_eq!(engine.start(&id).unwrap_err().kind, FaultKind::Trouble);
    assert_eq!(read(engine, &id).pid, 0);
    drop(listener);
    engine.start(&id).unwrap();
    assert_eq!(read(engine, &id).ports, [format!("127.0.0.1:{number}->8080/tcp")]);
}

pub fn the_network_of_the_host_has_no_address(engine: &Tested) {
    let id = run(engine, &container("hosted", &["sleep", "1000"]));
    let reading = read(engine, &id);
    assert_eq!((reading.ip, reading.ports), (None, Vec::new()));
}

pub fn a_network_in_use_is_left(engine: &Tested) {
    let id = run(engine, &on_network(server("user"), "bargee-used", &["user"]));
    let network = || {
        let all = engine.api().read("/networks");
        let mut all = all.as_array().unwrap().iter();
        all.find(|one| one["Name"] == "bargee-used").map(|one| one["Id"].clone())
    };
    let before = network();
    assert!(before.is_some());
    engine.remove_network("bargee-used").unwrap();
    engine.remove_network("bargee-never-was").unwrap();
    assert_eq!(network(), before);
    let next = on_network(server("next"), "bargee-used", &["next"]);
    assert!(read(engine, &run(engine, &next)).ip.is_some());
    assert_eq!(network(), before);
    assert_eq!(read(engine, &id).phase, Phase::Running);
}

/// As `docker network prune` does to a workload between two runs, and to one never started.
pub fn a_network_that_was_removed_is_made_again_at_the_start(engine: &Tested) {
    let fresh = on_network(server("awaits"), "bargee-gone", &["awaits"]);
    let fresh = engine.create(&fresh).unwrap();
    let ran = run(engine, &on_network(server("once"), "bargee-gone", &["once"]));
    kill(engine, &ran);

    engine.remove_network("bargee-gone").unwrap();
    for (id, alias) in [(&ran, "once"), (&fresh, "awaits")] {
        engine.start(id).unwrap();
        assert!(read(engine, id).ip.is_some());
        let made = engine.api().container(id.as_str()).unwrap().inspect;
        let aliases = &made["NetworkSettings"]["Networks"]["bargee-gone"]["Aliases"];
        assert!(aliases.as_array().unwrap().iter().any(|one| one == alias), "{aliases}");
    }
}
