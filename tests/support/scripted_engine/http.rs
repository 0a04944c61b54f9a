//! The little of HTTP/1.1 that clients of the engine speak, within bounds.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

/// A head that is longer ends the connection.
const HEAD_BYTES: u64 = 64 << 10;
/// A body that is longer ends the connection.
const BODY_BYTES: usize = 4 << 20;

/// A request as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Decoded segments of the path, the API version left out.
    pub path: Vec<String>,
    /// Decoded pairs of the query.
    pub query: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// An answer that is sent whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Body; none with 204 and 304.
    pub body: String,
}

impl Reply {
    /// An answer in JSON.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, body: body.to_string() }
    }

    /// An answer without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, body: String::new() }
    }

    /// A refusal in the engine's form.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &serde_json::json!({ "message": message }))
    }

    /// Head and body as they go out.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { status, body } = self;
        let length = match status {
            204 | 304 => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n\
             Content-Type: application/json\r\n{length}\r\n"
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

/// Reads one request; `None`: the client is gone, or sends what it should not.
pub fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    let mut head = reader.by_ref().take(HEAD_BYTES);
    loop {
        let mut line = String::new();
        head.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.strip_suffix("\r\n")? {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let length = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0).min(BODY_BYTES + 1)];
    if body.len() > BODY_BYTES {
        return None;
    }
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request { method, path: segments(path), query: pairs(query), body })
}

fn segments(path: &str) -> Vec<String> {
    let all = path.split('/').filter(|part| !part.is_empty());
    let is_version = |part: &str| part.starts_with("v1.");
    all.enumerate()
        .filter(|(at, part)| *at > 0 || !is_version(part))
        .map(|(_, part)| decode(part))
        .collect()
}

fn pairs(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The head of an answer that comes in chunks.
pub fn begin_chunks(out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\
          Transfer-Encoding: chunked\r\n\r\n",
    )
}

/// One chunk.
pub fn chunk(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let head = format!("{:x}\r\n", bytes.len());
    out.write_all(&[head.as_bytes(), bytes, b"\r\n"].concat())
}

/// The end of an answer in chunks.
pub fn end_chunks(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"0\r\n\r\n")
}
