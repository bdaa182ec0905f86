//! The schedule of the traffic program.

use crate::{Control, SCHEMA, SourcePath, WeightChange};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The most flows of one schedule.
pub const MOST_FLOWS: usize = 1_000_000;
/// The most hosts of one schedule.
pub const MOST_HOSTS: usize = 4096;

/// Flows between hosts that are network namespaces of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Of this document.
    pub schema: u32,
    /// The congestion control of every flow, as the kernel calls it.
    pub congestion: String,
    /// Whether it hears of weights, by a private option of the socket.
    #[serde(default)]
    pub weighted: bool,
    /// Sources send control packets, and pace their data by what these bring.
    #[serde(default)]
    pub control: Option<Control>,
    /// By number.
    pub hosts: Vec<Host>,
    /// Output queues that are looked at, in the order of [`crate::LinkSample::links`].
    #[serde(default)]
    pub ports: Vec<VethPort>,
    /// By number.
    pub flows: Vec<ScheduledFlow>,
    /// Nothing is waited for after this time, ns.
    pub until_ns: u64,
    /// When ports are looked at once, ns.
    #[serde(default)]
    pub look_ns: u64,
    /// Interval between records of arrived bytes, ns; 0: never.
    #[serde(default)]
    pub flows_every_ns: u64,
    /// Sampling interval of ports, ns; 0: never.
    #[serde(default)]
    pub links_every_ns: u64,
}

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The file of its namespace, such as `/proc/PID/ns/net`.
    pub netns: String,
}

/// An output queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VethPort {
    /// The file of its namespace.
    pub netns: String,
    /// The number of its device there.
    pub device: u32,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduledFlow {
    /// The sending host's number.
    pub src: u32,
    /// The receiving host's number.
    pub dst: u32,
    /// The sender's address: it decides the way back.
    pub from: Ipv4Addr,
    /// The receiver's address: it decides the way there.
    pub to: Ipv4Addr,
    /// When it starts, ns.
    pub start_ns: u64,
    /// When it stops, though it may have more to send, ns.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Payload, bytes; none for a flow without end.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Its weight.
    #[serde(default = "one")]
    pub weight: f64,
    /// New weights, in the order of time.
    #[serde(default)]
    pub weights: Vec<WeightChange>,
    /// Where it goes, for sources that send control packets.
    #[serde(default)]
    pub path: Option<SourcePath>,
}

fn one() -> f64 {
    1.0
}

impl Schedule {
    /// Says what is wrong with it: the place, what is there, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema: it is {}; this program reads {SCHEMA}", self.schema));
        }
        if self.flows.len() > MOST_FLOWS || self.hosts.len() > MOST_HOSTS || self.ports.len() > MOST_FLOWS {
            return Err(format!("flows: at most {MOST_FLOWS} flows and {MOST_HOSTS} hosts are possible"));
        }
        if self.congestion.is_empty() || self.congestion.len() > 15 || self.congestion.contains('\0') {
            return Err(format!("congestion: \"{}\" is no name of a congestion control", self.congestion));
        }
        for (f, flow) in self.flows.iter().enumerate() {
            let hosts = self.hosts.len();
            if flow.src as usize >= hosts || flow.dst as usize >= hosts {
                return Err(format!("flows[{f}]: there are hosts 0 to {}", hosts.saturating_sub(1)));
            }
            if flow.size_bytes == Some(0) {
                return Err(format!("flows[{f}].size_bytes: it is 0; give 1 or more, or leave it away"));
            }
            if !(flow.weight.is_finite() && flow.weight > 0.0) {
                return Err(format!("flows[{f}].weight: it is {}; give a positive number", flow.weight));
            }
            let ends_ns = flow.stop_ns.unwrap_or(self.until_ns);
            if flow.start_ns > ends_ns || ends_ns > self.until_ns {
                return Err(format!("flows[{f}]: it starts at {} ns and ends at {ends_ns}", flow.start_ns));
            }
        }
        Ok(())
    }
}
