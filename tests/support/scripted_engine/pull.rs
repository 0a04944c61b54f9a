//! Pulls.

use serde_json::{Value, json};

use super::http::Reply;
use super::refuse;
use super::world::World;

/// Bytes of the one layer of every image.
const LAYER_BYTES: u64 = 4 << 20;
/// It comes in so many pieces.
const PIECES: u64 = 4;

/// Brings an image, and tells how it comes; one that is there already comes at once.
pub fn pull(world: &mut World, name: &str, tag: &str) -> Reply {
    let image = format!("{name}:{tag}");
    if !refuse::is_reference(&image) {
        return Reply::error(400, "invalid reference format");
    }
    if !world.registry.contains(&image) {
        return Reply::error(500, "manifest unknown");
    }
    let is_new = world.images.insert(image.clone());
    let mut lines = vec![json!({"status": format!("Pulling from {name}"), "id": tag})];
    let word = if is_new {
        lines.extend(layer());
        "Downloaded newer image for"
    } else {
        "Image is up to date for"
    };
    lines.push(json!({"status": format!("Status: {word} {image}")}));
    let body = lines.iter().map(|line| format!("{line}\n")).collect();
    Reply { status: 200, body }
}

fn layer() -> Vec<Value> {
    let line = |status: &str| json!({"status": status, "progressDetail": {}, "id": "a1"});
    let moved = |status: &str, piece: u64| {
        let detail = json!({"current": piece * LAYER_BYTES / PIECES, "total": LAYER_BYTES});
        json!({"status": status, "progressDetail": detail, "progress": "[=> ]", "id": "a1"})
    };
    let mut lines = vec![line("Pulling fs layer")];
    lines.extend((1..=PIECES).map(|piece| moved("Downloading", piece)));
    lines.extend([line("Verifying Checksum"), line("Download complete")]);
    lines.extend((1..=PIECES).map(|piece| moved("Extracting", piece)));
    lines.push(line("Pull complete"));
    lines
}
