//! Engines that are broken on purpose, and the case that finds each. An engine in memory that is
//! not broken passes all of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cases::{life, made, network, streams};
use crate::support::scripted_engine::{Bend, Flaw, Route, ScriptedEngine};
use crate::tested::{Tested, bent};

/// Fails unless `case` fails on an engine that is bent like this.
fn is_found(case: impl Fn(&Tested), bend: impl Fn(&ScriptedEngine)) {
    let tested = bent(bend);
    let passed = catch_unwind(AssertUnwindSafe(|| case(&tested))).is_ok();
    assert!(!passed, "the case passes on a broken engine");
}

macro_rules! is_found {
    ($($name:ident: $room:ident::$case:ident, $bend:expr;)*) => {
        $(
            #[test]
            fn $name() {
                is_found($room::$case, $bend);
            }
        )*
    };
}

is_found! {
    a_wrong_404: life::a_started_container_is_read_back,
        |engine| engine.bend(Route::Inspect, Bend::Status(404));
    a_404_of_a_signal: life::a_signal_reaches_the_process,
        |engine| engine.bend(Route::Kill, Bend::Status(404));
    a_lost_start_event: streams::events_come_in_order, |engine| engine.lose_events("start");
    a_lost_exit_event: life::an_exit_code_is_read_back, |engine| engine.lose_events("die");
    a_lost_removal_event: streams::events_come_in_order, |engine| engine.lose_events("destroy");
    a_lost_memory_event: life::memory_that_ran_out_is_told, |engine| engine.lose_events("oom");
    a_start_that_is_answered_early: life::a_started_container_is_read_back,
        |engine| engine.break_by(Flaw::EarlyStart);
    a_listing_that_leaves_one_out: life::what_was_created_is_listed,
        |engine| engine.break_by(Flaw::ShortListing);
    a_removal_that_is_not_done: life::removal_is_final_and_may_be_repeated,
        |engine| engine.break_by(Flaw::UndoneRemoval);
    a_signal_that_is_not_sent: life::a_signal_reaches_the_process,
        |engine| engine.break_by(Flaw::UndoneSignal);
    a_taken_name_that_is_given: life::a_taken_name_is_told,
        |engine| engine.break_by(Flaw::SharedName);
    a_wrong_exit_code: life::an_exit_code_is_read_back,
        |engine| engine.break_by(Flaw::LostExitCode);
    a_start_time_that_stays: life::a_container_starts_again_in_place,
        |engine| engine.break_by(Flaw::OldStartTime);
    memory_that_ran_out_untold: life::memory_that_ran_out_is_told,
        |engine| engine.break_by(Flaw::UntoldMemory);
    a_host_path_that_is_made_up: made::a_missing_host_path_is_not_made_up,
        |engine| engine.break_by(Flaw::MadeUpPath);
    a_volume_that_goes: made::named_volumes_outlive_their_containers,
        |engine| engine.break_by(Flaw::LostVolume);
    a_network_that_goes: network::a_network_in_use_is_left,
        |engine| engine.break_by(Flaw::RemovedNetwork);
    aliases_that_are_forgotten: network::a_network_that_was_removed_is_made_again_at_the_start,
        |engine| engine.break_by(Flaw::LostAliases);
    a_port_that_is_not_told: network::a_published_port_is_told,
        |engine| engine.break_by(Flaw::UntoldPort);
    a_log_without_its_end: streams::both_outputs_are_in_the_log,
        |engine| engine.break_by(Flaw::ShortLog);
    a_pull_that_brings_nothing: streams::a_pull_brings_the_image_and_tells_how_far_it_is,
        |engine| engine.bend(Route::Image, Bend::Status(404));
}
