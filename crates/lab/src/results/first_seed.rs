//! Warnings about the flows of a spec's first seed: their paths, their shares of links, and those that are omitted.

use crate::spec::ValidSpec;
use crate::spec::backends::BackendKind;
use crate::spec::choice::SchemeChoice;
use crate::spec::scenario::Scenario;
use crate::spec::workload::{Plan, Planned};
use std::cell::OnceCell;
use subak_core::backend::{FlowPlan, Injected, LinkChange, PacketSizes, Route};
use subak_core::quantity::quoted;
use subak_core::scheme::{FlowShares, Goal, Info, LeastShare};
use subak_core::{FlowId, IdVec, Link, LinkId, Ns};

/// The first seed of a scenario, whose flows are planned once, and only if a warning needs them.
pub(super) struct FirstSeed<'a> {
    spec: &'a ValidSpec,
    scenario: &'a Scenario,
    seed: u64,
    plan: OnceCell<Option<Plan>>,
}

impl<'a> FirstSeed<'a> {
    pub fn new(spec: &'a ValidSpec, scenario: &'a Scenario) -> Self {
        FirstSeed { spec, scenario, seed: spec.seeds.first().copied().unwrap_or(1), plan: OnceCell::new() }
    }

    /// The flows; `None` if they cannot be planned.
    fn plan(&self) -> Option<&Plan> {
        let Scenario { topology, workload, packet, duration_ns, .. } = self.scenario;
        self.plan.get_or_init(|| workload.plan(topology, self.seed, *packet, &[], *duration_ns).ok()).as_ref()
    }
}

/// A note about flows without a path, which never send; `None` if there are none.
pub(super) fn stranded(first: &FirstSeed) -> Option<String> {
    if first.scenario.topology.is_whole() {
        return None;
    }
    let Plan { flows, stranded, .. } = first.plan()?;
    let (count, all) = (stranded.len(), flows.len() + stranded.len());
    let seed = first.seed;
    (count > 0).then(|| {
        format!("{count} of {all} flows (seed {seed}) have no path to their destination: their rate is 0, and they never end")
    })
}

/// A note about the chains that are omitted, since they start after the run; `None` if there are none.
pub(super) fn late(first: &FirstSeed) -> Option<String> {
    if !first.scenario.workload.may_be_late(first.scenario.duration_ns) {
        return None;
    }
    let ((late, all), seed) = (first.plan()?.late, first.seed);
    (late > 0).then(|| {
        format!("{late} of {all} slots of clients (seed {seed}) start at run.duration or later, and are left out")
    })
}

/// Expected number of flows above which their shares are not examined.
const MOST_SHARES: f64 = 1e5;

/// Shares of the endless flows; the default if there are none, or too many.
pub(super) fn shares(first: &FirstSeed) -> FlowShares {
    let Scenario { topology, workload, packet, duration_ns, .. } = first.scenario;
    let many = || workload.expected(topology, *packet, *duration_ns).flows > MOST_SHARES;
    if workload.has_sizes() || workload.has_jobs() || many() {
        return FlowShares::default();
    }
    let Some(Plan { flows, .. }) = first.plan() else { return FlowShares::default() };
    let of_flow = |flow: &Planned| {
        let later = flow.weights.iter().map(|&(_, weight)| weight);
        later.fold((flow.plan.weight, flow.plan.weight), |(low, high), weight| (low.min(weight), high.max(weight)))
    };
    FlowShares {
        least: least_share(first.scenario, flows),
        both_ways: workload.runs_both_ways(flows),
        weights: flows.iter().map(of_flow).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
    }
}

/// The least share of a link that an endless flow has, in proportion to weights, and as packets in its
/// base RTT, at the lowest capacities that faults leave; `None` if no two endless flows share a link.
fn least_share(scenario: &Scenario, flows: &IdVec<FlowId, Planned>) -> Option<LeastShare> {
    let Scenario { topology, packet, faults, .. } = scenario;
    let endless: Vec<_> = flows
        .iter()
        .map(|f| &f.plan)
        .filter(|f| {
            let is_whole = f.spread.is_none() || f.routes.len() == 1;
            f.size_bytes.is_none() && is_whole && f.stop_ns.is_none_or(|stop_ns| stop_ns > f.start_ns)
        })
        .flat_map(|f| f.routes.iter().map(move |route| Endless::of(f, route)))
        .collect();
    let pooled = endless.iter().any(|subflow| subflow.pooled);
    let mut links = topology.network().links().clone();
    for (_, l, change) in Injected::link_changes(faults) {
        if let LinkChange::Capacity(bps) = change {
            links[l].capacity_bps = links[l].capacity_bps.min(bps);
        }
    }
    let mut smallest = IdVec::<LinkId, f64>::filled(f64::INFINITY, links.len());
    let mut changes: Vec<(Ns, bool, usize)> = Vec::new();
    for (s, subflow) in endless.iter().enumerate() {
        subflow.route.forward.iter().for_each(|&l| smallest[l] = smallest[l].min(subflow.weight));
        changes.push((subflow.start_ns, true, s));
        changes.push((subflow.stop_ns, false, s));
    }
    changes.sort_unstable();
    let mut live = IdVec::<LinkId, (usize, f64)>::filled((0, 0.0), links.len());
    let mut least: Option<LeastShare> = None;
    for (_, starts, s) in changes {
        let Endless { route, weight, .. } = endless[s];
        for &l in &route.forward {
            let (count, weights) = &mut live[l];
            if !starts {
                (*count, *weights) = (*count - 1, *weights - weight);
                continue;
            }
            (*count, *weights) = (*count + 1, *weights + weight);
            let bps = links[l].capacity_bps * smallest[l] / *weights;
            let share = LeastShare { flows: *count, pooled, bps, rtt_ns: base_rtt_ns(route, &links, *packet) };
            if *count > 1 && least.is_none_or(|known| share.bps * share.rtt_ns < known.bps * known.rtt_ns) {
                least = Some(share);
            }
        }
    }
    least
}

/// A subflow of an endless flow.
#[derive(Clone, Copy)]
struct Endless<'a> {
    route: &'a Route,
    weight: f64,
    pooled: bool,
    start_ns: Ns,
    stop_ns: Ns,
}

impl<'a> Endless<'a> {
    fn of(flow: &FlowPlan, route: &'a Route) -> Self {
        let (count, stop_ns) = (flow.routes.len(), flow.stop_ns.unwrap_or(Ns::MAX));
        Endless { route, weight: flow.weight / count as f64, pooled: count > 1, start_ns: flow.start_ns, stop_ns }
    }
}

/// Base RTT of a route, ns.
fn base_rtt_ns(route: &Route, links: &IdVec<LinkId, Link>, packet: PacketSizes) -> f64 {
    let crossing_ns =
        |l: &LinkId, bytes: u32| links[*l].delay_ns as f64 + f64::from(bytes) * 8e9 / links[*l].capacity_bps;
    let forward: f64 = route.forward.iter().map(|l| crossing_ns(l, packet.mtu_bytes)).sum();
    forward + route.back.iter().map(|l| crossing_ns(l, packet.ack_bytes)).sum::<f64>()
}

/// Warnings for schemes whose rates of flows over several paths are far off on some networks.
pub(super) fn pooled(first: &FirstSeed) -> Vec<(&'static str, String)> {
    if !first.scenario.given.contains(&"workload.subflows") {
        return Vec::new();
    }
    let Some(Plan { flows, .. }) = first.plan() else { return Vec::new() };
    let several = flows.iter().filter(|flow| flow.plan.spread.is_none() && flow.plan.routes.len() > 1).count();
    let is = |scheme: &SchemeChoice, cause: PooledCause| {
        let policy = first.scenario.under(scheme).policy;
        scheme.backend().is_ok_and(|(backend, info)| {
            backend.name() == "packet"
                && match cause {
                    PooledCause::Scheme => info.goal.doubtful().pooled,
                    PooledCause::MaxMin => matches!(info.goal, Goal::MaxMin | Goal::EqualMaxMin),
                    PooledCause::Alpha => info.goal.pools_badly(policy),
                }
        })
    };
    let told = |cause: PooledCause| {
        let labels: Vec<String> =
            first.spec.every_scheme().filter(|scheme| is(scheme, cause)).map(|s| quoted(&s.label)).collect();
        let text = format!(
            "{several} of {} flows (seed {}) have several paths: {}",
            flows.len(),
            first.seed,
            cause.text(&labels.join(", "))
        );
        (several > 0 && !labels.is_empty()).then_some(("pooled", text))
    };
    [PooledCause::Scheme, PooledCause::MaxMin, PooledCause::Alpha].into_iter().filter_map(told).collect()
}

/// The reason why rates of flows over several paths are far off.
#[derive(Clone, Copy)]
enum PooledCause {
    /// The scheme is, under every policy.
    Scheme,
    /// Links divide their capacity among subflows, and not among flows.
    MaxMin,
    /// The policy's alpha is above the largest one at which the scheme comes near the optimum.
    Alpha,
}

impl PooledCause {
    /// The consequence for the schemes called `labels`, and a hint.
    fn text(self, labels: &str) -> String {
        match self {
            PooledCause::Scheme => format!(
                "their rates may stay more than 15% off the optimum under {labels}, where paths are long or have other flows; take \
                 the optimizer ned or ned-central"
            ),
            PooledCause::MaxMin => format!(
                "each subflow has an equal part of its flow's weight under {labels}, whatever the others get, so that rates may be \
                 half off the pooled max-min ones; take the optimizer exact-central"
            ),
            PooledCause::Alpha => format!(
                "at this alpha their rates may stay half off the optimum under {labels}; take numfabric, or the optimizer exact-central"
            ),
        }
    }
}

/// Ratio of the base RTTs of a flow's subflows above which prices of their paths follow rates at different speeds.
const UNLIKE_RTTS: f64 = 10.0;

/// Warning for schemes that pool subflows by prices, where base RTTs of a flow's subflows differ widely.
pub(super) fn unlike_subflows(first: &FirstSeed) -> Option<(&'static str, String)> {
    if !first.scenario.given.contains(&"workload.subflows") {
        return None;
    }
    let pools = |scheme: &&SchemeChoice| {
        let utility = |(backend, info): (&dyn BackendKind, Info)| {
            backend.name() == "packet" && matches!(info.goal, Goal::Utility(_))
        };
        scheme.backend().is_ok_and(utility)
    };
    let labels: Vec<String> = first.spec.every_scheme().filter(pools).map(|s| quoted(&s.label)).collect();
    if labels.is_empty() {
        return None;
    }
    let Scenario { topology, packet, .. } = first.scenario;
    let (seed, flows) = (first.seed, &first.plan()?.flows);
    let links = topology.network().links();
    let ratio = |routes: &[Route]| {
        let rtts = || routes.iter().map(|route| base_rtt_ns(route, links, *packet));
        rtts().fold(0.0, f64::max) / rtts().fold(f64::INFINITY, f64::min)
    };
    let ratios = flows.iter().filter(|flow| flow.plan.spread.is_none()).map(|flow| ratio(&flow.plan.routes));
    let wide: Vec<f64> = ratios.filter(|&ratio| ratio >= UNLIKE_RTTS).collect();
    let text = format!(
        "base RTTs of the subflows of {} of {} flows (seed {seed}) differ by a factor of up to {:.0}: rates of {} may be half off the \
         optimum, since the prices of short paths change before long ones react",
        wide.len(),
        flows.len(),
        wide.iter().copied().fold(0.0, f64::max),
        labels.join(", ")
    );
    (!wide.is_empty()).then_some(("base-rtt", text))
}
