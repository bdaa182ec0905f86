//! State machines of nodes and of the controller, and restarts of all state machines.

use super::Sim;
use crate::event::{Actor, ChangeId, ControlFrameId, Event};
use crate::net::ControlFrame;
use std::collections::BTreeSet;
use subak_core::backend::{LinkChange, Machine, Route};
use subak_core::rng::mix;
use subak_core::scheme::{Controller, ControllerPlace, Hop, Io, NodeInfo, NodeMachine, PacketId, Scheme};
use subak_core::{IdVec, LinkId, NodeId, NodeKind};

impl<S: Scheme> Sim<S> {
    pub(super) fn make_nodes(&mut self) {
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

    pub(super) fn start_controller(&mut self) {
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
        let bps = |links: BTreeSet<LinkId>| {
            links.iter().filter_map(|&l| self.net.port(l)).map(|port| port.capacity_bps).sum()
        };
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
    pub(super) fn count_anew(&mut self) {
        if !self.scheme.rules().recovers {
            self.net.count_anew();
        }
    }

    fn reach_by(&mut self, ways: &[(NodeId, Route)]) {
        for (node, way) in ways {
            self.machines.ways[*node] = Some((self.net.add_route(&way.forward), self.net.add_route(&way.back)));
        }
    }

    fn tell_place(&mut self, node: NodeId) {
        if let Some(place) = self.machines.place {
            self.at_node(node, |machine, io| machine.on_controller(io, &place));
        }
    }

    /// Calls `act` with the state machine of `node`, if it has one, and executes the requested effects.
    pub(super) fn at_node(&mut self, node: NodeId, act: impl FnOnce(&mut dyn NodeMachine<S>, &mut Io<S>)) {
        if let Some(Some(machine)) = self.machines.nodes.get_mut(node) {
            act(machine.as_mut(), &mut self.io);
            self.carry_out(Actor::Node(node));
        }
    }

    /// Calls `act` with the controller, if there is one, and executes the requested effects.
    pub(super) fn at_controller(&mut self, act: impl FnOnce(&mut dyn Controller<S>, &mut Io<S>)) {
        if let Some(controller) = &mut self.machines.controller {
            act(controller.as_mut(), &mut self.io);
            self.carry_out(Actor::Controller);
        }
    }

    pub(super) fn on_node_timer(&mut self, node: NodeId, timer: u32, life: u8) {
        if self.machines.node_lives[node] == life {
            self.at_node(node, |machine, io| machine.on_timer(io, timer));
        }
    }

    pub(super) fn on_controller_timer(&mut self, timer: u32, life: u8) {
        if self.machines.controller_life == life {
            self.at_controller(|controller, io| controller.on_timer(io, timer));
        }
    }

    /// Sends a notification about a change of `link` to the controller, if there is one, from the link's end nearer to
    /// it.
    pub(super) fn send_news(&mut self, link: LinkId, k: ChangeId) {
        if self.machines.controller.is_some() {
            let delay_ns = self.net.news_delay_ns(link, |node| self.machines.ways[node].map(|(out, _)| out));
            self.net.schedule(self.net.now_ns() + delay_ns, Event::LinkNews(k));
        }
    }

    pub(super) fn tell_controller(&mut self, link: LinkId, change: LinkChange) {
        self.at_controller(|controller, io| controller.on_link(io, link, change));
    }

    pub(super) fn restart(&mut self, machine: Machine) {
        match machine {
            Machine::Controller => {
                self.machines.controller_life = self.machines.controller_life.wrapping_add(1);
                self.start_controller();
                // It starts with the network as it was built.
                for (link, change) in self.net.changes(&self.network) {
                    self.tell_controller(link, change);
                }
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
                self.net.restart_hop(link, &self.scheme, &mut self.io);
                self.carry_out(Actor::Hop(link));
            }
        }
    }

    /// Number of restarts of a state machine. Timers set before the latest restart are ignored.
    pub(super) fn life(&self, who: Actor) -> u8 {
        match who {
            Actor::Hop(link) => self.net.life(link),
            Actor::Node(node) => self.machines.node_lives[node],
            _ => self.machines.controller_life,
        }
    }

    pub(super) fn on_control(&mut self, frame: ControlFrameId, link: LinkId) {
        match self.net.take_control(frame) {
            Some(ControlFrame::Message(message)) => {
                self.net.saw_control(link, &message);
                self.net.at_hop(link, |hop, port| hop.on_neighbour(&mut self.io, message, port));
                self.carry_out(Actor::Hop(link));
            }
            Some(ControlFrame::Pause(class, on)) => self.pause(link, class, on),
            None => {}
        }
    }

    /// Whether the state machine of the node at the start of `link` admits the packet to the link's queue.
    pub(super) fn admits(&mut self, link: LinkId, id: PacketId) -> bool {
        let (packet, port) = self.net.at_port(link, id);
        let Some(node) = port.from else { return true };
        let Some(Some(machine)) = self.machines.nodes.get_mut(node) else { return true };
        let admitted = machine.admits(&mut self.io, packet, port);
        self.carry_out(Actor::Node(node));
        admitted
    }

    /// Notifies the state machine of the node at the start of `link` of the packet's departure.
    pub(super) fn tell_leaving(&mut self, link: LinkId, id: PacketId) {
        let came_by = self.net.came_by(id);
        let (packet, port) = self.net.at_port(link, id);
        let Some(node) = port.from else { return };
        self.io.came_by = came_by;
        let Some(Some(machine)) = self.machines.nodes.get_mut(node) else { return };
        machine.on_leave(&mut self.io, packet, port);
        self.carry_out(Actor::Node(node));
    }
}
