//! What the scripted engine keeps: containers, networks, images and the events they gave.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::flaw::Flaw;
use super::program::Files;
use super::{refuse, shown};

/// Pids begin above what the kernel gives out, so that no process of this machine is meant.
const FIRST_PID: u32 = 5_000_000;

/// A container. What decides its behaviour is the first word of its command: `refused` cannot be
/// started, `stubborn` ends by SIGKILL alone, and `undying` by no signal. One of an image with
/// tools runs its command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Container {
    /// 64 hex digits.
    pub id: String,
    /// Without the slash.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// As it was asked for.
    pub image: String,
    /// Entrypoint left out.
    pub command: Vec<String>,
    /// `created`, `running`, `exited`, or any word that a test sets.
    pub status: String,
    /// Of the last exit.
    pub exit_code: i64,
    /// Of the last start that failed.
    pub error: String,
    /// 0: no process.
    pub pid: u32,
    /// Number of the start among all that happened; 0: never.
    pub started: u64,
    /// Number of the exit among all that happened; 0: never.
    pub finished: u64,
    /// As it was asked for.
    pub network: String,
    /// The whole body of the create; null: somebody put it there.
    pub asked: Value,
    /// What was written, each line with its output.
    pub log: Vec<(u8, String)>,
    /// The last exit was for memory.
    pub oom_killed: bool,
    /// Ports by port in the container, as an inspect has them.
    pub published: Value,
}

impl Container {
    /// It was asked for with a health check that is on.
    pub fn has_check(&self) -> bool {
        let check = &self.asked["Healthcheck"];
        check.is_object() && check["Test"][0] != "NONE"
    }

    /// The value of a label; empty: it has none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn is_live(&self) -> bool {
        self.pid != 0
    }

    fn is(&self, word: &str) -> bool {
        self.command.first().is_some_and(|first| first == word)
    }

    /// As a line of `GET /containers/json`.
    pub fn listed(&self) -> Value {
        shown::listed(self)
    }

    /// As `GET /containers/{id}/json` has it.
    pub fn inspected(&self) -> Value {
        shown::inspected(self)
    }
}

/// Why something was not done: status and words.
pub type Refusal = (u16, String);

/// The engine's memory.
#[derive(Debug, Default)]
pub struct World {
    /// By id.
    pub containers: BTreeMap<String, Container>,
    /// Networks by name, as a listing has them.
    pub networks: BTreeMap<String, Value>,
    /// Named volumes.
    pub volumes: BTreeMap<String, Files>,
    /// Images on the device.
    pub images: BTreeSet<String>,
    /// Those of them whose containers run their commands.
    pub tools: BTreeSet<String>,
    /// Images that a pull brings.
    pub registry: BTreeSet<String>,
    /// Every event so far with the container's labels, as streams send it.
    pub events: Vec<(BTreeMap<String, String>, String)>,
    /// Actions that do not show on any stream.
    pub lost_actions: BTreeSet<String>,
    /// Where the engine says that it keeps its data.
    pub data_root: String,
    /// What is wrong with this engine.
    pub flaw: Option<Flaw>,
    /// Started as far as anybody was told.
    pub early: Vec<String>,
    /// Id of the container that was made last.
    pub last_made: String,
    moments: u64,
    made: u32,
}

impl World {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    /// The id of a container that is named by its id or its name.
    pub fn find(&self, id_or_name: &str) -> Option<&Container> {
        let named = || self.containers.values().find(|made| made.name == id_or_name);
        self.containers.get(id_or_name).or_else(named)
    }

    fn id(&self, id_or_name: &str) -> Result<String, Refusal> {
        let found = self.find(id_or_name).map(|made| made.id.clone());
        found.ok_or_else(|| (404, format!("No such container: {id_or_name}")))
    }

    /// Puts an event of a container on the streams.
    pub fn tell(&mut self, id: &str, action: &str, more: &[(&str, &str)]) {
        let Some(made) = self.containers.get(id) else { return };
        if self.lost_actions.contains(action) {
            return;
        }
        let labels = made.labels.clone();
        let mut attributes = labels.clone();
        attributes.insert("image".to_owned(), made.image.clone());
        attributes.insert("name".to_owned(), made.name.clone());
        attributes.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let line = json!({
            "status": action, "id": id, "from": made.image, "Type": "container",
            "Action": action, "Actor": {"ID": id, "Attributes": attributes},
            "scope": "local", "time": 1_767_225_600 + self.moments, "timeNano": self.moments
        });
        self.events.push((labels, line.to_string()));
    }

    // --- what requests do ----------------------------------------------------------------------

    /// Makes a container from the body of a create.
    ///
    /// # Errors
    /// 409: the name is taken. 404: the image is missing. 400: what could never be made.
    pub fn create(&mut self, name: &str, body: &Value) -> Result<String, Refusal> {
        refuse::wrong(body)?;
        if let Some(holder) = self.containers.values().find(|made| made.name == name) {
            let text = format!(
                "Conflict. The container name \"/{name}\" is already in use by container \"{}\".",
                holder.id
            );
            return Err((409, text));
        }
        let image = body["Image"].as_str().unwrap_or_default();
        if !self.images.contains(image) {
            return Err((404, format!("No such image: {image}")));
        }
        let labels = serde_json::from_value(body["Labels"].clone()).unwrap_or_default();
        let command = serde_json::from_value(body["Cmd"].clone()).unwrap_or_default();
        let network = body["HostConfig"]["NetworkMode"].as_str().unwrap_or("default");
        let id = self.add(name, image, labels, command, network);
        for mount in body["HostConfig"]["Mounts"].as_array().into_iter().flatten() {
            if let Some(volume) = mount["Source"].as_str().filter(|_| mount["Type"] == "volume") {
                self.volumes.entry(volume.to_owned()).or_default();
            }
        }
        self.containers.get_mut(&id).expect("it was made just now").asked = body.clone();
        Ok(id)
    }

    /// Puts a container there.
    pub fn add(
        &mut self,
        name: &str,
        image: &str,
        labels: BTreeMap<String, String>,
        command: Vec<String>,
        network: &str,
    ) -> String {
        self.made += 1;
        // Ids that do not sort by age, as those of engines.
        let id = format!("{:08x}{:056x}", self.made.wrapping_mul(2_654_435_761), self.made);
        let made = Container {
            id: id.clone(),
            name: name.to_owned(),
            labels,
            image: image.to_owned(),
            command,
            status: "created".to_owned(),
            exit_code: 0,
            error: String::new(),
            pid: 0,
            started: 0,
            finished: 0,
            network: network.to_owned(),
            asked: Value::Null,
            log: Vec::new(),
            oom_killed: false,
            published: json!({}),
        };
        self.last_made.clone_from(&id);
        self.containers.insert(id.clone(), made);
        self.moment();
        self.tell(&id, "create", &[]);
        id
    }

    /// Starts a container; whether it did not run before.
    ///
    /// # Errors
    /// 404: no such container, or its network is gone. 400: its command cannot be run.
    pub fn start(&mut self, id_or_name: &str) -> Result<bool, Refusal> {
        let id = self.id(id_or_name)?;
        let now = self.moment();
        let pid = FIRST_PID + u32::try_from(now).unwrap();
        let can_run = self.can_run(&id);
        let published = self.publish_ports(&id);
        let networks = &self.networks;
        let made = self.containers.get_mut(&id).expect("it was found just now");
        if made.is_live() {
            return Ok(false);
        }
        if made.network.starts_with("bargee-") && !networks.contains_key(&made.network) {
            return Err((404, format!("network {} not found", made.network)));
        }
        if made.is("refused") || !can_run {
            made.exit_code = 127;
            let command = made.command.first().map_or("", String::as_str);
            made.error = format!("exec: \"{command}\": executable file not found in $PATH");
            return Err((400, made.error.clone()));
        }
        let refused = |(status, words): Refusal| {
            made.error.clone_from(&words);
            (status, words)
        };
        made.published = published.map_err(refused)?;
        (made.pid, made.started, made.exit_code) = (pid, now, 0);
        (made.oom_killed, made.error) = (false, String::new());
        made.status = "running".to_owned();
        self.tell(&id, "start", &[]);
        self.probe(&id);
        self.run(&id);
        Ok(true)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// 404: no such container. 409: it does not run.
    pub fn kill(&mut self, id_or_name: &str, signal: &str) -> Result<(), Refusal> {
        let id = self.id(id_or_name)?;
        let made = &self.containers[&id];
        if !made.is_live() {
            return Err((409, format!("Container {id} is not running")));
        }
        let deadly = matches!(signal, "SIGKILL" | "KILL" | "9");
        let ends = (deadly || !made.is("stubborn")) && !made.is("undying");
        self.tell(&id, "kill", &[("signal", signal)]);
        let is_taken = !deadly && self.signal_program(&id, signal);
        if ends && !is_taken {
            self.exit(&id, if deadly { 137 } else { 143 });
        }
        Ok(())
    }

    /// Removes a container.
    ///
    /// # Errors
    /// 404: no such container. 409: it runs, and there is no force.
    pub fn remove(&mut self, id_or_name: &str, force: bool) -> Result<(), Refusal> {
        let id = self.id(id_or_name)?;
        if self.containers[&id].is_live() {
            if !force {
                return Err((409, "You cannot remove a running container".to_owned()));
            }
            self.tell(&id, "kill", &[("signal", "9")]);
            self.exit(&id, 137);
        }
        self.tell(&id, "destroy", &[]);
        self.containers.remove(&id);
        Ok(())
    }

    /// Makes a network.
    ///
    /// # Errors
    /// 409: there is one of that name.
    pub fn create_network(&mut self, body: &Value) -> Result<(), Refusal> {
        let name = body["Name"].as_str().ok_or((400, "no name".to_owned()))?;
        if self.networks.contains_key(name) {
            return Err((409, format!("network with name {name} already exists")));
        }
        let id = format!("{:064x}", self.moment());
        let network = json!({"Id": id, "Name": name, "Labels": body["Labels"]});
        self.networks.insert(name.to_owned(), network);
        Ok(())
    }

    /// Puts a container that does not run onto a network, under the names in the body. Whether
    /// there is such a network shows at the start.
    ///
    /// # Errors
    /// 404: no such container.
    pub fn join_network(&mut self, name: &str, body: &Value) -> Result<(), Refusal> {
        let id = self.id(body["Container"].as_str().unwrap_or_default())?;
        let made = self.containers.get_mut(&id).expect("it was found just now");
        if made.asked.is_object() {
            made.asked["NetworkingConfig"]["EndpointsConfig"][name] =
                body["EndpointConfig"].clone();
        }
        Ok(())
    }

    /// Removes a network.
    ///
    /// # Errors
    /// 404: there is none. 403: a container that runs is on it.
    pub fn remove_network(&mut self, name_or_id: &str) -> Result<(), Refusal> {
        let is_meant = |(name, network): &(&String, &Value)| {
            *name == name_or_id || network["Id"] == name_or_id
        };
        let missing = (404, format!("network {name_or_id} not found"));
        let name = self.networks.iter().find(is_meant).ok_or(missing)?.0.clone();
        if self.containers.values().any(|made| made.network == name && made.is_live()) {
            return Err((403, format!("error while removing network: {name} has endpoints")));
        }
        self.networks.remove(&name);
        Ok(())
    }

    // --- what happens by itself ----------------------------------------------------------------

    /// The process of a container ends.
    pub fn exit(&mut self, id: &str, code: i64) {
        let now = self.moment();
        let Some(made) = self.containers.get_mut(id) else { return };
        made.published = json!({});
        (made.pid, made.finished, made.exit_code) = (0, now, code);
        made.status = "exited".to_owned();
        self.tell(id, "die", &[("exitCode", &code.to_string())]);
    }

    /// The containers that pass the `filters` of a request.
    pub fn passing(&self, filters: Option<&String>) -> Vec<&Container> {
        self.containers.values().filter(|made| passes(&made.labels, filters)).collect()
    }

    /// The networks that pass the `filters` of a request, as a listing has them.
    pub fn passing_networks(&self, filters: Option<&String>) -> Value {
        let labels = |network: &Value| -> BTreeMap<String, String> {
            serde_json::from_value(network["Labels"].clone()).unwrap_or_default()
        };
        let passing = self.networks.values().filter(|network| passes(&labels(network), filters));
        passing.cloned().collect::<Vec<_>>().into()
    }
}

/// Whether something with these labels passes `filters`, of which the labels count.
pub fn passes(labels: &BTreeMap<String, String>, filters: Option<&String>) -> bool {
    let filters = filters.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(wanted) = filters.as_ref().and_then(|all| all["label"].as_array()) else {
        return true;
    };
    wanted.iter().filter_map(Value::as_str).all(|wanted| match wanted.split_once('=') {
        Some((name, value)) => labels.get(name).is_some_and(|found| found == value),
        None => labels.contains_key(wanted),
    })
}
