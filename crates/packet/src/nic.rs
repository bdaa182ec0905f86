//! NICs with a single timer, as in HPCC's released simulator. Such a NIC has no packet queue. When it wakes and its
//! link is free, it selects in round robin order the next flow that may send. If no flow may send, the NIC sets its
//! timer to the earliest time at which one may. The timer is not changed if it is already set, or if that time is
//! past.

use crate::event::Event;
use crate::flow::SubId;
use crate::sending::NextSend;
use crate::sim::Sim;
use subak_core::scheme::{Class, PacketId, Scheme};
use subak_core::{FlowId, LinkId};

impl<S: Scheme> Sim<S> {
    /// Wakes the NIC after an event of subflow `at`, such as an ACK.
    pub(crate) fn wake_nic(&mut self, at: SubId) {
        let sub = &mut self.subs[at];
        let link = self.routes.first(sub.forward);
        if !std::mem::replace(&mut sub.listed, true) {
            self.nics[link].subs.push((sub.flow, at));
        }
        self.look(link);
    }

    /// Handles an expiry of the NIC's timer, unless the timer has been set to another time.
    pub(crate) fn on_timer(&mut self, at: SubId) {
        let link = self.routes.first(self.subs[at].forward);
        if self.nics[link].timer_ns == Some(self.now_ns) {
            self.nics[link].timer_ns = None;
            self.look(link);
        }
    }

    /// Sends a packet of the next subflow in round robin order that may send, if the link is free.
    pub(crate) fn look(&mut self, link: LinkId) {
        let p = &self.ports[link];
        if self.nics[link].subs.is_empty() || p.wakes || p.held_down > 0 {
            return;
        }
        if p.serializer.free_ns() > self.now_ns {
            return self.look_once_free(link);
        }
        let paused = Class::DATA.into_iter().any(|class| p.gate.since_ns(class).is_some());
        let mut nic = std::mem::take(&mut self.nics[link]);
        nic.subs.retain(|&(flow, at)| self.is_at_nic(flow, at, link));
        let (mut first, mut found) = (None, None);
        for k in 1..=nic.subs.len() {
            let place = (nic.last + k) % nic.subs.len();
            let (_, at) = nic.subs[place];
            let due_ns = match self.next(at) {
                NextSend::Nothing => continue,
                NextSend::Now(next) if !paused => {
                    nic.last = place;
                    found = Some((at, next));
                    break;
                }
                NextSend::Now(_) => self.now_ns,
                NextSend::Full(due_ns) | NextSend::At(due_ns) => due_ns,
            };
            if first.is_none_or(|(first_ns, _)| due_ns < first_ns) {
                first = Some((due_ns, at));
            }
        }
        if found.is_none()
            && let Some((due_ns, at)) = first.filter(|&(due_ns, _)| due_ns > self.now_ns)
            && nic.timer_ns.is_none_or(|ns| ns < self.now_ns)
        {
            nic.timer_ns = Some(due_ns);
            self.await_pace(at, due_ns);
        }
        self.nics[link] = nic;
        if let Some((at, next)) = found {
            self.put_out(at, next);
            self.look_once_free(link);
        }
    }

    /// Schedules the next selection at the time when the link is free.
    pub(crate) fn look_once_free(&mut self, link: LinkId) {
        let p = &mut self.ports[link];
        if !self.nics[link].subs.is_empty() && !p.wakes {
            p.wakes = true;
            self.wheel.push(p.serializer.free_ns().max(self.now_ns + 1), Event::Wake(link, PacketId(0)));
        }
    }

    /// Sets the timer to an earlier time, if a higher pacing rate of subflow `at` allows its next packet before the
    /// timer expires.
    pub(crate) fn set_timer_forward(&mut self, at: SubId) {
        let sub = &self.subs[at];
        if self.set.pacing.late_rates || sub.last_bytes == 0 {
            return;
        }
        let due_ns = sub.pace_ns().max(self.now_ns);
        let timer_ns = &mut self.nics[self.routes.first(sub.forward)].timer_ns;
        if timer_ns.is_some_and(|ns| ns > due_ns) {
            *timer_ns = Some(due_ns);
            self.await_pace(at, due_ns);
        }
    }

    /// Whether the flow is active and its subflow `at` sends over `link`.
    fn is_at_nic(&self, flow: FlowId, at: SubId, link: LinkId) -> bool {
        let lasts = self.flows.get(flow).is_some_and(|f| !f.torn_down || f.size_bytes != Some(f.acked_bytes));
        lasts && self.subs[at].listed && self.routes.first(self.subs[at].forward) == link
    }
}
