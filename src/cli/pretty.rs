//! JSON for people: the same text with lines and indents. Writing it so in the first place would be
//! a second copy of the code of every type that is written.

/// `json`, which has no blanks between its tokens, with every value on a line of its own.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut before = '\0';
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            out.push(c);
            before = c;
            continue;
        }
        let closes = matches!(c, '}' | ']');
        depth -= usize::from(closes);
        let opened = matches!(before, '{' | '[');
        // An empty list or object stays as it is.
        if opened != closes || before == ',' {
            new_line(depth, &mut out);
        }
        out.push(c);
        match c {
            '{' | '[' => depth += 1,
            ':' => out.push(' '),
            '"' => in_string = true,
            _ => {}
        }
        before = c;
    }
    out
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn expect_as_written_so(value: &Value) {
        assert_eq!(pretty(&value.to_string()), serde_json::to_string_pretty(value).unwrap());
    }

    #[test]
    fn it_is_what_is_written_so_in_the_first_place() {
        expect_as_written_so(&json!(null));
        expect_as_written_so(&json!({}));
        expect_as_written_so(&json!([[], {}, [[]], -1.5, true, "x"]));
        expect_as_written_so(&json!({"a": {"b": [1, 2], "c": []}, "d": "{\"e\": [1,2]}\\"}));
    }

    proptest! {
        #[test]
        fn whatever_is_in_a_string(texts in prop::collection::vec(any::<String>(), 0..4)) {
            expect_as_written_so(&json!({"texts": texts, "more": [texts]}));
        }
    }
}
