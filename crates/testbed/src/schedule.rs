//! The flows that `subak-agent traffic` sends between network namespaces, and when.

use crate::{Control, SCHEMA, SourcePath, WeightChange};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Largest number of flows.
pub const MOST_FLOWS: usize = 1_000_000;
/// Largest number of hosts.
pub const MOST_HOSTS: usize = 4096;

/// Flows between hosts, which are network namespaces of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Version of the document.
    pub schema: u32,
    /// Congestion control of every flow, by its name in the kernel.
    pub congestion: String,
    /// Whether this congestion control accepts weights, by a private socket option.
    #[serde(default)]
    pub weighted: bool,
    /// Control packets of the sources, whose rates pace the data; `None` without them.
    #[serde(default)]
    pub control: Option<Control>,
    /// Hosts, in the order of their numbers.
    pub hosts: Vec<Host>,
    /// Output queues to sample, in the order of [`crate::LinkSample::links`].
    #[serde(default)]
    pub ports: Vec<VethPort>,
    /// Flows, in the order of their numbers.
    pub flows: Vec<ScheduledFlow>,
    /// Time at which the run ends even if flows are open, ns.
    pub until_ns: u64,
    /// Time of an additional sample of the ports, ns.
    #[serde(default)]
    pub look_ns: u64,
    /// Interval between records of arrived bytes, ns; 0: never.
    #[serde(default)]
    pub flows_every_ns: u64,
    /// Sampling interval of ports, ns; 0: never.
    #[serde(default)]
    pub links_every_ns: u64,
}

/// A host: a network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// File of the host's namespace, such as `/proc/PID/ns/net`.
    pub netns: String,
}

/// An output queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VethPort {
    /// File of the namespace that has the queue's device.
    pub netns: String,
    /// Number of the queue's device in that namespace.
    pub device: u32,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduledFlow {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Sender's address; it selects the reverse path.
    pub from: Ipv4Addr,
    /// Receiver's address; it selects the path.
    pub to: Ipv4Addr,
    /// Start time, ns.
    pub start_ns: u64,
    /// Time at which the flow stops, even if data remain, ns.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Payload, bytes; `None` for an endless flow.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Weight of the flow at its start.
    #[serde(default = "one")]
    pub weight: f64,
    /// Changes of the weight, in time order.
    #[serde(default)]
    pub weights: Vec<WeightChange>,
    /// Path, for sources that send control packets.
    #[serde(default)]
    pub path: Option<SourcePath>,
}

fn one() -> f64 {
    1.0
}

impl Schedule {
    /// Checks the schedule. An error names the place, the value found and a valid one.
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
