//! Makes a failing world smaller: takes away acts, then waits, as long as the same checker finds
//! something. That is delta debugging over what was drawn.

use super::acts::{Act, Image, PLAIN, Script, Wish};
use super::mutation::Mutation;
use super::run;

/// Runs that one shrinking may take.
const RUNS: usize = 1_000;

struct Shrinking<'a> {
    checker: &'static str,
    mutation: Option<&'a Mutation>,
    runs: usize,
}

impl Shrinking<'_> {
    fn still_fails(&mut self, script: &Script) -> bool {
        if self.runs == 0 {
            return false;
        }
        self.runs -= 1;
        let outcome = run::run(script, self.mutation.cloned(), false);
        outcome.violation.is_some_and(|violation| violation.checker == self.checker)
    }

    /// Takes away pieces of this size wherever that changes nothing. Whether it did.
    fn cut(&mut self, script: &mut Script, size: usize) -> bool {
        let (mut at, mut any) = (script.acts.len().saturating_sub(size), false);
        loop {
            let mut smaller = script.clone();
            let end = (at + size).min(smaller.acts.len());
            smaller.acts.drain(at..end);
            if end > at && self.still_fails(&smaller) {
                *script = smaller;
                any = true;
            }
            if at == 0 || self.runs == 0 {
                return any;
            }
            at = at.saturating_sub(size);
        }
    }

    /// Makes waits shorter, and declarations smaller.
    fn simplify(&mut self, script: &mut Script) {
        for n in 0..script.acts.len() {
            for wait in [0, 10, 1_000] {
                let mut smaller = script.clone();
                if smaller.acts[n].0 <= wait {
                    continue;
                }
                smaller.acts[n].0 = wait;
                if self.still_fails(&smaller) {
                    *script = smaller;
                    break;
                }
            }
            self.fewer_wishes(script, n);
            self.plainer_wishes(script, n);
        }
    }

    /// Says no more of what is declared than it takes.
    fn plainer_wishes(&mut self, script: &mut Script, n: usize) {
        let plainer: [fn(&mut Wish); 9] = [
            |wish| wish.version = PLAIN.version,
            |wish| wish.policy = PLAIN.policy,
            |wish| wish.hold = PLAIN.hold,
            |wish| wish.hasty = PLAIN.hasty,
            |wish| wish.label = PLAIN.label,
            |wish| wish.pull = PLAIN.pull,
            |wish| wish.disk = PLAIN.disk,
            |wish| wish.schedule = PLAIN.schedule,
            |wish| wish.rerun = PLAIN.rerun,
        ];
        for change in plainer {
            let mut smaller = script.clone();
            let Act::Apply(wishes, ..) = &mut smaller.acts[n].1 else { return };
            let before = wishes.clone();
            // A job that always runs again never comes to rest.
            wishes.iter_mut().filter(|wish| wish.image != Image::Job).for_each(change);
            if *wishes != before && self.still_fails(&smaller) {
                *script = smaller;
            }
        }
    }

    fn fewer_wishes(&mut self, script: &mut Script, n: usize) {
        let mut at = 0;
        loop {
            let mut smaller = script.clone();
            let Act::Apply(wishes, ..) = &mut smaller.acts[n].1 else { return };
            if wishes.len() < 2 || at >= wishes.len() {
                return;
            }
            wishes.remove(at);
            if self.still_fails(&smaller) {
                *script = smaller;
            } else {
                at += 1;
            }
        }
    }
}

/// The smallest script found that fails in the same way.
pub fn shrink(script: &Script, checker: &'static str, mutation: Option<&Mutation>) -> Script {
    let mut shrinking = Shrinking { checker, mutation, runs: RUNS };
    let mut script = script.clone();
    let mut size = script.acts.len() / 2;
    while size > 0 {
        if !shrinking.cut(&mut script, size) || size > script.acts.len() {
            size /= 2;
        }
    }
    shrinking.simplify(&mut script);
    let calm = Script { pace_ms: 2, ..script.clone() };
    if shrinking.still_fails(&calm) { calm } else { script }
}
