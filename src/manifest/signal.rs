//! Names and numbers of signals.

use super::quantity::digits;
use crate::yaml::nearest::nearest;
use crate::yaml::shown;

/// What a signal may be.
pub const SIGNAL: &str = "a signal as SIGTERM or a number from 1 to 64";

/// The first 31 in the order of their numbers, which are the same on x86 and ARM.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Second names.
const ALIASES: [(&str, &str); 3] = [("IOT", "ABRT"), ("CLD", "CHLD"), ("POLL", "IO")];

/// The signal by its name with `SIG`.
pub fn signal(text: &str) -> Result<String, String> {
    if let Some(number) = digits::<usize>(text) {
        return by_number(number)
            .ok_or_else(|| format!("must be {SIGNAL} that has a name, found {}", shown(text)));
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
        return Ok(format!("SIG{name}"));
    }
    if NAMES.contains(&name) || is_realtime(name) {
        return Ok(format!("SIG{name}"));
    }
    let hint = nearest(name, NAMES).map(|meant| format!("; did you mean SIG{meant}?"));
    Err(format!("must be {SIGNAL}, found {}{}", shown(text), hint.unwrap_or_default()))
}

/// 32 and 33 belong to the C library and have no name.
fn by_number(number: usize) -> Option<String> {
    match number {
        1..=31 => Some(format!("SIG{}", NAMES[number - 1])),
        34 => Some("SIGRTMIN".to_owned()),
        35..=49 => Some(format!("SIGRTMIN+{}", number - 34)),
        50..=63 => Some(format!("SIGRTMAX-{}", 64 - number)),
        64 => Some("SIGRTMAX".to_owned()),
        _ => None,
    }
}

fn is_realtime(name: &str) -> bool {
    let offset = |text: &str| digits::<usize>(text).filter(|_| !text.starts_with('0'));
    match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(""), _) | (_, Some("")) => true,
        (Some(rest), _) => {
            rest.strip_prefix('+').and_then(offset).is_some_and(|n| (1..=15).contains(&n))
        }
        (_, Some(rest)) => {
            rest.strip_prefix('-').and_then(offset).is_some_and(|n| (1..=14).contains(&n))
        }
        (None, None) => false,
    }
}
