//! Ports of the host, which are really asked for, and given back at once.

use std::net::{TcpListener, UdpSocket};

use serde_json::{Map, Value, json};

use super::world::{Container, Refusal, World};

impl World {
    /// What a container publishes once it runs.
    ///
    /// # Errors
    /// 500: a port is taken, by another container or by anybody on this machine.
    pub fn publish_ports(&self, id: &str) -> Result<Value, Refusal> {
        let made = &self.containers[id];
        let mut published = Map::new();
        for (inner, hosts) in
            made.asked["HostConfig"]["PortBindings"].as_object().into_iter().flatten()
        {
            let hosts = hosts.as_array().into_iter().flatten();
            let hosts = hosts.map(|host| self.publish(made, inner, host));
            published.insert(inner.clone(), hosts.collect::<Result<Vec<_>, _>>()?.into());
        }
        Ok(published.into())
    }

    fn publish(&self, made: &Container, inner: &str, host: &Value) -> Result<Value, Refusal> {
        let ip = host["HostIp"].as_str().filter(|ip| !ip.is_empty()).unwrap_or("0.0.0.0");
        let asked = host["HostPort"].as_str().and_then(|port| port.parse().ok()).unwrap_or(0);
        let protocol = inner.rsplit('/').next().unwrap_or("tcp");
        match bind(protocol, ip, asked).filter(|number| !self.is_published(protocol, *number)) {
            Some(number) => Ok(json!({"HostIp": ip, "HostPort": number.to_string()})),
            None => Err((
                500,
                format!(
                    "driver failed programming external connectivity on endpoint {} ({}): Error \
                     starting userland proxy: listen {protocol}4 {ip}:{asked}: bind: address \
                     already in use",
                    made.name, made.id
                ),
            )),
        }
    }

    fn is_published(&self, protocol: &str, number: u16) -> bool {
        let number = number.to_string();
        let live = self.containers.values().filter(|made| made.pid != 0);
        let all = live.filter_map(|made| made.published.as_object()).flatten();
        let mut same = all.filter(|(inner, _)| inner.ends_with(protocol));
        same.any(|(_, hosts)| {
            let mut hosts = hosts.as_array().into_iter().flatten();
            hosts.any(|host| host["HostPort"].as_str() == Some(&number))
        })
    }
}

/// The port that the machine gives, if it gives one.
fn bind(protocol: &str, ip: &str, number: u16) -> Option<u16> {
    let address = match protocol {
        "udp" => UdpSocket::bind((ip, number)).and_then(|socket| socket.local_addr()),
        _ => TcpListener::bind((ip, number)).and_then(|socket| socket.local_addr()),
    };
    address.ok().map(|address| address.port())
}
