//! The event stream.

use ureq::BodyReader;

use super::lines::Lines;
use super::wire::EventLine;
use crate::domain::event::{ContainerAction, ContainerEvent};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{ContainerId, Uid};
use crate::engine::EventStream;

/// Events of containers with bargee's labels, as the filter of the request. Actions are named,
/// since a health check makes three more for each probe. `health_status` stands for all that begin
/// with it.
pub(super) const FILTER: &str = concat!(
    r#"{"type":["container"],"label":["bargee.uid"],"event":["start","die","destroy","oom","#,
    r#""pause","unpause","update","rename","health_status"]}"#
);

/// The open event stream.
pub(super) struct Events {
    lines: Lines<BodyReader<'static>>,
}

impl Events {
    /// Events in the body of the answer.
    pub fn new(body: BodyReader<'static>) -> Self {
        Self { lines: Lines::new(body) }
    }
}

impl EventStream for Events {
    fn next(&mut self) -> Result<ContainerEvent, Fault> {
        let lost = |message| Fault::new(FaultKind::Away, "read the engine's events", "", message);
        loop {
            match self.lines.next() {
                Ok(Some(line)) => {
                    if let Some(event) = event(line) {
                        return Ok(event);
                    }
                }
                Ok(None) => return Err(lost("the engine ended the stream".to_owned())),
                Err(error) => return Err(lost(format!("the connection was lost: {error}"))),
            }
        }
    }
}

/// Reads a line; `None`: not one that matters.
fn event(line: &[u8]) -> Option<ContainerEvent> {
    let line: EventLine = serde_json::from_slice(line).ok()?;
    if line.kind != "container" {
        return None;
    }
    Some(ContainerEvent {
        action: action(&line.action)?,
        id: ContainerId::new(line.actor.id),
        uid: Uid::new(line.actor.attributes.uid),
    })
}

/// What an action means here. A restart is told by its `die` and `start`; probes, attachments and
/// signals change nothing by themselves.
fn action(action: &str) -> Option<ContainerAction> {
    match action {
        "start" => Some(ContainerAction::Started),
        // The second of each pair is Podman's name for it.
        "die" | "died" => Some(ContainerAction::Died),
        "destroy" | "remove" => Some(ContainerAction::Removed),
        "oom" => Some(ContainerAction::OutOfMemory),
        "pause" | "unpause" | "update" | "rename" => Some(ContainerAction::Changed),
        // `health_status: healthy`; what it is now, an inspect says.
        other if other.starts_with("health_status") => Some(ContainerAction::Changed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(action: &str) -> String {
        format!(
            r#"{{"status":"x","id":"old","from":"i:1","Type":"container","Action":"{action}",
            "Actor":{{"ID":"c1","Attributes":{{"bargee.uid":"u1","image":"i:1","exitCode":"137"}}}},
            "scope":"local","time":1796040714,"timeNano":1796040714852890716}}"#
        )
    }

    fn seen(action: &str) -> Option<ContainerAction> {
        event(line(action).as_bytes()).map(|event| event.action)
    }

    #[test]
    fn an_event_names_container_and_workload() {
        let event = event(line("die").as_bytes()).unwrap();
        assert_eq!((event.id.as_str(), event.uid.as_str()), ("c1", "u1"));
        assert_eq!(event.action, ContainerAction::Died);
    }

    #[test]
    fn actions_of_both_engines_are_known() {
        assert_eq!(seen("start"), Some(ContainerAction::Started));
        assert_eq!(seen("died"), Some(ContainerAction::Died));
        assert_eq!(seen("oom"), Some(ContainerAction::OutOfMemory));
        assert_eq!(seen("destroy"), Some(ContainerAction::Removed));
        assert_eq!(seen("remove"), Some(ContainerAction::Removed));
        for action in ["pause", "unpause", "update", "rename", "health_status: healthy"] {
            assert_eq!(seen(action), Some(ContainerAction::Changed), "{action}");
        }
    }

    #[test]
    fn noise_and_odd_lines_are_skipped() {
        for action in ["create", "kill", "stop", "exec_create: sh", "exec_die", ""] {
            assert_eq!(seen(action), None, "{action}");
        }
        let network = line("die").replace(r#""Type":"container""#, r#""Type":"network""#);
        assert_eq!(event(network.as_bytes()), None);
        let foreign = line("die").replace("bargee.uid", "other.uid");
        assert_eq!(event(foreign.as_bytes()), None);
        for odd in ["", "{}", "[1]", "null", r#"{"Type":"container","Action":"die","Actor":7}"#] {
            assert_eq!(event(odd.as_bytes()), None, "{odd}");
        }
    }
}
