//! Mounts: `name:/path[:ro]` and `/host/path:/path[:ro,mounted]`.

use std::collections::BTreeMap;

use crate::domain::declared::{Mount, MountSource};
use crate::limits::MANIFEST_NAME_BYTES;
use crate::yaml::field::Field;
use crate::yaml::{Flaws, shown};

const EXPECTED: &str = "a mount as data:/var/lib/app, /etc/app:/etc/app:ro or /mnt/disk:/d:mounted";

/// All mounts of a workload; each has a target of its own.
pub fn mounts(field: &Field<'_>, flaws: &mut Flaws) -> Option<Vec<Mount>> {
    let (mut mounts, mut whole) = (Vec::new(), true);
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let items = field.items(r#"a list of mounts as ["data:/var/lib/app"]"#, flaws)?;
    for (index, item) in items.enumerate() {
        let Some(mount) = item.parse(EXPECTED, flaws, mount) else {
            whole = false;
            continue;
        };
        if let Some(first) = taken.insert(components(&mount.target), index) {
            let message = format_args!("{} is the target of [{first}] as well", mount.target);
            item.refuse(flaws, message);
            whole = false;
        }
        mounts.push(mount);
    }
    whole.then_some(mounts)
}

/// One mount as text, the inverse of [`mount`].
pub fn show(mount: &Mount) -> String {
    let (source, mounted) = match &mount.source {
        MountSource::Volume(name) => (name, false),
        MountSource::Host { path, mounted } => (path, *mounted),
    };
    let options = match (mount.read_only, mounted) {
        (false, false) => "",
        (true, false) => ":ro",
        (false, true) => ":mounted",
        (true, true) => ":ro,mounted",
    };
    format!("{source}:{}{options}", mount.target)
}

fn mount(text: &str) -> Result<Mount, String> {
    let wrong = |why: &str| format!("must be {EXPECTED}, found {}{why}", shown(text));
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, options) = match parts.as_slice() {
        [source, target] => (*source, *target, None),
        [source, target, options] => (*source, *target, Some(*options)),
        _ => return Err(wrong("")),
    };
    if !target.starts_with('/') {
        return Err(wrong(", whose target is not an absolute path"));
    }
    if components(target).is_empty() {
        return Err(wrong(", whose target is the root of the container"));
    }
    let (read_only, mounted) = match options {
        Some(options) => flags(options).ok_or_else(|| {
            wrong(&format!(", whose options {} are not of ro, rw, mounted", shown(options)))
        })?,
        None => (false, false),
    };
    let source = if source.starts_with('/') {
        MountSource::Host { path: source.to_owned(), mounted }
    } else if mounted {
        return Err(wrong(", where mounted is only for paths of the host"));
    } else {
        volume(source).map(MountSource::Volume).map_err(|why| wrong(&why))?
    };
    Ok(Mount { source, target: target.to_owned(), read_only })
}

/// `(read_only, mounted)`; each option once, and not both of `ro` and `rw`.
fn flags(options: &str) -> Option<(bool, bool)> {
    let (mut read_only, mut mounted) = (None, false);
    for option in options.split(',') {
        match option {
            "ro" | "rw" if read_only.is_none() => read_only = Some(option == "ro"),
            "mounted" if !mounted => mounted = true,
            _ => return None,
        }
    }
    Some((read_only.unwrap_or(false), mounted))
}

fn volume(name: &str) -> Result<String, String> {
    if name.starts_with(['.', '~']) {
        return Err(
            ", whose source is neither an absolute path nor the name of a volume".to_owned()
        );
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !first || name.len() > MANIFEST_NAME_BYTES || !name.bytes().all(plain) {
        return Err(format!(
            ", whose volume must have 1 to {MANIFEST_NAME_BYTES} letters, digits, '_', '.' or '-' \
             and begin with a letter or digit"
        ));
    }
    Ok(name.to_owned())
}

/// A path without what makes two spellings of one.
fn components(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}
