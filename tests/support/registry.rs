//! A registry with one image, for pulls on a machine without a network.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use sha2::{Digest, Sha256};

use super::engine::script;

/// Size of the image's only layer, at least.
pub const LAYER_BYTES: usize = 3 << 20;

/// While a layer has stopped, it is looked this often whether its client is still there.
const LOOK: Duration = Duration::from_millis(50);

/// The registry; it serves `shop/web:1` until the test process ends. Its image has `/busybox`.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    content: Content,
    mood: Mood,
    requests: usize,
    left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Serves,
    /// Sends half of a layer.
    Stalls,
    /// Sends half of a layer, and then a few bytes a second. An engine that is told to end a pull
    /// leaves at the next byte that comes.
    Trickles,
    /// Closes connections unheard.
    Refuses,
}

/// Media type and content of each path.
type Content = BTreeMap<String, (&'static str, Vec<u8>)>;

impl Registry {
    /// Serves on a free port of this machine, where engines take a registry without TLS.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let content = content("1", &format!("first of {address}"));
        let state = State { content, mood: Mood::Serves, requests: 0, left: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let registry = Self { address, shared: Arc::clone(&shared) };
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                let shared = Arc::clone(&shared);
                thread::Builder::new().spawn(move || serve(stream, &shared)).unwrap();
            }
        };
        thread::Builder::new().spawn(accept).unwrap();
        registry
    }

    /// A reference to a tag of the image.
    pub fn image(&self, tag: &str) -> String {
        format!("{}/shop/web:{tag}", self.address)
    }

    /// Moves `tag` to another image.
    pub fn publish(&self, tag: &str) {
        let mark = format!("later of {}", self.address);
        self.shared.state.lock().unwrap().content.extend(content(tag, &mark));
    }

    /// Forgets the layers of all images; their manifests stay.
    pub fn lose_layers(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.content.retain(|_, (_, bytes)| bytes.len() < LAYER_BYTES);
    }

    /// How often it was asked for anything.
    pub fn requests(&self) -> usize {
        self.shared.state.lock().unwrap().requests
    }

    /// Clients that left in the middle of a layer.
    pub fn left(&self) -> usize {
        self.shared.state.lock().unwrap().left
    }

    /// From now on a layer stops half way.
    pub fn stall(&self) {
        self.set_mood(Mood::Stalls);
    }

    /// From now on a layer comes slowly after the first half.
    pub fn trickle(&self) {
        self.set_mood(Mood::Trickles);
    }

    /// From now on nobody is answered.
    pub fn refuse(&self) {
        self.set_mood(Mood::Refuses);
    }

    /// Serves again, and goes on with what stopped half way.
    pub fn go_on(&self) {
        self.set_mood(Mood::Serves);
    }

    fn set_mood(&self, mood: Mood) {
        self.shared.state.lock().unwrap().mood = mood;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    /// What is at `path`; `None`: the connection is to be closed.
    fn find(&self, path: &str) -> Option<Option<(&'static str, Vec<u8>)>> {
        let mut state = self.state.lock().unwrap();
        state.requests += 1;
        (state.mood != Mood::Refuses).then(|| state.content.get(path).cloned())
    }

    /// Whether the rest is to be sent: after a stop, or with more to wait for after a byte.
    fn wait_while_stalled(&self, client: &TcpStream) -> Option<Wait> {
        let mut state = self.state.lock().unwrap();
        loop {
            if is_closed(client) {
                state.left += 1;
                return None;
            }
            let mood = state.mood;
            if !matches!(mood, Mood::Stalls | Mood::Trickles) {
                return Some(Wait::Over);
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap().0;
            if mood == Mood::Trickles {
                return Some(Wait::OneByte);
            }
        }
    }
}

/// What follows a wait in the middle of a layer.
enum Wait {
    Over,
    OneByte,
}

/// The static busybox of the test image with `mark` behind it: an engine that has a layer already
/// does not ask any registry for it.
fn program(mark: &str) -> Vec<u8> {
    let path = Command::new(script()).arg("busybox").output().unwrap().stdout;
    let mut program = std::fs::read(String::from_utf8(path).unwrap().trim()).unwrap();
    program.resize(program.len().max(LAYER_BYTES), 0);
    program.extend_from_slice(mark.as_bytes());
    program
}

fn content(tag: &str, mark: &str) -> Content {
    const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    let layer = tar("busybox", &program(mark));
    let config = format!(
        r#"{{"architecture":"{}","os":"linux","config":{{"Cmd":["/busybox"]}},
        "rootfs":{{"type":"layers","diff_ids":["{}"]}}}}"#,
        if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        digest(&layer),
    );
    let describe = |kind: &str, bytes: &[u8]| {
        let digest = digest(bytes);
        format!(r#"{{"mediaType":"{kind}","size":{},"digest":"{digest}"}}"#, bytes.len())
    };
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{},"layers":[{}]}}"#,
        describe("application/vnd.docker.container.image.v1+json", config.as_bytes()),
        describe(LAYER, &layer),
    );
    let blob = |bytes: &[u8]| format!("/v2/shop/web/blobs/{}", digest(bytes));
    let by_digest = format!("/v2/shop/web/manifests/{}", digest(manifest.as_bytes()));
    let by_tag = format!("/v2/shop/web/manifests/{tag}");
    BTreeMap::from([
        ("/v2/".to_owned(), ("application/json", b"{}".to_vec())),
        (by_tag, (MANIFEST, manifest.clone().into_bytes())),
        (by_digest, (MANIFEST, manifest.into_bytes())),
        (blob(config.as_bytes()), ("application/octet-stream", config.into_bytes())),
        (blob(&layer), ("application/octet-stream", layer)),
    ])
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// A tar archive of one file.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    put(0, name);
    put(100, "0000755\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", content.len()));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(content);
    // Blocks of 512 bytes, and two empty ones at the end.
    archive.resize(archive.len().next_multiple_of(512) + 1_024, 0);
    archive
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some((method, path)) = read_request(&mut reader) {
        let Some(found) = shared.find(&path) else { return };
        let (status, kind, body) = match found {
            Some((kind, body)) => (200, kind, body),
            None => {
                let body = br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#;
                (404, "application/json", body.to_vec())
            }
        };
        let answer = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Docker-Content-Digest: {}\r\n\r\n",
            body.len(),
            digest(&body),
        );
        let body = if method == "HEAD" { &[][..] } else { &body };
        let sent = stream.write_all(answer.as_bytes()).and_then(|()| send(&stream, body, shared));
        if sent.is_err() {
            return;
        }
    }
}

/// Only layers are so large that they may stop half way. An engine may leave in the middle.
fn send(mut stream: &TcpStream, body: &[u8], shared: &Shared) -> io::Result<()> {
    if body.len() <= 1 << 20 {
        return stream.write_all(body);
    }
    let (half, mut rest) = body.split_at(body.len() / 2);
    stream.write_all(half)?;
    loop {
        match shared.wait_while_stalled(stream) {
            None => return Err(io::ErrorKind::BrokenPipe.into()),
            Some(Wait::Over) => return stream.write_all(rest),
            Some(Wait::OneByte) => {
                let (byte, after) = rest.split_at(1);
                stream.write_all(byte)?;
                rest = after;
            }
        }
    }
}

fn is_closed(stream: &TcpStream) -> bool {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    recv(stream.as_raw_fd(), &mut [0], flags) != Err(Errno::EAGAIN)
}

/// Method and path; `None`: the connection has ended.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = Vec::new();
    while head.last().is_none_or(|line| line != "\r\n") {
        let mut line = String::new();
        if !matches!(reader.read_line(&mut line), Ok(1..)) {
            return None;
        }
        head.push(line);
    }
    let mut words = head[0].split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?))
}
