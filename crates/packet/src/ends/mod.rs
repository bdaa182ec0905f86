//! The ends of flows: sources and sinks with their state machines, reliable transmission, pacing, and NICs. They know
//! links only by number, and no queues: methods return what the network must do.

mod flow;
mod flows;
mod life;
mod nic;
mod pacing;
mod receiving;
mod sender;
mod sending;
mod ways;

pub(crate) use flow::{FlowState, Path, Subflow, blank};
pub(crate) use nic::{NicKind, Selection};
pub(crate) use receiving::{Acknowledged, Received};
pub(crate) use sender::{Next, Receiver, Sender};
pub(crate) use sending::{NextSend, Silence};
pub(crate) use ways::Ways;

use crate::event::SubId;
use flows::Flows;
use hdrhistogram::Histogram;
use nic::Nics;
use pacing::Pacer;
use subak_core::backend::{FlowView, PaceView, PacketSizes};
use subak_core::scheme::{Class, Scheme};
use subak_core::{FlowId, IdVec, Network, Ns, SubflowId};

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

    /// Whether the started flow has no rate, no packet, no timer and no other event.
    pub fn is_held(&self, flow: FlowId) -> bool {
        let has_no_rate = |sub: &Subflow| sub.held || sub.rate_bps.is_some_and(|rate_bps| rate_bps <= 0.0);
        let waits = |f: &&FlowState<S>| f.began && f.open && f.held == 0;
        self.flows.get(flow).filter(waits).is_some_and(|f| f.subs().all(|at| has_no_rate(&self.subs[at])))
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
