//! Every bound and period in one place, with compile-time checks between them.
//!
//! Names end in their unit: `_MS` milliseconds, `_BYTES` bytes; what has no unit is a count.

// --- reconciling -------------------------------------------------------------------------------

/// Every workload is held against one listing of the engine this often.
pub const FULL_COMPARE_MS: u64 = 60_000;
/// While the event stream is down or in doubt, and while the engine is away, it is looked at this
/// often.
pub const ENGINE_LOOK_MS: u64 = 5_000;
/// A start of our own must show on the event stream within this time, else the stream is in doubt.
pub const START_EVENT_MS: u64 = 5_000;
/// Continuous RUNNING after which errors, the crash streak and the backoff are forgotten.
pub const STABLE_MS: u64 = 30_000;
/// Waits before a failed update is tried again, by the number of tries; the last one for ever.
pub const UPDATE_WAITS_MS: [u64; 5] = [300_000, 600_000, 1_200_000, 2_400_000, 3_600_000];
/// First delay of the restart backoff when the manifest names none.
pub const RESTART_DELAY_MS: u64 = 10_000;
/// Longest delay of the restart backoff when the manifest names none.
pub const RESTART_MAX_DELAY_MS: u64 = 300_000;
/// Restarts within `STUCK_MS` from which on a workload counts as STUCK_IN_RESTART.
pub const STUCK_RESTARTS: usize = 10;
/// The time that the diary of restarts looks back, and continuous RUNNING that ends
/// STUCK_IN_RESTART.
pub const STUCK_MS: u64 = 600_000;
/// Tries of something the engine refuses as wrong before it is left alone.
pub const REFUSALS: u32 = 5;
/// How often a missing mount source is looked for again.
pub const HOST_PATH_LOOK_MS: u64 = 5_000;
/// A container in a passing state (removing, stopping) is read again after this time.
pub const PASSING_STATE_LOOK_MS: u64 = 5_000;
/// A container that somebody else is removing for this long is replaced; what is left of it is
/// removed when the engine can.
pub const REMOVING_MS: u64 = 60_000;
/// After SIGKILL was sent and the container still runs, it is sent again after this time.
pub const KILL_AGAIN_MS: u64 = 10_000;
/// Reconciling is held this long when nobody says how long.
pub const QUIESCE_MS: u64 = 900_000;
/// And this long at most: one that is forgotten must end.
pub const QUIESCE_MAX_MS: u64 = 24 * 3_600_000;
/// A drain takes this long in all before what still lives is killed.
pub const DRAIN_MS: u64 = 180_000;
/// And this long after it, to see the end of what was killed.
pub const DRAIN_KILL_MS: u64 = 5_000;
/// A drain gives up when it could neither record nor send a stop for this long.
pub const DRAIN_BLOCKED_MS: u64 = 10_000;
/// An exit this long before the agent is told to stop is taken for a part of a shutdown.
pub const SHUTDOWN_EXIT_MS: u64 = 5_000;
/// A start that waits this long for the store goes without: a crash restart on a flash that stalls.
pub const START_GATE_MS: u64 = 2_000;

/// A wall clock that differs by this much from what passed on the boot clock was set.
pub const CLOCK_SET_MS: u64 = 30_000;
/// An engine that has none of the containers may be followed by the one that has them within this
/// time: a disk that is mounted late.
pub const ENGINE_REPLACED_MS: u64 = 300_000;
/// Containers that must be missing, and all of them, so that an engine that calls itself as before
/// counts as another one; a single one may have been removed by hand.
pub const ENGINE_REPLACED_CONTAINERS: usize = 2;

/// `schedule` of a workload when the manifest names none.
pub const SCHEDULE: u32 = 100;
/// Largest `schedule` that a manifest may name.
pub const SCHEDULE_MAX: u32 = 1_000_000;
/// Calls to start a container that are in flight at once, apart from all other calls.
pub const STARTS: usize = 4;

/// Time between two probes of a health check that names none, as in Docker.
pub const HEALTH_INTERVAL_MS: u64 = 30_000;
/// Longest probe of a health check that names none.
pub const HEALTH_TIMEOUT_MS: u64 = 30_000;
/// Failed probes in a row that make unhealthy when a health check names no number.
pub const HEALTH_RETRIES: u32 = 3;
/// How much is kept of what a failed probe said.
pub const HEALTH_WORDS_BYTES: usize = 256;

/// Size of one log file of a container when the manifest names none.
pub const LOG_FILE_BYTES: u64 = 10 << 20;
/// Log files kept of a container when the manifest names no number.
pub const LOG_FILES_KEPT: u32 = 3;
/// Time between SIGTERM and the default SIGKILL when the manifest names none.
pub const STOP_GRACE_MS: u64 = 10_000;

// --- the journal -------------------------------------------------------------------------------

/// Replay of one entry before it counts as failed.
pub const REPLAY_ENTRY_MS: u64 = 32_000;
/// Replay of all entries before changes are accepted all the same.
pub const REPLAY_MS: u64 = 60_000;
/// After a create that was cut off, its name is looked up once more after this time.
pub const LATE_CREATE_MS: u64 = 20_000;
/// Steps in flight for instances that belong to no workload.
pub const LOOSE_STEPS: usize = 2;
/// A container of this store that no record knows is removed after this time.
pub const ORPHAN_MS: u64 = 2 * FULL_COMPARE_MS;

// --- store -------------------------------------------------------------------------------------

/// Counters and observations are written at most this often; declarations at once.
pub const ROW_WRITE_MS: u64 = 5_000;
/// Page cache of SQLite in KiB; more costs memory and gains no speed at this size.
pub const STORE_CACHE_KIB: i64 = 256;
/// Pages in the write-ahead log after which it is copied into the database.
pub const STORE_CHECKPOINT_PAGES: i64 = 200;
/// The write-ahead log is cut back to this size after a checkpoint.
pub const STORE_LOG_BYTES: i64 = 1 << 20;
/// How long SQLite waits for somebody who looks into the database beside the agent.
pub const STORE_BUSY_MS: u64 = 5_000;
/// Size of a `workloads.json` that is read; each of the most workloads may have 16 KiB.
pub const STORE_MIRROR_BYTES: u64 = (WORKLOADS as u64) * (16 << 10);
/// Damaged files kept of each kind, the newest ones.
pub const DAMAGED_FILES_KEPT: usize = 5;
/// Damaged rows kept, the newest ones.
pub const DAMAGED_ROWS_KEPT: usize = 1_000;
/// Size of the file that is given up when the disk is full, so that intents can still be written.
pub const STORE_RESERVE_BYTES: u64 = 1 << 20;
/// After the reserve was given up, it is tried at most this often to make it anew.
pub const STORE_RESERVE_LOOK_MS: u64 = 60_000;
/// Numbers of journal entries that `workloads.json` is ahead of those in use when it is written.
pub const SEQ_BLOCK: u64 = 1_000;
/// How much of an entry that cannot be read is shown; the store keeps all of it.
pub const ENTRY_TEXT_BYTES: usize = 4 << 10;

// --- asks, tasks and streams -------------------------------------------------------------------

/// Accepted verbs that are not settled yet; one more is answered 429.
pub const TASK_QUEUE: usize = 100;
/// Settled tasks that can still be asked for.
pub const TASKS_KEPT: usize = 200;
/// Declarations that wait for the store; one more is answered 429.
pub const ASK_QUEUE: usize = 100;
/// Transitions kept for `GET /v1/events`.
pub const TRANSITIONS_KEPT: usize = 1_024;
/// Longest a request waits for the monitor and the store before it is answered 504.
pub const ASK_MS: u64 = 30_000;
/// Log and event streams open at once.
pub const STREAMS: usize = 16;
/// Size of a request body.
pub const BODY_BYTES: usize = 1 << 20;
/// A body that is too large is read away up to this size, so that its sender gets the refusal.
pub const BODY_DRAIN_BYTES: usize = 16 << 20;
/// Threads that answer requests.
pub const API_THREADS: usize = 4;
/// An event stream without events carries a sign of life this often, which finds clients that left.
pub const EVENT_HEARTBEAT_MS: u64 = 15_000;
/// One piece of a log on its way to a client.
pub const LOG_CHUNK_BYTES: usize = 8 << 10;
/// What a client is told to wait when too much is under way.
pub const RETRY_AFTER_S: u64 = 1;
/// Open requests and streams get this long to end when the agent stops.
pub const API_STOP_MS: u64 = 1_000;

// --- command line ------------------------------------------------------------------------------

/// Connecting to the agent's socket.
pub const CLI_CONNECT_MS: u64 = 5_000;
/// The whole answer of the agent to one request.
pub const CLI_ANSWER_MS: u64 = 60_000;
/// A command waits this long in all for an agent that replays its journal: as long as that holds
/// up changes.
pub const CLI_RECOVERING_MS: u64 = 60_000;
/// And asks again this often, which is what the agent tells it with `Retry-After`.
pub const CLI_RECOVERING_POLL_MS: u64 = RETRY_AFTER_S * 1_000;
/// What is read of an answer to a question on the terminal.
pub const CLI_REPLY_BYTES: u64 = 1 << 10;
/// An answer of the agent that is read whole.
pub const CLI_ANSWER_BYTES: u64 = 64 << 20;
/// `deploy --wait` looks this often.
pub const DEPLOY_POLL_MS: u64 = 400;
/// `deploy --wait` without a time of its own gives up after this time.
pub const DEPLOY_WAIT_MS: u64 = 60_000;
/// Running this long counts as deployed.
pub const DEPLOY_SETTLED_MS: u64 = 5_000;
/// A verb first looks after its task after this time, then after twice the time, and so on.
pub const TASK_POLL_FIRST_MS: u64 = 20;
/// Longest time between two looks after a task.
pub const TASK_POLL_MS: u64 = 300;
/// A command that waits for a task tells after this long what the task is waiting for.
pub const TASK_TELL_MS: u64 = 5_000;
/// A verb waits this long for its task.
pub const TASK_WAIT_MS: u64 = 120_000;

// --- manifests ---------------------------------------------------------------------------------

/// Nesting of a manifest.
pub const MANIFEST_DEPTH: usize = 32;
/// YAML nodes in one file, aliases counted each time they are used.
pub const MANIFEST_NODES: usize = 50_000;
/// Characters of one file that YAML may take for a token of their own. A document in braces is cut
/// into tokens as a whole before its first node is known, so the nodes alone do not bound memory.
/// A file within `MANIFEST_NODES` needs at most two for each node; the rest is for quoted text.
pub const MANIFEST_INDICATORS: usize = 4 * MANIFEST_NODES;
/// Errors reported of one apply; the rest is counted.
pub const MANIFEST_ERRORS: usize = 20;
/// Length of an environment name, a label key or a volume name in a manifest.
pub const MANIFEST_NAME_BYTES: usize = 128;
/// Longest duration that a manifest may name.
pub const MANIFEST_SPAN_MS: u64 = 24 * 3_600_000;
/// Shortest `restart.delay`: a delay of nothing is a busy loop.
pub const RESTART_DELAY_MIN_MS: u64 = 100;
/// Shortest interval and timeout of a health check: each probe is a process.
pub const HEALTH_SPAN_MIN_MS: u64 = 100;
/// Most failed probes that a health check may allow.
pub const HEALTH_RETRIES_MAX: u32 = 100;
/// Log files kept of one workload.
pub const LOG_FILES: u32 = 100;
/// Size of a manifest in the store. It was within the bounds above before its defaults were filled
/// in and its text was escaped, which is at most six bytes for one.
pub const STORED_MANIFEST_BYTES: usize = 8 * BODY_BYTES;
/// Files in the manifests directory.
pub const MANIFEST_FILES: usize = 10_000;
/// A file in the manifests directory that did not change for this long has settled.
pub const MANIFEST_SETTLE_MS: u64 = 1_000;
/// A file that was written and not closed has settled after this time all the same: what writes
/// without opening is not seen to close.
pub const MANIFEST_WRITING_MS: u64 = 300_000;
/// The manifests directory is looked at this often, whether or not it was seen to change, where the
/// kernel does not tell all changes: on a file system of the network, or without watches.
pub const MANIFEST_LOOK_MS: u64 = 10_000;
/// The same where it does: somebody may still have moved a folder on the way to it.
pub const MANIFEST_CALM_LOOK_MS: u64 = 60_000;
/// Files of the manifests directory that a condition of the status names.
pub const MANIFEST_FILES_TOLD: usize = 10;
/// Workloads, or files that are ignored, that a line or a list of the status names.
pub const MANIFEST_NAMES_TOLD: usize = 20;
/// Reads of the kernel's queue of changes before the manifests directory is looked at.
pub const MANIFEST_CHANGE_READS: usize = 64;
/// Workloads on one device.
pub const WORKLOADS: usize = 10_000;

// --- engine ------------------------------------------------------------------------------------

/// Connecting to the engine's socket.
pub const ENGINE_CONNECT_MS: u64 = 5_000;
/// Ping, list, inspect: calls that only read. Signals, too.
pub const ENGINE_READ_MS: u64 = 15_000;
/// Create, start, remove: calls that may wait for a slow disk.
pub const ENGINE_WRITE_MS: u64 = 120_000;
/// A pull in which nothing moves for this long gives up its place, and is tried again later.
pub const PULL_STALL_MS: u64 = 60_000;
/// The same as a call, if that did not end it.
pub const ENGINE_PULL_MS: u64 = 2 * PULL_STALL_MS;
/// Progress of a pull is told at most this often.
pub const PULL_PROGRESS_MS: u64 = 500;
/// Size of a reply that is read whole (a list of a thousand containers is about 1.5 MB).
pub const ENGINE_REPLY_BYTES: u64 = 64 << 20;
/// Length of one line of an engine stream.
pub const ENGINE_LINE_BYTES: usize = 1 << 20;
/// How much is kept of what an engine says about a failure.
pub const ENGINE_WORDS_BYTES: usize = 2 << 10;
/// Layers of one image whose progress is followed.
pub const PULL_LAYERS: usize = 1_024;

// --- HTTP over a Unix socket -------------------------------------------------------------------

/// Input and output buffer of one connection, each; also the longest head of an answer.
pub const UNIX_HTTP_BUFFER_BYTES: usize = 16 << 10;
/// Idle connections that are kept for the next request: one for each worker and each start.
pub const UNIX_HTTP_IDLE: usize = WORKERS + STARTS;

/// Path of a Unix socket: what the kernel takes, less the final NUL.
pub const SOCKET_PATH_BYTES: usize = 107;
/// Length of the name of a device.
pub const NODE_BYTES: usize = 128;

// --- threads -----------------------------------------------------------------------------------

/// Stack of a thread, library threads included. The deepest is JSON of 128 levels. A default of
/// 2 MiB for each of twenty is address space that strict overcommit counts. Frames of a build that
/// is not optimised are several times as large.
pub const THREAD_STACK_BYTES: usize = if cfg!(debug_assertions) { 1 << 20 } else { 256 << 10 };
/// Workers that carry out steps, when the config names no other number.
pub const WORKERS: usize = 4;
/// Workers that signals and removals leave to everything else: such a call may hang for as long as
/// the process that it should end.
pub const WORKERS_SPARED: usize = 1;
/// Workers that a config may ask for.
pub const WORKERS_MAX: usize = 32;
/// Pulls at a time.
pub const PULLERS: usize = 2;
/// Of these, pulls from one registry: one that hangs leaves a place for the others.
pub const PULLS_OF_REGISTRY: usize = PULLERS - 1;
/// Open files the agent asks the system for.
pub const OPEN_FILES: u64 = 65_536;
/// Events waiting for the monitor.
pub const INBOX: usize = 4_096;
/// Mails the monitor takes in before it hands out what they led to.
pub const TURN_MAILS: usize = 256;
/// A turn of the monitor that took this long is logged.
pub const TURN_WARN_MS: u64 = 100;
/// At a stop, steps in flight may take this long to end.
pub const FINISH_MS: u64 = 2_000;
/// The whole stop of the agent, workloads left running.
pub const STOP_MS: u64 = 4_000;
/// CPU and memory of running workloads are read this often.
pub const STATS_MS: u64 = 10_000;
/// Samples from one look at the processes of all running workloads to the next; one that is not
/// found is looked for again with the next sample.
pub const CENSUS_SAMPLES: u64 = FULL_COMPARE_MS / STATS_MS;
/// Workloads whose two cgroup files stay open between samples; those of the rest are opened each
/// time, so that a thousand workloads do not use up the descriptors.
pub const STATS_KEPT_OPEN: usize = 256;

// --- the agent's own log -----------------------------------------------------------------------

/// Size of the log file when the config names none; one older file of this size is kept beside it.
pub const AGENT_LOG_BYTES: u64 = 1 << 20;
/// Smallest size of the log file that a config may name.
pub const AGENT_LOG_MIN_BYTES: u64 = 16 << 10;
/// Largest size of the log file that a config may name.
pub const AGENT_LOG_MAX_BYTES: u64 = 1 << 30;
/// One line of the log; the rest of a longer one is cut off.
pub const AGENT_LOG_LINE_BYTES: usize = 8 << 10;
/// Lines that wait for the thread that writes them; more are dropped and counted.
pub const AGENT_LOG_QUEUE: usize = 256;
/// After a line was written, the same one is counted rather than written for this time.
pub const AGENT_LOG_REPEAT_MS: u64 = 3_600_000;
/// How often the same warning or error is written in that time, with others in between.
pub const AGENT_LOG_SAME_TROUBLES: u32 = 3;
/// How often the same line of information is written in that time.
pub const AGENT_LOG_SAME_NEWS: u32 = 12;
/// Lines that repeats are known of.
pub const AGENT_LOG_LINES_KNOWN: usize = 32;
/// At a stop, lines that wait get this long to be written.
pub const AGENT_LOG_STOP_MS: u64 = 500;
/// Largest `log.reconcileEvery`.
pub const RECONCILE_EVERY_MAX: u64 = 1_000_000;

const _: () = assert!(RESTART_DELAY_MS <= RESTART_MAX_DELAY_MS);
const _: () = assert!(QUIESCE_MS <= QUIESCE_MAX_MS);
const _: () = assert!(DRAIN_BLOCKED_MS > ENGINE_LOOK_MS && DRAIN_BLOCKED_MS < DRAIN_MS);
const _: () = assert!(RESTART_DELAY_MIN_MS <= RESTART_DELAY_MS);
// A process that ends at once is never stuck with the defaults: 10, 20, 40, 80, 160, 300 s.
const _: () = assert!(RESTART_DELAY_MS * 31 + RESTART_MAX_DELAY_MS > STUCK_MS);
const _: () = assert!(STABLE_MS < STUCK_MS);
const _: () =
    assert!(RESTART_MAX_DELAY_MS <= MANIFEST_SPAN_MS && STOP_GRACE_MS <= MANIFEST_SPAN_MS);
const _: () = assert!(HEALTH_INTERVAL_MS >= HEALTH_SPAN_MIN_MS);
const _: () = assert!(HEALTH_RETRIES <= HEALTH_RETRIES_MAX);
const _: () = assert!(HEALTH_WORDS_BYTES <= ENGINE_WORDS_BYTES);
const _: () = assert!(STORED_MANIFEST_BYTES > 7 * BODY_BYTES);
// YAML finds no key that is longer than 1,024 characters, and a name may double when escaped.
const _: () = assert!(MANIFEST_NAME_BYTES * 2 < 1_024);
// A log that is copied in time fits into the space that the reserve gives up: 24 bytes a page.
const _: () = assert!(STORE_CHECKPOINT_PAGES as u64 * (4_096 + 24) < STORE_RESERVE_BYTES);
const _: () = assert!(WORKERS > WORKERS_SPARED && WORKERS <= WORKERS_MAX);
const _: () = assert!(PULLS_OF_REGISTRY >= 1);
const _: () = assert!(PULL_PROGRESS_MS < PULL_STALL_MS);
const _: () = assert!(ENGINE_LOOK_MS < FULL_COMPARE_MS);
const _: () = assert!(ENGINE_CONNECT_MS < ENGINE_READ_MS && ENGINE_READ_MS < ENGINE_WRITE_MS);
const _: () = assert!(INBOX > TASK_QUEUE + ASK_QUEUE + API_THREADS + STREAMS);
const _: () = assert!(API_STOP_MS + FINISH_MS < STOP_MS);
const _: () = assert!(BODY_BYTES < BODY_DRAIN_BYTES);
const _: () = assert!(MANIFEST_SETTLE_MS < MANIFEST_LOOK_MS);
const _: () = assert!(MANIFEST_LOOK_MS < MANIFEST_CALM_LOOK_MS);
const _: () = assert!(MANIFEST_CALM_LOOK_MS < MANIFEST_WRITING_MS);
const _: () = assert!(CLI_ANSWER_MS > ASK_MS, "the agent's own 504 comes before the client's");
const _: () = assert!(DEPLOY_SETTLED_MS < DEPLOY_WAIT_MS && DEPLOY_POLL_MS < DEPLOY_SETTLED_MS);
const _: () = assert!(TASK_POLL_FIRST_MS < TASK_POLL_MS && TASK_POLL_MS < TASK_WAIT_MS);
const _: () = assert!(AGENT_LOG_LINE_BYTES as u64 <= AGENT_LOG_MIN_BYTES);
const _: () =
    assert!(AGENT_LOG_MIN_BYTES <= AGENT_LOG_BYTES && AGENT_LOG_BYTES <= AGENT_LOG_MAX_BYTES);
const _: () = assert!(STOP_MS + AGENT_LOG_STOP_MS < 5_000, "the agent promises to stop within 5 s");
