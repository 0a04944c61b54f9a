//! Paths and queries of requests: split, decoded, checked.

use super::reply::ApiError;
use crate::domain::time::Span;

/// The decoded segments of a path and its query, not looked at yet.
///
/// # Errors
/// An escape that stands for no text.
pub fn split(url: &str) -> Result<(Vec<String>, Query), ApiError> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments = path.split('/').map(decode).collect::<Result<_, _>>()?;
    Ok((segments, Query::parse(query)?))
}

/// Percent-decodes `text`.
fn decode(text: &str) -> Result<String, ApiError> {
    let wrong = || ApiError::invalid(format!("'{text}' in the URL is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return Err(wrong()) };
        rest = tail;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(wrong()) };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Percent-encodes `text` so that it can be one segment of a path or one value of a query.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A query. What is asked for is taken out; what is left at the end is refused.
#[derive(Debug, Default)]
pub struct Query {
    left: Vec<(String, String)>,
    asked: Vec<&'static str>,
}

impl Query {
    fn parse(text: &str) -> Result<Self, ApiError> {
        let mut left: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(&value.replace('+', " "))?);
            if left.iter().any(|(known, _)| *known == name) {
                return Err(ApiError::invalid(format!("query parameter '{name}' is there twice")));
            }
            left.push((name, value));
        }
        Ok(Self { left, asked: Vec::new() })
    }

    /// Takes the value of `name`; an empty one counts as absent.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        let at = self.left.iter().position(|(known, _)| known == name)?;
        Some(self.left.swap_remove(at).1).filter(|value| !value.is_empty())
    }

    /// Takes `name` as a switch: `true`, `1` or bare for on, `false`, `0` or absent for off.
    ///
    /// # Errors
    /// It has another value.
    pub fn switch(&mut self, name: &'static str) -> Result<bool, ApiError> {
        let bare = self.left.iter().any(|(known, value)| known == name && value.is_empty());
        match self.text(name).as_deref() {
            None => Ok(bare),
            Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(other) => {
                Err(ApiError::invalid(format!("{name}={other}: allowed are true and false")))
            }
        }
    }

    /// Takes `name` as a number.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&mut self, name: &'static str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                Err(ApiError::invalid(format!("{name}={text}: must be a whole number from 0")))
            }
        }
    }

    /// Takes `name` as a length of time above zero.
    ///
    /// # Errors
    /// It is none.
    pub fn span(&mut self, name: &'static str) -> Result<Option<Span>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let span = Span::parse(&text);
        span.map(Some).ok_or_else(|| {
            ApiError::invalid(format!("{name}={text}: must be a time like 500ms, 60s, 15m or 1h"))
        })
    }

    /// Refuses `name` if it is there.
    ///
    /// # Errors
    /// It is there.
    pub fn unsupported(&mut self, name: &'static str) -> Result<(), ApiError> {
        if self.left.iter().any(|(known, _)| known == name) {
            return Err(ApiError::invalid(format!("query parameter '{name}': not supported yet")));
        }
        Ok(())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Something is left that nobody asked for.
    pub fn end(self) -> Result<(), ApiError> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let allowed = match self.asked.as_slice() {
            [] => "this route has none".to_owned(),
            asked => format!("allowed: {}", asked.join(", ")),
        };
        Err(ApiError::invalid(format!("unknown query parameter '{name}'; {allowed}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_after_they_are_split() {
        let (segments, _) = split("/v1/ms/shop%2Fweb").unwrap();
        assert_eq!(segments, ["v1", "ms", "shop/web"]);
        assert_eq!(split("/a%c3%a4/").unwrap().0, ["aä", ""]);
        for bad in ["/%", "/%4", "/%zz", "/%ff", "/a?b=%"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn encoding_is_undone_by_decoding() {
        let text = "shop/web a+b%ä?&=.~";
        assert_eq!(decode(&encode(text)).unwrap(), text);
        assert_eq!(encode("shop/web-1"), "shop%2Fweb-1");
    }

    #[test]
    fn switches_and_numbers_have_their_values() {
        let (_, mut query) = split("/x?a&b=1&c=false&d=maybe&n=5&m=-1").unwrap();
        assert_eq!(query.switch("a"), Ok(true));
        assert_eq!(query.switch("b"), Ok(true));
        assert_eq!(query.switch("c"), Ok(false));
        assert!(query.switch("d").is_err());
        assert_eq!(query.switch("absent"), Ok(false));
        assert_eq!(query.number("n"), Ok(Some(5)));
        assert!(query.number("m").is_err());
        assert!(query.end().is_ok());
    }

    #[test]
    fn what_nobody_asked_for_is_refused() {
        let (_, mut query) = split("/x?tail=3&tial=3").unwrap();
        query.number("tail").unwrap();
        let message = query.end().unwrap_err().message;
        assert_eq!(message, "unknown query parameter 'tial'; allowed: tail");
        assert!(split("/x?a=1&a=2").is_err());
    }
}
