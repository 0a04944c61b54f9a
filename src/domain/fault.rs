//! A failed engine call as a typed answer: what kind, which call, on what.

use std::fmt;

/// Why a call to the engine, or the check before it, failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind; every decision is taken on it, never on the text.
    pub kind: FaultKind,
    /// What was attempted, as a verb: `create container`.
    pub call: &'static str,
    /// What it was attempted on: a name, an id, an image.
    pub object: String,
    /// The engine's own words, or ours where there are none.
    pub message: String,
}

/// What a failure means for what is done next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The engine cannot be reached: no socket, refused, no permission, connection lost before
    /// the answer.
    Away,
    /// The engine took the call and did not answer in time. What came of it is unknown.
    Timeout,
    /// The answer could not be read. What came of the call is unknown.
    Garbled,
    /// There is no such container.
    NoContainer,
    /// The image is not on the device.
    NoImage,
    /// The network is not there.
    NoNetwork,
    /// The name is held by another container.
    NameTaken,
    /// The container is not in a state for this: not running, being removed.
    Conflict,
    /// Refused as wrong: time cannot heal it, another manifest can.
    Refused,
    /// Anything that time may heal: port in use, disk full, registry unreachable, tag missing.
    Trouble,
    /// A mount source of the host does not exist, or is not on a file system of its own.
    HostPath,
    /// The code that carried out the step panicked; a bug of ours.
    Panicked,
}

impl FaultKind {
    /// Nothing can be said about what the call did.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::Away | Self::Timeout | Self::Garbled | Self::Panicked)
    }
}

impl Fault {
    /// A fault of `kind` in `call` on `object`.
    pub fn new(
        kind: FaultKind,
        call: &'static str,
        object: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, call, object: object.into(), message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object.is_empty() {
            write!(f, "{}: {}", self.call, self.message)
        } else {
            write!(f, "{} {}: {}", self.call, short(&self.object), self.message)
        }
    }
}

impl std::error::Error for Fault {}

/// A container id as people know it, the first 12 digits; anything else as it is.
fn short(object: &str) -> &str {
    let is_id = object.len() == 64 && object.bytes().all(|b| b.is_ascii_hexdigit());
    if is_id { &object[..12] } else { object }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_short_and_names_whole() {
        let told = |object: &str| {
            Fault::new(FaultKind::Trouble, "start container", object, "no").to_string()
        };
        assert_eq!(told(&"ab".repeat(32)), "start container abababababab: no");
        assert_eq!(told(&"xy".repeat(32)), format!("start container {}: no", "xy".repeat(32)));
        assert_eq!(told("bargee-web-1"), "start container bargee-web-1: no");
    }
}
