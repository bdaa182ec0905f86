//! NICs: what the three [kinds](NicKind) of NICs do when a subflow may send, and when a link becomes free. No other
//! module asks for the kind.
//!
//! A NIC with a single timer works as in HPCC's released simulator. It has no packet queue. When it wakes and its link
//! is free, it selects in round robin order the next flow that may send. If no flow may send, the NIC sets its timer
//! to the earliest time at which one may. The timer is not changed if it is already set, or if that time is past.

use super::Sim;
use crate::ends::{NicKind, Selection};
use crate::event::{Event, SubId};
use subak_core::scheme::{Class, PacketId, Port, Scheme};
use subak_core::{FlowId, LinkId, NodeKind, Ns};

impl<S: Scheme> Sim<S> {
    /// Lets the NIC send packets of the subflow, as far as window and pacing rate allow.
    #[inline]
    pub(super) fn send(&mut self, at: SubId) {
        match self.ends.nic() {
            NicKind::Queue | NicKind::Turns => self.send_allowed(at),
            NicKind::OneTimer => {
                let link = self.ends.list(at);
                self.look(link);
            }
        }
    }

    /// Lets the NIC send packets after an ACK of the subflow. `all`: no bytes of the flow are left.
    #[inline]
    pub(super) fn send_after_ack(&mut self, at: SubId, all: bool) {
        // With a single timer, each ACK wakes the NIC, which serves all its flows.
        if !all || self.ends.nic() == NicKind::OneTimer {
            self.send(at);
        }
    }

    /// Handles an event that [`Sim::await_pace`] scheduled.
    pub(super) fn on_pace(&mut self, flow: FlowId, at: SubId) {
        let now_ns = self.net.now_ns();
        match self.ends.nic() {
            NicKind::Queue | NicKind::Turns => {
                if self.ends.on_pace(flow, at, now_ns) {
                    self.send_allowed(at);
                }
            }
            NicKind::OneTimer => {
                if let Some(link) = self.ends.expire(at, now_ns) {
                    self.look(link);
                }
                self.ends.release(flow);
            }
        }
    }

    /// Schedules an event at `due_ns`, when the subflow's pacing allows a packet.
    pub(super) fn await_pace(&mut self, at: SubId, due_ns: Ns) {
        let flow = self.ends.sub(at).flow;
        // With a single NIC timer, the event must find the subflow. Otherwise a pacing event does not keep a flow's
        // state: it may be days away.
        if self.ends.nic() == NicKind::OneTimer {
            self.ends.hold(flow);
        }
        self.net.schedule(due_ns, Event::Pace(flow, at));
    }

    /// Handles a change of the subflow's pacing rate.
    #[inline]
    pub(super) fn rate_is_set(&mut self, at: SubId) {
        if self.ends.nic() == NicKind::OneTimer
            && let Some(due_ns) = self.ends.advance_timer(at, self.net.now_ns())
        {
            self.await_pace(at, due_ns);
        }
    }

    /// Handles the transmission of a packet of the subflow.
    #[inline]
    pub(super) fn sends_packet(&mut self, at: SubId) {
        if self.ends.nic() == NicKind::Turns {
            self.ends.queue_at_nic(at);
        }
    }

    /// Subflow whose turn ends now that packet `id` leaves its queue; `None` if there is none.
    #[inline]
    pub(super) fn turn(&self, id: PacketId) -> Option<SubId> {
        match self.ends.nic() {
            NicKind::Turns => self.turn_of(id),
            NicKind::Queue | NicKind::OneTimer => None,
        }
    }

    #[cold]
    fn turn_of(&self, id: PacketId) -> Option<SubId> {
        self.net.at_source(id).map(|(flow, subflow)| self.ends.sub_of(flow, subflow))
    }

    /// Handles the departure of a packet from `link`, and with it the end of a subflow's turn.
    #[inline]
    pub(super) fn nic_is_free(&mut self, link: LinkId, turn: Option<SubId>) {
        if let Some(at) = turn {
            self.ends.leave_nic(at, self.net.now_ns());
            self.send(at);
            self.ends.served(at);
        }
        if self.ends.nic() == NicKind::OneTimer {
            self.look_once_free(link);
        }
    }

    /// Handles a link that is free, while its queue is empty.
    #[inline]
    pub(super) fn nic_has_nothing(&mut self, link: LinkId) {
        if self.ends.nic() == NicKind::OneTimer {
            self.look(link);
        }
    }

    /// Pauses or resumes a class of packets in the queue of `link`.
    pub(super) fn pause(&mut self, link: LinkId, class: Class, on: bool) {
        if self.net.pause(link, class, on) {
            self.nic_has_nothing(link);
        }
    }

    /// Allows the subflow of packet `id` to send again, if the packet was lost before it left its host.
    pub(super) fn free_nic(&mut self, id: PacketId) {
        let Some(at) = self.turn_of(id) else { return };
        // The packet's RTO may have expired while it was queued; then no other event would let the subflow send.
        if self.ends.lose_at_nic(at) && self.ends.nic() == NicKind::Turns {
            self.await_pace(at, self.net.now_ns());
        }
    }

    /// Turns fixed departures on, at links where nothing else happens at a departure.
    pub(super) fn fix_departures(&mut self) {
        // Under round robin, the departure of a subflow's packet from its host triggers the next one.
        let is_first = |port: &Port| port.from.is_none_or(|from| self.network.nodes()[from].kind == NodeKind::Host);
        match self.ends.nic() {
            NicKind::Queue => self.net.fix_departures(|_| false),
            NicKind::Turns => self.net.fix_departures(is_first),
            NicKind::OneTimer => {}
        }
    }

    /// Sends a packet of the next subflow in round robin order that may send, if the link is free.
    fn look(&mut self, link: LinkId) {
        if !self.ends.lists_any(link) {
            return;
        }
        let Some(nic) = self.net.nic_link(link) else { return };
        let now_ns = self.net.now_ns();
        if nic.free_ns > now_ns {
            return self.look_once_free(link);
        }
        match self.ends.select(link, nic.is_paused, now_ns) {
            Selection::Packet(at, next) => {
                self.put_out(at, next);
                self.look_once_free(link);
            }
            Selection::NotBefore(due_ns, at) => self.await_pace(at, due_ns),
            Selection::Nothing => {}
        }
    }

    /// Schedules the next selection at the time when the link is free.
    fn look_once_free(&mut self, link: LinkId) {
        if self.ends.lists_any(link) {
            self.net.wake_once_free(link);
        }
    }
}
