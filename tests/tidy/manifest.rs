//! Rules about Cargo.toml: every dependency says what it is for.

use crate::finding::Finding;

/// The lines that begin a dependency, from 0, each with its name.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.trim_matches(['[', ']']);
            inside = heading.ends_with("dependencies");
            if let Some((_, name)) = heading.split_once("dependencies.") {
                entries.push((number, name.to_owned()));
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((name, _)) = line.split_once('=')
        {
            entries.push((number, name.trim().to_owned()));
        }
    }
    entries
}

/// Names of all packages, as code writes them.
pub fn packages(text: &str) -> Vec<String> {
    entries(text).into_iter().map(|(_, name)| name.replace('-', "_")).collect()
}

/// Dependencies without a comment above them.
pub fn reasons(file: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let why = "every package is code of strangers on the device, and costs size";
    let bare = entries(text).into_iter().filter(|(number, _)| {
        number.checked_sub(1).is_none_or(|above| !lines[above].trim().starts_with("# "))
    });
    let finding = |(number, name)| {
        let rule = format!("`{name}` has no line above it that says what it is for");
        Finding::new(file, number + 1, rule, why)
    };
    bare.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[package]\nname = \"x\"\n[dependencies]\n# For this.\na-b = \"1\"\n\
                        c = \"1\"\n[target.x.dev-dependencies]\nd = \"1\"\n[dependencies.e]\n\
                        version = \"1\"\n[lints.rust]\nf = \"deny\"\n";

    #[test]
    fn names_are_found() {
        assert_eq!(packages(TEXT), ["a_b", "c", "d", "e"]);
    }

    #[test]
    fn dependencies_without_a_reason_are_found() {
        let lines: Vec<usize> = reasons("Cargo.toml", TEXT).iter().map(|f| f.line).collect();
        assert_eq!(lines, [6, 8, 9]);
    }
}
