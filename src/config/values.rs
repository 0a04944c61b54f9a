//! The values of the keys: what each may be.

use std::path::PathBuf;
use std::time::Duration;

use log::LevelFilter;

use super::{EngineKind, Settled, ShutdownPolicy};
use crate::limits::{
    AGENT_LOG_MAX_BYTES, AGENT_LOG_MIN_BYTES, DRAIN_MS, NODE_BYTES, RECONCILE_EVERY_MAX,
    SOCKET_PATH_BYTES, WORKERS_MAX,
};
use crate::yaml::shown;
use crate::yaml::size::{digits, number_and_unit, show_size, size};

/// `log.file` where there is none.
const STDERR: &str = "stderr";

/// `node`
pub fn node(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.is_empty() || text.len() > NODE_BYTES || !text.bytes().all(plain) {
        return Err(format!(
            "must be 1 to {NODE_BYTES} letters, digits, '.', '_' or '-', found {}",
            shown(text)
        ));
    }
    Ok(text.to_owned())
}

/// `engine`
pub fn engine(text: &str) -> Result<EngineKind, String> {
    match text {
        "docker" => Ok(EngineKind::Docker),
        "auto" | "podman" | "containerd" => Err(format!("{text} is not supported yet; use docker")),
        _ => Err(format!("must be docker, found {}", shown(text))),
    }
}

/// `engineUrl`: the socket it names.
pub fn engine_url(text: &str) -> Result<PathBuf, String> {
    let expected = "must be unix:// and an absolute path, as unix:///var/run/docker.sock, found";
    match text.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => socket(path),
        _ => Err(format!("{expected} {}", shown(text))),
    }
}

/// `dataDir`
pub fn directory(text: &str) -> Result<PathBuf, String> {
    if text.starts_with('/') && !text.contains('\0') {
        return Ok(PathBuf::from(text));
    }
    Err(format!("must be an absolute path, found {}", shown(text)))
}

/// `api.socket`
pub fn socket(text: &str) -> Result<PathBuf, String> {
    if text.len() > SOCKET_PATH_BYTES {
        return Err(format!(
            "has {} bytes; the path of a socket may have {SOCKET_PATH_BYTES}",
            text.len()
        ));
    }
    directory(text)
}

/// `workers`
pub fn workers(text: &str) -> Result<usize, String> {
    match digits(text) {
        Some(number) if (1..=WORKERS_MAX).contains(&number) => Ok(number),
        _ => Err(format!("must be a number from 1 to {WORKERS_MAX}, found {}", shown(text))),
    }
}

/// `log.level`
pub fn log_level(text: &str) -> Result<LevelFilter, String> {
    match text {
        "error" => Ok(LevelFilter::Error),
        "warn" => Ok(LevelFilter::Warn),
        "info" => Ok(LevelFilter::Info),
        "debug" => Ok(LevelFilter::Debug),
        "trace" => Ok(LevelFilter::Trace),
        _ => Err(format!("must be error, warn, info, debug or trace, found {}", shown(text))),
    }
}

/// `log.file`
pub fn log_file(text: &str) -> Result<Option<PathBuf>, String> {
    if text == STDERR {
        return Ok(None);
    }
    match directory(text) {
        Ok(path) if path.file_name().is_some() && !text.ends_with('/') => Ok(Some(path)),
        Ok(_) => Err(format!("must name a file, found {}", shown(text))),
        Err(_) => Err(format!("must be {STDERR} or an absolute path, found {}", shown(text))),
    }
}

/// The same as it is read.
pub fn show_log_file(settled: &Settled) -> String {
    let file = settled.log_file.value.as_ref();
    file.map_or_else(|| STDERR.to_owned(), |path| path.display().to_string())
}

/// `log.maxSize`
pub fn log_max_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if (AGENT_LOG_MIN_BYTES..=AGENT_LOG_MAX_BYTES).contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (AGENT_LOG_MIN_BYTES >> 10, show_size(AGENT_LOG_MAX_BYTES));
    Err(format!("must be from {least}Ki to {most}, found {}", shown(text)))
}

/// `log.reconcileEvery`
pub fn reconcile_every(text: &str) -> Result<u64, String> {
    digits(text).filter(|number| *number <= RECONCILE_EVERY_MAX).ok_or_else(|| {
        format!("must be a number from 0 to {RECONCILE_EVERY_MAX}, found {}", shown(text))
    })
}

/// `shutdown.policy`
pub fn shutdown_policy(text: &str) -> Result<ShutdownPolicy, String> {
    let mut known = [ShutdownPolicy::LeaveRunning, ShutdownPolicy::Drain].into_iter();
    let found = known.find(|policy| policy.as_str() == text);
    found.ok_or_else(|| format!("must be leave-running or drain, found {}", shown(text)))
}

/// What stands for no time of its own: that of each manifest.
const GRACE: &str = "stop.grace";

/// `shutdown.perContainer`
pub fn per_container(text: &str) -> Result<Option<Duration>, String> {
    if text == GRACE {
        return Ok(None);
    }
    let (number, unit) = number_and_unit(text);
    let scale = [("ms", 1), ("s", 1_000), ("m", 60_000)].into_iter().find(|(u, _)| *u == unit);
    let ms = number.parse::<u64>().ok().zip(scale).and_then(|(n, (_, scale))| n.checked_mul(scale));
    match ms.filter(|ms| (1..=DRAIN_MS).contains(ms)) {
        Some(ms) => Ok(Some(Duration::from_millis(ms))),
        None => Err(format!(
            "must be a time like 20s, {} s at most, or {GRACE}, found {}",
            DRAIN_MS / 1_000,
            shown(text)
        )),
    }
}

/// The inverse of [`per_container`].
pub fn shown_per_container(value: Option<Duration>) -> String {
    match value.map(|value| value.as_millis()) {
        None => GRACE.to_owned(),
        Some(ms) if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        Some(ms) => format!("{ms}ms"),
    }
}
