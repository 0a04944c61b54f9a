//! Checksums of rows and files: the first 128 bits of a SHA-256, as 32 hex digits.

use sha2::{Digest, Sha256};

/// Length of a checksum in hex digits.
pub const DIGITS: usize = 32;

/// A checksum in the making.
#[derive(Clone, Debug, Default)]
pub struct Checksum(Sha256);

impl Checksum {
    /// The checksum of `parts`; no two different lists of parts have the same bytes.
    pub fn of(parts: &[&[u8]]) -> String {
        let mut sum = Self::default();
        for part in parts {
            sum.add(&(part.len() as u64).to_be_bytes());
            sum.add(part);
        }
        sum.digits()
    }

    /// Takes in more bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all that was taken in.
    pub fn digits(self) -> String {
        hex(&self.0.finalize()[..DIGITS / 2])
    }
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(HEX[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_between_parts_count() {
        assert_ne!(Checksum::of(&[b"ab", b"c"]), Checksum::of(&[b"a", b"bc"]));
        assert_ne!(Checksum::of(&[b"a"]), Checksum::of(&[b"a", b""]));
        assert_eq!(Checksum::of(&[b"a"]).len(), DIGITS);
    }

    #[test]
    fn digits_are_those_of_sha_256() {
        let mut sum = Checksum::default();
        sum.add(b"a");
        sum.add(b"bc");
        assert_eq!(sum.digits(), "ba7816bf8f01cfea414140de5dae2223");
    }
}
