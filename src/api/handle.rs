//! One request: action in, answer out.

use tiny_http::Request;

use super::backend::{ApplyOptions, Backend};
use super::body;
use super::reply::{ApiError, Code, Reply};
use super::route::{self, Action, Filter, LogsOf};
use super::select::select;
use super::stream::{Places, Source, Stream};
use super::{journal, wire, workload};
use crate::domain::event::Verb;
use crate::domain::view::{Status, TaskId};

/// The answer to a request.
pub enum Answer {
    /// Sent whole.
    Whole(Reply),
    /// Sent as it comes.
    Stream(Stream),
}

/// What answering needs.
pub struct Context<'a> {
    /// The agent.
    pub backend: &'a dyn Backend,
    /// Places for streams.
    pub places: &'a Places,
}

/// Answers `request`; a refusal is an answer.
pub fn handle(request: &mut Request, context: &Context) -> Answer {
    let answer = match route::route(request.method().as_str(), request.url()) {
        Ok(action) => act(action, request, context),
        Err(error) => Err(error),
    };
    answer.unwrap_or_else(|error| Answer::Whole(Reply::from(&error)))
}

fn act(action: Action, request: &mut Request, context: &Context) -> Result<Answer, ApiError> {
    let backend = context.backend;
    if !action.is_served_early()
        && let Some((done, total)) = backend.status().recovering
    {
        return Err(ApiError::recovering(done, total));
    }
    let reply = match action {
        Action::Live => Reply::json(200, &wire::Health { ok: true, cause: String::new() }),
        Action::Ready => ready(backend),
        Action::List(filter) => list(backend, &filter),
        Action::Show(name) => show(backend, &name)?,
        Action::Change(name, verb) => change(backend, &name, verb)?,
        Action::Task(id) => task(backend, id)?,
        Action::Apply(options) => apply(backend, request, options)?,
        Action::Status => Reply::json(200, &workload::status(backend)),
        Action::Version => {
            let version = backend.identity().version.to_owned();
            Reply::json(200, &wire::Version { version })
        }
        Action::Config => config(backend),
        Action::Journal => journal::list(backend),
        Action::Entry(seq) => journal::show(backend, seq)?,
        Action::Replay(seq) => journal::replay(backend, seq)?,
        Action::DropEntry(seq) => journal::drop_entry(backend, seq)?,
        Action::Confirm => journal::confirm(backend)?,
        Action::Quiesce(span) => journal::quiesce(backend, span)?,
        Action::Resume => journal::resume(backend)?,
        Action::Adopt(name) => journal::adopt(backend, name.as_deref())?,
        Action::Logs(of) => return logs(context, &of).map(Answer::Stream),
        Action::Events(events) => {
            let place = context.places.take()?;
            return Ok(Answer::Stream(Stream { place, source: Source::Events(events) }));
        }
    };
    Ok(Answer::Whole(reply))
}

fn ready(backend: &dyn Backend) -> Reply {
    match workload::not_ready(&backend.status()) {
        None => Reply::json(200, &wire::Health { ok: true, cause: String::new() }),
        Some(cause) => Reply::json(503, &wire::Health { ok: false, cause }),
    }
}

fn list(backend: &dyn Backend, filter: &Filter) -> Reply {
    let status = backend.status();
    let common = common(backend, &status);
    let items = backend
        .workloads()
        .iter()
        .filter(|view| workload::passes(view, filter))
        .map(|view| workload::workload(view, common, backend.usage(&view.uid)))
        .collect();
    Reply::json(200, &wire::List { items })
}

fn common<'a>(backend: &'a dyn Backend, status: &'a Status) -> workload::Common<'a> {
    workload::Common { node: &backend.identity().node, status, now: backend.now() }
}

fn show(backend: &dyn Backend, name: &str) -> Result<Reply, ApiError> {
    let views = backend.workloads();
    let view = select(&views, name)?;
    let status = backend.status();
    let common = common(backend, &status);
    Ok(Reply::json(200, &workload::workload(view, common, backend.usage(&view.uid))))
}

fn change(backend: &dyn Backend, name: &str, verb: Verb) -> Result<Reply, ApiError> {
    let views = backend.workloads();
    let view = select(&views, name)?;
    let (task, revision) = backend.verb(&view.uid, verb)?;
    Ok(Reply::json(202, &wire::Accepted { task: task.0, revision }))
}

fn task(backend: &dyn Backend, id: TaskId) -> Result<Reply, ApiError> {
    match backend.task(id) {
        Some(task) => {
            let held = workload::held(&backend.status(), backend.now());
            Ok(Reply::json(200, &workload::task(&task, held)))
        }
        None => Err(ApiError::not_found(format!(
            "there is no task {}: it ended long ago, or before the agent was restarted",
            id.0
        ))),
    }
}

fn apply(
    backend: &dyn Backend,
    request: &mut Request,
    options: ApplyOptions,
) -> Result<Reply, ApiError> {
    let content_type = header(request, "Content-Type").unwrap_or_default().to_owned();
    let declared = request.body_length();
    let body = body::read(request.as_reader(), declared)?;
    let files = body::files(body, &content_type)?;
    let (applied, revision) = backend.apply(&files, options)?;
    let items = applied.iter().map(|one| wire::AppliedItem {
        key: one.key.to_string(),
        uid: one.uid.as_str().to_owned(),
        generation: one.generation,
        change: one.change.as_str().to_owned(),
    });
    Ok(Reply::json(200, &wire::Applied { revision, items: items.collect() }))
}

fn config(backend: &dyn Backend) -> Reply {
    let settings = backend.config();
    let settings = settings.into_iter().map(|(key, value)| (key.to_owned(), value));
    Reply::json(200, &wire::Settings(settings.collect()))
}

fn logs(context: &Context, of: &LogsOf) -> Result<Stream, ApiError> {
    let views = context.backend.workloads();
    let view = select(&views, &of.name)?;
    let key = &view.declared.key;
    let Some(container) = &view.container else {
        let message = format!("{key} has no container, so it has no log yet");
        return Err(ApiError::new(Code::Conflict, message));
    };
    let place = context.places.take()?;
    let log = context.backend.logs(container, of.follow, of.tail)?;
    Ok(Stream { place, source: Source::Log(log) })
}

/// The value of a header of `request`.
pub fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name))
        .map(|header| header.value.as_str())
}
