//! Cases for tests: built by hand, or random with deliberately frequent degenerate ones.
#![allow(dead_code)]

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use subak_core::{Case, Flow, Flows, Link, LinkId, Network, Policy};
use subak_solve::{Answer, SolveOptions, Status, solve};

/// Links by capacity, and flows by path.
#[derive(Debug, Clone, Default)]
pub struct Net {
    pub capacity_bps: Vec<f64>,
    pub flows: Vec<Flow>,
}

impl Net {
    pub fn new(capacity_bps: &[f64]) -> Self {
        Net { capacity_bps: capacity_bps.to_vec(), flows: Vec::new() }
    }

    /// Adds a flow over one path, given by link numbers.
    pub fn flow(self, path: &[u32]) -> Self {
        self.pooled(&[path])
    }

    /// Adds a flow over several paths.
    pub fn pooled(mut self, paths: &[&[u32]]) -> Self {
        let mut flow = Flow::over(format!("f{}", self.flows.len()), Vec::new());
        flow.paths = paths.iter().map(|path| path.iter().map(|&l| LinkId(l)).collect()).collect();
        self.flows.push(flow);
        self
    }

    /// Changes the flow added last.
    pub fn with(mut self, change: impl FnOnce(&mut Flow)) -> Self {
        change(self.flows.last_mut().expect("a flow was added"));
        self
    }

    pub fn case(&self, policy: Policy) -> Case {
        let mut network = Network::new();
        for (l, &capacity_bps) in self.capacity_bps.iter().enumerate() {
            let link =
                Link { id: format!("l{l}"), from: None, to: None, capacity_bps, delay_ns: 0, buffer_bytes: None };
            network.add(link).expect("capacities are positive and ids differ");
        }
        let mut flows = Flows::new();
        for flow in &self.flows {
            flows.push(flow.clone(), &network).expect("the flow is sound");
        }
        Case { network, flows, policy }
    }
}

/// Solves, and checks that the answer is optimal by a certificate of 1e-8, and exceeds capacities by at most 1e-9.
pub fn certified(case: &Case) -> Answer {
    let answer = solve(case, &SolveOptions::default()).expect("the case is sound");
    assert_eq!(answer.status, Status::Optimal, "{:?} after {}", answer.certificate, answer.iterations);
    assert!(answer.certificate.worst() <= 1e-8, "{:?}", answer.certificate);
    assert!(answer.certificate.infeasibility <= 1e-9, "{:?}", answer.certificate);
    answer
}

/// Solves, and returns whether the answer has a certificate of 1e-8. Otherwise its status must state that, and it
/// must be feasible.
pub fn is_certified(case: &Case) -> bool {
    let answer = solve(case, &SolveOptions::default()).expect("the case is sound");
    let certified = answer.certificate.worst() <= 1e-8;
    assert_eq!(answer.status == Status::Optimal, certified, "{:?}", answer.certificate);
    let finite = answer.rates_bps.iter().chain(&answer.link_price).all(|x| x.is_finite() && *x >= 0.0);
    assert!(finite, "{answer:?}");
    for (load, link) in answer.link_load_bps.iter().zip(case.network.links()) {
        assert!(*load <= link.capacity_bps * (1.0 + 1e-9), "{answer:?}");
    }
    certified
}

/// Number of `cases` drawn from `strategy` for which `holds` fails.
pub fn misses<S: Strategy>(cases: usize, strategy: S, holds: impl Fn(S::Value) -> bool) -> usize {
    let mut runner = proptest::test_runner::TestRunner::new(config(0));
    let mut draw = || strategy.new_tree(&mut runner).expect("it draws").current();
    (0..cases).filter(|_| !holds(draw())).count()
}

#[track_caller]
pub fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * w.abs(), "{i}: {g} is not {w}\n{got:?}\n{want:?}");
    }
}

/// A random capacity: one of a few round values that tie, or any over `orders` orders of magnitude up to 1.6 Tb/s.
fn capacity(orders: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => prop::sample::select(vec![1e9, 1e10, 4e10]),
        2 => (12.2 - orders..12.2f64).prop_map(|e| 10f64.powf(e)),
    ]
}

fn weight(orders: f64) -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(1.0), 1 => (-orders..orders).prop_map(|e| 10f64.powf(e)), 1 => 0.5..2.0f64]
}

/// Random networks with parallel links (which have the same flows), redundant and unused links, and fewer flows than
/// links. Flows have up to `paths` paths. Capacities differ by nine orders of magnitude, weights by twelve.
pub fn nets(paths: usize) -> impl Strategy<Value = Net> {
    nets_over(paths, 9.2, 6.0)
}

/// Like [`nets`], with capacities over four orders of magnitude and weights over two.
pub fn mild_nets(paths: usize) -> impl Strategy<Value = Net> {
    nets_over(paths, 4.0, 1.0)
}

fn nets_over(paths: usize, capacities: f64, weights: f64) -> impl Strategy<Value = Net> {
    let links = prop::collection::vec(capacity(capacities), 1..9);
    links.prop_flat_map(move |capacity_bps| {
        let n = capacity_bps.len();
        let path = move || prop::sample::subsequence((0..n as u32).collect::<Vec<_>>(), 1..=n.min(4)).prop_shuffle();
        let demand = prop_oneof![3 => Just(None), 1 => (12.0 - capacities..12.0).prop_map(|e| Some(10f64.powf(e)))];
        let flow = (prop::collection::vec(path(), 1..=paths), weight(weights), demand);
        prop::collection::vec(flow, 0..14).prop_map(move |flows| {
            let mut net = Net::new(&capacity_bps);
            for (mut paths, weight, demand_bps) in flows {
                paths.sort();
                paths.dedup();
                net = net.pooled(&paths.iter().map(|p| &p[..]).collect::<Vec<_>>());
                net = net.with(|f| (f.weight, f.demand_bps) = (weight, demand_bps));
            }
            net
        })
    })
}

/// Weighted max-min by the textbook algorithm: find the lowest level of all links and demands, freeze its flows,
/// repeat.
pub fn max_min_by_the_book(case: &Case) -> Vec<f64> {
    let (flows, links) = (&case.flows, case.network.links());
    let mut rates = vec![None; flows.len()];
    loop {
        let open = |f: &usize| rates[*f].is_none();
        let crossing = |l: LinkId| (0..flows.len()).filter(move |&f| flows.links_of(f).contains(&l));
        let level = |l: LinkId| {
            let used: f64 = crossing(l).filter_map(|f| rates[f]).sum();
            (links[l].capacity_bps - used).max(0.0) / crossing(l).filter(open).map(|f| flows.weight()[f]).sum::<f64>()
        };
        let lowest_link = links
            .ids()
            .filter(|&l| crossing(l).any(|f| open(&f)))
            .map(|l| (level(l), l))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let lowest_demand = (0..flows.len())
            .filter(open)
            .map(|f| (flows.demand_bps()[f] / flows.weight()[f], f))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match (lowest_link, lowest_demand) {
            (None, _) | (_, None) => return rates.into_iter().map(|r| r.unwrap_or(0.0)).collect(),
            (Some((at_link, _)), Some((at_demand, f))) if at_demand <= at_link => {
                rates[f] = Some(flows.demand_bps()[f])
            }
            (Some((at_link, l)), _) => {
                let frozen: Vec<usize> = crossing(l).filter(open).collect();
                for f in frozen {
                    rates[f] = Some(at_link * flows.weight()[f]);
                }
            }
        }
    }
}

pub fn alphas() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(1.0), 1 => Just(2.0), 2 => 0.1..5.0f64]
}

/// Configuration with the same cases in every run, and without files for failures.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    }
}
