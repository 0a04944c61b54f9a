//! The texts of `--help`, which are the reference.

/// What help is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the commands")]
pub enum Topic {
    Overview,
    Agent,
    Deploy,
    Ps,
    Inspect,
    Logs,
    Start,
    Stop,
    Restart,
    Rebuild,
    Kill,
    Remove,
    Events,
    Status,
    Journal,
    Adopt,
    Confirm,
    Quiesce,
    Resume,
    Version,
    Config,
    Help,
}

/// Commands in the order in which they are listed, each with its topic.
const COMMANDS: [(&str, Topic); 21] = [
    ("deploy", Topic::Deploy),
    ("ps", Topic::Ps),
    ("inspect", Topic::Inspect),
    ("logs", Topic::Logs),
    ("start", Topic::Start),
    ("stop", Topic::Stop),
    ("restart", Topic::Restart),
    ("rebuild", Topic::Rebuild),
    ("kill", Topic::Kill),
    ("rm", Topic::Remove),
    ("events", Topic::Events),
    ("status", Topic::Status),
    ("journal", Topic::Journal),
    ("adopt", Topic::Adopt),
    ("confirm", Topic::Confirm),
    ("quiesce", Topic::Quiesce),
    ("resume", Topic::Resume),
    ("version", Topic::Version),
    ("config", Topic::Config),
    ("agent", Topic::Agent),
    ("help", Topic::Help),
];

impl Topic {
    /// The topic of a command.
    pub fn find(command: &str) -> Option<Self> {
        COMMANDS.iter().find(|(name, _)| *name == command).map(|(_, topic)| *topic)
    }

    /// The command whose help this is; empty: all of them.
    pub fn command(self) -> &'static str {
        COMMANDS.iter().find(|(_, topic)| *topic == self).map_or("", |(name, _)| name)
    }

    /// The help.
    pub fn text(self) -> &'static str {
        match self {
            Self::Overview | Self::Help => OVERVIEW,
            Self::Agent => AGENT,
            Self::Deploy => DEPLOY,
            Self::Ps => PS,
            Self::Inspect => INSPECT,
            Self::Logs => LOGS,
            Self::Start => START,
            Self::Stop => STOP,
            Self::Restart => RESTART,
            Self::Rebuild => REBUILD,
            Self::Kill => KILL,
            Self::Remove => RM,
            Self::Events => EVENTS,
            Self::Status => STATUS,
            Self::Journal => JOURNAL,
            Self::Adopt => ADOPT,
            Self::Confirm => CONFIRM,
            Self::Quiesce => QUIESCE,
            Self::Resume => RESUME,
            Self::Version => VERSION,
            Self::Config => CONFIG,
        }
    }
}

const OVERVIEW: &str = "\
bargee keeps the containers of this device in the state that was declared for them.

Usage: bargee COMMAND [OPTIONS]

  deploy -f FILE    declare workloads; the agent keeps them so from then on
  ps                list workloads
  inspect NAME      show everything about a workload
  logs NAME         read what a workload writes
  start NAME        want it running
  stop NAME         want it stopped; it stays stopped over reboots
  restart NAME      stop and start it once
  rebuild NAME      pull its image and make its container anew
  kill NAME         send a signal; what follows is up to its restart policy
  rm NAME           want it gone, with its container
  events            read changes of state
  status            show the agent, its engine and what it complains about
  journal           show what is in flight, or what a crash left; replay or drop it
  adopt NAME        take over containers that were made from another store
  confirm           say that what is held because it looks wrong is as it should be
  quiesce           hold reconciling: nothing is done on the engine for a while
  resume            go on after that
  version           show the versions of this command and of the agent
  config            check or show the configuration
  agent             be the agent
  help COMMAND      show the help of a command

NAME is a workload's name where it is unique, application/name, or its uid or the
beginning of it (4 hex digits or more).

Options of every command:
  --socket PATH     the agent's socket (default: $BARGEE_API_SOCKET, then the
                    configuration's, then /run/bargee/bargee.sock)
  --config FILE     the configuration (default: /etc/bargee/config.yaml)
  -o FORMAT         table (default), json or yaml; not for agent, config check, help
                    and logs
  -h, --help        show help; also behind a command

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not allowed, 4 not found, 5 conflict
or held, 10 agent not reachable.
";

const AGENT: &str = "\
Be the agent: keep workloads running until SIGTERM or SIGINT. Workloads go on
running when it ends, and are found again when it starts. With shutdown.policy drain
it stops them before it ends, 180 s at most, and starts them again when it starts; a
second signal ends it at once.

Usage: bargee agent [OPTIONS]

  --config FILE     the configuration (default: /etc/bargee/config.yaml)
  --node NAME       name of this device (default: its host name)
  --engine NAME     docker (default)
  --engine-url URL  its socket (default: unix:///var/run/docker.sock)
  --data-dir DIR    where the agent keeps its state (default: /var/lib/bargee)
  --manifests-dir DIR
                    what the manifests in it declare holds as long as they are there
                    (default: /etc/bargee/manifests.d)
  --socket PATH     the socket to serve (default: /run/bargee/bargee.sock)
  --workers N       steps on the engine at a time (default: 4)
  --log-level LEVEL error, warn, info (default), debug or trace
  --log-file FILE   where the log goes (default: stderr)
  --log-max-size SIZE
                    a larger log file becomes FILE.1 (default: 1Mi)
  --log-reconcile-every N
                    a line for every N passes (default: 0, none)

Options stand above BARGEE_ variables, and these above the file.
";

const DEPLOY: &str = "\
Declare workloads from manifests, all or none. Workloads that are named keep their
desired state; what is not named is left alone. What a file of the manifests
directory declares can only be changed there.

Usage: bargee deploy -f FILE|DIR|- [-f ...] [OPTIONS]

  -f FILE           a manifest in YAML or JSON; '-' is standard input; a directory
                    stands for its *.yaml, *.yml and *.json
  --dry-run         check and say what would change; change nothing
  --prune           remove what was deployed before in the same applications and is
                    not named any more; lists it first
  --start           want those running too that are stopped on purpose
  --wait[=TIME]     wait until all of them have run for 5 s (and are healthy, where
                    a health check is declared), have succeeded, or are stopped on
                    purpose; give up after TIME (default 60s). An update that ends
                    within 30 s is still taken back after that
";

const PS: &str = "\
List workloads, without those that are stopped or have succeeded. The verdict of a
health check stands beside the state: Running(Ok) healthy.

Usage: bargee ps [-a]

  -a, --all         list these too
";

const INSPECT: &str = "\
Show everything about workloads, their manifests included, as YAML.

Usage: bargee inspect NAME... [-o json]
";

const LOGS: &str = "\
Read what the container of a workload has written.

Usage: bargee logs NAME [OPTIONS]

  -f, --follow      go on with what it writes, until it ends
  -n, --tail LINES  only the last lines
";

const START: &str = "\
Want workloads running, and wait until they are.

Usage: bargee start NAME... [--no-wait]
";

const STOP: &str = "\
Want workloads stopped, and wait until they are. They stay stopped until `bargee
start`, whatever their restart policy.

Usage: bargee stop NAME... [--no-wait]
";

const RESTART: &str = "\
Stop and start workloads once, and wait until they run again.

Usage: bargee restart NAME... [--no-wait]
";

const REBUILD: &str = "\
Pull the images of workloads, make their containers anew, and wait until these run.
The old container runs until the new one is made, and again if that fails or ends
within 30 s. What is stopped, was refused, is stuck in restarts or failed to be
updated is tried afresh, and restarts are counted from 0. An image whose pull is
'never' is not pulled.

Usage: bargee rebuild NAME... [--no-wait]
";

const KILL: &str = "\
Send a signal to workloads. What follows an exit is up to their restart policy.

Usage: bargee kill NAME... [OPTIONS]

  -s, --signal SIG  the signal, by name or number (default: SIGKILL)
  --no-wait         do not wait until it is sent
";

const RM: &str = "\
Want workloads gone, and wait until they and their containers are. Named volumes
stay.

Usage: bargee rm NAME... [--no-wait]
";

const EVENTS: &str = "\
Read changes of state since the agent started, the last 1024 of them, one a line,
oldest first.

Usage: bargee events [-f]

  -f, --follow      go on with what happens
";

const STATUS: &str = "\
Show the agent, its engine and what it complains about.

Usage: bargee status
";

const JOURNAL: &str = "\
Show the journal: the steps that were begun and are not settled. What is in it while
nothing goes on was left by a crash; the agent replays it when it starts, and tries
again what failed.

Usage: bargee journal ls
       bargee journal show SEQ [-o json]
       bargee journal replay [SEQ]
       bargee journal drop SEQ [--yes]

  ls                list the entries
  show              show everything about an entry, as YAML
  replay            replay an entry now, or all that failed
  drop              forget an entry: nothing is done for it. Says what will be left
                    undone and asks first
  -y, --yes         drop without asking; needed where there is no terminal
";

const ADOPT: &str = "\
Take over containers that were made from another store, after the agent's store was
lost: those of one workload, or of all that wait for it (storeMissing), whatever
they were made from. One that differs from its manifest is then updated to it.

Usage: bargee adopt NAME|--all
";

const CONFIRM: &str = "\
Say that what the agent holds back because it looks wrong is as it should be, and
have it carried out. `bargee status` says what is held and why:
  manifestsHeld   a manifests directory that is missing, unreadable, on another file
                  system than before, or suddenly empty; workloads whose files are
                  gone are then removed
  engineReplaced  an engine that has none of the containers that were made, as when
                  its disk is not mounted; workloads are then made anew, with empty
                  named volumes

Usage: bargee confirm
";

const QUIESCE: &str = "\
Hold reconciling, as for a change of the engine: nothing is created, started,
stopped, signalled, removed or pulled. What runs goes on, what happens is seen and
shown, and what is asked for is kept and answered: a command that would wait says
so and exits with 5. Only `kill` is refused. It ends by `bargee resume`, by itself,
or when the device starts again; then all is compared, and what waited is carried
out. An agent that is started anew goes on holding. Asked for again, the new time
counts.

Usage: bargee quiesce [--for TIME]

  --for TIME        so long, 24h at most (default: 15m)
";

const RESUME: &str = "\
Go on reconciling after `bargee quiesce`, beginning with a full compare.

Usage: bargee resume
";

const VERSION: &str = "\
Show the version of this command, and that of the agent if it answers.

Usage: bargee version
";

const CONFIG: &str = "\
Check the configuration as the agent would read it here, or show it settled.

Usage: bargee config check [--config FILE]
       bargee config show [--config FILE]
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_listed_and_has_its_help() {
        for (name, topic) in COMMANDS {
            assert_eq!(topic.command(), name);
            assert!(OVERVIEW.contains(&format!("\n  {name} ")), "{name}");
            let usage = format!("Usage: bargee {name}");
            assert!(topic == Topic::Help || topic.text().contains(&usage), "{name}");
        }
        assert_eq!(Topic::Overview.command(), "");
    }

    #[test]
    fn events_says_how_many_are_kept() {
        assert!(EVENTS.contains(&format!("last {}", crate::limits::TRANSITIONS_KEPT)));
    }

    #[test]
    fn quiesce_says_for_how_long() {
        let words = |ms| crate::domain::time::Span(ms).words();
        let usual = words(crate::limits::QUIESCE_MS);
        let most = words(crate::limits::QUIESCE_MAX_MS);
        assert!(QUIESCE.contains(&format!("{most} at most (default: {usual})")));
    }

    #[test]
    fn help_fits_a_narrow_terminal() {
        for (name, topic) in COMMANDS {
            for line in topic.text().lines() {
                assert!(line.chars().count() <= 84, "{name}: {line}");
            }
        }
    }
}
