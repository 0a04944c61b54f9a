//! The diary of recent restarts: so many in so short a time are STUCK_IN_RESTART.

use super::names::BootId;
use super::time::{Span, Tick};
use crate::limits::{STUCK_MS, STUCK_RESTARTS};

/// When a workload was restarted lately, oldest first. Ticks compare within a boot only, so that it
/// begins anew in each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diary {
    boot: Option<BootId>,
    restarts: Vec<Tick>,
}

impl Diary {
    /// One that was written down, without what is more than a diary keeps.
    pub fn recall(boot: BootId, mut restarts: Vec<Tick>) -> Self {
        let excess = restarts.len().saturating_sub(STUCK_RESTARTS);
        restarts.drain(..excess);
        Self { boot: Some(boot), restarts }
    }

    /// What to write down; `None`: nothing.
    pub fn written(&self) -> Option<(&BootId, &[Tick])> {
        self.boot.as_ref().map(|boot| (boot, self.restarts.as_slice()))
    }

    /// Notes a restart. Whether there were too many of them by now.
    pub fn note(&mut self, boot: &BootId, now: Tick) -> bool {
        if self.boot.as_ref() != Some(boot) {
            *self = Self { boot: Some(boot.clone()), restarts: Vec::new() };
        }
        if self.restarts.len() >= STUCK_RESTARTS {
            self.restarts.remove(0);
        }
        self.restarts.push(now);
        let first = self.restarts.first().copied().unwrap_or(now);
        self.restarts.len() >= STUCK_RESTARTS && now.since(first) <= Span(STUCK_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of restarts at these seconds is one too many.
    fn too_many(seconds: impl IntoIterator<Item = u64>) -> Vec<usize> {
        let (mut diary, boot) = (Diary::default(), BootId::new("boot-1"));
        let notes = seconds.into_iter().map(|s| diary.note(&boot, Tick(s * 1_000)));
        let notes: Vec<bool> = notes.collect();
        (1..).zip(notes).filter(|(_, stuck)| *stuck).map(|(n, _)| n).collect()
    }

    #[test]
    fn ten_in_ten_minutes_are_too_many() {
        assert_eq!(too_many((1..=10).map(|n| n * 60)), [10], "the first and the tenth: 540 s");
        assert_eq!(too_many((1..=30).map(|n| n * 67)), [0; 0]);
        assert_eq!(too_many([0, 1, 2, 3, 4, 5, 6, 7, 8, 600]), [10]);
        assert_eq!(too_many([0, 1, 2, 3, 4, 5, 6, 7, 8, 601, 602]), [0; 0]);
    }

    #[test]
    fn it_is_bounded_and_of_one_boot() {
        let mut diary = Diary::default();
        for n in 0..1_000 {
            diary.note(&BootId::new("boot-1"), Tick(n));
        }
        assert_eq!(diary.written().unwrap().1.len(), STUCK_RESTARTS);
        assert!(!diary.note(&BootId::new("boot-2"), Tick(1)));
        assert_eq!(diary.written(), Some((&BootId::new("boot-2"), &[Tick(1)][..])));
        let long = Diary::recall(BootId::new("boot-1"), (0..100).map(Tick).collect());
        assert_eq!(long.written().unwrap().1, (90..100).map(Tick).collect::<Vec<_>>());
    }
}
