//! Values derived from a network: default buffers, the event wheel's bucket width, the largest base RTT, the largest line rate.

use std::collections::BinaryHeap;
use subak_core::backend::PacketSizes;
use subak_core::rng::mix;
use subak_core::scheme::Port;
use subak_core::{IdVec, Link, LinkId, Network, NodeId, NodeKind, Ns};

/// Default buffer of a port, bytes: 360 us at the link's rate (300 packets of 1500 bytes at 10 Gb/s), at least 100
/// packets.
pub fn default_buffer_bytes(capacity_bps: f64) -> u64 {
    ((capacity_bps * 360e-6 / 8.0) as u64).max(150_000)
}

/// Width of the event wheel's buckets, as the binary logarithm of ns: a few events per bucket when all links are
/// busy.
pub(crate) fn bucket_shift(network: &Network) -> u32 {
    let total_bps: f64 = network.links().iter().map(|l| l.capacity_bps).sum();
    let gap_ns = 1500.0 * 8e9 / total_bps.max(1.0);
    let span_ns = (8.0 * gap_ns).clamp(1.0, f64::from(1 << crate::wheel::MAX_SHIFT));
    (span_ns as u64).ilog2()
}

/// Largest base RTT of a full packet and its ACK, ns. The search goes from a host to the node farthest from it, and
/// from there to the farthest node: exact on trees and common topologies. Paths are those of smallest delay; routes
/// with the fewest links may take longer. Links without nodes count as one chain.
pub fn longest_rtt_ns(network: &Network, sizes: PacketSizes) -> Ns {
    let rtt = |l: LinkId| crossing_rtt_ns(&network.links()[l], sizes);
    let loose: Ns = network.links().ids().filter(|&l| network.links()[l].from.is_none()).map(rtt).sum();
    let Some(start) = network.hosts().next().or((!network.nodes().is_empty()).then_some(NodeId(0))) else {
        return loose.max(1);
    };
    let (far, _) = farthest(network, start, rtt);
    let (_, across_ns) = farthest(network, far, rtt);
    across_ns.max(loose).max(1)
}

/// The output port of link `l`.
pub(crate) fn port(l: LinkId, link: &Link, sizes: PacketSizes, rtt_ns: Ns, seed: u64) -> Port {
    Port {
        link: l,
        from: link.from,
        to: link.to,
        seed: mix(seed ^ mix(u64::from(l.0))),
        capacity_bps: link.capacity_bps,
        delay_ns: link.delay_ns,
        buffer_bytes: link.buffer_bytes.unwrap_or_else(|| crate::sizing::default_buffer_bytes(link.capacity_bps)),
        mtu_bytes: sizes.mtu_bytes,
        rtt_ns,
        queued_bytes: 0,
        queued_packets: 0,
    }
}

/// Contribution to a base RTT of a link and of a reverse link of the same capacity and delay, ns.
pub(crate) fn crossing_rtt_ns(link: &Link, sizes: PacketSizes) -> Ns {
    let crossing = |bytes: u32| link.delay_ns + (f64::from(bytes) * 8e9 / link.capacity_bps).ceil() as Ns;
    crossing(sizes.mtu_bytes) + crossing(sizes.ack_bytes)
}

/// Largest capacity of a link out of a host, bit/s; without hosts, of any link.
pub(crate) fn largest_line_bps(network: &Network) -> f64 {
    let is_line = |link: &&Link| link.from.is_some_and(|n| network.nodes()[n].kind == NodeKind::Host);
    let largest =
        |of: &dyn Fn(&&Link) -> bool| network.links().iter().filter(of).map(|link| link.capacity_bps).reduce(f64::max);
    largest(&is_line).or_else(|| largest(&|_| true)).unwrap_or(0.0)
}

/// Node farthest from `start` by the sum of `cost` over links, and its distance.
fn farthest(network: &Network, start: NodeId, cost: impl Fn(LinkId) -> Ns) -> (NodeId, Ns) {
    let mut distance = IdVec::filled(Ns::MAX, network.nodes().len());
    let mut heap = BinaryHeap::from([(std::cmp::Reverse(0), start)]);
    distance[start] = 0;
    let mut last = (start, 0);
    while let Some((std::cmp::Reverse(d), node)) = heap.pop() {
        if d > distance[node] {
            continue;
        }
        last = (node, d);
        for &l in network.out_links(node) {
            let Some(to) = network.links()[l].to else { continue };
            let next = d + cost(l);
            if next < distance[to] {
                distance[to] = next;
                heap.push((std::cmp::Reverse(next), to));
            }
        }
    }
    last
}
