//! Start, change and end of flows: routes, weights, stop and completion.

use crate::event::{Actor, Event};
use crate::flow::{FlowState, Subflow};
use crate::sender::{Receiver, Sender};
use crate::sim::Sim;
use crate::ways::Ways;
use std::sync::Arc;
use subak_core::backend::{FlowPlan, FlowView, NOT_YET, Route};
use subak_core::rng::mix;
use subak_core::scheme::{FlowInfo, PathInfo, Recovery, RouteId, Scheme, Source};
use subak_core::{FlowId, IdVec, LinkId, NodeId, Ns, SubflowId, Utility};

impl<S: Scheme> Sim<S> {
    /// Adds a flow and schedules its start.
    pub(crate) fn add_flow(&mut self, mut plan: FlowPlan) -> FlowId {
        let flow = self.flows.next();
        let seed = mix(self.set.seed ^ mix(u64::from(flow.0) | 2 << 40));
        // A sprayed flow has one subflow. The flow's state machines know only the first path.
        let mut ways = plan.spread.map(|spread| Box::new(Ways::new(self.ways(&plan.routes), spread, seed)));
        if ways.is_some() {
            plan.routes.truncate(1);
        }
        let first_sub = self.flows.reusable(plan.routes.len() as u8).unwrap_or(self.subs.next_id());
        let mut paths = IdVec::new();
        for (number, route) in plan.routes.iter().enumerate() {
            let info = self.path_info(&route.forward, &route.back);
            paths.push(info);
            let sub = Subflow {
                flow,
                number: SubflowId::from_index(number),
                forward: self.routes.add(&route.forward),
                back: self.routes.add(&route.back),
                symmetric: self.is_symmetric(&route.forward, &route.back),
                left: Vec::new(),
                base_rtt_ns: info.base_rtt_ns,
                sender: Sender::new(
                    Recovery { patient: ways.is_some(), ..self.recovery_over(route, info.base_rtt_ns) },
                    info.base_rtt_ns,
                ),
                ways: ways.take(),
                receiver: Receiver::default(),
                held: true,
                rate_bps: None,
                window_bytes: 0,
                pace_ps: 0,
                last_sent_ps: 0,
                last_bytes: 0,
                pace_event_ns: None,
                timeout_pending: false,
                at_nic: false,
                listed: false,
                had_to_wait: false,
            };
            match self.subs.get_mut(first_sub.plus(SubflowId::from_index(number))) {
                Some(place) => *place = sub,
                None => _ = self.subs.push(sub),
            }
        }
        let info = FlowInfo {
            flow,
            weight: plan.weight,
            utility: plan.utility.unwrap_or_else(|| Arc::new(Utility::log(plan.weight))),
            urgency: plan.urgency,
            size_bytes: plan.size_bytes,
            demand_bps: plan.demand_bps,
            mss_bytes: self.set.sizes.mss_bytes(),
            mtu_bytes: self.set.sizes.mtu_bytes,
            paths,
            ends: plan.routes.first().and_then(|route| self.ends(&route.forward)),
            links: plan.routes.into_iter().map(|route| route.forward).collect(),
            rtt_ns: self.set.rtt_ns,
            line_rate_bps: self.set.line_rate_bps,
            seed,
        };
        let subflows = info.links.len();
        self.flows.add(FlowState {
            source: self.scheme.source(&info),
            sink: self.scheme.sink(&info),
            first_sub,
            subflows: subflows as u8,
            size_bytes: plan.size_bytes,
            unsent_bytes: plan.size_bytes.unwrap_or(u64::MAX),
            acked_bytes: 0,
            demand_bps: plan.demand_bps / subflows as f64,
            open: true,
            began: false,
            torn_down: false,
            held: 0,
            view: FlowView::default(),
        });
        if self.is_first() {
            self.counts.open_flows += 1;
            self.counts.unfinished += i64::from(plan.size_bytes.is_some());
        }
        if plan.start_ns != NOT_YET {
            self.start_at(flow, plan.start_ns);
        }
        if let Some(stop_ns) = plan.stop_ns {
            let earliest_ns = if plan.start_ns == NOT_YET { 0 } else { plan.start_ns };
            self.wheel.push(stop_ns.max(earliest_ns).max(self.now_ns), Event::Stop(flow));
        }
        flow
    }

    /// Loss recovery parameters for `route`. Bounds of the RTO grow with the base RTT. The default minimum RTO covers
    /// full buffers on the path and on the reverse path, since ACKs also queue behind data of other flows.
    pub(crate) fn recovery_over(&self, route: &Route, base_rtt_ns: Ns) -> Recovery {
        let mut recovery = self.scheme.rules().recovery;
        let least_ns = Ns::from(recovery.rto_rtts).saturating_mul(base_rtt_ns);
        recovery.rto_max_ns = recovery.rto_max_ns.max(least_ns);
        if recovery.rto_min_ns > 0 {
            recovery.rto_min_ns = recovery.rto_min_ns.max(least_ns);
            return recovery;
        }
        let full = |l: &LinkId| {
            let port = &self.ports[*l].port;
            let shared = self.pfc.as_ref().zip(port.from).map(|(pfc, node)| pfc.shared_bytes(node));
            (shared.unwrap_or(port.buffer_bytes) as f64 * 8e9 / port.capacity_bps) as Ns
        };
        let rto_min_ns = route.forward.iter().chain(&route.back).map(full).fold(base_rtt_ns, Ns::saturating_add).max(1);
        Recovery { rto_min_ns, rto_max_ns: recovery.rto_max_ns.max(rto_min_ns.saturating_mul(8)), ..recovery }
    }

    /// First and last node of a path; `None` if its links have no nodes.
    pub(crate) fn ends(&self, path: &[LinkId]) -> Option<(NodeId, NodeId)> {
        let port = |l: &LinkId| self.ports[*l].port;
        Some((port(path.first()?).from?, port(path.last()?).to?))
    }

    fn ways(&mut self, routes: &[Route]) -> Vec<RouteId> {
        routes.iter().map(|route| self.routes.add(&route.forward)).collect()
    }

    /// Sets the paths of the flow's subflows from now on.
    pub(crate) fn set_routes(&mut self, flow: FlowId, routes: &[Route]) {
        let Some(first) = self.flows.get(flow).map(|f| f.first_sub) else { return };
        if self.subs[first].ways.is_some() {
            let found = self.ways(routes);
            self.subs[first].ways.iter_mut().for_each(|ways| ways.change(found.clone()));
        }
        let f = &self.flows[flow];
        for (at, route) in f.subs().zip(routes) {
            let k = self.subs[at].number;
            let info = self.path_info(&route.forward, &route.back);
            let (forward, back) = (self.routes.add(&route.forward), self.routes.add(&route.back));
            let symmetric = self.is_symmetric(&route.forward, &route.back);
            let hears = self.flows[flow].open && self.has_source(flow);
            if hears {
                self.flows[flow].source.on_leave(&mut self.io, k);
                self.carry_out_once_started(flow);
            }
            let recovery = self.recovery_over(route, info.base_rtt_ns);
            let sub = &mut self.subs[at];
            sub.sender.set_path(Recovery { patient: sub.ways.is_some(), ..recovery }, info.base_rtt_ns, self.now_ns);
            let timeout_ns = sub.sender.timeout_ns();
            sub.left.push(sub.path(sub.turn()));
            sub.listed &= self.routes.first(sub.forward) == self.routes.first(forward);
            (sub.forward, sub.back, sub.symmetric, sub.base_rtt_ns) = (forward, back, symmetric, info.base_rtt_ns);
            if let Some(due_ns) = timeout_ns.filter(|_| recovery.go_back) {
                self.await_silence(at, due_ns);
            }
            if hears {
                self.flows[flow].source.on_reroute(&mut self.io, k, &info, &route.forward);
                self.carry_out_once_started(flow);
            }
        }
        if self.flows[flow].began {
            self.send_all(flow);
        }
    }

    /// Executes the effects that the flow's source requested. Before the flow's start they are dropped, since the
    /// source sends its state when it starts.
    fn carry_out_once_started(&mut self, flow: FlowId) {
        match self.flows[flow].began {
            true => self.carry_out(Actor::Source(flow)),
            false => self.io.effects_mut().clear(),
        }
    }

    /// Sets the flow's weight from now on.
    pub(crate) fn change_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return };
        let utility = utility.unwrap_or_else(|| Arc::new(Utility::log(weight)));
        f.source.on_weight(&mut self.io, weight, &utility);
        self.carry_out_once_started(flow);
        if self.flows[flow].began {
            self.send_all(flow);
        }
    }

    pub(crate) fn is_symmetric(&self, forward: &[LinkId], back: &[LinkId]) -> bool {
        forward.len() == back.len()
            && forward.iter().zip(back.iter().rev()).all(|(&l, &t)| self.ports[t].reverse_link == Some(l))
    }

    pub(crate) fn path_info(&self, forward: &[LinkId], back: &[LinkId]) -> PathInfo {
        let crossing = |links: &[LinkId], bytes: u32| -> Ns {
            let one = |&l: &LinkId| {
                let port = &self.ports[l].port;
                port.delay_ns + (f64::from(bytes) * 8e9 / port.capacity_bps).ceil() as Ns
            };
            links.iter().map(one).sum()
        };
        let capacity = |l: &LinkId| self.ports[*l].port.capacity_bps;
        PathInfo {
            hops: forward.len() as u16,
            line_rate_bps: capacity(&forward[0]),
            min_capacity_bps: forward.iter().map(capacity).fold(f64::INFINITY, f64::min),
            base_rtt_ns: crossing(forward, self.set.sizes.mtu_bytes) + crossing(back, self.set.sizes.ack_bytes),
        }
    }

    pub(crate) fn start_at(&mut self, flow: FlowId, at_ns: Ns) {
        if self.has_source(flow) {
            self.wheel.push(at_ns.max(self.now_ns), Event::Start(flow));
        }
    }

    pub(crate) fn start(&mut self, flow: FlowId) {
        if !self.flows.get(flow).is_some_and(|f| f.open) {
            return; // Told to stop before it began.
        }
        self.flows[flow].began = true;
        self.flows[flow].source.on_start(&mut self.io);
        self.carry_out(Actor::Source(flow));
        self.send_all(flow);
        if self.flows[flow].size_bytes == Some(0) {
            self.finish(flow);
            self.send_teardown(flow);
        }
    }

    /// Stops the flow: it sends no new data, but retransmits lost packets that were in flight.
    pub fn stop(&mut self, flow: FlowId) {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return };
        f.open = false;
        f.unsent_bytes = 0;
        let is_sized = f.size_bytes.replace(f.view.sent_bytes).is_some();
        if self.is_first() {
            self.counts.open_flows -= 1;
            self.counts.unfinished -= i64::from(is_sized);
        }
        if self.has_source(flow) {
            self.send_teardown(flow);
        }
    }

    pub(crate) fn send_teardown(&mut self, flow: FlowId) {
        let f = &mut self.flows[flow];
        if std::mem::replace(&mut f.torn_down, true) {
            return;
        }
        f.source.on_finish(&mut self.io);
        self.carry_out(Actor::Source(flow));
        self.flows.note_end(flow);
        if let Some(part) = &mut self.part {
            part.torn_down.push(flow);
        }
    }

    /// Completes the flow: its last byte has arrived.
    pub(crate) fn finish(&mut self, flow: FlowId) {
        let f = &mut self.flows[flow];
        if f.open {
            f.open = false;
            f.view.finished_ns = Some(self.now_ns);
            self.counts.open_flows -= 1;
            self.counts.unfinished -= 1;
            self.counts.finished.push(flow);
            self.tell_finished(flow);
        }
    }
}
