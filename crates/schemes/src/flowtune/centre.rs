//! The allocator's state machine at its node.

use super::host::burst_bytes;
use super::{BURST_BYTES, Flowtune, FlowtuneMessage, send};
use subak_control::{Allocator, Turns};
use subak_core::backend::{Capacities, LinkChange};
use subak_core::scheme::{Controller, ControllerPlace, Io, To};
use subak_core::{LinkId, Network, NodeId, Ns};
use subak_wire::Datagram;

/// State machine of the allocator.
pub(super) struct Centre {
    pub(super) scheme: Flowtune,
    pub(super) network: Network,
    pub(super) capacities: Capacities,
    pub(super) allocator: Option<Allocator>,
    /// Time of the next iteration, ns.
    pub(super) steps_ns: Ns,
    /// Time at which the next message before that iteration is due, ns.
    pub(super) wakes_ns: Ns,
}

pub(super) const STEP: u32 = 0;
pub(super) const SPEAK: u32 = 1;

impl Centre {
    /// Sends pending messages, and sets a timer if more are due before the next iteration.
    fn speak(&mut self, io: &mut Io<Flowtune>) {
        let Some(allocator) = &mut self.allocator else { return };
        while let Some(datagram) = allocator.poll(io.now_ns) {
            send(io, To::Node(NodeId(datagram.endpoint)), &datagram, &self.scheme.settings);
        }
        if let Some(due_ns) = allocator.due_ns().map(|due_ns| due_ns.max(io.now_ns + 1))
            && due_ns < self.steps_ns
            && (self.wakes_ns <= io.now_ns || due_ns < self.wakes_ns)
        {
            self.wakes_ns = due_ns;
            io.timer(SPEAK, due_ns);
        }
    }
}

impl Controller<Flowtune> for Centre {
    fn on_start(&mut self, io: &mut Io<Flowtune>) {
        let paths = Box::new(Turns::new(&self.network));
        let allocator = Allocator::new(io.now_ns, io.now_ns + 1, self.capacities.bps(), paths, self.scheme.settings);
        // Settings and capacities were checked before.
        self.allocator = allocator.ok().map(|mut allocator| {
            self.network.hosts().for_each(|host| allocator.join(host.0));
            if io.now_ns == 0 { allocator.first() } else { allocator }
        });
        self.steps_ns = io.now_ns + self.scheme.interval_ns;
        io.timer(STEP, self.steps_ns);
    }

    fn on_place(&mut self, io: &mut Io<Flowtune>, place: &ControllerPlace) {
        let Some(allocator) = &mut self.allocator else { return };
        let [into_bps, out_bps] = [place.into_bps, place.out_bps].map(|bps| self.scheme.messages.bps(place, bps));
        allocator.set_pace(out_bps, burst_bytes(BURST_BYTES, out_bps));
        if let Some(host) = place.host {
            allocator.set_place(host.0, into_bps, out_bps);
        }
        self.speak(io);
    }

    fn on_node(&mut self, io: &mut Io<Flowtune>, node: NodeId, message: FlowtuneMessage) {
        let (FlowtuneMessage::Wire(bytes), Some(allocator)) = (message, &mut self.allocator) else { return };
        if let Ok(datagram) = Datagram::decode(&bytes) {
            allocator.take(io.now_ns, node.0, &datagram);
            self.speak(io);
        }
    }

    fn on_link(&mut self, _io: &mut Io<Flowtune>, link: LinkId, change: LinkChange) {
        let capacity_bps = self.capacities.change(link, change);
        if let Some(allocator) = &mut self.allocator {
            let _ = allocator.set_capacity(link, capacity_bps);
        }
    }

    fn on_timer(&mut self, io: &mut Io<Flowtune>, timer: u32) {
        if timer == STEP
            && let Some(allocator) = &mut self.allocator
        {
            allocator.step(io.now_ns);
            self.steps_ns = io.now_ns + self.scheme.interval_ns;
            io.timer(STEP, self.steps_ns);
        }
        self.speak(io);
    }
}
