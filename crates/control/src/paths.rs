//! Which links a flowlet crosses (Flowtune, section 6, "Path discovery").

use subak_core::route::{Router, Routing};
use subak_core::{LinkId, Network, NodeId};

/// The allocator's knowledge of paths. Endpoints have the numbers of the network's nodes.
pub trait Paths: Send {
    /// The links from one endpoint to another; `path` is what the flowlet's start says of it. `None`: there is no way.
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>>;
    /// The link that all traffic of an endpoint leaves by, and the one that all of it comes by, where there is one.
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)>;
}

/// Paths by the switches' hash: what decides a flowlet's path is the hash's key.
pub struct Ecmp {
    router: Router,
    access: Vec<Option<(LinkId, LinkId)>>,
}

impl Ecmp {
    /// Shortest paths of `network`, as `routing` has them.
    pub fn new(network: &Network, routing: Routing) -> Self {
        let only = |mut links: Box<dyn Iterator<Item = LinkId> + '_>| links.next().filter(|_| links.next().is_none());
        let into = |node: NodeId| {
            let to = move |(l, link): (usize, &subak_core::Link)| (link.to == Some(node)).then_some(l as LinkId);
            network.links().iter().enumerate().filter_map(to)
        };
        let access = |node: NodeId| {
            let out = only(Box::new(network.out_links(node).iter().copied()))?;
            Some((out, only(Box::new(into(node)))?))
        };
        Ecmp {
            router: Router::by(network, routing),
            access: (0..network.nodes().len() as NodeId).map(access).collect(),
        }
    }
}

impl Paths for Ecmp {
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>> {
        if from.max(to) as usize >= self.access.len() || from == to {
            return None;
        }
        self.router.path(from, to, path.into()).ok()
    }
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        *self.access.get(endpoint as usize)?
    }
}

/// Only the first and the last link of each path, as if all hosts were at one big switch: where paths are not known. What the
/// core lacks, the endpoints' own congestion control sees to (section 6, "Using Flowtune with TCP").
pub struct BigSwitch<P>(pub P);

impl<P: Paths> Paths for BigSwitch<P> {
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>> {
        match self.0.path(from, to, path)?.as_slice() {
            [first, .., last] => Some(vec![*first, *last]),
            short => Some(short.to_vec()),
        }
    }
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        self.0.access(endpoint)
    }
}
