//! Sizes in bytes, as people write them in manifests and in the config.

use super::shown;

/// What a size may be.
pub const SIZE: &str = "a size as 64Mi, 1Gi, 500k or a number of bytes";
const SIZE_UNITS: &[(&str, u64)] = &[
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// A size in bytes, more than nothing.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("must be {SIZE}, found {}", shown(text));
    let (number, unit) = number_and_unit(text);
    let factor = match unit {
        "" => 1,
        _ => SIZE_UNITS.iter().find(|(known, _)| *known == unit).ok_or_else(wrong)?.1,
    };
    let number: u64 = digits(number).ok_or_else(wrong)?;
    // Engines count in signed numbers.
    let bytes = number.checked_mul(factor).filter(|bytes| i64::try_from(*bytes).is_ok());
    match bytes {
        Some(0) => Err("must be more than nothing".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err(format!("{} is more than any device has", shown(text))),
    }
}

/// A size as [`size`] reads it: in the largest unit that divides it, from Mi on.
pub fn show_size(bytes: u64) -> String {
    let units = SIZE_UNITS.iter().take(4).skip(1).rev();
    match units.into_iter().find(|(_, factor)| bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

/// A number in digits and nothing else; `FromStr` alone would take a sign.
pub fn digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// A text split behind its leading digits.
pub fn number_and_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}
