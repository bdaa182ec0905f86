//! A link that carries less than its configured capacity. Flows report losses, and the allocator reduces the
//! allocation of that link alone. It restores the allocation once the link carries its capacity again.

use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint};
use subak_core::rng::Stream;
use subak_core::route::{Router, Routing};
use subak_core::{LinkId, Network, NodeId, NodeKind, Ns};

const RATE_BPS: f64 = 1e9;
const HOSTS: u32 = 6;
const TICK_NS: Ns = 100_000;
const SETTINGS: ControlSettings = ControlSettings::DEFAULT;

/// Two switches with three hosts each; hosts have the lowest numbers.
fn network(trunk_bps: f64) -> Network {
    let mut network = Network::new();
    let hosts: Vec<NodeId> = (0..HOSTS).map(|k| network.node(&format!("h{k}"), NodeKind::Host)).collect();
    let hubs = [network.node("s0", NodeKind::Switch), network.node("s1", NodeKind::Switch)];
    for (k, host) in hosts.into_iter().enumerate() {
        network.connect(host, hubs[k / 3], RATE_BPS, 1000, None).unwrap();
    }
    network.connect(hubs[0], hubs[1], trunk_bps, 1000, None).unwrap();
    network
}

struct Flow {
    from: usize,
    links: Vec<LinkId>,
    weight: f64,
}

struct World {
    allocator: Allocator,
    endpoints: Vec<Endpoint>,
    flows: Vec<Flow>,
    /// Capacities that links really have, bit/s.
    really_bps: Vec<f64>,
    rng: Stream,
    now_ns: Ns,
}

impl World {
    fn new(network: &Network, seed: u64) -> World {
        let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
        let paths = Box::new(Ecmp::new(network, Routing::default()));
        let mut allocator = Allocator::new(0, 1, &capacity_bps, paths, SETTINGS).unwrap().first();
        (0..HOSTS).for_each(|h| allocator.join(h));
        let endpoints = (0..HOSTS).map(|h| Endpoint::new(h, 1, SETTINGS)).collect();
        let rng = Stream::new(seed, "overload");
        World { allocator, endpoints, flows: Vec::new(), really_bps: capacity_bps, rng, now_ns: 1 }
    }

    fn send(&mut self, network: &Network, from: u32, to: u32, weight: f64) {
        let mut router = Router::avoiding(network, Routing::default(), |_| false);
        let links = router.path(NodeId(from), NodeId(to), 0u32.into()).unwrap();
        self.endpoints[from as usize].begin(self.flows.len() as u64, to, 0, weight as f32);
        self.flows.push(Flow { from: from as usize, links, weight });
    }

    fn rate(&self, flow: usize) -> f64 {
        self.endpoints[self.flows[flow].from].rate_bps(self.now_ns, flow as u64).unwrap_or(0.0)
    }

    fn arriving_bps(&self, link: LinkId) -> f64 {
        (0..self.flows.len()).filter(|&f| self.flows[f].links.contains(&link)).map(|f| self.rate(f)).sum()
    }

    /// Reports each flow's loss rate, with a random error of up to 30%.
    fn tell_losses(&mut self) {
        for flow in 0..self.flows.len() {
            let through = |link: &LinkId| (self.really_bps[link.index()] / self.arriving_bps(*link)).min(1.0);
            let lost = 1.0 - self.flows[flow].links.iter().map(through).product::<f64>();
            if lost > 0.0 {
                let told = lost * (0.7 + 0.6 * self.rng.unit());
                self.endpoints[self.flows[flow].from].lose(flow as u64, told);
            }
        }
    }

    /// Runs for `leases` lease times; `each` is called at the end of each.
    fn run(&mut self, leases: u64, mut each: impl FnMut(&World)) {
        let until_ns = self.now_ns + leases * SETTINGS.lease_ns;
        while self.now_ns < until_ns {
            self.now_ns += TICK_NS;
            let now_ns = self.now_ns;
            if now_ns % (SETTINGS.lease_ns / 2) < TICK_NS {
                self.tell_losses();
            }
            for endpoint in &mut self.endpoints {
                while let Some(datagram) = endpoint.poll(now_ns) {
                    self.allocator.take(now_ns, datagram.endpoint, &datagram);
                }
            }
            self.allocator.step(now_ns);
            while let Some(datagram) = self.allocator.poll(now_ns) {
                self.endpoints[datagram.endpoint as usize].take(now_ns, &datagram);
            }
            if now_ns % SETTINGS.lease_ns < TICK_NS {
                each(self);
            }
        }
    }
}

fn to(network: &Network, name: &str) -> LinkId {
    let node = network.find_node(name);
    network.links().iter_enumerated().find(|(_, link)| link.to == node).unwrap().0
}

#[test]
fn a_link_declared_at_twice_its_rate_is_shared_by_weight_soon() {
    let network = network(10.0 * RATE_BPS);
    let mut world = World::new(&network, 1);
    for (from, weight) in [(0, 1.0), (1, 2.0), (3, 4.0)] {
        world.send(&network, from, 2, weight);
    }
    let last = to(&network, "h2");
    world.really_bps[last.index()] = RATE_BPS / 2.0;
    world.run(25, |_| {});
    // From then on the allocation is within 15% of the one with a known capacity.
    world.run(200, |world| {
        for (flow, Flow { weight, .. }) in world.flows.iter().enumerate() {
            let goal = SETTINGS.share() * RATE_BPS / 2.0 * weight / 7.0;
            assert!((world.rate(flow) / goal - 1.0).abs() < 0.15, "{flow}: {} of {goal}", world.rate(flow));
        }
    });
    let lowered = world.allocator.take_lowerings();
    assert!(!lowered.is_empty() && lowered.iter().all(|lowering| lowering.link == last), "{lowered:?}");
    // The link carries its configured capacity again, and all of it is used.
    world.really_bps[last.index()] = RATE_BPS;
    world.run(600, |_| {});
    assert!(world.arriving_bps(last) > 0.98 * SETTINGS.share() * RATE_BPS, "{}", world.arriving_bps(last));
    assert_eq!(world.allocator.lowered_bps(last), None);
    assert_eq!(world.allocator.take_lowerings().last().map(|lowering| lowering.most_bps), Some(None));
}

/// Runs two flows into h2 beside traffic that begins and takes 60% of its link, and then ends. `told`: whether h2
/// reports that traffic. Returns the number of lowerings, and the flows' part of the link a lease after the end.
fn beside_others(told: bool) -> (usize, f64) {
    let network = network(10.0 * RATE_BPS);
    let mut world = World::new(&network, 1);
    [0, 1].into_iter().for_each(|from| world.send(&network, from, 2, 1.0));
    let last = to(&network, "h2");
    world.run(10, |_| {});
    world.really_bps[last.index()] = 0.4 * RATE_BPS;
    for lease in 0..8 {
        // Losses of the onset are reported for two leases, and the traffic itself a lease after it began.
        if lease < 3 {
            world.endpoints[0].lose(0, 0.4);
            world.endpoints[1].lose(1, 0.4);
        }
        if told && lease > 0 {
            world.endpoints[2].observe(0.0, 0.6 * RATE_BPS);
        }
        world.run(1, |_| {});
    }
    let lowerings = world.allocator.take_lowerings().len();
    world.really_bps[last.index()] = RATE_BPS;
    world.endpoints[2].observe(0.0, 0.0);
    world.run(1, |_| {});
    (lowerings, world.arriving_bps(last) / (SETTINGS.share() * RATE_BPS))
}

#[test]
fn losses_as_other_traffic_begins_lower_nothing() {
    let (lowerings, back) = beside_others(true);
    assert!(lowerings == 0 && back > 0.98, "{lowerings}, {back}");
    let (lowerings, back) = beside_others(false);
    assert!(lowerings > 0 && back < 0.6, "{lowerings}, {back}");
}

#[test]
fn any_link_that_carries_less_is_found() {
    for seed in 0..200 {
        let mut rng = Stream::new(seed, "world");
        let network = network(RATE_BPS * if seed % 2 == 0 { 1.0 } else { 10.0 });
        let mut world = World::new(&network, seed);
        for _ in 0..3 + rng.below(12) {
            let from = rng.below(HOSTS as usize) as u32;
            let to = (from + 1 + rng.below(HOSTS as usize - 1) as u32) % HOSTS;
            world.send(&network, from, to, [0.5, 1.0, 2.0, 4.0][rng.below(4)]);
        }
        world.run(20, |_| {});
        assert_eq!(world.allocator.take_lowerings(), vec![], "seed {seed}: nothing was lost");
        let flow = rng.below(world.flows.len());
        let bad = world.flows[flow].links[rng.below(world.flows[flow].links.len())];
        let before_bps = world.arriving_bps(bad);
        let really_bps = before_bps * (0.25 + 0.6 * rng.unit());
        world.really_bps[bad.index()] = really_bps;
        world.run(60, |_| {});
        let (mut over, mut used, mut of) = (0, 0.0, 0);
        world.run(300, |world| {
            let arriving_bps = world.arriving_bps(bad);
            over += usize::from(arriving_bps > 1.01 * really_bps);
            used += arriving_bps.min(really_bps) / really_bps;
            of += 1;
        });
        assert!(over * 10 < of, "seed {seed}: too much arrives {over} of {of} times");
        assert!(used / f64::from(of as u32) > 0.85, "seed {seed}: {} of the link is used", used / f64::from(of as u32));
        // Links whose flows do not all cross the bad link keep their allocation.
        for lowering in world.allocator.take_lowerings() {
            let crosses = |flow: &&Flow| flow.links.contains(&lowering.link);
            let is_shared = world.flows.iter().filter(crosses).any(|flow| flow.links.contains(&bad));
            assert!(is_shared, "seed {seed}: link {} has nothing to do with link {bad}", lowering.link);
        }
        world.really_bps[bad.index()] = RATE_BPS * 10.0;
        world.run(1500, |_| {});
        assert!(
            world.arriving_bps(bad) > 0.95 * before_bps,
            "seed {seed}: {} of {before_bps}",
            world.arriving_bps(bad)
        );
    }
}

#[test]
fn who_tells_losses_that_are_none_harms_its_own_link() {
    let network = network(10.0 * RATE_BPS);
    let mut world = World::new(&network, 1);
    (0..2).for_each(|from| world.send(&network, from, 2, 1.0));
    let shared = to(&network, "h2");
    world.run(20, |_| {});
    for _ in 0..100 {
        world.endpoints[0].lose(0, 0.9);
        world.run(1, |_| {});
    }
    assert_eq!(world.allocator.lowered_bps(shared), None);
    assert!(world.rate(1) > 0.9 * SETTINGS.share() * RATE_BPS, "{}", world.rate(1));
}
