//! Pulling an image.

use std::collections::BTreeMap;

use super::lines::Lines;
use super::transport::{self, Ask, Patience, Transport};
use super::url;
use super::wire::PullLine;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::view::PullProgress;
use crate::limits::PULL_LAYERS;

/// Pulls `image`, and looks whether it is there then.
///
/// # Errors
/// As for [`Engine::pull`](crate::engine::Engine::pull).
pub(super) fn pull(
    transport: &Transport,
    image: &str,
    tell: &mut dyn FnMut(PullProgress),
) -> Result<(), Fault> {
    let (name, tag) = split(image);
    let target = format!("/images/create?fromImage={}&tag={}", url::escape(name), url::escape(tag));
    let ask = Ask::post("pull", image, target).with(Patience::Pull);
    let body = transport::body(&ask, transport.stream(&ask)?, |status| match status {
        400 => FaultKind::Refused,
        // A tag may be pushed, a registry come back, a login be repaired.
        _ => FaultKind::Trouble,
    })?;
    let mut lines = Lines::new(body.into_reader());
    let mut layers = Layers::default();
    while let Some(line) = lines.next().map_err(|error| ask.cut(&error))? {
        let Ok(line) = serde_json::from_slice::<PullLine>(line) else { continue };
        if let Some(words) = line.failure() {
            return Err(ask.fault(FaultKind::Trouble, words));
        }
        if let Some(progress) = layers.take(&line) {
            tell(progress);
        }
    }
    if exists(transport, image)? {
        Ok(())
    } else {
        Err(ask.fault(FaultKind::Trouble, "the engine ended the pull, but the image is not there"))
    }
}

/// Whether the image is on the device.
fn exists(transport: &Transport, image: &str) -> Result<bool, Fault> {
    let ask = Ask::get("look for image", image, format!("/images/{}/json", url::escape(image)));
    let reply = transport.call(&ask)?;
    match reply.status {
        200 => Ok(true),
        404 => Ok(false),
        _ => Err(reply.fault(FaultKind::Trouble, &ask)),
    }
}

/// Name and tag of a reference. One with a digest goes in whole; without a tag it means `latest`,
/// because the engine takes no tag as all of them.
fn split(image: &str) -> (&str, &str) {
    if image.contains('@') {
        return (image, "");
    }
    // A colon before the last slash belongs to the registry's port.
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

/// How far each layer has come.
#[derive(Debug, Default)]
struct Layers(BTreeMap<String, Layer>);

#[derive(Debug, Default)]
struct Layer {
    done: u64,
    total: u64,
}

impl Layers {
    /// Takes a line into account; the new sums, if they changed.
    fn take(&mut self, line: &PullLine) -> Option<PullProgress> {
        let room = self.0.len() < PULL_LAYERS;
        match line.status.as_str() {
            "Downloading" if room || self.0.contains_key(&line.id) => {
                let layer = self.0.entry(line.id.clone()).or_default();
                layer.done = line.progress_detail.current;
                layer.total = line.progress_detail.total.max(layer.done);
            }
            "Download complete" | "Pull complete" => {
                let layer = self.0.get_mut(&line.id)?;
                if layer.done == layer.total {
                    return None;
                }
                layer.done = layer.total;
            }
            _ => return None,
        }
        let sum = |part: fn(&Layer) -> u64| self.0.values().map(part).fold(0, u64::saturating_add);
        Some(PullProgress {
            done_bytes: sum(|layer| layer.done),
            total_bytes: sum(|layer| layer.total),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_split_as_docker_means_them() {
        for (image, name, tag) in [
            ("nginx", "nginx", "latest"),
            ("nginx:1.27-alpine", "nginx", "1.27-alpine"),
            ("registry:5000/web", "registry:5000/web", "latest"),
            ("registry:5000/shop/web:2", "registry:5000/shop/web", "2"),
            ("nginx@sha256:abc", "nginx@sha256:abc", ""),
            ("nginx:1@sha256:abc", "nginx:1@sha256:abc", ""),
        ] {
            assert_eq!(split(image), (name, tag));
        }
    }

    fn take(layers: &mut Layers, line: &str) -> Option<(u64, u64)> {
        let progress = layers.take(&serde_json::from_str(line).unwrap())?;
        Some((progress.done_bytes, progress.total_bytes))
    }

    #[test]
    fn progress_is_summed_over_layers() {
        let mut layers = Layers::default();
        let line = |id: &str, current: u64, total: u64| {
            format!(
                r#"{{"status":"Downloading","id":"{id}","progress":"[=>  ]",
                "progressDetail":{{"current":{current},"total":{total}}}}}"#
            )
        };
        let status = |id: &str, status: &str| {
            format!(r#"{{"status":"{status}","id":"{id}","progressDetail":{{}}}}"#)
        };
        assert_eq!(take(&mut layers, &status("latest", "Pulling from web")), None);
        assert_eq!(take(&mut layers, &line("a", 10, 100)), Some((10, 100)));
        assert_eq!(take(&mut layers, &line("b", 5, 50)), Some((15, 150)));
        assert_eq!(take(&mut layers, &status("a", "Download complete")), Some((105, 150)));
        assert_eq!(take(&mut layers, &status("a", "Pull complete")), None);
        assert_eq!(take(&mut layers, &status("c", "Pull complete")), None);
        // Extracting counts the same bytes again.
        assert_eq!(
            take(&mut layers, &line("a", 1, 100).replace("Downloading", "Extracting")),
            None
        );
        // A size that is not known is at least what came.
        assert_eq!(take(&mut layers, &line("d", 7, 0)), Some((112, 157)));
    }

    #[test]
    fn layers_are_bounded() {
        let mut layers = Layers::default();
        for id in 0..PULL_LAYERS + 10 {
            let line = format!(
                r#"{{"status":"Downloading","id":"{id}",
                "progressDetail":{{"current":1,"total":2}}}}"#
            );
            take(&mut layers, &line);
        }
        assert_eq!(layers.0.len(), PULL_LAYERS);
    }
}
