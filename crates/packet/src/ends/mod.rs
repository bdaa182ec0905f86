//! The ends of flows: sources and sinks with their state machines, reliable transmission, pacing, and NICs. They know
//! links only by number, and no queues: methods return what the network must do.

mod flow;
mod flows;
mod nic;
mod pacing;
mod sender;
mod ways;

pub(crate) use flow::{FlowState, Path, Subflow, blank};
pub(crate) use nic::{NicKind, Selection};
pub(crate) use sender::{Next, Receiver, Sender};
pub(crate) use ways::Ways;

use crate::event::SubId;
use flow::{loss_of, remaining};
use flows::Flows;
use hdrhistogram::Histogram;
use nic::Nics;
use pacing::Pacer;
use sender::Arrived;
use std::sync::Arc;
use subak_core::backend::{FlowView, PaceView, PacketSizes};
use subak_core::scheme::{Ack, Class, Io, LossKind, Packet, PacketKind, Recovery, Reply, RouteId, Scheme};
use subak_core::scheme::{Sink, Source, Way};
use subak_core::{FlowId, IdVec, LinkId, Network, Ns, SubflowId, Utility};

/// Flows with their sources and sinks, subflows and NICs.
pub(crate) struct Ends<S: Scheme> {
    flows: Flows<S>,
    subs: IdVec<SubId, Subflow>,
    nics: Nics,
    nic: NicKind,
    pacer: Pacer,
    sizes: PacketSizes,
    /// Priority class of ACKs, if it differs from the class of data.
    acks: Option<Class>,
    /// Whether a flow completes with the arrival of its last ACK.
    at_sender: bool,
    /// While a source or sink handles a message: number of the subflow's reroutes when that message was sent. An answer
    /// takes the same path.
    answers: Option<u32>,
    /// Number of flows that have neither finished nor been stopped. In a logical process (LP) the number may be
    /// negative: it counts ends of flows that were added in another LP.
    open_flows: i64,
    /// Number of flows with a size that have neither finished nor been stopped.
    unfinished: i64,
    /// Flows that finished since the previous query.
    finished: Vec<FlowId>,
    waits: Histogram<u64>,
}

/// Whether and when a subflow may send its next packet.
pub(crate) enum NextSend {
    /// No packet may be sent: there is no data, the source allows no rate, or the subflow's last packet is still
    /// queued at the NIC.
    Nothing,
    /// The window is full; pacing allows a packet at this time, ns.
    Full(Ns),
    /// Pacing allows the packet at this time, ns.
    At(Ns),
    /// The packet is to be sent at once.
    Now(Next),
}

/// Result of [`Ends::on_data`].
pub(crate) struct Received {
    pub flow: FlowId,
    /// Whether the packet is an ACK now, which must be sent; otherwise it must be removed.
    pub acks: bool,
    /// Whether the flow is complete.
    pub is_done: bool,
}

/// Result of [`Ends::on_ack`].
pub(crate) struct Acknowledged {
    pub flow: FlowId,
    pub at: SubId,
    /// Whether all bytes of the flow are ACKed.
    pub all: bool,
}

/// State of a subflow's RTO and tail loss probe: see [`Ends::silence`].
pub(crate) enum Silence<S: Scheme> {
    /// Nothing is in flight, or nothing is lost.
    Nothing,
    /// The next check is due at this time, ns.
    NotBefore(Ns),
    /// The tail loss probe is to be sent, and the time of the next check, ns, if there is one.
    Probe(Packet<S>, Option<Ns>),
    /// The RTO has expired: the source was told.
    Lost(FlowId),
}

impl<S: Scheme> Ends<S> {
    /// No flows.
    pub fn new(scheme: &S, network: &Network, sizes: PacketSizes) -> Self {
        let rules = scheme.rules();
        let nic = NicKind::of(&rules, network);
        Ends {
            flows: Flows::default(),
            subs: IdVec::new(),
            nics: Nics::new(nic, network.links().len()),
            nic,
            pacer: Pacer::new(&rules),
            sizes,
            acks: rules.acks,
            at_sender: false,
            answers: None,
            open_flows: 0,
            unfinished: 0,
            finished: Vec::new(),
            // The histogram's range is fixed, since recording saturates instead of resizing. 2^40 ns is about 18
            // minutes.
            waits: Histogram::new_with_bounds(1, 1 << 40, 2).expect("two digits and a proper range"),
        }
    }

    /// How NICs select packets.
    #[inline]
    pub fn nic(&self) -> NicKind {
        self.nic
    }

    /// Flows complete with the arrival of their last ACK from now on.
    pub fn complete_at_sender(&mut self) {
        self.at_sender = true;
    }

    /// State of the flow, if it was added and not removed.
    #[inline]
    pub fn get(&self, flow: FlowId) -> Option<&FlowState<S>> {
        self.flows.get(flow)
    }

    /// State of a flow that has packets or events.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &FlowState<S> {
        &self.flows[flow]
    }

    /// State of the subflow.
    #[inline]
    pub fn sub(&self, at: SubId) -> &Subflow {
        &self.subs[at]
    }

    /// Index of a subflow of a flow that has packets or events.
    #[inline]
    pub fn sub_of(&self, flow: FlowId, subflow: SubflowId) -> SubId {
        self.flows[flow].first_sub.plus(subflow)
    }

    /// The number of the next flow.
    pub fn next_flow(&self) -> FlowId {
        self.flows.next()
    }

    /// Numbers of all flows with a state.
    pub fn numbers(&self) -> impl Iterator<Item = FlowId> {
        self.flows.numbers()
    }

    /// The state machine of a flow's source.
    #[inline]
    pub fn source(&mut self, flow: FlowId) -> &mut S::Source {
        &mut self.flows[flow].source
    }

    /// The state machine of a flow's sink.
    #[inline]
    pub fn sink(&mut self, flow: FlowId) -> &mut S::Sink {
        &mut self.flows[flow].sink
    }

    /// Index of the first subflow of the next flow, which will have `subflows`.
    pub fn place_for(&self, subflows: usize) -> SubId {
        self.flows.reusable(subflows as u8).unwrap_or(self.subs.next_id())
    }

    /// Puts a subflow of the next flow in its place.
    pub fn put_sub(&mut self, at: SubId, sub: Subflow) {
        match self.subs.get_mut(at) {
            Some(place) => *place = sub,
            None => _ = self.subs.push(sub),
        }
    }

    /// Adds the flow, whose subflows are in their places. `counts`: whether this logical process counts it.
    pub fn add(&mut self, state: FlowState<S>, counts: bool) {
        if counts {
            self.open_flows += 1;
            self.unfinished += i64::from(state.size_bytes.is_some());
        }
        self.flows.add(state);
    }

    /// Counts a packet or an event of the flow, whose state is kept as long as it has any.
    #[inline]
    pub fn hold(&mut self, flow: FlowId) {
        self.flows.hold(flow);
    }

    /// Subtracts a packet or an event of the flow from the flow's count.
    #[inline]
    pub fn release(&mut self, flow: FlowId) {
        self.flows.release(flow);
    }

    /// Determines the subflow's next transmission and its time.
    #[inline]
    pub fn next(&mut self, at: SubId, now_ns: Ns) -> NextSend {
        let sub = &mut self.subs[at];
        let f = &self.flows[sub.flow];
        let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
        if sub.held || rate_bps.is_nan() || rate_bps <= 0.0 || sub.at_nic {
            return NextSend::Nothing;
        }
        let fresh = f.unsent_bytes.min(u64::from(self.sizes.mss_bytes())) as u32;
        let Some(next) = sub.sender.next(fresh) else { return NextSend::Nothing };
        let due_ns = if rate_bps.is_finite() { sub.pace_ns() } else { 0 };
        let in_flight = sub.sender.in_flight_bytes();
        if in_flight > 0 && in_flight + u64::from(next.payload_bytes) > sub.window_bytes {
            return NextSend::Full(due_ns);
        }
        if due_ns > now_ns { NextSend::At(due_ns) } else { NextSend::Now(next) }
    }

    /// The packet of transmission `next`, which is sent now.
    #[inline]
    pub fn packet(&mut self, at: SubId, next: Next, now_ns: Ns) -> Packet<S> {
        let sub = &mut self.subs[at];
        let f = &mut self.flows[sub.flow];
        let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
        self.pacer.advance(sub, now_ns, next.payload_bytes + self.sizes.header_bytes, rate_bps);
        sub.sender.sent(next, now_ns);
        if next.again {
            f.view.retransmissions += 1;
        } else {
            f.unsent_bytes -= u64::from(next.payload_bytes);
            f.view.sent_bytes += u64::from(next.payload_bytes);
        }
        stamped(f, sub, next, self.sizes, now_ns)
    }

    /// Time of the next check for silence, ns, if none is pending and something is in flight.
    #[inline]
    pub fn unwatched(&self, at: SubId) -> Option<Ns> {
        let sub = &self.subs[at];
        if sub.timeout_pending { None } else { sub.sender.timeout_ns() }
    }

    /// Notes that a check for silence is pending; returns the flow.
    pub fn await_silence(&mut self, at: SubId) -> FlowId {
        let sub = &mut self.subs[at];
        sub.timeout_pending = true;
        self.flows.hold(sub.flow);
        sub.flow
    }

    /// Notes that the pending check for silence is made now; returns the flow.
    pub fn checks_silence(&mut self, at: SubId) -> FlowId {
        self.subs[at].timeout_pending = false;
        self.subs[at].flow
    }

    /// Checks for an expired RTO or a due tail loss probe.
    pub fn silence(&mut self, at: SubId, now_ns: Ns, io: &mut Io<S>) -> Silence<S> {
        let sub = &mut self.subs[at];
        let Some(timeout_ns) = sub.sender.timeout_ns() else { return Silence::Nothing };
        if timeout_ns > now_ns {
            return Silence::NotBefore(timeout_ns);
        }
        let f = &mut self.flows[sub.flow];
        if let Some(next) = sub.sender.probe(now_ns) {
            f.view.retransmissions += 1;
            let packet = stamped(f, sub, next, self.sizes, now_ns);
            return Silence::Probe(packet, sub.sender.timeout_ns());
        }
        let Some(segment) = sub.sender.on_timeout(now_ns) else { return Silence::Nothing };
        f.source.on_loss(io, &loss_of(sub, LossKind::Timeout, segment));
        Silence::Lost(sub.flow)
    }

    /// Notes that a pacing event of the subflow is due at `due_ns`; returns whether it must be scheduled, which it must
    /// not if an earlier one is pending.
    #[inline]
    pub fn await_pace(&mut self, at: SubId, due_ns: Ns) -> bool {
        let pending = &mut self.subs[at].pace_event_ns;
        let is_first = pending.is_none_or(|pending_ns| pending_ns > due_ns);
        if is_first {
            *pending = Some(due_ns);
        }
        is_first
    }

    /// Handles a pacing event; returns whether the subflow may send.
    #[inline]
    pub fn on_pace(&mut self, flow: FlowId, at: SubId, now_ns: Ns) -> bool {
        // Without state, the flow is over, and its subflow indices may be reused.
        let Some(f) = self.flows.get(flow) else { return false };
        let sub = &mut self.subs[at];
        if f.torn_down && !f.open && sub.sender.in_flight_bytes() == 0 {
            return false;
        }
        if sub.pace_event_ns == Some(now_ns) {
            sub.pace_event_ns = None;
        }
        true
    }

    /// Sets the pacing rate and the window that the flow's source requests; returns the subflow.
    #[inline]
    pub fn set_pace(
        &mut self,
        flow: FlowId,
        subflow: SubflowId,
        rate_bps: Option<f64>,
        window_bytes: Option<u64>,
    ) -> SubId {
        let f = &self.flows[flow];
        let at = f.first_sub.plus(subflow);
        self.pacer.set(&mut self.subs[at], rate_bps, window_bytes, f.demand_bps);
        at
    }

    /// Notes that a packet of the subflow is queued at the NIC.
    #[inline]
    pub fn queue_at_nic(&mut self, at: SubId) {
        let sub = &mut self.subs[at];
        debug_assert!(!sub.at_nic, "a subflow has one packet at its NIC");
        sub.at_nic = true;
    }

    /// Notes that the subflow's packet is not at the NIC any more, where it may have waited.
    pub fn leave_nic(&mut self, at: SubId, now_ns: Ns) {
        let sub = &mut self.subs[at];
        self.pacer.left(sub, now_ns);
        (sub.at_nic, sub.had_to_wait) = (false, true);
    }

    /// Ends the effect of [`Ends::leave_nic`] on pacing.
    pub fn served(&mut self, at: SubId) {
        self.subs[at].had_to_wait = false;
    }

    /// Notes that the subflow's packet was lost before it left its host; returns whether nothing is in flight.
    pub fn lose_at_nic(&mut self, at: SubId) -> bool {
        self.subs[at].at_nic = false;
        self.subs[at].sender.in_flight_bytes() == 0
    }

    /// Handles a data packet at its sink, which turns it into an ACK unless it withholds that.
    #[inline]
    pub fn on_data(&mut self, packet: &mut Packet<S>, io: &mut Io<S>) -> Received {
        let flow = packet.flow;
        let f = &mut self.flows[flow];
        let sub = &mut self.subs[f.first_sub.plus(packet.subflow)];
        let payload = u64::from(packet.payload_bytes());
        self.waits.saturating_record(packet.waited_ns);
        let arrived = sub.receiver.arrived(packet.segment());
        if arrived == Arrived::New {
            f.view.received_bytes += payload;
            f.view.received_wire_bytes += u64::from(packet.bytes);
        } else {
            f.view.duplicate_bytes += payload;
        }
        debug_assert!(
            !f.open || f.size_bytes.is_none_or(|bytes| f.view.received_bytes <= bytes),
            "{flow:?} has received more than its size"
        );
        let is_done = f.open && f.size_bytes == Some(f.view.received_bytes) && !self.at_sender;
        let reply = f.sink.on_data(io, packet);
        let acks = match reply {
            Reply::Ack(data) if arrived != Arrived::Gap(false) => {
                packet.acknowledge(sub.receiver.blocks(packet.segment()));
                packet.route = sub.back;
                packet.way = Way::Back;
                packet.hop = 0;
                packet.bytes = self.sizes.ack_bytes;
                packet.class = self.acks.unwrap_or(packet.class);
                packet.cumulative = sub.receiver.cumulative();
                packet.waited_ns = 0;
                packet.data = data;
                true
            }
            _ => false,
        };
        Received { flow, acks, is_done }
    }

    /// Handles an ACK at its source.
    #[inline]
    pub fn on_ack(&mut self, packet: &Packet<S>, now_ns: Ns, io: &mut Io<S>) -> Acknowledged {
        let (flow, segment) = (packet.flow, packet.segment());
        let f = &mut self.flows[flow];
        let at = f.first_sub.plus(packet.subflow);
        let sub = &mut self.subs[at];
        let acked = sub.sender.on_ack(segment, packet.blocks(), packet.cumulative, packet.sent_ns, now_ns);
        f.acked_bytes += acked.bytes;
        let ack = Ack {
            subflow: packet.subflow,
            acked_bytes: acked.bytes,
            rtt_ns: now_ns - packet.sent_ns,
            ecn: packet.ecn,
            in_flight_bytes: sub.sender.in_flight_bytes(),
            remaining_bytes: remaining(f),
            segment,
            next_segment: sub.sender.next_segment(),
            data: packet.data,
        };
        f.source.on_ack(io, &ack);
        if let Some(segment) = acked.lost {
            f.source.on_loss(io, &loss_of(sub, sub.sender.loss_kind(), segment));
        }
        Acknowledged { flow, at, all: f.size_bytes == Some(f.acked_bytes) }
    }

    /// Whether the arrival of a flow's last ACK completes it.
    pub fn completes_at_sender(&self) -> bool {
        self.at_sender
    }

    /// Counts the loss of a packet of `kind` of the flow.
    pub fn count_loss(&mut self, flow: FlowId, kind: PacketKind) {
        match kind {
            PacketKind::Data => self.flows[flow].view.drops += 1,
            PacketKind::Ctl => {
                if let Some(f) = self.flows.get_mut(flow) {
                    f.view.ctl_drops += 1;
                }
            }
            PacketKind::Ack => {}
        }
    }

    /// Begins or ends the answer to a message that was sent after `turn` reroutes.
    pub fn answer(&mut self, turn: Option<u32>) {
        self.answers = turn;
    }

    /// Path of a message of the flow, and the number of reroutes before it. An answer takes the path of its message.
    pub fn message_path(&self, flow: FlowId, subflow: SubflowId) -> (Path, u32) {
        let sub = &self.subs[self.sub_of(flow, subflow)];
        let turn = self.answers.unwrap_or(sub.turn());
        (sub.path(turn), turn)
    }

    /// Starts the flow; returns whether it does start: it may have been stopped before.
    pub fn start(&mut self, flow: FlowId, io: &mut Io<S>) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.began = true;
        f.source.on_start(io);
        true
    }

    /// Lets the flow send no new data; returns whether it was active. `counts`: whether this logical process counts
    /// the flow.
    pub fn stop(&mut self, flow: FlowId, counts: bool) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.open = false;
        f.unsent_bytes = 0;
        let is_sized = f.size_bytes.replace(f.view.sent_bytes).is_some();
        if counts {
            self.open_flows -= 1;
            self.unfinished -= i64::from(is_sized);
        }
        true
    }

    /// Completes the flow; returns whether it was active.
    pub fn finish(&mut self, flow: FlowId, now_ns: Ns) -> bool {
        let f = &mut self.flows[flow];
        if f.open {
            f.open = false;
            f.view.finished_ns = Some(now_ns);
            self.open_flows -= 1;
            self.unfinished -= 1;
            self.finished.push(flow);
            return true;
        }
        false
    }

    /// Notes that the flow has finished in another logical process.
    pub fn hear_finished(&mut self, flow: FlowId) {
        if let Some(f) = self.flows.get_mut(flow) {
            f.open = false;
        }
    }

    /// Tells the flow's source that the flow has ended; returns whether this was the first time.
    pub fn tear_down(&mut self, flow: FlowId, io: &mut Io<S>) -> bool {
        let f = &mut self.flows[flow];
        if std::mem::replace(&mut f.torn_down, true) {
            return false;
        }
        f.source.on_finish(io);
        true
    }

    /// Records the flow as ended if it is over. To be called where a flow may end without packets or events left.
    pub fn note_end(&mut self, flow: FlowId) {
        self.flows.note_end(flow);
    }

    /// Sets the weight of an active flow; returns whether the flow is active.
    pub fn set_weight(&mut self, flow: FlowId, weight: f64, utility: &Arc<Utility>, io: &mut Io<S>) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.source.on_weight(io, weight, utility);
        true
    }

    /// Sets the paths over which the packets of a sprayed subflow are sent.
    pub fn respray(&mut self, at: SubId, routes: &[RouteId]) {
        self.subs[at].ways.iter_mut().for_each(|ways| ways.change(routes.to_vec()));
    }

    /// Sets the path of a subflow. Returns the time of the next check for silence, ns, if the new path needs one of its
    /// own.
    pub fn reroute(
        &mut self,
        at: SubId,
        path: Path,
        nic: LinkId,
        recovery: Recovery,
        base_rtt_ns: Ns,
        now_ns: Ns,
    ) -> Option<Ns> {
        let sub = &mut self.subs[at];
        let recovery = Recovery { patient: sub.ways.is_some(), ..recovery };
        let due_ns = sub.sender.set_path(recovery, base_rtt_ns, now_ns);
        sub.left.push(sub.path(sub.turn()));
        sub.listed &= sub.nic == nic;
        (sub.forward, sub.back, sub.symmetric, sub.base_rtt_ns) =
            (path.forward, path.back, path.symmetric, base_rtt_ns);
        sub.nic = nic;
        due_ns
    }

    /// Number of paths that the flow's packets take.
    pub fn paths(&self, flow: FlowId) -> usize {
        self.flows[flow].subs().map(|at| self.subs[at].ways.as_ref().map_or(1, |ways| ways.number())).sum()
    }

    /// Largest size of a packet, bytes.
    pub fn mtu_bytes(&self) -> u32 {
        self.sizes.mtu_bytes
    }

    /// Number of flows that have neither finished nor been stopped.
    pub fn open_flows(&self) -> i64 {
        self.open_flows
    }

    /// Number of flows with a size that have neither finished nor been stopped.
    pub fn unfinished(&self) -> i64 {
        self.unfinished
    }

    /// Whether flows finished since the previous query.
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Flows that finished since the previous query, with the times, ns, in order.
    pub fn take_finished(&mut self) -> Vec<(Option<Ns>, FlowId)> {
        let finished = std::mem::take(&mut self.finished).into_iter();
        let at_ns = |flow| self.flows.get(flow).and_then(|f| f.view.finished_ns);
        let mut finished: Vec<_> = finished.map(|flow| (at_ns(flow), flow)).collect();
        finished.sort_unstable();
        finished
    }

    /// Queueing delays of data packets, ns, and numbers of packets.
    pub fn waits_ns(&self) -> Vec<(Ns, u64)> {
        self.waits.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
    }

    /// Removes the states of flows that are over; returns their last counters.
    pub fn forget(&mut self) -> Vec<(FlowId, FlowView)> {
        let mut views = Vec::new();
        self.flows.forget(|flow, f| views.push((flow, f.view)));
        views
    }

    /// Removes the state of a flow that is over in all logical processes.
    pub fn forget_one(&mut self, flow: FlowId) {
        self.flows.forget_one(flow);
    }

    /// Discards recorded ends of flows: a single logical process (LP) does not know whether a flow is over in all
    /// LPs.
    pub fn notice_no_ends(&mut self) {
        self.flows.notice_no_ends();
    }

    /// Rate of a flow on the wire as set by its source's pacing rates and windows, bit/s.
    pub fn assigned_bps(&self, f: &FlowState<S>) -> f64 {
        if !f.open {
            return 0.0;
        }
        let wire = f64::from(self.sizes.mtu_bytes) / f64::from(self.sizes.mss_bytes());
        let one = |sub: &Subflow| match sub.rate_bps {
            _ if sub.held => 0.0,
            Some(rate_bps) => rate_bps,
            // Without pacing: bytes in flight over the RTT, by Little's law.
            None => sub.window_bytes as f64 * 8e9 / sub.sender.rtt_ns().max(sub.base_rtt_ns) as f64 * wire,
        };
        f.subs().map(|at| one(&self.subs[at]).min(f.demand_bps)).sum()
    }

    /// Pacing rates of the subflows of `flow`, as last set by its state machine.
    pub fn paces(&self, flow: FlowId) -> Vec<PaceView> {
        let Some(f) = self.flows.get(flow).filter(|f| f.open) else { return Vec::new() };
        let view = |sub: &Subflow| PaceView {
            pace_bps: if sub.held { Some(0.0) } else { sub.rate_bps },
            window_bytes: (!sub.held && sub.window_bytes < u64::MAX).then_some(sub.window_bytes),
            in_flight_bytes: sub.sender.in_flight_bytes(),
        };
        f.subs().map(|at| view(&self.subs[at])).collect()
    }
}

/// A packet of the subflow with transmission `next`, stamped by the flow's source.
#[inline]
fn stamped<S: Scheme>(
    f: &mut FlowState<S>,
    sub: &mut Subflow,
    next: Next,
    sizes: PacketSizes,
    now_ns: Ns,
) -> Packet<S> {
    let packet = blank(sub.flow, sub.number, sub.way(now_ns), now_ns);
    let mut packet = packet.carrying(next.segment, next.payload_bytes);
    packet.bytes = next.payload_bytes + sizes.header_bytes;
    let remaining = remaining(f);
    f.source.stamp(now_ns, &mut packet, remaining);
    packet
}
