//! Tests of the machine with a made-up clock, in a world of one store and one engine that do at
//! once what they are told, unless a test says otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::declared::{Declared, Mount, MountSource, Pull, RestartPolicy, Spec};
use crate::domain::effect::{Answer, Change, PullId};
use crate::domain::event::{ContainerAction, ContainerEvent, Event, Outcome, Request, Verb};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{ContainerId, Key, Label, StoreId, Uid};
use crate::domain::observed::{EngineInfo, Phase, Tags};
use crate::domain::time::{Span, Tick};
use crate::domain::view::{RuntimeState, State, TaskState};

mod asks;

mod boot;

mod clock;

mod crash;

mod directory;

mod drain;

mod engine;

mod entries;

mod gone;

mod health;

mod idle;

mod journal;

mod late;

mod many;

mod outlive;

mod probation;

mod pulls;

mod quiesce;

mod rebuild;

mod reports;

mod replaced;

mod restart;

mod shutdown;

mod starts;

mod states;

mod stops;

mod stuck;

mod ugly;

mod together;

mod update;

mod walk;

mod world;

use world::{BOOT, Made, Store, World, made, reading};

/// A workload of the default application.
fn workload(name: &str, change: impl FnOnce(&mut Spec)) -> Arc<Declared> {
    let mut spec = Spec::new("image:1");
    change(&mut spec);
    let label = |text| Label::parse(text).unwrap();
    Arc::new(Declared {
        key: Key { application: label("default"), name: label(name) },
        labels: BTreeMap::new(),
        spec,
        manifest: "{}".into(),
    })
}

/// A mount of a disk that must be there.
fn disk() -> Mount {
    Mount {
        source: MountSource::Host { path: "/mnt/disk".to_owned(), mounted: true },
        target: "/data".to_owned(),
        read_only: false,
    }
}

fn policy(name: &str, policy: RestartPolicy) -> Arc<Declared> {
    workload(name, |spec| spec.restart.policy = policy)
}
