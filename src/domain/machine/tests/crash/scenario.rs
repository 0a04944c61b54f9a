//! What is done in each scenario, and what may stand at the end, by what was acknowledged.

use std::sync::Arc;

use super::super::*;
use crate::domain::names::{InstanceName, Uid};
use crate::domain::record::Desired;
use crate::domain::spec_hash::spec_hash;
use crate::limits;

/// One thing that is done, or that happens, to the one workload of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// It is declared with this image: `refused...` cannot be made, `crashing...` ends at once,
    /// `brief...` after 3 s, `proving...` after 29 s.
    Apply(&'static str),
    Verb(Verb),
    /// Its process ends with 1.
    Exit,
    /// Somebody removes its container.
    Vanish,
    /// A container of this store is there that no record and no entry knows.
    Orphan(Phase),
}

/// A workload is brought into a state, and then the deeds are done while the agent may die.
#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub before: &'static [Deed],
    pub deeds: &'static [Deed],
}

use Deed::{Apply, Exit, Orphan, Vanish};

const START: Deed = Deed::Verb(Verb::Start);
const STOP: Deed = Deed::Verb(Verb::Stop);
const RESTART: Deed = Deed::Verb(Verb::Restart);
const REBUILD: Deed = Deed::Verb(Verb::Rebuild);
const REMOVE: Deed = Deed::Verb(Verb::Remove);

/// What the matrix goes through, one deed after the other.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "create", before: &[], deeds: &[Apply("a:1")] },
    Scenario { name: "start again", before: &[Apply("a:1")], deeds: &[Exit] },
    Scenario { name: "stop", before: &[Apply("a:1")], deeds: &[STOP] },
    Scenario { name: "start", before: &[Apply("a:1"), STOP], deeds: &[START] },
    Scenario { name: "restart", before: &[Apply("a:1")], deeds: &[RESTART] },
    Scenario { name: "rebuild", before: &[Apply("a:1")], deeds: &[REBUILD] },
    Scenario {
        name: "rebuild after a refused update",
        before: &[Apply("a:1"), Apply("refused:2")],
        deeds: &[REBUILD],
    },
    Scenario { name: "rebuild what is stopped", before: &[Apply("a:1"), STOP], deeds: &[REBUILD] },
    Scenario { name: "update", before: &[Apply("a:1")], deeds: &[Apply("a:2")] },
    Scenario { name: "refused update", before: &[Apply("a:1")], deeds: &[Apply("refused:2")] },
    Scenario { name: "crashing update", before: &[Apply("a:1")], deeds: &[Apply("crashing:2")] },
    Scenario { name: "brief update", before: &[Apply("a:1")], deeds: &[Apply("brief:2")] },
    Scenario { name: "long probation", before: &[Apply("a:1")], deeds: &[Apply("proving:2")] },
    Scenario { name: "replace", before: &[Apply("a:1"), Apply("a:2")], deeds: &[Apply("a:3")] },
    Scenario { name: "remove", before: &[Apply("a:1")], deeds: &[REMOVE] },
    Scenario { name: "remove stopped", before: &[Apply("a:1"), STOP], deeds: &[REMOVE] },
    Scenario { name: "recreate", before: &[Apply("a:1")], deeds: &[Vanish] },
    Scenario { name: "remove and apply", before: &[Apply("a:1")], deeds: &[REMOVE, Apply("a:2")] },
    Scenario { name: "orphan", before: &[], deeds: &[Orphan(Phase::Created)] },
    Scenario { name: "running orphan", before: &[Apply("a:1")], deeds: &[Orphan(Phase::Running)] },
    Scenario { name: "two applies", before: &[Apply("a:1")], deeds: &[Apply("a:2"), Apply("a:3")] },
    Scenario { name: "stop and start", before: &[Apply("a:1")], deeds: &[STOP, START] },
    Scenario {
        name: "update of what is stopped",
        before: &[Apply("a:1"), STOP],
        deeds: &[Apply("a:2"), START],
    },
];

/// Pairs of which the second is asked for while the first is under way.
pub const PAIRS: &[Scenario] = &[
    Scenario { name: "apply and remove", before: &[], deeds: &[Apply("a:1"), REMOVE] },
    Scenario { name: "apply and stop", before: &[], deeds: &[Apply("a:1"), STOP] },
    Scenario { name: "apply twice", before: &[], deeds: &[Apply("a:1"), Apply("a:2")] },
    Scenario {
        name: "update twice",
        before: &[Apply("a:1")],
        deeds: &[Apply("a:2"), Apply("a:3")],
    },
    Scenario {
        name: "there and back",
        before: &[Apply("a:1")],
        deeds: &[Apply("a:2"), Apply("a:1")],
    },
    Scenario { name: "update and stop", before: &[Apply("a:1")], deeds: &[Apply("a:2"), STOP] },
    Scenario { name: "update and remove", before: &[Apply("a:1")], deeds: &[Apply("a:2"), REMOVE] },
    Scenario {
        name: "crash and remove",
        before: &[Apply("a:1")],
        deeds: &[Apply("crashing:2"), REMOVE],
    },
    Scenario { name: "remove and apply", before: &[Apply("a:1")], deeds: &[REMOVE, Apply("a:2")] },
    Scenario {
        name: "restart and update",
        before: &[Apply("a:1")],
        deeds: &[RESTART, Apply("a:2")],
    },
    Scenario { name: "rebuild twice", before: &[Apply("a:1")], deeds: &[REBUILD, REBUILD] },
    Scenario {
        name: "update and rebuild",
        before: &[Apply("a:1")],
        deeds: &[Apply("a:2"), REBUILD],
    },
    Scenario {
        name: "rebuild and update",
        before: &[Apply("a:1")],
        deeds: &[REBUILD, Apply("a:2")],
    },
    Scenario { name: "rebuild and stop", before: &[Apply("a:1")], deeds: &[REBUILD, STOP] },
    Scenario { name: "rebuild and remove", before: &[Apply("a:1")], deeds: &[REBUILD, REMOVE] },
    Scenario {
        name: "brief update and another",
        before: &[Apply("a:1")],
        deeds: &[Apply("brief:2"), Apply("a:3")],
    },
    Scenario {
        name: "brief update and back",
        before: &[Apply("a:1")],
        deeds: &[Apply("brief:2"), Apply("a:1")],
    },
    Scenario {
        name: "brief update and restart",
        before: &[Apply("a:1")],
        deeds: &[Apply("brief:2"), RESTART],
    },
    Scenario {
        name: "brief update and stop",
        before: &[Apply("a:1")],
        deeds: &[Apply("brief:2"), STOP],
    },
    Scenario {
        name: "brief update and rebuild",
        before: &[Apply("a:1")],
        deeds: &[Apply("brief:2"), REBUILD],
    },
    Scenario { name: "stop and remove", before: &[Apply("a:1")], deeds: &[STOP, REMOVE] },
];

/// How a workload may stand at rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// `None`: there is none.
    pub wanted: Option<Wanted>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub uid: Uid,
    /// The image that is declared.
    pub declared: &'static str,
    /// The image that runs.
    pub runs: &'static str,
    pub desired: Desired,
    /// It was started after this, by the engine's clock.
    pub started_after_ms: u64,
}

/// A container of this store that is nobody's.
pub fn orphan(phase: Phase) -> (String, Made) {
    let name = "bargee-orphan-00000001";
    let tags = Tags {
        uid: Uid::new("nobody"),
        key: workload("orphan", |_| {}).key.clone(),
        instance: InstanceName::new(name),
        generation: 1,
        spec_hash: spec_hash(&declared("a:1")),
        store: StoreId::new("0123456789abcdef"),
        node: "node".to_owned(),
    };
    (name.to_owned(), made("orphan", tags, phase))
}

/// The declaration of a scenario's workload with this image.
pub fn declared(image: &str) -> Arc<Declared> {
    workload("web", |spec| spec.image = image.to_owned())
}

impl Model {
    /// How it may stand after `deed` too.
    pub fn after(&self, deed: &Deed, uid: &Uid, now: u64) -> Self {
        let mut wanted = self.wanted.clone();
        match deed {
            Apply(image) => {
                let works = image.starts_with('a');
                let runs = wanted.as_ref().filter(|_| !works).map_or(*image, |w| w.runs);
                let (uid, desired, after) = match &wanted {
                    Some(w) => (w.uid.clone(), w.desired, w.started_after_ms),
                    None => (uid.clone(), Desired::Running, 0),
                };
                wanted =
                    Some(Wanted { uid, declared: image, runs, desired, started_after_ms: after });
            }
            Deed::Verb(Verb::Remove) => wanted = None,
            Deed::Verb(verb) => {
                if let Some(w) = &mut wanted {
                    w.desired = match verb {
                        Verb::Stop => Desired::Stopped,
                        _ => Desired::Running,
                    };
                    let rebuilt = *verb == Verb::Rebuild && w.declared.starts_with('a');
                    if rebuilt || *verb == Verb::Restart {
                        w.started_after_ms = now;
                    }
                }
            }
            Orphan(_) => {}
            Exit | Vanish => {
                if let Some(w) = &mut wanted {
                    w.started_after_ms = now;
                }
            }
        }
        Self { wanted }
    }
}

impl Scenario {
    /// Nothing ends that was not told to.
    pub fn is_calm(&self) -> bool {
        let mut all = self.before.iter().chain(self.deeds);
        let ends =
            |image: &str| ["crashing", "brief", "proving"].iter().any(|w| image.starts_with(w));
        !all.any(|deed| {
            matches!(deed, Exit | Vanish) || matches!(deed, Apply(image) if ends(image))
        })
    }

    /// Nothing is there to begin with that no record knows.
    pub fn is_tidy(&self) -> bool {
        !self.deeds.iter().any(|deed| matches!(deed, Orphan(_)))
    }

    /// Everything that the deeds lead to leaves the agent within this time.
    pub fn lasts_ms(&self) -> u64 {
        if self.is_tidy() { 60_000 } else { 2 * limits::ORPHAN_MS }
    }
}
