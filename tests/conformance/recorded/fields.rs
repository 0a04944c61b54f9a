//! The fields that bargee reads of each answer, listed once. A `*` is every element.

use std::collections::BTreeSet;

use serde_json::Value;

const INSPECT: &[&str] = &[
    "Id",
    "Image",
    "Config/Labels/*",
    "Config/StopSignal",
    "HostConfig/NetworkMode",
    "NetworkSettings/Networks/*/Aliases/*",
    "NetworkSettings/Networks/*/GlobalIPv6Address",
    "NetworkSettings/Networks/*/IPAddress",
    "NetworkSettings/Ports/*/*/HostIp",
    "NetworkSettings/Ports/*/*/HostPort",
    "State/Error",
    "State/ExitCode",
    "State/Health/Log/*/ExitCode",
    "State/Health/Log/*/Output",
    "State/Health/Status",
    "State/OOMKilled",
    "State/Pid",
    "State/StartedAt",
    "State/Status",
];
const LIST: &[&str] = &["*/Id", "*/Labels/*", "*/Names/*", "*/State", "*/Status"];
const EVENT: &[&str] = &["Action", "Actor/Attributes/bargee.uid", "Actor/ID", "Type"];
const PULL: &[&str] = &[
    "error",
    "errorDetail/message",
    "id",
    "progressDetail/current",
    "progressDetail/total",
    "status",
];

/// Not every storage driver says anything of itself.
pub const DRIVER_STATUS: &str = "DriverStatus/*/*";

/// The fields that are read of the answer of this name; of a stream, of each line. Of an answer
/// that is a refusal, its words.
pub fn read(name: &str, status: u16) -> &'static [&'static str] {
    let kind = name.split('-').next().unwrap();
    match (kind, status) {
        (_, 400..) => &["message"],
        ("inspect", _) => INSPECT,
        ("list", _) => LIST,
        ("networks", _) => &["*/Id", "*/Name"],
        ("create", _) => &["Id"],
        ("version", _) => &["MinAPIVersion", "Version"],
        ("info", _) => &["DockerRootDir", DRIVER_STATUS, "ID"],
        ("events", _) => EVENT,
        ("pull", _) => PULL,
        _ => &[],
    }
}

/// The types of what is at `path`: nothing, if it is not there.
pub fn types(value: &Value, path: &str) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    visit(value, &path.split('/').collect::<Vec<_>>(), &mut |value| {
        all.insert(match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
    });
    all
}

fn visit(value: &Value, path: &[&str], see: &mut dyn FnMut(&Value)) {
    let Some((first, rest)) = path.split_first() else { return see(value) };
    match value {
        Value::Array(all) if *first == "*" => all.iter().for_each(|one| visit(one, rest, see)),
        Value::Object(all) if *first == "*" => all.values().for_each(|one| visit(one, rest, see)),
        Value::Object(all) => all.get(*first).into_iter().for_each(|one| visit(one, rest, see)),
        _ => {}
    }
}

/// The same with nothing but the fields at these paths.
pub fn only(value: &Value, paths: &[&str]) -> Value {
    let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    cut(value, &paths)
}

fn cut(value: &Value, paths: &[&[&str]]) -> Value {
    if paths.iter().any(|path| path.is_empty()) {
        return value.clone();
    }
    let after = |name: &str| -> Vec<&[&str]> {
        let fits = paths.iter().filter(|path| path[0] == name || path[0] == "*");
        fits.map(|path| &path[1..]).collect()
    };
    match value {
        Value::Array(all) => all.iter().map(|one| cut(one, &after("*"))).collect(),
        Value::Object(all) => {
            let kept = all.iter().filter(|(name, _)| !after(name).is_empty());
            kept.map(|(name, one)| (name.clone(), cut(one, &after(name)))).collect()
        }
        other => other.clone(),
    }
}
