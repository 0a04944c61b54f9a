//! Takes out of an answer what belongs to one machine and one hour: ids, names, paths, addresses
//! and ports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::recorded::Recorded;

/// Made-up ids for those of the engine, the same for the same.
#[derive(Debug, Default)]
pub struct Cleaner {
    ids: BTreeMap<String, String>,
    words: Vec<(String, String)>,
}

/// What is kept of what an engine says of itself.
const KEPT: &[(&str, &[&str])] = &[
    ("version", &["ApiVersion", "Arch", "MinAPIVersion", "Os", "Version"]),
    (
        "info",
        &[
            "CgroupDriver",
            "CgroupVersion",
            "DockerRootDir",
            "Driver",
            "DriverStatus",
            "ID",
            "OSType",
            "ServerVersion",
        ],
    ),
    ("image", &["Architecture", "Config", "Id", "Os", "RepoTags", "RootFS", "Size"]),
];

impl Cleaner {
    /// For the engine in this folder.
    pub fn new(engine: &Path) -> Self {
        let volatile = fs::read_link(engine.join("exec")).unwrap();
        let word = |path: &Path| path.to_str().unwrap().to_owned();
        let words = vec![
            (word(&engine.join("docker")), "/var/lib/docker".to_owned()),
            (word(engine), "/srv/engine".to_owned()),
            (word(&volatile), "/var/run/docker".to_owned()),
        ];
        Self { ids: BTreeMap::new(), words }
    }

    /// The same answer of no machine.
    pub fn clean(&mut self, name: &str, answer: &Recorded) -> Recorded {
        let mut answer = answer.clone();
        if let Some((_, kept)) = KEPT.iter().find(|(of, _)| *of == name) {
            let body = answer.body.as_object_mut().unwrap();
            body.retain(|field, _| kept.contains(&field.as_str()));
        }
        answer.request = self.text(&answer.request);
        self.walk("", &mut answer.body);
        answer.lines.iter_mut().for_each(|line| self.walk("", line));
        answer
    }

    fn walk(&mut self, field: &str, value: &mut Value) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|one| self.walk(field, one)),
            Value::Object(all) => {
                all.remove("GraphDriver");
                all.entry("Warnings").and_modify(|warnings| *warnings = Value::Array(Vec::new()));
                all.iter_mut().for_each(|(name, one)| self.walk(name, one));
            }
            Value::String(text) => {
                *text = match field {
                    // On the network of the host it is that of the machine, else the short id.
                    "Hostname" if text.len() != 12 && !text.is_empty() => "device".to_owned(),
                    "HostPort" if !text.is_empty() => "49153".to_owned(),
                    "MacAddress" if !text.is_empty() => "02:42:0a:ef:00:02".to_owned(),
                    "ID" if text.contains(':') => "MADE:UP00:FOR0:NO00:ENGI:NE00".to_owned(),
                    _ => self.text(text),
                }
            }
            Value::Number(_) if field == "Pid" && *value != 0 => *value = 4_711.into(),
            Value::Number(_) if field == "PublicPort" => *value = 49_153.into(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (found, instead) in &self.words {
            text = text.replace(found, instead);
        }
        self.tokens(&without_ports(&without_networks(&text)))
    }

    /// The same with made-up ids.
    fn tokens(&mut self, text: &str) -> String {
        let mut made = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_word = |c: char| c.is_ascii_alphanumeric();
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let is_hex = word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            made += &if is_hex && matches!(word.len(), 12 | 64) {
                self.id(word)
            } else {
                word.to_owned()
            };
            let other = after.find(is_word).unwrap_or(after.len());
            made += &after[..other];
            rest = &after[other..];
        }
        made
    }

    /// A made-up id that is as long; a short one belongs to its long one.
    fn id(&mut self, id: &str) -> String {
        let number = self.ids.len() + 1;
        let known = self.ids.entry(id[..12].to_owned());
        known.or_insert_with(|| format!("{number:04x}").repeat(16))[..id.len()].to_owned()
    }
}

/// Engines side by side have networks of their own.
fn without_networks(text: &str) -> String {
    let Some((before, after)) = text.split_once("10.") else { return text.to_owned() };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if !before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
        && after[digits..].starts_with('.')
    {
        return format!("{before}10.239{}", without_networks(&after[digits..]));
    }
    format!("{before}10.{}", without_networks(after))
}

/// Ports of this machine that are free differ; that of nobody does not.
fn without_ports(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let Some((before, after)) = text.split_once(HOST) else { return text.to_owned() };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let port = if digits > 1 { "49154" } else { &after[..digits] };
    format!("{before}{HOST}{port}{}", without_ports(&after[digits..]))
}

#[test]
fn what_belongs_to_one_machine_is_taken_out() {
    let words = vec![("/data/e1".to_owned(), "/srv/engine".to_owned())];
    let mut cleaner = Cleaner { ids: BTreeMap::new(), words };
    let id = "ab12".repeat(16);
    let text = format!("/data/e1/{id}: {} at 10.77.3.2, 127.0.0.1:41234, 20.10.24", &id[..12]);
    let made = "0001".repeat(16);
    let expected =
        format!("/srv/engine/{made}: {} at 10.239.3.2, 127.0.0.1:49154, 20.10.24", &made[..12]);
    assert_eq!(cleaner.text(&text), expected);
    assert_eq!(
        cleaner.text("127.0.0.1:1/nobody in 10.5 s, deadbeef"),
        "127.0.0.1:1/nobody in 10.5 s, deadbeef"
    );
}
