//! Construction of a simulation from a scheme's name, and the implementation of [`Backend`] for a simulation.

use crate::parallel::LogicalProcesses;
use crate::pauses::circle_of_pauses;
use crate::sim::Sim;
use std::sync::Arc;
use subak_core::backend::{
    Backend, FlowPlan, FlowView, Injected, LinkChange, LinkView, PaceView, PacketSizes, Route, Watcher,
};
use subak_core::scheme::Scheme;
use subak_core::{FlowId, InputError, LinkId, Network, NodeId, Ns, Utility};
use subak_schemes::{Chosen, Visitor};

/// Creates a simulation of the scheme called `name` on one thread, with no flows. `params` is as in a spec. `seed`
/// determines which packets are impaired.
pub fn build<'a>(
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    build_on(1, name, params, network, sizes, faults, seed)
}

/// Same as [`build`], on up to `threads` threads. Results do not depend on the number of threads. A packet watcher
/// requires one thread. One thread is used in four cases: only one switch has hosts; a link has no end nodes or no
/// delay; the scheme has a controller or state machines at nodes; there are more than 15 impairment rules.
pub fn build_on<'a>(
    threads: usize,
    name: impl Into<Chosen<'a>>,
    params: &serde_json::Map<String, serde_json::Value>,
    network: &Network,
    sizes: PacketSizes,
    faults: &[Injected],
    seed: u64,
) -> Result<Box<dyn Backend>, InputError> {
    // The simulation of every scheme is compiled in this crate, not in the crates that call this function.
    build_chosen(name.into(), params, SimBuilder { threads, network, sizes, faults, seed })
}

fn build_chosen(
    chosen: Chosen,
    params: &serde_json::Map<String, serde_json::Value>,
    builder: SimBuilder,
) -> Result<Box<dyn Backend>, InputError> {
    check(builder.network, builder.sizes)?;
    subak_schemes::with_scheme(chosen, params, builder)?
}

struct SimBuilder<'a> {
    threads: usize,
    network: &'a Network,
    sizes: PacketSizes,
    faults: &'a [Injected],
    seed: u64,
}

impl Visitor for SimBuilder<'_> {
    type Out = Result<Box<dyn Backend>, InputError>;
    const RUNS: bool = true;
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out {
        let SimBuilder { threads, network, sizes, faults, seed } = self;
        if threads > 1
            && let Some(parts) = LogicalProcesses::checked(&scheme, network, sizes, faults, seed, threads)?
        {
            return Ok(Box::new(parts));
        }
        Ok(Box::new(Sim::checked(scheme, network, sizes, faults, seed)?))
    }
}

fn check(network: &Network, sizes: PacketSizes) -> Result<(), InputError> {
    if sizes.header_bytes >= sizes.mtu_bytes || sizes.mtu_bytes > 65_535 || sizes.ack_bytes == 0 {
        let what = format!("packets of {} bytes with {} of headers", sizes.mtu_bytes, sizes.header_bytes);
        return Err(InputError::new(
            "packets",
            what,
            "leave room for payload, and let a packet have at most 65535 bytes",
        ));
    }
    for link in network.links() {
        if link.capacity_bps < 1e3 {
            let what = format!("link \"{}\" has {} bit/s", link.id, link.capacity_bps);
            return Err(InputError::new("network", what, "the packet simulator wants at least 1 kb/s"));
        }
    }
    Ok(())
}

impl<S: Scheme> Backend for Sim<S> {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        self.add_flow(plan)
    }
    fn complete_at_sender(&mut self) {
        self.set.at_sender = true;
    }
    fn place_controller(&mut self, ways: &[(NodeId, Route)]) {
        self.place_at(ways);
    }
    fn on_routes(&mut self, ways: &[(NodeId, Route)]) {
        self.hear_of_routes(ways);
    }
    fn watch(&mut self, watcher: Box<dyn Watcher>) {
        self.wake_for_each();
        self.watcher = Some(watcher);
    }
    fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        self.paces_of(flow)
    }
    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        self.change_weight(flow, weight, utility);
    }
    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.start_at(flow, at_ns);
    }
    fn allow_link_changes(&mut self) {
        self.wake_for_each();
        self.impairments.has_downs = true;
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
        self.run_unless(until_ns, |sim| !sim.counts.finished.is_empty());
    }
    fn take_finished(&mut self) -> Vec<FlowId> {
        let mut finished = std::mem::take(&mut self.counts.finished);
        finished.sort_by_key(|&flow| (self.flows.get(flow).and_then(|f| f.view.finished_ns), flow));
        finished
    }
    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns);
    }
    fn run_until_done(&mut self, until_ns: Ns) {
        self.run_unless(until_ns, |sim| sim.counts.unfinished == 0);
    }
    fn now_ns(&self) -> Ns {
        self.now_ns
    }
    fn open_flows(&self) -> usize {
        self.counts.open_flows as usize
    }
    fn flow(&self, flow: FlowId) -> FlowView {
        self.flows.get(flow).map_or(FlowView::default(), |f| FlowView { assigned_bps: self.assigned_bps(f), ..f.view })
    }
    fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        let mut views = Vec::new();
        self.flows.forget(|flow, f| views.push((flow, f.view)));
        views
    }
    fn link(&self, link: LinkId) -> LinkView {
        self.ports[link].view_at(self.now_ns, &self.handled)
    }
    fn deadlock(&self) -> Vec<(LinkId, Ns)> {
        circle_of_pauses(std::slice::from_ref(self))
    }
    fn restart_peaks(&mut self) {
        for p in &mut self.ports {
            p.peak_queued_bytes = p.standing(&self.handled).queued_bytes;
        }
    }
    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        self.counts.waits.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
    }
    fn packet_hops(&self) -> u64 {
        self.counts.packet_hops - self.pending_departures()
    }
    fn events(&self) -> u64 {
        self.counts.events - self.pending_departures()
    }
    fn fault(&self) -> Option<InputError> {
        self.scheme.fault()
    }
}
