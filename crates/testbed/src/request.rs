//! A request to the testbed: a network, its flows and the scheme.

use crate::TimedChange;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One trial of a spec, scaled for hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestbedRequest {
    /// Version of the document.
    pub schema: u32,
    /// Name of the scheme.
    pub scheme: String,
    /// Parameters of the scheme. Times and rates are those of the spec, which `scale` converts.
    pub params: Map<String, Value>,
    /// Scale factor: rate of the hosts / rate in the spec, which equals time in the spec / time of the hosts.
    pub scale: f64,
    /// Size of a full data packet, bytes on the wire with the Ethernet header.
    pub mtu_bytes: u32,
    /// Header bytes of a data packet.
    pub header_bytes: u32,
    /// Smallest size of a packet on the wire, bytes.
    pub least_bytes: u32,
    /// Largest base RTT, ns, including the hosts' processing.
    pub rtt_ns: u64,
    /// Fraction of control packets that each link loses.
    #[serde(default)]
    pub control_loss: f64,
    /// Whether links have their delays. Without, only hops take time.
    #[serde(default)]
    pub delays: bool,
    /// Changes of links, in time order.
    #[serde(default)]
    pub faults: Vec<TimedChange>,
    /// Seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// Nodes, in the order of their numbers.
    pub nodes: Vec<RequestNode>,
    /// Directed links, in the order of their numbers.
    pub links: Vec<RequestLink>,
    /// Flows, in the order of the results.
    pub flows: Vec<RequestFlow>,
    /// Time before which flows start, ns.
    pub duration_ns: u64,
    /// Time at which open flows are aborted, ns.
    pub until_ns: u64,
    /// Time of an additional sample of the links, ns: the end of the warm-up.
    pub look_ns: u64,
    /// Interval between records of arrived bytes, ns; 0: never.
    pub flows_every_ns: u64,
    /// Sampling interval of links, ns; 0: never.
    pub links_every_ns: u64,
}

/// A node of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestNode {
    /// Name of the node in the spec.
    pub name: String,
    /// Whether the node is a host: flows start and end there.
    pub host: bool,
}

/// A directed link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLink {
    /// Name of the link in the spec.
    pub id: String,
    /// Number of the node at which the link starts.
    pub from: u32,
    /// Number of the node at which the link ends.
    pub to: u32,
    /// Capacity, bit/s on the wire.
    pub rate_bps: f64,
    /// Size of the link's queue, bytes.
    pub buffer_bytes: u64,
    /// Propagation delay, ns.
    pub delay_ns: u64,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFlow {
    /// Links of the flow's data packets, from source to destination.
    pub forward: Vec<u32>,
    /// Links of the flow's ACKs, from destination to source.
    pub back: Vec<u32>,
    /// Start time, ns.
    pub start_ns: u64,
    /// Time at which the flow stops, even if data remain, ns.
    pub stop_ns: Option<u64>,
    /// Payload, bytes; `None` for an endless flow.
    pub size_bytes: Option<u64>,
    /// Weight of the flow at its start.
    pub weight: f64,
    /// Changes of the weight, in time order.
    #[serde(default)]
    pub weights: Vec<WeightChange>,
}

/// A change of a flow's weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightChange {
    /// Time, ns.
    pub at_ns: u64,
    /// New weight.
    pub weight: f64,
}
