//! What was acknowledged holds, over deaths and power cuts. What was asked for and not
//! acknowledged, because the agent died or the store did not say, may hold or not; what was refused
//! does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use bargee::domain::declared::Declared;
use bargee::domain::effect::{Answer, Applied, Change, Refusal};
use bargee::domain::event::{Apply, AskId, Request, Verb};
use bargee::domain::names::{Key, Source, Uid};
use bargee::domain::record::Desired;
use bargee::domain::view::View;

/// All promises.
#[derive(Debug, Default)]
pub struct Promises {
    by_uid: BTreeMap<Uid, Promise>,
    open: BTreeMap<AskId, Request>,
}

/// What people know of a workload.
#[derive(Clone, Debug)]
struct Promise {
    key: Key,
    source: Source,
    /// What was acknowledged last.
    declared: Option<(u64, Arc<Declared>)>,
    /// What was asked for since, and not acknowledged.
    or_declared: Vec<Arc<Declared>>,
    /// How it may be wanted: one, if that was acknowledged.
    desired: Vec<Desired>,
}

type Views = BTreeMap<Uid, Arc<View>>;
type Found = Option<(&'static str, String)>;

impl Promises {
    /// How the workload is wanted, if there is no doubt about it.
    pub fn desired(&self, uid: &Uid) -> Option<Desired> {
        let promise = self.by_uid.get(uid)?;
        // What is asked for at the moment may hold already.
        let is_about = |request: &Request| match request {
            Request::Verb(verb, of) => of == uid && wanted_by(verb).is_some(),
            Request::Apply(apply) => apply.start || apply.prune,
            _ => false,
        };
        match promise.desired[..] {
            [desired] if !self.open.values().any(is_about) => Some(desired),
            _ => None,
        }
    }

    pub fn asked(&mut self, ask: AskId, request: &Request, views: &Views) {
        if let Request::Verb(_, uid) = request
            && let Some(view) = views.get(uid)
        {
            // One that a file declares was never promised to anybody before.
            self.by_uid.entry(uid.clone()).or_insert_with(|| Promise {
                key: view.declared.key.clone(),
                source: view.source,
                declared: None,
                or_declared: Vec::new(),
                desired: vec![view.desired, Desired::Deleted],
            });
        }
        self.open.insert(ask, request.clone());
    }

    pub fn answered(&mut self, ask: AskId, answer: &Answer, views: &Views) -> Found {
        let request = self.open.remove(&ask)?;
        match (request, answer) {
            (Request::Apply(apply), Answer::Applied(applied)) => {
                return self.applied(&apply, applied, views);
            }
            (Request::Verb(verb, uid), Answer::Accepted(_)) => {
                if let Some(desired) = wanted_by(&verb)
                    && let Some(promise) = self.by_uid.get_mut(&uid)
                {
                    promise.desired = vec![desired];
                    promise.or_file();
                    let shown = views.get(&uid).map(|view| view.desired);
                    if shown.is_some_and(|shown| shown != desired) {
                        let text = format!("{uid} is shown as {shown:?} after {desired:?}");
                        return Some(("answers", text));
                    }
                }
            }
            (request, Answer::Refused(Refusal::Store(_))) => self.unknown(&request),
            _ => {}
        }
        None
    }

    fn applied(&mut self, apply: &Apply, applied: &[Applied], views: &Views) -> Found {
        for one in applied {
            let shown = views.get(&one.uid).map_or(0, |view| view.generation);
            if shown < one.generation && one.change != Change::Removed {
                let text = format!("{} is shown with generation {shown}: {one:?}", one.uid);
                return Some(("answers", text));
            }
        }
        for (declared, one) in apply.declared.iter().zip(applied) {
            let acknowledged = Some((one.generation, declared.clone()));
            if one.change == Change::Created {
                if let Some(found) = self.lost_key(&one.key) {
                    return Some(found);
                }
                let promise = Promise {
                    key: one.key.clone(),
                    source: apply.source,
                    declared: acknowledged,
                    or_declared: Vec::new(),
                    desired: vec![Desired::Running],
                };
                self.by_uid.insert(one.uid.clone(), promise);
                continue;
            }
            let Some(promise) = self.by_uid.get_mut(&one.uid) else { continue };
            promise.declared = acknowledged;
            promise.or_declared.clear();
            if apply.start {
                promise.desired = vec![Desired::Running];
            }
        }
        for one in applied.iter().filter(|one| one.change == Change::Removed) {
            if let Some(promise) = self.by_uid.get_mut(&one.uid) {
                promise.desired = vec![Desired::Deleted];
            }
        }
        None
    }

    /// A workload is new under a key, though another one was promised under it.
    fn lost_key(&self, key: &Key) -> Found {
        let mut holders = self.by_uid.iter().filter(|(_, promise)| promise.key == *key);
        let (uid, promise) = holders.find(|(_, promise)| {
            promise.declared.is_some() && !promise.desired.contains(&Desired::Deleted)
        })?;
        Some(("promises", format!("{key} is new, though {uid} was {promise:?}")))
    }

    /// Nobody knows whether it holds.
    fn unknown(&mut self, request: &Request) {
        match request {
            Request::Apply(apply) => {
                for (declared, fresh) in apply.declared.iter().zip(&apply.uids) {
                    self.may_declare(declared, fresh, apply);
                }
                if apply.prune {
                    for promise in self.by_uid.values_mut() {
                        let mut of = apply.declared.iter().map(|d| &d.key.application);
                        if of.any(|application| *application == promise.key.application) {
                            promise.or(Desired::Deleted);
                        }
                    }
                }
            }
            Request::Verb(verb, uid) => {
                if let Some(desired) = wanted_by(verb)
                    && let Some(promise) = self.by_uid.get_mut(uid)
                {
                    promise.or(desired);
                }
            }
            _ => {}
        }
    }

    fn may_declare(&mut self, declared: &Arc<Declared>, fresh: &Uid, apply: &Apply) {
        for promise in self.by_uid.values_mut().filter(|p| p.key == declared.key) {
            promise.or_declared.push(declared.clone());
            if apply.start {
                promise.or(Desired::Running);
            }
        }
        let promise = Promise {
            key: declared.key.clone(),
            source: apply.source,
            declared: None,
            or_declared: vec![declared.clone()],
            desired: vec![Desired::Running, Desired::Deleted],
        };
        self.by_uid.insert(fresh.clone(), promise);
    }

    pub fn died(&mut self) {
        for request in std::mem::take(&mut self.open).into_values() {
            self.unknown(&request);
        }
    }

    /// A file may take away, at any time, what a file declared.
    pub fn directory_changed(&mut self) {
        self.by_uid.values_mut().for_each(Promise::or_file);
    }

    /// The first promise that is not kept by what is shown.
    pub fn broken(&self, views: &Views) -> Found {
        self.by_uid.iter().find_map(|(uid, promise)| {
            let text = promise.broken(views.get(uid).map(|view| &**view))?;
            Some(("promises", format!("{uid} {}: {text}", promise.key)))
        })
    }
}

impl Promise {
    fn or(&mut self, desired: Desired) {
        if !self.desired.contains(&desired) {
            self.desired.push(desired);
        }
    }

    fn or_file(&mut self) {
        if self.source == Source::Directory {
            self.or(Desired::Deleted);
        }
    }

    fn broken(&self, view: Option<&View>) -> Option<String> {
        let Some(view) = view else {
            let may_be_gone = self.desired.contains(&Desired::Deleted);
            return (!may_be_gone).then(|| format!("is lost, and was {:?}", self.desired));
        };
        if !self.desired.contains(&view.desired) {
            return Some(format!("is wanted {:?}, and was {:?}", view.desired, self.desired));
        }
        let Some((generation, declared)) = &self.declared else { return None };
        let is_acknowledged = view.generation == *generation && view.declared == *declared;
        let may_be = view.generation > *generation && self.or_declared.contains(&view.declared);
        if is_acknowledged || may_be {
            return None;
        }
        Some(format!(
            "is generation {} of {}, and was {generation} of {}",
            view.generation, view.declared.spec.image, declared.spec.image
        ))
    }
}

fn wanted_by(verb: &Verb) -> Option<Desired> {
    match verb {
        Verb::Start | Verb::Restart | Verb::Rebuild => Some(Desired::Running),
        Verb::Stop => Some(Desired::Stopped),
        Verb::Remove => Some(Desired::Deleted),
        Verb::Kill(_) => None,
    }
}
