//! A registry with one image, for pulls on a machine without a network.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use sha2::{Digest, Sha256};

/// Size of the image's only layer.
pub const LAYER_BYTES: usize = 3 << 20;

/// The registry; it serves `shop/web:1` until the test process ends.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
}

/// Media type and content of each path.
type Content = BTreeMap<String, (&'static str, Vec<u8>)>;

impl Registry {
    /// Serves on a free port of this machine, where engines take a registry without TLS.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let content = Arc::new(content());
        let accept = move || {
            while let Ok((stream, _)) = listener.accept() {
                let content = Arc::clone(&content);
                thread::Builder::new().spawn(move || serve(stream, &content)).unwrap();
            }
        };
        thread::Builder::new().spawn(accept).unwrap();
        Self { address }
    }

    /// A reference to a tag of the image.
    pub fn image(&self, tag: &str) -> String {
        format!("{}/shop/web:{tag}", self.address)
    }
}

fn content() -> Content {
    const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    let layer = tar("data", &vec![b'x'; LAYER_BYTES]);
    let config = format!(
        r#"{{"architecture":"{}","os":"linux","config":{{"Cmd":["/data"]}},
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
    BTreeMap::from([
        ("/v2/".to_owned(), ("application/json", b"{}".to_vec())),
        ("/v2/shop/web/manifests/1".to_owned(), (MANIFEST, manifest.clone().into_bytes())),
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

fn serve(mut stream: TcpStream, content: &Content) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = Vec::new();
        while head.last().is_none_or(|line| line != "\r\n") {
            let mut line = String::new();
            if !matches!(reader.read_line(&mut line), Ok(1..)) {
                return;
            }
            head.push(line);
        }
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, kind, body) = match content.get(path) {
            Some((kind, body)) => (200, *kind, &body[..]),
            None => (404, "application/json", &br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#[..]),
        };
        let answer = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Docker-Content-Digest: {}\r\n\r\n",
            body.len(),
            digest(body),
        );
        let body = if method == "HEAD" { &[][..] } else { body };
        // An engine may leave in the middle.
        if stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
            return;
        }
    }
}
