//! From a scheme's name to a running simulation, and what a simulation looks like from outside.

use crate::sim::Sim;
use std::collections::BinaryHeap;
use subak_core::driver::{Driver, FlowPlan, FlowView, Injected, LinkView, PacketSizes};
use subak_core::scheme::{Queue, Scheme};
use subak_core::{Fault, FlowId, LinkId, Network, NodeId, Ns};
use subak_schemes::Visitor;

/// Starts a simulation of the scheme called `name` with `params` (as a spec gives them) on an idle network. `seed`
/// decides which packets the injected losses take.
pub fn build(
    name: &str,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Driver>, Fault> {
    check(network, sizes)?;
    subak_schemes::with_scheme(name, params, Maker { network, sizes, faults, seed })
}

struct Maker<'a> {
    network: &'a Network,
    sizes: PacketSizes,
    faults: &'a [Injected],
    seed: u64,
}

impl Visitor for Maker<'_> {
    type Out = Box<dyn Driver>;
    fn visit<S: Scheme>(self, scheme: S) -> Box<dyn Driver> {
        Box::new(Sim::new(scheme, self.network, self.sizes, self.faults, self.seed))
    }
}

fn check(network: &Network, sizes: PacketSizes) -> Result<(), Fault> {
    if sizes.header_bytes >= sizes.mtu_bytes || sizes.mtu_bytes > 65_535 || sizes.ack_bytes == 0 {
        let what = format!("packets of {} bytes with {} of headers", sizes.mtu_bytes, sizes.header_bytes);
        return Err(Fault::new("packets", what, "leave room for payload, and let a packet have at most 65535 bytes"));
    }
    for link in network.links() {
        if link.capacity_bps < 1e3 {
            let what = format!("link \"{}\" has {} bit/s", link.id, link.capacity_bps);
            return Err(Fault::new("network", what, "the packet simulator wants at least 1 kb/s"));
        }
    }
    Ok(())
}

/// Room in a queue where the network says nothing: 360 us of the link's rate (300 full packets at 10 Gb/s), at least
/// 100 packets.
pub(crate) fn default_buffer_bytes(capacity_bps: f64) -> u64 {
    ((capacity_bps * 360e-6 / 8.0) as u64).max(150_000)
}

/// Buckets that hold a few events each when all links are busy: `log2` of their span in ns.
pub(crate) fn bucket_shift(network: &Network) -> u32 {
    let total_bps: f64 = network.links().iter().map(|l| l.capacity_bps).sum();
    let gap_ns = 1500.0 * 8e9 / total_bps.max(1.0);
    let span_ns = (4.0 * gap_ns).clamp(1.0, 65_536.0);
    (span_ns as u64).ilog2()
}

/// The longest round trip of a full packet and its acknowledgement on the idle network, found from the two ends of a
/// longest way (exact on trees and the usual fabrics). Links without ends count as one chain.
pub(crate) fn longest_rtt_ns(network: &Network, sizes: PacketSizes) -> Ns {
    let crossing = |l: LinkId, bytes: u32| {
        let link = &network.links()[l as usize];
        link.delay_ns + (f64::from(bytes) * 8e9 / link.capacity_bps).ceil() as Ns
    };
    let rtt = |l: LinkId| crossing(l, sizes.mtu_bytes) + crossing(l, sizes.ack_bytes);
    let loose: Ns =
        (0..network.links().len() as LinkId).filter(|&l| network.links()[l as usize].from.is_none()).map(rtt).sum();
    let Some(start) = network.hosts().next().or((!network.nodes().is_empty()).then_some(0)) else {
        return loose.max(1);
    };
    let (far, _) = farthest(network, start, rtt);
    let (_, across_ns) = farthest(network, far, rtt);
    across_ns.max(loose).max(1)
}

/// The node farthest from `start` by the sum of `cost` over links, and how far it is.
fn farthest(network: &Network, start: NodeId, cost: impl Fn(LinkId) -> Ns) -> (NodeId, Ns) {
    let mut distance = vec![Ns::MAX; network.nodes().len()];
    let mut heap = BinaryHeap::from([(std::cmp::Reverse(0), start)]);
    distance[start as usize] = 0;
    let mut last = (start, 0);
    while let Some((std::cmp::Reverse(d), node)) = heap.pop() {
        if d > distance[node as usize] {
            continue;
        }
        last = (node, d);
        for &l in network.out_links(node) {
            let Some(to) = network.links()[l as usize].to else { continue };
            let next = d + cost(l);
            if next < distance[to as usize] {
                distance[to as usize] = next;
                heap.push((std::cmp::Reverse(next), to));
            }
        }
    }
    last
}

impl<S: Scheme> Driver for Sim<S> {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        self.add_flow(plan)
    }
    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns, |_| false);
    }
    fn run_until_done(&mut self, until_ns: Ns) {
        self.run(until_ns, |sim| sim.unfinished == 0);
    }
    fn now_ns(&self) -> Ns {
        self.now_ns
    }
    fn open_flows(&self) -> usize {
        self.open_flows
    }
    fn flow(&self, flow: FlowId) -> FlowView {
        let f = &self.flows[flow as usize];
        FlowView { assigned_bps: self.assigned_bps(f), ..f.view }
    }
    fn link(&self, link: LinkId) -> LinkView {
        let p = &self.ports[link as usize];
        LinkView { queued_bytes: p.queue.bytes(), queued_packets: p.queue.packets() as u64, ..p.view }
    }
    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        self.waits.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
    }
    fn packet_hops(&self) -> u64 {
        self.packet_hops
    }
    fn events(&self) -> u64 {
        self.events
    }
}
