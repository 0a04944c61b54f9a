//! The engine contract against real engines. The same cases run on every engine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod kit;
#[path = "../support/mod.rs"]
mod support;

macro_rules! on_docker {
    ($($room:ident::$case:ident),* $(,)?) => {
        mod docker {
            $(
                #[test]
                fn $case() {
                    super::cases::$room::$case(&super::docker());
                }
            )*
        }
    };
}

/// A client of its own for each case, because a client has one event stream.
fn docker() -> bargee::engine::Engine {
    let url = support::engine::shared().url();
    bargee::engine::Engine::Docker(bargee::engine::docker::Docker::new(&url).unwrap())
}

on_docker! {
    life::ping_names_the_engine,
    life::the_engine_calls_itself_the_same_each_time,
    life::what_was_created_is_listed,
    life::containers_of_others_are_not_listed,
    life::a_started_container_is_read_back,
    life::an_exit_code_is_read_back,
    life::a_container_starts_again_in_place,
    life::a_signal_reaches_the_process,
    life::removal_is_final_and_may_be_repeated,
    life::a_taken_name_is_told,
    life::a_missing_image_is_told,
    life::a_command_that_is_not_there_is_refused,
    life::memory_that_ran_out_is_told,
    made::what_was_declared_is_what_runs,
    made::named_volumes_outlive_their_containers,
    made::a_missing_host_path_is_not_made_up,
    made::anonymous_volumes_go_with_their_container,
    network::names_resolve_on_the_network_of_an_application,
    network::a_published_port_is_told_and_answers,
    network::a_taken_port_is_trouble_that_time_heals,
    network::the_network_of_the_host_has_no_address,
    network::a_network_in_use_is_left,
    network::a_network_that_was_removed_is_made_again_at_the_start,
    streams::events_come_in_order,
    streams::closing_events_frees_their_reader,
    streams::both_outputs_are_in_the_log,
    streams::a_followed_log_comes_as_it_is_written_and_ends_with_the_container,
    streams::shutdown_frees_every_reader,
    streams::a_pull_brings_the_image_and_tells_how_far_it_is,
    streams::a_pull_that_cannot_be_is_told_by_kind,
}
