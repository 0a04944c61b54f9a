//! Which keys each mapping of a manifest may have: what is read, and what is not built yet.
//! `docs/manifest.md` lists the same fields; a test holds the two together.

use crate::yaml::field::Shape;

/// The document.
pub const DOCUMENT: Shape =
    Shape { path: "", keys: &["apiVersion", "kind", "metadata", "spec"], later: &[] };

/// `metadata`
pub const METADATA: Shape =
    Shape { path: "metadata", keys: &["name", "application", "labels"], later: &[] };

/// `spec`
pub const SPEC: Shape = Shape {
    path: "spec",
    keys: &[
        "image",
        "pull",
        "entrypoint",
        "command",
        "workingDir",
        "user",
        "env",
        "ports",
        "volumes",
        "network",
        "resources",
        "restart",
        "rerun",
        "stop",
        "healthCheck",
        "schedule",
        "log",
    ],
    later: &[
        "platform",
        "groupAdd",
        "tmpfs",
        "devices",
        "hostname",
        "extraHosts",
        "dns",
        "privileged",
        "readOnly",
        "capAdd",
        "capDrop",
        "securityOpt",
        "sysctls",
        "ulimits",
        "pid",
        "ipc",
        "shmSize",
        "init",
        "dependsOn",
    ],
};

/// A value of `spec.env` that is a mapping.
pub const ENV_VALUE: Shape = Shape { path: "spec.env.NAME", keys: &[], later: &["file"] };

/// `spec.resources`
pub const RESOURCES: Shape = Shape {
    path: "spec.resources",
    keys: &["cpus", "memory"],
    later: &["memoryReservation", "memorySwap", "cpuset", "cpuBind", "pids"],
};

/// `spec.restart`
pub const RESTART: Shape =
    Shape { path: "spec.restart", keys: &["policy", "delay", "maxDelay", "stuck"], later: &[] };

/// `spec.stop`
pub const STOP: Shape = Shape { path: "spec.stop", keys: &["signal", "grace"], later: &[] };

/// `spec.healthCheck`
pub const HEALTH_CHECK: Shape = Shape {
    path: "spec.healthCheck",
    keys: &["test", "interval", "timeout", "startPeriod", "retries", "onUnhealthy"],
    later: &[],
};

/// `spec.log`
pub const LOG: Shape =
    Shape { path: "spec.log", keys: &["driver", "maxSize", "maxFiles"], later: &[] };

/// All of them.
#[cfg(test)]
pub const ALL: &[&Shape] =
    &[&DOCUMENT, &METADATA, &SPEC, &ENV_VALUE, &RESOURCES, &RESTART, &STOP, &HEALTH_CHECK, &LOG];
