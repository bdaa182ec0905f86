//! Doubts: warnings about a scheme whose parameters do not suit the network.

use super::{PathInfo, Port};
use crate::{Network, Ns};

/// The network of a run, as a scheme checks it before the run.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The network.
    pub network: &'a Network,
    /// Output ports of the network, one for each link.
    pub ports: &'a [Port],
    /// The paths between hosts with the smallest and the largest base RTT; `None` without hosts.
    pub paths: Option<(PathInfo, PathInfo)>,
    /// The flows of the run's first seed.
    pub flows: FlowShares,
    /// Size of a full packet on the wire, bytes.
    pub mtu_bytes: u32,
}

/// The flows of a run, as a scheme checks them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlowShares {
    /// The least share of a link that endless flows have at once; `None` if no two share a link.
    pub least: Option<LeastShare>,
    /// Whether data of endless flows and ACKs share links.
    pub both_ways: bool,
    /// Smallest and largest weight of an endless flow; `None` if there are none.
    pub weights: Option<(f64, f64)>,
}

/// The least share of a link that a subflow has among endless flows, in proportion to weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeastShare {
    /// Number of subflows of endless flows at the link.
    pub flows: usize,
    /// Whether some of these flows have several subflows, which may each have less than an equal part.
    pub pooled: bool,
    /// The share, bit/s.
    pub bps: f64,
    /// Base RTT of such a flow, ns.
    pub rtt_ns: f64,
}

impl LeastShare {
    /// Number of packets of `mtu_bytes` that the share is in `ns`.
    pub fn packets(&self, ns: f64, mtu_bytes: u32) -> f64 {
        self.bps * ns / (8e9 * f64::from(mtu_bytes))
    }
}

/// A warning that parameters do not suit the network, so that the scheme's results may mislead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The subject of the warning, one word.
    pub kind: &'static str,
    /// The problem with its figures, and a hint.
    pub text: String,
}

impl Doubt {
    /// A warning if a marking threshold of `param` reaches the buffer of some ports: packets are dropped before any
    /// is marked. `threshold_bytes` is the threshold at a port.
    pub fn of_marking(around: &Around, param: &str, threshold_bytes: impl Fn(&Port) -> u64) -> Option<Doubt> {
        let above = |port: &&Port| threshold_bytes(port) >= port.buffer_bytes;
        let first = around.ports.iter().find(above)?;
        let text = format!(
            "params.{param} comes to {} bytes at link \"{}\", whose buffer has {}, and so at {} of {} links: packets are dropped \
             before any is marked; take a smaller {param} or a larger buffer",
            threshold_bytes(first),
            around.network.links()[first.link].id,
            first.buffer_bytes,
            around.ports.iter().filter(above).count(),
            around.ports.len()
        );
        Some(Doubt { kind: "marking", text })
    }

    /// A warning if links update their prices more often than twice per longest base RTT.
    pub fn of_price_interval(around: &Around, interval_ns: Ns) -> Option<Doubt> {
        let rtt_ns = around.ports.first()?.rtt_ns;
        let text = format!(
            "params.price_interval comes to {:.1} us, and the longest base RTT is {:.1} us: prices move several times before \
             any rate follows, and may not converge; leave price_interval out, or take two RTTs",
            interval_ns as f64 / 1e3,
            rtt_ns as f64 / 1e3
        );
        (2 * interval_ns < rtt_ns).then_some(Doubt { kind: "price-interval", text })
    }

    /// A warning if the least share of a flow is below `least` packets in `in_ns` and its base RTT together, or below
    /// twice as many with several subflows.
    pub fn of_window(around: &Around, in_ns: f64, least: f64, outcome: &str) -> Option<Doubt> {
        let share = around.flows.least?;
        let least = if share.pooled { 2.0 * least } else { least };
        let ns = share.rtt_ns + in_ns;
        let packets = share.packets(ns, around.mtu_bytes);
        let text = format!(
            "{} endless {} share a link, and the least share is {:.2} packets in {:.1} us, of a base RTT of {:.1} us: with less \
             than {least} {outcome}; take fewer flows, smaller packets, or larger delays",
            share.flows,
            if share.pooled { "subflows" } else { "flows" },
            packets,
            ns / 1e3,
            share.rtt_ns / 1e3
        );
        (packets < least).then_some(Doubt { kind: "window", text })
    }

    /// A warning if weights of endless flows are below `least` or above `most`.
    pub fn of_weights(around: &Around, (least, most): (f64, f64), outcome: &str) -> Option<Doubt> {
        let (low, high) = around.flows.weights?;
        let text = format!(
            "weights of endless flows go from {low} to {high}: {outcome}; divide all weights by one number, so that they lie \
             between {least} and {most}, or take the optimizer xwi"
        );
        (low < least || high > most).then_some(Doubt { kind: "weights", text })
    }

    /// A warning if one full queue on the longest path does not raise the RTT to `target_ns`, at which a sender slows
    /// down.
    pub fn of_delay(around: &Around, param: &str, target_ns: f64) -> Option<Doubt> {
        let (_, longest) = around.paths?;
        let full_ns = around.ports.iter().map(|p| p.buffer_bytes as f64 * 8e9 / p.capacity_bps).fold(0.0, f64::max);
        let rtt_ns = longest.base_rtt_ns as f64;
        let text = format!(
            "params.{param} comes to an RTT of {:.1} us on the longest path, and the base RTT and a full queue together to \
             {:.1} us: packets are dropped before any sender slows down; take a smaller {param} or larger buffers",
            target_ns / 1e3,
            (rtt_ns + full_ns) / 1e3
        );
        (target_ns >= rtt_ns + full_ns).then_some(Doubt { kind: "target", text })
    }
}
