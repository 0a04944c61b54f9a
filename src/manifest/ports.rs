//! Published ports: `[[ip:]host:]container[/udp]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::across::Apply;
use super::quantity::digits;
use crate::domain::declared::{Port, Protocol};
use crate::yaml::field::Field;
use crate::yaml::shown;

const EXPECTED: &str = "a port as 8080:80, 127.0.0.1:5353:53/udp, [::1]:80:80 or 80";

/// All ports of a workload. A place on the host is published once in an apply.
pub fn ports(field: &Field<'_>, apply: &mut Apply<'_>) -> Option<Vec<Port>> {
    let (mut ports, mut whole) = (Vec::new(), true);
    for item in field.items(r#"a list of ports as ["8080:80"]"#, &mut apply.flaws)? {
        match item.parse(EXPECTED, &mut apply.flaws, port) {
            Some(port) => {
                whole &= apply.claim_port(&item, &port);
                ports.push(port);
            }
            None => whole = false,
        }
    }
    whole.then_some(ports)
}

/// One port as text, the inverse of [`port`].
pub fn show(port: &Port) -> String {
    let host_port = port.host_port.map(|port| port.to_string()).unwrap_or_default();
    let host = match port.host_ip {
        Some(IpAddr::V4(ip)) => format!("{ip}:{host_port}:"),
        Some(IpAddr::V6(ip)) => format!("[{ip}]:{host_port}:"),
        None if host_port.is_empty() => String::new(),
        None => format!("{host_port}:"),
    };
    let protocol = match port.protocol {
        Protocol::Tcp => "",
        Protocol::Udp => "/udp",
    };
    format!("{host}{}{protocol}", port.container_port)
}

fn port(text: &str) -> Result<Port, String> {
    let wrong = |why: &str| format!("must be {EXPECTED}, found {}{why}", shown(text));
    let (place, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = match protocol {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        _ => return Err(wrong(", whose protocol is not tcp or udp")),
    };
    let (host_ip, rest) = address(place).map_err(wrong)?;
    if rest.contains('-') {
        return Err(wrong("; ranges are not supported, list each port"));
    }
    let number = |text: &str| digits::<u16>(text).filter(|port| *port > 0);
    let (host, container) = match rest.split_once(':') {
        Some((host, container)) => (host, container),
        None if host_ip.is_none() => ("", rest),
        None => return Err(wrong("")),
    };
    // An empty host port behind an address leaves the choice to the engine, as in Docker.
    let host_port = match host {
        "" if host_ip.is_some() || !rest.contains(':') => None,
        _ => Some(number(host).ok_or_else(|| wrong("; a port is a number from 1 to 65535"))?),
    };
    let container_port =
        number(container).ok_or_else(|| wrong("; a port is a number from 1 to 65535"))?;
    Ok(Port { host_ip, host_port, container_port, protocol })
}

/// The address in front, if there is one, and the rest.
fn address(place: &str) -> Result<(Option<IpAddr>, &str), &'static str> {
    if let Some(after) = place.strip_prefix('[') {
        let (ip, rest) = after.split_once("]:").ok_or("")?;
        let ip: Ipv6Addr = ip.parse().map_err(|_| ", whose address is not an IPv6 address")?;
        return Ok((Some(IpAddr::V6(ip)), rest));
    }
    match place.bytes().filter(|byte| *byte == b':').count() {
        0 | 1 => Ok((None, place)),
        2 => {
            let (ip, rest) = place.split_once(':').ok_or("")?;
            let ip: Ipv4Addr = ip.parse().map_err(|_| ", whose address is not an IP address")?;
            Ok((Some(IpAddr::V4(ip)), rest))
        }
        _ => Err("; write an IPv6 address in brackets"),
    }
}
