//! Fields that are text with a rule: image, paths, user, arguments, labels.

use std::collections::BTreeMap;

use crate::domain::observed::label;
use crate::limits::MANIFEST_NAME_BYTES;
use crate::yaml::field::Field;
use crate::yaml::{Flaws, shown};

/// An image reference. Only what is clearly wrong is refused; the engine decides the rest.
pub fn image(field: &Field<'_>, flaws: &mut Flaws) -> Option<String> {
    let expected = "an image as nginx:1.27 or registry.example/team/app:2";
    field.parse(expected, flaws, |text| match image_fault(text) {
        None => Ok(text.to_owned()),
        Some(fault) => Err(format!("must be {expected}, found {}, {fault}", shown(text))),
    })
}

fn image_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("which is empty");
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("which has a space or control character");
    }
    if text.contains("://") {
        return Some("which is a URL");
    }
    let (name, digest) = text.split_once('@').unwrap_or((text, "sha256:"));
    // A colon before the last slash is the port of a registry.
    let path_end = name.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match name[path_end..].split_once(':') {
        Some((last, tag)) => (&name[..path_end + last.len()], tag),
        None => (name, "latest"),
    };
    if name.split('/').any(str::is_empty) || tag.is_empty() || !digest.contains(':') {
        return Some("which has an empty part");
    }
    // The first of several parts may be a host, in any case.
    let repository = name.split_once('/').map_or(name, |(_, rest)| rest);
    if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some("which has upper-case letters in the repository");
    }
    None
}

/// An absolute path in the container.
pub fn working_dir(field: &Field<'_>, flaws: &mut Flaws) -> Option<String> {
    let expected = "an absolute path";
    field.parse(expected, flaws, |text| {
        if text.starts_with('/') {
            return Ok(text.to_owned());
        }
        Err(format!("must be {expected}, found {}", shown(text)))
    })
}

/// `user` or `user:group`, by name or number.
pub fn user(field: &Field<'_>, flaws: &mut Flaws) -> Option<String> {
    let expected = "a user or user:group, by name or number";
    field.parse(expected, flaws, |text| {
        let mut parts = text.split(':');
        let wrong = parts.clone().count() > 2
            || parts.any(str::is_empty)
            || text.chars().any(|c| c.is_whitespace() || c.is_control());
        if wrong {
            return Err(format!("must be {expected}, found {}", shown(text)));
        }
        Ok(text.to_owned())
    })
}

/// The program of the container and its first arguments.
pub fn entrypoint(field: &Field<'_>, flaws: &mut Flaws) -> Option<Vec<String>> {
    let parts = arguments(field, flaws)?;
    if parts.first().is_some_and(String::is_empty) {
        field.refuse(flaws, "begins with an empty string; the first part is the program");
        return None;
    }
    Some(parts)
}

/// A list of arguments. One string is not split: that would take a shell's rules.
pub fn arguments(field: &Field<'_>, flaws: &mut Flaws) -> Option<Vec<String>> {
    let expected = "a list of strings as [sh, -c, \"sleep 10\"]";
    let (mut parts, mut count) = (Vec::new(), 0);
    for item in field.items(expected, flaws)? {
        count += 1;
        parts.extend(item.text("a string", flaws).map(str::to_owned));
    }
    if count == 0 {
        field.refuse(flaws, "is an empty list; leave it out to use the image's");
    }
    (count > 0 && parts.len() == count).then_some(parts)
}

/// The owner's labels.
pub fn labels(field: &Field<'_>, flaws: &mut Flaws) -> Option<BTreeMap<String, String>> {
    let members = field.mapping("a mapping of labels to values", flaws)?;
    let (mut labels, mut whole) = (BTreeMap::new(), true);
    for (key, value) in members.all() {
        let text = value.text("a string, number or boolean", flaws);
        let fault = label_fault(key);
        if let Some(fault) = &fault {
            value.refuse(flaws, fault);
        }
        match (text, fault) {
            (Some(text), None) => drop(labels.insert(key.to_owned(), text.to_owned())),
            _ => whole = false,
        }
    }
    whole.then_some(labels)
}

fn label_fault(key: &str) -> Option<String> {
    if key.starts_with(label::PREFIX) {
        return Some("begins with bargee., which only bargee itself sets".to_owned());
    }
    name_fault(key)
}

/// What is wrong with the name of a label or variable.
pub fn name_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("has an empty name".to_owned());
    }
    if name.len() > MANIFEST_NAME_BYTES {
        return Some(format!("has a name of more than {MANIFEST_NAME_BYTES} bytes"));
    }
    name.chars().any(char::is_control).then(|| "has a control character in its name".to_owned())
}
