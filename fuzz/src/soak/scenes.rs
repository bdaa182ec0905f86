//! Random networks, flows and faults for the packet simulator.

use super::draw::Draw;
use serde_json::{Map, Value, json};
use subak_core::backend::{FlowPlan, Impairment, Injected, Kinds, Machine, PacketSizes, Route, Spread};
use subak_core::keys::ValueType;
use subak_core::route::{Router, Routing};
use subak_core::{LinkId, Network, Nic, NodeId, Ns};

const MS: f64 = 1e6;

/// Inputs of a simulation.
pub struct RandomScene {
    /// The scheme; `OPTIMIZER/TRANSPORT` for a pair.
    pub scheme: &'static str,
    /// Parameters of the scheme.
    pub params: Map<String, Value>,
    /// The network.
    pub network: Network,
    /// Sizes of packets on the wire.
    pub sizes: PacketSizes,
    /// Injected faults.
    pub faults: Vec<Injected>,
    /// The flows.
    pub plans: Vec<FlowPlan>,
    /// Paths between each node and the controller.
    pub ways: Vec<(NodeId, Route)>,
    /// Time by which all flows have started and all faults have begun, ns.
    pub until_ns: Ns,
}

/// A random generated network, with delays for RTTs of 2 us to 20 ms.
pub fn network_keys(draw: &mut Draw) -> Value {
    let rate = draw.of(&[1e9, 10e9, 10e9, 25e9, 100e9, 400e9]);
    let trunk = rate * draw.of(&[0.5, 1.0, 2.0, 4.0]);
    let delay = draw.log(250e-9, 2.5e-3);
    let mut keys = match draw.below(6) {
        0 => json!({"kind": "star", "hosts": draw.whole(2, 9), "rate": rate}),
        1 => json!({"kind": "dumbbell", "pairs": draw.whole(1, 5), "host_rate": rate, "bottleneck_rate": trunk}),
        2 => {
            let rates: Vec<f64> = (0..draw.whole(1, 4)).map(|_| rate * draw.of(&[0.25, 1.0, 3.0])).collect();
            json!({"kind": "chain", "rates": rates, "host_rate": 4.0 * rate})
        }
        3 => json!({"kind": "fat-tree", "k": 4, "rate": rate}),
        4 if draw.chance(0.2) => json!({"kind": "wan", "topology": "b4-12", "rate": rate, "link_delay": delay}),
        _ => json!({
            "kind": "leaf-spine", "leaves": draw.whole(2, 3), "spines": draw.whole(1, 4),
            "hosts_per_leaf": draw.whole(1, 4), "host_rate": rate, "spine_rate": trunk,
        }),
    };
    if keys["kind"] != "wan" {
        keys["link_delay"] = json!(delay);
    }
    if draw.chance(0.3) {
        keys["buffer"] = json!(draw.log(2000.0, 1e6).round());
    }
    keys
}

/// Random values for some of the word and flag parameters of `scheme`; the other parameters keep their defaults.
pub fn params(draw: &mut Draw, scheme: &str) -> Map<String, Value> {
    let mut given = Map::new();
    for param in subak_schemes::registry::find(scheme).map_or(&[][..], |info| info.params) {
        if !draw.chance(0.15) {
            continue;
        }
        let value = match param.key.value_type {
            ValueType::Word(words) => json!(draw.of(words)),
            ValueType::Flag => json!(draw.chance(0.5)),
            _ => continue,
        };
        given.insert(param.key.name.to_string(), value);
    }
    given
}

/// Name of a random scheme of the registry, or of a random optimizer/transport pair.
pub fn scheme(draw: &mut Draw) -> &'static str {
    let all = subak_schemes::registry::all();
    all[draw.below(all.len())].name
}

impl RandomScene {
    /// Draws random inputs of a simulation.
    pub fn draw(draw: &mut Draw) -> Result<RandomScene, String> {
        let keys = network_keys(draw);
        let (mut network, _) = subak_core::generate::network(&keys).map_err(|e| format!("{keys} is refused: {e}"))?;
        network.set_nic(draw.of(&Nic::ALL).1);
        let hosts: Vec<NodeId> = network.hosts().collect();
        unequal(draw, &mut network, &hosts);
        // A queue smaller than a packet would drop everything.
        let links: Vec<LinkId> = network.links().ids().collect();
        let scheme = scheme(draw);
        let sizes = match draw.below(4) {
            0 => PacketSizes { mtu_bytes: 9000, ..PacketSizes::default() },
            1 => PacketSizes { mtu_bytes: draw.whole(200, 4000) as u32, header_bytes: 40, ack_bytes: 40 },
            _ => PacketSizes::default(),
        };
        for link in links {
            let room = &mut network.link_mut(link).buffer_bytes;
            *room = room.map(|bytes| bytes.max(3 * u64::from(sizes.mtu_bytes)));
        }
        let slowest = network.links().iter().map(|l| l.capacity_bps).fold(f64::INFINITY, f64::min);
        let fastest = network.links().iter().map(|l| l.capacity_bps).fold(0.0, f64::max);
        let rtt_ns = network.links().iter().map(|l| l.delay_ns).max().unwrap_or(0) * 8 + 2000;
        let until_ns = (draw.log(3.0, 300.0) * rtt_ns as f64).min(50.0 * MS) as Ns;
        let endless_ns = (2000.0 * 12e12 / fastest).min(until_ns as f64 / 2.0);
        let (plans, ways) = plans(draw, &network, &hosts, Times { slowest, until_ns, rtt_ns, endless_ns })?;
        let faults = faults(draw, &network, until_ns, rtt_ns);
        let params = params(draw, scheme);
        Ok(RandomScene { scheme, params, network, sizes, faults, plans, ways, until_ns })
    }
}

/// Gives some hosts slower or faster NICs, in both directions.
fn unequal(draw: &mut Draw, network: &mut Network, hosts: &[NodeId]) {
    if draw.chance(0.5) {
        return;
    }
    let reverse_links = network.reverse_links();
    for &host in hosts {
        let times = draw.of(&[1.0, 1.0, 0.1, 0.4, 4.0]);
        for link in network.out_links(host).to_vec() {
            let both = std::iter::once(link).chain(reverse_links[link]);
            both.for_each(|l| network.link_mut(l).capacity_bps *= times);
        }
    }
}

struct Times {
    slowest: f64,
    until_ns: Ns,
    rtt_ns: Ns,
    /// Largest duration of an endless flow, ns: some thousand packets.
    endless_ns: f64,
}

type Plans = (Vec<FlowPlan>, Vec<(NodeId, Route)>);

fn plans(draw: &mut Draw, network: &Network, hosts: &[NodeId], times: Times) -> Result<Plans, String> {
    let routing = Routing { seed: draw.seed, symmetric: !draw.chance(0.3), ..Routing::default() };
    let mut router = Router::by(network, routing);
    let said = |fault: subak_core::InputError| fault.to_string();
    let spreads = draw.chance(0.25);
    let most_bytes = (times.slowest / 8.0 * 20e-3).clamp(3000.0, 1.5e6);
    let mut plans = Vec::new();
    for key in 0..draw.whole(1, 24) {
        let pair = draw.some(hosts.len(), 2);
        let (src, dst) = (hosts[pair[0]], hosts[pair[1]]);
        let ways = if spreads || draw.chance(0.1) { 4 } else { 1 };
        let routes = router.routes(src, dst, key, ways).map_err(said)?;
        let flowlets = Spread::Flowlets(draw.log(1.0, 1.0 + times.rtt_ns as f64) as Ns);
        let mut plan = FlowPlan::new(routes);
        plan.spread = spreads.then(|| draw.of(&[Spread::Packets, flowlets]));
        plan.start_ns = (draw.unit() * times.until_ns as f64 * 0.5) as Ns;
        let (bytes, weight) = (draw.log(1.0, most_bytes), draw.log(0.05, 20.0));
        plan.size_bytes = (!draw.chance(0.1)).then(|| draw.of(&[0.0, 1.0, bytes, bytes, bytes]) as u64);
        if plan.size_bytes.is_none() || draw.chance(0.1) {
            plan.stop_ns = Some(plan.start_ns + (draw.unit() * times.endless_ns) as Ns);
        }
        plan.weight = draw.of(&[1.0, 1.0, weight]);
        if draw.chance(0.1) {
            plan.demand_bps = times.slowest * draw.log(0.01, 1.0);
        }
        plans.push(plan);
    }
    let centre = hosts[draw.below(hosts.len())];
    let mut way = |node: NodeId| match node == centre {
        true => Some(Route { forward: Vec::new(), back: Vec::new() }),
        false => router.route(node, centre, 0).ok(),
    };
    let ways = network.nodes().ids().filter_map(|node| Some((node, way(node)?))).collect();
    Ok((plans, ways))
}

fn faults(draw: &mut Draw, network: &Network, until_ns: Ns, rtt_ns: Ns) -> Vec<Injected> {
    let count = draw.of(&[0, 0, 1, 2, 4]);
    let links: Vec<LinkId> = network.links().ids().collect();
    let mut faults = Vec::new();
    for _ in 0..count {
        let at_ns = (draw.unit() * until_ns as f64) as Ns;
        let until = at_ns + (draw.unit() * until_ns as f64) as Ns + 1;
        let link = links[draw.below(links.len())];
        let probability = draw.log(1e-3, 0.2);
        let kinds = Kinds { data: draw.chance(0.7), ack: draw.chance(0.7), ctl: draw.chance(0.7) };
        let late_ns = (draw.unit() * 4.0 * rtt_ns as f64) as Ns;
        let impairment = draw.of(&[Impairment::Lost, Impairment::Doubled, Impairment::Late(late_ns)]);
        faults.push(match draw.below(6) {
            0 => Injected::Down { link, down_ns: at_ns, up_ns: until, keeps: at_ns.is_multiple_of(2) },
            1 => {
                let capacity_bps = network.links()[link].capacity_bps * draw.log(0.1, 10.0);
                Injected::Capacity { link, capacity_bps, at_ns }
            }
            2 => {
                let node = NodeId::from(draw.below(network.nodes().len()) as u32);
                let machine = draw.of(&[Machine::Controller, Machine::Node(node), Machine::Hop(link)]);
                Injected::Restart { machine, at_ns }
            }
            _ => {
                let links = draw.chance(0.5).then(|| vec![link]);
                Injected::Packets { impairment, kinds, links, probability, from_ns: at_ns, until_ns: until }
            }
        });
    }
    faults
}
