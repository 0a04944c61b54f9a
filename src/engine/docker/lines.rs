//! Lines of a stream, each of bounded length.

use std::io::{self, BufRead, BufReader, Read};

use crate::limits::ENGINE_LINE_BYTES;

/// Memory that is kept from one line to the next.
const KEPT_BYTES: usize = 8 << 10;

/// Reads a stream line by line. A line over the bound is skipped.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new() }
    }

    /// The next line without its end, or what stands after the last one; `None`: the stream ended.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        let mut too_long = false;
        loop {
            let bytes = self.reader.fill_buf()?;
            if bytes.is_empty() {
                let rest = !too_long && !self.line.is_empty();
                return Ok(rest.then_some(&self.line[..]));
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            too_long |= self.line.len() + part.len() > ENGINE_LINE_BYTES;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            match end {
                Some(_) if !too_long => return Ok(Some(&self.line)),
                Some(_) => {
                    self.line.clear();
                    too_long = false;
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(text);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        all
    }

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        assert_eq!(lines(b"one\ntwo\r\n\nrest"), ["one", "two\r", "", "rest"]);
        assert_eq!(lines(b""), [""; 0]);
        let long = "x".repeat(50_000);
        assert_eq!(lines(format!("{long}\n{long}\n").as_bytes()), [&long[..], &long]);
    }

    #[test]
    fn a_line_over_the_bound_is_skipped() {
        let long = "x".repeat(ENGINE_LINE_BYTES + 1);
        assert_eq!(lines(format!("a\n{long}\nb\n{long}").as_bytes()), ["a", "b"]);
        let just = "x".repeat(ENGINE_LINE_BYTES);
        assert_eq!(lines(format!("{just}\n").as_bytes()), [just]);
    }

    #[test]
    fn memory_of_a_long_line_is_given_back() {
        let text = format!("{}\nshort\n", "x".repeat(ENGINE_LINE_BYTES));
        let mut lines = Lines::new(text.as_bytes());
        lines.next().unwrap();
        assert_eq!(lines.next().unwrap(), Some(&b"short"[..]));
        assert!(lines.line.capacity() <= KEPT_BYTES);
    }
}
