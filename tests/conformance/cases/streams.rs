//! Events, logs and pulls.

use std::io::{BufRead, BufReader, Read};

use bargee::domain::event::ContainerAction::{Died, Removed, Started};
use bargee::domain::fault::FaultKind;
use bargee::engine::LogOptions;
use bargee::engine::cancel::Cancel;

use crate::kit::{Watch, container, ends, log, run, run_to_end, shell, with};
use crate::support::registry::LAYER_BYTES;
use crate::tested::{Pullable, Tested};

const FOLLOW: LogOptions = LogOptions { follow: true, tail: None };

pub fn events_come_in_order(engine: &Tested) {
    let watch = Watch::new(engine);
    let id = run(engine, &shell("eventful", "exit 3"));
    assert_eq!(watch.until(&id, Died), [Started]);
    engine.start(&id).unwrap();
    engine.remove(id.as_str()).unwrap();
    assert_eq!(watch.until(&id, Removed), [Started, Died]);
}

pub fn closing_events_frees_their_reader(engine: &Tested) {
    let mut stream = engine.events().unwrap();
    let ending = ends(move || while stream.next().is_ok() {});
    engine.close_events();
    ending.get();
    // And another one can be opened.
    let watch = Watch::new(engine);
    let id = run(engine, &shell("reopened", "exit 0"));
    watch.until(&id, Died);
}

pub fn both_outputs_are_in_the_log(engine: &Tested) {
    let line = "echo out; sleep 0.2; echo err >&2; sleep 0.2; seq 1000; printf end";
    let id = run_to_end(engine, &shell("logged", line)).id;
    let text = log(engine, &id, None);
    assert!(text.starts_with("out\nerr\n1\n2\n"), "{text}");
    assert!(text.ends_with("999\n1000\nend"), "{text}");
    assert_eq!(log(engine, &id, Some(2)), "1000\nend");
    assert_eq!(log(engine, &id, Some(0)), "");
}

pub fn a_followed_log_comes_as_it_is_written_and_ends_with_the_container(engine: &Tested) {
    let line = "trap 'echo told; exit' USR1; echo first; while :; do sleep \
                0.05; done";
    let id = run(engine, &shell("followed", line));
    let mut log = BufReader::new(engine.logs(&id, FOLLOW).unwrap());
    let mut next = String::new();
    log.read_line(&mut next).unwrap();
    assert_eq!(next, "first\n");
    engine.signal(&id, "SIGUSR1").unwrap();
    let rest = ends(move || {
        let mut rest = String::new();
        log.read_to_string(&mut rest).map(|_| rest)
    });
    assert_eq!(rest.get().unwrap(), "told\n");
}

pub fn shutdown_frees_every_reader(engine: &Tested) {
    let id = run(engine, &container("silent", &["sleep", "1000"]));
    let mut stream = engine.events().unwrap();
    let events = ends(move || while stream.next().is_ok() {});
    let mut quiet = engine.logs(&id, FOLLOW).unwrap();
    let log = ends(move || quiet.read(&mut [0; 16]).is_err());
    engine.shutdown();
    events.get();
    assert!(log.get());
    assert_eq!(engine.list().unwrap_err().kind, FaultKind::Away);
}

pub fn a_pull_brings_the_image_and_tells_how_far_it_is(engine: &Tested) {
    let Pullable { image, absent, .. } = &engine.pullable();
    let mut told = Vec::new();
    assert!(engine.pull(image, &Cancel::default(), &mut |progress| told.push(progress)).unwrap());
    let last = told.last().unwrap();
    assert_eq!(last.done_bytes, last.total_bytes);
    assert!(last.total_bytes >= LAYER_BYTES as u64, "{told:?}");
    assert!(told.is_sorted_by_key(|progress| progress.done_bytes), "{told:?}");
    let new = with(container("pulled", &["/data"]), |spec| spec.image = image.clone());
    engine.create(&new).unwrap();
    // It is there already: good again, and nothing to tell.
    let nothing = &mut |progress| panic!("{progress:?}");
    assert!(!engine.pull(image, &Cancel::default(), nothing).unwrap());
    engine.sync_images().unwrap();
    let fault = engine.pull(absent, &Cancel::default(), &mut |_| {}).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trouble, "{fault}");
}

pub fn a_pull_that_cannot_be_is_told_by_kind(engine: &Tested) {
    let kind = |image: &str| engine.pull(image, &Cancel::default(), &mut |_| {}).unwrap_err().kind;
    assert_eq!(kind("127.0.0.1:1/nobody/listens:1"), FaultKind::Trouble);
    assert_eq!(kind("Not An Image//"), FaultKind::Refused);
}
