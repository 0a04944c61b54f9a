//! Field by field: what is accepted and what it means, what is refused and how.

use super::*;
use crate::domain::declared::{MountSource, Network, Pull, Rerun, RestartPolicy};
use crate::domain::time::Span;

#[test]
fn defaults_are_filled_in() {
    let declared = accepted(&workload(""));
    assert_eq!(declared.key.to_string(), "default/web");
    let spec = &declared.spec;
    assert_eq!((spec.pull, spec.network), (Pull::Missing, Network::Bridge));
    assert_eq!(spec.restart.policy, RestartPolicy::Always);
    assert_eq!((spec.restart.delay, spec.restart.max_delay), (Span(10_000), Span(300_000)));
    assert_eq!((spec.stop.signal.as_deref(), spec.stop.grace), (None, Span(10_000)));
    let log = &spec.log;
    assert_eq!((log.driver.as_str(), log.max_size_bytes, log.max_files), ("", 10 << 20, 3));
    assert_eq!(
        &*declared.manifest,
        "{\"apiVersion\":\"bargee/v1\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"web\",\
         \"application\":\"default\"},\"spec\":{\"image\":\"a\",\"pull\":\"missing\",\
         \"network\":\"bridge\",\"restart\":{\"policy\":\"always\",\"delay\":\"10s\",\
         \"maxDelay\":\"300s\",\"stuck\":\"retry\"},\"rerun\":\"never\",\
         \"stop\":{\"grace\":\"10s\"},\
         \"schedule\":100,\
         \"log\":{\"driver\":\"\",\"maxSize\":\"10Mi\",\"maxFiles\":3}}}"
    );
}

#[test]
fn every_field_is_read() {
    let text = "
apiVersion: bargee/v1
kind: Workload
metadata: {name: web, application: shop, labels: {tier: front, rev: 08}}
spec:
  image: registry.example:5000/team/app:2@sha256:00
  pull: always
  entrypoint: [/entry]
  command: [sleep, 3600, \"a b\", no]
  workingDir: /srv
  user: 101:101
  env: {TZ: Europe/Oslo, NO: no, OCT: 08, VERSION: 1.10, EMPTY: \"\", NULL: \"null\"}
  ports: [8080:80, \"127.0.0.1:5353:53/udp\", \"[::1]:80:80\", 9000, 127.0.0.1::7000]
  volumes: [data:/var/lib/app, /etc/shop:/etc/shop:ro, /mnt/disk:/data:mounted]
  network: bridge
  resources: {cpus: 0.5, memory: 96Mi}
  restart: {policy: on-failure, delay: 500ms, maxDelay: 1h30m, stuck: hold}
  rerun: boot
  stop: {signal: usr1, grace: 0s}
  schedule: 20
  log: {driver: local, maxSize: 64M, maxFiles: 1}
";
    let manifest = accepted(text).manifest;
    let (metadata, spec) = manifest.split_once(",\"spec\":").unwrap();
    assert_eq!(
        metadata.split_once("\"metadata\":").unwrap().1,
        "{\"name\":\"web\",\"application\":\"shop\",\"labels\":{\"rev\":\"08\",\"tier\":\"front\"}}"
    );
    assert_eq!(
        spec,
        "{\"image\":\"registry.example:5000/team/app:2@sha256:00\",\"pull\":\"always\",\
         \"entrypoint\":[\"/entry\"],\"command\":[\"sleep\",\"3600\",\"a b\",\"no\"],\
         \"workingDir\":\"/srv\",\"user\":\"101:101\",\"env\":{\"EMPTY\":\"\",\"NO\":\"no\",\
         \"NULL\":\"null\",\"OCT\":\"08\",\"TZ\":\"Europe/Oslo\",\"VERSION\":\"1.10\"},\
         \"ports\":[\"8080:80\",\"127.0.0.1:5353:53/udp\",\"[::1]:80:80\",\"9000\",\
         \"127.0.0.1::7000\"],\"volumes\":[\"data:/var/lib/app\",\"/etc/shop:/etc/shop:ro\",\
         \"/mnt/disk:/data:mounted\"],\"network\":\"bridge\",\"resources\":{\"cpus\":0.5,\
         \"memory\":\"96Mi\"},\"restart\":{\"policy\":\"on-failure\",\"delay\":\"500ms\",\
         \"maxDelay\":\"5400s\",\"stuck\":\"hold\"},\
         \"rerun\":\"boot\",\"stop\":{\"signal\":\"SIGUSR1\",\"grace\":\"0s\"},\"schedule\":20,\
         \"log\":{\"driver\":\"local\",\"maxSize\":\"64000000\",\"maxFiles\":1}}}"
    );
}

#[test]
fn the_head_is_checked() {
    refused(
        "kind: Workload\n",
        &[
            "f.yaml:1: apiVersion: is missing",
            "f.yaml:1: metadata: is missing",
            "f.yaml:1: spec: is missing",
        ],
    );
    refused("apiVersion: v1\nkind: Pod\n", &["f.yaml:2: kind: must be Workload, found \"Pod\""]);
    refused("kind: Registry\nurl: x\n", &["f.yaml:1: kind: Registry is not supported yet"]);
    refused("a: 1\n", &["f.yaml:1: kind: is missing"]);
    refused(
        "- a\n",
        &["f.yaml:1: must be a mapping with apiVersion, kind, metadata and spec, found a list"],
    );
    refused(
        &workload("").replace("bargee/v1", "v1"),
        &["f.yaml:1: apiVersion: must be bargee/v1, found \"v1\""],
    );
}

#[test]
fn names_and_labels_are_checked() {
    let head = |metadata: &str| {
        format!("apiVersion: bargee/v1\nkind: Workload\nmetadata: {metadata}\nspec: {{image: a}}\n")
    };
    for (metadata, problem) in [
        ("{}", "metadata.name: is missing"),
        ("web", "metadata: must be a mapping as {name: ...}, found \"web\""),
        (
            "{name: Web}",
            "metadata.name: may only have lower-case letters, digits and '-', found \
          \"Web\"",
        ),
        (
            "{name: a, application: -b}",
            "metadata.application: may not begin or end with '-', \
          found \"-b\"",
        ),
        ("{name: }", "metadata.name: must be a DNS label as web-1, found nothing"),
        (
            "{name: a, labels: {bargee.uid: 1}}",
            "metadata.labels.\"bargee.uid\": begins with \
          bargee., which only bargee itself sets",
        ),
        (
            "{name: a, labels: {a: ~}}",
            "metadata.labels.a: must be a string, number or boolean, \
          found nothing",
        ),
        (
            "{name: a, labels: [a]}",
            "metadata.labels: must be a mapping of labels to values, found \
          a list",
        ),
        (
            "{name: a, lables: {}}",
            "metadata.lables: is unknown; did you mean labels? Allowed are \
          name, application, labels",
        ),
    ] {
        refused(&head(metadata), &[&format!("f.yaml:3: {problem}")]);
    }
}

#[test]
fn later_fields_are_refused_with_any_value() {
    for key in shape::SPEC.later {
        for value in ["~", "{}", "[]", "false", "\"\"", "x"] {
            let problem = format!("7: spec.{key}: is not supported yet");
            each_refused(&[(&format!("  {key}: {value}\n"), &problem)]);
        }
    }
    for key in shape::RESOURCES.later {
        let problem = format!("7: spec.resources.{key}: is not supported yet");
        each_refused(&[(&format!("  resources: {{{key}: 0}}\n"), &problem)]);
    }
    each_refused(&[
        ("  env: {PW: {file: /a}}\n", "7: spec.env.PW.file: is not supported yet"),
        ("  network: none\n", "7: spec.network: \"none\" is not supported yet; use bridge or host"),
        ("  network: lan\n", "7: spec.network: \"lan\" is not supported yet; use bridge or host"),
        (
            "  log: {driver: syslog}\n",
            "7: spec.log.driver: \"syslog\" is not supported yet; use json-file, local or \"\" for \
             the engine's default",
        ),
    ]);
}

#[test]
fn unknown_keys_name_the_known_ones() {
    each_refused(&[
        (
            "  restart: {polcy: never}\n",
            "7: spec.restart.polcy: is unknown; did you mean policy? Allowed are policy, delay, \
             maxDelay, stuck",
        ),
        ("  stop:\n    x: 1\n", "8: spec.stop.x: is unknown; allowed are signal, grace"),
        (
            "  hostnam: a\n",
            "7: spec.hostnam: is unknown; did you mean hostname? Allowed are image, pull, \
             entrypoint, command, workingDir, user, env, ports, volumes, network, resources, \
             restart, rerun, stop, healthCheck, schedule, log",
        ),
    ]);
}

#[test]
fn texts_are_checked() {
    let image = |found: &str, fault: &str| {
        format!(
            "must be an image as nginx:1.27 or registry.example/team/app:2, found {found}, {fault}"
        )
    };
    for (written, found, fault) in [
        ("\"\"", "\"\"", "which is empty"),
        ("a b", "\"a b\"", "which has a space or control character"),
        ("http://a/b", "\"http://a/b\"", "which is a URL"),
        ("Nginx", "\"Nginx\"", "which has upper-case letters in the repository"),
        ("a/B:1", "\"a/B:1\"", "which has upper-case letters in the repository"),
        ("\"a:\"", "\"a:\"", "which has an empty part"),
        ("a//b", "\"a//b\"", "which has an empty part"),
        ("a@b", "\"a@b\"", "which has an empty part"),
    ] {
        let text = workload("").replace("image: a", &format!("image: {written}"));
        refused(&text, &[&format!("f.yaml:6: spec.image: {}", image(found, fault))]);
    }
    for good in ["localhost:5000/a", "Host/a:Tag", "a@sha256:0", "a/b-c_d.e:1.2"] {
        let text = workload("").replace("image: a", &format!("image: {good}"));
        assert_eq!(accepted(&text).spec.image, good);
    }
    each_refused(&[
        ("  workingDir: srv\n", "7: spec.workingDir: must be an absolute path, found \"srv\""),
        (
            "  user: a:b:c\n",
            "7: spec.user: must be a user or user:group, by name or number, found \"a:b:c\"",
        ),
        ("  pull: Always\n", "7: spec.pull: must be missing, always or never, found \"Always\""),
        ("  command: [\"a\\0\"]\n", "7: spec.command[0]: may not have a NUL character"),
        (
            "  command: sleep 10\n",
            "7: spec.command: must be a list of strings as [sh, -c, \"sleep 10\"], found \"sleep \
             10\"",
        ),
        (
            "  entrypoint: []\n",
            "7: spec.entrypoint: is an empty list; leave it out to use the image's",
        ),
        (
            "  entrypoint: [\"\"]\n",
            "7: spec.entrypoint: begins with an empty string; the first part is the program",
        ),
        ("  command:\n    - a\n    - [b]\n", "9: spec.command[1]: must be a string, found a list"),
    ]);
}

#[test]
fn env_is_checked() {
    each_refused(&[
        (
            "  env:\n    A: 1\n    B:\n",
            "9: spec.env.B: must be a string, number or boolean, found nothing; write \"\" \
             for empty",
        ),
        ("  env: {A: [1]}\n", "7: spec.env.A: must be a string, number or boolean, found a list"),
        ("  env: {A: {}}\n", "7: spec.env.A: must be a string, number or boolean, found a mapping"),
        ("  env: {A: {x: 1}}\n", "7: spec.env.A.x: is unknown; nothing is allowed here"),
        ("  env: [A=b]\n", "7: spec.env: must be a mapping as {NAME: value}, found a list"),
        (
            "  env: {BARGEE_UID: x}\n",
            "7: spec.env.BARGEE_UID: is set by bargee itself; use another name",
        ),
        ("  env: {\"A=B\": x}\n", "7: spec.env.\"A=B\": has a '=' in its name"),
        ("  env: {\"\": x}\n", "7: spec.env.\"\": has an empty name"),
        ("  env: {\"a\\0\": x}\n", "7: spec.env.\"a\\0\": has a control character in its name"),
    ]);
    assert_eq!(accepted(&workload("  env: {BARGEE_MINE: x}\n")).spec.env["BARGEE_MINE"], "x");
    let name = "A".repeat(129);
    let problem = format!("7: spec.env.{:?}...: has a name of more than 128 bytes", &name[..60]);
    each_refused(&[(&format!("  env: {{{name}: x}}\n"), &problem)]);
}

#[test]
fn ports_are_checked() {
    let port = "a port as 8080:80, 127.0.0.1:5353:53/udp, [::1]:80:80 or 80";
    for (written, fault) in [
        ("a", "; a port is a number from 1 to 65535"),
        ("0:80", "; a port is a number from 1 to 65535"),
        ("80:65536", "; a port is a number from 1 to 65535"),
        ("+80:80", "; a port is a number from 1 to 65535"),
        (":80", "; a port is a number from 1 to 65535"),
        ("", "; a port is a number from 1 to 65535"),
        ("80:80/sctp", ", whose protocol is not tcp or udp"),
        ("80-90:80-90", "; ranges are not supported, list each port"),
        ("localhost:80:80", ", whose address is not an IP address"),
        ("[x]:80:80", ", whose address is not an IPv6 address"),
        ("::1:80:80", "; write an IPv6 address in brackets"),
        ("[::1]:80", ""),
        ("[::1]", ""),
    ] {
        let problem = format!("8: spec.ports[0]: must be {port}, found {written:?}{fault}");
        each_refused(&[(&format!("  ports:\n    - \"{written}\"\n"), &problem)]);
    }
    each_refused(&[
        (
            "  ports: 8080\n",
            "7: spec.ports: must be a list of ports as [\"8080:80\"], found \"8080\"",
        ),
        ("  ports:\n    - 80: 80\n", &format!("8: spec.ports[0]: must be {port}, found a mapping")),
        (
            "  network: host\n  ports: [80:80]\n",
            "8: spec.ports: has no meaning on network host, where every port is the host's; \
             remove it",
        ),
    ]);
}

#[test]
fn a_host_port_is_published_once() {
    let places = ["", "0.0.0.0:", "127.0.0.1:", "10.0.0.1:", "[::]:", "[::1]:"];
    let mut meetings = Vec::new();
    for first in places {
        for second in places {
            let text = workload(&format!("  ports: [\"{first}80:1\", \"{second}80:2\"]\n"));
            if parse_files(&[("f.yaml", &text)]).is_err() {
                meetings.push(format!("{first}80 {second}80"));
            }
        }
    }
    let others: Vec<String> = places
        .iter()
        .flat_map(|a| places.iter().map(move |b| (*a, *b)))
        .filter(|(a, b)| {
            let family = |x: &str| x.contains('[');
            let wild = |x: &str| matches!(x, "0.0.0.0:" | "[::]:");
            let same = family(a) == family(b) && (wild(a) || wild(b) || a == b);
            a.is_empty() || b.is_empty() || same
        })
        .map(|(a, b)| format!("{a}80 {b}80"))
        .collect();
    assert_eq!(meetings, others);
    each_refused(&[(
        "  ports:\n    - 80:80\n    - 80:80/udp\n    - 127.0.0.1:80:81\n",
        "10: spec.ports[2]: host port 80/tcp is published already by default/web in f.yaml:8",
    )]);
    accepted(&workload("  ports: [80, 80, 81:80, 82:80]\n"));
}

#[test]
fn volumes_are_checked() {
    let mount = "a mount as data:/var/lib/app, /etc/app:/etc/app:ro or /mnt/disk:/d:mounted";
    for (written, fault) in [
        ("/data", ""),
        ("a:/b:ro:x", ""),
        ("a:b", ", whose target is not an absolute path"),
        ("a:/", ", whose target is the root of the container"),
        ("a:/b:xx", ", whose options \"xx\" are not of ro, rw, mounted"),
        ("a:/b:ro,rw", ", whose options \"ro,rw\" are not of ro, rw, mounted"),
        ("a:/b:mounted", ", where mounted is only for paths of the host"),
        ("./a:/b", ", whose source is neither an absolute path nor the name of a volume"),
        (
            "a/b:/c",
            ", whose volume must have 1 to 128 letters, digits, '_', '.' or '-' and begin with a \
             letter or digit",
        ),
    ] {
        let problem = format!("7: spec.volumes[0]: must be {mount}, found {written:?}{fault}");
        each_refused(&[(&format!("  volumes: [\"{written}\"]\n"), &problem)]);
    }
    each_refused(&[(
        "  volumes: [a:/b, \"/c:/b/./\"]\n",
        "7: spec.volumes[1]: /b/./ is the target of [0] as well",
    )]);
    let mounts =
        accepted(&workload("  volumes: [\"/a:/b:mounted,ro\", A.b-c_1:/d:rw]\n")).spec.mounts;
    assert_eq!(mounts[0].source, MountSource::Host { path: "/a".to_owned(), mounted: true });
    assert!(mounts[0].read_only && !mounts[1].read_only);
}

#[test]
fn quantities_are_checked() {
    let size = "must be a size as 64Mi, 1Gi, 500k or a number of bytes, found";
    let span = "must be a duration as 500ms, 10s, 2m or 1h30m, found";
    let cpus =
        "must be a number of processors as 0.5 or 2, at least 0.01, in steps of 0.001, found";
    for (field, written, message) in [
        ("memory", "64m", format!("{size} \"64m\"")),
        ("memory", "1.5Gi", format!("{size} \"1.5Gi\"")),
        ("memory", "-1", format!("{size} \"-1\"")),
        ("memory", "64 Mi", format!("{size} \"64 Mi\"")),
        ("memory", "0", "must be more than nothing".to_owned()),
        ("memory", "9999999Ti", "\"9999999Ti\" is more than any device has".to_owned()),
        ("cpus", "0", format!("{cpus} \"0\"")),
        ("cpus", "0.009", format!("{cpus} \"0.009\"")),
        ("cpus", "0.0105", format!("{cpus} \"0.0105\"")),
        ("cpus", "1.", format!("{cpus} \"1.\"")),
        ("cpus", "-1", format!("{cpus} \"-1\"")),
        ("cpus", "4294968", format!("{cpus} \"4294968\"")),
        ("cpus", "1e3", format!("{cpus} \"1e3\"")),
    ] {
        let problem = format!("7: spec.resources.{field}: {message}");
        each_refused(&[(&format!("  resources: {{{field}: \"{written}\"}}\n"), &problem)]);
    }
    for written in ["10", "", "s", "1s1h", "1s1s", "1.5s", "-1s", "1 s", "1d"] {
        let problem = format!("7: spec.stop.grace: {span} {written:?}");
        each_refused(&[(&format!("  stop: {{grace: \"{written}\"}}\n"), &problem)]);
    }
    each_refused(&[
        ("  stop: {grace: 25h}\n", "7: spec.stop.grace: \"25h\" is longer than 24h"),
        (
            "  stop: {grace: 99999999999999999999h}\n",
            &format!("7: spec.stop.grace: {span} \"99999999999999999999h\""),
        ),
        (
            "  restart: always\n",
            "7: spec.restart: must be a mapping as {policy: ...}, found \"always\"",
        ),
        ("  restart: {delay: 0s}\n", "7: spec.restart.delay: must be at least 100ms, found \"0s\""),
        (
            "  restart: {delay: 10m}\n",
            "7: spec.restart: delay, 600s, is longer than maxDelay, 300s; set both",
        ),
        ("  schedule: -1\n", "7: spec.schedule: must be a number from 0 to 1000000, found \"-1\""),
        (
            "  log: {maxFiles: 0}\n",
            "7: spec.log.maxFiles: must be a number from 1 to 100, found \"0\"",
        ),
    ]);
    for (written, milli) in [("0.01", 10), ("1", 1_000), ("2.50", 2_500), ("0.999000", 999)] {
        let declared = accepted(&workload(&format!("  resources: {{cpus: {written}}}\n")));
        assert_eq!(declared.spec.resources.cpus_milli, Some(milli));
    }
    for (written, bytes) in [("1", 1), ("1Ki", 1024), ("3k", 3_000), ("2Gi", 2 << 30)] {
        let declared = accepted(&workload(&format!("  resources: {{memory: {written}}}\n")));
        assert_eq!(declared.spec.resources.memory_bytes, Some(bytes));
    }
}

#[test]
fn signals_have_names() {
    for (written, name) in [
        ("TERM", "SIGTERM"),
        ("sigint", "SIGINT"),
        ("15", "SIGTERM"),
        ("31", "SIGSYS"),
        ("34", "SIGRTMIN"),
        ("37", "SIGRTMIN+3"),
        ("63", "SIGRTMAX-1"),
        ("64", "SIGRTMAX"),
        ("SIGRTMIN+3", "SIGRTMIN+3"),
        ("POLL", "SIGIO"),
    ] {
        let declared = accepted(&workload(&format!("  stop: {{signal: {written}}}\n")));
        assert_eq!(declared.spec.stop.signal.as_deref(), Some(name));
    }
    let signal = "must be a signal as SIGTERM or a number from 1 to 64";
    for (written, rest) in [
        ("SIGTREM", ", found \"SIGTREM\"; did you mean SIGTERM?"),
        ("FOO12345", ", found \"FOO12345\""),
        ("0", " that has a name, found \"0\""),
        ("32", " that has a name, found \"32\""),
        ("65", " that has a name, found \"65\""),
        ("RTMIN+16", ", found \"RTMIN+16\""),
        ("RTMIN+01", ", found \"RTMIN+01\""),
        ("SIG", ", found \"SIG\""),
    ] {
        let problem = format!("7: spec.stop.signal: {signal}{rest}");
        each_refused(&[(&format!("  stop: {{signal: {written}}}\n"), &problem)]);
    }
}

#[test]
fn what_runs_again_after_a_boot_has_to_be_a_job() {
    for policy in ["on-failure", "never"] {
        let text = format!("  rerun: boot\n  restart: {{policy: {policy}}}");
        assert_eq!(accepted(&workload(&text)).spec.rerun, Rerun::Boot);
    }
    assert_eq!(accepted(&workload("  rerun: never")).spec.rerun, Rerun::Never);
    let always = "f.yaml:7: spec.rerun: is for jobs, and restart.policy always restarts every \
                  end; set it to on-failure or never";
    refused(&workload("  rerun: boot"), &[always]);
    let word = "f.yaml:7: spec.rerun: must be never or boot, found \"reboot\"";
    refused(&workload("  rerun: reboot"), &[word]);
}
