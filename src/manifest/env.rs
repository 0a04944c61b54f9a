//! The environment.

use std::collections::BTreeMap;

use super::shape;
use super::words::name_fault;
use crate::yaml::field::Field;
use crate::yaml::{Flaws, Value};

/// What the agent sets in every container.
const INJECTED: &[&str] = &[
    "BARGEE_UID",
    "BARGEE_NAME",
    "BARGEE_APPLICATION",
    "BARGEE_NODE",
    "BARGEE_SOURCE",
    "BARGEE_ENGINE",
];

const EXPECTED: &str = "a string, number or boolean";

/// Names and values. A value is its own text, whatever type YAML would give it.
pub fn env(field: &Field<'_>, flaws: &mut Flaws) -> Option<BTreeMap<String, String>> {
    let members = field.mapping("a mapping as {NAME: value}", flaws)?;
    let (mut env, mut whole) = (BTreeMap::new(), true);
    for (name, value) in members.all() {
        let text = value_text(&value, flaws);
        let fault = fault(name);
        if let Some(fault) = &fault {
            value.refuse(flaws, fault);
        }
        match (text, fault) {
            (Some(text), None) => drop(env.insert(name.to_owned(), text.to_owned())),
            _ => whole = false,
        }
    }
    whole.then_some(env)
}

fn value_text<'a>(value: &Field<'a>, flaws: &mut Flaws) -> Option<&'a str> {
    match &value.node.value {
        Value::Mapping(entries) if !entries.is_empty() => {
            value.members(&shape::ENV_VALUE, flaws);
            None
        }
        Value::Scalar(scalar) if scalar.is_null() => {
            let message =
                "must be a string, number or boolean, found nothing; write \"\" for empty";
            value.refuse(flaws, message);
            None
        }
        _ => value.text(EXPECTED, flaws),
    }
}

fn fault(name: &str) -> Option<String> {
    if INJECTED.contains(&name) {
        return Some("is set by bargee itself; use another name".to_owned());
    }
    if name.contains('=') {
        return Some("has a '=' in its name".to_owned());
    }
    name_fault(name)
}
