//! As much of HTTP/1.1 as the proxy and the scripted engine need: requests whose length is declared.

use std::io::{self, BufRead, Write};

/// A request as it came.
#[derive(Debug, Default)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Head and body, to be passed on.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the body begins.
    pub body_at: usize,
}

impl Request {
    /// Reads one; `None`: the client is gone.
    pub fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let mut length = 0;
        loop {
            let begin = bytes.len();
            if reader.read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&bytes[begin..]).trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let body_at = bytes.len();
        bytes.resize(body_at + length, 0);
        reader.read_exact(&mut bytes[body_at..])?;
        let first = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first).into_owned();
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        Ok(Some(Self { method, target, bytes, body_at }))
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// Method and path, without version and query: `GET /containers/json`.
    pub fn line(&self) -> String {
        let path = self.target.split('?').next().unwrap_or_default();
        let path = match path.strip_prefix("/v1.") {
            Some(rest) => rest.find('/').map_or(rest, |at| &rest[at..]),
            None => path,
        };
        format!("{} {path}", self.method)
    }
}

/// Sends a whole answer.
pub fn answer(stream: &mut impl Write, status: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Begins an answer in chunks.
pub fn begin_chunks(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
}

/// Sends one chunk.
pub fn chunk(stream: &mut impl Write, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
