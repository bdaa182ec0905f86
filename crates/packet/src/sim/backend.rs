//! Implementation of [`Backend`] for a simulation.

use super::Sim;
use crate::net::circle_of_pauses;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, FlowView, LinkChange, LinkView, PaceView, Route, Watcher};
use subak_core::scheme::{Note, Scheme};
use subak_core::{FlowId, InputError, LinkId, NodeId, Ns, Utility};

impl<S: Scheme> Backend for Sim<S> {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        self.add_flow(plan)
    }
    fn complete_at_sender(&mut self) {
        self.ends.complete_at_sender();
    }
    fn place_controller(&mut self, ways: &[(NodeId, Route)]) {
        self.place_at(ways);
    }
    fn on_routes(&mut self, ways: &[(NodeId, Route)]) {
        self.hear_of_routes(ways);
    }
    fn watch(&mut self, watcher: Box<dyn Watcher>) {
        self.net.watch(watcher);
    }
    fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        self.ends.paces(flow)
    }
    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        self.change_weight(flow, weight, utility);
    }
    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.start_at(flow, at_ns);
    }
    fn allow_link_changes(&mut self) {
        self.net.allow_link_changes();
    }
    fn change_link(&mut self, link: LinkId, change: LinkChange) {
        self.change_now(link, change);
    }
    fn stop_flow(&mut self, flow: FlowId) {
        self.stop(flow);
    }
    fn reroute(&mut self, flow: FlowId, routes: &[Route]) {
        self.set_routes(flow, routes);
    }
    fn run_until_finish(&mut self, until_ns: Ns) {
        self.run_unless(until_ns, |sim| sim.ends.has_finished());
    }
    fn take_finished(&mut self) -> Vec<FlowId> {
        self.ends.take_finished().into_iter().map(|(_, flow)| flow).collect()
    }
    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns);
    }
    fn run_until_done(&mut self, until_ns: Ns) {
        self.run_unless(until_ns, |sim| sim.ends.unfinished() == 0);
    }
    fn now_ns(&self) -> Ns {
        self.net.now_ns()
    }
    fn open_flows(&self) -> usize {
        self.ends.open_flows() as usize
    }
    fn flow(&self, flow: FlowId) -> FlowView {
        self.ends
            .get(flow)
            .map_or(FlowView::default(), |f| FlowView { assigned_bps: self.ends.assigned_bps(f), ..f.view })
    }
    fn is_held(&self, flow: FlowId) -> bool {
        self.ends.is_held(flow)
    }
    fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        self.ends.forget()
    }
    fn link(&self, link: LinkId) -> LinkView {
        self.net.link(link)
    }
    fn deadlock(&self) -> Vec<(LinkId, Ns)> {
        circle_of_pauses(&[&self.net])
    }
    fn restart_peaks(&mut self) {
        self.net.restart_peaks();
    }
    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        self.ends.waits_ns()
    }
    fn packet_hops(&self) -> u64 {
        self.net.packet_hops() - self.net.pending_departures()
    }
    fn events(&self) -> u64 {
        self.net.events() - self.net.pending_departures()
    }
    fn events_at_most(&self) -> u64 {
        self.net.events()
    }
    fn fault(&self) -> Option<InputError> {
        self.scheme.fault()
    }
    fn take_notes(&mut self) -> Vec<Note> {
        self.scheme.take_notes()
    }
}
