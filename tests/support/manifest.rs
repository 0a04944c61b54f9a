//! Manifests for tests, built piece by piece.

use serde_json::{Value, json};

use super::engine::IMAGE;

/// The manifest of one workload. It is on the network of the host and its image is never pulled,
/// unless it says otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest(Value);

impl Manifest {
    /// A workload that runs `words`.
    pub fn new(name: &str, words: &[&str]) -> Self {
        Self(json!({
            "apiVersion": "bargee/v1",
            "kind": "Workload",
            "metadata": {"name": name},
            "spec": {"image": IMAGE, "pull": "never", "command": words, "network": "host"},
        }))
    }

    /// A workload that runs a line of shell.
    pub fn shell(name: &str, line: &str) -> Self {
        Self::new(name, &["sh", "-c", line])
    }

    /// A workload that runs until it is stopped, and then ends at once.
    pub fn service(name: &str) -> Self {
        Self::shell(name, "trap 'exit 0' TERM; sleep 100000 & wait")
    }

    /// A job that ends well.
    pub fn job(name: &str) -> Self {
        Self::shell(name, "exit 0").restart("on-failure")
    }

    /// Sets a field of the spec, as `restart.delay`.
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        let path = format!("/spec/{}", field.replace('.', "/"));
        let (outer, name) = path.rsplit_once('/').unwrap();
        if self.0.pointer(outer).is_none() {
            let (spec, outer) = outer.rsplit_once('/').unwrap();
            self.0.pointer_mut(spec).unwrap()[outer] = json!({});
        }
        self.0.pointer_mut(outer).unwrap()[name] = value.into();
        self
    }

    /// Sets the restart policy.
    pub fn restart(self, policy: &str) -> Self {
        self.with("restart.policy", policy)
    }

    /// Restarts soon after a crash.
    pub fn hasty(self) -> Self {
        self.with("restart.delay", "1s")
    }

    /// On the network of its application.
    pub fn bridged(self) -> Self {
        self.with("network", "bridge")
    }

    /// Sets the application.
    pub fn application(mut self, application: &str) -> Self {
        self.0["metadata"]["application"] = application.into();
        self
    }

    /// Sets a label.
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.0["metadata"]["labels"][name] = value.into();
        self
    }

    /// The text of a file with all of `manifests`.
    pub fn file(manifests: &[Self]) -> String {
        manifests.iter().map(|one| format!("---\n{}\n", one.0)).collect()
    }
}
