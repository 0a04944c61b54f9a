//! Where JSON is not YAML: JSON escapes a character beyond the basic plane as two halves
//! (`\ud83d\ude00`), YAML as one (`\U0001F600`).

use std::borrow::Cow;

/// `text` with pairs of halves joined, if it is JSON. Lines stay as they are.
pub(super) fn joined(text: &str) -> Cow<'_, str> {
    let is_json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    if !is_json || !(text.contains("\\ud") || text.contains("\\uD")) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    // In JSON a backslash stands in strings only, and takes what follows it along.
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        match pair(rest) {
            Some(c) => {
                joined.push_str(&format!("\\U{:08x}", u32::from(c)));
                rest = &rest[12..];
            }
            None => {
                let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
                joined.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

/// The character that two escapes at the beginning of `text` stand for.
fn pair(text: &str) -> Option<char> {
    let half = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        // The parse alone would take a sign.
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| plain)
    };
    let halves = [half(0)?, half(6)?];
    let is_pair = matches!(halves, [0xd800..=0xdbff, 0xdc00..=0xdfff]);
    if is_pair { char::decode_utf16(halves).next()?.ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_joined_in_json_only() {
        for (text, expected) in [
            (r#"{"a": "\ud83d\ude00!"}"#, r#"{"a": "\U0001f600!"}"#),
            (r#"["\uD83D\uDE00\ud83d\ude00"]"#, r#"["\U0001f600\U0001f600"]"#),
            // A backslash of its own, then letters.
            (r#"["\\ud83d\ude00"]"#, r#"["\\ud83d\ude00"]"#),
            (r#"["\ud83d"]"#, r#"["\ud83d"]"#),
            (r#"["\ud83d\u0041"]"#, r#"["\ud83d\u0041"]"#),
            (r#"["\ud83dä\"#, r#"["\ud83dä\"#),
            (r"a: '\ud83d\ude00'", r"a: '\ud83d\ude00'"),
        ] {
            assert_eq!(joined(text), expected);
        }
    }
}
