//! A sign, seen by every process in the same network namespace, that somebody is there: the name of
//! an abstract Unix socket. It goes with the process, however that ends, and leaves no file.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The sign, for as long as this value lives.
#[derive(Debug)]
pub struct Presence {
    _socket: UnixDatagram,
}

impl Presence {
    /// Puts `name` up.
    ///
    /// # Errors
    /// Somebody else has it up, or the name is too long (about 100 bytes).
    pub fn announce(name: &str) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(Self { _socket: UnixDatagram::bind_addr(&address)? })
    }
}

/// Whether somebody has `name` up.
pub fn is_present(name: &str) -> bool {
    let connect = || {
        let address = SocketAddr::from_abstract_name(name)?;
        // A datagram socket keeps nothing of who looked.
        UnixDatagram::unbound()?.connect_addr(&address)
    };
    connect().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_there_for_as_long_as_its_holder() {
        let name = format!("bargee-test/{}", std::process::id());
        assert!(!is_present(&name));
        let held = Presence::announce(&name).unwrap();
        assert!(is_present(&name) && !is_present(&format!("{name}x")));
        let error = Presence::announce(&name).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(held);
        assert!(!is_present(&name));
    }
}
