//! Requests of other threads to the daemon's loop.

use crate::config::Config;
use crate::plan::NetworkPlan;
use crate::state::Look;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::time::Duration;

/// Time limit for a reply of the daemon's loop.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request, and the channel for its reply.
pub struct DaemonRequest {
    /// The command.
    pub command: DaemonCommand,
    /// Channel for one reply.
    pub reply: SyncSender<Result<Look, String>>,
}

/// A command to the daemon's loop.
pub enum DaemonCommand {
    /// Report the state.
    Look,
    /// Use a reloaded configuration and network.
    Plan(Box<Config>, Box<NetworkPlan>),
    /// Set a link's capacity.
    Link {
        /// Name of the link.
        link: String,
        /// Capacity, bit/s: 0 if the link is down, `None` for the configured one.
        capacity_bps: Option<f64>,
    },
    /// Limit the total weight of a tenant's flowlets.
    Quota {
        /// Name of the tenant.
        tenant: String,
        /// Limit of the weight.
        weight: f64,
    },
    /// Stop granting. The standby begins to serve, if there is one. Granted rates remain valid until their lease
    /// expires.
    Drain,
    /// Resume granting after [`DaemonCommand::Drain`].
    Serve,
    /// Stop the daemon.
    End,
}

/// Sends requests to the daemon's loop.
#[derive(Clone)]
pub struct Line(Sender<DaemonRequest>);

impl Line {
    /// Sends to the receiver of this channel.
    pub fn new(requests: Sender<DaemonRequest>) -> Line {
        Line(requests)
    }

    /// Sends a command and waits for the reply: the daemon's state after it.
    pub fn tell(&self, command: DaemonCommand) -> Result<Look, String> {
        let (reply, answer) = sync_channel(1);
        self.0.send(DaemonRequest { command, reply }).map_err(|_| "the daemon has ended".to_string())?;
        answer.recv_timeout(PATIENCE).map_err(|_| "the daemon does not answer".to_string())?
    }
}
