//! NED and its baselines: they converge to the exact solver's rates, and their normalized rates are feasible at every
//! step.

mod across;
mod orders;
mod parallel;
mod safety;
mod serving;
mod settling;
mod threads;

use serde_json::json;
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{Case, Flow, Flows, IdVec, LinkId, NodeId, Policy, generate};
use subak_solve::ned::{Cluster, FlowKey, NedIteration, Normalizer, PriceUpdate, Real};

/// A leaf-spine (even seeds) or fat-tree network of random size and oversubscription, its flows between random hosts over
/// random shortest paths, weights 1 to 16.
pub fn random_datacenter(seed: u64, alpha: f64) -> Case {
    let mut rng = Stream::new(seed, "ned");
    let value = match seed % 2 {
        0 => json!({"kind": "leaf-spine", "leaves": 2 + rng.below(6), "hosts_per_leaf": 2 + rng.below(8),
            "spines": 1 + rng.below(4), "host_rate": "10Gbps", "spine_rate": (["10Gbps", "25Gbps", "40Gbps"][rng.below(3)])}),
        _ => json!({"kind": "fat-tree", "k": ([4, 4, 6][rng.below(3)]), "rate": "10Gbps"}),
    };
    let (network, _) = generate::network(&value).unwrap();
    let hosts: Vec<NodeId> = network.hosts().collect();
    let mut router = Router::new(&network, seed, false);
    let mut flows = Flows::new();
    for f in 0..1 + rng.below(6 * hosts.len()) {
        let src = rng.below(hosts.len());
        let dst = (src + 1 + rng.below(hosts.len() - 1)) % hosts.len();
        let path = router.path(hosts[src], hosts[dst], f as u64).unwrap();
        let flow = Flow { weight: (1 + rng.below(16)) as f64, ..Flow::over(format!("f{f}"), path) };
        flows.push(flow, &network).unwrap();
    }
    Case { network, flows, policy: Policy::AlphaFair { alpha } }
}

pub fn start<T: Real, L: PriceUpdate<T>>(case: &Case, law: L) -> (NedIteration<T, L>, Vec<FlowKey>) {
    let (cluster, keys) = Cluster::of(case).unwrap();
    (NedIteration::new(cluster, law), keys)
}

/// Sets random prices between a thousandth and a thousand times the optimum's scale.
pub fn scatter_prices<T: Real, L: PriceUpdate<T>>(iteration: &mut NedIteration<T, L>, seed: u64) {
    let mut rng = Stream::new(seed, "prices");
    let unit = iteration.cluster().price_unit();
    for l in 0..iteration.cluster().links() {
        iteration.set_price(LinkId::from_index(l), unit * 10f64.powf(6.0 * rng.unit() - 3.0)).unwrap();
    }
}

pub fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

/// Number of steps until normalized rates are within `tolerance` of `want`, and stay so for ten more.
pub fn steps_to<T: Real, L: PriceUpdate<T>>(
    iteration: &mut NedIteration<T, L>,
    keys: &[FlowKey],
    want: &[f64],
    tolerance: f64,
    most: usize,
) -> Option<usize> {
    let mut since = None;
    for step in 1..=most {
        iteration.step();
        let off = worst(&iteration.rates_bps(Normalizer::Flow, keys), want);
        since = if off <= tolerance { since.or(Some(step)) } else { None };
        if since.is_some_and(|s| step >= s + 10) {
            return since;
        }
    }
    None
}

/// Largest excess of a link's load over its capacity, relative to the capacity.
pub fn overload(case: &Case, rates_bps: &[f64]) -> f64 {
    let mut load = IdVec::<LinkId, f64>::filled(0.0, case.network.links().len());
    for (f, rate) in rates_bps.iter().enumerate() {
        case.flows.links_of(f).iter().for_each(|&l| load[l] += rate);
    }
    load.iter().zip(case.network.links()).map(|(load, link)| load / link.capacity_bps - 1.0).fold(-1.0, f64::max)
}
