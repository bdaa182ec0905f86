//! Actions on flows during a run: dependent transfers start, weights change, routes avoid failed links. The exact
//! solver that convergence is measured against applies the same actions as the backend.
//!
//! An action that reacts to the end of a flow takes effect after at least the smallest link delay.

use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use subak_core::backend::{Backend, Injected, LinkChange, Route};
use subak_core::route::Router;
use subak_core::{FlowId, IdVec, InputError, LinkId, NodeId, Ns, Utility};

/// A change of a flow, or of the paths to the controller, during a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// New weight and utility function of a flow.
    Weight(FlowId, f64, Option<Arc<Utility>>),
    /// New paths of a flow's subflows.
    Reroute(FlowId, Vec<Route>),
    /// New paths between these hosts and the controller.
    Routes(Vec<(NodeId, Route)>),
}

/// Scheduled actions of the spec, and actions triggered by events.
pub(crate) struct Actions<'a> {
    scenario: &'a Scenario,
    /// Changes of weights, in descending order of time (popped from the end).
    weights: Vec<(Ns, FlowId, f64)>,
    /// Times of route recomputation, in descending order (popped from the end).
    reroutes: Vec<Ns>,
    link_changes: Vec<(Ns, LinkId, LinkChange)>,
    /// For each flow, the flows that start after it ends, each with the delay after that end, ns.
    dependents: BTreeMap<FlowId, Vec<(FlowId, Ns)>>,
    /// For each waiting flow: number of dependencies that have yet to finish, and earliest start allowed by the finished ones, ns.
    waits_for: BTreeMap<FlowId, (u32, Ns)>,
    /// Start time of each flow, ns; [`Ns::MAX`] if not yet known.
    starts_ns: IdVec<FlowId, Ns>,
    /// Links that routes currently avoid.
    avoided: BTreeSet<LinkId>,
    reaction_ns: Ns,
}

impl<'a> Actions<'a> {
    pub fn new(scenario: &'a Scenario, flows: &IdVec<FlowId, Planned>) -> Self {
        let mut weights: Vec<_> = flows
            .iter_enumerated()
            .flat_map(|(f, flow)| flow.weights.iter().map(move |&(at_ns, weight)| (at_ns, f, weight)))
            .collect();
        weights.sort_by_key(|w| std::cmp::Reverse((w.0, w.1)));
        let link_changes = Injected::link_changes(&scenario.faults);
        let mut reroutes: Vec<Ns> = match scenario.reroute_ns {
            Some(after_ns) => {
                let turns = link_changes.iter().filter(|c| !matches!(c.2, LinkChange::Capacity(_)));
                turns.map(|c| c.0.saturating_add(after_ns)).collect()
            }
            None => Vec::new(),
        };
        reroutes.sort_unstable_by_key(|&at| std::cmp::Reverse(at));
        reroutes.dedup();
        let (mut dependents, mut waits_for) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        for (f, flow) in flows.iter_enumerated().filter(|(_, flow)| !flow.after.is_empty()) {
            for (k, &before) in flow.after.iter().enumerate() {
                let delay_ns = flow.delays_ns.get(k).copied().unwrap_or(0);
                dependents.entry(before).or_default().push((f, delay_ns));
            }
            waits_for.insert(f, (flow.needed.map_or(flow.after.len() as u32, NonZeroU32::get), flow.earliest_ns));
        }
        Actions {
            scenario,
            weights,
            reroutes,
            link_changes,
            dependents,
            waits_for,
            starts_ns: flows.iter().map(|f| if f.after.is_empty() { f.plan.start_ns } else { Ns::MAX }).collect(),
            avoided: BTreeSet::new(),
            reaction_ns: scenario.topology.quickest_ns(),
        }
    }

    /// Start time of a flow, ns; [`Ns::MAX`] if not yet known.
    pub fn start_ns(&self, f: FlowId) -> Ns {
        self.starts_ns[f]
    }

    /// Whether some flows start after the end of others. The run then stops at each end of a flow.
    pub fn reacts(&self) -> bool {
        !self.waits_for.is_empty()
    }

    /// Time of the next scheduled action, ns.
    pub fn next_ns(&self) -> Ns {
        let weight = self.weights.last().map_or(Ns::MAX, |w| w.0);
        weight.min(self.reroutes.last().copied().unwrap_or(Ns::MAX))
    }

    /// Starts the flows whose last needed dependency is among `finished`; returns each with its start time,
    /// ns.
    pub fn react(
        &mut self,
        finished: &[FlowId],
        backend: &mut dyn Backend,
        flows: &IdVec<FlowId, Planned>,
    ) -> Vec<(Ns, FlowId)> {
        let mut started = Vec::new();
        for before in finished {
            for (f, delay_ns) in self.dependents.remove(before).into_iter().flatten() {
                let Some((left, ready_ns)) = self.waits_for.get_mut(&f) else { continue };
                *left -= 1;
                let after_ns = self.reaction_ns.max(flows[f].plan.start_ns.saturating_add(delay_ns));
                *ready_ns = backend.now_ns().saturating_add(after_ns).max(*ready_ns);
                let (left, at_ns) = (*left, *ready_ns);
                if left > 0 {
                    continue;
                }
                self.waits_for.remove(&f);
                // No flow starts after the duration.
                if at_ns < self.scenario.duration_ns {
                    self.starts_ns[f] = at_ns;
                    backend.start_flow(f, at_ns);
                    started.push((at_ns, f));
                }
            }
        }
        started
    }

    /// Removes and returns the changes of weights and routes that are due at `now_ns`.
    pub fn due(&mut self, now_ns: Ns, flows: &IdVec<FlowId, Planned>) -> Result<Vec<Action>, InputError> {
        let mut actions = Vec::new();
        while let Some((_, f, weight)) = self.weights.pop_if(|w| w.0 <= now_ns) {
            let utility = flows[f]
                .plan
                .utility
                .is_some()
                .then(|| Utility::under(self.scenario.policy, weight, &flows[f].extra).map(Arc::new));
            actions.push(Action::Weight(f, weight, utility.transpose()?));
        }
        if self.reroutes.pop_if(|at| *at <= now_ns).is_some() {
            self.reroute(now_ns, flows, &mut actions);
        }
        Ok(actions)
    }

    /// Recomputes routes without the links that have been down for [`Scenario::reroute_ns`].
    fn reroute(&mut self, now_ns: Ns, flows: &IdVec<FlowId, Planned>, actions: &mut Vec<Action>) {
        let noticed_ns = now_ns.saturating_sub(self.scenario.reroute_ns.unwrap_or(0));
        let mut down = IdVec::filled(0i32, self.scenario.topology.network().links().len());
        for &(_, link, change) in self.link_changes.iter().take_while(|c| c.0 <= noticed_ns) {
            down[link] += match change {
                LinkChange::Down => 1,
                LinkChange::Up => -1,
                LinkChange::Capacity(_) => 0,
            };
        }
        let avoided: BTreeSet<LinkId> = down.ids().filter(|&l| down[l] > 0).collect();
        if avoided == self.avoided {
            return;
        }
        let mut router = self.scenario.topology.router_avoiding(&avoided);
        actions.push(Action::Routes(self.controller_around(&avoided, &mut router)));
        for (f, flow) in flows.iter_enumerated() {
            let (Some(src), Some(dst)) = (flow.src, flow.dst) else { continue };
            let routes = &flow.plan.routes;
            let (now, before) = (&avoided, &self.avoided);
            if !routes.iter().any(|r| crosses(r, now) || crosses(r, before)) {
                continue;
            }
            let found = |(k, route): (usize, &Route)| match crosses(route, now) {
                true => router.route(src, dst, subak_core::rng::mix(u64::from(f) << 8 | k as u64)).ok(),
                false => Some(route.clone()),
            };
            // A flow without another path keeps its path.
            if let Some(routes) = routes.iter().enumerate().map(found).collect::<Option<Vec<_>>>() {
                actions.push(Action::Reroute(f, routes));
            }
        }
        self.avoided = avoided;
    }

    /// New paths between the controller and the hosts whose present path crosses a link that is or was `avoided`.
    fn controller_around(&self, avoided: &BTreeSet<LinkId>, router: &mut Router) -> Vec<(NodeId, Route)> {
        let network = self.scenario.topology.network();
        let mut changed = Vec::new();
        for (host, way) in self.scenario.controller.iter().flatten() {
            if crosses(way, avoided) || crosses(way, &self.avoided) {
                let at = way.forward.last().and_then(|&last| network.links()[last].to).unwrap_or(*host);
                let around = crosses(way, avoided).then(|| router.route(*host, at, 0).ok()).flatten();
                changed.push((*host, around.unwrap_or_else(|| way.clone())));
            }
        }
        changed
    }
}

/// Whether `route`, forward or back, crosses one of `links`.
fn crosses(route: &Route, links: &BTreeSet<LinkId>) -> bool {
    route.forward.iter().chain(&route.back).any(|l| links.contains(l))
}

impl Action {
    /// Applies the action to `backend`.
    pub fn done_by(&self, backend: &mut dyn Backend) {
        match self {
            Action::Weight(f, weight, utility) => backend.set_weight(*f, *weight, utility.clone()),
            Action::Reroute(f, routes) => backend.reroute(*f, routes),
            Action::Routes(ways) => backend.on_routes(ways),
        }
    }
}
