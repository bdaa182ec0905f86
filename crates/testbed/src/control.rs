//! Schemes whose sources send control packets beside their data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The scheme of all sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Its name.
    pub scheme: String,
    /// Its parameters. Times among them are of the spec, not of the hosts: see `scale`.
    pub params: Map<String, Value>,
    /// Rates of the hosts over those of the spec.
    pub scale: f64,
    /// The longest idle round trip of the hosts, ns.
    pub rtt_ns: u64,
    /// The largest rate of a link, bit/s.
    pub most_bps: f64,
    /// A full packet on the wire, bytes, and the part of it that is headers.
    pub mtu_bytes: u32,
    /// See `mtu_bytes`.
    pub header_bytes: u32,
}

/// A source's path parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SourcePath {
    /// Links.
    pub hops: u16,
    /// Rate of the first, bit/s.
    pub line_rate_bps: f64,
    /// Rate of the narrowest, bit/s.
    pub min_capacity_bps: f64,
    /// An idle round trip, ns.
    pub rtt_ns: u64,
}
