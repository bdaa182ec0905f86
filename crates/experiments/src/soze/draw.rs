//! Random networks for experiments on Soze: 100 Gb/s links, and flows of weights 1 to 16.

use subak_core::backend::{FlowPlan, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, IdVec, InputError, LinkId, Network, NodeKind, Policy};
use subak_solve::{SolveOptions, solve};

/// Packet sizes of Soze's section 5: 1000 bytes of payload, with 48 bytes of headers.
pub(super) const SIZES: PacketSizes = PacketSizes { mtu_bytes: 1048, header_bytes: 48, ack_bytes: 64 };
const RATE_BPS: f64 = 100e9;

/// Number of congested links on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hops {
    /// One: 5 to 100 pairs of hosts share one link; 2 us per link.
    One,
    /// Several: four leaves with four hosts each and two spines, 1.5 us per link. 10 to 80 flows go from one half of
    /// the hosts to the other. Links to spines have half, the same or twice the hosts' rate.
    Several,
}

pub(super) struct Setup {
    pub(super) network: Network,
    pub(super) plans: Vec<FlowPlan>,
    pub(super) rtt_ns: u64,
}

pub(super) fn weight(rng: &mut Stream) -> f64 {
    1.0 + 15.0 * rng.unit()
}

impl Hops {
    pub(super) fn name(self) -> &'static str {
        match self {
            Hops::One => "one hop",
            Hops::Several => "several hops",
        }
    }

    /// Number of RTTs within which rates must converge.
    pub(super) fn limit_rtts(self) -> usize {
        match self {
            Hops::One => 200,
            Hops::Several => 400,
        }
    }

    pub(super) fn draw(self, seed: u64) -> Result<Setup, InputError> {
        let mut rng = Stream::new(seed, &format!("soze {}", self.name()));
        let mut network = Network::new();
        let routes = match self {
            Hops::One => one(&mut network, 5 + rng.below(96))?,
            Hops::Several => several(&mut network, &mut rng)?,
        };
        let plan = |route| FlowPlan { weight: weight(&mut rng), ..FlowPlan::new(vec![route]) };
        let plans: Vec<FlowPlan> = routes.into_iter().map(plan).collect();
        let rtt_ns = idle_rtt_ns(&network, &plans[0].routes[0]);
        Ok(Setup { network, plans, rtt_ns })
    }
}

fn one(network: &mut Network, pairs: usize) -> Result<Vec<Route>, InputError> {
    let (a, b) = (network.node("a", NodeKind::Switch), network.node("b", NodeKind::Switch));
    let middle = network.connect(a, b, RATE_BPS, 2000, None)?;
    let mut route = |f: usize| -> Result<Route, InputError> {
        let from = network.node(&format!("from{f}"), NodeKind::Host);
        let to = network.node(&format!("to{f}"), NodeKind::Host);
        let (up, down) =
            (network.connect(from, a, RATE_BPS, 2000, None)?, network.connect(b, to, RATE_BPS, 2000, None)?);
        Ok(Route { forward: vec![up.0, middle.0, down.0], back: vec![down.1, middle.1, up.1] })
    };
    (0..pairs).map(&mut route).collect()
}

fn several(network: &mut Network, rng: &mut Stream) -> Result<Vec<Route>, InputError> {
    const LEAVES: usize = 4;
    const HOSTS: usize = 4;
    let spine_bps = RATE_BPS * [0.5, 1.0, 2.0][rng.below(3)];
    let flows = 10 + rng.below(71);
    let spines = [0, 1].map(|s| network.node(&format!("spine{s}"), NodeKind::Switch));
    let (mut access, mut core) = (Vec::new(), Vec::new());
    for l in 0..LEAVES {
        let leaf = network.node(&format!("leaf{l}"), NodeKind::Switch);
        for spine in spines {
            core.push(network.connect(leaf, spine, spine_bps, 1500, None)?);
        }
        for h in 0..HOSTS {
            let host = network.node(&format!("h{}", l * HOSTS + h), NodeKind::Host);
            access.push(network.connect(host, leaf, RATE_BPS, 1500, None)?);
        }
    }
    let half = LEAVES * HOSTS / 2;
    let mut route = || {
        let (src, dst, spine) = (rng.below(half), half + rng.below(half), rng.below(2));
        let (up, down) = (core[2 * (src / HOSTS) + spine], core[2 * (dst / HOSTS) + spine]);
        Route {
            forward: vec![access[src].0, up.0, down.1, access[dst].1],
            back: vec![access[dst].0, down.0, up.1, access[src].1],
        }
    };
    Ok((0..flows).map(|_| route()).collect())
}

/// Base RTT of a route, ns.
pub(super) fn idle_rtt_ns(network: &Network, route: &Route) -> u64 {
    let crossing = |links: &[LinkId], bytes: u32| -> f64 {
        let one = |&l: &LinkId| {
            let link = &network.links()[l];
            link.delay_ns as f64 + f64::from(bytes) * 8e9 / link.capacity_bps
        };
        links.iter().map(one).sum()
    };
    (crossing(&route.forward, SIZES.mtu_bytes) + crossing(&route.back, SIZES.ack_bytes)).ceil() as u64
}

/// The weighted max-min problem with a fraction `share` of each link for data.
pub(super) fn case(network: &Network, plans: &[FlowPlan], share: f64) -> Result<Case, InputError> {
    let mut network = network.clone();
    network.links().ids().for_each(|l| network.link_mut(l).capacity_bps *= share);
    let mut flows = Flows::new();
    for (f, plan) in plans.iter().enumerate() {
        let mut flow = Flow::over(f.to_string(), plan.routes[0].forward.clone());
        flow.weight = plan.weight;
        flows.push(flow, &network)?;
    }
    Ok(Case { network, flows, policy: Policy::MaxMin })
}

/// Exact weighted max-min rates with a fraction `share` of each link for data, and the saturated links.
pub(super) fn exact(network: &Network, plans: &[FlowPlan], share: f64) -> Result<(Vec<f64>, Vec<LinkId>), InputError> {
    let case = case(network, plans, share)?;
    let rates = solve(&case, &SolveOptions::default())?.rates_bps;
    let mut load = IdVec::<LinkId, f64>::filled(0.0, case.network.links().len());
    for (plan, rate) in plans.iter().zip(&rates) {
        plan.routes[0].forward.iter().for_each(|&l| load[l] += rate);
    }
    let full = load.ids().filter(|&l| load[l] > 0.9999 * case.network.links()[l].capacity_bps).collect();
    Ok((rates, full))
}
