//! Loss of optimality if the allocator does not know paths, or other pods (Flowtune, section 6). Rates are the exact
//! optimum of the problem that each allocator knows. If these rates overload a link, TCP would react. Here each flow
//! is scaled down by the worst overload on its path.

use crate::flowtune::Fabric;
use serde_json::json;
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, IdVec, InputError, LinkId, Network, NodeId, NodeKind, Policy};
use subak_solve::{SolveOptions, solve};

const HOST_BPS: f64 = 10e9;
/// Smallest fraction of a link that traffic from other pods leaves to a pod's own traffic, as in the allocator.
const LEAST_SHARE: f64 = 0.05;
/// Weight of a new sample in the moving average of traffic from other pods, as in the allocator.
const NEWEST: f64 = 0.25;
/// Number of iterations until the pods' allocators have converged.
const LOOKS: usize = 40;

/// Loss relative to the optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UtilityLoss {
    /// Throughput relative to the optimum, percent.
    pub throughput: f64,
    /// Mean over flows of log2(rate / optimal rate), negative.
    pub points: f64,
    /// Largest overload of a link before scaling down, percent.
    pub overload: f64,
}

fn optimum(network: &Network, paths: &[Vec<LinkId>]) -> Result<Vec<f64>, InputError> {
    let mut flows = Flows::new();
    for (f, path) in paths.iter().enumerate() {
        flows.push(Flow::over(f.to_string(), path.clone()), network)?;
    }
    let case = Case { network: network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
    Ok(solve(&case, &SolveOptions { tolerance: 1e-6, ..SolveOptions::default() })?.rates_bps)
}

fn loads_bps(network: &Network, paths: &[Vec<LinkId>], rates_bps: &[f64]) -> IdVec<LinkId, f64> {
    let mut load = IdVec::filled(0.0, network.links().len());
    for (path, rate) in paths.iter().zip(rates_bps) {
        path.iter().for_each(|&l| load[l] += rate);
    }
    load
}

/// Rates scaled down to be feasible, and the largest overload before that, percent.
fn scaled(network: &Network, paths: &[Vec<LinkId>], rates_bps: &[f64]) -> (Vec<f64>, f64) {
    let load = loads_bps(network, paths, rates_bps);
    let over = |&l: &LinkId| load[l] / network.links()[l].capacity_bps;
    let worst = |path: &Vec<LinkId>| path.iter().map(over).fold(1.0, f64::max);
    let fitting = paths.iter().zip(rates_bps).map(|(path, rate)| rate / worst(path)).collect();
    (fitting, 100.0 * (paths.iter().map(worst).fold(1.0, f64::max) - 1.0))
}

fn cost(network: &Network, paths: &[Vec<LinkId>], rates_bps: &[f64]) -> Result<UtilityLoss, InputError> {
    let best = optimum(network, paths)?;
    let (fitting, overload) = scaled(network, paths, rates_bps);
    let points = fitting.iter().zip(&best).map(|(rate, best)| (rate / best).log2()).sum::<f64>() / best.len() as f64;
    Ok(UtilityLoss { throughput: 100.0 * fitting.iter().sum::<f64>() / best.iter().sum::<f64>(), points, overload })
}

/// Loss on nine racks of 16 hosts with four spines, if the allocator knows only the hosts' links.
pub(super) fn big_switch(spine_bps: f64, flows_a_host: usize, seed: u64) -> Result<UtilityLoss, InputError> {
    let value = json!({"kind": "leaf-spine", "leaves": 9, "hosts_per_leaf": 16, "spines": 4, "host_rate": HOST_BPS,
        "spine_rate": spine_bps});
    let mut fabric = Fabric::of(&value, seed)?;
    let hosts = fabric.hosts.len();
    let mut switch = Network::new();
    let hub = switch.node("switch", NodeKind::Switch);
    for h in 0..hosts {
        let host = switch.node(&format!("h{h}"), NodeKind::Host);
        switch.connect(host, hub, HOST_BPS, 0, None)?;
    }
    let mut rng = Stream::new(seed, "big switch");
    let (mut paths, mut edges) = (Vec::new(), Vec::new());
    for key in 0..(flows_a_host * hosts) as u64 {
        let (src, dst) = two(&mut rng, hosts);
        paths.push(fabric.router.path(fabric.hosts[src], fabric.hosts[dst], key)?);
        edges.push([2 * src, 2 * dst + 1].map(LinkId::from_index).to_vec());
    }
    cost(&fabric.network, &paths, &optimum(&switch, &edges)?)
}

fn two(rng: &mut Stream, hosts: usize) -> (usize, usize) {
    let src = rng.below(hosts);
    (src, (src + 1 + rng.below(hosts - 1)) % hosts)
}

/// Loss on a fat-tree of `k`-port switches with one allocator per pod. Each allocator sets the rates of flows that
/// start in its pod, over the links up to the cores. Traffic from other pods reduces the capacity that the allocator
/// sees. A fraction `inside` of the flows stays in its pod; the others go to any host.
pub(super) fn pods(k: usize, inside: f64, flows_a_host: usize, seed: u64) -> Result<UtilityLoss, InputError> {
    let mut fabric = Fabric::of(&json!({"kind": "fat-tree", "k": k, "rate": HOST_BPS}), seed)?;
    let hosts = fabric.hosts.len();
    let a_pod = hosts / k;
    let mut rng = Stream::new(seed, "pods");
    let (mut paths, mut homes) = (Vec::new(), Vec::new());
    for key in 0..(flows_a_host * hosts) as u64 {
        let (src, anywhere) = two(&mut rng, hosts);
        let pod = src / a_pod;
        let dst = if rng.unit() < inside { pod * a_pod + two_in(&mut rng, src % a_pod, a_pod) } else { anywhere };
        paths.push(fabric.router.path(fabric.hosts[src], fabric.hosts[dst], key)?);
        homes.push((pod, dst / a_pod));
    }
    let rates_bps = Pods { network: &fabric.network, paths: &paths, homes: &homes, k }.settle()?;
    cost(&fabric.network, &paths, &rates_bps)
}

/// A host of the pod other than `src`.
fn two_in(rng: &mut Stream, src: usize, a_pod: usize) -> usize {
    (src + 1 + rng.below(a_pod - 1)) % a_pod
}

struct Pods<'a> {
    network: &'a Network,
    paths: &'a [Vec<LinkId>],
    /// Pods in which each flow starts and ends.
    homes: &'a [(usize, usize)],
    k: usize,
}

impl Pods<'_> {
    /// Rates after each allocator has measured the traffic from the other pods.
    fn settle(&self) -> Result<Vec<f64>, InputError> {
        let mut others_bps = IdVec::filled(0.0, self.network.links().len());
        let mut rates_bps = vec![0.0; self.paths.len()];
        for _ in 0..LOOKS {
            for pod in 0..self.k {
                self.rate(pod, &others_bps, &mut rates_bps)?;
            }
            let (carried_bps, _) = scaled(self.network, self.paths, &rates_bps);
            let mut coming_bps = IdVec::<LinkId, f64>::filled(0.0, others_bps.len());
            for ((path, &(from, to)), rate) in self.paths.iter().zip(self.homes).zip(&carried_bps) {
                if from != to {
                    self.beyond(path).iter().for_each(|&l| coming_bps[l] += rate);
                }
            }
            for (before, now) in others_bps.iter_mut().zip(coming_bps) {
                *before += NEWEST * (now - *before);
            }
        }
        Ok(rates_bps)
    }

    /// The links of a path after its core switch.
    fn beyond<'p>(&self, path: &'p [LinkId]) -> &'p [LinkId] {
        &path[self.own(path)..]
    }

    /// Number of links of `path` that the allocator of the source's pod knows: those up to a core switch, or all.
    fn own(&self, path: &[LinkId]) -> usize {
        let cores = NodeId::from_index(self.network.nodes().len() - (self.k / 2).pow(2));
        let to_core = |&l: &LinkId| self.network.links()[l].to.is_some_and(|node| node >= cores);
        path.iter().position(to_core).map_or(path.len(), |at| at + 1)
    }

    fn rate(&self, pod: usize, others_bps: &IdVec<LinkId, f64>, rates_bps: &mut [f64]) -> Result<(), InputError> {
        let mine: Vec<usize> = (0..self.paths.len()).filter(|&f| self.homes[f].0 == pod).collect();
        let seen: Vec<Vec<LinkId>> = mine.iter().map(|&f| self.paths[f][..self.own(&self.paths[f])].to_vec()).collect();
        let mut network = self.network.clone();
        for (l, others) in others_bps.iter_enumerated() {
            let link = network.link_mut(l);
            link.capacity_bps = (link.capacity_bps - others).max(LEAST_SHARE * link.capacity_bps);
        }
        for (&f, rate) in mine.iter().zip(optimum(&network, &seen)?) {
            rates_bps[f] = rate;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowing_the_hosts_links_alone_costs_nothing_where_the_core_never_fills() {
        let cost = big_switch(4000e9, 2, 1).unwrap();
        assert!((cost.throughput - 100.0).abs() < 0.1 && cost.points.abs() < 1e-3 && cost.overload < 0.1, "{cost:?}");
        // With a quarter of the core's capacity the rates lose utility, and the core is overloaded.
        let cost = big_switch(10e9, 2, 1).unwrap();
        assert!(cost.points < -0.05 && cost.overload > 10.0, "{cost:?}");
    }

    #[test]
    fn pods_that_keep_to_themselves_lose_nothing() {
        let cost = pods(4, 1.0, 4, 1).unwrap();
        assert!((cost.throughput - 100.0).abs() < 0.1 && cost.points.abs() < 1e-3 && cost.overload < 0.1, "{cost:?}");
        let cost = pods(4, 0.0, 4, 1).unwrap();
        assert!(cost.points < -1e-3, "{cost:?}");
    }
}
