//! Doubts: warnings of a scheme whose parameters do not suit the network.

use super::{PathInfo, Port};
use crate::{Network, Ns};

/// A network as a scheme sees it before a run.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The network.
    pub network: &'a Network,
    /// Its output ports, by link.
    pub ports: &'a [Port],
    /// The paths between hosts with the shortest and the longest base RTT, where there are hosts.
    pub paths: Option<(PathInfo, PathInfo)>,
}

/// Something that makes a scheme's results worth less than they seem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The subject, in one word.
    pub kind: &'static str,
    /// The problem with its figures, and a hint.
    pub text: String,
}

impl Doubt {
    /// A threshold of `param` is not below the buffer of some of the ports, for which `threshold_bytes` gives it: nothing is
    /// marked before packets are dropped.
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

    /// Links update their prices every `interval_ns`, in less than half of the longest base RTT.
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

    /// A sender slows down once a round trip takes `target_ns` on the longest path, which one full queue does not bring about.
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
