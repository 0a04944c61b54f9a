//! In what engines differ, as far as anybody outside can tell.

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
}

impl Ways {
    /// Docker as it is set up by default.
    pub const DOCKER: Self = Self {
        name: "docker",
        starts_in_place: true,
        containers_outlive: false,
        tells_stopping: false,
    };
    /// Docker with `live-restore`.
    pub const DOCKER_LIVE_RESTORE: Self = Self { containers_outlive: true, ..Self::DOCKER };
}
