//! Requests to the engine: socket, timeouts, API version, and what a failure means.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body};

use super::version::{ApiVersion, NEWEST_TESTED};
use super::wire;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::observed::{Capabilities, EngineInfo};
use crate::limits;
use crate::os::unix_http::{self, Failure};

/// How long each kind of call may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// Connecting.
    pub connect: Duration,
    /// A call that only reads.
    pub read: Duration,
    /// A call that changes something.
    pub write: Duration,
    /// Between two bytes of a pull, in case that nobody cancels it.
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(limits::ENGINE_CONNECT_MS),
            read: Duration::from_millis(limits::ENGINE_READ_MS),
            write: Duration::from_millis(limits::ENGINE_WRITE_MS),
            stall: Duration::from_millis(limits::ENGINE_PULL_MS),
        }
    }
}

impl Timeouts {
    /// What to say of a request that took too long.
    fn late(&self, patience: Patience) -> String {
        let waited = match patience {
            Patience::Write => self.write,
            Patience::Pull => self.stall,
            Patience::Read | Patience::Flowing | Patience::Stream | Patience::SilentStream => {
                self.read
            }
        };
        format!("the engine did not answer within {} s", waited.as_secs_f32())
    }
}

/// How long one request may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    /// Reads: all of it within `Timeouts::read`.
    Read,
    /// Changes something: all of it within `Timeouts::write`.
    Write,
    /// A stream that may end: never silent for `Timeouts::read`.
    Flowing,
    /// A pull: never silent for `Timeouts::stall`.
    Pull,
    /// A stream that answers at once, within `Timeouts::read`, and then may be silent for ever.
    Stream,
    /// A stream whose very head may be late: Docker sends that of a log with the first output.
    SilentStream,
}

/// One request.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    /// What is attempted, for the fault.
    pub call: &'static str,
    /// What it is attempted on, for the fault.
    pub object: &'a str,
    /// HTTP method.
    pub method: Method,
    /// Path and query, without the version.
    pub target: String,
    /// JSON body; empty with a POST that has none.
    pub body: Option<Vec<u8>>,
    /// How long it may take.
    pub patience: Patience,
}

impl<'a> Ask<'a> {
    /// A request that only reads.
    pub fn get(call: &'static str, object: &'a str, target: String) -> Self {
        let (method, patience) = (Method::GET, Patience::Read);
        Self { call, object, method, target, body: None, patience }
    }

    /// A request that changes something.
    pub fn post(call: &'static str, object: &'a str, target: String) -> Self {
        Self { method: Method::POST, body: Some(Vec::new()), ..Self::delete(call, object, target) }
    }

    /// A request that removes something.
    pub fn delete(call: &'static str, object: &'a str, target: String) -> Self {
        let (method, patience) = (Method::DELETE, Patience::Write);
        Self { method, patience, ..Self::get(call, object, target) }
    }

    /// The same with a body.
    pub fn json(self, body: &impl serde::Serialize) -> Result<Self, Fault> {
        let bytes = serde_json::to_vec(body)
            .map_err(|error| self.fault(FaultKind::Refused, error.to_string()))?;
        Ok(Self { body: Some(bytes), ..self })
    }

    /// The same with another patience.
    pub fn with(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// A fault of this request.
    pub fn fault(&self, kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault::new(kind, self.call, self.object, message)
    }

    /// The fault of an answer that could not be read to its end.
    pub fn cut(&self, error: &io::Error) -> Fault {
        match unix_http::classify_io(error) {
            Failure::Timeout => self.fault(FaultKind::Timeout, "the engine's answer did not end"),
            _ => self.fault(FaultKind::Garbled, format!("the engine's answer is cut: {error}")),
        }
    }
}

/// An answer that was read whole.
#[derive(Debug)]
pub(super) struct Reply {
    /// HTTP status.
    pub status: u16,
    body: Vec<u8>,
}

impl Reply {
    /// Reads the body.
    ///
    /// # Errors
    /// `Garbled` when it is not what was expected.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self, ask: &Ask) -> Result<T, Fault> {
        serde_json::from_slice(&self.body).map_err(|error| {
            ask.fault(FaultKind::Garbled, format!("the engine's answer makes no sense: {error}"))
        })
    }

    /// The fault that this answer is, in the engine's words.
    pub fn fault(&self, kind: FaultKind, ask: &Ask) -> Fault {
        ask.fault(kind, wire::words(self.status, &self.body))
    }
}

/// The engine behind its socket.
#[derive(Debug)]
pub(super) struct Transport {
    socket: PathBuf,
    timeouts: Timeouts,
    agent: Agent,
    version: Mutex<Option<ApiVersion>>,
}

impl Transport {
    /// No connection is made yet.
    pub fn new(socket: PathBuf, timeouts: Timeouts) -> Self {
        let agent = unix_http::agent(&socket, timeouts.connect);
        Self { socket, timeouts, agent, version: Mutex::new(None) }
    }

    /// A client with connections of its own, which can be shut down alone.
    pub fn own_agent(&self) -> Agent {
        unix_http::agent(&self.socket, self.timeouts.connect)
    }

    /// Ends every connection of the shared client for good.
    pub fn shutdown(&self) {
        self.agent.clone().shutdown();
    }

    /// Asks the engine what it is, and settles on the API version to speak.
    ///
    /// # Errors
    /// Any fault; the version settled on before is forgotten then.
    pub fn ping(&self) -> Result<EngineInfo, Fault> {
        *self.version.lock() = None;
        let newest = self.newest_version()?;
        let ask = Ask::get("ask the engine for its version", "", "/version".into());
        let reply = read(&ask, self.send(&self.agent, &ask, "")?)?;
        if reply.status != 200 {
            return Err(reply.fault(FaultKind::Trouble, &ask));
        }
        let said: wire::Version = reply.json(&ask)?;
        let settled = ApiVersion::settle(newest, ApiVersion::parse(&said.min_api_version));
        *self.version.lock() = Some(settled);
        Ok(EngineInfo {
            name: "docker".into(),
            version: said.version,
            api_version: settled.to_string(),
            // Nobody asks whether it is set up to let containers outlive it.
            capabilities: Capabilities { containers_outlive: false },
        })
    }

    /// Checks that the engine takes new connections. One that is told to end does not any more,
    /// while it still answers on the old ones and stops its containers, each with an event: their
    /// exits are no exits of their own.
    ///
    /// # Errors
    /// `Away` when it ends, and those of the connection.
    pub fn expect_open(&self) -> Result<(), Fault> {
        let ask = Ask::get("ping the engine", "", "/_ping".into());
        match read(&ask, self.send(&self.own_agent(), &ask, "")?)?.status {
            200 => Ok(()),
            _ => Err(ask.fault(FaultKind::Away, "the engine is shutting down")),
        }
    }

    /// The newest API version that the engine speaks.
    fn newest_version(&self) -> Result<ApiVersion, Fault> {
        let ask = Ask::get("ping the engine", "", "/_ping".into());
        let response = self.send(&self.agent, &ask, "")?;
        let header = response.headers().get("Api-Version").and_then(|value| value.to_str().ok());
        let newest = header.and_then(ApiVersion::parse);
        let reply = read(&ask, response)?;
        if reply.status != 200 {
            return Err(reply.fault(FaultKind::Trouble, &ask));
        }
        newest.ok_or_else(|| {
            let socket = self.socket.display();
            ask.fault(
                FaultKind::Garbled,
                format!("what answers on {socket} does not say which API version it speaks"),
            )
        })
    }

    /// The version settled on, asked for where there is none yet.
    fn version(&self) -> Result<ApiVersion, Fault> {
        let known = *self.version.lock();
        match known {
            Some(version) => Ok(version),
            None => {
                self.ping()?;
                // Gone again only if another thread's ping failed meanwhile.
                Ok(self.version.lock().unwrap_or(NEWEST_TESTED))
            }
        }
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// Only those of the connection and of reading: a status is an answer.
    pub fn call(&self, ask: &Ask) -> Result<Reply, Fault> {
        read(ask, self.open(&self.agent, ask)?)
    }

    /// Sends a request on the shared client and hands out the answer as a stream.
    ///
    /// # Errors
    /// As for [`Transport::call`].
    pub fn stream(&self, ask: &Ask) -> Result<Response<Body>, Fault> {
        self.open(&self.agent, ask)
    }

    /// Sends a request on `agent` and hands out the answer as a stream.
    ///
    /// # Errors
    /// As for [`Transport::call`].
    pub fn open(&self, agent: &Agent, ask: &Ask) -> Result<Response<Body>, Fault> {
        let prefix = format!("/v{}", self.version()?);
        self.send(agent, ask, &prefix)
    }

    fn send(&self, agent: &Agent, ask: &Ask, prefix: &str) -> Result<Response<Body>, Fault> {
        let uri = format!("http://engine{prefix}{}", ask.target);
        let request = Request::builder().method(ask.method.clone()).uri(uri);
        let answer = match &ask.body {
            Some(body) if body.is_empty() => self.run(agent, ask, request.body(&body[..])),
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                self.run(agent, ask, request.body(&body[..]))
            }
            None => self.run(agent, ask, request.body(())),
        };
        answer.map_err(|error| self.fault(ask, &error))
    }

    fn run<S: ureq::AsSendBody>(
        &self,
        agent: &Agent,
        ask: &Ask,
        request: Result<Request<S>, ureq::http::Error>,
    ) -> Result<Response<Body>, ureq::Error> {
        let Timeouts { read, write, stall, .. } = self.timeouts;
        let config = agent.configure_request(request?);
        let config = match ask.patience {
            Patience::Read => config.timeout_global(Some(read)),
            Patience::Write => config.timeout_global(Some(write)),
            Patience::Flowing => config.timeout_per_read(Some(read)).timeout_per_write(Some(read)),
            Patience::Pull => config.timeout_per_read(Some(stall)).timeout_per_write(Some(read)),
            Patience::Stream => {
                config.timeout_recv_response(Some(read)).timeout_per_write(Some(read))
            }
            Patience::SilentStream => config.timeout_per_write(Some(read)),
        };
        agent.run(config.build())
    }

    /// What it means that a request has no answer.
    fn fault(&self, ask: &Ask, error: &ureq::Error) -> Fault {
        let socket = self.socket.display();
        let (kind, message) = match unix_http::classify(error) {
            Failure::NoSocket => (
                FaultKind::Away,
                format!("no engine socket at {socket}: is the engine installed and running?"),
            ),
            Failure::Refused => {
                (FaultKind::Away, format!("the engine left its socket {socket} behind: start it"))
            }
            Failure::NoPermission => (
                FaultKind::Away,
                format!(
                    "no permission on {socket}: run the agent as root or add its user to the \
                     group of the socket"
                ),
            ),
            Failure::ConnectTimeout => (
                FaultKind::Away,
                format!("the engine does not accept connections on {socket}: does it hang?"),
            ),
            Failure::Timeout => (FaultKind::Timeout, self.timeouts.late(ask.patience)),
            Failure::Lost => {
                (FaultKind::Away, format!("the connection to the engine was lost: {error}"))
            }
            Failure::Protocol => {
                (FaultKind::Garbled, format!("what answers on {socket} is no engine: {error}"))
            }
        };
        ask.fault(kind, message)
    }
}

/// Reads an answer whole.
pub(super) fn read(ask: &Ask, response: Response<Body>) -> Result<Reply, Fault> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    response
        .into_body()
        .into_with_config()
        .limit(limits::ENGINE_REPLY_BYTES)
        .reader()
        .read_to_end(&mut body)
        .map_err(|error| ask.cut(&error))?;
    Ok(Reply { status, body })
}

/// The body of a stream, unless the engine answered with another status than 200.
///
/// # Errors
/// The fault that `kind` makes of the status, in the engine's words.
pub(super) fn body(
    ask: &Ask,
    response: Response<Body>,
    kind: impl Fn(u16) -> FaultKind,
) -> Result<Body, Fault> {
    if response.status() == StatusCode::OK {
        return Ok(response.into_body());
    }
    let reply = read(ask, response)?;
    Err(reply.fault(kind(reply.status), ask))
}
