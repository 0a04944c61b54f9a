//! Validated names: workloads, instances, containers, stores.

use std::fmt;
use std::sync::Arc;

/// A DNS label: 1 to 63 of `a-z`, `0-9` and `-`, not beginning or ending with `-` (RFC 1123).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(Arc<str>);

impl Label {
    /// Checks `text`.
    ///
    /// # Errors
    /// The rule that `text` breaks, as a sentence that can follow the name of a field.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > 63 {
            return Err("must have 1 to 63 characters");
        }
        if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err("may only have lower-case letters, digits and '-'");
        }
        if text.starts_with('-') || text.ends_with('-') {
            return Err("may not begin or end with '-'");
        }
        Ok(Self(text.into()))
    }

    /// Sorts before every valid label; for the beginning of a range.
    pub fn lowest() -> Self {
        Self("".into())
    }

    /// The text of the label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a workload is called: `application/name`. One workload holds a key at a time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// The group of workloads that share a network.
    pub application: Label,
    /// The name within the application.
    pub name: Label,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.application, self.name)
    }
}

macro_rules! shared_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

shared_text! {
    /// The identity of a workload, kept over updates: a UUID in lower case.
    Uid
}
shared_text! {
    /// The engine's id of a container.
    ContainerId
}
shared_text! {
    /// The name of one container made for a workload: `bargee-<name>-<8 hex>`.
    InstanceName
}
shared_text! {
    /// The identity of a store, on the label of every container made from it.
    StoreId
}
shared_text! {
    /// The kernel's id of the present boot.
    BootId
}
shared_text! {
    /// What an engine calls itself and where it keeps its data: containers and volumes that were
    /// made on one are not on another.
    EngineId
}
shared_text! {
    /// `<version>-<hex>` over all that a container is made from.
    SpecHash
}

impl Uid {
    /// A version 4 UUID from 16 random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (i, byte) in bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Self(text.into())
    }
}

/// Draws the suffixes of instance names. Seeded by the shell, so that the domain stays pure.
#[derive(Debug)]
pub struct Suffixes(u64);

impl Suffixes {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next reserved name for a workload called `name`.
    pub fn instance(&mut self, name: &Label) -> InstanceName {
        // SplitMix64: enough to make names differ, and the shell's seed makes them differ over
        // restarts.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let suffix = u32::try_from(z >> 32).unwrap_or(u32::MAX);
        InstanceName::new(format!("bargee-{name}-{suffix:08x}"))
    }
}

/// Who declared a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// `bargee deploy`.
    Local,
    /// A file in the manifests directory. Counts as local in the order of a pass.
    Directory,
}

impl Source {
    /// As it stands in the API and on labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Directory => "directory",
        }
    }

    /// Its place within a pass: what is lower is looked at first. Whoever steers the device from
    /// afar would come before what is declared on it.
    pub fn turn(self) -> u8 {
        match self {
            Self::Local | Self::Directory => 0,
        }
    }

    /// The inverse of [`Source::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Local, Self::Directory].into_iter().find(|source| source.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_rfc_1123() {
        for good in ["a", "web", "web-1", "0", &"a".repeat(63)] {
            assert!(Label::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "Web", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(Label::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn uids_are_version_4() {
        let uid = Uid::from_random([0xff; 16]);
        assert_eq!(uid.as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn instance_names_differ_and_follow_the_seed() {
        let name = Label::parse("web").unwrap();
        let (mut a, mut b) = (Suffixes::new(1), Suffixes::new(1));
        let first = a.instance(&name);
        assert_eq!(first, b.instance(&name));
        assert_ne!(first, a.instance(&name));
        assert_eq!(first.as_str().len(), "bargee-web-".len() + 8);
    }
}
