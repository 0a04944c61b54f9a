//! Text within a URL.

use std::fmt::Write;

/// `text` with every byte escaped that means something in a path or a query.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// The path of a container.
pub(super) fn container(name_or_id: &str) -> String {
    // An empty name would make the path of another call; this one no container can have.
    let name_or_id = if name_or_id.is_empty() { "-" } else { name_or_id };
    format!("/containers/{}", escape(name_or_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(escape("bargee-web-1a2b.3_c~"), "bargee-web-1a2b.3_c~");
        assert_eq!(escape("a/b?c=d&e f%g#\u{e9}"), "a%2Fb%3Fc%3Dd%26e%20f%25g%23%C3%A9");
        assert_eq!(container("../networks"), "/containers/..%2Fnetworks");
        assert_eq!(container(""), "/containers/-");
    }
}
