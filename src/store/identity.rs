//! The identity of a store: a random id made with the file, kept in it and beside it.

use crate::domain::names::StoreId;

use super::checksum::{Checksum, DIGITS, hex};

/// The random id of a store, as 32 hex digits. The identity on labels is a hash over it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomId(String);

impl RandomId {
    /// A new one from the system's random numbers.
    pub fn draw(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut bytes = [0; DIGITS / 2];
        random(&mut bytes);
        Self(hex(&bytes))
    }

    /// Reads what [`RandomId::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(digit)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identity on labels: the hash of the kind of the store and of its settings.
    pub fn store_id(&self) -> StoreId {
        StoreId::new(Checksum::of(&[b"sqlite", self.0.as_bytes()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back_and_others_refused() {
        let id = RandomId::draw(&mut |bytes| bytes.fill(0xa7));
        assert_eq!(RandomId::parse(id.as_str()), Some(id.clone()));
        let upper = id.as_str().to_uppercase();
        for bad in ["", "a7", upper.as_str(), &format!("{}\n", id.as_str())] {
            assert_eq!(RandomId::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_store_id_follows_the_random_id() {
        let one = RandomId::draw(&mut |bytes| bytes.fill(1));
        let two = RandomId::draw(&mut |bytes| bytes.fill(2));
        assert_eq!(one.store_id(), one.clone().store_id());
        assert_ne!(one.store_id(), two.store_id());
        assert_ne!(one.store_id().as_str(), one.as_str());
    }
}
