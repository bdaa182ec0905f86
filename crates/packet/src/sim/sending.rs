//! Transmission by sources: new packets, retransmissions after RTOs, and tail loss probes.

use super::Sim;
use crate::ends::{Next, NextSend, Silence};
use crate::event::{Actor, Event, SubId};
use subak_core::scheme::{Refused, Requester, Scheme};
use subak_core::{FlowId, Ns};

impl<S: Scheme> Sim<S> {
    pub(super) fn send_all(&mut self, flow: FlowId) {
        for at in self.ends.flow(flow).subs() {
            self.send(at);
        }
    }

    /// Sends the packets that window and pacing rate allow now.
    pub(super) fn send_allowed(&mut self, at: SubId) {
        loop {
            match self.ends.next(at, self.net.now_ns()) {
                NextSend::Now(next) => self.put_out(at, next),
                NextSend::Flood(_) if self.stops_flood(at) => return,
                NextSend::Flood(next) => self.put_out(at, next),
                NextSend::At(due_ns) => {
                    if self.ends.await_pace(at, due_ns) {
                        self.await_pace(at, due_ns);
                    }
                    return;
                }
                NextSend::Full(_) | NextSend::Nothing => return,
            }
        }
    }

    /// Reports a flow without bounds to the scheme; returns whether the scheme has failed by that.
    #[cold]
    fn stops_flood(&self, at: SubId) -> bool {
        self.scheme.on_refused(Requester::Flow(self.ends.sub(at).flow), Refused::Unbounded, self.net.now_ns());
        self.scheme.fault().is_some()
    }

    /// Sends packet `next` now.
    #[inline]
    pub(super) fn put_out(&mut self, at: SubId, next: Next) {
        let now_ns = self.net.now_ns();
        let id = self.net.create(|packet| self.ends.write(at, next, now_ns, packet));
        if let Some(due_ns) = self.ends.unwatched(at) {
            self.await_silence(at, due_ns);
        }
        self.sends_packet(at);
        self.launch(id);
    }

    pub(super) fn on_timeout(&mut self, at: SubId) {
        let (flow, is_made) = self.ends.checks_silence(at, self.net.now_ns());
        if is_made {
            self.look_for_silence(at);
        }
        self.ends.release(flow);
    }

    /// Schedules the event at `due_ns` that checks for an expired RTO or a due tail loss probe.
    pub(super) fn await_silence(&mut self, at: SubId, due_ns: Ns) {
        let due_ns = due_ns.max(self.net.now_ns());
        let flow = self.ends.await_silence(at, due_ns);
        self.net.schedule(due_ns, Event::Timeout(flow, at));
    }

    fn look_for_silence(&mut self, at: SubId) {
        match self.ends.silence(at, self.net.now_ns(), &mut self.io) {
            Silence::Nothing => {}
            Silence::NotBefore(due_ns) => self.await_silence(at, due_ns),
            // The probe disregards window and pacing: it is at most one packet in two RTTs.
            Silence::Probe(next) => {
                let now_ns = self.net.now_ns();
                let id = self.net.create(|packet| self.ends.write_probe(at, next, now_ns, packet));
                if let Some(due_ns) = self.ends.unwatched(at) {
                    self.await_silence(at, due_ns);
                }
                self.launch(id);
            }
            Silence::Lost(flow) => {
                self.carry_out(Actor::Source(flow));
                self.send(at);
                if let Some(due_ns) = self.ends.unwatched(at) {
                    self.await_silence(at, due_ns);
                }
            }
        }
    }
}
