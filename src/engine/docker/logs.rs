//! Logs: the frames of both output streams, put together again as plain bytes.

use std::io::{self, Read};
use std::sync::Arc;

use ureq::BodyReader;

use super::transport::{self, Ask, Patience, Transport};
use super::url;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::ContainerId;
use crate::engine::LogOptions;
use crate::limits::ENGINE_WORDS_BYTES;

/// The log of a container. A followed one is asked for at the first read, because Docker answers
/// only when there is output.
pub(super) struct Log {
    transport: Arc<Transport>,
    id: ContainerId,
    options: LogOptions,
    frames: Option<Frames<BodyReader<'static>>>,
}

impl Log {
    /// Nothing is asked yet.
    pub fn new(transport: Arc<Transport>, id: ContainerId, options: LogOptions) -> Self {
        Self { transport, id, options, frames: None }
    }

    /// Asks for the log.
    ///
    /// # Errors
    /// `NoContainer`, `Trouble` and those of the connection.
    pub fn open(&mut self) -> Result<&mut Frames<BodyReader<'static>>, Fault> {
        let tail = self.options.tail.map_or("all".to_owned(), |lines| lines.to_string());
        let target = format!(
            "{}/logs?stdout=1&stderr=1&follow={}&tail={tail}",
            url::container(self.id.as_str()),
            u8::from(self.options.follow),
        );
        let ask = Ask::get("read the log of", self.id.as_str(), target)
            .with(if self.options.follow { Patience::SilentStream } else { Patience::Flowing });
        let response = self.transport.stream(&ask)?;
        let body = transport::body(&ask, response, |status| match status {
            404 => FaultKind::NoContainer,
            _ => FaultKind::Trouble,
        })?;
        Ok(self.frames.insert(Frames::new(body.into_reader())))
    }
}

impl Read for Log {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.frames {
            Some(frames) => frames.read(room),
            None => self.open().map_err(io::Error::other)?.read(room),
        }
    }
}

/// Takes the headers out of a stream of frames: `[stream, 0, 0, 0, length as 4 bytes]`, then so
/// many bytes. What a frame holds is handed on as it comes, however long it says it is.
#[derive(Debug)]
pub(super) struct Frames<R> {
    source: R,
    /// Bytes of the present frame that are still to come.
    left: u32,
}

/// The stream on which the engine itself tells that the log cannot be read further.
const ENGINE_STREAM: u8 = 3;

impl<R: Read> Frames<R> {
    /// The contents of the frames of `source`.
    pub fn new(source: R) -> Self {
        Self { source, left: 0 }
    }

    /// Reads headers until one announces something; `false`: the stream ended.
    fn next_frame(&mut self) -> io::Result<bool> {
        while self.left == 0 {
            let mut header = [0; 8];
            if !read_header(&mut self.source, &mut header)? {
                return Ok(false);
            }
            let [stream, 0, 0, 0, length @ ..] = header else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the engine's log is not in frames",
                ));
            };
            self.left = u32::from_be_bytes(length);
            if stream == ENGINE_STREAM {
                return Err(self.engine_error());
            }
        }
        Ok(true)
    }

    fn engine_error(&mut self) -> io::Error {
        let kept = u64::from(self.left).min(ENGINE_WORDS_BYTES as u64);
        let mut words = Vec::new();
        match (&mut self.source).take(kept).read_to_end(&mut words) {
            Ok(_) => io::Error::other(String::from_utf8_lossy(&words).into_owned()),
            Err(error) => error,
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if room.is_empty() || !self.next_frame()? {
            return Ok(0);
        }
        let wanted = room.len().min(self.left.try_into().unwrap_or(usize::MAX));
        let amount = self.source.read(&mut room[..wanted])?;
        if amount == 0 {
            return Err(cut());
        }
        // `amount` is at most `left`.
        self.left -= u32::try_from(amount).unwrap_or(self.left);
        Ok(amount)
    }
}

/// Fills `header`; `false`: the stream ended before it.
fn read_header(source: &mut impl Read, header: &mut [u8; 8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < header.len() {
        match source.read(&mut header[filled..])? {
            0 if filled == 0 => return Ok(false),
            0 => return Err(cut()),
            amount => filled += amount,
        }
    }
    Ok(true)
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the engine's log is cut within a frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&[stream, 0, 0, 0], &length[..], content].concat()
    }

    /// Gives out one byte at a time.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let amount = room.len().min(1);
            self.0.read(&mut room[..amount])
        }
    }

    fn plain(source: impl Read) -> io::Result<String> {
        let mut text = String::new();
        Frames::new(source).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn both_streams_come_in_order() {
        let log =
            [frame(1, b"out\n"), frame(2, b"err\n"), frame(1, b""), frame(1, b"end")].concat();
        assert_eq!(plain(&log[..]).unwrap(), "out\nerr\nend");
        assert_eq!(plain(Drip(&log)).unwrap(), "out\nerr\nend");
        assert_eq!(plain(&b""[..]).unwrap(), "");
    }

    #[test]
    fn a_huge_frame_takes_no_memory() {
        let header = [1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let mut frames = Frames::new(header.chain(io::repeat(b'x')));
        let mut room = [0; 100];
        assert_eq!(frames.read(&mut room).unwrap(), 100);
        assert_eq!(frames.left, u32::MAX - 100);
    }

    #[test]
    fn a_cut_log_is_an_error_after_what_came() {
        let log = frame(1, b"hello");
        for end in [3, 8, 10] {
            let error = plain(&log[..end]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{end}");
        }
    }

    #[test]
    fn bytes_that_are_no_frames_are_an_error() {
        let error = plain(&b"plain text"[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_engine_may_say_why_it_stops() {
        let log = [frame(1, b"a"), frame(3, b"disk on fire")].concat();
        assert_eq!(plain(&log[..]).unwrap_err().to_string(), "disk on fire");
    }
}
