//! Packets, and the slab that keeps them while they are under way.

use super::Scheme;
use crate::{FlowId, IdVec, NodeId, Ns, SubflowId};
use std::ops::Range;

crate::id! {
    /// A packet under way by its number in the [`Slab`].
    pub struct PacketId(u32);
    /// The links of a path by their place in the backend's table of routes.
    pub struct RouteId(u32);
}

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// Payload.
    Data,
    /// Acknowledgement of one data packet.
    Ack,
    /// A scheme's message of its own.
    Ctl,
}

impl PacketKind {
    /// Its place in a list with an entry for each kind.
    #[inline]
    pub const fn place(self) -> usize {
        self as usize
    }
}

/// From where to where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Way {
    /// From a flow's source to its sink.
    Out,
    /// From a flow's sink to its source.
    Back,
    /// From a flow's source to the controller.
    FlowToController,
    /// From the controller to a flow's source.
    ControllerToFlow,
    /// From the machine of the node that it [names](Packet::node) to the controller.
    NodeToController,
    /// From the controller to the machine of the node that it [names](Packet::node).
    ControllerToNode,
}

/// Priority; the lower goes first where a queue distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Control packets.
    Control = 0,
    /// Short flows and the like.
    High = 1,
    /// Everything else.
    Low = 2,
}

impl Class {
    /// Every class, the first to go first.
    pub const ALL: [Class; 3] = [Class::Control, Class::High, Class::Low];
    /// The classes of data: those that priority flow control pauses.
    pub const DATA: [Class; 2] = [Class::High, Class::Low];

    /// Its place in a list with an entry for each class.
    #[inline]
    pub const fn place(self) -> usize {
        self as usize
    }
}

/// Two SACK blocks (RFC 2018) of an ACK: the run of segments that ends with its segment, and the run before that, with
/// the hole between them. Longer runs are truncated: at most 1023, 1023 and 4095 segments fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks(u32);

impl Blocks {
    const RUN: u32 = 1023;
    const HOLE: u32 = 1023;
    const EARLIER: u32 = 4095;

    /// `run` segments before the acknowledged one have arrived, `hole` before them have not, `earlier` before those have.
    pub fn new(run: u32, hole: u32, earlier: u32) -> Blocks {
        let run = run.min(Self::RUN);
        if run == Self::RUN || hole > Self::HOLE {
            return Blocks(run);
        }
        Blocks(run | hole << 10 | earlier.min(Self::EARLIER) << 20)
    }

    /// From what [`Blocks::bits`] gave.
    pub fn from_bits(bits: u32) -> Blocks {
        Blocks(bits)
    }

    /// In one word.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The segments of the run that `segment` ends, without itself.
    pub fn run(self, segment: u32) -> Range<u32> {
        segment.saturating_sub(self.0 & Self::RUN)..segment
    }

    /// The segments of the run before.
    pub fn earlier(self, segment: u32) -> Range<u32> {
        let end = self.run(segment).start.saturating_sub(self.0 >> 10 & Self::HOLE);
        end.saturating_sub(self.0 >> 20)..end
    }
}

/// A packet under way. One cache line, for small headers.
#[derive(Debug)]
#[repr(align(64))]
pub struct Packet<S: Scheme> {
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Row of the backend's table of routes.
    pub route: RouteId,
    /// A segment, a node or a turn, by the kind of packet: see [`Packet::segment`], [`Packet::node`] and [`Packet::turn`].
    pub number: u32,
    /// Bytes on the wire, headers included.
    pub bytes: u32,
    /// Payload or blocks, by the kind of packet: see [`Packet::payload_bytes`] and [`Packet::blocks`].
    pub content: u32,
    /// First segment that the receiver lacks (acknowledgements).
    pub cumulative: u32,
    /// Links crossed already.
    pub hop: u16,
    /// Which of the flow's subflows.
    pub subflow: SubflowId,
    /// From where to where.
    pub way: Way,
    /// Data, acknowledgement or control.
    pub kind: PacketKind,
    /// Priority.
    pub class: Class,
    /// Congestion was experienced (data), or its echo (acknowledgements).
    pub ecn: bool,
    /// When the data packet left its source; echoed by the acknowledgement.
    pub sent_ns: Ns,
    /// When it entered the queue in which it waits.
    pub enqueued_ns: Ns,
    /// Time spent waiting in queues so far.
    pub waited_ns: Ns,
    /// The scheme's header.
    pub data: S::Data,
    /// The scheme's message, in control packets.
    pub ctl: Option<Box<S::Ctl>>,
}

impl<S: Scheme> Packet<S> {
    /// An empty data packet of a flow, at time 0 and its first link.
    #[inline]
    pub fn blank(flow: FlowId) -> Self {
        Packet {
            flow,
            route: RouteId(0),
            number: 0,
            bytes: 0,
            content: 0,
            cumulative: 0,
            hop: 0,
            subflow: SubflowId(0),
            way: Way::Out,
            kind: PacketKind::Data,
            class: Class::Low,
            ecn: false,
            sent_ns: 0,
            enqueued_ns: 0,
            waited_ns: 0,
            data: S::Data::default(),
            ctl: None,
        }
    }

    /// The same as a data packet that carries a segment of so many payload bytes.
    #[inline]
    #[must_use]
    pub fn carrying(self, segment: u32, payload_bytes: u32) -> Self {
        Packet { kind: PacketKind::Data, number: segment, content: payload_bytes, ..self }
    }

    /// Makes it an acknowledgement of its segment that tells of `blocks`.
    #[inline]
    pub fn acknowledge(&mut self, blocks: Blocks) {
        self.kind = PacketKind::Ack;
        self.content = blocks.bits();
    }

    /// Segment that a data packet carries, or that an acknowledgement acknowledges.
    #[inline]
    pub fn segment(&self) -> u32 {
        debug_assert!(self.kind != PacketKind::Ctl, "a control packet has no segment");
        self.number
    }

    /// The node that a control packet comes from or goes to, where the [`Way`] begins or ends at one.
    #[inline]
    pub fn node(&self) -> NodeId {
        debug_assert!(self.kind == PacketKind::Ctl, "a packet of a flow names no node");
        NodeId(self.number)
    }

    /// Reroutes of its subflow before an end-to-end control packet left.
    #[inline]
    pub fn turn(&self) -> u32 {
        debug_assert!(self.kind == PacketKind::Ctl, "control packets alone name their turn");
        self.number
    }

    /// Payload bytes of a data packet.
    #[inline]
    pub fn payload_bytes(&self) -> u32 {
        debug_assert!(self.kind == PacketKind::Data, "data alone has a payload");
        self.content
    }

    /// The SACK blocks of an ACK.
    #[inline]
    pub fn blocks(&self) -> Blocks {
        debug_assert!(self.kind == PacketKind::Ack, "only ACKs have SACK blocks");
        Blocks::from_bits(self.content)
    }

    /// A copy of the packet, for networks that duplicate packets.
    pub fn copy(&self) -> Self {
        Packet { ctl: self.ctl.clone(), ..*self }
    }
}

/// Packets by number; numbers are used again.
#[derive(Debug)]
pub struct Slab<S: Scheme> {
    packets: IdVec<PacketId, Packet<S>>,
    free: Vec<PacketId>,
}

impl<S: Scheme> Default for Slab<S> {
    fn default() -> Self {
        Slab { packets: IdVec::new(), free: Vec::new() }
    }
}

impl<S: Scheme> Slab<S> {
    /// Takes a packet in and returns its number.
    #[inline]
    pub fn insert(&mut self, packet: Packet<S>) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id] = packet;
            return id;
        }
        self.packets.push(packet)
    }

    /// Gives the number of a packet back; its message, if any, is returned.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Option<Box<S::Ctl>> {
        self.free.push(id);
        self.packets[id].ctl.take()
    }

    /// Takes a packet out, and gives its number back.
    #[inline]
    pub fn take(&mut self, id: PacketId) -> Packet<S> {
        self.free.push(id);
        let packet = &mut self.packets[id];
        let ctl = packet.ctl.take();
        Packet { ctl, ..*packet }
    }

    /// A packet, or what is left of it since its number was given back.
    #[inline]
    pub fn get(&self, id: PacketId) -> Option<&Packet<S>> {
        self.packets.get(id)
    }

    /// Every packet under way.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<S>> {
        let mut live = IdVec::filled(true, self.packets.len());
        self.free.iter().for_each(|&id| live[id] = false);
        self.packets.iter().zip(live).filter_map(|(packet, live)| live.then_some(packet))
    }

    /// Packets under way.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: Scheme> std::ops::Index<PacketId> for Slab<S> {
    type Output = Packet<S>;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet<S> {
        &self.packets[id]
    }
}

impl<S: Scheme> std::ops::IndexMut<PacketId> for Slab<S> {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet<S> {
        &mut self.packets[id]
    }
}
