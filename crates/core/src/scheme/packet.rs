//! Packets, and the slab that stores them while they are in the network.

use super::Scheme;
use crate::{FlowId, IdVec, NodeId, Ns, SubflowId};
use std::ops::Range;

crate::id! {
    /// Id of a packet: its index in the [`Slab`].
    pub struct PacketId(u32);
    /// Id of a route: its index in the backend's table of routes.
    pub struct RouteId(u32);
}

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// Data packet.
    Data,
    /// ACK of one data packet.
    Ack,
    /// Control message of a scheme.
    Ctl,
}

impl PacketKind {
    /// Index in a list with an entry for each kind.
    #[inline]
    pub const fn place(self) -> usize {
        self as usize
    }
}

/// The two ends of a packet's path and its direction.
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
    /// From the state machine of the [node](Packet::node) to the controller.
    NodeToController,
    /// From the controller to the state machine of the [node](Packet::node).
    ControllerToNode,
}

/// Priority class. Queues with priorities serve the lower number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Control packets.
    Control = 0,
    /// Prioritized data, such as short flows.
    High = 1,
    /// Other data.
    Low = 2,
}

impl Class {
    /// All classes, highest priority first.
    pub const ALL: [Class; 3] = [Class::Control, Class::High, Class::Low];
    /// The classes of data, which priority flow control pauses.
    pub const DATA: [Class; 2] = [Class::High, Class::Low];

    /// Index in a list with an entry for each class.
    #[inline]
    pub const fn place(self) -> usize {
        self as usize
    }
}

/// Two SACK blocks (RFC 2018) of an ACK: the block that ends at its segment, and the block before that, with the gap
/// between them. Lengths are truncated to 1023, 1023 (gap) and 4095 segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blocks(u32);

impl Blocks {
    const RUN: u32 = 1023;
    const HOLE: u32 = 1023;
    const EARLIER: u32 = 4095;

    /// Blocks with these lengths, backwards from the ACKed segment: `run` segments arrived, `hole` missing, `earlier`
    /// arrived.
    pub fn new(run: u32, hole: u32, earlier: u32) -> Blocks {
        let run = run.min(Self::RUN);
        if run == Self::RUN || hole > Self::HOLE {
            return Blocks(run);
        }
        Blocks(run | hole << 10 | earlier.min(Self::EARLIER) << 20)
    }

    /// Unpacks the result of [`Blocks::bits`].
    pub fn from_bits(bits: u32) -> Blocks {
        Blocks(bits)
    }

    /// Packs the lengths into 32 bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The segments of the block that ends at `segment`, without `segment` itself.
    pub fn run(self, segment: u32) -> Range<u32> {
        segment.saturating_sub(self.0 & Self::RUN)..segment
    }

    /// The segments of the SACK block before that of `segment`.
    pub fn earlier(self, segment: u32) -> Range<u32> {
        let end = self.run(segment).start.saturating_sub(self.0 >> 10 & Self::HOLE);
        end.saturating_sub(self.0 >> 20)..end
    }
}

/// A packet in the network. A packet fits in one cache line if the scheme's header is small.
#[derive(Debug)]
#[repr(align(64))]
pub struct Packet<S: Scheme> {
    /// The packet's flow.
    pub flow: FlowId,
    /// Row in the backend's table of routes.
    pub route: RouteId,
    /// Number of a segment or node, or of reroutes, by the kind of packet: see [`Packet::segment`], [`Packet::node`]
    /// and [`Packet::turn`].
    pub number: u32,
    /// Bytes on the wire, headers included.
    pub bytes: u32,
    /// Payload bytes or SACK blocks, by the kind of packet: see [`Packet::payload_bytes`] and [`Packet::blocks`].
    pub content: u32,
    /// In ACKs: the first segment that the receiver lacks.
    pub cumulative: u32,
    /// Number of links crossed.
    pub hop: u16,
    /// The subflow of the flow.
    pub subflow: SubflowId,
    /// The two ends of the packet's path and its direction.
    pub way: Way,
    /// Data packet, ACK or control packet.
    pub kind: PacketKind,
    /// Priority class.
    pub class: Class,
    /// ECN mark of a data packet, or its echo in an ACK.
    pub ecn: bool,
    /// Time when the data packet left its source, ns; echoed by its ACK.
    pub sent_ns: Ns,
    /// Time when the packet entered its current queue, ns.
    pub enqueued_ns: Ns,
    /// Total queueing delay so far, ns.
    pub waited_ns: Ns,
    /// The scheme's header.
    pub data: S::Data,
    /// The scheme's message, if the packet is a control packet.
    pub ctl: Option<Box<S::Ctl>>,
}

impl<S: Scheme> Packet<S> {
    /// An empty data packet of a flow at its first link, at time 0.
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

    /// The packet with segment number and payload bytes set.
    #[inline]
    #[must_use]
    pub fn carrying(self, segment: u32, payload_bytes: u32) -> Self {
        Packet { kind: PacketKind::Data, number: segment, content: payload_bytes, ..self }
    }

    /// Turns a data packet into the ACK of its segment, with `blocks`.
    #[inline]
    pub fn acknowledge(&mut self, blocks: Blocks) {
        self.kind = PacketKind::Ack;
        self.content = blocks.bits();
    }

    /// Number of the segment that a data packet carries or an ACK acknowledges.
    #[inline]
    pub fn segment(&self) -> u32 {
        debug_assert!(self.kind != PacketKind::Ctl, "a control packet has no segment");
        self.number
    }

    /// The source or destination node of a control packet, if its [`Way`] has one.
    #[inline]
    pub fn node(&self) -> NodeId {
        debug_assert!(self.kind == PacketKind::Ctl, "a packet of a flow names no node");
        NodeId(self.number)
    }

    /// Number of reroutes of the subflow before this control packet was sent.
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

    /// A copy, for duplication by the network.
    pub fn copy(&self) -> Self {
        Packet { ctl: self.ctl.clone(), ..*self }
    }
}

/// Packets by id. Ids of removed packets are reused.
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
    /// Stores a packet and returns its id.
    #[inline]
    pub fn insert(&mut self, packet: Packet<S>) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.packets[id] = packet;
            return id;
        }
        self.packets.push(packet)
    }

    /// Id of a new packet, to be written in its place: until then it is any removed or blank packet.
    #[inline]
    pub fn reserve(&mut self) -> PacketId {
        self.free.pop().unwrap_or_else(|| self.packets.push(Packet::blank(FlowId::NONE)))
    }

    /// Removes a packet, frees its id, and returns its control message, if any.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Option<Box<S::Ctl>> {
        self.free.push(id);
        self.packets[id].ctl.take()
    }

    /// Removes and returns a packet, and frees its id.
    #[inline]
    pub fn take(&mut self, id: PacketId) -> Packet<S> {
        self.free.push(id);
        let packet = &mut self.packets[id];
        let ctl = packet.ctl.take();
        Packet { ctl, ..*packet }
    }

    /// The packet with this id. For a freed id, the packet that had the id before.
    #[inline]
    pub fn get(&self, id: PacketId) -> Option<&Packet<S>> {
        self.packets.get(id)
    }

    /// All stored packets.
    pub fn iter(&self) -> impl Iterator<Item = &Packet<S>> {
        let mut live = IdVec::filled(true, self.packets.len());
        self.free.iter().for_each(|&id| live[id] = false);
        self.packets.iter().zip(live).filter_map(|(packet, live)| live.then_some(packet))
    }

    /// Number of stored packets.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Whether no packet is stored.
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
