//! What a start needs of the host: mount sources that are there.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::domain::declared::Spec;
use crate::domain::fault::{Fault, FaultKind};

/// Checks the mount sources of `spec`. Engines would create a missing one as an empty folder and so
/// hide a missing disk.
///
/// # Errors
/// [`FaultKind::HostPath`] naming the first that is missing, or not on a file system of its own.
pub fn check(spec: &Spec) -> Result<(), Fault> {
    let missing = |path: &str, text: String| Fault::new(FaultKind::HostPath, "mount", path, text);
    for (path, mounted) in spec.host_paths() {
        let meta = fs::metadata(path).map_err(|error| {
            missing(path, format!("the mount source is not there: {error}; it starts when it is"))
        })?;
        if !mounted {
            continue;
        }
        let root = fs::metadata("/").map_err(|error| missing("/", error.to_string()))?;
        if meta.dev() == root.dev() {
            let text = "nothing is mounted there (it is on the file system of /); it starts when a \
                        disk is";
            return Err(missing(path, text.to_owned()));
        }
    }
    Ok(())
}
