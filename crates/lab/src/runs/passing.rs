//! Adds flows to the backend when they start and removes them after their end, so that memory does not grow with the
//! number of finished flows.

use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use std::collections::BTreeMap;
use subak_core::backend::FlowView;
use subak_core::{FlowId, IdVec};

/// Sums of counters over flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of flows.
    pub flows: u64,
    /// Number of flows that completed.
    pub completed: u64,
    /// Distinct payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes of received duplicates.
    pub duplicate_bytes: u64,
    /// Retransmitted data packets.
    pub retransmissions: u64,
    /// Data packets dropped or lost.
    pub drops: u64,
}

impl Totals {
    /// Adds one flow.
    pub fn add(&mut self, view: &FlowView) {
        self.flows += 1;
        self.completed += u64::from(view.finished_ns.is_some());
        self.received_bytes += view.received_bytes;
        self.duplicate_bytes += view.duplicate_bytes;
        self.retransmissions += view.retransmissions;
        self.drops += view.drops;
    }
}

/// Keeps track of the flows that the backend knows, and of the rows of ended flows.
pub(crate) struct KnownFlows {
    /// Whether flows are removed after their end. Sampled series, convergence criteria, dependencies, weight
    /// changes and reroutes refer to flows by number; with any of these the backend keeps all flows.
    pub allowed: bool,
    /// Number of flows added to the backend so far.
    pub told: usize,
    /// Sums over the removed flows.
    pub gone: Totals,
    /// First flow whose row is not written yet; rows are in the order of flow numbers.
    written: FlowId,
    /// Ended flows whose rows must wait for the row of an earlier flow.
    waiting: BTreeMap<FlowId, FlowView>,
}

impl KnownFlows {
    /// State before any flow is added.
    pub fn new(scenario: &Scenario, flows: &IdVec<FlowId, Planned>) -> Self {
        let measure = &scenario.measure;
        let looked_at = measure.rates_ns.is_some()
            || measure.paces_ns.is_some()
            || measure.packets.is_some()
            || !measure.convergence.is_empty();
        let named = scenario.reroute_ns.is_some()
            || flows.iter().any(|flow| !flow.after.is_empty() || !flow.weights.is_empty());
        let jobs = scenario.workload.has_jobs();
        let allowed = !looked_at && !named && !jobs && flows.is_sorted_by_key(|flow| flow.plan.start_ns);
        KnownFlows { allowed, told: 0, gone: Totals::default(), written: FlowId(0), waiting: BTreeMap::new() }
    }

    /// Records the final counters of a flow that is over.
    pub fn note(&mut self, flow: FlowId, view: &FlowView) {
        self.gone.add(view);
        self.waiting.insert(flow, *view);
    }

    /// Whether the backend has removed the flow.
    pub fn is_over(&self, flow: FlowId) -> bool {
        flow < self.written || self.waiting.contains_key(&flow)
    }

    /// The next flow whose row can be written.
    pub fn next_row(&mut self) -> Option<(FlowId, FlowView)> {
        let flow = self.written;
        let view = self.waiting.remove(&flow)?;
        self.written = FlowId(flow.0 + 1);
        Some((flow, view))
    }

    /// Flows without a written row, each with its final counters if the backend has removed the flow.
    pub fn unwritten(&self) -> impl Iterator<Item = (FlowId, Option<FlowView>)> {
        FlowId::first(self.told).skip(self.written.index()).map(|f| (f, self.waiting.get(&f).copied()))
    }
}
