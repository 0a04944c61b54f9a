//! Pulling an image, and making it durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use super::lines::Lines;
use super::transport::{self, Ask, Patience, Transport};
use super::url;
use super::wire::{Info, PullLine};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::view::PullProgress;
use crate::engine::cancel::Cancel;
use crate::limits::PULL_LAYERS;
use crate::os::sync;

/// Pulls `image`, and looks whether it is there then. Whether it brought anything.
///
/// # Errors
/// As for [`Engine::pull`](crate::engine::Engine::pull).
pub(super) fn pull(
    transport: &Transport,
    image: &str,
    cancel: &Cancel,
    tell: &mut dyn FnMut(PullProgress),
) -> Result<bool, Fault> {
    let (name, tag) = split(image);
    let target = format!("/images/create?fromImage={}&tag={}", url::escape(name), url::escape(tag));
    let ask = Ask::post("pull", image, target).with(Patience::Pull);
    // A client of its own: the end of its only connection is what ends the pull on the engine.
    let agent = transport.own_agent();
    let of_cancel = agent.clone();
    if !cancel.begin(move || of_cancel.shutdown()) {
        return Err(ask.fault(FaultKind::Trouble, "not wanted any more"));
    }
    let body = transport::body(&ask, transport.open(&agent, &ask)?, |status| match status {
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
        if layers.take(&line) {
            tell(layers.sums());
        }
    }
    if exists(transport, image)? {
        Ok(layers.brought)
    } else {
        Err(ask.fault(FaultKind::Trouble, "the engine ended the pull, but the image is not there"))
    }
}

/// Syncs the file system on which the engine keeps images; where it keeps them in a place that this
/// process does not see, or does not say where, every file system.
///
/// # Errors
/// As for [`Engine::sync_images`](crate::engine::Engine::sync_images).
pub(super) fn sync_images(transport: &Transport) -> Result<(), Fault> {
    let Some(root) = data_root(transport).filter(|root| is_data_of_docker(Path::new(root))) else {
        sync::sync_all();
        return Ok(());
    };
    sync::sync_file_system(Path::new(&root)).map_err(|error| {
        let message = format!("its file system cannot be written to the disk: {error}");
        Fault::new(FaultKind::Trouble, "sync", root, message)
    })
}

/// Where the engine keeps its images, as it sees it.
fn data_root(transport: &Transport) -> Option<String> {
    let ask = Ask::get("ask the engine for its data directory", "", "/info".into());
    let reply = transport.call(&ask).ok().filter(|reply| reply.status == 200)?;
    let info: Info = reply.json(&ask).ok()?;
    info.keeps_images_itself().then_some(info.docker_root_dir)
}

/// The engine may have another view of the file systems, as one in a container has: what goes by
/// the same name here must also look like it, and be open to this user.
fn is_data_of_docker(root: &Path) -> bool {
    root.is_absolute() && root.join("containers").is_dir() && File::open(root).is_ok()
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
struct Layers {
    of: BTreeMap<String, Layer>,
    /// Something came that was not there before.
    brought: bool,
}

#[derive(Debug, Default)]
struct Layer {
    done: u64,
    total: u64,
    unpacked: u64,
}

impl Layers {
    /// Takes a line into account; whether it says that something moved. Lines about waiting and
    /// trying again do not.
    fn take(&mut self, line: &PullLine) -> bool {
        let room = self.of.len() < PULL_LAYERS;
        let detail = line.progress_detail;
        let moved = match line.status.as_str() {
            "Downloading" if room || self.of.contains_key(&line.id) => {
                let layer = self.of.entry(line.id.clone()).or_default();
                let before = (layer.done, layer.total);
                layer.done = detail.current;
                layer.total = detail.total.max(layer.done);
                before != (layer.done, layer.total)
            }
            "Extracting" => match self.of.get_mut(&line.id) {
                Some(layer) => {
                    std::mem::replace(&mut layer.unpacked, detail.current) != detail.current
                }
                None => true,
            },
            "Download complete" | "Pull complete" => {
                if let Some(layer) = self.of.get_mut(&line.id) {
                    layer.done = layer.total;
                }
                true
            }
            "Verifying Checksum" => true,
            _ => false,
        };
        self.brought |= moved;
        moved
    }

    fn sums(&self) -> PullProgress {
        let sum = |part: fn(&Layer) -> u64| self.of.values().map(part).fold(0, u64::saturating_add);
        PullProgress { done_bytes: sum(|layer| layer.done), total_bytes: sum(|layer| layer.total) }
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
        let moved = layers.take(&serde_json::from_str(line).unwrap());
        let progress = layers.sums();
        moved.then_some((progress.done_bytes, progress.total_bytes))
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
        for nothing in ["Pulling from web", "Waiting", "Already exists", "Retrying in 3 seconds"] {
            assert_eq!(take(&mut layers, &status("latest", nothing)), None);
        }
        assert!(!layers.brought);
        assert_eq!(take(&mut layers, &line("a", 10, 100)), Some((10, 100)));
        assert!(layers.brought);
        assert_eq!(take(&mut layers, &line("a", 10, 100)), None, "nothing came");
        assert_eq!(take(&mut layers, &line("b", 5, 50)), Some((15, 150)));
        assert_eq!(take(&mut layers, &status("a", "Download complete")), Some((105, 150)));
        assert_eq!(take(&mut layers, &status("c", "Pull complete")), Some((105, 150)));
        // Extracting counts the same bytes again, and moves all the same.
        let extracting = line("a", 1, 100).replace("Downloading", "Extracting");
        assert_eq!(take(&mut layers, &extracting), Some((105, 150)));
        assert_eq!(take(&mut layers, &extracting), None);
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
        assert_eq!(layers.of.len(), PULL_LAYERS);
    }
}
