//! NAME to workload: which one is meant by a name, an `application/name` or a piece of a uid.

use std::sync::Arc;

use super::reply::{ApiError, Code};
use super::wire;
use crate::domain::record::Desired;
use crate::domain::view::View;

/// Fewest hex digits of a uid that stand for it.
const PREFIX_DIGITS: usize = 4;

/// The workload that `name` means: its uid, `application/name` or `application.name`, its name
/// where that is unique, or a piece of its uid from the beginning. An exact name wins. One that is
/// being removed gives way to the one that was declared in its place.
///
/// # Errors
/// None is meant, or more than one; the details then list them.
pub fn select<'a>(views: &'a [Arc<View>], name: &str) -> Result<&'a Arc<View>, ApiError> {
    let mut meant = exact(views, name).unwrap_or_else(|| by_prefix(views, name));
    let declared: Vec<_> = meant.iter().copied().filter(|view| !is_leaving(view)).collect();
    meant.retain(|view| !(is_leaving(view) && declared.iter().any(|other| same_key(view, other))));
    match meant.as_slice() {
        [one] => Ok(*one),
        [] => Err(ApiError::not_found(format!("no workload is called '{name}'"))),
        many => Err(ambiguous(name, many)),
    }
}

fn is_leaving(view: &View) -> bool {
    view.desired == Desired::Deleted
}

fn same_key(a: &View, b: &View) -> bool {
    a.declared.key == b.declared.key
}

/// Those that are called exactly `name`; `None`: no one is.
fn exact<'a>(views: &'a [Arc<View>], name: &str) -> Option<Vec<&'a Arc<View>>> {
    let has = |test: &dyn Fn(&View) -> bool| {
        let found: Vec<_> = views.iter().filter(|view| test(view)).collect();
        (!found.is_empty()).then_some(found)
    };
    // Labels hold neither '/' nor '.', so the first of them separates.
    if let Some((application, name)) = name.split_once(['/', '.']) {
        return has(&|view| {
            let key = &view.declared.key;
            key.application.as_str() == application && key.name.as_str() == name
        });
    }
    has(&|view| view.uid.as_str() == name)
        .or_else(|| has(&|view| view.declared.key.name.as_str() == name))
}

fn by_prefix<'a>(views: &'a [Arc<View>], name: &str) -> Vec<&'a Arc<View>> {
    let prefix = name.to_ascii_lowercase();
    let digits = prefix.bytes().filter(u8::is_ascii_hexdigit).count();
    if digits < PREFIX_DIGITS || !prefix.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return Vec::new();
    }
    views.iter().filter(|view| view.uid.as_str().starts_with(&prefix)).collect()
}

fn ambiguous(name: &str, many: &[&Arc<View>]) -> ApiError {
    let matches: Vec<wire::Match> = many
        .iter()
        .map(|view| wire::Match {
            uid: view.uid.as_str().to_owned(),
            key: view.declared.key.to_string(),
        })
        .collect();
    let listed: Vec<String> =
        matches.iter().map(|one| format!("{} ({})", one.key, one.uid)).collect();
    let message = format!("'{name}' could be any of {}", listed.join(", "));
    ApiError::new(Code::Conflict, message).with_details(&matches)
}
