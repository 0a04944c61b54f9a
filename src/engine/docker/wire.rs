//! The engine's JSON, read tolerantly: unknown fields are ignored, `null` and odd values of what is
//! not vital count as missing.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::gather::Gather;
use crate::domain::names::EngineId;
use crate::limits;

/// Takes anything; what does not fit is the default.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    input: D,
) -> Result<T, D::Error> {
    let raw: &RawValue = Deserialize::deserialize(input)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Labels; those whose value is no text are dropped, the others kept.
fn labels<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, String>, D::Error> {
    let raw: &RawValue = Deserialize::deserialize(input)?;
    let all: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = |raw: &RawValue| serde_json::from_str(raw.get()).ok();
    Ok(all.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).gather())
}

/// `GET /version`.
#[derive(Deserialize, Debug)]
pub(super) struct Version {
    #[serde(rename = "Version", default, deserialize_with = "lenient")]
    pub version: String,
    #[serde(rename = "MinAPIVersion", default, deserialize_with = "lenient")]
    pub min_api_version: String,
}

/// One entry of `GET /containers/json`.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedContainer {
    pub id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub names: Vec<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub state: String,
    /// For people: `Up 5 minutes (healthy)`.
    #[serde(default, deserialize_with = "lenient")]
    pub status: String,
    #[serde(default, deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
}

/// `GET /containers/{id}/json`.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Container {
    pub id: String,
    pub state: State,
    #[serde(default, deserialize_with = "lenient")]
    pub image: String,
    #[serde(default)]
    pub config: Option<Config>,
    #[serde(default, deserialize_with = "lenient")]
    pub host_config: HostMode,
    #[serde(default, deserialize_with = "lenient")]
    pub network_settings: NetworkSettings,
}

/// `State` of a container: all that decisions are taken on, hence strict.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct State {
    pub status: String,
    #[serde(rename = "OOMKilled", default, deserialize_with = "lenient")]
    pub oom_killed: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub pid: u32,
    pub exit_code: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub error: String,
    pub started_at: String,
    #[serde(default, deserialize_with = "lenient")]
    pub health: Option<Health>,
}

/// `State.Health` of a container that has a check.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Health {
    #[serde(deserialize_with = "lenient")]
    pub status: String,
    /// The last five probes, oldest first; they may be of earlier runs.
    #[serde(deserialize_with = "lenient")]
    pub log: Vec<Probe>,
}

/// One probe.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Probe {
    #[serde(deserialize_with = "lenient")]
    pub exit_code: i64,
    #[serde(deserialize_with = "lenient")]
    pub output: String,
}

/// `Config` of a container.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Config {
    #[serde(default, deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "lenient")]
    pub stop_signal: Option<String>,
}

/// What is read of `HostConfig`.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HostMode {
    #[serde(default, deserialize_with = "lenient")]
    pub network_mode: String,
}

/// `NetworkSettings` of a container.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NetworkSettings {
    #[serde(default, deserialize_with = "lenient")]
    pub ports: BTreeMap<String, Option<Vec<HostPort>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub networks: BTreeMap<String, Endpoint>,
}

/// A published port on the host. Also in a create body.
#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HostPort {
    #[serde(default)]
    pub host_ip: String,
    #[serde(default)]
    pub host_port: String,
}

/// A network in a list.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Network {
    #[serde(default)]
    pub id: String,
    #[serde(default)]
    pub name: String,
}

/// A container's place on a network.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Endpoint {
    #[serde(default, rename = "IPAddress", deserialize_with = "lenient")]
    pub ip_address: String,
    #[serde(default, rename = "GlobalIPv6Address", deserialize_with = "lenient")]
    pub ipv6_address: String,
    #[serde(default, deserialize_with = "lenient")]
    pub aliases: Vec<String>,
}

/// Answer to a create.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Made {
    pub id: String,
}

/// One line of `GET /events`.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "PascalCase")]
pub(super) struct EventLine {
    #[serde(rename = "Type")]
    pub kind: String,
    pub action: String,
    pub actor: Actor,
}

/// What an event happened to.
#[derive(Deserialize, Debug)]
pub(super) struct Actor {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Attributes")]
    pub attributes: ActorAttributes,
}

/// The one attribute of an event that matters; a container's labels are among them.
#[derive(Deserialize, Debug)]
pub(super) struct ActorAttributes {
    #[serde(rename = "bargee.uid")]
    pub uid: String,
}

/// One line of a pull.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PullLine {
    #[serde(deserialize_with = "lenient")]
    pub status: String,
    #[serde(deserialize_with = "lenient")]
    pub id: String,
    #[serde(deserialize_with = "lenient")]
    pub progress_detail: ProgressDetail,
    error: Option<Value>,
    error_detail: Option<Value>,
}

/// `GET /info`, the little of it that is needed.
#[derive(Deserialize, Debug, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Info {
    /// Drawn when the engine first started on its data.
    #[serde(rename = "ID", deserialize_with = "lenient")]
    id: String,
    /// Where the engine keeps its data, as it sees it.
    #[serde(deserialize_with = "lenient")]
    pub docker_root_dir: String,
    #[serde(deserialize_with = "lenient")]
    driver_status: Vec<(String, String)>,
}

impl Info {
    /// The id and the data directory. Older engines keep the id apart from their data.
    pub fn identity(&self) -> Option<EngineId> {
        let (id, root) = (self.id.as_str(), self.docker_root_dir.as_str());
        let both = [id, root].map(str::trim).join(" at ");
        (!id.is_empty()).then(|| EngineId::new(both))
    }

    /// Images are in its data directory: it does not leave them to containerd, which has another.
    pub fn keeps_images_itself(&self) -> bool {
        let foreign = |(name, value): &(String, String)| {
            name == "driver-type" && value.starts_with("io.containerd.")
        };
        !self.driver_status.iter().any(foreign)
    }
}

/// Bytes of one layer.
#[derive(Deserialize, Debug, Default, Clone, Copy)]
#[serde(default)]
pub(super) struct ProgressDetail {
    pub current: u64,
    pub total: u64,
}

impl PullLine {
    /// The engine's words, if this line says that the pull failed.
    pub fn failure(&self) -> Option<String> {
        let detail = self.error_detail.as_ref();
        let message = detail.and_then(|detail| detail.get("message")).or(self.error.as_ref());
        match message.or(detail)? {
            Value::String(text) => Some(clip(text)),
            other => Some(clip(&other.to_string())),
        }
    }
}

/// What the engine says in an answer that is an error.
pub(super) fn words(status: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    let text = match serde_json::from_slice::<Message>(body) {
        Ok(said) => said.message,
        Err(_) => String::from_utf8_lossy(body).trim().to_owned(),
    };
    if text.is_empty() { format!("HTTP status {status}") } else { clip(&text) }
}

/// An engine's words as they are kept: bounded, and without the ids that it makes up anew at each
/// try, so that the same cause reads the same.
pub(super) fn clip(text: &str) -> String {
    without_ids(at_most(text, limits::ENGINE_WORDS_BYTES))
}

/// The first bytes of `text`, in whole characters.
pub(super) fn at_most(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `text` without each ` (ID)` of 64 hexadecimal digits.
fn without_ids(text: &str) -> String {
    const ID: usize = 64;
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(" (") {
        let inside = &rest[at + 2..];
        let digits = inside.bytes().take_while(u8::is_ascii_hexdigit).count();
        kept.push_str(&rest[..at]);
        rest = match inside[digits..].strip_prefix(')') {
            Some(behind) if digits == ID => behind,
            _ => {
                kept.push_str(" (");
                inside
            }
        };
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(line: &str) -> Option<String> {
        serde_json::from_str::<PullLine>(line).unwrap().failure()
    }

    #[test]
    fn a_failed_pull_is_told_by_either_field() {
        assert_eq!(failure(r#"{"status":"Downloading","id":"a1","progressDetail":{}}"#), None);
        assert_eq!(failure(r#"{"errorDetail":null,"error":null}"#), None);
        assert_eq!(
            failure(r#"{"errorDetail":{"message":"no space left"},"error":"no space"}"#),
            Some("no space left".into())
        );
        assert_eq!(failure(r#"{"error":"denied"}"#), Some("denied".into()));
        assert_eq!(failure(r#"{"errorDetail":{"code":5}}"#), Some(r#"{"code":5}"#.into()));
    }

    #[test]
    fn words_of_an_error_are_found_and_bounded() {
        assert_eq!(words(500, br#"{"message":"disk full"}"#), "disk full");
        assert_eq!(words(404, b"404 page not found\n"), "404 page not found");
        assert_eq!(words(503, b""), "HTTP status 503");
        assert_eq!(words(500, b"{\"message\":\"\"}"), "HTTP status 500");
        // A character of three bytes lies across the bound.
        let long = "\u{20ac}".repeat(limits::ENGINE_WORDS_BYTES);
        let kept = words(500, long.as_bytes());
        assert!(
            kept.len() <= limits::ENGINE_WORDS_BYTES && kept.len() + 3 > limits::ENGINE_WORDS_BYTES
        );
    }

    #[test]
    fn the_same_cause_reads_the_same_at_every_try() {
        let said = |id: &str| format!("endpoint web-1 ({id}): Bind (tcp) failed: in use (\u{e9}");
        assert_eq!(
            clip(&said(&"0f".repeat(32))),
            "endpoint web-1: Bind (tcp) failed: in use (\u{e9}"
        );
        for other in ["", "0f", &"0g".repeat(32), &"0f".repeat(33)] {
            assert_eq!(clip(&said(other)), said(other));
        }
    }

    #[test]
    fn odd_labels_are_dropped_and_the_others_kept() {
        let entry = r#"{"Id":"c1","State":7,"Labels":{"a":"1","b":2,"c":null},"New":[]}"#;
        let listed: ListedContainer = serde_json::from_str(entry).unwrap();
        assert_eq!(listed.state, "");
        assert_eq!(listed.labels.into_iter().collect::<Vec<_>>(), [("a".into(), "1".into())]);
    }
}
