//! Tests of the reader: what it gives, what it refuses, and that hostile files cost little.

use proptest::prelude::*;

use super::*;

/// The documents as one line of text: `{key: value}`, quoted scalars in quotes.
fn outline(node: &Node) -> String {
    match &node.value {
        Value::Scalar(s) if s.quoted => format!("{:?}", s.text),
        Value::Scalar(s) => s.text.clone(),
        Value::Sequence(items) => {
            format!("[{}]", items.iter().map(|n| outline(n)).collect::<Vec<_>>().join(" "))
        }
        Value::Mapping(entries) => {
            let entry = |e: &Entry| format!("{}@{}: {}", e.key, e.line, outline(&e.value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
    }
}

fn outcome(text: &str) -> (Vec<String>, Vec<String>) {
    let mut flaws = Flaws::default();
    let documents = read(text, Bounds::FILE, &mut flaws);
    let (flaws, _) = flaws.into_parts();
    let flaws = flaws.iter().map(|f| format!("{}: {}: {}", f.line, f.field, f.message));
    (documents.iter().map(|node| outline(node)).collect(), flaws.collect())
}

#[track_caller]
fn gives(text: &str, documents: &[&str]) {
    assert_eq!(outcome(text), (documents.iter().map(|d| (*d).to_owned()).collect(), vec![]));
}

#[track_caller]
fn refuses(text: &str, flaws: &[&str]) {
    assert_eq!(outcome(text).1, flaws, "{}", shown(text));
}

#[test]
fn trees_keep_text_order_and_lines() {
    gives("b: 08\na:\n  - no\n  - \"1\"\n", &["{b@1: 08 a@2: [no \"1\"]}"]);
    gives("a: 8080:80\nb: 1.10\nc: ~\nd:\n", &["{a@1: 8080:80 b@2: 1.10 c@3: ~ d@4: }"]);
    gives("{\"a\": [1, true, null], \"b\": {}}", &["{a@1: [1 true null] b@1: {}}"]);
    gives("a: |\n  x\n  y\nb: z\n", &["{a@1: \"x\\ny\\n\" b@4: z}"]);
    gives("[\"\\ud83d\\ude00\"]", &["[\"😀\"]"]);
    gives("true: 1\n8: 2\n", &["{true@1: 1 8@2: 2}"]);
}

#[test]
fn files_hold_any_number_of_documents() {
    gives("", &[]);
    gives("# nothing\n# here\n", &[]);
    gives("---\n---\n# nothing\n---\n", &[]);
    gives("a: 1\n---\nb: 2\n...\n---\nc: 3\n", &["{a@1: 1}", "{b@3: 2}", "{c@6: 3}"]);
    gives("\u{feff}a: 1\r\nb:\r\n  - 2\r\n", &["{a@1: 1 b@2: [2]}"]);
}

#[test]
fn aliases_repeat_and_stay_in_their_document() {
    gives("a: &x [1, 2]\nb: *x\n", &["{a@1: [1 2] b@2: [1 2]}"]);
    gives("a: &x k\n*x : v\n", &["{a@1: k k@2: v}"]);
    gives("&x k: v\nb: *x\n", &["{k@1: v b@2: k}"]);
    let beyond = "an alias may only repeat a value that ended before it";
    refuses("a: &x 1\n---\nb: *x\n", &[&format!("3: b: {beyond}")]);
    refuses("a: &x [*x]\n", &[&format!("1: a[0]: {beyond}")]);
    refuses("a: *x\n", &["1: : is not valid YAML: while parsing node, found unknown anchor"]);
}

#[test]
fn keys_are_text_and_stand_once() {
    refuses(
        "a: 1\nb: {c: 1, c: 2}\na: 3\n",
        &["2: b.c: is there already in line 2", "3: a: is there already in line 1"],
    );
    refuses("? [a, b]\n: c\n", &["1: : a key must be text, found a list"]);
    refuses("{a: {~: 1}}", &["1: a: a key must be text, found nothing"]);
    refuses("a: {: 1}", &["1: a: a key must be text, found nothing"]);
    refuses(
        "a: &x {b: 1}\nc:\n  <<: *x\n",
        &["3: c: merge keys are not supported; write out the keys that << stands for"],
    );
    gives("\"<<\": 1", &["{<<@1: 1}"]);
    refuses("a: !!str 1\n", &["1: a: tags are not supported; quote a value that must be text"]);
}

#[test]
fn what_is_not_yaml_is_refused_with_its_line() {
    let cases = [
        (
            "a: 1\nb: \"x\n",
            "2: : is not valid YAML: while scanning a quoted scalar, found \
         unexpected end of stream",
        ),
        ("a:\n  b: 1\n\tc: 2\n", "3: : is indented with a tab; YAML is indented with spaces"),
        (
            "a: [1, 2\n",
            "2: : is not valid YAML: while parsing a flow sequence, expected ',' or \
         ']'",
        ),
        ("a: 1\n b: 2\n", "2: : is not valid YAML: mapping values are not allowed in this context"),
        ("a: 1\n\0\n", "2: : has a NUL character; this is not a text file"),
    ];
    for (text, flaw) in cases {
        refuses(text, &[flaw]);
    }
}

#[test]
fn documents_before_a_flaw_are_given() {
    let (documents, flaws) = outcome("a: 1\n---\nb: [\n");
    assert_eq!(documents, ["{a@1: 1}"]);
    assert_eq!(flaws.len(), 1);
}

#[test]
fn bytes_become_text_or_name_the_line() {
    assert_eq!(text(b"a: \xc3\xa4".to_vec(), 10).unwrap(), "a: ä");
    let flaw = text(b"a: 1\nb: \xff\n".to_vec(), 100).unwrap_err();
    assert_eq!((flaw.line, flaw.message.as_str()), (2, "is not UTF-8 text"));
    let flaw = text(vec![b'a'; 11], 10).unwrap_err();
    assert_eq!(flaw.message, "has more than 10 bytes");
}

#[test]
fn nesting_is_bounded() {
    let flow = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    gives(&flow(32), &[&flow(32)]);
    let place = |n: usize| "[0]".repeat(n);
    refuses(&flow(33), &[&format!("1: {}: is nested deeper than 32 levels", place(32))]);
    // The parser itself gives up first.
    refuses(&"[".repeat(100_000), &["1: : is not valid YAML: recursion limit exceeded"]);
    refuses(
        &"- ".repeat(100_000),
        &[&format!("1: {}: is nested deeper than 32 levels", place(32))],
    );
    refuses(&"? ".repeat(100_000), &["1: : is nested deeper than 32 levels"]);
    let deep = format!("a: &x {}\nb: {}*x{}\n", flow(20), "[".repeat(13), "]".repeat(13));
    let inner = format!("2: b{}: is nested deeper than 32 levels", place(13));
    refuses(&deep, &[&inner]);
}

#[test]
fn repeats_are_counted_before_they_are_made() {
    // Nine levels of nine: 3 * 10^8 nodes.
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..9 {
        let item = format!("*a{}", i - 1);
        bomb += &format!("a{i}: &a{i} [{}]\n", vec![item; 9].join(", "));
    }
    refuses(&bomb, &["5: a4[5]: has more than 50000 values, repeats counted"]);
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(600_000), ["*a"; 9].join(", "));
    refuses(&long, &["2: b[0]: has more than 1048576 bytes, repeats counted"]);
}

#[test]
fn size_is_bounded() {
    refuses(&"a".repeat(10 << 20), &["0: : has more than 1048576 bytes"]);
    let many = format!("a: {}\n", "x: ".repeat(200_001));
    refuses(&many, &["0: : has more than 200000 of the characters ,[]{}:?&*!"]);
    let list = "- a\n".repeat(50_000);
    refuses(&list, &["50000: [49999]: has more than 50000 values, repeats counted"]);
}

#[test]
fn many_flaws_are_counted() {
    let mut flaws = Flaws::default();
    read(&"a: 1\n".repeat(30), Bounds::FILE, &mut flaws);
    let (kept, more) = flaws.into_parts();
    assert_eq!((kept.len(), more), (MANIFEST_ERRORS, 9));
}

/// A file of the greatest size made of one piece costs no more than its size: a reader that were
/// quadratic in it would hang here.
#[test]
fn repeated_pieces_do_not_add_up() {
    for piece in [
        "a", " ", "\n", "\t", "- ", "-\n", "a: ", "a:\n ", "'", "\"", "\\", "#", "|\n", ">\n ",
        "a b ", "\"\\\n", "--- ", "---\n", "...\n", "%", "%a\n", "<", "@", "`", "\r", "\u{feff}",
        "a\n\n", "- -\n", "'' ", "{\\ud", "x: 'y\n", "ä", "\u{85}", "\u{2028}",
    ] {
        let text = piece.repeat(BODY_BYTES / piece.len());
        let mut flaws = Flaws::default();
        read(&text, Bounds::FILE, &mut flaws);
    }
    for piece in
        ["[", "{", "[a", "{a: ", "&a ", "*a ", "!a ", "? ", ": ", ",", "[]", "[],", "- [] \n"]
    {
        let text = piece.repeat(MANIFEST_INDICATORS / 2);
        for before in ["", "[", "{", "a: ["] {
            let mut flaws = Flaws::default();
            read(&format!("{before}{text}"), Bounds::FILE, &mut flaws);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = text(bytes.clone(), 100);
        let mut flaws = Flaws::default();
        read(&String::from_utf8_lossy(&bytes), Bounds::FILE, &mut flaws);
    }

    #[test]
    fn arbitrary_yaml_never_panics(
        text in "([-?:,\\[\\]{}#&*!|>'\"%@`~<= \n\r\t]|a|b1|---|\\.\\.\\.|: |- |\\? |&a |\\*a \
                |\u{feff}|\\\\u){0,60}"
    ) {
        let mut flaws = Flaws::default();
        for node in read(&text, Bounds::FILE, &mut flaws) {
            outline(&node);
        }
    }
}
