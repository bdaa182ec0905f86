//! Convergence of rates: a fraction y of the flows is within a relative tolerance x of the optimum for a dwell
//! time z (NUMFabric, section 6.1; PERC thesis, section 4.3.1).
//!
//! After each change of the flows or links, the exact optimal rates on the wire are recomputed. Received rates are
//! smoothed as in NUMFabric, by an exponential average of time constant T. The average takes T ln(1/x) to come
//! within x of a new rate; this time is subtracted.

use crate::results::table::ResultRow;
use crate::runs::actions::Action;
use crate::spec::measure::Convergence;
use crate::spec::scenario::Scenario;
use crate::spec::workload::{Planned, by_start};
use subak_core::backend::{Backend, Injected, LinkChange};
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns};
use subak_fluid::Rates;

/// Measures convergence in a run by one criterion.
pub(crate) struct Watch<'a> {
    goal: Convergence,
    flows: &'a IdVec<FlowId, Planned>,
    oracle: Rates,
    /// Times at which flows start or stop or links change, and the end of the duration, ns.
    changes: Vec<Ns>,
    /// Link changes, in descending order of time.
    link_changes: Vec<(Ns, LinkId, LinkChange)>,
    next_change: usize,
    next_look_ns: Ns,
    last_look_ns: Ns,
    live: Vec<FlowId>,
    /// Flows that have not started, in descending order of start times.
    pending: Vec<FlowId>,
    filtered_bps: IdVec<FlowId, f64>,
    seen_bytes: IdVec<FlowId, u64>,
    change_ns: Ns,
    /// Time since which enough flows have been within the tolerance, ns.
    since_ns: Option<Ns>,
    settled_ns: Option<Ns>,
    within_share: f64,
    /// Relative distance of each live flow's rate from its goal at the latest sample.
    errors: Vec<f64>,
}

impl<'a> Watch<'a> {
    /// `data_share`: fraction of each link that the scheme lets data use. It scales the goal if that is the
    /// scheme's own.
    pub fn new(goal: Convergence, scenario: &Scenario, flows: &'a IdVec<FlowId, Planned>, data_share: f64) -> Self {
        let (end_ns, link_changes) = (scenario.duration_ns, Injected::link_changes(&scenario.faults));
        let ack_share = if goal.acks { scenario.packet.ack_share() } else { 0.0 };
        let times = flows.iter().flat_map(|f| [Some(f.plan.start_ns), f.plan.stop_ns]).flatten();
        let times = times.chain(link_changes.iter().map(|c| c.0));
        let times = times.chain(flows.iter().flat_map(|f| f.weights.iter().map(|w| w.0)));
        let reroutes = scenario.reroute_ns.map(|after| link_changes.iter().map(move |c| c.0.saturating_add(after)));
        let times = times.chain(reroutes.into_iter().flatten());
        let mut changes: Vec<Ns> = times.filter(|&t| t < end_ns).collect();
        changes.sort_unstable();
        changes.dedup();
        changes.push(end_ns);
        let mut oracle = Rates::new(scenario.topology.network(), data_share).beside_acks(ack_share);
        flows.iter().for_each(|f| oracle.add(&f.plan));
        let pending = by_start(flows);
        Watch {
            goal,
            flows,
            oracle,
            next_look_ns: changes[0],
            last_look_ns: changes[0],
            changes,
            link_changes: link_changes.into_iter().rev().collect(),
            next_change: 0,
            live: Vec::new(),
            pending,
            filtered_bps: IdVec::filled(0.0, flows.len()),
            seen_bytes: IdVec::filled(0, flows.len()),
            change_ns: 0,
            since_ns: None,
            settled_ns: None,
            within_share: 0.0,
            errors: Vec::new(),
        }
    }

    /// Time of the next sample, ns; [`Ns::MAX`] after the end.
    pub fn next_ns(&self) -> Ns {
        self.changes.get(self.next_change).map_or(Ns::MAX, |&c| c.min(self.next_look_ns))
    }

    /// Applies a change of a flow to the exact solver (`oracle`), since the change moves the optimum.
    pub fn hear(&mut self, action: &Action) {
        match action {
            Action::Weight(f, weight, utility) => self.oracle.set_weight(*f, *weight, utility.clone()),
            Action::Reroute(f, routes) => self.oracle.reroute(*f, routes),
            Action::Routes(_) => {}
        }
    }

    /// An error if the exact solver failed to find an optimum after a change of the flows.
    pub fn check(&self) -> Result<(), InputError> {
        match self.oracle.failures() {
            0 => Ok(()),
            n => {
                let what = format!("the policy's exact rates could not be found after {n} changes of the flows");
                Err(InputError::new("measure.convergence", what, "measure no convergence, or report this as a defect"))
            }
        }
    }

    /// Samples the flows, if a sample is due. At a change of the flows, returns the row of the previous change.
    pub fn look(&mut self, backend: &dyn Backend) -> Option<ResultRow<'static>> {
        let now_ns = backend.now_ns();
        if self.changes.get(self.next_change).is_none_or(|&c| c.min(self.next_look_ns) > now_ns) {
            return None;
        }
        self.next_look_ns = now_ns + self.goal.every_ns;
        let changed = self.changes[self.next_change] <= now_ns;
        let ended = self.live.iter().any(|&f| backend.flow(f).finished_ns.is_some());
        if !changed && !ended {
            self.judge(now_ns, backend);
            return None;
        }
        // A flow that has just ended has no rate to measure, so the result of the previous sample holds until now.
        self.hold(now_ns);
        let row = (!self.live.is_empty()).then(|| self.row());
        self.next_change += usize::from(changed);
        self.begin(now_ns, backend);
        row
    }

    fn judge(&mut self, now_ns: Ns, backend: &dyn Backend) {
        let dt_ns = (now_ns - self.last_look_ns).max(1);
        self.last_look_ns = now_ns;
        let gain = 1.0 - libm::exp(-(dt_ns as f64) / self.goal.filter_ns as f64);
        let mut near = 0;
        self.errors.clear();
        for &f in &self.live {
            let view = backend.flow(f);
            let rate = if self.goal.received {
                let arrived = view.received_wire_bytes - self.seen_bytes[f];
                self.seen_bytes[f] = view.received_wire_bytes;
                let filtered = &mut self.filtered_bps[f];
                *filtered += gain * (arrived as f64 * 8e9 / dt_ns as f64 - *filtered);
                *filtered
            } else {
                view.assigned_bps
            };
            let ideal = self.oracle.flow_bps(f);
            near += usize::from((rate - ideal).abs() <= self.goal.within * ideal);
            self.errors.push(if rate == ideal { 0.0 } else { (rate - ideal).abs() / ideal });
        }
        self.within_share = near as f64 / self.live.len() as f64;
        if !self.are_enough() {
            self.since_ns = None;
            if self.goal.lasting {
                self.settled_ns = None;
            }
            return;
        }
        self.since_ns.get_or_insert(now_ns);
        self.hold(now_ns);
    }

    /// Whether enough flows are within the tolerance: 0.95 of 20 flows is 19, despite rounding.
    fn are_enough(&self) -> bool {
        self.within_share >= self.goal.share - 1e-9
    }

    /// The smallest tolerance satisfied by the last sample; `None` without samples.
    fn end_error(&self) -> Option<f64> {
        let mut errors = self.errors.clone();
        let needed = (self.goal.share * errors.len() as f64 - 1e-9).ceil().max(1.0) as usize;
        let at = needed.min(errors.len()).checked_sub(1)?;
        Some(*errors.select_nth_unstable_by(at, f64::total_cmp).1)
    }

    fn hold(&mut self, now_ns: Ns) {
        let held = self.since_ns.filter(|&since| now_ns - since >= self.goal.hold_ns);
        self.settled_ns = self.settled_ns.or(held);
    }

    fn row(&self) -> ResultRow<'static> {
        let lag_ns = if self.goal.received { self.goal.filter_ns as f64 * -libm::log(self.goal.within) } else { 0.0 };
        let took = |at: Ns| (at - self.change_ns).saturating_sub(lag_ns as Ns);
        ResultRow {
            kind: Some("convergence"),
            time_ns: Some(self.change_ns),
            converged: Some(self.settled_ns.is_some()),
            convergence_ns: self.settled_ns.map(took),
            flows: Some(self.live.len() as u64),
            within_share: Some(self.within_share),
            end_error: self.end_error(),
            near_at_end: Some(self.are_enough()),
            ..ResultRow::default()
        }
    }

    /// Starts measuring after a change of the flows, and computes their new optimum.
    fn begin(&mut self, now_ns: Ns, backend: &dyn Backend) {
        let plan = |f: FlowId| &self.flows[f].plan;
        while let Some(f) = self.pending.pop_if(|f| plan(*f).start_ns <= now_ns) {
            self.live.push(f);
        }
        self.live.retain(|&f| plan(f).stop_ns.is_none_or(|s| s > now_ns) && backend.flow(f).finished_ns.is_none());
        // Sorted, since the order of flows determines rounding in the solver's sums.
        self.live.sort_unstable();
        while let Some((_, link, change)) = self.link_changes.pop_if(|c| c.0 <= now_ns) {
            self.oracle.change(link, change);
        }
        for &f in &self.live {
            if self.oracle.hurries(f) {
                let remaining = plan(f).size_bytes.map_or(u64::MAX, |size| size - backend.flow(f).received_bytes);
                self.oracle.hurry(f, now_ns, remaining);
            }
        }
        self.oracle.solve(&self.live);
        self.change_ns = now_ns;
        (self.since_ns, self.settled_ns, self.within_share) = (None, None, 0.0);
        self.errors.clear();
    }
}
