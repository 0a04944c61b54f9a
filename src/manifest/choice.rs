//! Fields that are one of a few words.

use crate::domain::declared::{Network, Pull, Rerun, RestartPolicy, WhenStuck};
use crate::yaml::field::Field;
use crate::yaml::{Flaws, shown};

/// The words of `spec.pull`.
pub const PULL: &[(&str, Pull)] =
    &[("missing", Pull::Missing), ("always", Pull::Always), ("never", Pull::Never)];

/// The words of `spec.restart.policy`.
pub const RESTART_POLICY: &[(&str, RestartPolicy)] = &[
    ("always", RestartPolicy::Always),
    ("on-failure", RestartPolicy::OnFailure),
    ("never", RestartPolicy::Never),
];

/// The words of `spec.restart.stuck`.
pub const STUCK: &[(&str, WhenStuck)] = &[("retry", WhenStuck::Retry), ("hold", WhenStuck::Hold)];

/// The words of `spec.rerun`.
pub const RERUN: &[(&str, Rerun)] = &[("never", Rerun::Never), ("boot", Rerun::Boot)];

const NETWORK: &[(&str, Network)] = &[("bridge", Network::Bridge), ("host", Network::Host)];

/// Log drivers that keep the limits and that a log can be read back from.
const LOG_DRIVERS: &[&str] = &["", "json-file", "local"];

/// One word of `words`.
pub fn choice<T: Copy>(words: &[(&str, T)], field: &Field<'_>, flaws: &mut Flaws) -> Option<T> {
    let expected = listed(words);
    field.parse(&expected, flaws, |text| {
        find(words, text).ok_or_else(|| format!("must be {expected}, found {}", shown(text)))
    })
}

/// The network. Any other word would name one of the owner's, or none at all.
pub fn network(field: &Field<'_>, flaws: &mut Flaws) -> Option<Network> {
    let expected = listed(NETWORK);
    field.parse(&expected, flaws, |text| {
        find(NETWORK, text)
            .ok_or_else(|| format!("{} is not supported yet; use {expected}", shown(text)))
    })
}

/// The log driver.
pub fn log_driver(field: &Field<'_>, flaws: &mut Flaws) -> Option<String> {
    let expected = "json-file, local or \"\" for the engine's default";
    field.parse(expected, flaws, |text| {
        if LOG_DRIVERS.contains(&text) {
            return Ok(text.to_owned());
        }
        Err(format!("{} is not supported yet; use {expected}", shown(text)))
    })
}

/// The word for a value.
pub fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let found = words.iter().find(|(_, known)| known == value);
    found.expect("the table of words has every value").0
}

/// The word for a network.
pub fn network_word(network: Network) -> &'static str {
    word(NETWORK, &network)
}

fn find<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

/// `a, b or c`
fn listed<T>(words: &[(&str, T)]) -> String {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.join(""),
    }
}
