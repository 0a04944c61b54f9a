//! Maps by identity: uids, container ids, numbers of steps. Their hash is several times faster than
//! the standard one, and the same in every run, so that a replay is one.
//!
//! It does not withstand keys that are chosen to collide. Uids are drawn by the agent and container
//! ids by the engine; names and keys, which others choose, are in ordered maps.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by identity.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Takes in eight bytes at a time.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

/// Odd, and its bits are spread: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn finish(&self) -> u64 {
        // Products are good in their high bits; the map wants both ends.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::Hash;

    use super::*;
    use crate::domain::names::Uid;

    fn hash(value: impl Hash) -> u64 {
        let mut hasher = IdHasher::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn near_texts_spread_at_both_ends() {
        let uid = |n: u32| Uid::new(format!("00000000-0000-4000-8000-{n:012x}"));
        let all: Vec<u64> = (0..4_096).map(|n| hash(uid(n))).collect();
        let low: BTreeSet<u64> = all.iter().map(|hash| hash % 4_096).collect();
        let high: BTreeSet<u64> = all.iter().map(|hash| hash >> 52).collect();
        // Chance fills 63 of 100 places.
        assert!(low.len() > 2_400 && high.len() > 2_400, "{} {}", low.len(), high.len());
    }

    #[test]
    fn texts_that_differ_in_one_place_differ() {
        let text = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let mut seen = BTreeSet::from([hash(text)]);
        for at in 0..text.len() {
            let mut other = text.to_owned();
            other.replace_range(at..=at, "x");
            assert!(seen.insert(hash(&other)), "{at}");
            assert!(seen.insert(hash(&text[..at])), "{at}");
        }
    }
}
