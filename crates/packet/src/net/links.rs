//! Links of the network and their routes: construction, facts, changes, pauses.

use super::Net;
use super::port::PortState;
use super::routes::Routes;
use crate::event::{ChangeId, Event};
use subak_core::backend::{LinkChange, LinkView, Machine, PacketSizes};
use subak_core::scheme::{Class, Hop, Io, Packet, PacketId, PathInfo, Port, Queue, RouteId, Scheme};
use subak_core::{IdVec, Link, LinkId, Network, NodeId, Ns};

/// A NIC's link, for a NIC without a packet queue.
pub(crate) struct NicLink {
    /// Time at which the link is free, ns.
    pub free_ns: Ns,
    /// Whether a class of data is paused.
    pub is_paused: bool,
}

/// Ports of all links, with the state machines of `scheme`.
pub(super) fn ports<S: Scheme>(
    scheme: &S,
    network: &Network,
    port: impl Fn(LinkId, &Link) -> Port,
) -> IdVec<LinkId, PortState<S>> {
    let reverse_links = network.reverse_links();
    let ports = network.links().iter_enumerated();
    let ports = ports.map(|(l, link)| PortState::new(scheme, port(l, link), reverse_links[l]));
    let mut ports: IdVec<LinkId, PortState<S>> = ports.collect();
    let mut inputs = IdVec::filled(0u16, network.nodes().len());
    for (l, port) in ports.iter_enumerated_mut() {
        // Links without nodes are distinguished by their own numbers.
        port.input = match port.port.to {
            Some(to) => {
                inputs[to] = inputs[to].wrapping_add(1);
                inputs[to]
            }
            None => l.0 as u16,
        };
    }
    ports
}

impl<S: Scheme> Net<S> {
    /// The part of the port of `link` that state machines can read; `None` if there is no such link. Its queue length
    /// is as of the last call of a state machine.
    pub fn port(&self, link: LinkId) -> Option<&Port> {
        self.ports.get(link).map(|p| &p.port)
    }

    /// The links that begin in this logical process.
    pub fn own_links(&self) -> Vec<LinkId> {
        self.ports.ids().filter(|&link| self.ports[link].begins_here).collect()
    }

    /// Whether `link` begins in this logical process.
    pub fn begins_here(&self, link: LinkId) -> bool {
        self.ports[link].begins_here
    }

    /// Whether `link` ends in this logical process.
    pub fn ends_here(&self, link: LinkId) -> bool {
        self.ports[link].ends_here
    }

    /// Whether the state machine runs in this logical process.
    pub fn has_machine(&self, machine: Machine) -> bool {
        let Some(part) = &self.part else { return true };
        match machine {
            Machine::Controller => part.number == 0,
            Machine::Node(node) => part.has(Some(node)),
            Machine::Hop(link) => self.ports[link].begins_here,
        }
    }

    /// The routes of the network.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Number of the route over `links`, which is added if it is new.
    pub fn add_route(&mut self, links: &[LinkId]) -> RouteId {
        self.routes.add(links)
    }

    /// First and last node of a path; `None` if its links have no nodes.
    pub fn path_ends(&self, path: &[LinkId]) -> Option<(NodeId, NodeId)> {
        let port = |l: &LinkId| self.ports[*l].port;
        Some((port(path.first()?).from?, port(path.last()?).to?))
    }

    /// Whether `back` consists of the reverse links of `forward`.
    pub fn is_symmetric(&self, forward: &[LinkId], back: &[LinkId]) -> bool {
        forward.len() == back.len()
            && forward.iter().zip(back.iter().rev()).all(|(&l, &t)| self.ports[t].reverse_link == Some(l))
    }

    /// Properties of a path and its reverse path for packets of these sizes.
    pub fn path_info(&self, forward: &[LinkId], back: &[LinkId], sizes: PacketSizes) -> PathInfo {
        let crossing = |links: &[LinkId], bytes: u32| -> Ns {
            let one = |&l: &LinkId| {
                let port = &self.ports[l].port;
                port.delay_ns + (f64::from(bytes) * 8e9 / port.capacity_bps).ceil() as Ns
            };
            links.iter().map(one).sum()
        };
        let capacity = |l: &LinkId| self.ports[*l].port.capacity_bps;
        PathInfo {
            hops: forward.len() as u16,
            line_rate_bps: capacity(&forward[0]),
            min_capacity_bps: forward.iter().map(capacity).fold(f64::INFINITY, f64::min),
            base_rtt_ns: crossing(forward, sizes.mtu_bytes) + crossing(back, sizes.ack_bytes),
        }
    }

    /// Time in which a full buffer of `link` drains, ns. With shared buffers, all of its node's buffer is meant.
    pub fn full_buffer_ns(&self, link: LinkId) -> Ns {
        let port = &self.ports[link].port;
        let shared = self.pfc.as_ref().zip(port.from).map(|(pfc, node)| pfc.shared_bytes(node));
        (shared.unwrap_or(port.buffer_bytes) as f64 * 8e9 / port.capacity_bps) as Ns
    }

    /// Delay of a notification about `link` to the controller, ns. `way`: route from a node to the controller.
    pub fn news_delay_ns(&self, link: LinkId, way: impl Fn(NodeId) -> Option<RouteId>) -> Ns {
        let Port { from, to, .. } = self.ports[link].port;
        let delay = |route: RouteId| self.routes.of(route).iter().map(|&l| self.ports[l].port.delay_ns).sum::<Ns>();
        [from, to].into_iter().flatten().filter_map(way).map(delay).min().unwrap_or(0)
    }

    /// Calls the state machine of `link`, with the link's present queue length.
    #[inline]
    pub fn at_hop(&mut self, link: LinkId, act: impl FnOnce(&mut S::Hop, &Port)) {
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        act(&mut p.hop, &p.port);
    }

    /// Calls the state machine of `link` for a timer that was set after `life` restarts; returns whether that is the
    /// present number of restarts.
    pub fn on_hop_timer(&mut self, link: LinkId, life: u8, act: impl FnOnce(&mut S::Hop, &Port)) -> bool {
        let is_live = self.ports[link].life == life;
        if is_live {
            self.at_hop(link, act);
        }
        is_live
    }

    /// Number of restarts of the state machine of `link`, modulo 256.
    pub fn life(&self, link: LinkId) -> u8 {
        self.ports[link].life
    }

    /// Replaces the state machine of `link`.
    pub fn restart_hop(&mut self, link: LinkId, scheme: &S, io: &mut Io<S>) {
        let p = &mut self.ports[link];
        p.life = p.life.wrapping_add(1);
        p.hop = scheme.hop(&p.port);
        p.hop.on_start(io);
    }

    /// Lets all links reset their flow counts: see [`Hop::on_topology`].
    pub fn count_anew(&mut self) {
        for p in self.ports.iter_mut().filter(|p| p.begins_here) {
            p.refresh(&self.handled);
            p.hop.on_topology(&p.port);
        }
    }

    /// Packet `id`, and the port of `link` with its present queue length.
    pub fn at_port(&mut self, link: LinkId, id: PacketId) -> (&Packet<S>, &Port) {
        let p = &mut self.ports[link];
        p.refresh(&self.handled);
        (&self.slab[id], &p.port)
    }

    /// Link by which packet `id` arrived; `None` at its source.
    pub fn came_by(&self, id: PacketId) -> Option<LinkId> {
        let packet = &self.slab[id];
        packet.hop.checked_sub(1).map(|before| self.routes.link(packet.route, before))
    }

    /// The link of a scheduled change, and the change.
    pub fn link_change(&self, k: ChangeId) -> (LinkId, LinkChange) {
        let (_, link, change) = self.impairments.link_changes[k];
        (link, change)
    }

    /// Adds a change at the present time that was not scheduled.
    pub fn add_change(&mut self, link: LinkId, change: LinkChange) -> ChangeId {
        self.impairments.add_change(self.now_ns, link, change)
    }

    /// Prepares for changes of links that are not scheduled.
    pub fn allow_link_changes(&mut self) {
        self.wake_for_each();
        self.impairments.has_downs = true;
    }

    /// Changes a link; returns whether its queue must be emptied: see [`Net::empty`].
    pub fn change(&mut self, link: LinkId, change: LinkChange) -> bool {
        let drops = self.impairments.drops_at(link, self.now_ns);
        let p = &mut self.ports[link];
        p.drops = drops;
        match change {
            LinkChange::Down => {
                p.held_down += 1;
                p.down_ns = Some(self.now_ns);
                return drops;
            }
            LinkChange::Up => {
                p.held_down -= 1;
                if p.held_down == 0 && !p.wakes && p.begins_here {
                    self.wake_at_once(link);
                }
                if self.is_up(link) {
                    self.repeat_frames(link);
                }
            }
            LinkChange::Capacity(capacity_bps) => {
                p.serializer.resize(capacity_bps);
                p.port.capacity_bps = capacity_bps;
                p.refresh(&self.handled);
                p.hop.on_capacity(&p.port);
            }
        }
        false
    }

    /// Changes of links since `network` was built: capacities, and a failure for each fault that keeps a link down.
    pub fn changes(&self, network: &Network) -> Vec<(LinkId, LinkChange)> {
        let mut changes = Vec::new();
        for (link, built) in network.links().iter_enumerated() {
            let p = &self.ports[link];
            if p.port.capacity_bps != built.capacity_bps {
                changes.push((link, LinkChange::Capacity(p.port.capacity_bps)));
            }
            changes.extend((0..p.held_down).map(|_| (link, LinkChange::Down)));
        }
        changes
    }

    /// Whether no fault keeps `link` down.
    pub fn is_up(&self, link: LinkId) -> bool {
        self.ports[link].held_down == 0
    }

    /// Pauses or resumes a class of packets in the queue of `link`; returns whether a NIC without a packet queue may
    /// send again.
    pub fn pause(&mut self, link: LinkId, class: Class, on: bool) -> bool {
        let p = &mut self.ports[link];
        debug_assert!(p.departures.is_none(), "a machine that holds packets minds departures");
        p.queue.pause(class, on);
        p.gate.set(self.now_ns, class, on);
        if !on && !p.wakes && p.held_down == 0 && p.queue.packets() > 0 {
            self.wake_at_once(link);
            return false;
        }
        !on
    }

    /// Schedules a wake event of `link` for the time when it is free.
    fn wake_at_once(&mut self, link: LinkId) {
        let p = &mut self.ports[link];
        p.wakes = true;
        self.wheel.push(self.now_ns.max(p.serializer.free_ns()), Event::Wake(link, PacketId(0)));
    }

    /// The link of a NIC without a packet queue; `None` if it is down, or wakes when it is free.
    pub fn nic_link(&self, link: LinkId) -> Option<NicLink> {
        let p = &self.ports[link];
        let is_paused = || Class::DATA.into_iter().any(|class| p.gate.since_ns(class).is_some());
        (!p.wakes && p.held_down == 0).then(|| NicLink { free_ns: p.serializer.free_ns(), is_paused: is_paused() })
    }

    /// Lets `link` wake when it is free, unless it does already.
    pub fn wake_once_free(&mut self, link: LinkId) {
        let p = &mut self.ports[link];
        if !p.wakes {
            p.wakes = true;
            self.wheel.push(p.serializer.free_ns().max(self.now_ns + 1), Event::Wake(link, PacketId(0)));
        }
    }

    /// Counters of `link` at the present time.
    pub fn link(&self, link: LinkId) -> LinkView {
        self.ports[link].view_at(self.now_ns, &self.handled)
    }

    /// Packets that `link` lost.
    pub fn lost_packets(&self, link: LinkId) -> u64 {
        self.ports[link].view.lost_packets
    }

    /// Lets all maximum queue lengths begin with the present ones.
    pub fn restart_peaks(&mut self) {
        for p in &mut self.ports {
            p.peak_queued_bytes = p.standing(&self.handled).queued_bytes;
        }
    }
}
