//! Split of a transfer: the bytes that flow as a fluid, and the delay of the last packet.

use subak_core::backend::{FlowPlan, PacketSizes};
use subak_core::idle::{idle_fct_ns, wire_time_ns};
use subak_core::{LinkId, Network, Ns};

/// Bytes on the wire that the flow sends at its rate, and the additional delay of its last packet, ns. That
/// packet is stored and forwarded at line rate, even if the flow's demand is lower. The first value may therefore
/// be slightly below the flow's bytes on the wire. With several paths the delay is the largest.
pub(crate) fn tail(network: &Network, sizes: PacketSizes, plan: &FlowPlan) -> (f64, Ns) {
    let Some(size) = plan.size_bytes else { return (f64::INFINITY, 0) };
    let wire_bytes = sizes.wire_bytes(size) as f64;
    let narrowest =
        |path: &[LinkId]| path.iter().map(|&l| network.links()[l].capacity_bps).fold(plan.demand_bps, f64::min);
    let idle_ns = |path: &[LinkId], size| idle_fct_ns(network, path, sizes, size, plan.demand_bps);
    if let [route] = plan.routes.as_slice() {
        let (rate, idle_ns) = (narrowest(&route.forward), idle_ns(&route.forward, size));
        let fluid = wire_bytes.min(idle_ns as f64 * rate / 8e9);
        return (fluid, idle_ns.saturating_sub(wire_time_ns(fluid, rate)));
    }
    let last = size.min(u64::from(sizes.mss_bytes()));
    let last_wire = sizes.wire_bytes(last) as f64;
    let tail = |path: &[LinkId]| idle_ns(path, last).saturating_sub(wire_time_ns(last_wire, narrowest(path)));
    (wire_bytes, plan.routes.iter().map(|r| tail(&r.forward)).max().unwrap_or(0))
}
