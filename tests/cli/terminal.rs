//! A command as if typed: words in; exit code, output and errors out.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bargee::cli::args::AgentFlags;
use bargee::cli::config_cmd::Loaded;
use bargee::cli::console::{Console, Time};
use bargee::cli::{Outcome, run};
use bargee::config::Flags;

use crate::fake::{NOW, Served};

/// What came of a command.
#[derive(PartialEq, Eq, Debug)]
pub struct Ran {
    pub exit: u8,
    pub out: String,
    pub err: String,
}

/// A clock that stands still but for pauses, in which the world can change.
pub struct MadeUpTime<'a> {
    now_ms: Cell<u64>,
    world: RefCell<Box<dyn FnMut(u64) + 'a>>,
}

impl<'a> MadeUpTime<'a> {
    /// `world` is told the time after each pause.
    pub fn new(world: impl FnMut(u64) + 'a) -> Self {
        Self { now_ms: Cell::new(0), world: RefCell::new(Box::new(world)) }
    }
}

impl Time for MadeUpTime<'_> {
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    fn wall_ms(&self) -> u64 {
        NOW.wall_ms
    }

    fn pause(&self, span: Duration) {
        let now = self.now_ms.get() + u64::try_from(span.as_millis()).unwrap();
        self.now_ms.set(now);
        self.world.borrow_mut()(now);
    }
}

/// All around a command.
pub struct Terminal<'a> {
    pub input: &'a str,
    pub environment: Vec<(String, String)>,
    pub is_terminal: bool,
    pub input_is_terminal: bool,
    pub time: MadeUpTime<'a>,
    pub config: Result<Loaded, Vec<String>>,
}

impl<'a> Terminal<'a> {
    /// One whose configuration names the socket of `served`.
    pub fn of(served: &Served) -> Self {
        Self::at(&served.socket)
    }

    pub fn at(socket: &Path) -> Self {
        let socket = socket.to_owned();
        Self {
            input: "",
            environment: Vec::new(),
            is_terminal: false,
            input_is_terminal: false,
            time: MadeUpTime::new(|_| {}),
            config: Ok(Loaded { socket, ..Loaded::default() }),
        }
    }

    /// Runs `words`, which blanks separate.
    pub fn run(&self, words: &str) -> Ran {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = self.run_into(words, &mut out, &mut err);
        let Outcome::Ended(exit) = outcome else { panic!("became the agent: {outcome:?}") };
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { exit: exit.code(), out: text(out), err: text(err) }
    }

    pub fn run_into(&self, words: &str, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
        let load = |file: Option<&Path>| match file {
            Some(file) => Err(vec![format!("{}: not there", file.display())]),
            None => self.config.clone(),
        };
        let mut console = Console {
            input: &mut self.input.as_bytes(),
            out,
            err,
            terminal: self.is_terminal,
            input_terminal: self.input_is_terminal,
            environment: self.environment.clone(),
            time: &self.time,
            load_config: &load,
        };
        run(words.split_whitespace().map(Into::into).collect(), &mut console)
    }
}

/// A writer whose reader has gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn offline() -> Terminal<'static> {
    Terminal::at(Path::new("/nonexistent/bargee.sock"))
}

#[test]
fn help_is_data_and_comes_in_many_ways() {
    let overview = offline().run("--help");
    assert_eq!((overview.exit, overview.err.as_str()), (0, ""));
    assert!(overview.out.contains("\n  deploy -f FILE "));
    assert_eq!(offline().run("help"), overview);
    let deploy = offline().run("deploy --help");
    assert!(deploy.out.contains("--wait[=TIME]"));
    assert_eq!(offline().run("help deploy"), deploy);
    assert_eq!(offline().run("ms deploy -h"), deploy);
}

#[test]
fn wrong_usage_is_exit_2_with_a_hint() {
    let cases = [
        ("", "a command is missing", "`bargee --help` lists"),
        ("dance", "'dance' is no command", "`bargee --help` lists"),
        ("--loud ps", "unknown option --loud", "`bargee --help` lists"),
        ("ps --loud", "unknown option --loud", "`bargee ps --help`"),
        ("ps web", "'web': ps takes no names", "`bargee ps --help`"),
        ("ps -o xml", "-o xml: allowed are table, json, yaml", "`bargee ps --help`"),
        ("stop", "NAME is missing", "`bargee stop --help`"),
        ("stop web --signal HUP", "unknown option --signal", "`bargee stop --help`"),
        ("deploy", "-f FILE is missing", "`bargee deploy --help`"),
        ("deploy web.yaml", "files are named with -f", "`bargee deploy --help`"),
        ("deploy -f - -f -", "only once", "`bargee deploy --help`"),
        ("deploy -f x --wait 5s", "a time is given as --wait=5s", "`bargee deploy --help`"),
        ("deploy -f x --wait=soon", "must be a time like", "`bargee deploy --help`"),
        ("deploy -f x --wait=0s", "must be a time like", "`bargee deploy --help`"),
        ("deploy -f x --wait --dry-run", "nothing to --wait for", "`bargee deploy --help`"),
        ("logs", "NAME is missing", "`bargee logs --help`"),
        ("logs a b", "only one NAME", "`bargee logs --help`"),
        ("logs a --tail some", "must be a number of lines", "`bargee logs --help`"),
        ("logs a -o json", "-o has no meaning", "`bargee logs --help`"),
        ("status web", "one word too many", "`bargee status --help`"),
        ("journal", "needs 'ls', 'show', 'replay' or 'drop'", "`bargee journal --help`"),
        ("journal undo", "'journal undo' is no command", "`bargee journal --help`"),
        ("journal ls 7", "one word too many", "`bargee journal --help`"),
        ("journal show", "SEQ is missing", "`bargee journal --help`"),
        ("journal show x", "SEQ 'x': must be a whole number", "`bargee journal --help`"),
        ("journal replay 7 8", "one word too many", "`bargee journal --help`"),
        ("journal replay 7 --yes", "unknown option --yes", "`bargee journal --help`"),
        ("journal drop --yes", "SEQ is missing", "`bargee journal --help`"),
        ("journal drop 7 8", "only one SEQ", "`bargee journal --help`"),
        ("journal drop 7 --force", "unknown option --force", "`bargee journal --help`"),
        ("adopt", "NAME or --all is missing", "`bargee adopt --help`"),
        ("adopt web --all", "exclude each other", "`bargee adopt --help`"),
        ("adopt a b", "only one NAME", "`bargee adopt --help`"),
        ("config", "needs 'check' or 'show'", "`bargee config --help`"),
        ("ms", "a command is missing after 'ms'", "`bargee --help` lists"),
        ("ms dance", "'dance' is no command", "`bargee --help` lists"),
        ("agent now", "one word too many", "`bargee agent --help`"),
    ];
    for (words, message, hint) in cases {
        let ran = offline().run(words);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{words}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains(message), "{words}: {ran:?}");
        assert!(ran.err.contains(&format!("\nhint: {hint}")), "{words}: {ran:?}");
    }
}

#[test]
fn what_is_not_built_yet_says_so() {
    let later = [
        "exec",
        "set",
        "graph",
        "run",
        "node",
        "volume",
        "completion",
        "logs web --since 1h",
        "logs web -t",
    ];
    for words in later {
        let ran = offline().run(words);
        assert_eq!(ran.exit, 2, "{words}");
        assert!(ran.err.contains("not supported yet"), "{words}: {}", ran.err);
    }
}

#[test]
fn the_agent_is_left_to_main() {
    let words = "agent --config /c --node n --engine docker --engine-url unix:///e --data-dir /d \
                 --manifests-dir /m --socket /s --workers 2 --log-level debug \
                 --log-file /l --log-max-size 64Ki --log-reconcile-every 9";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let text = |text: &str| Some(text.to_owned());
    let keys = Flags {
        node: text("n"),
        engine: text("docker"),
        engine_url: text("unix:///e"),
        data_dir: text("/d"),
        manifests_dir: text("/m"),
        api_socket: text("/s"),
        workers: text("2"),
        log_level: text("debug"),
        log_file: text("/l"),
        log_max_size: text("64Ki"),
        reconcile_every: text("9"),
    };
    let flags = AgentFlags { config: Some(PathBuf::from("/c")), keys };
    assert_eq!(offline().run_into(words, &mut out, &mut err), Outcome::Agent(Box::new(flags)));
    assert!(out.is_empty() && err.is_empty());
}

#[test]
fn an_agent_that_is_not_there_is_exit_10() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("a.sock");
    let ran = Terminal::at(&socket).run("ps");
    assert_eq!((ran.exit, ran.out.as_str()), (10, ""));
    let shown = socket.display();
    assert_eq!(
        ran.err,
        format!(
            "error: the agent is not reachable: there is no socket {shown}\n\
             hint: it does not run, or it listens elsewhere (--socket); start it with \
             `systemctl start bargee` or `bargee agent`\n"
        )
    );
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let stale = Terminal::at(&socket).run("stop web");
    assert_eq!(stale.exit, 10);
    assert!(stale.err.contains(&format!("nobody listens on {shown}")), "{}", stale.err);
    assert!(stale.err.contains("`systemctl start bargee`"));
}

#[test]
fn version_needs_no_agent() {
    let ran = offline().run("version");
    let client = env!("CARGO_PKG_VERSION");
    assert_eq!(
        ran,
        Ran {
            exit: 0,
            out: format!("client  {client}\nagent   not reachable\n"),
            err: String::new()
        }
    );
    assert_eq!(offline().run("--version"), ran);
    let json = offline().run("version -o json").out;
    assert_eq!(json, format!("{{\n  \"client\": \"{client}\"\n}}\n"));
}

#[test]
fn the_socket_is_the_flags_then_the_environments_then_the_configs() {
    let named = |terminal: &Terminal, words: &str| terminal.run(words).err;
    let mut terminal = Terminal::at(Path::new("/nonexistent/config.sock"));
    assert!(named(&terminal, "ps").contains("no socket /nonexistent/config.sock"));
    terminal.environment = vec![("BARGEE_API_SOCKET".into(), "/nonexistent/env.sock".into())];
    assert!(named(&terminal, "ps").contains("no socket /nonexistent/env.sock"));
    let flag = named(&terminal, "--socket /nonexistent/flag.sock ps");
    assert!(flag.contains("no socket /nonexistent/flag.sock"));
    terminal.environment.clear();
    let broken = named(&terminal, "ps --config /nonexistent.yaml");
    assert!(broken.starts_with("warning: /nonexistent.yaml: not there; trying /run/bargee"));
}

#[test]
fn a_reader_that_left_is_a_quiet_end() {
    let mut err = Vec::new();
    let outcome = offline().run_into("--help", &mut Gone, &mut err);
    assert_eq!(outcome, Outcome::Ended(bargee::cli::failure::Exit::Done));
    assert!(err.is_empty());
}

#[test]
fn the_configuration_is_checked_and_shown() {
    let mut terminal = offline();
    let setting = |key: &str, value: &str| (key.into(), value.into(), "default".into());
    terminal.config = Ok(Loaded {
        socket: PathBuf::new(),
        settings: vec![setting("node", "gate-1"), setting("engine", "docker")],
        warnings: vec!["BARGEE_NOPE is unknown".into()],
    });
    let check = terminal.run("config check");
    assert_eq!((check.exit, check.out.as_str()), (0, "ok, 1 warning(s)\n"));
    assert_eq!(check.err, "warning: BARGEE_NOPE is unknown\n");
    assert_eq!(
        terminal.run("config show").out,
        "KEY     VALUE   FROM\nnode    gate-1  default\nengine  docker  default\n"
    );
    assert_eq!(terminal.run("config show -o yaml").out, "node: gate-1\nengine: docker\n");
    let sections = ["node", "api.socket", "workers", "log.level", "log.file"];
    let settings = sections.map(|key| setting(key, "a")).to_vec();
    terminal.config = Ok(Loaded { settings, ..Loaded::default() });
    // Keys stand in their sections, as the file has them.
    assert_eq!(
        terminal.run("config show -o yaml").out,
        "node: a\napi:\n  socket: a\nworkers: a\nlog:\n  level: a\n  file: a\n"
    );
    let wrong = terminal.run("config check --config /x");
    assert_eq!((wrong.exit, wrong.err.as_str()), (1, "error: /x: not there\n"));
}
