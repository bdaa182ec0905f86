//! Implementation of [`Backend`] for the fluid simulation.

use super::{Fluid, FluidEvent, FluidFlowState, FluidState};
use crate::tail::tail;
use std::cmp::Reverse;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, FlowView, LinkChange, LinkView, NOT_YET, Route};
use subak_core::idle::acknowledgement_ns;
use subak_core::{FlowId, LinkId, Ns, Utility};

impl Backend for Fluid {
    fn complete_at_sender(&mut self) {
        self.at_sender = true;
    }
    fn add(&mut self, mut plan: FlowPlan) -> FlowId {
        let id = self.flows.next_id();
        let (fluid_bytes, mut tail_ns) = tail(&self.network, self.sizes, &plan);
        if self.at_sender {
            let back_ns = plan.routes.iter().map(|route| acknowledgement_ns(&self.network, route, self.sizes));
            tail_ns += back_ns.max().unwrap_or(0);
        }
        (plan.weight, plan.utility) = self.aim(plan.weight, plan.utility);
        self.rates.add(&plan);
        if let Some(lag) = &mut self.lag {
            plan.routes.iter().for_each(|_| lag.add());
        }
        self.flows.push(FluidFlowState {
            state: FluidState::Waiting,
            size_bytes: plan.size_bytes,
            fluid_bytes,
            sent_bytes: 0.0,
            tail_ns,
            rtt_ns: self.rtt_ns(&plan.routes),
            finished_ns: None,
        });
        if plan.start_ns != NOT_YET {
            self.events.push(Reverse((plan.start_ns.max(self.now_ns), FluidEvent::Start(id))));
        }
        if let Some(stop) = plan.stop_ns {
            self.events.push(Reverse((stop.max(self.now_ns), FluidEvent::Stop(id))));
        }
        self.open += 1;
        self.open_sized += usize::from(plan.size_bytes.is_some());
        id
    }

    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        let (weight, utility) = self.aim(weight, utility);
        self.rates.set_weight(flow, weight, utility);
        self.stale = true;
    }

    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.rates.set_start(flow, at_ns);
        self.events.push(Reverse((at_ns.max(self.now_ns), FluidEvent::Start(flow))));
    }

    fn change_link(&mut self, link: LinkId, change: LinkChange) {
        self.rates.change(link, change);
        self.stale = true;
    }

    fn stop_flow(&mut self, flow: FlowId) {
        self.handle(FluidEvent::Stop(flow));
    }

    fn reroute(&mut self, flow: FlowId, routes: &[Route]) {
        self.rates.reroute(flow, routes);
        self.flows[flow].rtt_ns = self.rtt_ns(routes);
        self.stale = true;
    }

    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns, |_| false);
    }

    fn run_until_done(&mut self, until_ns: Ns) {
        self.run(until_ns, |fluid| fluid.open_sized == 0);
    }

    fn run_until_finish(&mut self, until_ns: Ns) {
        self.run(until_ns, |ideal| !ideal.finished.is_empty());
    }

    fn take_finished(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.finished)
    }

    fn now_ns(&self) -> Ns {
        self.now_ns
    }

    fn open_flows(&self) -> usize {
        self.open
    }

    fn flow(&self, flow: FlowId) -> FlowView {
        let f = &self.flows[flow];
        let payload_share = f64::from(self.sizes.mss_bytes()) / f64::from(self.sizes.mtu_bytes);
        let (received_bytes, received_wire_bytes) = match f.size_bytes {
            Some(size) if matches!(f.state, FluidState::Sent | FluidState::Finished) => {
                (size, self.sizes.wire_bytes(size))
            }
            Some(size) => ((f.sent_bytes / f.fluid_bytes * size as f64) as u64, f.sent_bytes as u64),
            None => ((f.sent_bytes * payload_share) as u64, f.sent_bytes as u64),
        };
        FlowView {
            finished_ns: f.finished_ns,
            sent_bytes: received_bytes,
            received_bytes,
            received_wire_bytes,
            assigned_bps: self.flow_bps(flow),
            ..FlowView::default()
        }
    }

    fn link(&self, link: LinkId) -> LinkView {
        LinkView { data_bytes: self.link_bytes[link] as u64, ..LinkView::default() }
    }

    fn restart_peaks(&mut self) {}

    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        Vec::new()
    }

    fn packet_hops(&self) -> u64 {
        0
    }

    fn events(&self) -> u64 {
        self.handled
    }

    fn failures(&self) -> u64 {
        self.rates.failures()
    }
}
