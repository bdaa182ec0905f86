//! A flow's two ends: starting, pacing, sending, acknowledging, repairing, and carrying out what machines ask.

use crate::event::{Event, Who};
use crate::flow::{FlowState, PS, Subflow, advance_pace, blank, loss_of, may_go, remaining, set_pace};
use crate::pfc::Letter;
use crate::sender::{Next, Receiver, Sender};
use crate::sim::Sim;
use std::sync::Arc;
use subak_core::driver::{FlowPlan, FlowView, NOT_YET, Route};
use subak_core::rng::mix;
use subak_core::scheme::{
    Ack, Ask, Blocks, Class, FlowInfo, LossKind, PacketKind, PathInfo, Recovery, Reply, Scheme, Sink, Source, To, Way,
};
use subak_core::{FlowId, LinkId, NodeId, Ns, Utility};

impl<S: Scheme> Sim<S> {
    #[inline]
    pub(crate) fn sub_of(&self, flow: FlowId, subflow: u8) -> usize {
        self.flows[flow].first_sub as usize + subflow as usize
    }

    /// Takes a flow in; it starts by itself.
    pub(crate) fn add_flow(&mut self, plan: FlowPlan) -> FlowId {
        let flow = self.flows.next();
        let first_sub = self.flows.reusable(plan.routes.len() as u8).unwrap_or(self.subs.len() as u32);
        let mut paths = Vec::with_capacity(plan.routes.len());
        for (number, route) in plan.routes.iter().enumerate() {
            let info = self.path_info(&route.forward, &route.back);
            paths.push(info);
            let sub = Subflow {
                flow,
                number: number as u8,
                forward: self.routes.add(&route.forward),
                back: self.routes.add(&route.back),
                symmetric: self.is_symmetric(&route.forward, &route.back),
                base_rtt_ns: info.base_rtt_ns,
                sender: Sender::new(self.recovery_over(route, info.base_rtt_ns), info.base_rtt_ns),
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
                had_to_wait: false,
            };
            match self.subs.get_mut(first_sub as usize + number) {
                Some(place) => *place = sub,
                None => self.subs.push(sub),
            }
        }
        let info = FlowInfo {
            flow,
            weight: plan.weight,
            utility: plan.utility.unwrap_or_else(|| Arc::new(Utility::log(plan.weight))),
            urgency: plan.urgency,
            size_bytes: plan.size_bytes,
            mss_bytes: self.sizes.mss_bytes(),
            mtu_bytes: self.sizes.mtu_bytes,
            paths,
            ends: plan.routes.first().and_then(|route| self.ends(&route.forward)),
            links: plan.routes.into_iter().map(|route| route.forward).collect(),
            rtt_ns: self.rtt_ns,
            line_rate_bps: self.line_rate_bps,
            seed: mix(self.seed ^ mix(u64::from(flow) | 2 << 40)),
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
            said_goodbye: false,
            held: 0,
            view: FlowView::default(),
        });
        self.open_flows += 1;
        self.unfinished += usize::from(plan.size_bytes.is_some());
        if plan.start_ns != NOT_YET {
            self.start_at(flow, plan.start_ns);
        }
        if let Some(stop_ns) = plan.stop_ns {
            let earliest_ns = if plan.start_ns == NOT_YET { 0 } else { plan.start_ns };
            self.wheel.push(stop_ns.max(earliest_ns).max(self.now_ns), Event::Stop(flow));
        }
        flow
    }

    /// How losses are noticed on a path. Acknowledgements wait, too, behind the data of others.
    fn recovery_over(&self, route: &Route, base_rtt_ns: Ns) -> Recovery {
        let recovery = self.scheme.recovery();
        if recovery.rto_min_ns > 0 {
            return recovery;
        }
        let full = |l: &LinkId| {
            let port = &self.ports[*l as usize].port;
            (port.buffer_bytes as f64 * 8e9 / port.capacity_bps) as Ns
        };
        let rto_min_ns = route.forward.iter().chain(&route.back).map(full).fold(base_rtt_ns, Ns::saturating_add).max(1);
        Recovery { rto_min_ns, rto_max_ns: recovery.rto_max_ns.max(rto_min_ns.saturating_mul(8)), ..recovery }
    }

    /// Where a path starts and ends, if the network knows its nodes.
    fn ends(&self, path: &[LinkId]) -> Option<(NodeId, NodeId)> {
        let port = |l: &LinkId| self.ports[*l as usize].port;
        Some((port(path.first()?).from?, port(path.last()?).to?))
    }

    /// The flow's subflows take other paths from now on.
    pub(crate) fn set_routes(&mut self, flow: FlowId, routes: &[Route]) {
        let Some(f) = self.flows.get(flow) else { return };
        let (first_sub, subflows) = (f.first_sub, f.subflows);
        for (k, route) in routes.iter().enumerate().take(subflows as usize) {
            let info = self.path_info(&route.forward, &route.back);
            let (forward, back) = (self.routes.add(&route.forward), self.routes.add(&route.back));
            let symmetric = self.is_symmetric(&route.forward, &route.back);
            let sub = &mut self.subs[first_sub as usize + k];
            (sub.forward, sub.back, sub.symmetric, sub.base_rtt_ns) = (forward, back, symmetric, info.base_rtt_ns);
            if self.flows[flow].open {
                self.flows[flow].source.on_reroute(&mut self.io, k as u8, &info, &route.forward);
                self.carry_out(Who::Source(flow));
            }
        }
        self.send_all(flow);
    }

    /// The flow has another weight from now on.
    pub(crate) fn change_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        if self.flows.get(flow).is_some_and(|f| f.open) {
            let utility = utility.unwrap_or_else(|| Arc::new(Utility::log(weight)));
            self.flows[flow].source.on_weight(&mut self.io, weight, &utility);
            self.carry_out(Who::Source(flow));
            self.send_all(flow);
        }
    }

    fn is_symmetric(&self, forward: &[LinkId], back: &[LinkId]) -> bool {
        forward.len() == back.len()
            && forward.iter().zip(back.iter().rev()).all(|(&l, &t)| self.ports[t as usize].twin == Some(l))
    }

    fn path_info(&self, forward: &[LinkId], back: &[LinkId]) -> PathInfo {
        let crossing = |links: &[LinkId], bytes: u32| -> Ns {
            let one = |&l: &LinkId| {
                let port = &self.ports[l as usize].port;
                port.delay_ns + (f64::from(bytes) * 8e9 / port.capacity_bps).ceil() as Ns
            };
            links.iter().map(one).sum()
        };
        let capacity = |l: &LinkId| self.ports[*l as usize].port.capacity_bps;
        PathInfo {
            hops: forward.len() as u16,
            line_rate_bps: capacity(&forward[0]),
            min_capacity_bps: forward.iter().map(capacity).fold(f64::INFINITY, f64::min),
            base_rtt_ns: crossing(forward, self.sizes.mtu_bytes) + crossing(back, self.sizes.ack_bytes),
        }
    }

    pub(crate) fn start_at(&mut self, flow: FlowId, at_ns: Ns) {
        self.wheel.push(at_ns.max(self.now_ns), Event::Start(flow));
    }

    pub(crate) fn start(&mut self, flow: FlowId) {
        if !self.flows.get(flow).is_some_and(|f| f.open) {
            return; // Told to stop before it began.
        }
        self.flows[flow].source.on_start(&mut self.io);
        self.carry_out(Who::Source(flow));
        self.send_all(flow);
        if self.flows[flow].size_bytes == Some(0) {
            self.finish(flow);
            self.say_goodbye(flow);
        }
    }

    /// The flow sends nothing new from now on; what is under way is still repaired.
    pub fn stop(&mut self, flow: FlowId) {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return };
        f.open = false;
        self.open_flows -= 1;
        if f.size_bytes.is_some() {
            self.unfinished -= 1;
        }
        f.unsent_bytes = 0;
        f.size_bytes = Some(f.view.sent_bytes);
        self.say_goodbye(flow);
    }

    fn say_goodbye(&mut self, flow: FlowId) {
        let f = &mut self.flows[flow];
        if std::mem::replace(&mut f.said_goodbye, true) {
            return;
        }
        f.source.on_finish(&mut self.io);
        self.carry_out(Who::Source(flow));
        self.flows.note_end(flow);
    }

    /// The last byte has arrived.
    fn finish(&mut self, flow: FlowId) {
        let f = &mut self.flows[flow];
        if f.open {
            f.open = false;
            f.view.finished_ns = Some(self.now_ns);
            self.open_flows -= 1;
            self.unfinished -= 1;
            self.finished.push(flow);
        }
    }

    /// A packet has crossed its last link.
    #[inline(never)]
    pub(crate) fn deliver(&mut self, id: u32) {
        match self.slab[id].kind {
            PacketKind::Data => self.on_data(id),
            PacketKind::Ack => self.on_ack(id),
            PacketKind::Ctl => self.on_ctl(id),
        }
    }

    fn on_data(&mut self, id: u32) {
        let packet = &mut self.slab[id];
        let flow = packet.flow;
        let f = &mut self.flows[flow];
        let sub = &mut self.subs[f.first_sub as usize + packet.subflow as usize];
        let payload = u64::from(packet.payload_bytes);
        self.waits.saturating_record(packet.waited_ns);
        let gap = self.go_back && packet.segment > sub.receiver.cumulative();
        if !gap && sub.receiver.arrived(packet.segment) {
            f.view.received_bytes += payload;
            f.view.received_wire_bytes += u64::from(packet.bytes);
        } else {
            f.view.duplicate_bytes += payload;
        }
        let done = f.open && f.size_bytes == Some(f.view.received_bytes);
        let mut reply = f.sink.on_data(&mut self.io, packet);
        if gap && !sub.receiver.complains() {
            reply = Reply::Withhold;
        }
        // The acknowledgement goes first; the hop that sees it has asks of its own.
        let asks = if self.io.is_asked() { std::mem::take(self.io.asks_mut()) } else { Vec::new() };
        match reply {
            Reply::Ack(data) => {
                packet.kind = PacketKind::Ack;
                packet.route = sub.back;
                packet.way = Way::Back;
                packet.hop = 0;
                packet.bytes = self.sizes.ack_bytes;
                packet.class = self.acks.unwrap_or(packet.class);
                packet.payload_bytes = sub.receiver.blocks(packet.segment).bits();
                packet.cumulative = sub.receiver.cumulative();
                packet.waited_ns = 0;
                packet.data = data;
                let first = self.routes.first(sub.back);
                self.enqueue(first, id, None);
            }
            Reply::Withhold => {
                self.slab.remove(id);
                self.flows.release(flow);
            }
        }
        if !asks.is_empty() {
            *self.io.asks_mut() = asks;
            self.carry_out(Who::Sink(flow));
        }
        if done && !self.at_sender {
            self.finish(flow);
        }
    }

    fn on_ack(&mut self, id: u32) {
        let packet = &self.slab[id];
        let (flow, subflow, segment, cumulative) = (packet.flow, packet.subflow, packet.segment, packet.cumulative);
        let (sent_ns, ecn, data) = (packet.sent_ns, packet.ecn, packet.data);
        let blocks = Blocks::from_bits(packet.payload_bytes);
        self.slab.remove(id);
        let f = &mut self.flows[flow];
        let at = f.first_sub + u32::from(subflow);
        let sub = &mut self.subs[at as usize];
        let acked = sub.sender.on_ack(segment, blocks, cumulative, sent_ns, self.now_ns);
        f.acked_bytes += acked.bytes;
        let ack = Ack {
            subflow,
            acked_bytes: acked.bytes,
            rtt_ns: self.now_ns - sent_ns,
            ecn,
            in_flight_bytes: sub.sender.in_flight_bytes(),
            remaining_bytes: remaining(f),
            segment,
            next_segment: sub.sender.next_segment(),
            data,
        };
        f.source.on_ack(&mut self.io, &ack);
        if let Some(segment) = acked.lost {
            let kind = if self.go_back { LossKind::OutOfOrder } else { LossKind::Reordered };
            let loss = loss_of(sub, kind, segment);
            f.source.on_loss(&mut self.io, &loss);
        }
        let all = f.size_bytes == Some(f.acked_bytes);
        self.carry_out(Who::Source(flow));
        if all {
            if self.at_sender {
                self.finish(flow);
            }
            self.say_goodbye(flow);
        } else {
            self.send(at);
        }
        self.flows.release(flow);
    }

    fn on_ctl(&mut self, id: u32) {
        let flow = self.slab[id].flow;
        self.take_ctl(id);
        self.flows.release(flow);
    }

    fn take_ctl(&mut self, id: u32) {
        let packet = &self.slab[id];
        let (flow, subflow, route, bytes) = (packet.flow, packet.subflow, packet.route, packet.bytes);
        let (way, node) = (packet.way, packet.segment);
        let Some(message) = self.slab.remove(id) else { return };
        match way {
            Way::Out | Way::Back => {
                let sub = &self.subs[self.sub_of(flow, subflow)];
                let f = &mut self.flows[flow];
                // A message on a path that the flow has left is lost.
                if way == Way::Out && route == sub.forward {
                    f.sink.on_ctl(&mut self.io, subflow, *message, bytes);
                    self.carry_out(Who::Sink(flow));
                } else if way == Way::Back && route == sub.back {
                    self.tell_source(flow, subflow, *message);
                }
            }
            Way::ControllerToFlow => self.tell_source(flow, subflow, *message),
            Way::ControllerToNode => self.at_node(node, |machine, io| machine.on_ctl(io, *message)),
            Way::FlowToController | Way::NodeToController => {
                let Some(controller) = &mut self.controller else { return };
                match way {
                    Way::FlowToController => controller.on_ctl(&mut self.io, flow, *message),
                    _ => controller.on_node(&mut self.io, node, *message),
                }
                self.carry_out(Who::Controller);
            }
        }
    }

    fn tell_source(&mut self, flow: FlowId, subflow: u8, message: S::Ctl) {
        let Some(f) = self.flows.get_mut(flow).filter(|f| !f.is_over()) else { return };
        f.source.on_ctl(&mut self.io, subflow, message);
        self.carry_out(Who::Source(flow));
        self.send_all(flow);
    }

    pub(crate) fn on_timeout(&mut self, at: u32) {
        let flow = self.subs[at as usize].flow;
        self.subs[at as usize].timeout_pending = false;
        self.look_for_silence(at);
        self.flows.release(flow);
    }

    /// Notices at `due_ns`, or when that was put off, that nothing has arrived for too long.
    fn await_silence(&mut self, at: u32, due_ns: Ns) {
        let sub = &mut self.subs[at as usize];
        sub.timeout_pending = true;
        self.flows.hold(sub.flow);
        self.wheel.push(due_ns.max(self.now_ns), Event::Timeout(sub.flow, at));
    }

    fn look_for_silence(&mut self, at: u32) {
        let now_ns = self.now_ns;
        let sub = &mut self.subs[at as usize];
        let Some(timeout_ns) = sub.sender.timeout_ns() else { return };
        if timeout_ns > now_ns {
            return self.await_silence(at, timeout_ns);
        }
        if let Some(next) = sub.sender.probe(now_ns) {
            return self.send_probe(at, next);
        }
        let Some(segment) = sub.sender.on_timeout(now_ns) else { return };
        let flow = sub.flow;
        let loss = loss_of(sub, LossKind::Timeout, segment);
        self.flows[flow].source.on_loss(&mut self.io, &loss);
        self.carry_out(Who::Source(flow));
        self.send(at);
        let sub = &self.subs[at as usize];
        if !sub.timeout_pending
            && let Some(due_ns) = sub.sender.timeout_ns()
        {
            self.await_silence(at, due_ns);
        }
    }

    /// The last segment under way once more, past window and pace: a packet in two round trips.
    fn send_probe(&mut self, at: u32, next: Next) {
        let sub = &mut self.subs[at as usize];
        let f = &mut self.flows[sub.flow];
        f.view.retransmissions += 1;
        let mut packet = blank(sub.flow, sub.number, sub.forward, self.now_ns);
        packet.segment = next.segment;
        packet.bytes = next.payload_bytes + self.sizes.header_bytes;
        packet.payload_bytes = next.payload_bytes;
        let remaining = remaining(f);
        f.source.stamp(self.now_ns, &mut packet, remaining);
        if let Some(due_ns) = sub.sender.timeout_ns() {
            self.await_silence(at, due_ns);
        }
        self.launch(packet);
    }

    pub(crate) fn on_pace(&mut self, at: u32) {
        let sub = &mut self.subs[at as usize];
        let flow = sub.flow;
        if sub.pace_event_ns == Some(self.now_ns) {
            sub.pace_event_ns = None;
        }
        self.send(at);
        self.flows.release(flow);
    }

    pub(crate) fn send_all(&mut self, flow: FlowId) {
        let f = &self.flows[flow];
        for at in f.first_sub..f.first_sub + u32::from(f.subflows) {
            self.send(at);
        }
    }

    /// Sends what window and pace allow now.
    pub(crate) fn send(&mut self, at: u32) {
        loop {
            let sub = &mut self.subs[at as usize];
            let f = &mut self.flows[sub.flow];
            let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
            if sub.held || rate_bps.is_nan() || rate_bps <= 0.0 || sub.at_nic {
                return;
            }
            let fresh = f.unsent_bytes.min(u64::from(self.sizes.mss_bytes())) as u32;
            let Some(next) = sub.sender.next(fresh) else { return };
            let in_flight = sub.sender.in_flight_bytes();
            if in_flight > 0 && in_flight + u64::from(next.payload_bytes) > sub.window_bytes {
                return;
            }
            if rate_bps.is_finite() && !may_go(sub, self.now_ns) {
                let due_ns = sub.pace_ps.div_ceil(PS);
                if sub.pace_event_ns.is_none_or(|pending| pending > due_ns) {
                    sub.pace_event_ns = Some(due_ns);
                    f.held += 1;
                    self.wheel.push(due_ns, Event::Pace(sub.flow, at));
                }
                return;
            }
            let bytes = next.payload_bytes + self.sizes.header_bytes;
            advance_pace(sub, self.now_ns, bytes, rate_bps);
            sub.sender.sent(next, self.now_ns);
            if next.again {
                f.view.retransmissions += 1;
            } else {
                f.unsent_bytes -= u64::from(next.payload_bytes);
                f.view.sent_bytes += u64::from(next.payload_bytes);
            }
            let mut packet = blank(sub.flow, sub.number, sub.forward, self.now_ns);
            packet.segment = next.segment;
            packet.bytes = bytes;
            packet.payload_bytes = next.payload_bytes;
            let remaining = remaining(f);
            f.source.stamp(self.now_ns, &mut packet, remaining);
            if !sub.timeout_pending {
                let due_ns = sub.sender.timeout_ns().expect("a segment was just sent");
                self.await_silence(at, due_ns);
            }
            self.subs[at as usize].at_nic = self.takes_turns;
            self.launch(packet);
        }
    }

    /// Does what the machine `who` asked.
    #[inline]
    pub(crate) fn carry_out(&mut self, who: Who) {
        if self.io.asks_mut().is_empty() {
            return;
        }
        let mut asks = std::mem::take(&mut self.scratch);
        std::mem::swap(self.io.asks_mut(), &mut asks);
        for ask in asks.drain(..) {
            match (ask, who) {
                (Ask::Pace { subflow, rate_bps, window_bytes }, Who::Source(flow)) => {
                    let at = self.sub_of(flow, subflow);
                    let demand_bps = self.flows[flow].demand_bps;
                    set_pace(&mut self.subs[at], rate_bps, window_bytes, demand_bps);
                }
                (Ask::Timer { timer, at_ns }, who) => {
                    if let Who::Source(flow) | Who::Sink(flow) = who {
                        self.flows.hold(flow);
                    }
                    let event = match who {
                        Who::Source(flow) => Event::SourceTimer(flow, timer),
                        Who::Sink(flow) => Event::SinkTimer(flow, timer),
                        Who::Hop(link) => Event::HopTimer(link, timer, self.life(who)),
                        Who::Node(node) => Event::NodeTimer(node, timer, self.life(who)),
                        Who::Controller => Event::ControllerTimer(timer, self.life(who)),
                    };
                    self.wheel.push(at_ns.max(self.now_ns), event);
                }
                (Ask::Ctl { to, subflow, message, class, bytes }, who) => {
                    self.send_ctl(who, subflow, to, message, class, bytes);
                }
                (Ask::Pause { class, on, .. }, Who::Hop(link)) => self.pause(link, class, on),
                (Ask::Pause { link, class, on }, Who::Node(node)) if self.leaves(link, node) => {
                    self.pause(link, class, on);
                }
                (Ask::Pause { .. }, who) => debug_assert!(false, "{who:?} cannot hold that queue"),
                (Ask::Pace { .. }, _) => debug_assert!(false, "only a source sets a pace"),
            }
        }
        self.scratch = asks;
    }

    fn leaves(&self, link: LinkId, node: NodeId) -> bool {
        self.ports.get(link as usize).is_some_and(|p| p.port.from == Some(node))
    }

    fn send_ctl(&mut self, who: Who, subflow: u8, to: To, message: S::Ctl, class: Class, bytes: u32) {
        let source_of = |sim: &Self, flow: FlowId| {
            // A message to a flow that is over goes nowhere, whether it is forgotten yet or not.
            let f = sim.flows.get(flow).filter(|f| !f.is_over())?;
            let sub = &sim.subs[f.first_sub as usize];
            sim.ends(sim.routes.of(sub.forward))
        };
        let (flow, way, route, node) = match (who, to) {
            (Who::Source(flow), To::Sink) => (flow, Way::Out, Some(self.subs[self.sub_of(flow, subflow)].forward), 0),
            (Who::Sink(flow), To::Source) => (flow, Way::Back, Some(self.subs[self.sub_of(flow, subflow)].back), 0),
            (Who::Source(flow), To::Controller) => {
                let ways = source_of(self, flow).and_then(|(node, _)| self.ways[node as usize]);
                (flow, Way::FlowToController, ways.map(|(out, _)| out), 0)
            }
            // Nobody writes to a flow that is over: whether it was forgotten makes no difference.
            (Who::Controller, To::Flow(flow)) if self.flows.get(flow).is_none_or(FlowState::is_over) => {
                (flow, Way::ControllerToFlow, None, 0)
            }
            (Who::Controller, To::Flow(flow)) => {
                let ways = source_of(self, flow).and_then(|(node, _)| self.ways[node as usize]);
                (flow, Way::ControllerToFlow, ways.map(|(_, back)| back), 0)
            }
            (Who::Node(node), To::Controller) => {
                (FlowId::MAX, Way::NodeToController, self.ways[node as usize].map(|(out, _)| out), node)
            }
            (Who::Controller, To::Node(node)) => {
                let ways = self.ways.get(node as usize).copied().flatten();
                (FlowId::MAX, Way::ControllerToNode, ways.map(|(_, back)| back), node)
            }
            (Who::Node(_), To::Flow(flow)) => return self.tell_source(flow, subflow, message),
            (Who::Source(flow), To::Host) => {
                let Some((node, _)) = source_of(self, flow) else { return };
                return self.at_node(node, |machine, io| machine.on_flow(io, flow, message));
            }
            (Who::Sink(flow), To::Host) => {
                let Some((_, node)) = source_of(self, flow) else { return };
                return self.at_node(node, |machine, io| machine.on_flow(io, flow, message));
            }
            (Who::Hop(_) | Who::Node(_), To::Neighbour(link)) => {
                return self.send_letter(link, Letter::Message(message), bytes);
            }
            _ => {
                debug_assert!(false, "{who:?} cannot send to {to:?}");
                return;
            }
        };
        // Where no way is known, the message is lost.
        let Some(route) = route else { return };
        let mut packet = blank(flow, subflow, route, self.now_ns);
        packet.kind = PacketKind::Ctl;
        packet.way = way;
        packet.segment = node;
        packet.class = class;
        packet.bytes = bytes;
        packet.ctl = Some(Box::new(message));
        // The controller may be at that very node.
        if self.routes.of(route).is_empty() {
            self.flows.hold(flow);
            let id = self.slab.insert(packet);
            self.on_ctl(id);
        } else {
            self.launch(packet);
        }
    }

    /// A flow's rate on the wire as its source has it now.
    pub(crate) fn assigned_bps(&self, f: &FlowState<S>) -> f64 {
        if !f.open {
            return 0.0;
        }
        let wire = f64::from(self.sizes.mtu_bytes) / f64::from(self.sizes.mss_bytes());
        let one = |sub: &Subflow| match sub.rate_bps {
            _ if sub.held => 0.0,
            Some(rate_bps) => rate_bps,
            None => sub.window_bytes as f64 * 8e9 / sub.base_rtt_ns as f64 * wire,
        };
        let subs = &self.subs[f.first_sub as usize..f.first_sub as usize + f.subflows as usize];
        subs.iter().map(|sub| one(sub).min(f.demand_bps)).sum()
    }
}
