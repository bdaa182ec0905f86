//! Start, change and end of flows: routes, weights, stop and completion.

use super::Sim;
use crate::ends::{FlowState, Path, Receiver, Sender, Subflow, Ways};
use crate::event::{Actor, Event};
use std::sync::Arc;
use subak_core::backend::{FlowPlan, FlowView, NOT_YET, Route};
use subak_core::rng::mix;
use subak_core::scheme::{FlowInfo, PathInfo, Recovery, RouteId, Scheme, Source};
use subak_core::{FlowId, IdVec, LinkId, Ns, SubflowId, Utility};

impl<S: Scheme> Sim<S> {
    /// Adds a flow and schedules its start.
    pub(crate) fn add_flow(&mut self, mut plan: FlowPlan) -> FlowId {
        let flow = self.ends.next_flow();
        let seed = mix(self.set.seed ^ mix(u64::from(flow.0) | 2 << 40));
        // A sprayed flow has one subflow. The flow's state machines know only the first path.
        let mut ways = plan.spread.map(|spread| Box::new(Ways::new(self.ways(&plan.routes), spread, seed)));
        if ways.is_some() {
            plan.routes.truncate(1);
        }
        let first_sub = self.ends.place_for(plan.routes.len());
        let mut paths = IdVec::new();
        for (number, route) in plan.routes.iter().enumerate() {
            let info = self.path_info(route);
            paths.push(info);
            let Path { forward, back, symmetric } = self.path(route);
            let mut recovery = self.recovery_over(plan.scheme, route, info.base_rtt_ns);
            recovery.patient |= ways.is_some();
            let sub = Subflow {
                flow,
                number: SubflowId::from_index(number),
                forward,
                back,
                symmetric,
                nic: route.forward[0],
                left: Vec::new(),
                base_rtt_ns: info.base_rtt_ns,
                sender: Sender::new(recovery, info.base_rtt_ns),
                ways: ways.take(),
                receiver: Receiver::new(&recovery),
                held: true,
                rate_bps: None,
                window_bytes: 0,
                pace_ps: 0,
                last_sent_ps: 0,
                last_bytes: 0,
                pace_event_ns: None,
                check_ns: Ns::MAX,
                at_nic: false,
                listed: false,
                had_to_wait: false,
            };
            self.ends.put_sub(first_sub.plus(SubflowId::from_index(number)), sub);
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
            ends: plan.routes.first().and_then(|route| self.net.path_ends(&route.forward)),
            links: plan.routes.into_iter().map(|route| route.forward).collect(),
            rtt_ns: self.set.rtt_ns,
            line_rate_bps: self.set.line_rate_bps,
            seed,
            scheme: plan.scheme,
        };
        let subflows = info.links.len();
        let state = FlowState {
            source: self.scheme.source(&info),
            sink: self.scheme.sink(&info),
            first_sub,
            subflows: subflows as u8,
            scheme: plan.scheme,
            size_bytes: plan.size_bytes,
            unsent_bytes: plan.size_bytes.unwrap_or(u64::MAX),
            acked_bytes: 0,
            demand_bps: plan.demand_bps / subflows as f64,
            open: true,
            began: false,
            torn_down: false,
            held: 0,
            view: FlowView::default(),
        };
        self.ends.add(state, self.net.is_first());
        if plan.start_ns != NOT_YET {
            self.start_at(flow, plan.start_ns);
        }
        if let Some(stop_ns) = plan.stop_ns {
            let earliest_ns = if plan.start_ns == NOT_YET { 0 } else { plan.start_ns };
            self.net.schedule(stop_ns.max(earliest_ns), Event::Stop(flow));
        }
        flow
    }

    /// Loss recovery parameters of flows of `scheme` for `route`. Bounds of the RTO grow with the base RTT. The default
    /// minimum RTO covers full buffers on the path and on the reverse path, since ACKs also queue behind data of other
    /// flows.
    fn recovery_over(&self, scheme: u8, route: &Route, base_rtt_ns: Ns) -> Recovery {
        let mut recovery = self.scheme.recovery(scheme);
        let least_ns = Ns::from(recovery.rto_rtts).saturating_mul(base_rtt_ns);
        recovery.rto_max_ns = recovery.rto_max_ns.max(least_ns);
        if recovery.rto_min_ns > 0 {
            recovery.rto_min_ns = recovery.rto_min_ns.max(least_ns);
            return recovery;
        }
        let full = |&l: &LinkId| self.net.full_buffer_ns(l);
        let rto_min_ns = route.forward.iter().chain(&route.back).map(full).fold(base_rtt_ns, Ns::saturating_add).max(1);
        Recovery { rto_min_ns, rto_max_ns: recovery.rto_max_ns.max(rto_min_ns.saturating_mul(8)), ..recovery }
    }

    fn ways(&mut self, routes: &[Route]) -> Vec<RouteId> {
        routes.iter().map(|route| self.net.add_route(&route.forward)).collect()
    }

    /// The routes of a path.
    fn path(&mut self, route: &Route) -> Path {
        Path {
            forward: self.net.add_route(&route.forward),
            back: self.net.add_route(&route.back),
            symmetric: self.net.is_symmetric(&route.forward, &route.back),
        }
    }

    fn path_info(&self, route: &Route) -> PathInfo {
        self.net.path_info(&route.forward, &route.back, self.set.sizes)
    }

    /// Sets the paths of the flow's subflows from now on.
    pub(crate) fn set_routes(&mut self, flow: FlowId, routes: &[Route]) {
        let Some(first) = self.ends.get(flow).map(|f| f.first_sub) else { return };
        if self.ends.sub(first).ways.is_some() {
            let found = self.ways(routes);
            self.ends.respray(first, &found);
        }
        for (at, route) in self.ends.flow(flow).subs().zip(routes) {
            let k = self.ends.sub(at).number;
            let info = self.path_info(route);
            let path = self.path(route);
            let hears = self.ends.flow(flow).open && self.has_source(flow);
            if hears {
                self.ends.source(flow).on_leave(&mut self.io, k);
                self.carry_out_once_started(flow);
            }
            let recovery = self.recovery_over(self.ends.flow(flow).scheme, route, info.base_rtt_ns);
            let now_ns = self.net.now_ns();
            let due_ns = self.ends.reroute(at, path, route.forward[0], recovery, info.base_rtt_ns, now_ns);
            if let Some(due_ns) = due_ns {
                self.await_silence(at, due_ns);
            }
            if hears {
                self.ends.source(flow).on_reroute(&mut self.io, k, &info, &route.forward);
                self.carry_out_once_started(flow);
            }
        }
        if self.ends.flow(flow).began {
            self.send_all(flow);
        }
    }

    /// Executes the effects that the flow's source requested. Before the flow's start they are dropped, since the
    /// source sends its state when it starts.
    fn carry_out_once_started(&mut self, flow: FlowId) {
        match self.ends.flow(flow).began {
            true => self.carry_out(Actor::Source(flow)),
            false => self.io.effects_mut().clear(),
        }
    }

    /// Sets the flow's weight from now on.
    pub(crate) fn change_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        let utility = utility.unwrap_or_else(|| Arc::new(Utility::log(weight)));
        if !self.ends.set_weight(flow, weight, &utility, &mut self.io) {
            return;
        }
        self.carry_out_once_started(flow);
        if self.ends.flow(flow).began {
            self.send_all(flow);
        }
    }

    pub(crate) fn start_at(&mut self, flow: FlowId, at_ns: Ns) {
        if self.has_source(flow) {
            self.net.schedule(at_ns, Event::Start(flow));
        }
    }

    pub(super) fn start(&mut self, flow: FlowId) {
        if !self.ends.start(flow, &mut self.io) {
            return; // Told to stop before it began.
        }
        self.carry_out(Actor::Source(flow));
        self.send_all(flow);
        if self.ends.flow(flow).size_bytes == Some(0) {
            self.finish(flow);
            self.send_teardown(flow);
        }
    }

    /// Stops the flow: it sends no new data, but retransmits lost packets that were in flight.
    pub fn stop(&mut self, flow: FlowId) {
        if self.ends.stop(flow, self.net.is_first()) && self.has_source(flow) {
            self.send_teardown(flow);
        }
    }

    pub(super) fn send_teardown(&mut self, flow: FlowId) {
        if !self.ends.tear_down(flow, &mut self.io) {
            return;
        }
        self.carry_out(Actor::Source(flow));
        self.ends.note_end(flow);
        if let Some(part) = self.net.part() {
            part.torn_down.push(flow);
        }
    }

    /// Completes the flow: its last byte has arrived.
    pub(super) fn finish(&mut self, flow: FlowId) {
        if self.ends.finish(flow, self.net.now_ns())
            && let Some(part) = self.net.part()
        {
            part.tell_finished(flow);
        }
    }
}
