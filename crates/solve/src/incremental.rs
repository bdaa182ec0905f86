//! A case that changes a little at a time: flows come and go, weights, demands and capacities change, and each solve
//! reuses what the last one found.
//!
//! Under max-min over single paths the flows are kept in a [`LiveMaxMin`] too, so that [`Incremental::repair`] can mend
//! the last rates within a tolerance instead of solving anew. Utilities start from the last prices.

use crate::answer::Answer;
use crate::live::{LiveMaxMin, Repair};
use crate::solver::{Options, solve_from};
use std::collections::BTreeMap;
use subak_core::{Case, Fault, Flow, FlowId, Flows, Network, Policy};

/// A case and its last answer.
#[derive(Debug, Clone)]
pub struct Incremental {
    network: Network,
    policy: Policy,
    /// The flows in the order they came, by id.
    flows: Vec<Flow>,
    place: BTreeMap<String, usize>,
    prices: Option<Vec<f64>>,
    /// The same flows under max-min over single paths, with their numbers there.
    live: Option<(LiveMaxMin, Vec<FlowId>)>,
}

impl Incremental {
    /// A network without flows yet.
    pub fn new(network: Network, policy: Policy) -> Self {
        let capacity_bps = network.links().iter().map(|l| l.capacity_bps).collect();
        let live = (policy == Policy::MaxMin).then(|| (LiveMaxMin::new(capacity_bps), Vec::new()));
        Incremental { network, policy, flows: Vec::new(), place: BTreeMap::new(), prices: None, live }
    }

    /// Adds a flow; its id must be new.
    pub fn add(&mut self, flow: Flow) -> Result<(), Fault> {
        Flows::new().push(flow.clone(), &self.network)?;
        if self.place.contains_key(&flow.id) {
            return Err(Fault::new("id", format!("a second flow has the id \"{}\"", flow.id), "give it another id"));
        }
        if flow.paths.len() > 1 {
            self.live = None;
        }
        if let Some((live, keys)) = &mut self.live {
            keys.push(live.add(&flow.paths[0], flow.weight, flow.demand_bps.unwrap_or(f64::INFINITY)));
        }
        self.place.insert(flow.id.clone(), self.flows.len());
        self.flows.push(flow);
        Ok(())
    }

    /// Removes the flow called `id`. The last flow takes its place.
    pub fn remove(&mut self, id: &str) -> Result<(), Fault> {
        let place = self.find(id)?;
        self.place.remove(id);
        self.flows.swap_remove(place);
        if let Some(moved) = self.flows.get(place) {
            self.place.insert(moved.id.clone(), place);
        }
        if let Some((live, keys)) = &mut self.live {
            live.remove(keys.swap_remove(place));
        }
        Ok(())
    }

    /// Changes a flow's weight.
    pub fn set_weight(&mut self, id: &str, weight: f64) -> Result<(), Fault> {
        self.change(id, |flow| flow.weight = weight)
    }

    /// Changes a flow's demand; `None` for none.
    pub fn set_demand(&mut self, id: &str, demand_bps: Option<f64>) -> Result<(), Fault> {
        self.change(id, |flow| flow.demand_bps = demand_bps)
    }

    /// Changes a link's capacity.
    pub fn set_capacity(&mut self, link: &str, capacity_bps: f64) -> Result<(), Fault> {
        let l = self
            .network
            .find_link(link)
            .ok_or_else(|| Fault::new("link", format!("there is no link \"{link}\""), "name a link of the network"))?;
        if !(capacity_bps.is_finite() && capacity_bps > 0.0) {
            return Err(Fault::new(
                "capacity",
                format!("the capacity is {capacity_bps}"),
                "give a finite, positive rate such as \"10Gbps\"",
            ));
        }
        self.network.link_mut(l).capacity_bps = capacity_bps;
        if let Some((live, _)) = &mut self.live {
            live.set_capacity(l, capacity_bps);
        }
        Ok(())
    }

    /// The case as it stands.
    pub fn case(&self) -> Case {
        let mut flows = Flows::new();
        for flow in &self.flows {
            flows.push(flow.clone(), &self.network).expect("checked when it was added or changed");
        }
        Case { network: self.network.clone(), flows, policy: self.policy }
    }

    /// Solves the case as it stands, exactly, from the last answer where that helps. Returns it with its answer.
    pub fn solve(&mut self, options: &Options) -> Result<(Case, Answer), Fault> {
        let case = self.case();
        let answer = solve_from(&case, options, self.prices.as_deref())?;
        self.prices = Some(answer.link_price.clone());
        if let Some((live, _)) = &mut self.live {
            live.solve();
        }
        Ok((case, answer))
    }

    /// Mends the last max-min rates after changes to within `tolerance` of the bottleneck condition. Returns the rates in
    /// the case's order, and what was done.
    pub fn repair(&mut self, tolerance: f64) -> Result<(Vec<f64>, Repair), Fault> {
        let Some((live, keys)) = &mut self.live else {
            return Err(Fault::new(
                "policy",
                "only max-min over single paths can be repaired within a tolerance",
                "solve instead: utilities start from their last prices",
            ));
        };
        if !(tolerance > 0.0 && tolerance < 1.0) {
            return Err(Fault::new("tolerance", format!("the tolerance is {tolerance}"), "give a number in (0, 1)"));
        }
        let done = live.repair(tolerance);
        Ok((keys.iter().map(|&f| live.rate_bps(f)).collect(), done))
    }

    fn find(&self, id: &str) -> Result<usize, Fault> {
        let unknown = || Fault::new("id", format!("there is no flow \"{id}\""), "name a flow that was added");
        self.place.get(id).copied().ok_or_else(unknown)
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Flow)) -> Result<(), Fault> {
        let place = self.find(id)?;
        let mut flow = self.flows[place].clone();
        change(&mut flow);
        Flows::new().push(flow.clone(), &self.network)?;
        if let Some((live, keys)) = &mut self.live {
            live.set_weight(keys[place], flow.weight);
            live.set_demand(keys[place], flow.demand_bps.unwrap_or(f64::INFINITY));
        }
        self.flows[place] = flow;
        Ok(())
    }
}
