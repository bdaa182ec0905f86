//! State of a flow and of a subflow.

use super::sender::{Receiver, Sender};
use super::ways::Ways;
use crate::event::SubId;
use subak_core::backend::FlowView;
use subak_core::scheme::{Loss, LossKind, Packet, RouteId, Scheme};
use subak_core::{FlowId, LinkId, Ns, SubflowId};

/// Picoseconds per nanosecond.
pub(super) const PS: u64 = 1000;

pub(crate) struct FlowState<S: Scheme> {
    pub source: S::Source,
    pub sink: S::Sink,
    /// The flow's subflows have the indices `first_sub..first_sub + subflows`.
    pub first_sub: SubId,
    pub subflows: u8,
    /// Index of the flow's scheme among those of the run.
    pub scheme: u8,
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
    /// First link of the subflow's path.
    pub nic: LinkId,
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
    /// Time of the pending check for silence, ns; [`Ns::MAX`] for none.
    pub check_ns: Ns,
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

pub(super) fn remaining<S: Scheme>(f: &FlowState<S>) -> u64 {
    f.size_bytes.map_or(u64::MAX, |size| size - f.acked_bytes)
}

pub(super) fn loss_of(sub: &Subflow, kind: LossKind, segment: u32) -> Loss {
    Loss {
        subflow: sub.number,
        kind,
        segment,
        next_segment: sub.sender.next_segment(),
        in_flight_bytes: sub.sender.in_flight_bytes(),
    }
}
