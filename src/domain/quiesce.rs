//! Reconciling is held for a while: an operator, or a change of the engine, is at work.

use super::lifecycle::Context;
use super::names::BootId;
use super::time::{Span, Tick};

/// Since when and until when. Kept in the store; it holds in one boot only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quiesce {
    /// The boot that both ticks are of.
    pub boot: BootId,
    /// When it began.
    pub since: Tick,
    /// When it ends by itself.
    pub until: Tick,
}

impl Quiesce {
    /// From now on, for `span`; one that is under way already goes on from where it began.
    pub fn begin(before: Option<&Self>, span: Span, context: Context) -> Self {
        let now = context.now.tick;
        let since = before.map_or(now, |before| before.since);
        Self { boot: context.boot.clone(), since, until: now + span }
    }

    /// It has ended by itself: its time is over, or the device was started anew.
    pub fn is_over(&self, context: Context) -> bool {
        self.boot != *context.boot || self.until <= context.now.tick
    }

    /// As one line of text, for the store.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.since.0, self.until.0, self.boot.as_str())
    }

    /// The inverse of [`Quiesce::to_text`].
    pub fn parse(text: &str) -> Option<Self> {
        let (since, rest) = text.split_once(' ')?;
        let (until, boot) = rest.split_once(' ')?;
        Some(Self {
            boot: BootId::new(boot),
            since: Tick(since.parse().ok()?),
            until: Tick(until.parse().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Now;

    #[test]
    fn it_ends_with_its_time_or_with_the_boot() {
        let (boot, other) = (BootId::new("a"), BootId::new("b"));
        let at = |boot, ms| Context { now: Now { tick: Tick(ms), wall_ms: 0 }, boot };
        let first = Quiesce::begin(None, Span(500), at(&boot, 1_000));
        assert!(!first.is_over(at(&boot, 1_499)) && first.is_over(at(&boot, 1_500)));
        assert!(first.is_over(at(&other, 1_000)));
        let second = Quiesce::begin(Some(&first), Span(100), at(&boot, 1_200));
        assert_eq!((second.since, second.until), (Tick(1_000), Tick(1_300)));
    }

    #[test]
    fn its_text_is_read_back() {
        let quiesce = Quiesce { boot: BootId::new("b-1 c"), since: Tick(7), until: Tick(9) };
        assert_eq!(Quiesce::parse(&quiesce.to_text()), Some(quiesce));
        for bad in ["", "1", "1 2", "x 2 b", "1 -2 b"] {
            assert_eq!(Quiesce::parse(bad), None, "{bad}");
        }
    }
}
