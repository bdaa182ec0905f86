//! One of several schemes on a network, without its type: its state machines, which see packets as those of a run with
//! that scheme alone.

use super::{Beside, SharedHeader, SharedMessage, Wanted};
use crate::queue::Priority;
use crate::registry::Visitor;
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::sync::Arc;
use subak_core::scheme::{
    Ack, Around, Doubt, Effect, FlowInfo, Hop, Io, Load, Loss, Marks, NodeInfo, Note, Packet, PathInfo, Port, Queue,
    Refused, Reply, Requester, Rules, Scheme, SimulationCost, Sink, Source, Visit,
};
use subak_core::{InputError, LinkId, Network, Ns, SubflowId, Utility};

/// A scheme without its type.
pub(super) trait AnyMember: Send {
    fn copy(&self) -> Box<dyn AnyMember>;
    fn rules(&self) -> Rules;
    fn marks(&self, port: &Port) -> Option<Marks>;
    /// The scheme's queue at the port; `None` if others cannot share it.
    fn wanted(&self, port: &Port) -> Option<Wanted>;
    /// Whether the scheme has a state machine at the node.
    fn has_node(&self, node: &NodeInfo) -> bool;
    fn work(&self, load: &Load) -> SimulationCost;
    fn sends_ctl(&self) -> bool;
    fn fault(&self) -> Option<InputError>;
    fn take_notes(&self) -> Vec<Note>;
    fn on_refused(&self, sender: Requester, why: Refused, at_ns: Ns);
    fn doubts(&self, around: &Around) -> Vec<Doubt>;
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Beside>>;
    fn sink(&self, flow: &FlowInfo) -> Box<dyn Sink<Beside>>;
    /// The scheme's hop, if it has one. `schemes`: the number of schemes on the network.
    fn hop(&self, port: &Port, schemes: u32) -> Option<Box<dyn Hop<Beside>>>;
}

/// Content of a control message.
pub(super) trait Content: Debug + Send {
    fn copy(&self) -> Box<dyn Content>;
    fn open(self: Box<Self>) -> Box<dyn Any>;
    fn seen(&mut self) -> &mut dyn Any;
}

impl<T: Clone + Debug + Send + 'static> Content for T {
    fn copy(&self) -> Box<dyn Content> {
        Box::new(self.clone())
    }
    fn open(self: Box<Self>) -> Box<dyn Any> {
        self
    }
    fn seen(&mut self) -> &mut dyn Any {
        self
    }
}

/// Makes a member of a scheme; an error is the reason why it cannot be one.
pub(super) struct MemberBuilder {
    pub owner: u8,
}

impl Visitor for MemberBuilder {
    type Out = Result<Box<dyn AnyMember>, String>;
    const RUNS: bool = true;
    const BESIDE_ONLY: bool = true;
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out {
        if !SharedHeader::fits::<S::Data>() {
            return Err("its packets have a header of its own".to_string());
        }
        if scheme.controller(&Network::default()).is_some() {
            return Err("it has a central controller".to_string());
        }
        Ok(Box::new(Typed { owner: self.owner, scheme }))
    }
}

struct Typed<S> {
    owner: u8,
    scheme: S,
}

impl<S: Scheme> AnyMember for Typed<S> {
    fn copy(&self) -> Box<dyn AnyMember> {
        Box::new(Typed { owner: self.owner, scheme: self.scheme.clone() })
    }
    fn rules(&self) -> Rules {
        self.scheme.rules()
    }
    fn marks(&self, port: &Port) -> Option<Marks> {
        self.scheme.marks(port)
    }
    fn wanted(&self, port: &Port) -> Option<Wanted> {
        let queue = self.scheme.queue(port);
        let priority = (&queue as &dyn Any).downcast_ref::<Priority>();
        priority.cloned().map(Wanted::Priority).or_else(|| queue.fixed_room_bytes().map(Wanted::Fifo))
    }
    fn has_node(&self, node: &NodeInfo) -> bool {
        self.scheme.node(node).is_some()
    }
    fn work(&self, load: &Load) -> SimulationCost {
        self.scheme.work(load)
    }
    fn sends_ctl(&self) -> bool {
        self.scheme.sends_ctl()
    }
    fn fault(&self) -> Option<InputError> {
        self.scheme.fault()
    }
    fn take_notes(&self) -> Vec<Note> {
        self.scheme.take_notes()
    }
    fn on_refused(&self, sender: Requester, why: Refused, at_ns: Ns) {
        self.scheme.on_refused(sender, why, at_ns);
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        self.scheme.doubts(around)
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Beside>> {
        Box::new(Adapter::<S, _>::new(self.owner, self.scheme.source(flow)))
    }
    fn sink(&self, flow: &FlowInfo) -> Box<dyn Sink<Beside>> {
        Box::new(Adapter::<S, _>::new(self.owner, self.scheme.sink(flow)))
    }
    fn hop(&self, port: &Port, schemes: u32) -> Option<Box<dyn Hop<Beside>>> {
        let adapter = || Adapter { schemes, ..Adapter::<S, _>::new(self.owner, self.scheme.hop(port)) };
        (TypeId::of::<S::Hop>() != TypeId::of::<()>()).then(|| Box::new(adapter()) as Box<dyn Hop<Beside>>)
    }
}

/// A state machine of the scheme `S` among several schemes.
struct Adapter<S: Scheme, M> {
    owner: u8,
    /// Number of schemes whose machines have their timers together; 1 except at hops.
    schemes: u32,
    pending: Pending,
    machine: M,
    io: Io<S>,
}

/// Numbers of a hop's pending timers, by place. The hop of all schemes gets `place * schemes + owner` as a number,
/// which fits whatever number the scheme chose.
#[derive(Default)]
struct Pending {
    timers: Vec<u32>,
    free: Vec<u32>,
}

impl Pending {
    fn add(&mut self, timer: u32) -> u32 {
        let place = self.free.pop().unwrap_or(self.timers.len() as u32);
        self.timers.resize(self.timers.len().max(place as usize + 1), timer);
        self.timers[place as usize] = timer;
        place
    }

    fn take(&mut self, place: u32) -> u32 {
        self.free.push(place);
        self.timers[place as usize]
    }
}

impl<S: Scheme, M> Adapter<S, M> {
    fn new(owner: u8, machine: M) -> Self {
        Adapter { owner, schemes: 1, pending: Pending::default(), machine, io: Io::default() }
    }

    /// Calls `act` with the machine, and passes its effects on.
    #[inline]
    fn call<T>(&mut self, io: &mut Io<Beside>, act: impl FnOnce(&mut M, &mut Io<S>) -> T) -> T {
        (self.io.now_ns, self.io.came_by) = (io.now_ns, io.came_by);
        let out = act(&mut self.machine, &mut self.io);
        if self.io.has_effects() {
            self.pass_on(io);
        }
        out
    }

    fn pass_on(&mut self, io: &mut Io<Beside>) {
        for effect in self.io.take_effects() {
            match effect {
                Effect::Ctl { to, subflow, message, class, bytes } => {
                    io.ctl(to, subflow, SharedMessage { owner: self.owner, content: Box::new(message) }, class, bytes);
                }
                Effect::Timer { timer, at_ns } if self.schemes == 1 => io.timer(timer, at_ns),
                Effect::Timer { timer, at_ns } => {
                    io.timer(self.pending.add(timer) * self.schemes + u32::from(self.owner), at_ns);
                }
                Effect::Pace { subflow, rate_bps, window_bytes } => io.pace(subflow, rate_bps, window_bytes),
                Effect::Pause { link, class, on } => io.pause(link, class, on),
            }
        }
    }

    /// The message of this scheme; `None` if it is another's.
    fn opened(&self, message: SharedMessage) -> Option<S::Ctl> {
        let content = message.content.open();
        content.downcast().ok().filter(|_| message.owner == self.owner).map(|message| *message)
    }
}

/// A packet as its scheme sees it, or as another scheme does: with an empty header.
#[inline]
fn view<S: Scheme>(packet: &Packet<Beside>) -> Packet<S> {
    Packet {
        flow: packet.flow,
        route: packet.route,
        number: packet.number,
        bytes: packet.bytes,
        content: packet.content,
        cumulative: packet.cumulative,
        hop: packet.hop,
        subflow: packet.subflow,
        way: packet.way,
        kind: packet.kind,
        class: packet.class,
        ecn: packet.ecn,
        sent_ns: packet.sent_ns,
        enqueued_ns: packet.enqueued_ns,
        waited_ns: packet.waited_ns,
        data: packet.data.data(),
        ctl: None,
    }
}

impl<S: Scheme> Source<Beside> for Adapter<S, S::Source> {
    fn on_start(&mut self, io: &mut Io<Beside>) {
        self.call(io, |source, io| source.on_start(io));
    }
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Beside>, remaining_bytes: u64) {
        let mut own = view(packet);
        self.machine.stamp(now_ns, &mut own, remaining_bytes);
        (packet.class, packet.ecn, packet.data) = (own.class, own.ecn, SharedHeader::of(self.owner, &own.data));
    }
    fn on_ack(&mut self, io: &mut Io<Beside>, ack: &Ack<SharedHeader>) {
        let Ack { subflow, acked_bytes, rtt_ns, ecn, in_flight_bytes, remaining_bytes, .. } = *ack;
        let Ack { segment, next_segment, .. } = *ack;
        let data = ack.data.data();
        let own =
            Ack { subflow, acked_bytes, rtt_ns, ecn, in_flight_bytes, remaining_bytes, segment, next_segment, data };
        self.call(io, |source, io| source.on_ack(io, &own));
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage) {
        if let Some(message) = self.opened(message) {
            self.call(io, |source, io| source.on_ctl(io, subflow, message));
        }
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32) {
        self.call(io, |source, io| source.on_timer(io, timer));
    }
    fn on_loss(&mut self, io: &mut Io<Beside>, loss: &Loss) {
        self.call(io, |source, io| source.on_loss(io, loss));
    }
    fn on_weight(&mut self, io: &mut Io<Beside>, weight: f64, utility: &Arc<Utility>) {
        self.call(io, |source, io| source.on_weight(io, weight, utility));
    }
    fn on_leave(&mut self, io: &mut Io<Beside>, subflow: SubflowId) {
        self.call(io, |source, io| source.on_leave(io, subflow));
    }
    fn on_left(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage, bytes: u32) {
        if let Some(message) = self.opened(message) {
            self.call(io, |source, io| source.on_left(io, subflow, message, bytes));
        }
    }
    fn on_reroute(&mut self, io: &mut Io<Beside>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        self.call(io, |source, io| source.on_reroute(io, subflow, path, links));
    }
    fn on_finish(&mut self, io: &mut Io<Beside>) {
        self.call(io, |source, io| source.on_finish(io));
    }
}

impl<S: Scheme> Sink<Beside> for Adapter<S, S::Sink> {
    fn on_data(&mut self, io: &mut Io<Beside>, packet: &Packet<Beside>) -> Reply<SharedHeader> {
        let own = view(packet);
        match self.call(io, |sink, io| sink.on_data(io, &own)) {
            Reply::Ack(data) => Reply::Ack(SharedHeader::of(self.owner, &data)),
            Reply::Withhold => Reply::Withhold,
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, subflow: SubflowId, message: SharedMessage, bytes: u32) {
        if let Some(message) = self.opened(message) {
            self.call(io, |sink, io| sink.on_ctl(io, subflow, message, bytes));
        }
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32) {
        self.call(io, |sink, io| sink.on_timer(io, timer));
    }
}

impl<S: Scheme> Adapter<S, S::Hop> {
    /// Shows a packet to the hop; changes of other schemes' packets are dropped.
    #[inline]
    fn show(
        &mut self,
        io: &mut Io<Beside>,
        packet: &mut Packet<Beside>,
        act: impl FnOnce(&mut S::Hop, &mut Io<S>, &mut Packet<S>),
    ) {
        let mut own: Packet<S> = view(packet);
        let is_own = packet.data.owner == self.owner;
        if !is_own {
            own.data = S::Data::default();
        }
        self.call(io, |hop, io| act(hop, io, &mut own));
        if is_own {
            (packet.class, packet.ecn, packet.data) = (own.class, own.ecn, SharedHeader::of(self.owner, &own.data));
        }
    }

    fn is_own(&self, timer: u32) -> bool {
        self.schemes == 1 || timer % self.schemes == u32::from(self.owner)
    }
}

impl<S: Scheme> Hop<Beside> for Adapter<S, S::Hop> {
    fn observes_departures(&self) -> bool {
        self.machine.observes_departures()
    }
    fn has_state(&self) -> bool {
        self.machine.has_state()
    }
    fn on_start(&mut self, io: &mut Io<Beside>) {
        self.call(io, |hop, io| hop.on_start(io));
    }
    fn on_enqueue(&mut self, io: &mut Io<Beside>, packet: &mut Packet<Beside>, port: &Port) {
        self.show(io, packet, |hop, io, packet| hop.on_enqueue(io, packet, port));
    }
    fn on_dequeue(&mut self, io: &mut Io<Beside>, packet: &mut Packet<Beside>, port: &Port) {
        self.show(io, packet, |hop, io, packet| hop.on_dequeue(io, packet, port));
    }
    fn on_capacity(&mut self, port: &Port) {
        self.machine.on_capacity(port);
    }
    fn on_topology(&mut self, port: &Port) {
        self.machine.on_topology(port);
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, message: &mut SharedMessage, visit: Visit, port: &Port) {
        if message.owner != self.owner {
            return;
        }
        let Some(own) = message.content.seen().downcast_mut() else { return };
        (self.io.now_ns, self.io.came_by) = (io.now_ns, io.came_by);
        self.machine.on_ctl(&mut self.io, own, visit, port);
        self.pass_on(io);
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32, port: &Port) {
        if self.is_own(timer) {
            let timer = if self.schemes == 1 { timer } else { self.pending.take(timer / self.schemes) };
            self.call(io, |hop, io| hop.on_timer(io, timer, port));
        }
    }
}
