//! Private Docker engines for tests, started and taken away by `scripts/engines.sh`.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The image that every engine of the script has.
pub const IMAGE: &str = "localtest/busybox:1";

/// A Docker engine of its own. It is gone, with its containers and its data, soon after this is
/// dropped or the test process has ended, however it ended.
#[derive(Debug)]
pub struct DockerEngine {
    directory: PathBuf,
    /// Waits for the end of its input, which only this process holds open, and then removes the
    /// engine.
    keeper: Child,
}

/// The engine that the tests of one binary share. Its tests must not stop it.
pub fn shared() -> &'static DockerEngine {
    static SHARED: OnceLock<DockerEngine> = OnceLock::new();
    SHARED.get_or_init(DockerEngine::start)
}

impl DockerEngine {
    /// Starts an engine and waits until it answers.
    pub fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("bargee-engine-").tempdir().unwrap().keep();
        let keeper = Command::new("sh")
            .args(["-c", r#"cat; exec "$0" remove docker "$1""#])
            .arg(script())
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // A key press that ends the tests must not end their keeper.
            .process_group(0)
            .spawn()
            .unwrap();
        let engine = Self { directory, keeper };
        engine.start_again();
        engine
    }

    /// Its folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("docker.sock")
    }

    /// Its socket as an engine URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Stops it as an operator would; its data stays.
    pub fn stop(&self) {
        self.run("stop", &[]);
    }

    /// Kills it and all its processes; its data stays.
    pub fn kill(&self) {
        self.run("stop", &["--now"]);
    }

    /// Starts it after it was stopped or killed.
    pub fn start_again(&self) {
        self.run("start", &[]);
    }

    fn run(&self, verb: &str, options: &[&str]) {
        let done = Command::new(script())
            .args([verb, "docker"])
            .arg(&self.directory)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(done.success(), "engines.sh {verb} docker {}", self.directory.display());
    }
}

impl Drop for DockerEngine {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The script that starts engines.
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/engines.sh")
}
