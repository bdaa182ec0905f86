//! State of a flow and of a subflow, and the arithmetic of pacing.

use crate::sender::{Receiver, Sender};
use crate::ways::Ways;
use subak_core::backend::FlowView;
use subak_core::scheme::{Clock, Loss, LossKind, Packet, RouteId, Scheme};
use subak_core::{FlowId, Ns, SubflowId};

pub(crate) const PS: u64 = 1000;
/// Largest time between two paced packets, ps: more than ten days.
const LONGEST_GAP_PS: f64 = 1e18;

subak_core::id! {
    /// Index of a subflow's state.
    pub(crate) struct SubId(u32);
}

impl SubId {
    /// Index of the flow's subflow `number`; `self` is the index of its first subflow.
    #[inline]
    pub fn plus(self, number: SubflowId) -> SubId {
        SubId(self.0 + u32::from(number.0))
    }
}

pub(crate) struct FlowState<S: Scheme> {
    pub source: S::Source,
    pub sink: S::Sink,
    /// The flow's subflows have the indices `first_sub..first_sub + subflows`.
    pub first_sub: SubId,
    pub subflows: u8,
    pub size_bytes: Option<u64>,
    /// Payload not yet assigned to a subflow, bytes.
    pub unsent_bytes: u64,
    pub acked_bytes: u64,
    /// Maximum rate of each subflow, bit/s: the flow's demand divided by its number of subflows.
    pub demand_bps: f64,
    /// Whether the flow has neither finished nor been stopped.
    pub open: bool,
    /// Whether `on_start` of the flow's source was called, in the logical process (LP) of the source.
    pub began: bool,
    /// Whether `on_finish` of the flow's source was called.
    pub torn_down: bool,
    /// Number of the flow's packets in the network, pending events and timers. Only the sum over logical processes
    /// (LPs) is meaningful: a packet may be counted in one LP and released in another.
    pub held: i32,
    pub view: FlowView,
}

impl<S: Scheme> FlowState<S> {
    /// Indices of the flow's subflows.
    pub fn subs(&self) -> impl DoubleEndedIterator<Item = SubId> + use<S> {
        (self.first_sub.0..self.first_sub.0 + u32::from(self.subflows)).map(SubId)
    }

    /// Whether the flow has ended and has no packets or events left.
    pub fn is_over(&self) -> bool {
        self.held == 0 && self.torn_down && !self.open
    }
}

pub(crate) struct Subflow {
    pub flow: FlowId,
    pub number: SubflowId,
    /// Route of the subflow's path (`back`: of the reverse path).
    pub forward: RouteId,
    pub back: RouteId,
    /// Whether the reverse path consists of the reverse links of the path.
    pub symmetric: bool,
    /// Earlier paths, in order: messages in flight stay on the path on which they were sent.
    pub left: Vec<Path>,
    pub base_rtt_ns: Ns,
    /// Paths over which the subflow's packets are sprayed; `None`: all take `forward`.
    pub ways: Option<Box<Ways>>,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Whether the source has not set a pacing rate or window yet: nothing is sent before.
    pub held: bool,
    pub rate_bps: Option<f64>,
    pub window_bytes: u64,
    /// Time at which pacing allows the next packet, ps.
    pub pace_ps: u64,
    pub last_sent_ps: u64,
    pub last_bytes: u32,
    /// Time of the earliest pending pacing event, ns.
    pub pace_event_ns: Option<Ns>,
    pub timeout_pending: bool,
    /// Whether a packet of the subflow is queued at the NIC, under per-flow round robin ([`subak_core::Nic`]).
    pub at_nic: bool,
    /// Whether the subflow is in the list of a NIC with a single timer.
    pub listed: bool,
    /// Whether the subflow's latest packet left the NIC later than pacing allowed.
    pub had_to_wait: bool,
}

/// Routes of a path and of the reverse path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub forward: RouteId,
    pub back: RouteId,
    pub symmetric: bool,
}

impl Subflow {
    /// Number of reroutes of the subflow so far.
    pub fn turn(&self) -> u32 {
        self.left.len() as u32
    }

    /// Path on which messages were sent after `turn` reroutes.
    pub fn path(&self, turn: u32) -> Path {
        let now = Path { forward: self.forward, back: self.back, symmetric: self.symmetric };
        self.left.get(turn as usize).copied().unwrap_or(now)
    }

    /// Time at which pacing allows the next packet, ns.
    #[inline]
    pub fn pace_ns(&self) -> Ns {
        self.pace_ps.div_ceil(PS)
    }

    /// Route for a data packet that is sent at `now_ns`.
    #[inline]
    pub fn way(&mut self, now_ns: Ns) -> RouteId {
        self.ways.as_mut().map_or(self.forward, |ways| ways.take(now_ns))
    }
}

/// A data packet without payload.
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

/// Sets the pacing rate and the window that the source requests; the rate is limited to `demand_bps`. `late`: the new
/// rate applies only after the next packet.
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
        // Without a pacing rate, packets are paced at the demand.
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

/// Advances pacing after a packet was sent at `now_ns`. If it was sent less than a nanosecond late, the next packet
/// is scheduled from the ideal time, so that rounding does not reduce the rate. If it waited for other subflows'
/// packets, up to one packet's time is made up.
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

/// Restarts pacing at `now_ns`: the last packet was delayed behind other subflows' packets.
pub(crate) fn pace_from(sub: &mut Subflow, now_ns: Ns) {
    let late_ps = (now_ns * PS).saturating_sub(sub.last_sent_ps);
    sub.last_sent_ps += late_ps;
    sub.pace_ps = sub.pace_ps.saturating_add(late_ps);
}
