//! The simulation: the event loop, and the connection of its parts. The [network](crate::net) stores packets in queues
//! and on links, the [ends](crate::ends) store flows, and neither knows the other: this module and its submodules
//! carry out at one what the other reports. Machines of nodes and the controller act on both.

mod admission;
mod backend;
mod delivery;
mod effects;
mod losses;
mod machines;
mod nic;
mod nodes;
mod sending;
mod setup;

use crate::ends::Ends;
use crate::event::{Actor, Event};
use crate::net::{Arrival, Fate, Handled, LogicalProcess, LpMessage, Net, Popped, Pushed};
use nodes::Machines;
use subak_core::backend::{LinkChange, PacketSizes};
use subak_core::scheme::Hop;
use subak_core::scheme::{Effect, Io, PacketId, Scheme, Sink, Source};
use subak_core::{FlowId, LinkId, Network, Ns};

/// A simulation of one scheme on one network.
pub struct Sim<S: Scheme> {
    scheme: S,
    set: SimSetup,
    net: Net<S>,
    ends: Ends<S>,
    machines: Machines<S>,
    io: Io<S>,
    scratch: Vec<Effect<S>>,
    /// Number of messages without delay that are being delivered, each sent in answer to the one before.
    depth: u32,
    network: Network,
}

/// Constants of a run.
struct SimSetup {
    sizes: PacketSizes,
    seed: u64,
    /// Largest base RTT of the network, ns.
    rtt_ns: Ns,
    /// Largest line rate, bit/s.
    line_rate_bps: f64,
}

impl<S: Scheme> Sim<S> {
    /// Handles events up to `until_ns`.
    pub(crate) fn run(&mut self, until_ns: Ns) {
        while self.next_event(until_ns) {}
        self.come_to(until_ns);
    }

    /// Handles events up to `until_ns`, or until `done` returns true.
    fn run_unless(&mut self, until_ns: Ns, done: fn(&Self) -> bool) {
        while !done(self) {
            if !self.step(until_ns) {
                return self.come_to(until_ns);
            }
        }
    }

    /// Advances the time to `until_ns`; all events up to then must have been handled.
    pub(crate) fn come_to(&mut self, until_ns: Ns) {
        self.net.come_to(until_ns);
        self.io.now_ns = self.net.now_ns();
    }

    /// Sets the time, and the position in the order of events.
    pub(crate) fn stop_at(&mut self, at_ns: Ns, handled: Handled) {
        self.net.stop_at(at_ns, handled);
        self.io.now_ns = at_ns;
    }

    /// Handles the next event, if one is due by `until_ns`; returns whether there was one.
    #[inline(never)]
    pub(crate) fn step(&mut self, until_ns: Ns) -> bool {
        self.next_event(until_ns)
    }

    /// The network.
    pub(crate) fn net(&self) -> &Net<S> {
        &self.net
    }

    /// The ends of flows.
    pub(crate) fn ends(&self) -> &Ends<S> {
        &self.ends
    }

    /// The ends of flows, to remove their states.
    pub(crate) fn ends_mut(&mut self) -> &mut Ends<S> {
        &mut self.ends
    }

    /// Whether any node has a state machine.
    pub(crate) fn has_nodes(&self) -> bool {
        self.machines.has_nodes
    }

    /// The logical process (LP) that this simulation runs; `None` in a sequential run.
    pub(crate) fn part(&mut self) -> Option<&mut LogicalProcess<S>> {
        self.net.part()
    }

    /// Schedules a message that another logical process posted.
    pub(crate) fn take_in(&mut self, message: LpMessage<S>) {
        if let Some(flow) = self.net.take_in(message) {
            self.ends.hear_finished(flow);
        }
    }

    #[inline(always)]
    fn next_event(&mut self, until_ns: Ns) -> bool {
        let Some(event) = self.net.next_event(until_ns) else { return false };
        self.io.now_ns = self.net.now_ns();
        // Nearly all events are arrivals of packets and wakes of links.
        if let Some(packet) = event.arrival() {
            self.arrive(packet);
        } else if let Some(link) = event.wake() {
            self.wake(link);
        } else {
            self.handle(event.event());
        }
        true
    }

    #[inline(never)]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(packet, ..) => self.arrive(packet),
            Event::Wake(link, ..) => self.wake(link),
            Event::Pace(flow, sub) => self.on_pace(flow, sub),
            Event::Timeout(_, sub) => self.on_timeout(sub),
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => {
                self.net.heard_everywhere();
                self.stop(flow);
            }
            Event::SourceTimer(flow, timer) => {
                self.ends.source(flow).on_timer(&mut self.io, timer);
                self.carry_out(Actor::Source(flow));
                self.send_all(flow);
                self.ends.release(flow);
            }
            Event::SinkTimer(flow, timer) => {
                self.ends.sink(flow).on_timer(&mut self.io, timer);
                self.carry_out(Actor::Sink(flow));
                self.ends.release(flow);
            }
            Event::HopTimer(link, timer, life) => {
                if self.net.on_hop_timer(link, life, |hop, port| hop.on_timer(&mut self.io, timer, port)) {
                    self.carry_out(Actor::Hop(link));
                }
            }
            Event::NodeTimer(node, timer, life) => self.on_node_timer(node, timer, life),
            Event::ControllerTimer(timer, life) => self.on_controller_timer(timer, life),
            Event::ControlFrame(frame, link, _) => self.on_control(frame, link),
            Event::Restart(k) => self.restart(self.machines.restarts[k]),
            Event::LinkNews(k) => {
                let (link, change) = self.net.link_change(k);
                self.tell_controller(link, change);
            }
            Event::LinkChange(k) => {
                self.net.heard_everywhere();
                let (link, change) = self.net.link_change(k);
                self.change(link, change);
                self.send_news(link, k);
            }
        }
    }

    /// Changes a link now, outside of the scheduled faults.
    pub(crate) fn change_now(&mut self, link: LinkId, change: LinkChange) {
        let k = self.net.add_change(link, change);
        self.change(link, change);
        self.send_news(link, k);
    }

    fn change(&mut self, link: LinkId, change: LinkChange) {
        if self.net.change(link, change) {
            self.lose_waiting(link);
        }
        if change == LinkChange::Up && self.net.is_up(link) {
            self.count_anew();
        }
    }

    /// Sends the packet along its route from the first link.
    #[inline]
    fn launch(&mut self, id: PacketId) {
        self.ends.hold(self.net.packet(id).flow);
        self.enqueue(self.net.first_link(id), id, None);
    }

    /// Handles the arrival of a packet at the queue of `link`. `came_by`: link by which the packet arrived; `None` at
    /// its source.
    fn enqueue(&mut self, link: LinkId, id: PacketId, came_by: Option<LinkId>) {
        if self.net.loses_all(link) {
            self.free_nic(id);
            return self.account_loss(link, id);
        }
        self.io.came_by = came_by;
        if self.machines.has_nodes && !self.admits(link, id) {
            return self.account_drop(link, id);
        }
        if let Some(came_by) = came_by
            && !self.net.has_room(came_by, id)
        {
            return self.account_drop(link, id);
        }
        self.net.enter(link, id, &mut self.io);
        if self.io.has_effects() {
            self.carry_out(Actor::Hop(link));
        }
        match self.net.push(link, id) {
            Pushed::Queued => {}
            Pushed::Fixed => return,
            Pushed::Full => return self.account_drop(link, id),
        }
        if self.net.has_dropped() {
            self.account_drops(link);
        }
        if self.net.is_ready(link, id) {
            self.serve(link);
        }
    }

    fn wake(&mut self, link: LinkId) {
        if self.net.wake(link) {
            self.serve(link);
        }
    }

    /// Starts transmission of the next packet in the queue of `link`, which is free.
    #[inline]
    fn serve(&mut self, link: LinkId) {
        match self.net.pop(link, &mut self.io) {
            Popped::Packet(leaving) => {
                let id = leaving.id;
                let turn = self.turn(id);
                if self.machines.has_nodes {
                    // The hop's requests are its own, and not the node's.
                    if self.io.has_effects() {
                        self.carry_out(Actor::Hop(link));
                    }
                    self.tell_leaving(link, id);
                }
                match self.net.depart(link, leaving) {
                    Fate::Travels => {}
                    Fate::Doubled(flow) => self.ends.hold(flow),
                    Fate::Lost => self.account_loss(link, id),
                }
                if self.io.has_effects() {
                    self.carry_out(Actor::Hop(link));
                }
                self.nic_is_free(link, turn);
            }
            Popped::Empty => self.nic_has_nothing(link),
            Popped::Later => {}
        }
        if self.net.has_dropped() {
            self.account_drops(link);
        }
    }

    /// Handles a packet's arrival at the far end of its link.
    #[inline]
    fn arrive(&mut self, id: PacketId) {
        let Arrival { link, next, is_ctl, is_lost } = self.net.arrive(id);
        if is_lost {
            return self.account_loss(link, id);
        }
        if is_ctl {
            self.visit_back(link, id);
        }
        match next {
            Some(next) => self.enqueue(next, id, Some(link)),
            None => {
                self.net.delivered(link, id);
                self.deliver(id);
            }
        }
    }

    /// Whether the flow's source is in this logical process.
    pub(crate) fn has_source(&self, flow: FlowId) -> bool {
        let Some(f) = self.ends.get(flow) else { return false };
        self.net.begins_here(self.ends.sub(f.first_sub).nic)
    }

    /// Whether the flow's sink is in this logical process.
    pub(crate) fn has_sink(&self, flow: FlowId) -> bool {
        let Some(f) = self.ends.get(flow) else { return false };
        self.net.routes().of(self.ends.sub(f.first_sub).forward).last().is_some_and(|&last| self.net.ends_here(last))
    }
}
