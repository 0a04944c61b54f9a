//! `bargee config check` and `config show`: the configuration as the agent would read it here.

use std::path::PathBuf;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::console::{Console, Format};
use super::failure::{Exit, Failure};
use super::table;

/// The configuration, settled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Where the agent listens.
    pub socket: PathBuf,
    /// All settings as `(key, value, origin)`, in the order of the documentation.
    pub settings: Vec<(String, String, String)>,
    /// What is odd about it but no error.
    pub warnings: Vec<String>,
}

/// Settings as the file has them, so that they can be one: `api.socket` is `socket` within `api`.
struct AsFile<'a>(Vec<(&'a str, &'a str)>);

impl Serialize for AsFile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let section = |key: &str| key.split_once('.').map(|(section, _)| section.to_owned());
        let mut map = serializer.serialize_map(None)?;
        for group in self.0.chunk_by(|(a, _), (b, _)| a.contains('.') && section(a) == section(b)) {
            let inner =
                group.iter().filter_map(|(key, value)| Some((key.split_once('.')?.1, *value)));
            let Some((key, value)) = group.first() else { continue };
            match section(key) {
                Some(section) => map.serialize_entry(&section, &AsFile(inner.collect()))?,
                None => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

/// Says whether the configuration is right.
///
/// # Errors
/// It is not.
pub fn check(loaded: Result<Loaded, Vec<String>>, console: &mut Console) -> Result<(), Failure> {
    let loaded = settle(loaded, console)?;
    let count = loaded.warnings.len();
    let verdict = if count == 0 { "ok".to_owned() } else { format!("ok, {count} warning(s)") };
    writeln!(console.out, "{verdict}")?;
    Ok(console.out.flush()?)
}

/// Shows every setting with its value and where it comes from.
///
/// # Errors
/// It is not right, or cannot be written.
pub fn show(
    loaded: Result<Loaded, Vec<String>>,
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let loaded = settle(loaded, console)?;
    if format != Format::Table {
        let settings = loaded.settings.iter().map(|(key, value, _)| (key.as_str(), value.as_str()));
        return console.data(format, &AsFile(settings.collect()));
    }
    let rows: Vec<Vec<String>> =
        loaded.settings.into_iter().map(|(key, value, from)| vec![key, value, from]).collect();
    Ok(table::write(console.out, &["KEY", "VALUE", "FROM"], &rows)?)
}

/// Tells warnings and errors, each on a line.
fn settle(loaded: Result<Loaded, Vec<String>>, console: &mut Console) -> Result<Loaded, Failure> {
    match loaded {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                console.note(&format!("warning: {warning}"));
            }
            Ok(loaded)
        }
        Err(errors) => {
            for error in &errors {
                Failure::failed(error).tell(console.err)?;
            }
            Err(Failure::told(Exit::Failed))
        }
    }
}
