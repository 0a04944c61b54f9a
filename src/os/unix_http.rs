//! HTTP over a Unix socket: the parts that ureq needs for it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, ShutdownHandle, Transport,
};
use ureq::{Agent, Error};

/// A head larger than this is an error; two of these are held per connection.
const BUFFER_BYTES: usize = 16 << 10;

/// A client of the server behind `socket`; connecting to it takes at most `connect_timeout`. Error
/// statuses are answers, not errors. Requests go to `http://local/...`.
pub fn agent(socket: &Path, connect_timeout: Duration) -> Agent {
    let config = Config::builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .input_buffer_size(BUFFER_BYTES)
        .output_buffer_size(BUFFER_BYTES)
        .build();
    let connector = UnixConnector { path: socket.to_owned(), timeout: connect_timeout };
    Agent::with_parts(config, connector, NoResolver)
}

#[derive(Debug)]
struct UnixConnector {
    path: PathBuf,
    timeout: Duration,
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _: Option<()>,
    ) -> Result<Option<UnixTransport>, Error> {
        let socket = Arc::new(Socket(connect(&self.path, self.timeout)?));
        let handle: Weak<dyn ShutdownHandle> = Arc::<Socket>::downgrade(&socket);
        (details.register_shutdown)(handle)?;
        let (input, output) =
            (details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(UnixTransport {
            socket,
            buffers: LazyBuffers::new(input, output),
            read_timeout: None,
            write_timeout: None,
        }))
    }
}

/// Connects within `timeout`. A server whose backlog is full would block a plain connect for ever.
fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let fd: OwnedFd =
        socket::socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let millis = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
    socket::setsockopt(&fd, sockopt::SendTimeout, &TimeVal::milliseconds(millis))?;
    match socket::connect(fd.as_raw_fd(), &UnixAddr::new(path)?) {
        Ok(()) => {}
        Err(nix::Error::EAGAIN) => return Err(ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    let stream = UnixStream::from(fd);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

#[derive(Debug)]
struct Socket(UnixStream);

impl ShutdownHandle for Socket {
    fn shutdown(&self) {
        // An error means that it is closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

#[derive(Debug)]
struct UnixTransport {
    socket: Arc<Socket>,
    buffers: LazyBuffers,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        let wanted = budget(&timeout)?;
        if self.write_timeout != wanted {
            self.socket.0.set_write_timeout(wanted)?;
            self.write_timeout = wanted;
        }
        match (&self.socket.0).write_all(&self.buffers.output()[..amount]) {
            Ok(()) => Ok(()),
            Err(error) if is_timeout(&error) => Err(Error::Timeout(timeout.reason)),
            // The server answered without reading the rest. Its answer is still to be read.
            Err(error)
                if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        let wanted = budget(&timeout)?;
        if self.read_timeout != wanted {
            self.socket.0.set_read_timeout(wanted)?;
            self.read_timeout = wanted;
        }
        loop {
            match (&self.socket.0).read(self.buffers.input_append_buf()) {
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    return Ok(amount > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(Error::Timeout(timeout.reason)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        if self.socket.0.set_nonblocking(true).is_err() {
            return false;
        }
        // Bytes or an end that nobody asked for: in both cases it cannot be used again.
        let read = (&self.socket.0).read(&mut [0]);
        let quiet = matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock);
        quiet && self.socket.0.set_nonblocking(false).is_ok()
    }
}

/// The time that is left as a socket takes it; `None`: no end.
fn budget(timeout: &NextTimeout) -> Result<Option<Duration>, Error> {
    if timeout.after.is_not_happening() {
        return Ok(None);
    }
    let left: Duration = *timeout.after;
    if left.is_zero() { Err(Error::Timeout(timeout.reason)) } else { Ok(Some(left)) }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// There is nothing to resolve, and the default would ask the system's resolver.
#[derive(Debug)]
struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80));
        Ok(addresses)
    }
}
