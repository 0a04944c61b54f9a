//! "Did you mean": the known word that a wrong one is nearest to.

/// Words longer than this are not compared; no key is.
const LONGEST: usize = 32;

/// The word of `known` that `word` was most likely meant to be, if any is near.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let wanted = plain(word);
    let allowed = if wanted.len() < 4 { 1 } else { 2 };
    known
        .into_iter()
        .map(|known| (distance(wanted.as_bytes(), plain(known).as_bytes()), known))
        .filter(|(distance, known)| *distance <= allowed && *distance < known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (above[j] + usize::from(x != y)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let known = ["image", "env", "ports", "workingDir", "stop"];
        for (word, meant) in [
            ("imgae", Some("image")),
            ("Image", Some("image")),
            ("working_dir", Some("workingDir")),
            ("port", Some("ports")),
            ("envs", Some("env")),
            ("x", None),
            ("volumes", None),
            ("", None),
            ("imageimageimageimageimageimageimage", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
