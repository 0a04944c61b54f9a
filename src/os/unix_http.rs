//! HTTP over a Unix socket: what stands behind every `ureq::Agent` of bargee.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::SendTimeout;
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr};
use nix::sys::time::{TimeVal, TimeValLike};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, ShutdownHandle, Transport,
};
use ureq::{Agent, Error, Timeout};

use crate::limits::{UNIX_HTTP_BUFFER_BYTES, UNIX_HTTP_IDLE};

/// An HTTP client whose every connection goes to `socket`; the host part of its URLs is ignored.
///
/// Statuses are answers, not errors; redirects are not followed; proxies of the environment are
/// not used. `Agent::shutdown` on a clone ends reads that wait in other threads.
pub fn agent(socket: &Path, connect_timeout: Duration) -> Agent {
    let config = Config::builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(connect_timeout))
        .max_idle_connections(UNIX_HTTP_IDLE)
        .max_idle_connections_per_host(UNIX_HTTP_IDLE)
        .input_buffer_size(UNIX_HTTP_BUFFER_BYTES)
        .output_buffer_size(UNIX_HTTP_BUFFER_BYTES)
        .user_agent(concat!("bargee/", env!("CARGO_PKG_VERSION")))
        .build();
    Agent::with_parts(config, UnixConnector(socket.to_owned()), NoLookup)
}

/// Whether a Unix socket can have this path: the kernel takes at most 107 bytes.
pub fn path_fits(socket: &Path) -> bool {
    UnixAddr::new(socket).is_ok()
}

/// Why a request has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// There is no such socket.
    NoSocket,
    /// The socket is there, but nobody listens on it.
    Refused,
    /// This user may not connect.
    NoPermission,
    /// Nobody accepted the connection in time.
    ConnectTimeout,
    /// The answer did not come in time.
    Timeout,
    /// The connection ended before the answer did, or could not be made for another reason.
    Lost,
    /// What came is no answer.
    Protocol,
}

/// Sorts the error of a request.
pub fn classify(error: &Error) -> Failure {
    match error {
        Error::Io(error) => classify_io(error),
        Error::Timeout(Timeout::Connect) => Failure::ConnectTimeout,
        Error::Timeout(_) => Failure::Timeout,
        Error::ConnectionFailed => Failure::Lost,
        _ => Failure::Protocol,
    }
}

/// Sorts the error of reading a body.
pub fn classify_io(error: &io::Error) -> Failure {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        return classify(inner);
    }
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::NoSocket,
        io::ErrorKind::ConnectionRefused => Failure::Refused,
        io::ErrorKind::PermissionDenied => Failure::NoPermission,
        _ => Failure::Lost,
    }
}

/// Answers every look-up with an address that nobody uses: the real one is the socket's path.
#[derive(Debug)]
struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(addresses)
    }
}

#[derive(Debug)]
struct UnixConnector(PathBuf);

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<UnixTransport>, Error> {
        let wait = details.timeout.not_zero().map(|wait| *wait);
        let socket = Arc::new(Socket(connect(&self.0, wait)?));
        let handle: Weak<dyn ShutdownHandle> = Arc::<Socket>::downgrade(&socket);
        (details.register_shutdown)(handle)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { socket, buffers, read_wait: None, write_wait: wait }))
    }
}

/// Connects within `wait`. A frozen server whose backlog is full would hold a plain connect for
/// ever; the send timeout, set before, bounds it.
fn connect(path: &Path, wait: Option<Duration>) -> Result<UnixStream, Error> {
    let address = UnixAddr::new(path).map_err(io::Error::from)?;
    let fd = socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(io::Error::from)?;
    if let Some(wait) = wait {
        // Zero would mean for ever.
        let wait = i64::from(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX).max(1));
        socket::setsockopt(&fd, SendTimeout, &TimeVal::milliseconds(wait))
            .map_err(io::Error::from)?;
    }
    loop {
        match socket::connect(fd.as_raw_fd(), &address) {
            Ok(()) => return Ok(UnixStream::from(fd)),
            // Nothing is under way after a signal: a Unix socket connects in one step.
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Err(Error::Timeout(Timeout::Connect)),
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
    }
}

/// The socket itself, shared with the agent so that its shutdown reaches a read that waits.
#[derive(Debug)]
struct Socket(UnixStream);

impl ShutdownHandle for Socket {
    fn shutdown(&self) {
        // Fails only on a socket that is shut down already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

#[derive(Debug)]
struct UnixTransport {
    socket: Arc<Socket>,
    buffers: LazyBuffers,
    /// The timeouts that the socket has now, so that setting the same one again costs no call.
    read_wait: Option<Duration>,
    write_wait: Option<Duration>,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        let wait = timeout.not_zero().map(|wait| *wait);
        if wait != self.write_wait {
            self.socket.0.set_write_timeout(wait)?;
            self.write_wait = wait;
        }
        match send_all(&self.socket.0, &self.buffers.output()[..amount]) {
            Ok(()) => Ok(()),
            Err(Errno::EAGAIN) => Err(Error::Timeout(timeout.reason)),
            // A server may answer with an error and close before it has read the whole body. That
            // answer is in the socket: the next read finds it, or reports the loss itself.
            Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(()),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        let wait = timeout.not_zero().map(|wait| *wait);
        if wait != self.read_wait {
            self.socket.0.set_read_timeout(wait)?;
            self.read_wait = wait;
        }
        let room = self.buffers.input_append_buf();
        if room.is_empty() {
            // Reading into no room would look like the end of the connection.
            return Err(Error::LargeResponseHeader(
                UNIX_HTTP_BUFFER_BYTES + 1,
                UNIX_HTTP_BUFFER_BYTES,
            ));
        }
        let amount = match receive(&self.socket.0, room) {
            Ok(amount) => amount,
            Err(Errno::EAGAIN) => return Err(Error::Timeout(timeout.reason)),
            Err(errno) => return Err(io::Error::from(errno).into()),
        };
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // An idle connection has nothing to read. Bytes, an end or an error: not to be used again.
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        socket::recv(self.socket.0.as_raw_fd(), &mut [0], flags) == Err(Errno::EAGAIN)
    }
}

/// Sends all of `bytes`. Never raises SIGPIPE, which a command line may have set to kill.
fn send_all(socket: &UnixStream, mut bytes: &[u8]) -> nix::Result<()> {
    while !bytes.is_empty() {
        match socket::send(socket.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Receives what is there. After a signal the whole wait begins anew: a read under a socket
/// timeout is not restarted by the kernel, and signals are rare here.
fn receive(socket: &UnixStream, room: &mut [u8]) -> nix::Result<usize> {
    loop {
        match socket::recv(socket.as_raw_fd(), room, MsgFlags::empty()) {
            Err(Errno::EINTR) => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use nix::sys::socket::Backlog;

    use super::*;
    use crate::os::scripted::{Scripted, Then, answer, begin_chunks, chunk, until_closed};

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(60);

    fn get(agent: &Agent, wait: Duration) -> Result<(u16, String), Error> {
        let request = agent.get("http://host/x").config().timeout_global(Some(wait)).build();
        let mut response = request.call()?;
        Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
    }

    #[test]
    fn statuses_are_answers_and_one_connection_serves_all() {
        let server = Scripted::new(|_, stream| answer(stream, 404, "gone"));
        let agent = agent(&server.socket(), LONG);
        for _ in 0..5 {
            assert_eq!(get(&agent, LONG).unwrap(), (404, "gone".into()));
        }
        assert_eq!((server.connections(), server.heard().len()), (1, 5));
    }

    #[test]
    fn a_redirect_is_not_followed() {
        let server = Scripted::new(|_, stream| {
            let head = "HTTP/1.1 302 X\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            Then::Keep
        });
        assert_eq!(get(&agent(&server.socket(), LONG), LONG).unwrap().0, 302);
        assert_eq!(server.heard(), ["GET /x"]);
    }

    #[test]
    fn a_connection_that_the_server_closed_is_not_used_again() {
        let server = Scripted::new(|_, stream| {
            answer(stream, 200, "");
            Then::Close
        });
        let agent = agent(&server.socket(), LONG);
        // The end of a connection may come later than the answer, and then spoils one request.
        let answered = (0..100).filter(|_| get(&agent, LONG).is_ok()).count();
        assert!(answered >= 50, "{answered}");
        assert_eq!(server.connections(), server.heard().len());
    }

    #[test]
    fn an_early_answer_to_a_large_body_is_read() {
        let server = Scripted::new(|_, stream| {
            answer(stream, 413, "too large");
            Then::Close
        });
        let body = vec![0; 8 << 20];
        let mut response =
            agent(&server.socket(), LONG).post("http://host/x").send(&body[..]).unwrap();
        assert_eq!(response.status(), 413);
        assert_eq!(response.body_mut().read_to_string().unwrap(), "too large");
    }

    #[test]
    fn absent_and_deserted_sockets_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let agent = agent(&socket, LONG);
        let failure = || classify(&get(&agent, LONG).unwrap_err());
        assert_eq!(failure(), Failure::NoSocket);
        drop(UnixListener::bind(&socket).unwrap());
        assert_eq!(failure(), Failure::Refused);
        let denied = Error::Io(io::Error::from(Errno::EACCES));
        assert_eq!(classify(&denied), Failure::NoPermission);
    }

    #[test]
    fn a_full_backlog_does_not_hold_a_connect() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let kind = SockType::Stream;
        let fd = socket::socket(AddressFamily::Unix, kind, SockFlag::empty(), None).unwrap();
        socket::bind(fd.as_raw_fd(), &UnixAddr::new(&socket).unwrap()).unwrap();
        socket::listen(&fd, Backlog::new(1).unwrap()).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match connect(&socket, Some(SHORT)) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(classify(&error), Failure::ConnectTimeout);
        let error = get(&agent(&socket, SHORT), LONG).unwrap_err();
        assert_eq!(classify(&error), Failure::ConnectTimeout);
    }

    #[test]
    fn silence_ends_in_a_timeout_and_loss_does_not() {
        let silent = Scripted::new(|_, stream| until_closed(stream));
        let error = get(&agent(&silent.socket(), LONG), SHORT).unwrap_err();
        assert_eq!(classify(&error), Failure::Timeout);
        let gone = Scripted::new(|_, _| Then::Close);
        let error = get(&agent(&gone.socket(), LONG), LONG).unwrap_err();
        assert_eq!(classify(&error), Failure::Lost);
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        let other = Scripted::new(|_, stream| {
            stream.write_all(b"220 mail.example ESMTP\r\n\r\n").unwrap();
            Then::Close
        });
        let error = get(&agent(&other.socket(), LONG), LONG).unwrap_err();
        assert_eq!(classify(&error), Failure::Protocol);
        let endless = Scripted::new(|_, stream| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
            let _ = stream.write_all(&vec![b'x'; UNIX_HTTP_BUFFER_BYTES * 2]);
            until_closed(stream)
        });
        let error = get(&agent(&endless.socket(), LONG), LONG).unwrap_err();
        assert_eq!(classify(&error), Failure::Protocol);
    }

    #[test]
    fn shutdown_ends_a_read_that_waits() {
        let server = Scripted::new(|_, stream| {
            begin_chunks(stream);
            chunk(stream, b"first");
            until_closed(stream)
        });
        let agent = agent(&server.socket(), LONG);
        let mut reader = agent.get("http://host/x").call().unwrap().into_body().into_reader();
        let mut room = [0; 64];
        assert_eq!(io::Read::read(&mut reader, &mut room).unwrap(), 5);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| io::Read::read(&mut reader, &mut room));
            agent.clone().shutdown();
            let error = waiting.join().unwrap().unwrap_err();
            assert_eq!(classify_io(&error), Failure::Lost);
        });
        assert_eq!(classify(&get(&agent, LONG).unwrap_err()), Failure::Lost);
    }
}
