//! What an operator asks of the journal.

use super::super::Machine;
use super::super::commits::Purpose;
use crate::domain::effect::{Answer, Effect, Refusal, Write};
use crate::domain::event::AskId;
use crate::domain::intent::{Intent, Seq};
use crate::domain::lifecycle::Slot;
use crate::domain::names::Uid;

impl Machine {
    /// Tries an entry, or all that failed, without waiting for the next retry. What waits for
    /// something else goes on waiting. The answer comes at once: what a try comes to is seen in the
    /// journal.
    pub(in super::super) fn ask_replay(
        &mut self,
        ask: AskId,
        seq: Option<Seq>,
    ) -> Result<(), Refusal> {
        let seqs: Vec<Seq> = match seq {
            Some(seq) if !self.journal.entries.contains_key(&seq) => return Err(no_entry(seq)),
            Some(seq) => vec![seq],
            None => self.journal.failing.iter().copied().collect(),
        };
        let mut count = 0;
        for &seq in &seqs {
            count += usize::from(self.hurry(seq));
        }
        if count == 0 && seq.is_some() {
            let text =
                "it cannot be read, so nothing can be done for it; drop it, or update bargee";
            return Err(Refusal::Conflict(text.to_owned()));
        }
        let unread = seqs.len() - count;
        let mut text = match count {
            1 => "1 entry is being replayed".to_owned(),
            count => format!("{count} entries are being replayed"),
        };
        if unread > 0 {
            text.push_str(&format!("; {unread} cannot be read"));
        }
        self.answers.push(Effect::Answer(ask, Answer::Done(text)));
        Ok(())
    }

    fn hurry(&mut self, seq: Seq) -> bool {
        let Some(entry) = self.journal.entries.get(&seq).cloned() else { return false };
        let (Some(uid), Some(instance)) = (entry.intent.uid(), entry.intent.instance()) else {
            return false;
        };
        self.journal.loose.hurry(instance, self.now.tick);
        if let Some(w) = self.workloads.get_mut(uid) {
            w.retry_at = None;
            if !w.discard_error.is_empty() {
                w.discard_deadline = None;
                w.discards_failed = 0;
                w.mark_stale(Slot::Discard);
            }
            self.mark(uid);
        }
        true
    }

    /// Drops an entry: nothing is done for it any more.
    pub(in super::super) fn ask_drop(&mut self, ask: AskId, seq: Seq) -> Result<(), Refusal> {
        if !self.journal.entries.contains_key(&seq) {
            return Err(no_entry(seq));
        }
        self.journal.dropping.insert(seq);
        self.persist(Purpose::Drop(ask, seq), false, vec![Write::DropEntry(seq)]);
        Ok(())
    }

    pub(in super::super) fn on_dropped(
        &mut self,
        ask: AskId,
        seq: Seq,
        result: Result<(), String>,
    ) {
        self.journal.dropping.remove(&seq);
        let answer = match result {
            Err(text) => Answer::Refused(Refusal::Store(text)),
            Ok(()) => {
                let intent = self.journal.entries.get(&seq).map(|entry| entry.intent.clone());
                self.forget_entry(seq);
                if let Some(intent) = intent {
                    self.leave_be(&intent);
                }
                Answer::Done(format!("entry {} is dropped", seq.0))
            }
        };
        self.answers.push(Effect::Answer(ask, answer));
    }

    fn leave_be(&mut self, intent: &Intent) {
        let (Some(uid), Some(instance)) = (intent.uid(), intent.instance()) else { return };
        self.journal.loose.remove(instance);
        let Some(w) = self.workloads.get_mut(uid) else { return };
        // One for which a step is in flight is settled by what comes of that.
        if w.step.is_none() && w.instance(Slot::Discard).is_some_and(|i| i.name == *instance) {
            w.cut.retain(|name| name != instance);
            w.drop_discard();
        }
        self.mark(uid);
    }

    // --- adopting ------------------------------------------------------------------------------

    /// Takes over containers of another store, whatever they were made from.
    pub(in super::super) fn ask_adopt(
        &mut self,
        ask: AskId,
        uid: Option<Uid>,
    ) -> Result<(), Refusal> {
        let uids: Vec<Uid> = match uid {
            Some(uid) if !self.workloads.contains_key(&uid) => {
                return Err(Refusal::NotFound(format!("there is no workload {uid} any more")));
            }
            Some(uid) => vec![uid],
            None => self.by_key.values().cloned().collect(),
        };
        let mut adopted = Vec::new();
        for uid in uids {
            if let Some(name) = self.adopt(&uid, true) {
                adopted.push(name.to_string());
                self.mark(&uid);
            }
        }
        let mut text = match adopted.len() {
            0 => "nothing was adopted".to_owned(),
            1 => format!("adopted {}, and what differs from its manifest is updated", adopted[0]),
            n => format!(
                "adopted {n} ({}), and what differs from their manifests is updated",
                adopted.join(", ")
            ),
        };
        let rest = self.waiting_for_owner();
        if rest > 0 {
            text.push_str(&format!(
                "; for {rest} that no record knows no workload waits: declare one of the name, or \
                 remove the container with the engine"
            ));
        }
        self.answers.push(Effect::Answer(ask, Answer::Done(text)));
        Ok(())
    }
}

fn no_entry(seq: Seq) -> Refusal {
    Refusal::NotFound(format!("there is no entry {} in the journal (any more)", seq.0))
}
