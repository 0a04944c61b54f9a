//! How the agent comes to its end: a signal, with or without a drain before it, or a bug.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select};

use super::AgentError;
use super::inbox::Mail;
use crate::config::{Settled, ShutdownPolicy};
use crate::domain::event::Event;
use crate::domain::time::Span;
use crate::limits;

/// What the main thread waits for.
pub struct Ends<'a> {
    /// SIGTERM and SIGINT.
    pub signals: &'a Receiver<i32>,
    /// Closes when the monitor ends. Nothing is ever sent.
    pub monitor: &'a Receiver<()>,
    /// A drain is over.
    pub drained: &'a Receiver<()>,
}

impl Ends<'_> {
    /// Waits until the agent is to end, and for the drain where the configuration wants one.
    ///
    /// # Errors
    /// The monitor ended by itself.
    pub fn wait(&self, config: &Settled, inbox: &Sender<Mail>) -> Result<(), AgentError> {
        let signal = select! {
            recv(self.signals) -> signal => signal.unwrap_or(0),
            recv(self.monitor) -> _ => return Err(AgentError::MonitorEnded),
        };
        match config.shutdown_policy.value {
            ShutdownPolicy::LeaveRunning => {
                log::info!("signal {signal}: stopping, workloads are left running");
                Ok(())
            }
            ShutdownPolicy::Drain => {
                log::info!("signal {signal}: stopping, after the workloads");
                self.drain(config.shutdown_per_container.value, inbox)
            }
        }
    }

    fn drain(&self, most: Option<Duration>, inbox: &Sender<Mail>) -> Result<(), AgentError> {
        let most = most.map(|most| Span(u64::try_from(most.as_millis()).unwrap_or(u64::MAX)));
        let mail = Mail::Event(Event::Drain(most));
        let wait = Duration::from_millis(limits::DRAIN_BLOCKED_MS);
        if inbox.send_timeout(mail, wait).is_err() {
            log::warn!("no drain: the monitor takes nothing any more");
            return Ok(());
        }
        // The machine ends it in time. This is for one that hangs.
        let by = limits::DRAIN_MS + limits::DRAIN_KILL_MS + limits::DRAIN_BLOCKED_MS;
        select! {
            recv(self.drained) -> ended => ended.map_err(|_| AgentError::MonitorEnded),
            recv(self.signals) -> signal => {
                let signal = signal.unwrap_or(0);
                log::warn!("signal {signal}: the drain is cut short, what runs is left running");
                Ok(())
            }
            recv(self.monitor) -> _ => Err(AgentError::MonitorEnded),
            default(Duration::from_millis(by)) => {
                log::warn!("the drain does not end, and is not waited for any longer");
                Ok(())
            }
        }
    }
}
