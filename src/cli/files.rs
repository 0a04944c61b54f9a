//! The manifests that a command line names, read within their bound.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::failure::{Exit, Failure};
use crate::api::wire::ApplyFile;
use crate::limits::BODY_BYTES;

/// Reads what `paths` name: files, directories, `-` for `input`.
///
/// # Errors
/// One of them cannot be read, holds no manifest, is not text, or all are too large together.
pub fn read(paths: &[PathBuf], input: &mut dyn Read) -> Result<Vec<ApplyFile>, Failure> {
    let mut files = Vec::new();
    let mut left = BODY_BYTES;
    for path in paths {
        if path.as_os_str() == "-" {
            files.push(take("standard input".to_owned(), input, &mut left)?);
            continue;
        }
        for path in expand(path)? {
            let name = path.display().to_string();
            let mut file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
            files.push(take(name, &mut file, &mut left)?);
        }
    }
    Ok(files)
}

/// The body of an apply.
///
/// # Errors
/// It is too large.
pub fn body(files: Vec<ApplyFile>) -> Result<Vec<u8>, Failure> {
    let body = serde_json::to_vec(&crate::api::wire::ApplyBody { files })
        .map_err(|error| Failure::failed(error.to_string()))?;
    if body.len() > BODY_BYTES { Err(too_large("")) } else { Ok(body) }
}

/// `at` names the file with which it became too much, where that is known.
fn too_large(at: &str) -> Failure {
    let message = format!("{at}the manifests are larger than {BODY_BYTES} bytes in all");
    Failure::failed(message).with_hint("deploy them in several goes")
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::PermissionDenied => Exit::NotAllowed,
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("{}: {error}", path.display()))
}

/// The file itself, or the manifests in the directory, sorted.
fn expand(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error| unreadable(path, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if is_manifest(&file) && !file.is_dir() {
            found.push(file);
        }
    }
    if found.is_empty() {
        let message = format!("{}: no *.yaml, *.yml or *.json in it", path.display());
        return Err(Failure::failed(message));
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let known =
        path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml" || kind == "json");
    known && !hidden
}

/// Reads one file, no more than is `left`.
fn take(name: String, reader: &mut dyn Read, left: &mut usize) -> Result<ApplyFile, Failure> {
    let mut bytes = Vec::new();
    let bound = *left as u64 + 1;
    let read = reader.take(bound).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(Path::new(&name), &error))?;
    *left = left.checked_sub(bytes.len()).ok_or_else(|| too_large(&format!("{name}: ")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        Failure::failed(format!("{name}:{line}: is not UTF-8 text"))
    })?;
    Ok(ApplyFile { name, text })
}
