//! Create, start, signal, exit, remove.

use std::io::{BufRead, BufReader};

use bargee::domain::event::ContainerAction;
use bargee::domain::fault::FaultKind;
use bargee::domain::observed::Phase;
use bargee::engine::LogOptions;

use crate::kit::{Watch, container, read, run, run_to_end, shell, with};
use crate::tested::Tested;

pub fn ping_names_the_engine(engine: &Tested) {
    let info = engine.ping().unwrap();
    assert!(!info.name.is_empty() && !info.version.is_empty() && !info.api_version.is_empty());
}

pub fn the_engine_calls_itself_the_same_each_time(engine: &Tested) {
    let id = engine.identity().unwrap();
    assert!(id.is_some());
    assert_eq!(engine.identity().unwrap(), id);
}

pub fn what_was_created_is_listed(engine: &Tested) {
    let new = container("listed", &["sleep", "1000"]);
    let id = engine.create(&new).unwrap();
    let mine = || engine.list().unwrap().into_iter().find(|listed| listed.id == id).unwrap();
    assert_eq!(mine().phase, Phase::Created);
    let tags = mine().tags;
    assert_eq!(tags.uid.as_str(), "listed");
    assert_eq!(tags.key.to_string(), "conformance/listed");
    assert_eq!((tags.instance, tags.generation), (new.name, 1));
    assert_eq!((tags.spec_hash.as_str(), tags.store.as_str()), ("1-abc", "store"));
    engine.start(&id).unwrap();
    assert_eq!(mine().phase, Phase::Running);
}

pub fn containers_of_others_are_not_listed(engine: &Tested) {
    let mut new = container("foreign", &["true"]);
    new.labels.retain(|name, _| name != "bargee.store");
    let id = engine.create(&new).unwrap();
    assert!(engine.list().unwrap().iter().all(|listed| listed.id != id));
    assert_eq!(read(engine, &id).tags, None);
}

pub fn a_started_container_is_read_back(engine: &Tested) {
    let new = container("started", &["sleep", "1000"]);
    let id = engine.create(&new).unwrap();
    let created = read(engine, &id);
    assert_eq!((created.phase, created.started_at_ns, created.pid), (Phase::Created, 0, 0));
    engine.start(&id).unwrap();
    engine.start(&id).unwrap();
    let running = read(engine, &id);
    assert_eq!((&running.id, &running.phase), (&id, &Phase::Running));
    assert!(running.started_at_ns > 0 && running.pid > 0 && !running.image_id.is_empty());
    assert_eq!(running.tags.as_ref().unwrap().instance, new.name);
    // By name as well as by id.
    assert_eq!(engine.inspect(new.name.as_str()).unwrap().unwrap(), running);
}

pub fn an_exit_code_is_read_back(engine: &Tested) {
    let exited = run_to_end(engine, &shell("exit", "exit 7"));
    assert_eq!((exited.phase, exited.exit_code, exited.pid), (Phase::Exited, 7, 0));
    assert!(exited.started_at_ns > 0 && !exited.oom_killed);
}

pub fn a_container_starts_again_in_place(engine: &Tested) {
    let first = run_to_end(engine, &shell("again", "exit 1"));
    let watch = Watch::new(engine);
    engine.start(&first.id).unwrap();
    watch.until(&first.id, ContainerAction::Died);
    let second = read(engine, &first.id);
    assert!(second.started_at_ns > first.started_at_ns);
}

pub fn a_signal_reaches_the_process(engine: &Tested) {
    let line = "trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done";
    let watch = Watch::new(engine);
    let id = run(engine, &shell("signal", line));
    let log = engine.logs(&id, LogOptions { follow: true, tail: None }).unwrap();
    let mut ready = String::new();
    BufReader::new(log).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    engine.signal(&id, "SIGUSR1").unwrap();
    watch.until(&id, ContainerAction::Died);
    assert_eq!(read(engine, &id).exit_code, 5);
    assert_eq!(engine.signal(&id, "SIGTERM").unwrap_err().kind, FaultKind::Conflict);

    engine.start(&id).unwrap();
    engine.signal(&id, "SIGKILL").unwrap();
    watch.until(&id, ContainerAction::Died);
    assert_eq!(read(engine, &id).exit_code, 137);
}

pub fn removal_is_final_and_may_be_repeated(engine: &Tested) {
    let new = container("removed", &["sleep", "1000"]);
    let id = run(engine, &new);
    engine.remove(new.name.as_str()).unwrap();
    engine.remove(id.as_str()).unwrap();
    assert_eq!(engine.inspect(id.as_str()).unwrap(), None);
    assert_eq!(engine.start(&id).unwrap_err().kind, FaultKind::NoContainer);
    assert_eq!(engine.signal(&id, "SIGTERM").unwrap_err().kind, FaultKind::NoContainer);
    for follow in [false, true] {
        let fault = engine.logs(&id, LogOptions { follow, tail: None }).map(drop).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoContainer);
    }
    // The name is free again.
    assert_ne!(engine.create(&new).unwrap(), id);
}

pub fn a_taken_name_is_told(engine: &Tested) {
    let new = container("taken", &["true"]);
    let id = engine.create(&new).unwrap();
    assert_eq!(engine.create(&new).unwrap_err().kind, FaultKind::NameTaken);
    assert_eq!(engine.inspect(new.name.as_str()).unwrap().unwrap().id, id);
}

pub fn a_missing_image_is_told(engine: &Tested) {
    let absent = |image: &str| {
        let new = with(container("imageless", &["true"]), |spec| spec.image = image.into());
        engine.create(&new).unwrap_err().kind
    };
    assert_eq!(absent("localtest/absent:1"), FaultKind::NoImage);
    assert_eq!(absent("localtest/busybox:none"), FaultKind::NoImage);
    assert_eq!(absent("No Image//"), FaultKind::Refused);
}

pub fn a_command_that_is_not_there_is_refused(engine: &Tested) {
    let id = engine.create(&container("commandless", &["/no/such/command"])).unwrap();
    let fault = engine.start(&id).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Refused);
    assert!(fault.message.contains("/no/such/command"), "{fault}");
    let reading = read(engine, &id);
    assert_eq!((reading.phase, reading.pid), (Phase::Created, 0));
}

pub fn memory_that_ran_out_is_told(engine: &Tested) {
    let new = with(container("greedy", &["tail", "/dev/zero"]), |spec| {
        spec.resources.memory_bytes = Some(16 << 20);
    });
    let watch = Watch::new(engine);
    let id = run(engine, &new);
    let before = watch.until(&id, ContainerAction::Died);
    assert!(before.contains(&ContainerAction::OutOfMemory), "{before:?}");
    let reading = read(engine, &id);
    assert!(reading.oom_killed);
    assert_eq!(reading.exit_code, 137);
}
