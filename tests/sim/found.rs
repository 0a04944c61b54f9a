//! Worlds in which the simulation found something wrong with the machine, as small as they could be
//! made.

use super::acts::Act::*;
use super::acts::Hand::*;
use super::acts::Image::*;
use super::acts::Personality::*;
use super::acts::Policy::*;
use super::acts::Pull::*;
use super::acts::Verb::*;
use super::acts::Way::*;
use super::acts::Writing::*;
use super::acts::{Act, Failing, File, PLAIN, Personality, Script, Wish, Word};
use super::run;
use bargee::domain::fault::FaultKind;

fn check(seed: u64, engine: Personality, acts: Vec<(u64, Act)>) {
    check_script(&Script { seed, engine, pace_ms: 2, acts });
}

fn check_script(script: &Script) {
    let outcome = run::run(script, None, true);
    if let Some(violation) = outcome.violation {
        panic!("{}\n{violation}", outcome.trace.join("\n"));
    }
}

/// What an engine has taken to be seen running belongs to this boot, also when the store could not
/// write that it was asked for: its exits counted as those of the boot before.
#[test]
fn exits_count_after_a_reboot_that_no_row_tells_of() {
    check(
        1,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 1, ..PLAIN }], false, false)),
            (1_000, StoreFails(Failing::Everything)),
            (0, PowerCut(true, 10, 0)),
            (5_861, Stop(3_000)),
        ],
    );
}

/// The same, where a hand started it.
#[test]
fn exits_count_of_what_a_hand_started_after_a_reboot() {
    check(
        1,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 3, hasty: true, ..PLAIN }], false, false)),
            (442_649, PowerCut(false, 60_000, 20)),
            (20, Hand(Twins, 7)),
        ],
    );
}

/// A container that ended with its boot and is gone since was interrupted: under `never` it counted
/// as lost.
#[test]
fn what_vanished_with_its_boot_runs_again() {
    check(
        1,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 0, policy: Never, ..PLAIN }], false, false)),
            (1_000, PowerCut(true, 3_000, 0)),
            (0, Hand(Removes, 4)),
        ],
    );
}

/// A create that was given up kept its entry of the journal for ever, once the name was not tried
/// any more.
#[test]
fn a_given_up_name_is_settled() {
    check(
        1_915,
        Docker,
        vec![
            (0, Mishap(Word::Create, 0, Hangs)),
            (10, Apply(vec![Wish { key: 1, image: Refused, ..PLAIN }], false, false)),
            (22, Stuck(5)),
        ],
    );
}

/// A restart of what is not there never said that it had stopped it.
#[test]
fn a_restart_of_nothing_ends() {
    check(
        1,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 1, image: Refused, ..PLAIN }], false, false)),
            (10, Verb(1, Restart)),
        ],
    );
}

/// The task of a stop outlived `apply --start`.
#[test]
fn a_start_by_apply_supersedes_a_stop() {
    check(
        1,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 2, ..PLAIN }], false, false)),
            (1_000, Verb(2, StopIt)),
            (0, Apply(vec![Wish { key: 2, label: 1, ..PLAIN }], false, true)),
        ],
    );
}

/// A name that was only reserved stood in the way of adopting what runs.
#[test]
fn what_runs_is_not_given_up_for_a_reserved_name() {
    check(
        213,
        Docker,
        vec![
            (0, StoreFails(Failing::Rows)),
            (0, Apply(vec![Wish { key: 0, image: Refused, ..PLAIN }], false, false)),
            (1_000, Apply(vec![Wish { key: 0, pull: EachTime, ..PLAIN }], false, true)),
            (11_532, Stop(60_000)),
            (36_860, ShortLists(1)),
        ],
    );
}

/// A stop that was recorded and never sent made an interruption of any later exit.
#[test]
fn a_stop_that_was_never_sent_is_forgotten() {
    check(
        2_109,
        Docker,
        vec![
            (0, StoreFails(Failing::Rows)),
            (0, Apply(vec![Wish { key: 2, version: 1, ..PLAIN }], false, true)),
            (16_290, Confirm),
            (0, Apply(vec![Wish { key: 2, image: Slow, ..PLAIN }], false, true)),
            (13_672, Apply(vec![Wish { key: 2, version: 1, ..PLAIN }], false, false)),
        ],
    );
}

/// A name under which nothing of ours was ever seen was removed without another look.
#[test]
fn a_name_that_somebody_took_is_looked_at() {
    check(
        1_815,
        LiveRestore,
        vec![
            (10, Apply(vec![Wish { key: 1, image: Ghost, hasty: true, ..PLAIN }], false, false)),
            (0, Mishap(Word::Create, 1, NotDone(FaultKind::Timeout))),
            (10, Hand(Squats, 3)),
            (6_628, Stall(22_213)),
            (0, Apply(vec![Wish { key: 1, ..PLAIN }], false, false)),
        ],
    );
}

/// What is refused was told to wait for a path that was there by then.
#[test]
fn what_is_refused_waits_for_no_path() {
    check(
        1,
        Docker,
        vec![
            (0, Mishap(Word::Begin, 0, NotDone(FaultKind::HostPath))),
            (0, Apply(vec![Wish { key: 0, image: Inert, ..PLAIN }], false, false)),
            (10_000, Confirm),
        ],
    );
}

/// What was asked for after the event stream had ended, and before the engine was listed again, was
/// never looked at.
#[test]
fn what_is_asked_for_while_the_stream_is_down_is_done() {
    let acts = vec![
        (1_000, StreamEnds),
        (10, Apply(vec![Wish { key: 0, ..PLAIN }], false, false)),
        (0, StreamEnds),
    ];
    check_script(&Script { seed: 595, engine: Docker, pace_ms: 1_000, acts });
}

/// A removal that was asked for again while the row was on its way out of the store never ended.
#[test]
fn a_removal_that_comes_too_late_ends() {
    check(
        5_000_619,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 3, image: Refused, ..PLAIN }], false, true)),
            (0, Stall(5_126)),
            (17, Apply(vec![Wish { key: 1, ..PLAIN }], false, false)),
            (0, Verb(3, Remove)),
            (0, Apply(vec![Wish { key: 1, disk: true, ..PLAIN }], false, false)),
            (0, Verb(3, Remove)),
        ],
    );
}

/// A longer quiesce, asked for while a shorter one was being written, was taken out of the store by
/// the end of that one: the next agent did not hold.
#[test]
fn a_quiesce_outlives_the_end_of_a_shorter_one() {
    check(
        10_000_577,
        Docker,
        vec![
            (0, Stall(39_637)),
            (2_447, Quiesce(3_950)),
            (0, Quiesce(56_732)),
            (34_495, Commit(0, Unknown)),
            (7_535, NoDirectory),
            (0, Drain(10)),
            (10, Mishap(Word::Signal, 0, Later(FaultKind::Timeout, 28))),
            (0, Apply(vec![Wish { key: 1, ..PLAIN }], false, true)),
        ],
    );
}

/// What is left alone as stuck runs once more after a reboot; where that start failed, it was shown
/// to be tried again, and never was.
#[test]
fn the_one_more_run_after_a_reboot_is_tried_again() {
    let doomed = Wish { key: 0, image: Crash, hold: true, hasty: true, ..PLAIN };
    check(
        1,
        Docker,
        vec![
            (10, Apply(vec![doomed], false, false)),
            (60_000, PowerCut(false, 3_000, 5_000)),
            (0, Mishap(Word::Begin, 0, NotDone(FaultKind::Trouble))),
            (8_838, Replay),
        ],
    );
}

/// What had ended with 0 and was running again counted as done after a reboot, once it was declared
/// not to be restarted: that it ended with the device was its failure.
#[test]
fn what_runs_again_was_not_done_when_the_device_went_down() {
    check(
        9_000_118,
        Docker,
        vec![
            (0, Apply(vec![Wish { key: 0, ..PLAIN }], false, false)),
            (28_720, Exit(5, 0)),
            (23_863, Apply(vec![Wish { key: 0, policy: Never, ..PLAIN }], false, false)),
            (0, PowerCut(true, 60_000, 5_000)),
        ],
    );
}

/// Two containers of a workload that no row told of ran, one of them by hand; the event of that one
/// came while the first listing was under way, which was then not believed, and a third was started
/// beside them.
#[test]
fn what_no_row_and_no_listing_told_of_is_looked_for_once_more() {
    let brief = Wish { key: 6, image: Brief, version: 2, hasty: true, schedule: 2, ..PLAIN };
    let stubborn = Wish { key: 1, image: Stubborn, version: 1, ..PLAIN };
    let slow = Wish { key: 3, image: Slow, pull: EachTime, ..PLAIN };
    let acts = vec![
        (10, Apply(vec![Wish { key: 1, ..PLAIN }], false, true)),
        (0, Apply(vec![stubborn], false, false)),
        (0, ShortLists(1)),
        (1_000, Files(vec![])),
        (0, StoreFails(Failing::Rows)),
        (1_000, Stop(10)),
        (711, Files(vec![(0, File::Holds(vec![brief])), (1, File::Settling)])),
        (1_000, Apply(vec![slow], false, true)),
        (708_533, Stuck(1)),
        (15_107, Commit(0, Unknown)),
        (0, Stop(10)),
        (212, Hand(Twins, 7)),
    ];
    check_script(&Script { seed: 2_002_303, engine: LiveRestore, pace_ms: 1_000, acts });
}
