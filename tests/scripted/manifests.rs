//! Manifests that are wrong or hostile, through the command line and past it: refused with file,
//! line and field, nothing applied, memory bounded.

use std::fs::File;
use std::io::Write;

use serde_json::Value;

use crate::support::device::{Device, service};

/// Resident memory may grow by this much while it reads what it refuses, in KiB: a few times the
/// largest body, in a build without optimisation.
const GROWTH_KIB: u64 = 16 << 10;

/// What is wrong, the file, and what is said of it: parts of one line.
type Case = (&'static str, fn() -> Vec<u8>, &'static [&'static str]);

const CASES: [Case; 17] = [
    ("unknown key", || line("spec: {image: i, comand: [x]}"), &[":4: spec.comand:", "command"]),
    ("unknown key on top", || line("spec: {image: i}\nsepc: {}"), &[":5: sepc:", "spec"]),
    ("wrong type", || line("spec: {image: i, ports: 80}"), &[":4: spec.ports:"]),
    ("wrong type deep", || line("spec: {image: i, env: {A: [1]}}"), &[":4: spec.env.A:"]),
    ("missing field", || line("spec: {}"), &["spec.image:"]),
    ("tab", || line("spec:\n\timage: i"), &[":5:", "tab"]),
    ("duplicate key", || line("spec: {image: i, image: j}"), &[":4: spec.image:", "already"]),
    ("not supported", || line("spec: {image: i, privileged: true}"), &["not supported yet"]),
    ("half a document", || line("spec: {image: i, command: [a"), &["m.yaml:"]),
    ("another kind", || b"apiVersion: bargee/v1\nkind: Registry\n".to_vec(), &[":2: kind:"]),
    (
        "duplicate names",
        || (service("x") + &service("x")).into_bytes(),
        &[":9: metadata.name:", "already"],
    ),
    ("deep nesting", deep, &["m.yaml:", "deep"]),
    ("deep nesting, closed", deep_and_closed, &["m.yaml:"]),
    ("alias bomb", alias_bomb, &["m.yaml:", "50000"]),
    ("many nodes", many_nodes, &["m.yaml:", "200000"]),
    ("long line", || vec![b'x'; 1_000_000], &["m.yaml:"]),
    ("only brackets", || vec![b'['; 1_000_000], &["m.yaml:"]),
];

/// A manifest whose rest is `rest`, from line 4 on.
fn line(rest: &str) -> Vec<u8> {
    format!("apiVersion: bargee/v1\nkind: Workload\nmetadata: {{name: x}}\n{rest}\n").into_bytes()
}

fn deep() -> Vec<u8> {
    line(&format!("spec: {{image: i, env: {}", "{a: ".repeat(10_000)))
}

fn deep_and_closed() -> Vec<u8> {
    line(&format!("spec: {{image: i, env: {}{}", "[".repeat(40), "]".repeat(40)))
}

fn alias_bomb() -> Vec<u8> {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..=9 {
        let before = format!("*a{}", level - 1);
        let ten = vec![before; 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{ten}]\n"));
    }
    text.into_bytes()
}

fn many_nodes() -> Vec<u8> {
    line(&format!("spec: {{image: i, command: [{}]}}", "a, ".repeat(200_000)))
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_nothing_is_applied() {
    let device = Device::running(&["good"]);
    let before = (device.workload("good").generation, device.fingerprint());
    let memory = device.memory_kib("VmHWM");
    let file = device.path("m.yaml");
    for (what, text, parts) in CASES {
        let text = text();
        File::create(&file).unwrap().write_all(&text).unwrap();
        // A good manifest beside a wrong one is not applied either.
        let beside = device.path("a.yaml");
        File::create(&beside).unwrap().write_all(service("beside").as_bytes()).unwrap();
        let words = ["deploy", "-f", beside.to_str().unwrap(), "-f", file.to_str().unwrap()];
        let said = device.cli(&words);
        assert_eq!(said.code, 1, "{what}: {}{}", said.out, said.err);
        assert!(said.err.contains("nothing was applied"), "{what}: {}", said.err);
        let told = said.err.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        assert!(told.is_some(), "{what}: wanted {parts:?}: {:.2000}", said.err);
        assert!(said.err.len() < 20_000, "{what}: a flood of {} bytes", said.err.len());

        let (status, body) = device.apply(&String::from_utf8(text).unwrap());
        assert_eq!(status, 422, "{what}: {body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        let details = error["error"]["details"].as_array().unwrap();
        assert!(!details.is_empty() && details.len() <= 21, "{what}: {body:.2000}");
    }
    let grown = device.memory_kib("VmHWM") - memory;
    println!("resident memory grew by {grown} KiB from {memory} KiB");
    assert!(grown < GROWTH_KIB, "{grown} KiB");
    assert_eq!((device.workload("good").generation, device.fingerprint()), before);
    assert_eq!(device.workloads().len(), 1);
}

#[test]
fn what_is_too_large_or_no_text_is_refused() {
    let device = Device::started();
    let memory = device.memory_kib("VmHWM");
    let huge = service("x") + &"# nothing to see here\n".repeat(500_000);
    assert!(huge.len() > 10 << 20);
    let file = device.path("huge.yaml");
    File::create(&file).unwrap().write_all(huge.as_bytes()).unwrap();
    let said = device.cli(&["deploy", "-f", file.to_str().unwrap()]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("huge.yaml") && said.err.contains("1048576"), "{}", said.err);
    let (status, body) = device.apply(&huge);
    assert_eq!(status, 413, "{body}");
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let file = device.path("binary.yaml");
    File::create(&file).unwrap().write_all(&binary).unwrap();
    let said = device.cli(&["deploy", "-f", file.to_str().unwrap()]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("binary.yaml") && said.err.contains("UTF-8"), "{}", said.err);
    let (status, body) = device.post("/v1/deploy/microservices:apply", &binary);
    assert_eq!(status, 422, "{body}");
    assert!(body.contains("UTF-8"), "{body}");
    // Text that is UTF-8 and still no YAML, and YAML with nothing in it.
    for text in ["\u{0}\u{1}\u{7f}\u{feff}\u{0}", "# nothing\n", ""] {
        let (status, body) = device.apply(text);
        assert_eq!(status, 422, "{text:?}: {body}");
    }

    let grown = device.memory_kib("VmHWM") - memory;
    println!("resident memory grew by {grown} KiB from {memory} KiB");
    assert!(grown < GROWTH_KIB, "{grown} KiB");
    assert_eq!(device.workloads().len(), 0);
    assert_eq!(device.engine.containers(), []);
}
