//! Answers of a real engine, as `tests/conformance/recorded` wrote them down.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::scripted_engine::Bend;

/// An answer: a status and a body, or the lines of a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Method and path.
    pub request: String,
    /// Status.
    pub status: u16,
    /// JSON; text that is none as a string, and nothing as null.
    pub body: Value,
    /// Of a stream, each in JSON.
    pub lines: Vec<Value>,
}

impl Recorded {
    /// The answer of this name.
    pub fn read(name: &str) -> Self {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let mut all: Value = serde_json::from_str(&text).unwrap();
        let lines = all["lines"].take().as_array().cloned().unwrap_or_default();
        let status = all["status"].as_u64().unwrap().try_into().unwrap();
        let request = all["request"].as_str().unwrap().to_owned();
        Self { request, status, body: all["body"].take(), lines }
    }

    /// As a file has it.
    pub fn to_json(&self) -> Value {
        let Self { request, status, body, lines } = self;
        let mut all = json!({"request": request, "status": status});
        if !lines.is_empty() {
            all["lines"] = lines.clone().into();
        } else if !body.is_null() {
            all["body"] = body.clone();
        }
        all
    }

    /// The text that came.
    pub fn text(&self) -> String {
        match &self.body {
            Value::Null => self.lines.iter().map(|line| format!("{line}\n")).collect(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// What a scripted engine has to do to say it again.
    pub fn bend(&self) -> Bend {
        Bend::Answer(self.status, self.text())
    }
}

/// Where they are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/docker-20.10")
}

/// What a scripted engine has to do to give the answer of this name.
pub fn bend(name: &str) -> Bend {
    Recorded::read(name).bend()
}
