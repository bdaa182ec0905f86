//! Implementation of [`Backend`] for a parallel run.

use super::{LogicalProcesses, Until};
use crate::net::circle_of_pauses;
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::backend::{
    Backend, FlowPlan, FlowView, LinkChange, LinkView, NOT_YET, PaceView, Route, Sharing, Watcher,
};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, InputError, LinkId, NodeId, Ns, Utility};

impl<S: Scheme> Backend for LogicalProcesses<S> {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        if let Some(stop_ns) = plan.stop_ns {
            let earliest_ns = if plan.start_ns == NOT_YET { 0 } else { plan.start_ns };
            self.stops.insert(stop_ns.max(earliest_ns).max(self.now_ns()));
        }
        let flow = self.sims[0].ends().next_flow();
        self.sims.iter_mut().for_each(|sim| _ = sim.add_flow(plan.clone()));
        flow
    }
    fn complete_at_sender(&mut self) {
        self.sims.iter_mut().for_each(Backend::complete_at_sender);
    }
    fn place_controller(&mut self, ways: &[(NodeId, Route)]) {
        self.sims.iter_mut().for_each(|sim| sim.place_at(ways));
    }
    fn on_routes(&mut self, ways: &[(NodeId, Route)]) {
        self.sims.iter_mut().for_each(|sim| sim.hear_of_routes(ways));
    }
    /// # Panics
    ///
    /// Always: a watcher requires packets in time order, which only a sequential simulation provides.
    fn watch(&mut self, _watcher: Box<dyn Watcher>) {
        panic!("packets are watched on one thread");
    }
    fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        self.sims.iter().find(|sim| sim.has_source(flow)).map_or(Vec::new(), |sim| sim.ends().paces(flow))
    }
    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        if let Some(sim) = self.sims.iter_mut().find(|sim| sim.has_source(flow)) {
            sim.change_weight(flow, weight, utility);
        }
        self.exchange();
    }
    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.sims.iter_mut().for_each(|sim| sim.start_at(flow, at_ns));
    }
    fn allow_link_changes(&mut self) {
        self.sims.iter_mut().for_each(Backend::allow_link_changes);
    }
    fn change_link(&mut self, link: LinkId, change: LinkChange) {
        self.sims.iter_mut().for_each(|sim| sim.change_now(link, change));
        self.exchange();
    }
    fn stop_flow(&mut self, flow: FlowId) {
        self.sims.iter_mut().for_each(|sim| sim.stop(flow));
        self.exchange();
    }
    fn reroute(&mut self, flow: FlowId, routes: &[Route]) {
        self.sims.iter_mut().for_each(|sim| sim.set_routes(flow, routes));
        self.exchange();
    }
    fn run_until_finish(&mut self, until_ns: Ns) {
        self.run(until_ns, Until::Finish);
    }
    fn take_finished(&mut self) -> Vec<FlowId> {
        let mut flows: Vec<_> = self.sims.iter_mut().flat_map(|sim| sim.ends_mut().take_finished()).collect();
        flows.sort_unstable();
        flows.into_iter().map(|(_, flow)| flow).collect()
    }
    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns, Until::Time);
    }
    fn run_until_done(&mut self, until_ns: Ns) {
        self.run(until_ns, Until::Done);
    }
    fn now_ns(&self) -> Ns {
        self.sims[0].net().now_ns()
    }
    fn open_flows(&self) -> usize {
        self.sims.iter().map(|sim| sim.ends().open_flows()).sum::<i64>() as usize
    }
    fn flow(&self, flow: FlowId) -> FlowView {
        let known = || self.sims.iter().filter(|sim| sim.ends().get(flow).is_some());
        let source = known().find(|sim| sim.has_source(flow));
        let sum = known().fold(FlowView::default(), |sum, sim| added(sum, &sim.ends().flow(flow).view));
        FlowView { assigned_bps: source.map_or(0.0, |sim| sim.ends().assigned_bps(sim.ends().flow(flow))), ..sum }
    }
    fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        for sim in &mut self.sims {
            sim.ends_mut().notice_no_ends();
            let heard = sim.part().map(|part| std::mem::take(&mut part.torn_down));
            self.leaving.extend(heard.into_iter().flatten());
        }
        let leaving = std::mem::take(&mut self.leaving);
        let is_over = |flow: FlowId| {
            let held: i64 = self.sims.iter().filter_map(|sim| sim.ends().get(flow)).map(|f| i64::from(f.held)).sum();
            held == 0 && self.sims.iter().filter_map(|sim| sim.ends().get(flow)).all(|f| !f.open)
        };
        let (mut over, left): (Vec<_>, Vec<_>) = leaving.into_iter().partition(|&flow| is_over(flow));
        over.sort_unstable();
        self.leaving = left;
        let views = over.iter().map(|&flow| (flow, FlowView { assigned_bps: 0.0, ..self.flow(flow) })).collect();
        self.sims.iter_mut().for_each(|sim| over.iter().for_each(|&flow| sim.ends_mut().forget_one(flow)));
        views
    }
    fn link(&self, link: LinkId) -> LinkView {
        let near = self.sims.iter().find(|sim| sim.net().begins_here(link)).unwrap_or(&self.sims[0]);
        // Packets lost on a link that goes down are counted in the LP of the link's far end.
        let lost_packets = self.sims.iter().map(|sim| sim.net().lost_packets(link)).sum();
        LinkView { lost_packets, ..near.link(link) }
    }
    fn deadlock(&self) -> Vec<(LinkId, Ns)> {
        circle_of_pauses(&self.sims.iter().map(crate::Sim::net).collect::<Vec<_>>())
    }
    fn restart_peaks(&mut self) {
        self.sims.iter_mut().for_each(Backend::restart_peaks);
    }
    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        let mut waits = BTreeMap::new();
        for (wait_ns, packets) in self.sims.iter().flat_map(Backend::waits_ns) {
            *waits.entry(wait_ns).or_insert(0) += packets;
        }
        waits.into_iter().collect()
    }
    fn packet_hops(&self) -> u64 {
        self.sims.iter().map(Backend::packet_hops).sum()
    }
    fn events(&self) -> u64 {
        self.sims.iter().map(Backend::events).sum()
    }
    fn events_at_most(&self) -> u64 {
        self.sims.iter().map(Backend::events_at_most).sum()
    }
    fn fault(&self) -> Option<InputError> {
        self.sims.iter().find_map(Backend::fault)
    }
    fn sharing(&self) -> Sharing {
        let crossed = self.sims.iter().map(|sim| sim.net().crossed()).sum();
        Sharing { parts: self.sims.len(), crossed, windows: self.windows, longest_events: self.longest_events }
    }
}

/// Counters of a flow in two logical processes, added.
fn added(one: FlowView, other: &FlowView) -> FlowView {
    FlowView {
        finished_ns: one.finished_ns.or(other.finished_ns),
        sent_bytes: one.sent_bytes + other.sent_bytes,
        received_bytes: one.received_bytes + other.received_bytes,
        received_wire_bytes: one.received_wire_bytes + other.received_wire_bytes,
        duplicate_bytes: one.duplicate_bytes + other.duplicate_bytes,
        retransmissions: one.retransmissions + other.retransmissions,
        drops: one.drops + other.drops,
        ctl_drops: one.ctl_drops + other.ctl_drops,
        assigned_bps: one.assigned_bps + other.assigned_bps,
    }
}
