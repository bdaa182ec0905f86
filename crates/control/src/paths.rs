//! Paths of flowlets (Flowtune, section 6, "Path discovery").

use subak_core::route::{Router, Routing};
use subak_core::{LinkId, Network, NodeId};

/// Paths between endpoints. An endpoint has the number of its node in the network.
pub trait Paths: Send {
    /// Links of a path from one endpoint to another; `path` selects it and comes from the flowlet's start message.
    /// `None`: there is no such path.
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>>;
    /// The links out of and into an endpoint; `None` if the endpoint has several.
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)>;
}

/// The one link out of `node` and the one into it; `None` if the node has several.
fn access(network: &Network, node: NodeId) -> Option<(LinkId, LinkId)> {
    let [out] = network.out_links(node) else { return None };
    let mut into = network.links().iter_enumerated().filter(|(_, link)| link.to == Some(node));
    match (into.next(), into.next()) {
        (Some((link, _)), None) => Some((*out, link)),
        _ => None,
    }
}

/// Paths by the switches' hash; a flowlet's `path` is the hash key.
pub struct Ecmp {
    router: Router,
    access: Vec<Option<(LinkId, LinkId)>>,
}

impl Ecmp {
    /// Shortest paths of `network` under `routing`.
    pub fn new(network: &Network, routing: Routing) -> Self {
        Ecmp::avoiding(network, routing, |_| false)
    }

    /// Like [`Ecmp::new`], without links for which `avoided` is true.
    pub fn avoiding(network: &Network, routing: Routing, avoided: impl Fn(LinkId) -> bool) -> Self {
        let router = Router::avoiding(network, routing, avoided);
        Ecmp { router, access: network.nodes().ids().map(|node| access(network, node)).collect() }
    }
}

impl Paths for Ecmp {
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>> {
        if from.max(to) as usize >= self.access.len() || from == to {
            return None;
        }
        self.router.path(NodeId(from), NodeId(to), path.into()).ok()
    }
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        *self.access.get(endpoint as usize)?
    }
}

/// Paths for networks whose routes are unknown: only the first and the last link of each path, as if all hosts were at
/// one big switch. Congestion of the core is not seen: a connection with a valid rate ignores losses, where the paper
/// leaves it to TCP (section 6, "Using Flowtune with TCP").
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

/// Paths sent by endpoints (section 6: "endpoints can send chosen routes to the allocator"), encoded as turns. A turn is the
/// number of the next link at a node: a digit in the base of the node's outgoing links, the first turn lowest.
pub struct Turns {
    network: Network,
    access: Vec<Option<(LinkId, LinkId)>>,
}

/// Largest number of links of a path: a code that leads in a cycle is no path.
const MOST_TURNS: usize = 32;

impl Turns {
    /// Turns at the nodes of `network`.
    pub fn new(network: &Network) -> Self {
        let nodes = network.nodes().ids();
        Turns { network: network.clone(), access: nodes.map(|node| access(network, node)).collect() }
    }

    /// Code of `links`, a path that starts at a node. `None` if the code does not fit 32 bits, or `links` is no path.
    pub fn code(network: &Network, links: &[LinkId]) -> Option<u32> {
        let (mut code, mut base) = (0u32, 1u32);
        for &link in links {
            let out = network.out_links(network.links().get(LinkId::from_index(link.index()))?.from?);
            let turn = out.iter().position(|&l| l == link)? as u32;
            code = code.checked_add(turn.checked_mul(base)?)?;
            // The last turn may fit even if the next base does not.
            base = base.saturating_mul(out.len() as u32);
        }
        (base < u32::MAX).then_some(code)
    }
}

impl Paths for Turns {
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>> {
        let (mut at, to, mut code) = (NodeId(from), NodeId(to), path);
        if at.index() >= self.network.nodes().len() {
            return None;
        }
        let mut links = Vec::new();
        while at != to {
            let out = self.network.out_links(at);
            let turns = out.len();
            if turns == 0 || links.len() == MOST_TURNS {
                return None;
            }
            let link = out[code as usize % turns];
            code /= turns as u32;
            links.push(link);
            at = self.network.links()[link].to?;
        }
        (!links.is_empty()).then_some(links)
    }
    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        *self.access.get(endpoint as usize)?
    }
}
