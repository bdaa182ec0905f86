//! Warnings about a scheme before a run.

use crate::net::Pfc;
use crate::sizing::port;
use subak_core::backend::{Injected, Kinds, Machine, PacketSizes};
use subak_core::scheme::{Around, Doubt, FlowShares, NodeInfo, PathInfo, Port};
use subak_core::{IdVec, InputError, LinkId, Network, NodeId, NodeKind};
use subak_schemes::Chosen;

/// Largest number of hosts whose paths to all others are examined.
const HOSTS: usize = 16;

/// Warnings about parameters of scheme `name` that do not suit the network. `least`: the least share of a link that endless
/// flows have.
pub fn doubts<'a>(
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    flows: FlowShares,
) -> Result<Vec<Doubt>, InputError> {
    let scheme = subak_schemes::scheme(name, params)?;
    let rules = scheme.rules();
    let sizes = sizes.with(rules.headers);
    let rtt_ns = crate::sizing::longest_rtt_ns(network, sizes);
    let ports: Vec<Port> = network.links().iter_enumerated().map(|(l, link)| port(l, link, sizes, rtt_ns, 0)).collect();
    let around =
        Around { network, ports: &ports, paths: ends_of_rtts(network, sizes), flows, mtu_bytes: sizes.mtu_bytes };
    let mut doubts = scheme.doubts(&around);
    doubts.extend(rules.lossless.and_then(|pfc| Pfc::doubt(pfc, network, sizes, rules.clock)));
    Ok(doubts)
}

/// Why `fault` has no effect on the scheme `name` with `params`; `None` if it may have one.
pub fn ignores<'a>(
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    fault: &Injected,
) -> Result<Option<&'static str>, InputError> {
    let scheme = subak_schemes::scheme(name, params)?;
    let sizes = sizes.with(scheme.rules().headers);
    let at_hop = |l: LinkId| scheme.has_state(&port(l, &network.links()[l], sizes, 1, 0));
    let at_node = |node: NodeId| {
        let out = network.out_links(node).to_vec();
        let is_host = network.nodes()[node].kind == NodeKind::Host;
        let info = NodeInfo { node, is_host, out: out.clone(), into: Vec::new(), seed: 0 };
        scheme.has_node(&info) || out.into_iter().any(at_hop)
    };
    let only_ctl = Kinds { data: false, ack: false, ctl: true };
    let (has, why) = match *fault {
        Injected::Packets { kinds, .. } if kinds == only_ctl => (scheme.sends_ctl(), "it sends no control packets"),
        Injected::Restart { machine: Machine::Controller, .. } => {
            (scheme.has_controller(network), "it has no controller")
        }
        Injected::Restart { machine: Machine::Node(node), .. } => {
            (at_node(node), "it has no state at this node and its links")
        }
        Injected::Restart { machine: Machine::Hop(link), .. } => (at_hop(link), "it has no state at this link"),
        Injected::Packets { .. } | Injected::Capacity { .. } | Injected::Down { .. } => return Ok(None),
    };
    Ok((!has).then_some(why))
}

/// Paths with the smallest and with the largest base RTT, among those from at most [`HOSTS`] hosts to all hosts.
fn ends_of_rtts(network: &Network, sizes: PacketSizes) -> Option<(PathInfo, PathInfo)> {
    let hosts: Vec<NodeId> = network.hosts().collect();
    let step = hosts.len().div_ceil(HOSTS).max(1);
    let mut ends: Option<(PathInfo, PathInfo)> = None;
    for &from in hosts.iter().step_by(step) {
        let paths = paths_from(network, from, sizes);
        for path in hosts.iter().filter(|&&to| to != from).filter_map(|&to| paths[to]) {
            let (shortest, longest) = ends.get_or_insert((path, path));
            if path.base_rtt_ns < shortest.base_rtt_ns {
                *shortest = path;
            }
            if path.base_rtt_ns > longest.base_rtt_ns {
                *longest = path;
            }
        }
    }
    ends
}

/// Path of smallest base RTT from `from` to each node; `None` if there is no path. ACKs take the reverse links.
fn paths_from(network: &Network, from: NodeId, sizes: PacketSizes) -> IdVec<NodeId, Option<PathInfo>> {
    let mut paths: IdVec<NodeId, Option<PathInfo>> = IdVec::filled(None, network.nodes().len());
    let start = PathInfo { hops: 0, line_rate_bps: 0.0, min_capacity_bps: f64::INFINITY, base_rtt_ns: 0 };
    paths[from] = Some(start);
    let mut heap = std::collections::BinaryHeap::from([(std::cmp::Reverse(0), from)]);
    while let Some((std::cmp::Reverse(rtt_ns), node)) = heap.pop() {
        let Some(path) = paths[node].filter(|path| path.base_rtt_ns == rtt_ns) else { continue };
        for &l in network.out_links(node) {
            let link = &network.links()[l];
            let Some(to) = link.to else { continue };
            let next = PathInfo {
                hops: path.hops + 1,
                line_rate_bps: if path.hops == 0 { link.capacity_bps } else { path.line_rate_bps },
                min_capacity_bps: path.min_capacity_bps.min(link.capacity_bps),
                base_rtt_ns: rtt_ns.saturating_add(crate::sizing::crossing_rtt_ns(link, sizes)),
            };
            if paths[to].is_none_or(|known| next.base_rtt_ns < known.base_rtt_ns) {
                paths[to] = Some(next);
                heap.push((std::cmp::Reverse(next.base_rtt_ns), to));
            }
        }
    }
    paths
}
