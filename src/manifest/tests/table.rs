//! `docs/manifest.md` lists the fields that the decoder knows, in its order.

use super::*;

const PAGE: &str = include_str!("../../../docs/manifest.md");

/// `(field, what the column for Docker says)`, a `NAME` for keys that the owner chooses.
fn documented() -> Vec<(String, String)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 5, "{row}");
        (cells[0].trim_matches('`').to_owned(), cells[4].to_owned())
    })
    .collect()
}

#[test]
fn the_page_and_the_decoder_list_the_same_fields() {
    let mut known = Vec::new();
    for shape in shape::ALL {
        let path = |key: &str| {
            if shape.path.is_empty() { key.to_owned() } else { format!("{}.{key}", shape.path) }
        };
        known.extend(shape.keys.iter().map(|key| (path(key), true)));
        known.extend(shape.later.iter().map(|key| (path(key), false)));
    }
    let mut documented: Vec<(String, bool)> = documented()
        .into_iter()
        .map(|(field, docker)| {
            assert!(["native", "by the agent", "not yet"].contains(&&*docker), "{field}: {docker}");
            (field, docker != "not yet")
        })
        .collect();
    known.sort();
    documented.sort();
    assert_eq!(documented, known);
}

#[test]
fn the_example_of_the_page_is_accepted() {
    let example = PAGE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(accepted(example).key.to_string(), "shop/web");
}
