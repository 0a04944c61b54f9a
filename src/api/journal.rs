//! The journal as the JSON of the API, and what can be done about it.

use std::collections::HashMap;

use super::backend::Backend;
use super::reply::{ApiError, Reply};
use super::select::select;
use super::wire;
use crate::domain::event::Request;
use crate::domain::intent::{Entry, Intent, Seq};
use crate::domain::names::Uid;
use crate::domain::time::Span;

/// All entries, in order.
pub fn list(backend: &dyn Backend) -> Reply {
    let entries = backend.journal();
    // An empty journal is the rule.
    let views = if entries.is_empty() { Vec::new() } else { backend.workloads() };
    let keys: HashMap<&Uid, String> =
        views.iter().map(|view| (&view.uid, view.declared.key.to_string())).collect();
    let items = entries
        .iter()
        .map(|entry| wire_entry(backend, entry, |uid| keys.get(uid).cloned()))
        .collect();
    Reply::json(200, &wire::List { items })
}

/// One entry, with its text if it cannot be read.
///
/// # Errors
/// There is no such entry.
pub fn show(backend: &dyn Backend, seq: Seq) -> Result<Reply, ApiError> {
    let entries = backend.journal();
    let Some(entry) = entries.iter().find(|entry| entry.seq == seq) else {
        let number = seq.0;
        return Err(ApiError::not_found(format!(
            "there is no entry {number} in the journal: it was settled, or never written"
        )));
    };
    let key = |uid: &Uid| {
        let views = backend.workloads();
        views.iter().find(|view| view.uid == *uid).map(|view| view.declared.key.to_string())
    };
    let mut shown = wire_entry(backend, entry, key);
    if let Intent::Unreadable { text, .. } = &entry.intent {
        shown.text.clone_from(text);
    }
    Ok(Reply::json(200, &shown))
}

fn wire_entry(
    backend: &dyn Backend,
    entry: &Entry,
    key_of: impl Fn(&Uid) -> Option<String>,
) -> wire::Entry {
    let identity = backend.identity();
    let intent = &entry.intent;
    let new = match intent {
        Intent::Replace { new, .. } => new.to_string(),
        _ => String::new(),
    };
    wire::Entry {
        key: format!("/wal/{}/{:020}", identity.node, entry.seq.0),
        seq: entry.seq.0,
        kind: intent.kind().to_owned(),
        direction: intent.direction().unwrap_or_default().to_owned(),
        uid: intent.uid().map(ToString::to_string).unwrap_or_default(),
        workload: intent.uid().and_then(key_of).unwrap_or_default(),
        instance: intent.instance().map(ToString::to_string).unwrap_or_default(),
        new,
        at: entry.at_ms,
        tries: entry.tries,
        error: entry.error.clone(),
        own: entry.token == identity.token,
        text: String::new(),
    }
}

/// Replays one entry now, or all that failed.
///
/// # Errors
/// The agent's.
pub fn replay(backend: &dyn Backend, seq: Option<Seq>) -> Result<Reply, ApiError> {
    act(backend, Request::Replay(seq))
}

/// Drops an entry.
///
/// # Errors
/// The agent's.
pub fn drop_entry(backend: &dyn Backend, seq: Seq) -> Result<Reply, ApiError> {
    act(backend, Request::DropEntry(seq))
}

/// Takes over containers of another store, of one workload or of all that wait.
///
/// # Errors
/// The agent's, or `name` means no workload, or more than one.
pub fn adopt(backend: &dyn Backend, name: Option<&str>) -> Result<Reply, ApiError> {
    let uid = match name {
        Some(name) => Some(select(&backend.workloads(), name)?.uid.clone()),
        None => None,
    };
    act(backend, Request::Adopt(uid))
}

/// Says that what is held because it is suspicious is as it should be.
///
/// # Errors
/// The agent's.
pub fn confirm(backend: &dyn Backend) -> Result<Reply, ApiError> {
    act(backend, Request::Confirm)
}

/// Holds reconciling for a while.
///
/// # Errors
/// The agent's.
pub fn quiesce(backend: &dyn Backend, span: Span) -> Result<Reply, ApiError> {
    act(backend, Request::Quiesce(span))
}

/// Goes on reconciling.
///
/// # Errors
/// The agent's.
pub fn resume(backend: &dyn Backend) -> Result<Reply, ApiError> {
    act(backend, Request::Resume)
}

fn act(backend: &dyn Backend, request: Request) -> Result<Reply, ApiError> {
    let message = backend.act(request)?;
    Ok(Reply::json(200, &wire::Done { message }))
}
