//! RTOs, tail loss probes, and their retransmissions.

use crate::event::{Actor, Event};
use crate::flow::{SubId, blank, loss_of, remaining};
use crate::sender::Next;
use crate::sim::Sim;
use subak_core::Ns;
use subak_core::scheme::{LossKind, Scheme, Source};

impl<S: Scheme> Sim<S> {
    pub(crate) fn on_timeout(&mut self, at: SubId) {
        let flow = self.subs[at].flow;
        self.subs[at].timeout_pending = false;
        self.look_for_silence(at);
        self.flows.release(flow);
    }

    /// Schedules the event at `due_ns` that checks for an expired RTO or a due tail loss probe.
    pub(crate) fn await_silence(&mut self, at: SubId, due_ns: Ns) {
        let sub = &mut self.subs[at];
        sub.timeout_pending = true;
        self.flows.hold(sub.flow);
        self.wheel.push(due_ns.max(self.now_ns), Event::Timeout(sub.flow, at));
    }

    pub(crate) fn look_for_silence(&mut self, at: SubId) {
        let now_ns = self.now_ns;
        let sub = &mut self.subs[at];
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
        self.carry_out(Actor::Source(flow));
        self.send(at);
        let sub = &self.subs[at];
        if !sub.timeout_pending
            && let Some(due_ns) = sub.sender.timeout_ns()
        {
            self.await_silence(at, due_ns);
        }
    }

    /// Sends the tail loss probe, regardless of window and pacing: it is at most one packet in two RTTs.
    pub(crate) fn send_probe(&mut self, at: SubId, next: Next) {
        let sub = &mut self.subs[at];
        let f = &mut self.flows[sub.flow];
        f.view.retransmissions += 1;
        let packet = blank(sub.flow, sub.number, sub.way(self.now_ns), self.now_ns);
        let mut packet = packet.carrying(next.segment, next.payload_bytes);
        packet.bytes = next.payload_bytes + self.set.sizes.header_bytes;
        let remaining = remaining(f);
        f.source.stamp(self.now_ns, &mut packet, remaining);
        if let Some(due_ns) = sub.sender.timeout_ns() {
            self.await_silence(at, due_ns);
        }
        self.launch(packet);
    }
}
