//! An engine that answers oddly about single containers.

use std::time::Duration;

use crate::support::device::{Device, service, workload};
use crate::support::scripted_engine::{Bend, IMAGE, PULLED_IMAGE, Route};
use crate::support::{pause, until};

#[test]
fn one_inspect_that_hangs_delays_only_its_own_workload() {
    let device = Device::running(&["stuck", "other"]);
    device.engine.bend_for(Route::Inspect, "bargee-stuck-", Bend::Hang);
    let stuck = device.container("stuck");
    device.engine.exit(&stuck.name, 1);
    until("the look to hang", || {
        let looks = device.engine.heard();
        looks.contains(&(Route::Inspect, stuck.id.clone())).then_some(())
    });
    // All of this goes on while the look waits for its timeout.
    device.deploy(&(service("new") + &service("more")));
    device.until_running(&["new", "more"]);
    let other = device.container("other");
    device.engine.exit(&other.name, 1);
    device.until_started_again("other", &other);
    assert_eq!(device.engine.container("bargee-stuck-").started, stuck.started);
    assert_eq!(device.not_ready(), None);

    device.engine.straighten();
    let again = device.until_started_again("stuck", &stuck);
    assert_eq!(again.id, stuck.id);
    assert_eq!(device.engine.containers().len(), 4);
}

#[test]
fn a_look_that_fails_is_not_absence() {
    for bend in [Bend::Half, Bend::Garbage, Bend::Status(500), Bend::Lost] {
        let device = Device::running(&["web"]);
        device.engine.forget_requests();
        device.engine.bend_next(Route::Inspect, 1, bend);
        let before = device.container("web");
        device.engine.exit(&before.name, 1);
        let again = device.until_started_again("web", &before);
        assert_eq!(again.id, before.id);
        assert_eq!(device.engine.count(Route::Create), 0);
        assert_eq!(device.until_state("web", "Running(Ok)").restart_count, 1);
    }
}

#[test]
fn a_listing_that_leaves_containers_out_is_not_believed() {
    let device = Device::running(&["a", "b"]);
    let before = device.fingerprint();
    let (a, b) = (device.container("a"), device.container("b"));
    // One entry without its labels, the other not there at all.
    let mut odd = a.listed();
    odd["Labels"] = serde_json::Value::Null;
    for list in [format!("[{odd}]"), "[]".to_owned(), "null".to_owned()] {
        device.engine.forget_requests();
        device.engine.bend(Route::List, Bend::Body(list));
        device.engine.end_connections();
        for made in [&a, &b] {
            until("each to be looked at", || {
                let heard = device.engine.heard();
                heard.contains(&(Route::Inspect, made.id.clone())).then_some(())
            });
        }
        device.engine.straighten();
        device.until_running(&["a", "b"]);
        device.until_ready();
        assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());
        assert_eq!(device.fingerprint(), before);
    }
    // Those that are really gone are made again.
    device.engine.take_away(&a.name);
    until("a to be made again", || {
        let made = device.engine.containers().into_iter();
        let mut a_again = made.filter(|made| made.name.starts_with("bargee-a-"));
        a_again.any(|made| made.id != a.id && made.pid != 0).then_some(())
    });
    assert_eq!(device.engine.containers().len(), 2);
}

#[test]
fn b16_an_unknown_state_is_shown_by_its_word_and_left_alone() {
    let device = Device::running(&["web", "db"]);
    let before = device.fingerprint();
    let web = device.container("web");
    device.engine.set_status(&web.name, "melting");
    device.engine.forget_requests();
    device.engine.end_connections();
    let shown = device.until_state("web", "Failed(Unknown)");
    assert!(shown.state_info.ends_with("does not manage: melting"), "{}", shown.state_info);
    pause(Duration::from_secs(6));
    assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());
    assert_eq!(device.fingerprint(), before);
    device.until_state("db", "Running(Ok)");
    device.engine.set_status(&web.name, "running");
    device.engine.end_connections();
    device.until_state("web", "Running(Ok)");
    assert_eq!(device.fingerprint(), before);
}

/// As an engine does that was upgraded: the same image has another id, and is listed by it.
#[test]
fn b116_image_ids_of_another_kind_replace_nothing() {
    let mut device = Device::running(&["web"]);
    let before = device.fingerprint();
    let web = device.container("web");
    let renamed = |text: String| {
        let (begin, after) = text.split_once("sha256:").unwrap();
        let named = format!("{begin}sha256:{}{}", "f".repeat(64), &after[64..]);
        named.replace(&format!("\"{IMAGE}\""), &format!("\"sha256:{}\"", "f".repeat(64)))
    };
    let list = renamed(format!("[{}]", web.listed()));
    device.engine.bend(Route::List, Bend::Body(list));
    device.engine.bend(Route::Inspect, Bend::Body(renamed(web.inspected().to_string())));
    device.engine.forget_requests();
    device.engine.end_connections();
    device.sigterm();
    device.start();
    // A look at it, too.
    device.engine.set_status(&web.name, "running");
    device.engine.end_connections();
    device.until_running(&["web"]);
    device.deploy(&service("web"));
    assert_eq!(device.engine.count_changes(), 0, "{}", device.engine.told());
    assert_eq!(device.fingerprint(), before);
    assert_eq!(device.workload("web").generation, 1);
}

#[test]
fn a_create_whose_answer_is_lost_or_late_makes_one_container() {
    for bend in [Bend::Lost, Bend::Half, Bend::Late(Duration::from_secs(3))] {
        let device = Device::started();
        device.engine.bend_next(Route::Create, 1, bend);
        device.deploy(&service("web"));
        device.until_running(&["web"]);
        assert_eq!(device.engine.count(Route::Create), 1);
        assert_eq!(device.engine.containers().len(), 1);
    }
}

#[test]
fn a_create_that_the_agent_did_not_live_to_see_makes_one_container() {
    let mut device = Device::started();
    device.engine.bend(Route::Create, Bend::Late(Duration::from_secs(60)));
    device.deploy(&service("web"));
    let made = until("the container to be made", || device.engine.containers().pop());
    device.kill9();
    device.engine.straighten();
    device.start();
    device.until_running(&["web"]);
    // No record knows its id, so it goes, and another one is made.
    assert_eq!(device.engine.count(Route::Create), 2);
    let containers = device.engine.containers();
    assert!(containers.len() == 1 && containers[0].id != made.id, "{containers:?}");
}

#[test]
fn a_start_whose_answer_is_lost_is_one_start() {
    for bend in [Bend::Lost, Bend::Half] {
        let device = Device::started();
        device.engine.bend_next(Route::Start, 1, bend);
        device.deploy(&service("web"));
        let shown = device.until_state("web", "Running(Ok)");
        assert_eq!(shown.restart_count, 0);
        assert_eq!(device.engine.count(Route::Start), 1);
    }
}

#[test]
fn b01_a_foreign_container_with_our_name_is_left_alone() {
    let device = Device::started();
    device.engine.add_foreign("web");
    device.engine.add_foreign("bargee-web-00000000");
    device.engine.bend_next(Route::Create, 1, Bend::NameTaken);
    device.deploy(&service("web"));
    let shown = until("the conflict to be told", || {
        Some(device.workload("web")).filter(|one| !one.last_error.is_empty())
    });
    assert!(shown.last_error.contains("not bargee's"), "{}", shown.last_error);
    device.until_running(&["web"]);
    let removed = device.cli(&["rm", "web"]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    let left = device.engine.containers();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().all(|made| made.labels.is_empty()), "{left:?}");
    let touched = |route| device.engine.count(route);
    assert_eq!((touched(Route::Remove), touched(Route::Kill)), (1, 1));
}

#[test]
fn a_refused_start_is_told_and_given_up_after_five_tries() {
    let device = Device::started();
    device.deploy(&workload("web", "refused", "restart: {delay: 100ms}"));
    let shown = until("it to be given up", || {
        Some(device.workload("web")).filter(|one| one.runtime_state == "FAILED")
    });
    assert_eq!(shown.state_words(), "Pending(StartingFailed)");
    assert!(shown.error_message.contains("executable file not found"), "{}", shown.error_message);
    assert_eq!(device.engine.count(Route::Start), 5);
    assert_eq!(device.engine.containers().len(), 1);
}

#[test]
fn a_stubborn_container_is_killed_after_its_grace_and_an_image_is_pulled() {
    let device = Device::started();
    let stubborn = workload("stubborn", "stubborn", "stop: {grace: 1s}");
    let pulled = workload("pulled", "serve", "").replace("pull: never", "pull: missing");
    let pulled = pulled.replace(crate::support::scripted_engine::IMAGE, PULLED_IMAGE);
    device.deploy(&(stubborn + &pulled));
    device.until_running(&["stubborn", "pulled"]);
    assert_eq!(device.engine.count(Route::Pull), 1);
    let removed = device.cli(&["rm", "stubborn", "pulled"]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    assert_eq!(device.engine.containers(), []);
    assert_eq!(device.engine.networks(), [] as [String; 0]);
    assert_eq!(device.engine.count(Route::Kill), 3, "two signals for the stubborn one");
}
