//! State machines of nodes and of the controller; control frames, pauses, and restarts of state machines.

use crate::event::{Actor, Event};
use crate::nodes::ControlFrameId;
use crate::pfc::ControlFrame;
use crate::sim::Sim;
use std::collections::BTreeSet;
use subak_core::backend::{Machine, Route};
use subak_core::rng::mix;
use subak_core::scheme::{Class, ControllerPlace, Hop, Io, NodeInfo, NodeMachine, PacketId, Port, Queue, Scheme};
use subak_core::{IdVec, LinkId, NodeId, NodeKind, Ns};

impl<S: Scheme> Sim<S> {
    pub(crate) fn make_nodes(&mut self) {
        let nodes = self.network.nodes().iter_enumerated();
        let mut infos: IdVec<NodeId, NodeInfo> = nodes
            .map(|(node, named)| NodeInfo {
                node,
                is_host: named.kind == NodeKind::Host,
                out: self.network.out_links(node).to_vec(),
                into: Vec::new(),
                seed: mix(self.set.seed ^ mix(u64::from(node.0) | 1 << 40)),
            })
            .collect();
        for (l, link) in self.network.links().iter_enumerated() {
            if let Some(to) = link.to {
                infos[to].into.push(l);
            }
        }
        self.machines.nodes = infos.iter().map(|info| self.scheme.node(info)).collect();
        self.machines.has_nodes = self.machines.nodes.iter().any(Option::is_some);
        self.machines.node_infos = infos;
        for node in self.machines.nodes.ids() {
            self.at_node(node, |machine, io| machine.on_start(io));
        }
    }

    pub(crate) fn start_controller(&mut self) {
        self.machines.controller = self.scheme.controller(&self.network);
        if let Some(controller) = &mut self.machines.controller {
            controller.on_start(&mut self.io);
            if let Some(place) = &self.machines.place {
                controller.on_place(&mut self.io, place);
            }
            self.carry_out(Actor::Controller);
        }
    }

    /// Sets the paths between nodes and the controller, and notifies the state machines where the controller is.
    pub(crate) fn place_at(&mut self, ways: &[(NodeId, Route)]) {
        self.reach_by(ways);
        let bps = |links: BTreeSet<LinkId>| links.iter().map(|&l| self.ports[l].port.capacity_bps).sum();
        self.machines.place = Some(ControllerPlace {
            host: ways.iter().find(|(_, way)| way.forward.is_empty()).map(|&(node, _)| node),
            hosts: ways.len(),
            into_bps: bps(ways.iter().filter_map(|(_, way)| way.forward.last().copied()).collect()),
            out_bps: bps(ways.iter().filter_map(|(_, way)| way.back.first().copied()).collect()),
        });
        if let (Some(controller), Some(place)) = (&mut self.machines.controller, &self.machines.place) {
            controller.on_place(&mut self.io, place);
            self.carry_out(Actor::Controller);
        }
        for (node, _) in ways {
            self.tell_place(*node);
        }
    }

    /// Handles a change of routes: sets new paths between the nodes in `ways` and the controller.
    pub(crate) fn hear_of_routes(&mut self, ways: &[(NodeId, Route)]) {
        self.reach_by(ways);
        self.count_anew();
    }

    /// Lets links reset their flow counts, for a scheme that does not recover from failures by itself: see
    /// [`Hop::on_topology`]. All links are notified at the same time, when routes change.
    pub(crate) fn count_anew(&mut self) {
        if self.scheme.rules().recovers {
            return;
        }
        for p in self.ports.iter_mut().filter(|p| p.begins_here) {
            p.refresh(&self.handled);
            p.hop.on_topology(&p.port);
        }
    }

    fn reach_by(&mut self, ways: &[(NodeId, Route)]) {
        for (node, way) in ways {
            self.machines.ways[*node] = Some((self.routes.add(&way.forward), self.routes.add(&way.back)));
        }
    }

    fn tell_place(&mut self, node: NodeId) {
        if let Some(place) = self.machines.place {
            self.at_node(node, |machine, io| machine.on_controller(io, &place));
        }
    }

    /// Calls `act` with the state machine of `node`, if it has one, and executes the requested effects.
    pub(crate) fn at_node(&mut self, node: NodeId, act: impl FnOnce(&mut dyn NodeMachine<S>, &mut Io<S>)) {
        if let Some(Some(machine)) = self.machines.nodes.get_mut(node) {
            act(machine.as_mut(), &mut self.io);
            self.carry_out(Actor::Node(node));
        }
    }

    /// Delay of a notification about `link` from the link's end nearer to the controller, ns.
    pub(crate) fn news_delay_ns(&self, link: LinkId) -> Ns {
        let Port { from, to, .. } = self.ports[link].port;
        let way = |node: NodeId| self.machines.ways[node].map(|(out, _)| self.routes.of(out));
        let delay = |links: &[LinkId]| links.iter().map(|&l| self.ports[l].port.delay_ns).sum::<Ns>();
        [from, to].into_iter().flatten().filter_map(way).map(delay).min().unwrap_or(0)
    }

    pub(crate) fn restart(&mut self, machine: Machine) {
        match machine {
            Machine::Controller => {
                self.machines.controller_life = self.machines.controller_life.wrapping_add(1);
                self.start_controller();
            }
            // At a node without a state machine, the restart clears the state of its links.
            Machine::Node(node) if self.machines.nodes.get(node).is_none_or(Option::is_none) => {
                let links = self.network.out_links(node).to_vec();
                links.into_iter().for_each(|link| self.restart(Machine::Hop(link)));
            }
            Machine::Node(node) => {
                self.machines.node_lives[node] = self.machines.node_lives[node].wrapping_add(1);
                self.machines.nodes[node] = self.scheme.node(&self.machines.node_infos[node]);
                self.at_node(node, |machine, io| machine.on_start(io));
                self.tell_place(node);
            }
            Machine::Hop(link) => {
                let p = &mut self.ports[link];
                p.life = p.life.wrapping_add(1);
                p.hop = self.scheme.hop(&p.port);
                p.hop.on_start(&mut self.io);
                self.carry_out(Actor::Hop(link));
            }
        }
    }

    /// Number of restarts of a state machine. Timers set before the latest restart are ignored.
    pub(crate) fn life(&self, who: Actor) -> u8 {
        match who {
            Actor::Hop(link) => self.ports[link].life,
            Actor::Node(node) => self.machines.node_lives[node],
            _ => self.machines.controller_life,
        }
    }

    /// Sends a control frame to the upstream end of `link`: over its reverse link, ahead of the queue there.
    pub(crate) fn send_control(&mut self, link: LinkId, frame: ControlFrame<S::Ctl>, bytes: u32) {
        let (arrives_ns, turn) = match self.ports[link].reverse_link {
            Some(reverse_link) => {
                let p = &mut self.ports[reverse_link];
                debug_assert!(p.departures.is_none(), "a machine that writes to neighbours minds departures");
                if p.held_down > 0 {
                    return;
                }
                (p.transmit_control(self.now_ns, bytes) + p.port.delay_ns, p.turn)
            }
            None => (self.now_ns + self.ports[link].port.delay_ns, 0),
        };
        if self.ports[link].begins_here {
            self.expect_control(frame, link, arrives_ns, turn);
        } else {
            self.post_control(frame, link, arrives_ns, turn);
        }
    }

    /// Schedules the arrival of the control frame at the upstream end of `link`.
    pub(crate) fn expect_control(&mut self, frame: ControlFrame<S::Ctl>, link: LinkId, arrives_ns: Ns, turn: u8) {
        let place = self.machines.free_frames.pop().unwrap_or_else(|| self.machines.frames.push(None));
        self.machines.frames[place] = Some(frame);
        self.wheel.push(arrives_ns, Event::ControlFrame(place, link, turn));
    }

    pub(crate) fn on_control(&mut self, frame: ControlFrameId, link: LinkId) {
        self.machines.free_frames.push(frame);
        let message = match self.machines.frames[frame].take() {
            Some(ControlFrame::Message(message)) => message,
            Some(ControlFrame::Pause(class, on)) => return self.pause(link, class, on),
            None => return,
        };
        self.saw_control(link, &message);
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        p.hop.on_neighbour(&mut self.io, message, &p.port);
        self.carry_out(Actor::Hop(link));
    }

    /// Pauses or resumes a class of packets in the queue of `link`.
    pub(crate) fn pause(&mut self, link: LinkId, class: Class, on: bool) {
        let p = &mut self.ports[link];
        debug_assert!(p.departures.is_none(), "a machine that holds packets minds departures");
        p.queue.pause(class, on);
        p.gate.set(self.now_ns, class, on);
        if !on && !p.wakes && p.held_down == 0 && p.queue.packets() > 0 {
            p.wakes = true;
            self.wheel.push(self.now_ns.max(p.serializer.free_ns()), Event::Wake(link, PacketId(0)));
        } else if !on && self.set.pacing.one_timer {
            self.look(link);
        }
    }

    /// Whether the state machine of the node at the start of `link` admits the packet to the link's queue.
    pub(crate) fn admits(&mut self, link: LinkId, id: PacketId) -> bool {
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        let Some(node) = p.port.from else { return true };
        let Some(Some(machine)) = self.machines.nodes.get_mut(node) else { return true };
        let admitted = machine.admits(&mut self.io, &self.slab[id], &p.port);
        self.carry_out(Actor::Node(node));
        admitted
    }

    /// Notifies the state machine of the node at the start of `link` of the packet's departure.
    pub(crate) fn tell_leaving(&mut self, link: LinkId, id: PacketId) {
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        let Some(node) = p.port.from else { return };
        let packet = &self.slab[id];
        self.io.came_by = packet.hop.checked_sub(1).map(|before| self.routes.link(packet.route, before));
        let Some(Some(machine)) = self.machines.nodes.get_mut(node) else { return };
        machine.on_leave(&mut self.io, packet, &p.port);
        self.carry_out(Actor::Node(node));
    }
}
