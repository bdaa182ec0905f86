//! FlowBlocks and LinkBlocks (Flowtune, section 4): the assignment of flows and links to threads.
//!
//! Links that lead up from a group of racks form its upward LinkBlock, those that lead down to it its downward one. A
//! FlowBlock has the flows from one group to another, which cross no other LinkBlocks than these two. The paper
//! describes networks of two tiers only. The method requires that groups share no links, and on a fat-tree racks of a
//! pod do. So groups are the components left without the topmost switches: racks on two tiers, pods on three.

use std::collections::VecDeque;
use subak_core::{IdVec, InputError, LinkId, Network, NodeId};

/// The LinkBlock of each link.
#[derive(Debug, Clone)]
pub struct Partition {
    groups: usize,
    /// Number of each link's LinkBlock: twice the group, plus one for a downward link.
    block: IdVec<LinkId, u32>,
}

impl Partition {
    /// Partition of a network of two or three tiers into at most `groups` groups of neighboring racks or pods.
    pub fn of(network: &Network, groups: usize) -> Result<Self, InputError> {
        let level = levels(network);
        let top = level.iter().copied().filter(|&l| l != u32::MAX).max().unwrap_or(0);
        let component = components(network, |n| level[n] < top);
        let pods = component.iter().filter_map(|c| *c).max().map_or(0, |c| c + 1);
        let groups = groups.clamp(1, pods.max(1));
        let group = |n: NodeId| component[n].map(|c| (c * groups / pods) as u32);
        let block = |link: &subak_core::Link| {
            let (from, to) = (link.from?, link.to?);
            match level[from] < level[to] {
                true => Some(2 * group(from)?),
                false => Some(2 * group(to)? + 1),
            }
        };
        let block = network.links().iter().map(|link| {
            block(link).ok_or_else(|| {
                let what = format!("link \"{}\" belongs to no rack or pod", link.id);
                InputError::new("network", what, "give a network of hosts and two or three tiers of switches")
            })
        });
        Ok(Partition { groups, block: block.collect::<Result<_, _>>()? })
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Number of a link's LinkBlock: twice the group, plus one for a downward link.
    pub fn block(&self, link: LinkId) -> usize {
        self.block[link] as usize
    }

    /// FlowBlock of a path, (source group, destination group); an error if it crosses a third group.
    pub fn flow_block(&self, path: &[LinkId]) -> Result<(usize, usize), InputError> {
        let of = |down: usize| {
            let mut blocks = path.iter().map(|&l| self.block(l)).filter(|b| b % 2 == down).map(|b| b / 2);
            let first = blocks.next();
            if blocks.any(|b| Some(b) != first) {
                let what = "it crosses the links of more than one group upwards, or downwards";
                return Err(InputError::new("path", what, "give shortest paths, which go up once and down once"));
            }
            Ok(first)
        };
        let (up, down) = (of(0)?, of(1)?);
        let any = up.or(down).unwrap_or(0);
        Ok((up.unwrap_or(any), down.unwrap_or(any)))
    }
}

/// Distance of each node from the nearest host, in links.
fn levels(network: &Network) -> IdVec<NodeId, u32> {
    let mut level = IdVec::filled(u32::MAX, network.nodes().len());
    let mut next: VecDeque<NodeId> = network.hosts().collect();
    next.iter().for_each(|&n| level[n] = 0);
    while let Some(n) = next.pop_front() {
        for &l in network.out_links(n) {
            let Some(to) = network.links()[l].to else { continue };
            if level[to] == u32::MAX {
                level[to] = level[n] + 1;
                next.push_back(to);
            }
        }
    }
    level
}

/// Connected component of each node with `inside`, numbered in the order of the first node.
fn components(network: &Network, inside: impl Fn(NodeId) -> bool) -> IdVec<NodeId, Option<usize>> {
    let nodes = network.nodes().len();
    let mut near = IdVec::<NodeId, _>::filled(Vec::new(), nodes);
    for link in network.links() {
        if let (Some(a), Some(b)) = (link.from, link.to) {
            near[a].push(b);
            near[b].push(a);
        }
    }
    let (mut component, mut count) = (IdVec::filled(None, nodes), 0);
    for first in NodeId::first(nodes) {
        if component[first].is_some() || !inside(first) {
            continue;
        }
        let mut open = vec![first];
        component[first] = Some(count);
        while let Some(n) = open.pop() {
            for &m in near[n].iter().filter(|&&m| inside(m)) {
                if component[m].is_none() {
                    component[m] = Some(count);
                    open.push(m);
                }
            }
        }
        count += 1;
    }
    component
}
