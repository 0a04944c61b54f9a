//! Logs, in the frames of the engine.

use std::io;
use std::os::unix::net::UnixStream;

use super::flaw::Flaw;
use super::http::{self, Reply, Request};
use super::serve::{STREAM_LOOK, is_closed};
use super::{Shared, lock};

/// Sends a log; a followed one until the container ends, is gone, or the client leaves.
pub fn logs(
    stream: &mut UnixStream,
    object: &str,
    request: &Request,
    shared: &Shared,
) -> io::Result<()> {
    let asks = |name: &str| request.query.get(name).map_or("", String::as_str);
    let mut world = lock(&shared.world);
    let Some(id) = world.find(object).map(|made| made.id.clone()) else {
        drop(world);
        let reply = Reply::error(404, &format!("No such container: {object}"));
        return io::Write::write_all(stream, &reply.bytes());
    };
    http::begin_chunks(stream)?;
    let length = world.containers[&id].log.len();
    let mut next = asks("tail").parse().map_or(0, |tail| length.saturating_sub(tail));
    while let Some(made) = world.containers.get(&id) {
        let hidden = usize::from(world.flaw == Some(Flaw::ShortLog));
        let end = made.log.len().saturating_sub(hidden).max(next);
        for (output, text) in &made.log[next..end] {
            http::chunk(stream, &frame(*output, text))?;
        }
        next = end;
        if asks("follow") != "1" || made.pid == 0 || is_closed(stream) {
            break;
        }
        shared.changed.wait_for(&mut world, STREAM_LOOK);
    }
    http::end_chunks(stream)
}

/// `[output, 0, 0, 0, length as 4 bytes]`, then the text.
fn frame(output: u8, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    let mut frame = vec![output, 0, 0, 0];
    frame.extend(length.to_be_bytes());
    frame.extend(text.as_bytes());
    frame
}
