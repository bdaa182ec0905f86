//! A case under small changes: flows are added and removed, weights, demands and capacities change, and each solve
//! starts from the previous solution.
//!
//! Under max-min over single paths a [`LiveMaxMin`] has a copy of the flows. With it, [`Incremental::repair`] repairs
//! the last rates to within a tolerance, without an exact solve. For utilities a solve starts from the last prices.

use crate::answer::Answer;
use crate::live::{LiveMaxMin, Repair};
use crate::options::{SolveMethod, SolveOptions};
use crate::solver::{finish, max_min_prices, solve_from};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use subak_core::{Case, Flow, FlowId, IdVec, InputError, LinkId, Network, Policy};

subak_core::id! {
    /// Permanent key of a flow, whose index in the case may change.
    struct StableFlowId(u32);
}

/// Number of changes after which an exact solve recomputes loads, to clear accumulated rounding.
const MOST_CHANGES: usize = 1 << 20;

/// A case and its last answer.
#[derive(Debug, Clone)]
pub struct Incremental {
    /// The case. Deleted flows remain in it until `tidy` removes them.
    case: Arc<Case>,
    /// Key of each flow, by its id.
    keys: HashMap<String, StableFlowId>,
    /// Index of each key's flow in the case.
    place: IdVec<StableFlowId, FlowId>,
    /// Key of the flow at each index; `NONE` for a deleted flow.
    key: IdVec<FlowId, StableFlowId>,
    free: Vec<StableFlowId>,
    left: usize,
    prices: Option<IdVec<LinkId, f64>>,
    live: Option<Live>,
}

/// The flows under max-min over single paths.
#[derive(Debug, Clone)]
struct Live {
    solver: LiveMaxMin,
    /// Number of each key's flow in the [`LiveMaxMin`].
    flow: IdVec<StableFlowId, FlowId>,
    /// Tolerance of the latest rates; 0 if exact.
    tolerance: f64,
    changes: usize,
}

impl Incremental {
    /// Starts from `case`. Unnamed flows get their numbers as names.
    pub fn new(mut case: Case) -> Self {
        case.flows.name_by_number();
        let capacity_bps = case.network.links().iter().map(|l| l.capacity_bps).collect();
        let live = (case.policy == Policy::MaxMin && case.flows.single_path()).then(|| Live {
            solver: LiveMaxMin::new(capacity_bps),
            flow: IdVec::new(),
            tolerance: 0.0,
            changes: 0,
        });
        let (keys, place, key, free) = (HashMap::new(), IdVec::new(), IdVec::new(), Vec::new());
        let mut now = Incremental { case: Arc::new(case), keys, place, key, free, left: 0, prices: None, live };
        for f in 0..now.case.flows.len() {
            now.enter(f);
        }
        now
    }

    /// Assigns a key to flow `f` of the case, and adds the flow to the [`LiveMaxMin`].
    fn enter(&mut self, f: usize) {
        let flows = &self.case.flows;
        let key = self.free.pop().unwrap_or(self.place.next_id());
        if key == self.place.next_id() {
            self.place.push(FlowId::NONE);
        }
        self.place[key] = FlowId::from_index(f);
        self.key.push(key);
        self.keys.insert(flows.id(f), key);
        if flows.paths_of(f).len() > 1 {
            self.live = None;
        }
        if let Some(live) = &mut self.live {
            let p = flows.paths_of(f).start;
            let number = live.solver.add(flows.links_of(p), flows.weight()[f], flows.demand_bps()[f]);
            live.flow.resize(self.place.len(), number);
            live.flow[key] = number;
        }
    }

    /// Adds a flow; its id must be new.
    pub fn add(&mut self, flow: Flow) -> Result<(), InputError> {
        if self.keys.contains_key(&flow.id) {
            return Err(InputError::new(
                "id",
                format!("a second flow has the id \"{}\"", flow.id),
                "give it another id",
            ));
        }
        let case = Arc::make_mut(&mut self.case);
        case.flows.push(flow, &case.network)?;
        self.changed();
        self.enter(self.key.len());
        Ok(())
    }

    /// Removes the flow called `id`.
    pub fn remove(&mut self, id: &str) -> Result<(), InputError> {
        let key = self.find(id)?;
        self.keys.remove(id);
        self.key[std::mem::replace(&mut self.place[key], FlowId::NONE)] = StableFlowId::NONE;
        self.free.push(key);
        self.left += 1;
        self.changed();
        if let Some(live) = &mut self.live {
            live.solver.remove(live.flow[key]);
        }
        // Bounds the memory of deleted flows by that of the others.
        if self.left > self.keys.len() + 1024 {
            self.tidy();
        }
        Ok(())
    }

    /// Changes a flow's weight.
    pub fn set_weight(&mut self, id: &str, weight: f64) -> Result<(), InputError> {
        let key = self.find(id)?;
        Arc::make_mut(&mut self.case).flows.set_weight(self.place[key].index(), weight)?;
        self.changed();
        if let Some(live) = &mut self.live {
            live.solver.set_weight(live.flow[key], weight);
        }
        Ok(())
    }

    /// Changes a flow's demand; `None` for none.
    pub fn set_demand(&mut self, id: &str, demand_bps: Option<f64>) -> Result<(), InputError> {
        let (key, demand_bps) = (self.find(id)?, demand_bps.unwrap_or(f64::INFINITY));
        Arc::make_mut(&mut self.case).flows.set_demand(self.place[key].index(), demand_bps)?;
        self.changed();
        if let Some(live) = &mut self.live {
            live.solver.set_demand(live.flow[key], demand_bps);
        }
        Ok(())
    }

    /// Changes a link's capacity.
    pub fn set_capacity(&mut self, link: &str, capacity_bps: f64) -> Result<(), InputError> {
        let unknown = || InputError::new("link", format!("there is no link \"{link}\""), "name a link of the network");
        let l = self.case.network.find_link(link).ok_or_else(unknown)?;
        if !(capacity_bps.is_finite() && capacity_bps > 0.0) {
            let what = format!("the capacity is {capacity_bps}");
            return Err(InputError::new("capacity", what, "give a finite, positive rate such as \"10Gbps\""));
        }
        Arc::make_mut(&mut self.case).network.link_mut(l).capacity_bps = capacity_bps;
        self.changed();
        if let Some(live) = &mut self.live {
            live.solver.set_capacity(l, capacity_bps);
        }
        Ok(())
    }

    /// The network after all changes.
    pub fn network(&self) -> &Network {
        &self.case.network
    }

    /// The objective.
    pub fn policy(&self) -> Policy {
        self.case.policy
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether there is a flow called `id`.
    pub fn contains(&self, id: &str) -> bool {
        self.keys.contains_key(id)
    }

    /// The changed case; flows are in the order in which they were added.
    pub fn case(&mut self) -> Arc<Case> {
        self.tidy();
        self.case.clone()
    }

    /// Solves the case exactly, starting from the previous answer if that saves iterations. Returns the case and its
    /// answer.
    pub fn solve(&mut self, options: &SolveOptions) -> Result<(Arc<Case>, Answer), InputError> {
        self.tidy();
        if let Some(live) = self.live.as_mut().filter(|_| options.method == SolveMethod::Own) {
            live.solver.solve();
            (live.tolerance, live.changes) = (0.0, 0);
            return self.answer();
        }
        let answer = solve_from(&self.case, options, self.prices.as_deref())?;
        self.prices = Some(answer.link_price.clone());
        Ok((self.case.clone(), answer))
    }

    /// Repairs the last max-min rates to within `tolerance` of the bottleneck condition, in time proportional to the
    /// number of affected flows. [`Incremental::answer`] certifies them.
    pub fn repair(&mut self, tolerance: f64) -> Result<Repair, InputError> {
        let live = self.live.as_mut().ok_or_else(not_live)?;
        if !(tolerance > 0.0 && tolerance < 1.0) {
            return Err(InputError::new(
                "tolerance",
                format!("the tolerance is {tolerance}"),
                "give a number in (0, 1)",
            ));
        }
        // A repair examines only flows near changes. With a tighter tolerance than before, earlier errors elsewhere
        // would remain.
        let tightened = tolerance < std::mem::replace(&mut live.tolerance, tolerance);
        if !tightened && live.changes < MOST_CHANGES {
            return Ok(live.solver.repair(tolerance));
        }
        live.solver.solve();
        live.changes = 0;
        Ok(Repair { flows: self.keys.len(), rounds: 0, exact: true })
    }

    /// The max-min rates of the latest solve or repair, with a certificate. The status is optimal if the certificate
    /// is within the tolerance, and inaccurate after later changes.
    pub fn answer(&mut self) -> Result<(Arc<Case>, Answer), InputError> {
        self.tidy();
        let live = self.live.as_ref().ok_or_else(not_live)?;
        let start = Instant::now();
        let rates: Vec<f64> = self.key.iter().map(|&key| live.solver.rate_bps(live.flow[key])).collect();
        let link_price = IdVec::filled(0.0, self.case.network.links().len());
        let empty = Answer::empty("live-water-filling");
        let answer = Answer { path_rates_bps: rates.clone(), rates_bps: rates, link_price, ..empty };
        let exact = SolveOptions::default();
        let options = SolveOptions { tolerance: live.tolerance.max(exact.tolerance), ..exact };
        let mut answer = finish(&self.case, answer, &options, start, None);
        let first = |f| answer.bottlenecks.row(f).first().copied();
        answer.link_price = max_min_prices(&self.case, (0..answer.bottlenecks.len()).map(first));
        Ok((self.case.clone(), answer))
    }

    /// Rate of the flow called `id` after the latest solve or repair, bit/s.
    pub fn rate_bps(&self, id: &str) -> Result<f64, InputError> {
        let live = self.live.as_ref().ok_or_else(not_live)?;
        Ok(live.solver.rate_bps(live.flow[self.find(id)?]))
    }

    fn changed(&mut self) {
        if let Some(live) = &mut self.live {
            live.changes += 1;
        }
    }

    fn find(&self, id: &str) -> Result<StableFlowId, InputError> {
        let unknown = || InputError::new("id", format!("there is no flow \"{id}\""), "name a flow that is there");
        self.keys.get(id).copied().ok_or_else(unknown)
    }

    /// Removes deleted flows from the case.
    fn tidy(&mut self) {
        if std::mem::take(&mut self.left) == 0 {
            return;
        }
        Arc::make_mut(&mut self.case).flows.retain(|f| self.key[FlowId::from_index(f)] != StableFlowId::NONE);
        self.key.raw_mut().retain(|key| *key != StableFlowId::NONE);
        self.key.iter_enumerated().for_each(|(f, &key)| self.place[key] = f);
    }
}

fn not_live() -> InputError {
    InputError::new(
        "policy",
        "only max-min over single paths keeps its rates from one change to the next",
        "solve instead: utilities start from their last prices",
    )
}
