//! Which cases run on which engine.

/// Makes a test of each case, and a list of their names.
macro_rules! on {
    ($engine:ident: $($room:ident::$case:ident),* $(,)?) => {
        mod $engine {
            pub const CASES: &[&str] = &[$(stringify!($case)),*];
            $(
                #[test]
                fn $case() {
                    crate::cases::$room::$case(&crate::tested::$engine());
                }
            )*
        }
    };
}

on! { docker:
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
    health::a_good_verdict_is_told_and_read_back,
    health::a_bad_verdict_is_told_with_what_the_check_said,
    health::a_verdict_is_of_one_run,
    health::a_check_that_is_off_says_nothing,
    made::what_was_declared_is_what_runs,
    made::what_was_asked_for_is_kept,
    made::a_host_path_is_mounted,
    made::named_volumes_outlive_their_containers,
    made::a_missing_host_path_is_not_made_up,
    made::anonymous_volumes_go_with_their_container,
    network::names_resolve_on_the_network_of_an_application,
    network::names_resolve_on_a_network_that_was_made_again,
    network::a_published_port_is_told,
    network::a_published_port_answers,
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

on! { memory:
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
    health::a_good_verdict_is_told_and_read_back,
    health::a_check_that_is_off_says_nothing,
    made::what_was_declared_is_what_runs,
    made::what_was_asked_for_is_kept,
    made::named_volumes_outlive_their_containers,
    made::a_missing_host_path_is_not_made_up,
    network::a_published_port_is_told,
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

/// Cases that no engine in memory can pass, and what they need.
const NOT_IN_MEMORY: &[(&str, &str)] = &[
    ("a_bad_verdict_is_told_with_what_the_check_said", "a check that is carried out"),
    ("a_verdict_is_of_one_run", "time between two probes"),
    ("a_host_path_is_mounted", "a kernel that mounts; that it was asked for is in another case"),
    ("anonymous_volumes_go_with_their_container", "an image that is made from a container"),
    ("names_resolve_on_the_network_of_an_application", "two processes that talk; aliases are kept"),
    ("names_resolve_on_a_network_that_was_made_again", "the same; its aliases are kept, too"),
    ("a_published_port_answers", "a process that listens; that the port is told is another case"),
];

/// Text of the files with the cases.
const FILES: &[&str] = &[
    include_str!("cases/health.rs"),
    include_str!("cases/life.rs"),
    include_str!("cases/made.rs"),
    include_str!("cases/network.rs"),
    include_str!("cases/streams.rs"),
];

#[test]
fn every_case_runs_on_every_engine_or_says_why_not() {
    let begins = FILES.iter().flat_map(|text| text.split("\npub fn ").skip(1));
    let cases: Vec<&str> = begins.filter_map(|text| text.split('(').next()).collect();
    assert_eq!(cases.len(), docker::CASES.len(), "{cases:?}");
    for case in cases {
        assert!(docker::CASES.contains(&case), "{case} does not run on Docker");
        let is_out = NOT_IN_MEMORY.iter().any(|(name, why)| *name == case && !why.is_empty());
        assert_ne!(memory::CASES.contains(&case), is_out, "{case}");
    }
    for (name, _) in NOT_IN_MEMORY {
        assert!(docker::CASES.contains(name), "{name} is no case");
    }
}
