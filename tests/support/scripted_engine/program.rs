//! What the process of a container would do: the few commands that tests use, carried out in no
//! time. A program writes what it writes and ends, or stays until a signal; nothing of it runs.

use std::collections::BTreeMap;

/// Text by path, in a volume.
pub type Files = BTreeMap<String, String>;

/// A program and what it was started with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Entrypoint and command.
    pub words: Vec<String>,
    /// Environment.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub directory: String,
    /// User, as it was asked for.
    pub user: String,
    /// It may not have all the memory there is.
    pub is_limited: bool,
    /// Path in the container, and the volume that is there.
    pub mounts: Vec<(String, String)>,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Output (1 or 2) and text, as written.
    pub written: Vec<(u8, String)>,
    /// How it ended; `None`: it stays.
    pub end: Option<End>,
}

/// How a program ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with this code.
    Exit(i64),
    /// Killed for memory.
    OutOfMemory,
}

/// What follows a command.
enum Next {
    /// The next one, after this exit code.
    Go(i64),
    /// Nothing: it stays.
    Stay,
    /// Nothing: it ended.
    End(End),
}

/// Commands that there are.
const COMMANDS: &[&str] = &[
    "cat", "echo", "exit", "httpd", "id", "printf", "pwd", "seq", "sh", "sleep", "tail", "trap",
    "true", "while",
];
/// A sleep of so many seconds lasts longer than any test.
const LONG_SLEEP: f64 = 10.0;

impl Program {
    /// Runs it from its start; `None`: there is no such command.
    pub fn start(&self, volumes: &mut BTreeMap<String, Files>) -> Option<Run> {
        let (env, words) = self.command();
        let program = Self { env, ..self.clone() };
        match words {
            [sh, option, line] if sh == "sh" && option == "-c" => {
                Some(program.run(&statements(line), volumes))
            }
            [command, ..] if COMMANDS.contains(&command.as_str()) => {
                Some(program.run(&[words.to_vec()], volumes))
            }
            _ => None,
        }
    }

    /// What it does about a signal, named without `SIG`. The first process of a container ignores
    /// what it has no trap for.
    pub fn signal(&self, signal: &str, volumes: &mut BTreeMap<String, Files>) -> Run {
        let line = self.words.last().map_or("", String::as_str);
        let traps = statements(line).into_iter().filter(|words| words[0] == "trap");
        let mut mine = traps.filter(|words| words.get(2).is_some_and(|name| name == signal));
        match mine.next() {
            Some(words) => {
                let run = self.run(&statements(&words[1]), volumes);
                let exits = statements(&words[1]).iter().any(|words| words[0] == "exit");
                Run { end: run.end.filter(|_| exits), ..run }
            }
            None => Run::default(),
        }
    }

    /// The environment with what `env` adds to it, and the words after that.
    fn command(&self) -> (BTreeMap<String, String>, &[String]) {
        let mut env = self.env.clone();
        let mut words = &self.words[..];
        if let Some(("env", rest)) = words.split_first().map(|(word, rest)| (word.as_str(), rest)) {
            words = rest;
            while let Some((name, value)) = words.first().and_then(|word| word.split_once('=')) {
                env.insert(name.to_owned(), value.to_owned());
                words = &words[1..];
            }
        }
        (env, words)
    }

    fn run(&self, statements: &[Vec<String>], volumes: &mut BTreeMap<String, Files>) -> Run {
        let mut written = Vec::new();
        let mut code = 0;
        for words in statements {
            match self.step(words, code, &mut written, volumes) {
                Next::Go(next) => code = next,
                Next::Stay => return Run { written, end: None },
                Next::End(end) => return Run { written, end: Some(end) },
            }
        }
        Run { written, end: Some(End::Exit(code)) }
    }

    fn step(
        &self,
        words: &[String],
        before: i64,
        written: &mut Vec<(u8, String)>,
        volumes: &mut BTreeMap<String, Files>,
    ) -> Next {
        let words: Vec<String> = words.iter().map(|word| self.expand(word)).collect();
        let (words, place) = redirected(&words);
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        let text = match words[0] {
            "exit" => {
                return Next::End(End::Exit(words.get(1).map_or(before, |w| w.parse().unwrap())));
            }
            "sleep" if number(1).is_some_and(|seconds| seconds < LONG_SLEEP) => String::new(),
            "sleep" | "while" | "httpd" => return Next::Stay,
            "tail" if self.is_limited => return Next::End(End::OutOfMemory),
            "tail" => return Next::Stay,
            "true" | "trap" => String::new(),
            "echo" => words[1..].join(" ") + "\n",
            "printf" => words[1..].join(" "),
            "pwd" => format!("{}\n", self.directory),
            "id" => format!("{}\n", self.user.split(':').next().unwrap_or_default()),
            "seq" => {
                (1..=words[1].parse().unwrap()).map(|number: u32| format!("{number}\n")).collect()
            }
            "cat" => match self.place(words[1], volumes).and_then(|(files, name)| files.get(&name))
            {
                Some(text) => text.clone(),
                None => {
                    written.push((2, format!("cat: can't open '{}'\n", words[1])));
                    return Next::Go(1);
                }
            },
            other => {
                written.push((2, format!("sh: {other}: not found\n")));
                return Next::Go(127);
            }
        };
        match place {
            Place::Output(number) => written.extend(lines(number, &text)),
            Place::File(path) => match self.place(path, volumes) {
                Some((files, name)) => drop(files.insert(name, text)),
                None => return Next::Go(1),
            },
        }
        Next::Go(0)
    }

    /// The volume that a path leads to, and the path in it.
    fn place<'a>(
        &self,
        path: &str,
        volumes: &'a mut BTreeMap<String, Files>,
    ) -> Option<(&'a mut Files, String)> {
        let mut inside = self.mounts.iter().filter_map(|(at, volume)| {
            Some((volume, path.strip_prefix(at.as_str())?.strip_prefix('/')?))
        });
        let (volume, name) = inside.next()?;
        Some((volumes.get_mut(volume)?, name.to_owned()))
    }

    /// A word with the variable that it is.
    fn expand(&self, word: &str) -> String {
        match word.strip_prefix('$') {
            Some(name) => self.env.get(name).cloned().unwrap_or_default(),
            None => word.to_owned(),
        }
    }
}

/// Where a command writes to.
enum Place<'a> {
    Output(u8),
    File(&'a str),
}

fn redirected(words: &[String]) -> (Vec<&str>, Place<'_>) {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let [.., ">", path] = words[..] {
        words.truncate(words.len() - 2);
        return (words, Place::File(path));
    }
    if words.last() == Some(&">&2") {
        words.pop();
        return (words, Place::Output(2));
    }
    (words, Place::Output(1))
}

/// The engine writes a log down line by line.
fn lines(output: u8, text: &str) -> impl Iterator<Item = (u8, String)> {
    text.split_inclusive('\n').map(move |line| (output, line.to_owned()))
}

/// The commands of a line, each in words. What is in quotes is one word.
fn statements(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    for c in line.chars().chain([';']) {
        match (c, quote) {
            (_, Some(end)) if c == end => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ' | ';', None) => {
                let words = all.last_mut().expect("there is always one");
                words.extend(word.take());
                if c == ';' && !words.is_empty() {
                    all.push(Vec::new());
                }
            }
            (_, None) => word.get_or_insert_default().push(c),
        }
    }
    all.pop();
    all
}
