//! Events, the state machines that request effects, and the indices of what events concern.

use crate::wheel::Tied;
use subak_core::scheme::PacketId;
use subak_core::{FlowId, LinkId, NodeId, Ns, SubflowId};

subak_core::id! {
    /// Index of a subflow's state.
    pub(crate) struct SubId(u32);
    /// Index of a link change in time order.
    pub(crate) struct ChangeId(u32);
    /// Index of a state machine's restart in the list of restarts.
    pub(crate) struct RestartId(u32);
    /// Index of a control frame in flight.
    pub(crate) struct ControlFrameId(u32);
}

impl SubId {
    /// Index of the flow's subflow `number`; `self` is the index of its first subflow.
    #[inline]
    pub fn plus(self, number: SubflowId) -> SubId {
        SubId(self.0 + u32::from(number.0))
    }
}

/// A timed event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// Arrival of a packet at the far end of its link. Fields: packet; next link (at the path's end, the present link);
    /// number of the present link among the node's incoming links; number of the arrival on the link.
    Arrive(PacketId, LinkId, u16, ArrivalTurn),
    /// A link is free and may serve its queue. The packet is a guess of the next one to be sent, for prefetching.
    Wake(LinkId, PacketId),
    /// A subflow's pacing allows the next packet. After the flow ends, the index of the subflow may be reused, but the
    /// number of the flow is not.
    Pace(FlowId, SubId),
    /// A subflow's RTO may have expired.
    Timeout(FlowId, SubId),
    /// A flow starts.
    Start(FlowId),
    /// A flow is stopped at the time that its plan sets.
    Stop(FlowId),
    /// Timer of a flow's source: flow and timer.
    SourceTimer(FlowId, u32),
    /// Timer of a flow's sink: flow and timer.
    SinkTimer(FlowId, u32),
    /// Timer of a link's state machine: link, timer, and number of restarts of the machine when the timer was set.
    HopTimer(LinkId, u32, u8),
    /// Timer of a node's state machine: node, timer, and number of restarts of the machine when the timer was set.
    NodeTimer(NodeId, u32, u8),
    /// Timer of the controller, and number of restarts of the controller when the timer was set.
    ControllerTimer(u32, u8),
    /// Arrival of a control frame at the upstream end of a link. Fields: frame, that link, and number of the frame on
    /// the link that carried it, modulo 256.
    ControlFrame(ControlFrameId, LinkId, u8),
    /// Arrival of the notification about a link change at the controller.
    LinkNews(ChangeId),
    /// Restart of a state machine, by the index of the fault.
    Restart(RestartId),
    /// A scheduled change of a link.
    LinkChange(ChangeId),
}

/// Number of an arrival on its link: the fault rule that delayed the packet, and its number among the link's
/// departures. It determines the order of delayed packets that arrive in the same nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrivalTurn {
    /// Number of the fault rule that delayed the packet, from 1; 0 if the packet was not delayed.
    pub rule: u8,
    /// Number among the link's departures, modulo 256.
    pub number: u8,
}

impl ArrivalTurn {
    /// Largest number of fault rules that an event can distinguish.
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

/// An event as stored in the wheel: three words that are copied as words. (The fields of [`Event`] are unaligned, so
/// that reading a fresh copy of it would stall on store forwarding.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    /// Bits 0 to 3: kind of event. Bits 4 to 7: fault rule of an arrival. Bits 8 to 23: number of restarts of a
    /// machine, or input number of a link. Bits 24 to 31: number of an arrival.
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

    /// `head` without the fault rule and the number of an arrival.
    #[inline(always)]
    fn sort(self) -> u32 {
        self.head & 0xFF_FF0F
    }

    /// The packet and the link of an arrival or a wake event; `None` for other events.
    #[inline]
    pub fn packet_and_link(self) -> Option<(PacketId, LinkId)> {
        // A single test for both kinds, which nearly always succeeds: the branch between the two kinds is
        // unpredictable.
        let is_either = (1 << 3 | 1 << 8) >> self.kind() & 1 == 1;
        is_either.then_some((PacketId(self.what), LinkId(self.who)))
    }

    /// The packet of an arrival event; `None` for other events.
    #[inline]
    pub fn arrival(self) -> Option<PacketId> {
        (self.kind() == 3).then_some(PacketId(self.what))
    }

    /// The link of a wake event; `None` for other events.
    #[inline]
    pub fn wake(self) -> Option<LinkId> {
        (self.kind() == 8).then_some(LinkId(self.who))
    }

    /// The unpacked event.
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
    /// Order value among events of the same nanosecond. Changes of links, restarts, control frames and stops come
    /// first, so that a flow's counters before its stop are complete. Links follow by number, for locality. Events of
    /// one link, and events of flows, are ordered by a hash of time, kind and input. With a fixed order, the same one
    /// of several synchronized flows would always find the queue full.
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

    /// Order of events with equal draws: by kind and input, then by link, flow or node, then by number. A machine has
    /// at most one timer of each number. Arrivals on one link at the same time are delayed packets, or packets
    /// shorter than a nanosecond; they are ordered by their numbers. Duplicates by a fault are identical. Ids of
    /// packets and control frames are not compared, since they differ between logical processes.
    #[inline]
    fn tie(&self) -> u128 {
        // The packet of a wake event is only a guess, so that it is not compared.
        let what = if self.kind() == 8 { 0 } else { self.what };
        let (rule, number) = (self.head >> 4 & 0xF, self.head >> 24);
        let turn = rule << 8 | number;
        u128::from(self.sort()) << 76 | u128::from(self.who) << 44 | u128::from(turn) << 32 | u128::from(what)
    }
}
