//! The spec hash: one versioned hash over what a container is made from and cannot be changed on
//! it. Drift is a difference of this hash and nothing else, so what an engine fills in or reads
//! back differently never recreates a container.

use sha2::{Digest, Sha256};

use super::declared::{Declared, MountSource, Network};
use super::health_check::HealthCheck;
use super::names::SpecHash;

/// Version of the rules below. A hash of another version is adopted and left alone until the next
/// apply; so change the rules only together with this.
pub const VERSION: &str = "1";

/// The hash of what `declared` is made from. Labels, pull, restart, stop and `onUnhealthy` are not
/// in it: they change the row, not the container.
pub fn spec_hash(declared: &Declared) -> SpecHash {
    let spec = &declared.spec;
    let mut h = Hasher(Sha256::new());
    h.field("image", &[&spec.image]);
    h.list("entrypoint", spec.entrypoint.as_deref());
    h.list("command", spec.command.as_deref());
    h.option("workingDir", spec.working_dir.as_deref());
    h.option("user", spec.user.as_deref());
    for (name, value) in &spec.env {
        h.field("env", &[name, value]);
    }
    for port in &spec.ports {
        let ip = port.host_ip.map(|ip| ip.to_string()).unwrap_or_default();
        let host = port.host_port.map(|p| p.to_string()).unwrap_or_default();
        let inner = port.container_port.to_string();
        h.field("port", &[&ip, &host, &inner, port.protocol.as_str()]);
    }
    for mount in &spec.mounts {
        let read_only = if mount.read_only { "ro" } else { "rw" };
        match &mount.source {
            MountSource::Volume(name) => h.field("volume", &[name, &mount.target, read_only]),
            // `mounted` is a condition of the start, not a part of the container.
            MountSource::Host { path, .. } => h.field("bind", &[path, &mount.target, read_only]),
        }
    }
    h.field("network", &[if spec.network == Network::Host { "host" } else { "bridge" }]);
    h.option("cpus", spec.resources.cpus_milli.map(|n| n.to_string()).as_deref());
    h.option("memory", spec.resources.memory_bytes.map(|n| n.to_string()).as_deref());
    let (size, files) = (spec.log.max_size_bytes.to_string(), spec.log.max_files.to_string());
    h.field("log", &[&spec.log.driver, &size, &files]);
    if let Some(check) = &spec.health_check {
        h.health_check(check);
    }
    h.finish()
}

/// Whether `hash` follows the rules of this version, so that comparing it means something.
pub fn is_comparable(hash: &SpecHash) -> bool {
    hash.as_str().split_once('-').is_some_and(|(version, _)| version == VERSION)
}

/// Every field is its name, its number of parts, and each part behind its length: no two different
/// specs give the same bytes.
struct Hasher(Sha256);

impl Hasher {
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    fn field(&mut self, name: &str, parts: &[&str]) {
        self.text(name);
        self.0.update((parts.len() as u64).to_be_bytes());
        for part in parts {
            self.text(part);
        }
    }

    /// A field that is absent adds nothing, so that a later field with a default changes no hash.
    fn option(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.field(name, &[value]);
        }
    }

    fn list(&mut self, name: &str, values: Option<&[String]>) {
        if let Some(values) = values {
            self.field(name, &values.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    fn health_check(&mut self, check: &HealthCheck) {
        let HealthCheck::On(check) = check else { return self.field("healthCheck", &["NONE"]) };
        let times = [check.interval, check.timeout, check.start_period];
        let [interval, timeout, start_period] = times.map(|span| span.0.to_string());
        let retries = check.retries.to_string();
        let mut parts = vec![&*interval, &*timeout, &*start_period, &*retries];
        parts.extend(check.test.words());
        self.field("healthCheck", &parts);
    }

    fn finish(self) -> SpecHash {
        let digest = self.0.finalize();
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        SpecHash::new(format!("{VERSION}-{hex}"))
    }
}
