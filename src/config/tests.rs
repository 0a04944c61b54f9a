//! What wins, what is refused and how, what is only warned of.

use super::*;

/// Settles a file's text, variables and flags on a device called `board`.
fn outcome(
    file: &str,
    environment: &[(&str, &str)],
    flags: &Flags,
) -> Result<(Settled, Vec<String>), Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.yaml");
    put(&path, file);
    let mut given = Given::default();
    given.file(&path, true);
    given.environment(environment.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    given.flags(flags);
    // The directory has a random name.
    let place = format!("{}/", directory.path().display());
    let plain = |errors: Vec<String>| errors.iter().map(|e| e.replace(&place, "")).collect();
    given.settle(Some("board".to_owned())).map_err(plain)
}

fn put(path: &Path, text: &str) {
    use std::io::Write;
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn values(settled: &Settled) -> Vec<String> {
    settled.entries().into_iter().map(|(key, value, _)| format!("{key}={value}")).collect()
}

#[track_caller]
fn refused(file: &str, errors: &[&str]) {
    assert_eq!(outcome(file, &[], &Flags::default()).unwrap_err(), errors);
}

#[test]
fn without_anything_there_are_defaults() {
    let (settled, warnings) = outcome("# nothing\n", &[], &Flags::default()).unwrap();
    assert_eq!(
        values(&settled),
        [
            "node=board",
            "engine=docker",
            "engineUrl=unix:///var/run/docker.sock",
            "dataDir=/var/lib/bargee",
            "manifestsDir=/etc/bargee/manifests.d",
            "api.socket=/run/bargee/bargee.sock",
            "workers=4",
            "log.level=info",
            "log.file=stderr",
            "log.maxSize=1Mi",
            "log.reconcileEvery=0",
            "shutdown.policy=leave-running",
            "shutdown.perContainer=stop.grace",
        ]
    );
    assert!(settled.entries().iter().all(|(_, _, origin)| origin == "default"));
    assert!(warnings.is_empty());
}

#[test]
fn every_key_is_read_from_the_file() {
    let file = "node: n-1\nengine: docker\nengineUrl: unix:///d.sock\ndataDir: /d\n\
                manifestsDir: /m\napi: {socket: /a.sock}\nworkers: 8\nlog:\n  level: debug\n\
                \x20 file: /l\n  maxSize: 64Ki\n  reconcileEvery: 100\n\
                shutdown:\n  policy: drain\n  perContainer: 20s\n";
    let (settled, _) = outcome(file, &[], &Flags::default()).unwrap();
    assert_eq!(
        values(&settled),
        [
            "node=n-1",
            "engine=docker",
            "engineUrl=unix:///d.sock",
            "dataDir=/d",
            "manifestsDir=/m",
            "api.socket=/a.sock",
            "workers=8",
            "log.level=debug",
            "log.file=/l",
            "log.maxSize=65536",
            "log.reconcileEvery=100",
            "shutdown.policy=drain",
            "shutdown.perContainer=20s",
        ]
    );
    let line = |origin: &str| origin.rsplit_once(':').unwrap().1.to_owned();
    let lines: Vec<_> = settled.entries().iter().map(|(_, _, origin)| line(origin)).collect();
    assert_eq!(lines, ["1", "2", "3", "4", "5", "6", "7", "9", "10", "11", "12", "14", "15"]);
}

#[test]
fn flag_wins_over_environment_over_file() {
    let file = "workers: 1\nnode: file\ndataDir: /file\n";
    let environment = [("BARGEE_WORKERS", "2"), ("BARGEE_NODE", "environment")];
    let flags = Flags { workers: Some("3".to_owned()), ..Flags::default() };
    let (settled, _) = outcome(file, &environment, &flags).unwrap();
    assert_eq!(settled.workers, Setting { value: 3, origin: Origin::Flag("--workers") });
    assert_eq!(settled.node.value, "environment");
    assert_eq!(settled.node.origin.to_string(), "BARGEE_NODE");
    assert_eq!(settled.data_dir.value, Path::new("/file"));
}

#[test]
fn every_key_is_a_variable_and_the_common_ones_are_flags() {
    let value = |key: &Key| match key.name {
        "node" => "x",
        "engine" => "docker",
        "engineUrl" => "unix:///x",
        "workers" => "7",
        "log.level" => "warn",
        "log.maxSize" => "32Ki",
        "log.reconcileEvery" => "1",
        "shutdown.policy" => "drain",
        "shutdown.perContainer" => "500ms",
        _ => "/x",
    };
    let environment = KEYS.map(|key| (key.variable, value(key)));
    let (settled, _) = outcome("", &environment, &Flags::default()).unwrap();
    let origins: Vec<String> = settled.entries().into_iter().map(|(_, _, o)| o).collect();
    assert_eq!(origins, KEYS.map(|key| key.variable));

    let mut values = KEYS.into_iter().map(|key| Some(value(key).to_owned()));
    let mut next = || values.next().unwrap();
    let flags = Flags {
        node: next(),
        engine: next(),
        engine_url: next(),
        data_dir: next(),
        manifests_dir: next(),
        api_socket: next(),
        workers: next(),
        log_level: next(),
        log_file: next(),
        log_max_size: next(),
        reconcile_every: next(),
    };
    let (settled, _) = outcome("", &[], &flags).unwrap();
    let origins: Vec<String> = settled.entries().into_iter().map(|(_, _, o)| o).collect();
    let flag = |key: &Key| if key.flag.is_empty() { "default" } else { key.flag };
    assert_eq!(origins, KEYS.map(flag));
}

/// `api.socket` is `BARGEE_API_SOCKET`, `dataDir` is `BARGEE_DATA_DIR`.
#[test]
fn variables_follow_their_keys() {
    let variable = |key: &str| {
        let mut name = "BARGEE_".to_owned();
        for c in key.chars() {
            match c {
                '.' => name.push('_'),
                c if c.is_ascii_uppercase() => name.extend(['_', c]),
                c => name.push(c.to_ascii_uppercase()),
            }
        }
        name
    };
    for key in KEYS {
        assert_eq!(key.variable, variable(key.name));
    }
    let later = ["api.listen", "api.tokenFile"];
    assert_eq!(later.map(variable), LATER_VARIABLES);
}

#[test]
fn what_is_wrong_in_the_file_names_its_line() {
    refused(
        "nod: x\n",
        &["c.yaml:1: nod: is unknown; did you mean node? Allowed are node, engine, engineUrl, \
         dataDir, manifestsDir, api, workers, log, shutdown"],
    );
    refused(
        "api:\n  sockt: x\n  listen: y\n",
        &[
            "c.yaml:2: api.sockt: is unknown; did you mean socket? Allowed are socket",
            "c.yaml:3: api.listen: is not supported yet",
        ],
    );
    refused(
        "api:\n  tokenFile: x\nlog: {files: a}\n",
        &[
            "c.yaml:2: api.tokenFile: is not supported yet",
            "c.yaml:3: log.files: is unknown; did you mean file? Allowed are level, file, maxSize, \
             reconcileEvery",
        ],
    );
    refused(
        "shutdown: {polcy: drain}\nmanifestsDir: m\n",
        &[
            "c.yaml:1: shutdown.polcy: is unknown; did you mean policy? Allowed are policy, \
             perContainer",
            "c.yaml:2: manifestsDir: must be an absolute path, found \"m\"",
        ],
    );
    refused("- a\n", &["c.yaml:1: must be a mapping, found a list"]);
    refused("api: x\n", &["c.yaml:1: api: must be a mapping as {socket: ...}, found \"x\""]);
    refused("node:\n", &["c.yaml:1: node: must be a value, found nothing"]);
    refused("node: a\n---\nnode: b\n", &["c.yaml:3: is a second document; a config has one"]);
    refused("node: a\nnode: b\n", &["c.yaml:2: node: is there already in line 1"]);
}

#[test]
fn values_are_checked() {
    for (file, error) in [
        ("engine: podman", "engine: podman is not supported yet; use docker"),
        ("engine: auto", "engine: auto is not supported yet; use docker"),
        ("engine: containerd", "engine: containerd is not supported yet; use docker"),
        ("engine: dcoker", "engine: must be docker, found \"dcoker\""),
        (
            "engineUrl: tcp://127.0.0.1:2375",
            "engineUrl: must be unix:// and an absolute path, as unix:///var/run/docker.sock, \
             found \"tcp://127.0.0.1:2375\"",
        ),
        (
            "engineUrl: unix://a",
            "engineUrl: must be unix:// and an absolute path, as unix:///var/run/docker.sock, \
             found \"unix://a\"",
        ),
        ("dataDir: d", "dataDir: must be an absolute path, found \"d\""),
        ("api: {socket: s}", "api.socket: must be an absolute path, found \"s\""),
        ("workers: 0", "workers: must be a number from 1 to 32, found \"0\""),
        ("workers: 33", "workers: must be a number from 1 to 32, found \"33\""),
        ("workers: +4", "workers: must be a number from 1 to 32, found \"+4\""),
        (
            "log: {level: loud}",
            "log.level: must be error, warn, info, debug or trace, found \"loud\"",
        ),
        ("log: {file: l}", "log.file: must be stderr or an absolute path, found \"l\""),
        ("log: {file: /var/log/}", "log.file: must name a file, found \"/var/log/\""),
        ("log: {maxSize: 15Ki}", "log.maxSize: must be from 16Ki to 1Gi, found \"15Ki\""),
        (
            "log: {maxSize: big}",
            "log.maxSize: must be a size as 64Mi, 1Gi, 500k or a number of bytes, found \"big\"",
        ),
        (
            "log: {reconcileEvery: -1}",
            "log.reconcileEvery: must be a number from 0 to 1000000, found \"-1\"",
        ),
        (
            "shutdown: {policy: stop}",
            "shutdown.policy: must be leave-running or drain, found \"stop\"",
        ),
        (
            "shutdown: {perContainer: 181s}",
            "shutdown.perContainer: must be a time like 20s, 180 s at most, or stop.grace, found \
             \"181s\"",
        ),
        (
            "shutdown: {perContainer: 0s}",
            "shutdown.perContainer: must be a time like 20s, 180 s at most, or stop.grace, found \
             \"0s\"",
        ),
        ("node: a b", "node: must be 1 to 128 letters, digits, '.', '_' or '-', found \"a b\""),
    ] {
        refused(file, &[&format!("c.yaml:1: {error}")]);
    }
    let long = format!("api: {{socket: /{}}}", "a".repeat(107));
    refused(&long, &["c.yaml:1: api.socket: has 108 bytes; the path of a socket may have 107"]);
}

#[test]
fn all_origins_are_checked_and_told() {
    let flags = Flags { log_level: Some("x".to_owned()), ..Flags::default() };
    let environment = [("BARGEE_WORKERS", ""), ("BARGEE_API_LISTEN", ":1"), ("PATH", "/bin")];
    assert_eq!(
        outcome("workers: many\n", &environment, &flags).unwrap_err(),
        [
            "BARGEE_API_LISTEN: is not supported yet",
            "c.yaml:1: workers: must be a number from 1 to 32, found \"many\"",
            "BARGEE_WORKERS: must be a number from 1 to 32, found \"\"",
            "--log-level: must be error, warn, info, debug or trace, found \"x\"",
        ]
    );
}

#[test]
fn unknown_variables_are_warned_of() {
    let environment = [("BARGEE_SOKET", "x"), ("BARGEE_DATADIR", "/d"), ("BARGEEX", "y")];
    let (settled, warnings) = outcome("", &environment, &Flags::default()).unwrap();
    assert_eq!(
        warnings,
        [
            "BARGEE_SOKET: is unknown and has no effect",
            "BARGEE_DATADIR: is unknown and has no effect; did you mean BARGEE_DATA_DIR?",
        ]
    );
    assert_eq!(settled.data_dir.origin, Origin::Default);
}

#[test]
fn a_host_name_of_no_use_is_no_obstacle() {
    let (settled, warnings) = Given::default().settle(Some("(none)".to_owned())).unwrap();
    assert_eq!(settled.node.value, "localhost");
    assert_eq!(
        warnings,
        ["node: the host name \"(none)\" cannot be used, so it is localhost; set node"]
    );
}

#[test]
fn only_a_file_that_was_asked_for_must_be_there() {
    let missing = Path::new("/nowhere/c.yaml");
    let errors = settle(Some(missing), std::iter::empty(), &Flags::default()).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("/nowhere/c.yaml: "), "{errors:?}");
    let mut given = Given::default();
    given.file(missing, false);
    assert!(given.settle(Some("board".to_owned())).is_ok());
}

#[test]
fn files_that_are_no_config_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let errors = settle(Some(directory.path()), std::iter::empty(), &Flags::default());
    assert_eq!(errors.unwrap_err().len(), 1);
    let long = "a".repeat(BODY_BYTES + 1);
    refused(&long, &["c.yaml: has more than 1048576 bytes"]);
    refused("\u{0}", &["c.yaml:1: has a NUL character; this is not a text file"]);
}
