//! What the engine refuses as wrong.

use std::path::Path;
use std::str::FromStr;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::world::Refusal;

/// Refuses what could never be made.
///
/// # Errors
/// 400: the image is no reference, or a path of the host is not there.
pub fn wrong(body: &Value) -> Result<(), Refusal> {
    let image = body["Image"].as_str().ok_or((400, "no image".to_owned()))?;
    if !is_reference(image) {
        return Err((400, "invalid reference format".to_owned()));
    }
    for mount in body["HostConfig"]["Mounts"].as_array().into_iter().flatten() {
        let source = mount["Source"].as_str().unwrap_or_default();
        if mount["Type"] == "bind" && !Path::new(source).exists() {
            let words = "invalid mount config for type \"bind\": bind source path does not exist:";
            return Err((400, format!("{words} {source}")));
        }
    }
    Ok(())
}

/// Refuses a signal that there is not.
///
/// # Errors
/// 400: it has no such name, with or without `SIG`, and is no number.
pub fn signal(name: &str) -> Result<(), Refusal> {
    let full = format!("SIG{}", name.trim_start_matches("SIG"));
    let is_real_time = full.starts_with("SIGRTM");
    if name.parse::<u8>().is_ok() || is_real_time || Signal::from_str(&full).is_ok() {
        return Ok(());
    }
    Err((400, format!("Invalid signal: {name}")))
}

/// Whether a registry could have an image of this name.
pub fn is_reference(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-:".contains(c);
    name.split('/').all(|part| !part.is_empty() && part.chars().all(fits))
}
