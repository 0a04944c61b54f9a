//! Routing: method and URL in, an action out. Pure.

use nix::sys::signal::Signal;

use super::backend::ApplyOptions;
use super::reply::{ApiError, Code};
use super::url::{self, Query};
use crate::domain::event::Verb;
use crate::domain::intent::Seq;
use crate::domain::names::Label;
use crate::domain::time::Span;
use crate::domain::view::{State, TaskId};
use crate::limits;

/// What a request asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Is the socket served?
    Live,
    /// Does the agent do its work?
    Ready,
    /// All workloads that pass the filter.
    List(Filter),
    /// One workload, by any of its names.
    Show(String),
    /// Change one workload, by any of its names.
    Change(String, Verb),
    /// The log of a workload.
    Logs(LogsOf),
    /// How a task stands.
    Task(TaskId),
    /// Declare what is in the body.
    Apply(ApplyOptions),
    /// Transitions.
    Events(EventsSince),
    /// The journal.
    Journal,
    /// One entry of it.
    Entry(Seq),
    /// Replay one entry now; `None`: all that failed.
    Replay(Option<Seq>),
    /// Drop an entry: nothing is done for it.
    DropEntry(Seq),
    /// Take over containers of another store, by any name of the workload; `None`: all that wait.
    Adopt(Option<String>),
    /// What is held because it is suspicious is as it should be.
    Confirm,
    /// Hold reconciling for so long.
    Quiesce(Span),
    /// Go on reconciling.
    Resume,
    /// The agent.
    Status,
    /// Its version.
    Version,
    /// Its settings.
    Config,
}

impl Action {
    /// It only reads what is known while the journal is being replayed, so it is served by then.
    pub fn is_served_early(&self) -> bool {
        matches!(
            self,
            Self::Live
                | Self::Ready
                | Self::Status
                | Self::Version
                | Self::Journal
                | Self::Entry(_)
        )
    }
}

/// Which workloads are listed; `None`: all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Who declared it.
    pub source: Option<String>,
    /// Its application.
    pub application: Option<String>,
    /// The first word of its state, lower case.
    pub state: Option<String>,
}

/// Which lines of whose log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogsOf {
    /// Any name of the workload.
    pub name: String,
    /// Go on with what is written later.
    pub follow: bool,
    /// Only the last lines; `None`: all.
    pub tail: Option<u64>,
}

/// Which transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventsSince {
    /// Only those with a higher number.
    pub since: u64,
    /// Go on with what happens later.
    pub follow: bool,
}

/// Sources that a workload can have, now or in an agent to come.
const SOURCES: [&str; 4] = ["managed", "local", "directory", "controlplane"];

/// What `method` on `url` asks for.
///
/// # Errors
/// There is no such route, it has other methods, or its parameters are wrong.
pub fn route(method: &str, url: &str) -> Result<Action, ApiError> {
    let (segments, mut query) = url::split(url)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let action = match segments.as_slice() {
        ["health", "live"] => get(method, Action::Live),
        ["health", "ready"] => get(method, Action::Ready),
        ["v1", "ms"] => get(method, Action::List(filter(&mut query)?)),
        ["v1", "ms", name] if !name.is_empty() => one(method, name),
        ["v1", "ms", name, "logs"] => get(method, logs(name, &mut query)?),
        ["v1", "ms", name, verb] => post(method, change(name, verb, &mut query)?),
        ["v1", "tasks", id] => get(method, Action::Task(task(id)?)),
        ["v1", "deploy", "microservices:apply"] => post(method, apply(&mut query)?),
        ["v1", "events"] => get(method, events(&mut query)?),
        ["v1", "journal"] => get(method, Action::Journal),
        ["v1", "journal", "replay"] => post(method, Action::Replay(None)),
        ["v1", "journal", seq] => entry(method, seq_of(seq)?),
        ["v1", "journal", seq, "replay"] => post(method, Action::Replay(Some(seq_of(seq)?))),
        ["v1", "system", "status"] => get(method, Action::Status),
        ["v1", "system", "version"] => get(method, Action::Version),
        ["v1", "system", "config"] => get(method, Action::Config),
        ["v1", "system", "confirm"] => post(method, Action::Confirm),
        ["v1", "system", "quiesce"] => post(method, quiesce(&mut query)?),
        ["v1", "system", "resume"] => post(method, Action::Resume),
        ["v1", "system", "adopt"] => post(method, Action::Adopt(query.text("name"))),
        _ => Err(no_route(url)),
    }?;
    query.end()?;
    Ok(action)
}

fn no_route(url: &str) -> ApiError {
    let path = url.split('?').next().unwrap_or(url);
    ApiError::not_found(format!("there is no route {path}"))
}

fn only(method: &str, allowed: &'static str, action: Action) -> Result<Action, ApiError> {
    if method == allowed { Ok(action) } else { Err(wrong_method(method, allowed)) }
}

fn get(method: &str, action: Action) -> Result<Action, ApiError> {
    only(method, "GET", action)
}

fn post(method: &str, action: Action) -> Result<Action, ApiError> {
    only(method, "POST", action)
}

fn wrong_method(method: &str, allow: &'static str) -> ApiError {
    let message = format!("this route does not take {method}; allowed: {allow}");
    ApiError { allow, ..ApiError::new(Code::MethodNotAllowed, message) }
}

fn one(method: &str, name: &str) -> Result<Action, ApiError> {
    match method {
        "GET" => Ok(Action::Show(name.to_owned())),
        "DELETE" => Ok(Action::Change(name.to_owned(), Verb::Remove)),
        _ => Err(wrong_method(method, "GET, DELETE")),
    }
}

fn entry(method: &str, seq: Seq) -> Result<Action, ApiError> {
    match method {
        "GET" => Ok(Action::Entry(seq)),
        "DELETE" => Ok(Action::DropEntry(seq)),
        _ => Err(wrong_method(method, "GET, DELETE")),
    }
}

/// The number of an entry; the leading zeros of its key do not count.
fn seq_of(text: &str) -> Result<Seq, ApiError> {
    text.parse()
        .map(Seq)
        .map_err(|_| ApiError::invalid(format!("entry '{text}': must be a whole number")))
}

fn filter(query: &mut Query) -> Result<Filter, ApiError> {
    let source = query.text("source");
    if let Some(source) = source.as_deref().filter(|source| !SOURCES.contains(source)) {
        let allowed = SOURCES.join(", ");
        return Err(ApiError::invalid(format!("source={source}: allowed are {allowed}")));
    }
    let application = query.text("application");
    if let Some(Err(rule)) = application.as_deref().map(Label::parse) {
        return Err(ApiError::invalid(format!("application: {rule}")));
    }
    let state = query.text("state").map(|state| state.to_ascii_lowercase());
    if let Some(state) = state.as_deref().filter(|state| !is_state(state)) {
        let allowed = "Pending, Running, Stopping, Stopped, Succeeded, Failed";
        return Err(ApiError::invalid(format!("state={state}: allowed are {allowed}")));
    }
    Ok(Filter { source, application, state })
}

fn is_state(word: &str) -> bool {
    [
        State::PendingInitial,
        State::RunningOk,
        State::StoppingStopping,
        State::StoppedOk,
        State::SucceededOk,
        State::FailedUnknown,
    ]
    .iter()
    .any(|state| state.words().0.eq_ignore_ascii_case(word))
}

fn logs(name: &str, query: &mut Query) -> Result<Action, ApiError> {
    let follow = query.switch("follow")?;
    let tail = query.number("tail")?;
    query.unsupported("since")?;
    query.unsupported("timestamps")?;
    Ok(Action::Logs(LogsOf { name: name.to_owned(), follow, tail }))
}

fn change(name: &str, verb: &str, query: &mut Query) -> Result<Action, ApiError> {
    let verb = match verb {
        "start" => Verb::Start,
        "stop" => Verb::Stop,
        "restart" => Verb::Restart,
        "kill" => Verb::Kill(signal(query.text("signal").as_deref())?),
        "rebuild" => Verb::Rebuild,
        "exec" => return Err(ApiError::invalid("exec: not supported yet")),
        _ => return Err(ApiError::not_found(format!("a workload has no '{verb}'"))),
    };
    Ok(Action::Change(name.to_owned(), verb))
}

/// The name with `SIG` of a signal given as `HUP`, `sighup` or `1`; SIGKILL where none is given.
fn signal(text: Option<&str>) -> Result<String, ApiError> {
    let Some(text) = text else { return Ok("SIGKILL".to_owned()) };
    let upper = text.to_ascii_uppercase();
    let named = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    let signal = match text.parse::<i32>() {
        Ok(number) => Signal::try_from(number),
        Err(_) => named.parse::<Signal>(),
    };
    signal.map(|signal| signal.as_str().to_owned()).map_err(|_| {
        ApiError::invalid(format!(
            "signal={text}: must be a name like SIGHUP or a number from 1 to 31"
        ))
    })
}

fn task(id: &str) -> Result<TaskId, ApiError> {
    id.parse()
        .map(TaskId)
        .map_err(|_| ApiError::invalid(format!("task '{id}': must be a whole number")))
}

fn apply(query: &mut Query) -> Result<Action, ApiError> {
    let dry_run = query.switch("dryRun")?;
    let prune = query.switch("prune")?;
    let start = query.switch("start")?;
    Ok(Action::Apply(ApplyOptions { dry_run, prune, start }))
}

fn quiesce(query: &mut Query) -> Result<Action, ApiError> {
    let span = query.span("for")?.unwrap_or(Span(limits::QUIESCE_MS));
    if span > Span(limits::QUIESCE_MAX_MS) {
        let most = Span(limits::QUIESCE_MAX_MS).words();
        return Err(ApiError::invalid(format!("for={}: is longer than {most}", span.words())));
    }
    Ok(Action::Quiesce(span))
}

fn events(query: &mut Query) -> Result<Action, ApiError> {
    let since = query.number("since")?.unwrap_or(0);
    Ok(Action::Events(EventsSince { since, follow: query.switch("follow")? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(name: &str) -> Action {
        Action::Show(name.to_owned())
    }

    fn change(name: &str, verb: Verb) -> Action {
        Action::Change(name.to_owned(), verb)
    }

    fn logs(follow: bool, tail: Option<u64>) -> Action {
        Action::Logs(LogsOf { name: "web".to_owned(), follow, tail })
    }

    #[test]
    fn every_route_has_its_action() {
        let filtered = Filter {
            source: Some("local".to_owned()),
            application: Some("shop".to_owned()),
            state: Some("running".to_owned()),
        };
        let apply = |dry_run, prune, start| Action::Apply(ApplyOptions { dry_run, prune, start });
        let kill = |name: &str| change("web", Verb::Kill(name.to_owned()));
        let events = |since, follow| Action::Events(EventsSince { since, follow });
        let table = [
            ("GET", "/health/live", Action::Live),
            ("GET", "/health/ready", Action::Ready),
            ("GET", "/v1/ms", Action::List(Filter::default())),
            ("GET", "/v1/ms?source=&application=&state=", Action::List(Filter::default())),
            ("GET", "/v1/ms?source=local&application=shop&state=Running", Action::List(filtered)),
            ("GET", "/v1/ms/web", show("web")),
            ("GET", "/v1/ms/shop.web", show("shop.web")),
            ("GET", "/v1/ms/shop%2Fweb", show("shop/web")),
            ("DELETE", "/v1/ms/web", change("web", Verb::Remove)),
            ("POST", "/v1/ms/web/start", change("web", Verb::Start)),
            ("POST", "/v1/ms/web/stop", change("web", Verb::Stop)),
            ("POST", "/v1/ms/web/restart", change("web", Verb::Restart)),
            ("POST", "/v1/ms/web/rebuild", change("web", Verb::Rebuild)),
            ("POST", "/v1/ms/web/kill", kill("SIGKILL")),
            ("POST", "/v1/ms/web/kill?signal=hup", kill("SIGHUP")),
            ("POST", "/v1/ms/web/kill?signal=SIGUSR1", kill("SIGUSR1")),
            ("POST", "/v1/ms/web/kill?signal=15", kill("SIGTERM")),
            ("GET", "/v1/ms/web/logs", logs(false, None)),
            ("GET", "/v1/ms/web/logs?follow=true&tail=10", logs(true, Some(10))),
            ("GET", "/v1/tasks/7", Action::Task(TaskId(7))),
            ("POST", "/v1/deploy/microservices:apply", apply(false, false, false)),
            ("POST", "/v1/deploy/microservices:apply?dryRun=1", apply(true, false, false)),
            ("POST", "/v1/deploy/microservices:apply?prune=true", apply(false, true, false)),
            ("POST", "/v1/deploy/microservices:apply?start&prune=0", apply(false, false, true)),
            ("POST", "/v1/system/confirm", Action::Confirm),
            ("POST", "/v1/system/quiesce", Action::Quiesce(Span(900_000))),
            ("POST", "/v1/system/quiesce?for=90s", Action::Quiesce(Span(90_000))),
            ("POST", "/v1/system/quiesce?for=24h", Action::Quiesce(Span(86_400_000))),
            ("POST", "/v1/system/resume", Action::Resume),
            ("GET", "/v1/events", events(0, false)),
            ("GET", "/v1/events?since=4&follow", events(4, true)),
            ("GET", "/v1/journal", Action::Journal),
            ("GET", "/v1/journal/7", Action::Entry(Seq(7))),
            ("GET", "/v1/journal/00000000000000000007", Action::Entry(Seq(7))),
            ("DELETE", "/v1/journal/7", Action::DropEntry(Seq(7))),
            ("POST", "/v1/journal/7/replay", Action::Replay(Some(Seq(7)))),
            ("POST", "/v1/journal/replay", Action::Replay(None)),
            ("POST", "/v1/system/adopt", Action::Adopt(None)),
            ("POST", "/v1/system/adopt?name=shop/web", Action::Adopt(Some("shop/web".into()))),
            ("GET", "/v1/system/status", Action::Status),
            ("GET", "/v1/system/version", Action::Version),
            ("GET", "/v1/system/config", Action::Config),
        ];
        for (method, url, action) in table {
            assert_eq!(route(method, url), Ok(action), "{method} {url}");
        }
    }

    #[test]
    fn every_wrong_request_has_its_refusal() {
        let table = [
            ("GET", "/", 404, "there is no route /"),
            ("GET", "/v1/ms/", 404, "there is no route /v1/ms/"),
            ("GET", "/v2/ms?x=1", 404, "there is no route /v2/ms"),
            ("GET", "/v1/ms/web/logs/more", 404, "no route"),
            ("POST", "/v1/ms/web/dance", 404, "a workload has no 'dance'"),
            ("POST", "/v1/ms", 405, "does not take POST; allowed: GET"),
            ("PUT", "/v1/ms/web", 405, "allowed: GET, DELETE"),
            ("GET", "/v1/ms/web/stop", 405, "allowed: POST"),
            ("POST", "/v1/ms/web/logs", 405, "allowed: GET"),
            ("HEAD", "/health/live", 405, "allowed: GET"),
            ("POST", "/v1/ms/web/exec", 400, "not supported yet"),
            ("POST", "/v1/ms/web/kill?signal=SIGNAL", 400, "must be a name like SIGHUP"),
            ("POST", "/v1/ms/web/kill?signal=0", 400, "must be a name like SIGHUP"),
            ("POST", "/v1/ms/web/stop?signal=9", 400, "unknown query parameter 'signal'"),
            ("GET", "/v1/ms?sort=name", 400, "unknown query parameter 'sort'; allowed: source,"),
            ("GET", "/v1/ms?source=me", 400, "allowed are managed, local"),
            ("GET", "/v1/ms?application=A", 400, "lower-case"),
            ("GET", "/v1/ms?state=happy", 400, "allowed are Pending"),
            ("GET", "/v1/ms/web/logs?tail=all", 400, "must be a whole number"),
            ("GET", "/v1/ms/web/logs?since=1h", 400, "'since': not supported yet"),
            ("GET", "/v1/tasks/x", 400, "must be a whole number"),
            ("POST", "/v1/deploy/microservices:apply?prune=all", 400, "allowed are true and"),
            ("GET", "/v1/system/confirm", 405, "allowed: POST"),
            ("GET", "/v1/system/resume", 405, "allowed: POST"),
            ("POST", "/v1/system/quiesce?for=soon", 400, "must be a time like 500ms, 60s, 15m"),
            ("POST", "/v1/system/quiesce?for=25h", 400, "for=25h: is longer than 24h"),
            ("POST", "/v1/deploy/microservices:apply?dryRun=yes", 400, "allowed are true and"),
            ("GET", "/v1/events?since=-1", 400, "must be a whole number"),
            ("GET", "/v1/ms/%", 400, "percent-encoded"),
            ("POST", "/v1/journal", 405, "allowed: GET"),
            ("GET", "/v1/journal/replay", 405, "allowed: POST"),
            ("POST", "/v1/journal/7", 405, "allowed: GET, DELETE"),
            ("GET", "/v1/journal/7/replay", 405, "allowed: POST"),
            ("GET", "/v1/journal/x", 400, "entry 'x': must be a whole number"),
            ("DELETE", "/v1/journal/-1", 400, "must be a whole number"),
            ("POST", "/v1/journal/x/replay", 400, "must be a whole number"),
            ("POST", "/v1/journal/7/undo", 404, "no route"),
            ("GET", "/v1/journal?state=x", 400, "unknown query parameter 'state'"),
            ("DELETE", "/v1/journal/7?force=1", 400, "unknown query parameter 'force'"),
            ("GET", "/v1/system/adopt", 405, "allowed: POST"),
            ("POST", "/v1/system/adopt?all=1", 400, "unknown query parameter 'all'"),
        ];
        for (method, url, status, message) in table {
            let error = route(method, url).unwrap_err();
            assert_eq!(error.code.status(), status, "{method} {url}");
            assert!(error.message.contains(message), "{method} {url}: {}", error.message);
        }
    }

    #[test]
    fn a_wrong_method_names_the_right_ones() {
        assert_eq!(route("PATCH", "/v1/ms/web").unwrap_err().allow, "GET, DELETE");
    }
}
