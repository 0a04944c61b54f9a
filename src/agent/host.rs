//! What a start needs of the host: mount sources that are there, and free ports.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;

use crate::domain::declared::{Port, Protocol, Spec};
use crate::domain::fault::{Fault, FaultKind};

/// Checks the mount sources of `spec`. Engines would create a missing one as an empty folder and so
/// hide a missing disk.
///
/// # Errors
/// [`FaultKind::HostPath`] naming the first that is missing, or not on a file system of its own.
pub fn check(spec: &Spec) -> Result<(), Fault> {
    let missing = |path: &str, text: String| Fault::new(FaultKind::HostPath, "mount", path, text);
    for (path, mounted) in spec.host_paths() {
        let meta = fs::metadata(path).map_err(|error| {
            missing(path, format!("the mount source is not there: {error}; it starts when it is"))
        })?;
        if !mounted {
            continue;
        }
        let root = fs::metadata("/").map_err(|error| missing("/", error.to_string()))?;
        if meta.dev() == root.dev() {
            let text = "nothing is mounted there (it is on the file system of /); it starts when a \
                        disk is";
            return Err(missing(path, text.to_owned()));
        }
    }
    Ok(())
}

/// Checks that nobody holds `ports` of the host, by taking each for a moment.
///
/// # Errors
/// [`FaultKind::Trouble`] naming the first that cannot be had. One that only the engine may have,
/// as a low one without the right for it, counts as free: the start tells.
pub fn check_ports(ports: &[Port]) -> Result<(), Fault> {
    for port in ports {
        let Some(number) = port.host_port else { continue };
        let address = (port.host_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), number);
        let taken = match port.protocol {
            Protocol::Tcp => TcpListener::bind(address).map(drop),
            Protocol::Udp => UdpSocket::bind(address).map(drop),
        };
        if let Err(error) = taken
            && matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
        {
            let object = format!("{}:{number}/{}", address.0, port.protocol.as_str());
            let text = format!("the host cannot give this port: {error}");
            return Err(Fault::new(FaultKind::Trouble, "check port", object, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn port(protocol: Protocol, number: u16) -> Port {
        let host_ip = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Port { host_ip, host_port: Some(number), container_port: 80, protocol }
    }

    #[test]
    fn a_port_is_free_until_somebody_holds_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = listener.local_addr().unwrap().port();
        let fault = check_ports(&[port(Protocol::Tcp, number)]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Trouble);
        assert_eq!(fault.object, format!("127.0.0.1:{number}/tcp"));
        // Whoever listens on all addresses takes it from each.
        let all = Port { host_ip: None, ..port(Protocol::Tcp, number) };
        assert!(check_ports(&[all]).is_err());
        drop(listener);
        check_ports(&[port(Protocol::Tcp, number)]).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let number = socket.local_addr().unwrap().port();
        assert!(check_ports(&[port(Protocol::Udp, number)]).is_err());
    }

    #[test]
    fn an_address_that_the_host_does_not_have_is_no_free_port() {
        let host_ip = Some(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)));
        let elsewhere = Port { host_ip, ..port(Protocol::Tcp, 8080) };
        assert!(check_ports(&[elsewhere]).is_err());
        let any = Port { host_port: None, ..port(Protocol::Tcp, 0) };
        check_ports(&[any]).unwrap();
    }
}
