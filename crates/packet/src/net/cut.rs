//! Partitioning of a network into logical processes (LPs).

use subak_core::backend::Injected;
use subak_core::{IdVec, Network, NodeId, NodeKind, Ns};

/// A partition of the network: the logical process of each node. Results do not depend on the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Logical process of each node.
    pub of: IdVec<NodeId, u8>,
    /// The number of logical processes, at least two.
    pub parts: usize,
    /// The lookahead, ns: the least delay of the links between logical processes.
    pub lookahead_ns: Ns,
}

impl Cut {
    /// Partitions the network into at most `parts` logical processes (LPs) with similar numbers of links; `None` if
    /// that is impossible. A switch and its hosts are in the same LP. Links between LPs need a delay and a reverse
    /// link.
    pub fn new(network: &Network, parts: usize) -> Option<Cut> {
        let nodes = network.nodes();
        let links = network.links();
        if parts < 2 || nodes.is_empty() || links.iter().any(|link| link.from.is_none() || link.to.is_none()) {
            return None;
        }
        let groups = groups(network);
        let parts = parts.min(groups.len()).min(usize::from(u8::MAX));
        if parts < 2 {
            return None;
        }
        let mut of = IdVec::filled(u8::MAX, nodes.len());
        let mut load = vec![0; parts];
        let all: usize = groups.iter().flatten().map(|&node| network.out_links(node).len()).sum();
        // Consecutive groups are put into the same LP, since nodes with close numbers are often close in the network.
        let (mut part, mut given) = (0, 0);
        for group in &groups {
            let weight: usize = group.iter().map(|&node| network.out_links(node).len()).sum();
            while part + 1 < parts && (given + weight / 2) * parts >= all * (part + 1) {
                part += 1;
            }
            given += weight;
            load[part] += weight;
            group.iter().for_each(|&node| of[node] = part as u8);
        }
        spread_the_rest(network, &mut of, &mut load);
        let reverse_links = network.reverse_links();
        let between = links.iter_enumerated().filter(|(_, link)| {
            let part = |node: Option<NodeId>| node.map(|node| of[node]);
            part(link.from) != part(link.to)
        });
        let mut lookahead_ns = Ns::MAX;
        for (l, link) in between {
            reverse_links[l]?;
            lookahead_ns = lookahead_ns.min(link.delay_ns);
        }
        // Without links between LPs, the lookahead is unlimited.
        (lookahead_ns > 0).then_some(Cut { of, parts, lookahead_ns: lookahead_ns.min(Ns::MAX / 4) })
    }
}

/// Groups of a switch and its hosts. A host with several switches is in the group of the first one.
fn groups(network: &Network) -> Vec<Vec<NodeId>> {
    let is_host = |node: NodeId| network.nodes()[node].kind == NodeKind::Host;
    let mut groups: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), network.nodes().len());
    for host in network.hosts() {
        let ends = network.out_links(host).iter().filter_map(|&l| network.links()[l].to);
        // Hosts that are connected to hosts only form groups of their own.
        let at = ends.filter(|&node| !is_host(node)).min().unwrap_or(host);
        groups[at].push(host);
    }
    for (node, group) in groups.iter_enumerated_mut() {
        if !group.is_empty() && !group.contains(&node) {
            group.push(node);
        }
    }
    groups.into_iter().filter(|group| !group.is_empty()).collect()
}

/// Assigns each switch without hosts to the logical process (LP) to which most of its links go, if that LP then has
/// at most an equal share of all links.
fn spread_the_rest(network: &Network, of: &mut IdVec<NodeId, u8>, load: &mut [usize]) {
    let parts = load.len();
    let mut left: Vec<NodeId> = of.iter_enumerated().filter(|&(_, &part)| part == u8::MAX).map(|(n, _)| n).collect();
    let total: usize = load.iter().sum::<usize>() + left.iter().map(|&n| network.out_links(n).len()).sum::<usize>();
    let most = total.div_ceil(parts);
    while !left.is_empty() {
        let links_to = |node: NodeId, of: &IdVec<NodeId, u8>| {
            let mut links = vec![0usize; parts];
            let ends = network.out_links(node).iter().filter_map(|&l| network.links()[l].to);
            ends.filter(|&end| of[end] != u8::MAX).for_each(|end| links[usize::from(of[end])] += 1);
            links
        };
        // Switches nearest to the hosts come first; unreachable switches go to any LP.
        let (ready, later): (Vec<_>, Vec<_>) =
            left.iter().copied().partition(|&node| links_to(node, of).iter().any(|&links| links > 0));
        let (ready, later) = if ready.is_empty() { (later, ready) } else { (ready, later) };
        let links: Vec<_> = ready.iter().map(|&node| links_to(node, of)).collect();
        for (node, links) in ready.into_iter().zip(links) {
            let weight = network.out_links(node).len();
            let has_room = |&part: &usize| load[part] + weight <= most;
            let best = |part: &usize| (links[*part], std::cmp::Reverse(load[*part]), std::cmp::Reverse(*part));
            let part = (0..parts).filter(has_room).max_by_key(best);
            let part = part.or_else(|| (0..parts).min_by_key(|&part| load[part])).unwrap_or(0);
            load[part] += weight;
            of[node] = part as u8;
        }
        left = later;
    }
}

/// Largest capacity of any link at any time, bit/s.
pub(crate) fn fastest_bps(network: &Network, faults: &[Injected]) -> f64 {
    let later = faults.iter().filter_map(|fault| match fault {
        Injected::Capacity { capacity_bps, .. } => Some(*capacity_bps),
        _ => None,
    });
    network.links().iter().map(|link| link.capacity_bps).chain(later).fold(0.0, f64::max)
}
