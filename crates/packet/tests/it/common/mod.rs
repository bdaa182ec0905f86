//! Small networks and flow plans that the tests share.
#![allow(dead_code, reason = "each test file uses its part")]

use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, PacketSizes, Route};
use subak_core::route::{Router, Routing};
use subak_core::scheme::Goal;
use subak_core::{LinkId, Network, NodeId, NodeKind};

/// Fraction of a link that the scheme lets data use.
pub fn data_share(scheme: &str, params: &serde_json::Map<String, serde_json::Value>) -> f64 {
    subak_schemes::scheme(scheme, params).unwrap().rules().share()
}

/// A star of `hosts` hosts around one switch: the uplink of host h is `2 h`, its downlink `2 h + 1`.
pub fn star(hosts: usize, rate_bps: f64, delay_ns: u64) -> Network {
    let mut network = Network::new();
    let hub = network.node("hub", NodeKind::Switch);
    for h in 0..hosts {
        let host = network.node(&format!("h{h}"), NodeKind::Host);
        network.connect(host, hub, rate_bps, delay_ns, None).unwrap();
    }
    network
}

/// The route between two hosts of a star.
pub fn over_star(src: usize, dst: usize) -> Route {
    let (src, dst) = (src as u32, dst as u32);
    route([2 * src, 2 * dst + 1], [2 * dst, 2 * src + 1])
}

/// A chain of switches joined by links of `rates_bps`: link k forward is `2 k`, its reverse link `2 k + 1`. Paths
/// start and end at switches.
pub fn chain(rates_bps: &[f64], delay_ns: u64) -> Network {
    let mut network = Network::new();
    let mut last = network.node("s0", NodeKind::Switch);
    for (k, &rate) in rates_bps.iter().enumerate() {
        let next = network.node(&format!("s{}", k + 1), NodeKind::Switch);
        network.connect(last, next, rate, delay_ns, None).unwrap();
        last = next;
    }
    network
}

/// The route over a chain's links `links`, in order.
pub fn over_chain(links: &[u32]) -> Route {
    route(links.iter().map(|l| 2 * l), links.iter().rev().map(|l| 2 * l + 1))
}

/// A route over the links with these numbers.
pub fn route(forward: impl IntoIterator<Item = u32>, back: impl IntoIterator<Item = u32>) -> Route {
    let [forward, back] = [forward.into_iter().collect::<Vec<_>>(), back.into_iter().collect()];
    let links = |numbers: Vec<u32>| numbers.into_iter().map(LinkId).collect();
    Route { forward: links(forward), back: links(back) }
}

pub fn plan(route: Route, start_ns: u64, size_bytes: Option<u64>) -> FlowPlan {
    FlowPlan { start_ns, size_bytes, ..FlowPlan::new(vec![route]) }
}

pub fn start(scheme: &str, network: &Network, faults: &[Injected], seed: u64) -> Box<dyn Backend> {
    let params = serde_json::Map::new();
    let mut sim = subak_packet::build(scheme, &params, network, PacketSizes::default(), faults, seed).unwrap();
    place_controller(&mut *sim, network);
    sim
}

/// Places the controller, if the scheme has one, at the last node.
pub fn place_controller(sim: &mut dyn Backend, network: &Network) {
    sim.place_controller(&controller_paths(network, None));
}

/// Paths between each node and the last one, without the link `avoided`.
pub fn controller_paths(network: &Network, avoided: Option<LinkId>) -> Vec<(NodeId, Route)> {
    let routing = Routing { symmetric: true, ..Routing::default() };
    let mut router = Router::avoiding(network, routing, |link| Some(link) == avoided);
    let last = network.nodes().ids().next_back().expect("there are nodes");
    let mut way = |node: NodeId| match node == last {
        true => Some(Route { forward: Vec::new(), back: Vec::new() }),
        false => router.route(node, last, 0).ok(),
    };
    network.nodes().ids().filter_map(|node| Some((node, way(node)?))).collect()
}

pub fn lose(probability: f64, kinds: Kinds) -> Injected {
    impairment(Impairment::Lost, probability, kinds)
}

pub fn impairment(impairment: Impairment, probability: f64, kinds: Kinds) -> Injected {
    Injected::Packets { impairment, kinds, links: None, probability, from_ns: 0, until_ns: u64::MAX }
}

pub const EVERY_KIND: Kinds = Kinds { data: true, ack: true, ctl: true };

/// Names of the schemes with a goal that the exact solver can compute.
pub fn schemes_with_a_goal() -> impl Iterator<Item = &'static str> {
    subak_schemes::registry::all().into_iter().filter(|info| info.goal != Goal::Own).map(|info| info.name)
}

/// Names of all schemes, including pairs of optimizer and transport without a name of their own.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    subak_schemes::registry::all().into_iter().map(|info| info.name)
}
