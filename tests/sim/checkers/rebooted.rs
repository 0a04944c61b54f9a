//! A boot of the device: it counts nothing, a job that Succeeded is done, and runs again where that
//! is declared.

use bargee::domain::declared::Rerun;
use bargee::domain::names::{ContainerId, Uid};
use bargee::domain::view::State;

use crate::world::World;

/// Longer than too many restarts before it count.
const PAUSE_MS: u64 = 660_000;

/// What is shown of a workload before a boot, and how often its container ran.
struct Before {
    uid: Uid,
    container: ContainerId,
    runs: u32,
    state: State,
    restarts: u64,
    rerun: Rerun,
}

impl World {
    /// One boot in a world without faults.
    pub fn reboot_once(&mut self) {
        self.note(|| "=== the device is started anew".to_owned());
        let before = self.before();
        self.cut_power(true, 1_000, 20);
        self.pass(PAUSE_MS);
        let unlike = before.iter().find_map(|one| self.unlike_before(one));
        if let Some(text) = unlike {
            self.blame("boot", text);
        }
    }

    fn before(&self) -> Vec<Before> {
        let views = self.agent.iter().flat_map(|agent| agent.views.values());
        // What stands in for a failed update cannot be made again if its network is gone.
        let sound = views.filter(|view| view.failed_update.is_none());
        let all = sound.filter_map(|view| {
            let container = view.container.clone()?;
            // The end of a run that no row ever told of is not known to be of an earlier boot.
            self.store.kept.rows.get(&view.uid)?.boot.as_ref()?;
            let runs = self.engine.model.find(container.as_str())?.runs;
            Some(Before {
                uid: view.uid.clone(),
                container,
                runs,
                state: view.state,
                restarts: view.restart_count,
                rerun: view.declared.spec.rerun,
            })
        });
        let lasting = |one: &Before| matches!(one.state, State::RunningOk | State::SucceededOk);
        all.filter(lasting).collect()
    }

    fn runs_of(&self, container: &ContainerId) -> u32 {
        self.engine.model.find(container.as_str()).map_or(0, |made| made.runs)
    }

    fn unlike_before(&self, before: &Before) -> Option<String> {
        let Before { uid, container, runs, state, restarts, rerun } = before;
        let view = self.agent.as_ref()?.views.get(uid);
        let shown = view.map(|view| (view.state, view.restart_count));
        let again = *state == State::RunningOk || *rerun == Rerun::Boot;
        // What ended well may have been anything, and goes on running this time.
        let goes_on = again && shown == Some((State::RunningOk, *restarts));
        if !goes_on && shown != Some((*state, *restarts)) {
            return Some(format!("{uid} was {state:?} with {restarts} restarts, is {shown:?}"));
        }
        let (ran, due) = match self.engine.model.find(container.as_str()) {
            Some(made) => (made.runs, runs + u32::from(again)),
            // It could not be started, as where its network was gone, and was made anew.
            None => (self.runs_of(view?.container.as_ref()?), u32::from(again)),
        };
        (ran != due).then(|| format!("{uid} under {rerun:?} ran {ran} times instead of {due}"))
    }
}
