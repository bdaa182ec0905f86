//! Events, and the actors that schedule them.

use crate::flow::SubId;
use crate::impairments::{ChangeId, RestartId};
use crate::nodes::ControlFrameId;
use crate::wheel::Tied;
use subak_core::scheme::PacketId;
use subak_core::{FlowId, LinkId, NodeId, Ns};

/// A timed event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A packet arrives at the far end of the link that it is on; the link that it goes on by (or is on, at the end of its
    /// way), which of the links into that node it came by, and its turn there.
    Arrive(PacketId, LinkId, u16, ArrivalTurn),
    /// A link may take the next packet from its queue; where it was cheap to know, the packet that this will be.
    Wake(LinkId, PacketId),
    /// A subflow's pace allows the next packet. Its number may be given to another once its flow is over; the flow's is not.
    Pace(FlowId, SubId),
    /// A subflow's retransmission timeout may have run out.
    Timeout(FlowId, SubId),
    /// A flow starts.
    Start(FlowId),
    /// A flow is told to stop.
    Stop(FlowId),
    /// A source's timer.
    SourceTimer(FlowId, u32),
    /// A sink's timer.
    SinkTimer(FlowId, u32),
    /// A hop's timer, and in which of its lives it was set.
    HopTimer(LinkId, u32, u8),
    /// The timer of a node's machine.
    NodeTimer(NodeId, u32, u8),
    /// The controller's timer.
    ControllerTimer(u32, u8),
    /// A control frame between neighbours arrives at the hop before this link; its turn on the link that brought it, modulo 256.
    ControlFrame(ControlFrameId, LinkId, u8),
    /// The controller hears of that change.
    LinkNews(ChangeId),
    /// A machine is restarted: the number of the fault.
    Restart(RestartId),
    /// The next of the changes that links were told to undergo.
    LinkChange(ChangeId),
}

/// A packet's turn among those that a link brings: which rule of the faults made it late, and its number among those that
/// left by the link. Late ones and others that arrive in one nanosecond may have left any number of packets apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrivalTurn {
    /// 0 if none did.
    pub rule: u8,
    /// Modulo 256.
    pub number: u8,
}

impl ArrivalTurn {
    /// So many rules can be told apart.
    pub const MOST_RULES: usize = 15;
}

/// The state machine whose effects are being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Source(FlowId),
    Sink(FlowId),
    Hop(LinkId),
    Node(NodeId),
    Controller,
}

/// An event as the wheel keeps it: three words that are copied as they are. (The enum's fields lie unevenly, and a copy of
/// it that is read at once waits for its own stores.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    /// The kind in the low half byte, then the rule of a turn; above them two bytes for the life of a machine or the input of a link,
    /// and one for the number of a turn.
    head: u32,
    who: u32,
    what: u32,
}

impl From<Event> for Packed {
    #[inline(always)]
    fn from(event: Event) -> Self {
        let (kind, aside, who, what) = match event {
            Event::LinkChange(k) => (0, 0, k.0, 0),
            Event::Restart(k) => (1, 0, k.0, 0),
            Event::ControlFrame(frame, link, turn) => return Packed::new(2, 0, turn, link.0, frame.0),
            Event::Arrive(packet, next, input, ArrivalTurn { rule, number }) => {
                return Packed::new(3 | u32::from(rule) << 4, input, number, next.0, packet.0);
            }
            Event::HopTimer(link, timer, life) => (4, life.into(), link.0, timer),
            Event::NodeTimer(node, timer, life) => (5, life.into(), node.0, timer),
            Event::LinkNews(k) => (6, 0, k.0, 0),
            Event::ControllerTimer(timer, life) => (7, life.into(), timer, 0),
            Event::Wake(link, packet) => (8, 0, link.0, packet.0),
            Event::Stop(flow) => (10, 0, flow.0, 0),
            Event::Start(flow) => (11, 0, flow.0, 0),
            Event::SourceTimer(flow, timer) => (12, 0, flow.0, timer),
            Event::SinkTimer(flow, timer) => (13, 0, flow.0, timer),
            Event::Timeout(flow, sub) => (14, 0, flow.0, sub.0),
            Event::Pace(flow, sub) => (15, 0, flow.0, sub.0),
        };
        Packed::new(kind, aside, 0, who, what)
    }
}

impl Packed {
    #[inline(always)]
    fn new(kind: u32, aside: u16, turn: u8, who: u32, what: u32) -> Self {
        Packed { head: kind | u32::from(aside) << 8 | u32::from(turn) << 24, who, what }
    }

    #[inline(always)]
    fn kind(self) -> u32 {
        self.head & 0xF
    }

    /// All but the turn.
    #[inline(always)]
    fn sort(self) -> u32 {
        self.head & 0xFF_FF0F
    }

    /// The packet and the link that an arrival or a wake is about.
    #[inline]
    pub fn packet_and_link(self) -> Option<(PacketId, LinkId)> {
        // One test that nearly always says yes: which of the two it is cannot be foretold.
        let is_either = (1 << 3 | 1 << 8) >> self.kind() & 1 == 1;
        is_either.then_some((PacketId(self.what), LinkId(self.who)))
    }

    /// The packet, if this is an arrival.
    #[inline]
    pub fn arrival(self) -> Option<PacketId> {
        (self.kind() == 3).then_some(PacketId(self.what))
    }

    /// The link, if this is a wake.
    #[inline]
    pub fn wake(self) -> Option<LinkId> {
        (self.kind() == 8).then_some(LinkId(self.who))
    }

    /// The event.
    #[inline(always)]
    pub fn event(self) -> Event {
        let Packed { head, who, what } = self;
        let (aside, turn) = ((head >> 8) as u16, (head >> 24) as u8);
        match self.kind() {
            0 => Event::LinkChange(ChangeId(who)),
            1 => Event::Restart(RestartId(who)),
            2 => Event::ControlFrame(ControlFrameId(what), LinkId(who), turn),
            3 => Event::Arrive(
                PacketId(what),
                LinkId(who),
                aside,
                ArrivalTurn { rule: (head >> 4 & 0xF) as u8, number: turn },
            ),
            4 => Event::HopTimer(LinkId(who), what, aside as u8),
            5 => Event::NodeTimer(NodeId(who), what, aside as u8),
            6 => Event::LinkNews(ChangeId(who)),
            7 => Event::ControllerTimer(who, aside as u8),
            8 => Event::Wake(LinkId(who), PacketId(what)),
            10 => Event::Stop(FlowId(who)),
            11 => Event::Start(FlowId(who)),
            12 => Event::SourceTimer(FlowId(who), what),
            13 => Event::SinkTimer(FlowId(who), what),
            14 => Event::Timeout(FlowId(who), SubId(what)),
            _ => Event::Pace(FlowId(who), SubId(what)),
        }
    }
}

impl Tied for Packed {
    /// Changes of links, restarts, control frames and stops come first: who stops a flow knows what it came to before that time. Then links by their numbers, so that what lies together is used
    /// together. What concerns one link takes turns by a hash of the time, the kind and the input, and so do flows: were one
    /// always the first, flows in step would lock each other out of a full queue.
    #[inline(always)]
    fn draw(&self, at_ns: Ns) -> u16 {
        let hash =
            |seed: u32| ((at_ns as u32).wrapping_mul(0x9E37_79B9) ^ self.sort() ^ seed).wrapping_mul(0xC2B2_AE35);
        match self.kind() {
            0..3 | 10 => 0,
            3 | 4 | 8 => (self.who << 6) as u16 | (hash(0) >> 26) as u16,
            _ => (hash(self.who.wrapping_mul(0x85EB_CA6B)) >> 16) as u16,
        }
    }

    /// By kind and input, then by link, flow or node, then by the turn. A machine has one timer of a name. A link brings one
    /// packet at a time, but for those that faults held up or that take less than a nanosecond: they have turns. What faults
    /// doubled is the same twice. Numbers of packets and control frames say nothing: they are another simulation's, where several run
    /// parts of one network.
    #[inline]
    fn tie(&self) -> u128 {
        // Which packet a link will take is a guess.
        let what = if self.kind() == 8 { 0 } else { self.what };
        let (rule, number) = (self.head >> 4 & 0xF, self.head >> 24);
        let turn = rule << 8 | number;
        u128::from(self.sort()) << 76 | u128::from(self.who) << 44 | u128::from(turn) << 32 | u128::from(what)
    }
}
