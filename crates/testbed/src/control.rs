//! Control packets of a testbed run, for schemes whose sources send them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Configuration of the sources' control packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Name of the scheme.
    pub scheme: String,
    /// Parameters of the scheme. Times are those of the spec, which `scale` converts.
    pub params: Map<String, Value>,
    /// Scale factor: rate of the hosts / rate in the spec.
    pub scale: f64,
    /// Largest base RTT between hosts, ns.
    pub rtt_ns: u64,
    /// Largest capacity of a link, bit/s.
    pub most_bps: f64,
    /// Size of a full packet on the wire, bytes.
    pub mtu_bytes: u32,
    /// Header bytes of a full packet.
    pub header_bytes: u32,
}

/// Path of a flow, for its source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SourcePath {
    /// Number of links.
    pub hops: u16,
    /// Capacity of the first link, bit/s.
    pub line_rate_bps: f64,
    /// Smallest capacity of the links, bit/s.
    pub min_capacity_bps: f64,
    /// Base RTT, ns.
    pub rtt_ns: u64,
}
