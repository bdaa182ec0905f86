//! A request to the testbed: a network, its flows and the scheme.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One trial of a spec, for hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestbedRequest {
    /// Of this document.
    pub schema: u32,
    /// The scheme by its name.
    pub scheme: String,
    /// Its parameters. Times and rates among them are of the spec, not of the hosts: see `scale`.
    pub params: Map<String, Value>,
    /// Rates of the hosts over those of the spec; times of the spec over those of the hosts.
    pub scale: f64,
    /// A full data packet, bytes on the wire with the Ethernet header.
    pub mtu_bytes: u32,
    /// The part of it that is headers.
    pub header_bytes: u32,
    /// The least that a packet takes on the wire, bytes.
    pub least_bytes: u32,
    /// The longest round trip of the idle network, with what hosts take for it, ns.
    pub rtt_ns: u64,
    /// The share of control packets that each link is to lose.
    #[serde(default)]
    pub control_loss: f64,
    /// Of whatever is random.
    #[serde(default)]
    pub seed: u64,
    /// By number.
    pub nodes: Vec<RequestNode>,
    /// Directed, by number.
    pub links: Vec<RequestLink>,
    /// In the order in which results list them.
    pub flows: Vec<RequestFlow>,
    /// Flows start before this time, ns.
    pub duration_ns: u64,
    /// Time at which open flows are aborted, ns.
    pub until_ns: u64,
    /// When links are looked at besides the end, ns: the end of the warm-up.
    pub look_ns: u64,
    /// Interval between records of arrived bytes, ns; 0: never.
    pub flows_every_ns: u64,
    /// Sampling interval of links, ns; 0: never.
    pub links_every_ns: u64,
}

/// A node of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestNode {
    /// Its name in the spec.
    pub name: String,
    /// Flows start and end here.
    pub host: bool,
}

/// A directed link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestLink {
    /// Its name in the spec.
    pub id: String,
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Capacity, bit/s on the wire.
    pub rate_bps: f64,
    /// Room in the queue before it, bytes.
    pub buffer_bytes: u64,
    /// Propagation delay, ns. Hosts cannot delay packets: the result is compared with what they measure.
    pub delay_ns: u64,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFlow {
    /// The links of its data, source to destination.
    pub forward: Vec<u32>,
    /// The links of its acknowledgements.
    pub back: Vec<u32>,
    /// When it starts, ns.
    pub start_ns: u64,
    /// When it stops, though it may have more to send, ns.
    pub stop_ns: Option<u64>,
    /// Payload, bytes; none for a flow without end.
    pub size_bytes: Option<u64>,
    /// Its weight.
    pub weight: f64,
    /// New weights, in the order of time.
    #[serde(default)]
    pub weights: Vec<WeightChange>,
}

/// A flow has another weight from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightChange {
    /// From when, ns.
    pub at_ns: u64,
    /// Which.
    pub weight: f64,
}
