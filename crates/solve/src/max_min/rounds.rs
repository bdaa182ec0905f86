//! Water-filling in rounds: WF^1 of the PERC thesis (Algorithm 7). In a round, every link saturates whose water level
//! is the lowest of all links that its flows cross. A flow's demand acts as a link of its own.

use super::{NO_LINK, PathRows};
use subak_core::{FlowId, IdVec, LinkId};

/// Largest number of rounds: the flows then left are on long chains of links, each of which depends on the one before.
const MOST_ROUNDS: usize = 30;

/// State of a link in a round.
#[derive(Debug, Clone, Copy, Default)]
struct RoundLink {
    residual_bps: f64,
    /// Weight of the flows that are not frozen; 0 on links without such flows, and on all links between solves.
    weight: f64,
    level: f64,
    /// Lowest water level among all links that the link's flows cross.
    lowest: f64,
}

/// The memory of a solve.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    state: IdVec<LinkId, RoundLink>,
    used: Vec<LinkId>,
    /// Flows that are not frozen, each with the lowest water level on its path.
    open: Vec<(f64, FlowId)>,
}

/// Flows that are not frozen after the last round, and the capacities left for them.
pub(super) struct Rest {
    pub flows: Vec<FlowId>,
    pub capacity_bps: IdVec<LinkId, f64>,
}

impl Rounds {
    /// Freezes flows as in [`super::MaxMin::solve`]. Returns the number of saturated links, and the remaining flows.
    pub fn solve(&mut self, rows: &PathRows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) -> (u64, Option<Rest>) {
        self.begin(rows);
        let mut filled = 0;
        for _ in 0..MOST_ROUNDS {
            self.take_levels();
            if self.open.is_empty() {
                return (filled, None);
            }
            self.meet(rows);
            let full = |l: &&LinkId| self.state[**l].level <= self.state[**l].lowest;
            filled += self.used.iter().filter(full).count() as u64;
            self.freeze(rows, rates_bps, bottleneck);
        }
        (filled, self.rest(rows))
    }

    fn begin(&mut self, rows: &PathRows) {
        let Rounds { state, used, open } = self;
        state.resize(rows.capacity_bps.len(), RoundLink::default());
        used.clear();
        open.clear();
        for f in (0..rows.len()).map(|k| rows.flow(k)) {
            open.push((0.0, f));
            for &l in rows.path(f) {
                let state = &mut state[l];
                if state.weight == 0.0 {
                    state.residual_bps = rows.capacity_bps(l);
                    used.push(l);
                }
                state.weight += rows.weight(f);
            }
        }
    }

    /// Computes the water levels of links with flows that are not frozen. Weights are summed anew in each round, so
    /// that no digits cancel.
    fn take_levels(&mut self) {
        let state = &mut self.state;
        self.used.retain(|&l| {
            let state = &mut state[l];
            let weight = std::mem::take(&mut state.weight);
            state.level = (state.residual_bps / weight).max(0.0);
            state.lowest = state.level;
            weight > 0.0
        });
    }

    /// Computes for each link the lowest water level on its flows' paths.
    fn meet(&mut self, rows: &PathRows) {
        for (lowest, f) in &mut self.open {
            let path = rows.path(*f);
            let at_demand = rows.demand_bps(*f) / rows.weight(*f);
            *lowest = path.iter().map(|&l| self.state[l].level).fold(at_demand, f64::min);
            for &l in path {
                let state = &mut self.state[l];
                state.lowest = state.lowest.min(*lowest);
            }
        }
    }

    /// Freezes the flows at their demand or on a saturated link, and sums the weights of the other flows by link.
    fn freeze(&mut self, rows: &PathRows, rates_bps: &mut [f64], bottleneck: &mut [LinkId]) {
        let state = &mut self.state;
        self.open.retain(|&(lowest, f)| {
            let (path, weight, demand) = (rows.path(f), rows.weight(f), rows.demand_bps(f));
            let full = |l: &&LinkId| state[**l].level == lowest && state[**l].lowest == lowest;
            let (rate, by) = match path.iter().find(full) {
                _ if demand / weight <= lowest => (demand, NO_LINK),
                Some(&l) => (weight * lowest, l),
                None => {
                    path.iter().for_each(|&l| state[l].weight += weight);
                    return true;
                }
            };
            path.iter().for_each(|&l| state[l].residual_bps -= rate);
            rates_bps[f.index()] = rate;
            if let Some(place) = bottleneck.get_mut(f.index()) {
                *place = by;
            }
            false
        });
    }

    fn rest(&mut self, rows: &PathRows) -> Option<Rest> {
        let mut capacity_bps = IdVec::from(rows.capacity_bps.to_vec());
        for &l in &self.used {
            let state = &mut self.state[l];
            capacity_bps[l] = state.residual_bps.max(0.0);
            state.weight = 0.0;
        }
        let flows: Vec<FlowId> = self.open.iter().map(|&(_, f)| f).collect();
        (!flows.is_empty()).then_some(Rest { flows, capacity_bps })
    }
}
