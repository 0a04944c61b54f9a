//! A Rust file taken apart: code without comments and literals, comments alone, and which lines are
//! tests. It is no parser; it knows as much of Rust as the rules need.

/// One Rust file.
#[derive(Debug)]
pub struct Source {
    /// From the top of the repository.
    pub file: String,
    /// As it is.
    pub text: String,
    /// The code: comments and what is between quotes are blanks, lines are where they were.
    pub code: Vec<char>,
    /// The comments: the rest is blanks.
    pub comments: String,
    /// Whether the whole file is tests.
    pub is_test: bool,
    /// Lines of the code that are tests, from 0, with the line after each.
    pub test_lines: Vec<(usize, usize)>,
}

impl Source {
    /// Takes `text` apart. `is_test`: the module is declared as one of tests.
    pub fn new(file: &str, text: &str, is_test: bool) -> Self {
        let (code, comments) = split(text);
        let test_lines = test_items(&code);
        Self { file: file.to_owned(), text: text.to_owned(), code, comments, is_test, test_lines }
    }

    /// The line of a position in `code`, from 1.
    pub fn line(&self, at: usize) -> usize {
        1 + self.code[..at].iter().filter(|c| **c == '\n').count()
    }

    /// Whether the line, from 1, is one of tests.
    pub fn tests_at(&self, line: usize) -> bool {
        self.is_test || self.test_lines.iter().any(|(from, to)| (*from..*to).contains(&(line - 1)))
    }

    /// Where `word` stands in the code, not as a part of another one.
    pub fn words(&self, word: &str) -> Vec<usize> {
        find_words(&self.code, word)
    }

    /// What follows a position, without blanks.
    pub fn after(&self, at: usize, length: usize) -> String {
        self.code[at..].iter().filter(|c| !c.is_whitespace()).take(length).collect()
    }

    /// What is before a position, without blanks.
    pub fn before(&self, at: usize, length: usize) -> String {
        let back = self.code[..at].iter().rev().filter(|c| !c.is_whitespace()).take(length);
        back.collect::<Vec<_>>().into_iter().rev().collect()
    }

    /// Modules that this file declares for tests only: `#[cfg(test)] mod name;`.
    pub fn test_modules(&self) -> Vec<String> {
        let of_tests = |at: &usize| self.tests_at(self.line(*at));
        let names = self.words("mod").into_iter().filter(of_tests).filter_map(|at| {
            let rest: String = self.code[at + 3..].iter().collect();
            let (name, _) = rest.split_once(';')?;
            let name = name.trim();
            name.chars().all(is_word).then(|| name.to_owned())
        });
        names.collect()
    }
}

/// Whether `c` can be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `word` stands in `code`, not as a part of another one.
pub fn find_words(code: &[char], word: &str) -> Vec<usize> {
    let word: Vec<char> = word.chars().collect();
    let mut found = Vec::new();
    for (at, window) in code.windows(word.len()).enumerate() {
        let begins = at == 0 || !is_word(code[at - 1]);
        let ends = code.get(at + word.len()).is_none_or(|c| !is_word(*c));
        if window == word && begins && ends {
            found.push(at);
        }
    }
    found
}

/// The position after the bracket that closes the one at `at`.
pub fn after_group(code: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, c) in code.iter().enumerate().skip(at) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return place + 1;
        }
    }
    code.len()
}

/// Lines of items behind `#[cfg(test)]`, from 0, with the line after each.
fn test_items(code: &[char]) -> Vec<(usize, usize)> {
    let line = |at: usize| code[..at].iter().filter(|c| **c == '\n').count();
    let mut lines = Vec::new();
    for at in find_words(code, "cfg") {
        let group = after_group(code, at + 3);
        let condition: String = code[at + 3..group].iter().collect();
        if condition != "(test)" {
            continue;
        }
        let item = code[group..].iter().position(|c| matches!(c, '{' | ';'));
        let Some(item) = item.map(|item| group + item) else { continue };
        let end = if code[item] == '{' { after_group(code, item) } else { item + 1 };
        lines.push((line(at), line(end.min(code.len())) + 1));
    }
    lines
}

/// What a character belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

fn split(text: &str) -> (Vec<char>, String) {
    let chars: Vec<char> = text.chars().collect();
    let mut code = Vec::with_capacity(chars.len());
    let mut comments = String::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let (part, end) = next_part(&chars, at);
        for &c in &chars[at..end] {
            let keep = |mine: bool| if mine || c == '\n' { c } else { ' ' };
            code.push(keep(part == Part::Code));
            comments.push(keep(part == Part::Comment));
        }
        at = end;
    }
    (code, comments)
}

/// What begins at `at`, and where it ends.
fn next_part(chars: &[char], at: usize) -> (Part, usize) {
    let two = (chars[at], chars.get(at + 1).copied().unwrap_or(' '));
    if two == ('/', '/') {
        let end = chars[at..].iter().position(|c| *c == '\n');
        return (Part::Comment, end.map_or(chars.len(), |end| at + end));
    }
    if two == ('/', '*') {
        return (Part::Comment, end_of_block(chars, at));
    }
    if two.0 == '"' {
        return (Part::Literal, end_of_string(chars, at));
    }
    if two.0 == '\'' {
        return end_of_quote(chars, at).map_or((Part::Code, at + 1), |end| (Part::Literal, end));
    }
    let begins = at == 0 || !is_word(chars[at - 1]);
    if begins && matches!(two.0, 'r' | 'b' | 'c') {
        let word = chars[at..].iter().take_while(|c| is_word(**c)).count();
        let quote = at + word + chars[at + word..].iter().take_while(|c| **c == '#').count();
        if word <= 2 && chars[at..at + word].contains(&'r') && chars.get(quote) == Some(&'"') {
            return (Part::Literal, end_of_raw(chars, quote, quote - at - word));
        }
    }
    (Part::Code, at + 1)
}

fn end_of_block(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut place = at;
    while place + 1 < chars.len() {
        match (chars[place], chars[place + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                place += 1;
                continue;
            }
        }
        place += 2;
        if depth == 0 {
            return place;
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut place = at + 1;
    while place < chars.len() {
        match chars[place] {
            '\\' => place += 2,
            '"' => return place + 1,
            _ => place += 1,
        }
    }
    chars.len()
}

fn end_of_raw(chars: &[char], quote: usize, hashes: usize) -> usize {
    let mut end = vec!['"'];
    end.resize(hashes + 1, '#');
    let found = chars[quote + 1..].windows(end.len()).position(|window| window == end);
    found.map_or(chars.len(), |found| quote + 1 + found + end.len())
}

/// The end of a character in quotes; `None`: a lifetime.
fn end_of_quote(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at + 1)? {
        '\\' => {
            let end = chars[at + 3..].iter().position(|c| *c == '\'')?;
            Some(at + 3 + end + 1)
        }
        _ => (chars.get(at + 2) == Some(&'\'')).then_some(at + 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new("src/a.rs", text, false).code.iter().collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a     \nc                   g");
        for literal in [r#""x\"y""#, r##"r#"x"y"#"##, r#"br"x""#, "'x'", r"'\''", r"'\u{1f}'"] {
            let text = format!("a({literal})");
            assert_eq!(code(&text).replace(' ', ""), "a()", "{text}");
        }
        assert_eq!(code("fn f<'a>(x: &'a r#type)"), "fn f<'a>(x: &'a r#type)");
        assert!(Source::new("a", "x // FIX\n", false).comments.contains("FIX"));
    }

    #[test]
    fn tests_are_known_by_their_lines() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("src/a.rs", text, false);
        let tests: Vec<bool> = (1..=6).map(|line| source.tests_at(line)).collect();
        assert_eq!(tests, [false, true, true, true, true, false]);
        let text = "mod a;\n#[cfg(test)]\npub(crate) mod b;\nmod c;\n";
        assert_eq!(Source::new("src/a.rs", text, false).test_modules(), ["b"]);
        assert!(Source::new("src/a.rs", "#[cfg(unix)]\nmod b;", false).test_modules().is_empty());
    }

    #[test]
    fn words_are_whole() {
        let source = Source::new("a", "unsafe_code unsafe \"unsafe\"", false);
        assert_eq!(source.words("unsafe"), [12]);
    }
}
