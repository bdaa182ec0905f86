//! Requests of other threads to the daemon's loop.

use crate::config::Config;
use crate::plan::NetworkPlan;
use crate::state::Look;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::time::Duration;

/// Time limit for a reply of the loop.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request and the channel of its reply.
pub struct DaemonRequest {
    /// The command.
    pub command: DaemonCommand,
    /// Room for one answer.
    pub reply: SyncSender<Result<Look, String>>,
}

/// A command to the daemon's loop.
pub enum DaemonCommand {
    /// To say how it is.
    Look,
    /// Files have changed.
    Plan(Box<Config>, Box<NetworkPlan>),
    /// A link has another capacity: none for its ordinary one, 0 if it is down, bit/s.
    Link {
        /// By its name.
        link: String,
        /// See above.
        capacity_bps: Option<f64>,
    },
    /// A tenant's flowlets weigh so much at most.
    Quota {
        /// By its name.
        tenant: String,
        /// See above.
        weight: f64,
    },
    /// To serve no longer.
    Drain,
    /// To serve again after that.
    Serve,
    /// To end.
    End,
}

/// A way to the loop.
#[derive(Clone)]
pub struct Line(Sender<DaemonRequest>);

impl Line {
    /// To who receives from the other end.
    pub fn new(requests: Sender<DaemonRequest>) -> Line {
        Line(requests)
    }

    /// Tells, and waits for the answer: how the daemon is then.
    pub fn tell(&self, command: DaemonCommand) -> Result<Look, String> {
        let (reply, answer) = sync_channel(1);
        self.0.send(DaemonRequest { command, reply }).map_err(|_| "the daemon has ended".to_string())?;
        answer.recv_timeout(PATIENCE).map_err(|_| "the daemon does not answer".to_string())?
    }
}
