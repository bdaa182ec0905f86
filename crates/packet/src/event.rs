//! What can be due at a time, and who can ask for things.

use crate::wheel::Tied;
use subak_core::{FlowId, LinkId, NodeId};

/// Something that is due at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A packet arrives at the far end of the link that it is on; the link that it goes on by (or is on, at the end of its
    /// way), and which of the links into that node it came by.
    Arrive(u32, LinkId, u16),
    /// A link may take the next packet from its queue; where it was cheap to know, the packet that this will be.
    Wake(LinkId, u32),
    /// A subflow's pace allows the next packet.
    Pace(u32),
    /// A subflow's retransmission timeout may have run out.
    Timeout(u32),
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
    /// A letter between neighbours arrives at the hop before this link.
    Letter(u32, LinkId),
    /// The controller hears of that change.
    LinkNews(u32),
    /// A machine is restarted: the number of the fault.
    Restart(u32),
    /// The next of the changes that links were told to undergo.
    LinkChange(u32),
}

/// Whose wishes are being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Source(FlowId),
    Sink(FlowId),
    Hop(LinkId),
    Node(NodeId),
    Controller,
}

impl Tied for Event {
    /// By kind, then by link, flow or node: a machine has one timer of a name, and a link brings one packet at a time, but
    /// for those that faults doubled or held up.
    #[inline]
    fn tie(&self) -> u64 {
        let (kind, who, what) = match *self {
            Event::Arrive(packet, next, input) => {
                let place = u64::from(next & 0xFF_FFFF) << 19 | u64::from(input & 0x7FF) << 8;
                return 3 << 43 | place | u64::from(packet & 0xFF);
            }
            Event::LinkChange(k) => (0, k, 0),
            Event::Restart(k) => (1, k, 0),
            Event::Letter(letter, link) => (2, link, letter),
            Event::HopTimer(link, timer, _) => (4, link, timer),
            Event::NodeTimer(node, timer, _) => (5, node, timer),
            Event::LinkNews(k) => (6, k, 0),
            Event::ControllerTimer(timer, _) => (7, timer, 0),
            Event::Wake(link, _) => (8, link, 0),
            Event::Stop(flow) => (9, flow, 0),
            Event::Start(flow) => (10, flow, 0),
            Event::SourceTimer(flow, timer) => (11, flow, timer),
            Event::SinkTimer(flow, timer) => (12, flow, timer),
            Event::Timeout(sub) => (13, sub, 0),
            Event::Pace(sub) => (14, sub, 0),
        };
        kind << 43 | u64::from(who) << 11 | u64::from(what & 0x7FF)
    }
}
