//! Plain requests to an engine, and what it answers.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use bargee::os::unix_http;
use serde_json::Value;

use crate::support::DEADLINE;
use crate::support::recorded::Recorded;
use crate::tested::Tested;

/// The version that bargee speaks.
const VERSION: &str = "/v1.41";

/// Asks, and keeps the answers that have names.
#[derive(Debug)]
pub struct Asker<'a> {
    /// The engine that is asked.
    pub tested: &'a Tested,
    http: ureq::Agent,
    /// Answers by name, in their order.
    pub answers: Vec<(&'static str, Recorded)>,
}

impl<'a> Asker<'a> {
    /// Asks `tested`.
    pub fn new(tested: &'a Tested) -> Self {
        Self { tested, http: unix_http::agent(tested.socket(), DEADLINE), answers: Vec::new() }
    }

    /// Asks, as `POST /path`, and keeps the answer.
    pub fn keep(&mut self, name: &'static str, request: &str, body: &Value) -> Value {
        let answer = self.ask(request, body);
        let told = answer.body.clone();
        self.answers.push((name, answer));
        told
    }

    /// Asks, and keeps the lines that come.
    pub fn keep_lines(&mut self, name: &'static str, request: &str) {
        let mut answer = self.ask(request, &Value::Null);
        if let Value::String(text) = answer.body.take() {
            answer.lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        self.answers.push((name, answer));
    }

    /// Asks.
    pub fn ask(&self, request: &str, body: &Value) -> Recorded {
        let (method, path) = request.split_once(' ').unwrap();
        let url = format!("http://engine{VERSION}{path}");
        let answer = match method {
            "GET" => self.http.get(url).call(),
            "DELETE" => self.http.delete(url).call(),
            _ if body.is_null() => self.http.post(url).send_empty(),
            _ => self.http.post(url).content_type("application/json").send(body.to_string()),
        };
        let mut answer = answer.unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        let body = match serde_json::from_str(&text) {
            Ok(body) => body,
            Err(_) if text.is_empty() => Value::Null,
            Err(_) => Value::String(text),
        };
        let status = answer.status().as_u16();
        Recorded { request: request.to_owned(), status, body, lines: Vec::new() }
    }

    /// Opens the event stream; its lines come as they come.
    pub fn events(&self, filter: &str) -> Receiver<Value> {
        let url = format!("http://engine{VERSION}/events?filters={filter}");
        let stream = self.http.get(url).call().unwrap().into_body().into_reader();
        let (sender, receiver) = channel();
        let forward = move || {
            let lines = BufReader::new(stream).lines().map_while(Result::ok);
            for line in lines {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(forward).unwrap();
        receiver
    }
}
