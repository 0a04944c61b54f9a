//! A client that sends just the bytes it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Long enough for a slow machine, short enough to end a test that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct Connection {
    reader: BufReader<UnixStream>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// `error.code` of a refusal.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// `error.message` of a refusal.
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Connection {
    pub fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends a request with a body whose length is declared.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        self.send(head.as_bytes());
        self.send(body);
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn head(&mut self) -> Answer {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {line}"));
        let mut headers = Vec::new();
        loop {
            match self.line() {
                line if line.is_empty() => break,
                line => headers.push(line),
            }
        }
        Answer { status, headers, body: String::new() }
    }

    /// Reads an answer whose length is declared.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.header("Content-Length").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }

    /// The next chunk of a stream; empty: its end.
    pub fn chunk(&mut self) -> String {
        let size = self.line();
        let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no size: {size}"));
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        assert_eq!(&chunk[size..], b"\r\n");
        String::from_utf8(chunk[..size].to_vec()).unwrap()
    }

    /// Everything until the server closes the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// One request without a body on a connection of its own.
pub fn call(socket: &Path, method: &str, path: &str) -> Answer {
    let mut connection = Connection::open(socket);
    connection.request(method, path, "", b"");
    connection.answer()
}

/// A GET on a connection of its own.
pub fn get(socket: &Path, path: &str) -> Answer {
    call(socket, "GET", path)
}

/// A POST with a body on a connection of its own.
pub fn post(socket: &Path, path: &str, kind: &str, body: &[u8]) -> Answer {
    let mut connection = Connection::open(socket);
    connection.request("POST", path, &format!("Content-Type: {kind}\r\n"), body);
    connection.answer()
}
