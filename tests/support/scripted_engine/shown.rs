//! Containers as the engine shows them.

use serde_json::{Map, Value, json};

use super::world::Container;

/// Of every image.
pub const IMAGE_ID: &str =
    "sha256:379090d8723381fe44a9f91d385b89f7fe40283baaa7a2754d026d3277a483d6";

/// As a line of `GET /containers/json`.
pub fn listed(made: &Container) -> Value {
    json!({
        "Id": made.id, "Names": [format!("/{}", made.name)], "Image": made.image,
        "ImageID": IMAGE_ID, "Command": made.command.join(" "), "Created": 1_767_225_600,
        "Ports": [], "Labels": made.labels, "State": made.status, "Status": status(made),
        "HostConfig": {"NetworkMode": made.network},
        "NetworkSettings": {"Networks": {}}, "Mounts": []
    })
}

/// As `GET /containers/{id}/json` has it.
pub fn inspected(made: &Container) -> Value {
    let asked = &made.asked;
    json!({
        "Id": made.id, "Created": time(1), "Name": format!("/{}", made.name),
        "State": state(made),
        "Image": IMAGE_ID, "RestartCount": 0,
        "HostConfig": {
            "NetworkMode": made.network, "RestartPolicy": {"Name": "no"},
            "PortBindings": asked["HostConfig"]["PortBindings"],
            "Mounts": asked["HostConfig"]["Mounts"]
        },
        "Mounts": mounts(made),
        "Config": config(made),
        "NetworkSettings": {"Ports": made.published, "IPAddress": "", "Networks": networks(made)}
    })
}

/// As people read it.
fn status(made: &Container) -> String {
    match made.status.as_str() {
        "running" if made.has_check() => "Up 1 second (healthy)".to_owned(),
        "running" => "Up 1 second".to_owned(),
        "exited" => format!("Exited ({}) 1 second ago", made.exit_code),
        "created" => "Created".to_owned(),
        other => other.to_owned(),
    }
}

fn config(made: &Container) -> Value {
    let mut config = json!({"Image": made.image, "Labels": made.labels, "Cmd": made.command});
    if let Some(signal) = made.asked["StopSignal"].as_str() {
        config["StopSignal"] = signal.into();
    }
    config
}

fn state(made: &Container) -> Value {
    let running = made.pid != 0;
    let mut state = json!({
        "Status": made.status, "Running": running, "Paused": false, "Restarting": false,
        "OOMKilled": made.oom_killed, "Dead": false, "Pid": made.pid, "ExitCode": made.exit_code,
        "Error": made.error, "StartedAt": time(made.started), "FinishedAt": time(made.finished)
    });
    if made.has_check() {
        // The first probe comes at once, and goes well.
        let word = if running { "healthy" } else { "unhealthy" };
        let probe = json!({
            "Start": time(made.started), "End": time(made.started), "ExitCode": 0, "Output": ""
        });
        state["Health"] = json!({"Status": word, "FailingStreak": 0, "Log": [probe]});
    }
    state
}

fn networks(made: &Container) -> Value {
    let endpoint = match made.network.as_str() {
        "host" | "none" => json!({"Aliases": null, "IPAddress": "", "GlobalIPv6Address": ""}),
        network => {
            let asked = &made.asked["NetworkingConfig"]["EndpointsConfig"][network]["Aliases"];
            let mut aliases = asked.as_array().cloned().unwrap_or_default();
            aliases.push(made.id[..12].into());
            let address = if made.pid == 0 { "" } else { "10.239.0.2" };
            json!({"Aliases": aliases, "IPAddress": address, "GlobalIPv6Address": ""})
        }
    };
    Map::from_iter([(made.network.clone(), endpoint)]).into()
}

fn mounts(made: &Container) -> Value {
    let asked = made.asked["HostConfig"]["Mounts"].as_array().into_iter().flatten();
    let mounts = asked.map(|mount| {
        let is_volume = mount["Type"] == "volume";
        let name = if is_volume { mount["Source"].clone() } else { Value::Null };
        json!({
            "Type": mount["Type"], "Name": name, "Source": mount["Source"],
            "Destination": mount["Target"], "RW": mount["ReadOnly"] != true
        })
    });
    mounts.collect::<Vec<_>>().into()
}

/// Moments are numbered; each is a second of its own.
fn time(number: u64) -> String {
    if number == 0 {
        return "0001-01-01T00:00:00Z".to_owned();
    }
    let (hours, minutes, seconds) = (number / 3_600, number / 60 % 60, number % 60);
    format!("2026-01-{:02}T{:02}:{minutes:02}:{seconds:02}.5Z", 1 + hours / 24, hours % 24)
}
