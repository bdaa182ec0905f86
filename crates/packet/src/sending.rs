//! Transmission by sources, limited by congestion window and pacing rate.

use crate::event::Event;
use crate::flow::{FlowState, SubId, Subflow, advance_pace, blank, remaining};
use crate::sender::Next;
use crate::sim::Sim;
use subak_core::scheme::{Scheme, Source};
use subak_core::{FlowId, Ns, SubflowId};

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

impl<S: Scheme> Sim<S> {
    #[inline]
    pub(crate) fn sub_of(&self, flow: FlowId, subflow: SubflowId) -> SubId {
        self.flows[flow].first_sub.plus(subflow)
    }

    pub(crate) fn on_pace(&mut self, flow: FlowId, at: SubId) {
        if self.set.pacing.one_timer {
            self.on_timer(at);
            return self.flows.release(flow);
        }
        // Without state, the flow is over, and its subflow indices may be reused.
        let Some(f) = self.flows.get(flow) else { return };
        let sub = &mut self.subs[at];
        if f.torn_down && !f.open && sub.sender.in_flight_bytes() == 0 {
            return;
        }
        if sub.pace_event_ns == Some(self.now_ns) {
            sub.pace_event_ns = None;
        }
        self.send(at);
    }

    pub(crate) fn send_all(&mut self, flow: FlowId) {
        for at in self.flows[flow].subs() {
            self.send(at);
        }
    }

    /// Sends the packets that window and pacing rate allow now.
    pub(crate) fn send(&mut self, at: SubId) {
        if self.set.pacing.one_timer {
            return self.wake_nic(at);
        }
        loop {
            match self.next(at) {
                NextSend::Now(next) => self.put_out(at, next),
                NextSend::At(due_ns) => {
                    let sub = &mut self.subs[at];
                    if sub.pace_event_ns.is_none_or(|pending| pending > due_ns) {
                        sub.pace_event_ns = Some(due_ns);
                        self.await_pace(at, due_ns);
                    }
                    return;
                }
                NextSend::Full(_) | NextSend::Nothing => return,
            }
        }
    }

    /// Schedules an event at `due_ns`, when the subflow's pacing allows a packet.
    pub(crate) fn await_pace(&mut self, at: SubId, due_ns: Ns) {
        let flow = self.subs[at].flow;
        // With a single NIC timer, the event must find the subflow. Otherwise a pacing event does not keep a flow's
        // state: it may be days away.
        if self.set.pacing.one_timer {
            self.flows.hold(flow);
        }
        self.wheel.push(due_ns, Event::Pace(flow, at));
    }

    /// Determines the subflow's next transmission and its time.
    #[inline]
    pub(crate) fn next(&mut self, at: SubId) -> NextSend {
        let sub = &mut self.subs[at];
        let f = &self.flows[sub.flow];
        let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
        if sub.held || rate_bps.is_nan() || rate_bps <= 0.0 || sub.at_nic {
            return NextSend::Nothing;
        }
        let fresh = f.unsent_bytes.min(u64::from(self.set.sizes.mss_bytes())) as u32;
        let Some(next) = sub.sender.next(fresh) else { return NextSend::Nothing };
        let due_ns = if rate_bps.is_finite() { sub.pace_ns() } else { 0 };
        let in_flight = sub.sender.in_flight_bytes();
        if in_flight > 0 && in_flight + u64::from(next.payload_bytes) > sub.window_bytes {
            return NextSend::Full(due_ns);
        }
        if due_ns > self.now_ns { NextSend::At(due_ns) } else { NextSend::Now(next) }
    }

    /// Sends packet `next` now.
    #[inline]
    pub(crate) fn put_out(&mut self, at: SubId, next: Next) {
        let sub = &mut self.subs[at];
        let f = &mut self.flows[sub.flow];
        let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
        let bytes = next.payload_bytes + self.set.sizes.header_bytes;
        advance_pace(sub, self.now_ns, bytes, rate_bps, self.set.clock);
        sub.sender.sent(next, self.now_ns);
        if next.again {
            f.view.retransmissions += 1;
        } else {
            f.unsent_bytes -= u64::from(next.payload_bytes);
            f.view.sent_bytes += u64::from(next.payload_bytes);
        }
        let packet = blank(sub.flow, sub.number, sub.way(self.now_ns), self.now_ns);
        let mut packet = packet.carrying(next.segment, next.payload_bytes);
        packet.bytes = bytes;
        let remaining = remaining(f);
        f.source.stamp(self.now_ns, &mut packet, remaining);
        if !sub.timeout_pending {
            let due_ns = sub.sender.timeout_ns().expect("a segment was just sent");
            self.await_silence(at, due_ns);
        }
        self.subs[at].at_nic = self.set.takes_turns;
        self.launch(packet);
    }

    /// Rate of a flow on the wire as set by its source's pacing rates and windows, bit/s.
    pub(crate) fn assigned_bps(&self, f: &FlowState<S>) -> f64 {
        if !f.open {
            return 0.0;
        }
        let wire = f64::from(self.set.sizes.mtu_bytes) / f64::from(self.set.sizes.mss_bytes());
        let one = |sub: &Subflow| match sub.rate_bps {
            _ if sub.held => 0.0,
            Some(rate_bps) => rate_bps,
            // Without pacing: bytes in flight over the RTT, by Little's law.
            None => sub.window_bytes as f64 * 8e9 / sub.sender.rtt_ns().max(sub.base_rtt_ns) as f64 * wire,
        };
        f.subs().map(|at| one(&self.subs[at]).min(f.demand_bps)).sum()
    }
}
