//! The agent, as commands see it: requests over its socket, refusals as failures.

use std::error::Error as _;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body, Error};

use super::console::Console;
use super::failure::{Exit, Failure};
use super::patience::Patience;
use crate::api::wire::{ErrorBody, ErrorDetail, Match, Recovering};
use crate::limits;
use crate::os::unix_http;

/// How to start the agent, as a hint.
const START: &str = "start it with `systemctl start bargee` or `bargee agent`";

/// A connection to the agent. While that replays its journal, calls wait for it.
pub struct Client {
    agent: Agent,
    socket: PathBuf,
    patience: Patience,
}

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum CallError {
    /// The agent said no, with this HTTP status.
    Refused(u16, ErrorDetail),
    /// There was no answer that could be understood.
    NoAnswer(Failure),
}

/// The method of a request, with its body.
#[derive(Clone, Copy)]
enum Method<'a> {
    Get,
    Delete,
    Post(&'a [u8]),
}

impl Client {
    /// A client of the agent behind `socket`. It connects with the first request.
    pub fn new(socket: &Path) -> Self {
        let connect = Duration::from_millis(limits::CLI_CONNECT_MS);
        Self {
            agent: unix_http::agent(socket, connect),
            socket: socket.to_owned(),
            patience: Patience::default(),
        }
    }

    /// Reads `path`.
    ///
    /// # Errors
    /// The agent refused or did not answer.
    pub fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        console: &mut Console,
    ) -> Result<T, CallError> {
        self.call(path, Method::Get, console)
    }

    /// Sends `body` as JSON to `path`.
    ///
    /// # Errors
    /// The agent refused or did not answer.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &[u8],
        console: &mut Console,
    ) -> Result<T, CallError> {
        self.call(path, Method::Post(body), console)
    }

    /// Deletes `path`.
    ///
    /// # Errors
    /// The agent refused or did not answer.
    pub fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        console: &mut Console,
    ) -> Result<T, CallError> {
        self.call(path, Method::Delete, console)
    }

    /// Opens an answer without an end.
    ///
    /// # Errors
    /// The agent refused or did not answer.
    pub fn stream(
        &self,
        path: &str,
        console: &mut Console,
    ) -> Result<impl Read + use<>, CallError> {
        let response = self.patiently(console, || self.open(path))?;
        Ok(response.into_body().into_reader())
    }

    fn open(&self, path: &str) -> Result<Response<Body>, CallError> {
        let begin = Some(Duration::from_millis(limits::CLI_ANSWER_MS));
        let request = self
            .agent
            .get(url(path))
            // A stream that breaks off is then told from one that ends.
            .header("connection", "close")
            .config()
            .timeout_recv_response(begin)
            .build();
        self.accept(request.call().map_err(|error| self.no_answer(&error))?)
    }

    fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        method: Method,
        console: &mut Console,
    ) -> Result<T, CallError> {
        self.read(self.patiently(console, || self.send(path, method))?)
    }

    /// Sends a request again and again while the agent refuses it because of its journal, which
    /// changes nothing and passes, or until patience is at its end.
    fn patiently(
        &self,
        console: &mut Console,
        send: impl Fn() -> Result<Response<Body>, CallError>,
    ) -> Result<Response<Body>, CallError> {
        loop {
            let answer = send();
            match &answer {
                Err(CallError::Refused(_, detail)) if is_recovering(detail) => {
                    if !self.patience.wait(&detail.message, console) {
                        return answer;
                    }
                }
                _ => {
                    self.patience.restore();
                    return answer;
                }
            }
        }
    }

    fn send(&self, path: &str, method: Method) -> Result<Response<Body>, CallError> {
        let whole = Some(Duration::from_millis(limits::CLI_ANSWER_MS));
        let url = url(path);
        let response = match method {
            Method::Get => self.agent.get(url).config().timeout_global(whole).build().call(),
            Method::Delete => self.agent.delete(url).config().timeout_global(whole).build().call(),
            Method::Post(body) => {
                let request = self.agent.post(url).content_type("application/json");
                request.config().timeout_global(whole).build().send(body)
            }
        };
        self.accept(response.map_err(|error| self.no_answer(&error))?)
    }

    /// The answer itself, unless it is a refusal.
    fn accept(&self, mut response: Response<Body>) -> Result<Response<Body>, CallError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.body_mut().read_to_string().unwrap_or_default();
        match serde_json::from_str::<ErrorBody>(&text) {
            Ok(body) => Err(CallError::Refused(status.as_u16(), body.error)),
            Err(_) => Err(self.not_bargee(&format!("HTTP status {status}"))),
        }
    }

    fn read<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, CallError> {
        let body = response.body_mut().with_config().limit(limits::CLI_ANSWER_BYTES);
        let text = body.read_to_string().map_err(|error| self.no_answer(&error))?;
        serde_json::from_str(&text).map_err(|error| self.not_bargee(&error.to_string()))
    }

    fn not_bargee(&self, what: &str) -> CallError {
        let message =
            format!("the answer on {} cannot be understood: {what}", self.socket.display());
        CallError::NoAnswer(
            Failure::failed(message).with_hint("is it the socket of a bargee of this version?"),
        )
    }

    fn no_answer(&self, error: &Error) -> CallError {
        let socket = self.socket.display();
        let (exit, message, hint) = match kind(error) {
            Some(ErrorKind::NotFound) => (
                Exit::Unreachable,
                format!("the agent is not reachable: there is no socket {socket}"),
                format!("it does not run, or it listens elsewhere (--socket); {START}"),
            ),
            Some(ErrorKind::ConnectionRefused) => (
                Exit::Unreachable,
                format!("the agent is not reachable: nobody listens on {socket}"),
                format!("it ended without removing its socket; {START}"),
            ),
            Some(ErrorKind::PermissionDenied) => (
                Exit::NotAllowed,
                format!("no permission to use the agent's socket {socket}"),
                "run it as root, or as a member of the group that owns the socket".to_owned(),
            ),
            Some(ErrorKind::TimedOut) => (
                Exit::Unreachable,
                format!("the agent behind {socket} does not answer"),
                "its log says what it is doing".to_owned(),
            ),
            _ => (
                Exit::Unreachable,
                format!("the connection to the agent on {socket} broke off: {error}"),
                format!("its log says why; if it ended, {START}"),
            ),
        };
        CallError::NoAnswer(Failure::new(exit, message).with_hint(hint))
    }
}

fn url(path: &str) -> String {
    format!("http://local{path}")
}

fn kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Io(error) => Some(error.kind()),
        Error::Timeout(_) => Some(ErrorKind::TimedOut),
        _ => error.source()?.downcast_ref::<io::Error>().map(io::Error::kind),
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NoAnswer(failure) => failure,
            CallError::Refused(status, detail) => refused(status, &detail),
        }
    }
}

fn refused(status: u16, detail: &ErrorDetail) -> Failure {
    let (exit, hint) = match status {
        401 | 403 => (Exit::NotAllowed, ""),
        404 => (Exit::NotFound, "`bargee ps -a` lists all workloads"),
        409 if is_ambiguous(detail) => {
            (Exit::Conflict, "name it as application/name or by its uid")
        }
        409 => (Exit::Conflict, ""),
        429 => (Exit::Failed, "too much is under way; try again in a moment"),
        503 if is_recovering(detail) => {
            (Exit::Failed, "`bargee journal ls` shows what is left to replay")
        }
        503 => (Exit::Failed, "`bargee status` says what is missing"),
        _ => (Exit::Failed, ""),
    };
    Failure::new(exit, detail.message.clone()).with_hint(hint)
}

fn is_recovering(detail: &ErrorDetail) -> bool {
    detail.read::<Recovering>().is_some()
}

fn is_ambiguous(detail: &ErrorDetail) -> bool {
    detail.read::<Vec<Match>>().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a failed connect comes to. Whoever runs the tests may be root, so not all of these can
    /// be brought about.
    fn exit(error: ErrorKind) -> Exit {
        let client = Client::new(Path::new("/s"));
        match client.no_answer(&Error::Io(error.into())) {
            CallError::NoAnswer(failure) => failure.exit,
            CallError::Refused(..) => Exit::Done,
        }
    }

    #[test]
    fn no_permission_is_not_the_same_as_no_agent() {
        assert_eq!(exit(ErrorKind::PermissionDenied), Exit::NotAllowed);
        for kind in [ErrorKind::NotFound, ErrorKind::ConnectionRefused, ErrorKind::UnexpectedEof] {
            assert_eq!(exit(kind), Exit::Unreachable, "{kind}");
        }
    }
}
