//! Versions of the Docker API, and which one to speak.

use std::fmt;

/// The newest version that was tested.
pub(super) const NEWEST_TESTED: ApiVersion = ApiVersion { major: 1, minor: 41 };

/// A version of the Docker API.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ApiVersion {
    major: u16,
    minor: u16,
}

impl ApiVersion {
    /// Reads `1.41`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The version to speak with an engine that speaks `oldest` to `newest`: the newest that was
    /// tested, but never one that the engine has given up or does not know yet.
    pub fn settle(newest: Self, oldest: Option<Self>) -> Self {
        let wanted = newest.min(NEWEST_TESTED);
        oldest.map_or(wanted, |oldest| wanted.max(oldest))
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(newest: &str, oldest: &str) -> String {
        let newest = ApiVersion::parse(newest).unwrap();
        ApiVersion::settle(newest, ApiVersion::parse(oldest)).to_string()
    }

    #[test]
    fn speaks_the_newest_tested_version_that_the_engine_still_knows() {
        assert_eq!(settle("1.41", "1.12"), "1.41");
        assert_eq!(settle("1.39", "1.12"), "1.39");
        assert_eq!(settle("1.43", "1.24"), "1.41");
        assert_eq!(settle("1.52", "1.44"), "1.44");
        assert_eq!(settle("1.9", ""), "1.9");
    }

    #[test]
    fn minor_versions_are_numbers() {
        assert!(ApiVersion::parse("1.9") < ApiVersion::parse("1.41"));
    }

    #[test]
    fn other_text_is_no_version() {
        for text in ["", "1", "1.", ".41", "1.41.2", "v1.41", "1.x", "99999999.1"] {
            assert_eq!(ApiVersion::parse(text), None, "{text}");
        }
    }
}
