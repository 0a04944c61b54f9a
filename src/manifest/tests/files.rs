//! Several documents and files in one apply, and files that are no manifests.

use super::*;

fn named(name: &str, spec: &str) -> String {
    workload(spec).replace("name: web", &format!("name: {name}"))
}

#[test]
fn one_apply_holds_many_documents_and_files() {
    let both = format!("{}---\n# nothing\n---\n{}", named("a", ""), named("b", ""));
    let json = "{\"apiVersion\":\"bargee/v1\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"c\"},\
                \"spec\":{\"image\":\"x\",\"env\":{\"A\":1,\"B\":true,\"C\":\"\\u00e4\\/\\n\"}}}";
    let workloads = parse_files(&[("a.yaml", &both), ("b.json", json)]).unwrap();
    let keys: Vec<String> = workloads.iter().map(|w| w.key.to_string()).collect();
    assert_eq!(keys, ["default/a", "default/b", "default/c"]);
    let env = &workloads[2].spec.env;
    assert_eq!((&*env["A"], &*env["B"], &*env["C"]), ("1", "true", "ä/\n"));
}

#[test]
fn a_name_is_declared_once() {
    let first = named("a", "");
    let second = format!("{}---\n{}", named("b", ""), named("a", ""));
    assert_eq!(
        parse_files(&[("1.yaml", &first), ("2.yaml", &second)]).unwrap_err(),
        ["2.yaml:11: metadata.name: default/a is declared already in 1.yaml:4"]
    );
    let other = named("a", "").replace("name: a", "name: a\n  application: other");
    assert_eq!(parse_files(&[("1.yaml", &first), ("2.yaml", &other)]).unwrap().len(), 2);
}

#[test]
fn a_host_port_is_published_once_over_all_files() {
    let first = named("a", "  ports: [80:80]\n");
    let second = named("b", "  ports: [81:80, 80:80]\n");
    assert_eq!(
        parse_files(&[("1.yaml", &first), ("2.yaml", &second)]).unwrap_err(),
        ["2.yaml:7: spec.ports[1]: host port 80/tcp is published already by default/a in 1.yaml:7"]
    );
}

#[test]
fn without_a_workload_nothing_is_accepted() {
    for text in ["", "# nothing\n", "---\n---\n", "\u{feff}"] {
        refused(text, &["f.yaml: no workload is declared here"]);
    }
    assert_eq!(parse_files(&[]).unwrap_err(), [": no workload is declared here"]);
    assert_eq!(
        parse_files(&[("1.yaml", ""), ("2.yaml", "")]).unwrap_err(),
        ["1.yaml: no workload is declared here or in the files after it"]
    );
    // An empty file beside others is none of anybody's business.
    assert_eq!(parse_files(&[("1.yaml", ""), ("2.yaml", &workload(""))]).unwrap().len(), 1);
}

#[test]
fn every_error_of_every_file_is_found() {
    let first = workload("  pull: x\n  user: \"\"\n  pid: host\n  stop: {signal: x}\n");
    let first = first.replace("name: web", "name: Web");
    let second = format!("{}---\nkind: [\n", workload("  network: 1\n"));
    assert_eq!(
        parse_files(&[("1.yaml", &first), ("2.yaml", &second)]).unwrap_err(),
        [
            "1.yaml:4: metadata.name: may only have lower-case letters, digits and '-', found \
             \"Web\"",
            "1.yaml:7: spec.pull: must be missing, always or never, found \"x\"",
            "1.yaml:8: spec.user: must be a user or user:group, by name or number, found \"\"",
            "1.yaml:9: spec.pid: is not supported yet",
            "1.yaml:10: spec.stop.signal: must be a signal as SIGTERM or a number from 1 to 64, \
             found \"x\"",
            "2.yaml:7: spec.network: \"1\" is not supported yet; use bridge or host",
            "2.yaml:10: is not valid YAML: while parsing a node, did not find expected node \
             content",
        ]
    );
}

#[test]
fn errors_beyond_the_bound_are_counted() {
    let many = |n: usize| {
        let env = (0..n).map(|i| format!("    A{i}: ~\n")).collect::<String>();
        workload(&format!("  env:\n{env}"))
    };
    let problems = parse_files(&[("1.yaml", &many(15)), ("2.yaml", &many(30))]).unwrap_err();
    assert_eq!(problems.len(), MANIFEST_ERRORS + 1);
    assert!(problems[15].starts_with("2.yaml:4: metadata.name: default/web is declared already"));
    assert_eq!(problems[20], "2.yaml: and 26 more");
}

#[test]
fn what_is_no_manifest_is_refused() {
    refused(&"a".repeat(10 << 20), &["f.yaml: has more than 1048576 bytes"]);
    refused("\0\u{1}\u{2}", &["f.yaml:1: has a NUL character; this is not a text file"]);
    refused("a:\n\tb: 1\n", &["f.yaml:2: is indented with a tab; YAML is indented with spaces"]);
    refused(&workload("  image: b\n"), &["f.yaml:7: spec.image: is there already in line 6"]);
    refused(
        &workload("  <<: {pull: never}\n"),
        &[
            "f.yaml:7: spec: merge keys are not supported; write out the keys that << stands for",
            "f.yaml:7: spec.\"<<\": is unknown; allowed are image, pull, entrypoint, command, \
         workingDir, user, env, ports, volumes, network, resources, restart, rerun, stop, \
         healthCheck, schedule, log",
        ],
    );
    let problem = text("f.bin", b"a\n\xff\xfe".to_vec()).unwrap_err();
    assert_eq!(problem.to_string(), "f.bin:2: is not UTF-8 text");
    assert_eq!(text("f", b"a: 1".to_vec()).unwrap(), "a: 1");
}

#[test]
fn line_ends_and_marks_of_other_systems_are_read() {
    let text = format!("\u{feff}{}", workload("  pull: never\n").replace('\n', "\r\n"));
    accepted(&text);
    accepted(
        &workload("  env: &e {A: 1}\n").replace("  name: web", "  name: web\n  labels: {a: b}"),
    );
}

#[test]
fn hostile_values_cost_little() {
    // A value of nearly the whole file, and as many ports that could meet as fit.
    let long = workload(&format!("  user: \"{}\"\n", "x ".repeat(500_000)));
    let problem = parse_files(&[("f.yaml", &long)]).unwrap_err().remove(0);
    assert!(problem.len() < 300, "{problem}");
    let ports: String =
        (0..40_000).map(|i| format!("    - 10.0.{}.{}:80:80\n", i / 256, i % 256)).collect();
    assert_eq!(accepted(&workload(&format!("  ports:\n{ports}"))).spec.ports.len(), 40_000);
}
