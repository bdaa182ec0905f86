//! What a sender sends: as much as window and pace allow.

use crate::event::Event;
use crate::flow::{FlowState, PS, SubId, Subflow, advance_pace, blank, may_go, remaining};
use crate::sim::Sim;
use subak_core::scheme::{Scheme, Source};
use subak_core::{FlowId, SubflowId};

impl<S: Scheme> Sim<S> {
    #[inline]
    pub(crate) fn sub_of(&self, flow: FlowId, subflow: SubflowId) -> SubId {
        self.flows[flow].first_sub.plus(subflow)
    }

    pub(crate) fn on_pace(&mut self, at: SubId) {
        let sub = &mut self.subs[at];
        let flow = sub.flow;
        if sub.pace_event_ns == Some(self.now_ns) {
            sub.pace_event_ns = None;
        }
        self.send(at);
        self.flows.release(flow);
    }

    pub(crate) fn send_all(&mut self, flow: FlowId) {
        for at in self.flows[flow].subs() {
            self.send(at);
        }
    }

    /// Sends what window and pace allow now.
    pub(crate) fn send(&mut self, at: SubId) {
        loop {
            let sub = &mut self.subs[at];
            let f = &mut self.flows[sub.flow];
            let rate_bps = sub.rate_bps.unwrap_or(f64::INFINITY).min(f.demand_bps);
            if sub.held || rate_bps.is_nan() || rate_bps <= 0.0 || sub.at_nic {
                return;
            }
            let fresh = f.unsent_bytes.min(u64::from(self.set.sizes.mss_bytes())) as u32;
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
    }

    /// A flow's rate on the wire as its source has it now.
    pub(crate) fn assigned_bps(&self, f: &FlowState<S>) -> f64 {
        if !f.open {
            return 0.0;
        }
        let wire = f64::from(self.set.sizes.mtu_bytes) / f64::from(self.set.sizes.mss_bytes());
        let one = |sub: &Subflow| match sub.rate_bps {
            _ if sub.held => 0.0,
            Some(rate_bps) => rate_bps,
            None => sub.window_bytes as f64 * 8e9 / sub.base_rtt_ns as f64 * wire,
        };
        f.subs().map(|at| one(&self.subs[at]).min(f.demand_bps)).sum()
    }
}
