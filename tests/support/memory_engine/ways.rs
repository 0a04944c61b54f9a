//! In what engines differ, as far as anybody outside can tell.

use bargee::domain::observed::Capabilities;

/// The personality of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// What it calls itself.
    pub name: &'static str,
    /// A container that has run can be started again.
    pub starts_in_place: bool,
    /// Containers go on when the engine ends.
    pub containers_outlive: bool,
    /// A container whose stop was asked for is `stopping` until its process has ended.
    pub tells_stopping: bool,
    /// Its events come late, and some of them twice.
    pub stutters: bool,
}

impl Ways {
    /// Docker as it is set up by default.
    pub const DOCKER: Self = Self {
        name: "docker",
        starts_in_place: true,
        containers_outlive: false,
        tells_stopping: false,
        stutters: false,
    };
    /// Docker with `live-restore`.
    pub const DOCKER_LIVE_RESTORE: Self = Self { containers_outlive: true, ..Self::DOCKER };
    /// Podman.
    pub const PODMAN: Self = Self {
        name: "podman",
        starts_in_place: true,
        containers_outlive: true,
        tells_stopping: true,
        stutters: true,
    };

    /// As its client tells them.
    pub fn capabilities(&self) -> Capabilities {
        // Nobody asks a Docker how it is set up.
        let is_docker = self.name == Self::DOCKER.name;
        Capabilities { containers_outlive: self.containers_outlive && !is_docker }
    }
}
