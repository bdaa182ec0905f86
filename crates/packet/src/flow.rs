//! A flow's and a subflow's state, and the arithmetic of pacing.

use crate::sender::{Receiver, Sender};
use crate::ways::Ways;
use subak_core::backend::FlowView;
use subak_core::scheme::{Clock, Loss, LossKind, Packet, RouteId, Scheme};
use subak_core::{FlowId, Ns, SubflowId};

pub(crate) const PS: u64 = 1000;
/// A pace slower than a packet in ten days is no pace at all.
const LONGEST_GAP_PS: f64 = 1e18;

subak_core::id! {
    /// A subflow by its place among those of all flows.
    pub(crate) struct SubId(u32);
}

impl SubId {
    /// The subflow `number` of the flow whose first one this is.
    #[inline]
    pub fn plus(self, number: SubflowId) -> SubId {
        SubId(self.0 + u32::from(number.0))
    }
}

pub(crate) struct FlowState<S: Scheme> {
    pub source: S::Source,
    pub sink: S::Sink,
    /// Subflows are `subs[first_sub..first_sub + subflows]`.
    pub first_sub: SubId,
    pub subflows: u8,
    pub size_bytes: Option<u64>,
    /// Payload not yet given to any subflow.
    pub unsent_bytes: u64,
    pub acked_bytes: u64,
    /// Upper bound on each subflow's rate: they share the flow's evenly.
    pub demand_bps: f64,
    /// Neither finished nor stopped.
    pub open: bool,
    /// Whether `on_start` was called: only where its source is.
    pub began: bool,
    /// Whether `on_finish` was called.
    pub torn_down: bool,
    /// Packets of it in the network, and events and timers of it that are due. Where several parts of a network are simulated,
    /// what one of them took on another may let go: the sum over parts counts.
    pub held: i32,
    pub view: FlowView,
}

impl<S: Scheme> FlowState<S> {
    /// Its subflows.
    pub fn subs(&self) -> impl DoubleEndedIterator<Item = SubId> + use<S> {
        (self.first_sub.0..self.first_sub.0 + u32::from(self.subflows)).map(SubId)
    }

    /// Whether it has ended and nothing of it is on its way any more.
    pub fn is_over(&self) -> bool {
        self.held == 0 && self.torn_down && !self.open
    }
}

pub(crate) struct Subflow {
    pub flow: FlowId,
    pub number: SubflowId,
    /// Row of its links in the table of routes, out and back.
    pub forward: RouteId,
    pub back: RouteId,
    /// Whether the way back runs over the reverse links of the way out.
    pub symmetric: bool,
    /// Paths that it took before, in order: messages on them go on.
    pub left: Vec<Path>,
    pub base_rtt_ns: Ns,
    /// Where its packets are spread over several ways; else all take `forward`.
    pub ways: Option<Box<Ways>>,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Nothing is sent before the first pace.
    pub held: bool,
    pub rate_bps: Option<f64>,
    pub window_bytes: u64,
    /// When the pace allows the next packet, ps.
    pub pace_ps: u64,
    pub last_sent_ps: u64,
    pub last_bytes: u32,
    /// Time of the earliest pace event that is pending.
    pub pace_event_ns: Option<Ns>,
    pub timeout_pending: bool,
    /// Its packet waits at the NIC, where subflows take turns ([`subak_core::Nic`]).
    pub at_nic: bool,
    /// It is among those that the NIC with one timer looks at.
    pub listed: bool,
    /// Its packet has just left the NIC, which kept it from sending when its pace allowed.
    pub had_to_wait: bool,
}

/// Links out and back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub forward: RouteId,
    pub back: RouteId,
    pub symmetric: bool,
}

impl Subflow {
    /// The number of reroutes.
    pub fn turn(&self) -> u32 {
        self.left.len() as u32
    }

    /// The path that it took before its `turn`-th reroute.
    pub fn path(&self, turn: u32) -> Path {
        let now = Path { forward: self.forward, back: self.back, symmetric: self.symmetric };
        self.left.get(turn as usize).copied().unwrap_or(now)
    }

    /// When its pace allows the next packet.
    #[inline]
    pub fn pace_ns(&self) -> Ns {
        self.pace_ps.div_ceil(PS)
    }

    /// The way of a data packet that is sent at `now_ns`.
    #[inline]
    pub fn way(&mut self, now_ns: Ns) -> RouteId {
        self.ways.as_mut().map_or(self.forward, |ways| ways.take(now_ns))
    }
}

/// A data packet without content.
pub(crate) fn blank<S: Scheme>(flow: FlowId, subflow: SubflowId, route: RouteId, now_ns: Ns) -> Packet<S> {
    Packet { route, subflow, sent_ns: now_ns, enqueued_ns: now_ns, ..Packet::blank(flow) }
}

pub(crate) fn remaining<S: Scheme>(f: &FlowState<S>) -> u64 {
    f.size_bytes.map_or(u64::MAX, |size| size - f.acked_bytes)
}

pub(crate) fn loss_of(sub: &Subflow, kind: LossKind, segment: u32) -> Loss {
    Loss {
        subflow: sub.number,
        kind,
        segment,
        next_segment: sub.sender.next_segment(),
        in_flight_bytes: sub.sender.in_flight_bytes(),
    }
}

/// The source asks for a pace; `demand_bps` bounds it.
#[inline]
pub(crate) fn set_pace(
    sub: &mut Subflow,
    rate_bps: Option<f64>,
    window_bytes: Option<u64>,
    demand_bps: f64,
    clock: Clock,
    late: bool,
) {
    sub.held = false;
    sub.window_bytes = window_bytes.unwrap_or(u64::MAX);
    if sub.rate_bps != rate_bps {
        sub.rate_bps = rate_bps;
        // Where no pace is set, the demand still is one.
        let rate_bps = rate_bps.unwrap_or(f64::INFINITY).min(demand_bps);
        if rate_bps.is_finite() && sub.last_bytes > 0 && !late {
            let gap_ps = gap_ps(sub.last_bytes, rate_bps, clock);
            sub.pace_ps = sub.last_sent_ps.saturating_add(gap_ps);
        }
    }
}

fn gap_ps(bytes: u32, rate_bps: f64, clock: Clock) -> u64 {
    let exact_ps = (f64::from(bytes) * 8e12 / rate_bps).min(LONGEST_GAP_PS) as u64;
    match clock {
        Clock::Exact => exact_ps,
        Clock::WholeNs => (exact_ps - exact_ps % PS).max(PS),
    }
}

/// The packet leaves now: when may the next one? A source that waited only for the clock's next nanosecond goes on
/// from its ideal time, so that no rate is lost to rounding; so does one that waited for others' turns, up to a packet.
pub(crate) fn advance_pace(sub: &mut Subflow, now_ns: Ns, bytes: u32, rate_bps: f64, clock: Clock) {
    if !rate_bps.is_finite() {
        return;
    }
    let now_ps = now_ns * PS;
    let gap_ps = gap_ps(bytes, rate_bps, clock);
    let made_up_ps = if sub.had_to_wait { gap_ps } else { 0 };
    let start_ps = match clock {
        Clock::WholeNs => now_ps,
        Clock::Exact if sub.pace_ps + PS > now_ps => sub.pace_ps.min(now_ps),
        Clock::Exact => sub.pace_ps.max(now_ps.saturating_sub(made_up_ps)),
    };
    sub.last_sent_ps = start_ps;
    sub.last_bytes = bytes;
    sub.pace_ps = start_ps.saturating_add(gap_ps);
}

/// The last packet goes only now, for others went before it: its pace counts from now.
pub(crate) fn pace_from(sub: &mut Subflow, now_ns: Ns) {
    let late_ps = (now_ns * PS).saturating_sub(sub.last_sent_ps);
    sub.last_sent_ps += late_ps;
    sub.pace_ps = sub.pace_ps.saturating_add(late_ps);
}
