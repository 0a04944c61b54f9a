//! Answers that come when something else is wanted already.

use super::*;

fn image(tag: u32) -> Arc<Declared> {
    workload("web", |spec| spec.image = format!("image:{tag}"))
}

/// Whatever waited for the network to go is not forgotten when nobody knows whether it went.
#[test]
fn a_removal_of_the_network_that_fails_holds_nobody() {
    for kind in [FaultKind::Timeout, FaultKind::Trouble] {
        let mut world = World::new();
        world.apply(&[&workload("a", |_| {})]);
        world.unanswered.push("remove network");
        world.fail_next("network", &[kind]);
        world.verb("a", Verb::Remove);
        world.apply(&[&workload("b", |_| {})]);
        assert_eq!(world.state("b"), State::PendingWaitingToStart);
        world.answer_late();
        world.pass(10_000);
        assert_eq!(world.state("b"), State::RunningOk, "{kind:?}");
    }
}
