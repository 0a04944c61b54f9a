//! A short life of a workload, for the programs of other processors under an emulator: their names
//! begin with `arm_`, and `scripts/test.sh` runs them with `BARGEE_BIN` and `BARGEE_RUNNER`.

use serde_json::json;

use crate::adopting::runs;
use crate::support::agent::Agent;
use crate::support::engine::shared;
use crate::support::manifest::Manifest;
use crate::support::{let_exits_stand, until};

#[test]
fn arm_deploy_crash_restart_of_the_agent_update_and_removal() {
    let mut agent = Agent::on(shared());
    let web = Manifest::service("web").bridged().hasty();
    let job = Manifest::job("job");
    agent.deploy_with(&["--wait"], &[web.clone(), job]).expect(0, &["deploy"]);
    agent.until_state("job", "Succeeded(Ok)");

    // A crash.
    let first = agent.workload("web");
    agent.ok(&["kill", "web"]);
    let again = agent.until("web", "running again", |one| {
        one.state == "Running" && one.started_at > first.started_at
    });
    assert_eq!((again.container_id, again.restart_count), (first.container_id, 1));

    // The agent dies, and is asked to end.
    let before = runs(&agent);
    agent.kill9_and_start();
    agent.until_running(&["web"]);
    assert_eq!(runs(&agent), before);
    let_exits_stand();
    agent.restart();
    agent.until_running(&["web"]);
    assert_eq!(runs(&agent), before);
    assert_eq!(agent.workload("web").restart_count, 1);

    // One update that cannot be, and one that can.
    let wrong = web.clone().with("command", json!(["/no/such/command"]));
    let output = agent.deploy_with(&["--wait"], &[wrong]);
    assert_eq!(output.code, 1, "{output:?}");
    agent.until_running(&["web"]);
    let good = web.with("env", json!({"COLOUR": "blue"}));
    agent.deploy_with(&["--wait"], &[good]).expect(0, &["deploy"]);
    let updated = agent.workload("web");
    assert_eq!((updated.uid, updated.observed_generation), (first.uid, 3));
    until("one container each", || (agent.containers().len() == 2).then_some(()));

    agent.ok(&["stop", "web"]);
    assert!(!agent.container("web").is_running());
    agent.ok(&["rm", "web", "job"]);
    agent.expect_no_trace();
}
