//! Flows that come and go: told to the backend when they start, forgotten when they are over, so that a run's memory does not
//! grow with the flows that have finished.

use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use std::collections::BTreeMap;
use subak_core::backend::FlowView;
use subak_core::{FlowId, IdVec};

/// Sums over flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// The number of flows.
    pub flows: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Distinct payload bytes that arrived.
    pub received_bytes: u64,
    /// Payload bytes that arrived again.
    pub duplicate_bytes: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Data packets dropped or lost.
    pub drops: u64,
}

impl Totals {
    /// One more flow.
    pub fn add(&mut self, view: &FlowView) {
        self.flows += 1;
        self.completed += u64::from(view.finished_ns.is_some());
        self.received_bytes += view.received_bytes;
        self.duplicate_bytes += view.duplicate_bytes;
        self.retransmissions += view.retransmissions;
        self.drops += view.drops;
    }
}

/// Which flows the backend knows.
pub(crate) struct KnownFlows {
    /// Whether flows may come and go. Series and goals look at flows again, and reactions, new weights and new routes name
    /// them: with any of these the backend knows every flow from the start to the end.
    pub allowed: bool,
    /// Flows that the backend was told of so far.
    pub told: usize,
    /// Of the flows that are over.
    pub gone: Totals,
    /// Flows whose rows are written: rows stand in the order of the flows.
    written: FlowId,
    /// Flows that are over, behind one that is not.
    waiting: BTreeMap<FlowId, FlowView>,
}

impl KnownFlows {
    /// No flow told yet.
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

    /// The flow is over, and this became of it.
    pub fn note(&mut self, flow: FlowId, view: &FlowView) {
        self.gone.add(view);
        self.waiting.insert(flow, *view);
    }

    /// Whether the backend does not know the flow any more.
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

    /// The flows whose rows are not written, and what became of those that are over.
    pub fn unwritten(&self) -> impl Iterator<Item = (FlowId, Option<FlowView>)> {
        FlowId::first(self.told).skip(self.written.index()).map(|f| (f, self.waiting.get(&f).copied()))
    }
}
