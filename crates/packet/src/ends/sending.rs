//! Transmission by sources: new packets, retransmissions after RTOs, tail loss probes, pacing.

use super::flow::{FlowState, Subflow, blank, loss_of, remaining};
use super::{Ends, Next};
use crate::event::SubId;
use subak_core::backend::PacketSizes;
use subak_core::scheme::{Io, LossKind, Packet, Scheme, Source};
use subak_core::{FlowId, Ns, SubflowId};

/// Bytes in flight from which on a subflow counts as unbounded.
const FLOOD_BYTES: u64 = 1 << 30;

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
    /// The same, with more in flight than any network carries.
    Flood(Next),
}

/// State of a subflow's RTO and tail loss probe: see [`Ends::silence`].
pub(crate) enum Silence {
    /// Nothing is in flight, or nothing is lost.
    Nothing,
    /// The next check is due at this time, ns.
    NotBefore(Ns),
    /// The tail loss probe is to be sent.
    Probe(Next),
    /// The RTO has expired: the source was told.
    Lost(FlowId),
}

impl<S: Scheme> Ends<S> {
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
        match due_ns > now_ns {
            true => NextSend::At(due_ns),
            false if in_flight > FLOOD_BYTES => NextSend::Flood(next),
            false => NextSend::Now(next),
        }
    }

    /// Writes the packet of transmission `next`, which is sent now, to `packet`.
    #[inline]
    pub fn write(&mut self, at: SubId, next: Next, now_ns: Ns, packet: &mut Packet<S>) {
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
        stamp(f, sub, next, self.sizes, now_ns, packet);
    }

    /// Writes the packet of a tail loss probe, which is sent now, to `packet`.
    pub fn write_probe(&mut self, at: SubId, next: Next, now_ns: Ns, packet: &mut Packet<S>) {
        let sub = &mut self.subs[at];
        let f = &mut self.flows[sub.flow];
        f.view.retransmissions += 1;
        stamp(f, sub, next, self.sizes, now_ns, packet);
    }

    /// Time of the next check for silence, ns, if something is in flight and no check is pending, or a later one.
    #[inline]
    pub fn unwatched(&self, at: SubId) -> Option<Ns> {
        let sub = &self.subs[at];
        sub.sender.timeout_ns().filter(|due_ns| *due_ns < sub.check_ns)
    }

    /// Notes that a check for silence is pending at `due_ns`; an earlier call has no effect any more. Returns the flow.
    pub fn await_silence(&mut self, at: SubId, due_ns: Ns) -> FlowId {
        let sub = &mut self.subs[at];
        sub.check_ns = due_ns;
        self.flows.hold(sub.flow);
        sub.flow
    }

    /// Notes that a check for silence is due now. Returns the flow, and whether the check is made: not if another time was
    /// set later.
    pub fn checks_silence(&mut self, at: SubId, now_ns: Ns) -> (FlowId, bool) {
        let sub = &mut self.subs[at];
        let is_made = sub.check_ns == now_ns;
        if is_made {
            sub.check_ns = Ns::MAX;
        }
        (sub.flow, is_made)
    }

    /// Checks for an expired RTO or a due tail loss probe.
    pub fn silence(&mut self, at: SubId, now_ns: Ns, io: &mut Io<S>) -> Silence {
        let sub = &mut self.subs[at];
        let Some(timeout_ns) = sub.sender.timeout_ns() else { return Silence::Nothing };
        if timeout_ns > now_ns {
            return Silence::NotBefore(timeout_ns);
        }
        if let Some(next) = sub.sender.probe(now_ns) {
            return Silence::Probe(next);
        }
        let Some(segment) = sub.sender.on_timeout(now_ns) else { return Silence::Nothing };
        self.flows[sub.flow].source.on_loss(io, &loss_of(sub, LossKind::Timeout, segment));
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
}

/// Writes a packet of the subflow with transmission `next` to `packet`, and lets the flow's source stamp it there: a
/// copy of a large header would cost more than the rest.
#[inline]
fn stamp<S: Scheme>(
    f: &mut FlowState<S>,
    sub: &mut Subflow,
    next: Next,
    sizes: PacketSizes,
    now_ns: Ns,
    packet: &mut Packet<S>,
) {
    *packet = Packet {
        bytes: next.payload_bytes + sizes.header_bytes,
        ..blank(sub.flow, sub.number, sub.way(now_ns), now_ns).carrying(next.segment, next.payload_bytes)
    };
    let remaining = remaining(f);
    f.source.stamp(now_ns, packet, remaining);
}
